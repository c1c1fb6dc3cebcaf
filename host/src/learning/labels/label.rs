//! Labels that are numbers, whatever their type.

use std::fmt::Display;

/// A label of one of Rust's types of numbers, or a truth value: `i8` to `i64`, `u8` to `u64`, `f32`, `f64`, `bool`.
///
/// Floats are labels where they are whole; [`Codes::of`](super::Codes::of) refuses others.
pub trait Label: keys::Keyed {}

/// What labels are numbered by.
pub(super) mod keys {
    use super::Display;

    /// Numbers of 64 bits in the order of the labels.
    pub trait Keyed: Copy + Send + Sync + Display + 'static {
        /// The key of a whole number that 64 bits hold, and whether this is one: neighbours have keys that differ by 1.
        fn key(self) -> (u64, bool);

        /// The label of such a key.
        fn of_key(key: u64) -> Self;

        /// A key that every label has, whose neighbours may be far apart. 0 and -0 have the same.
        fn rank(self) -> u64;

        /// The label of a rank.
        fn of_rank(rank: u64) -> Self;

        /// The same number in f64, which holds no more than 53 digits.
        fn wide(self) -> Option<f64>;
    }
}

/// The bit that puts negative numbers below the others.
const SIGN: u64 = 1 << 63;

/// Of a type of integers, by the type of 64 bits with the same sign and what makes its numbers ascend as bits.
macro_rules! integers {
    ($($type:ty: $of_64_bits:ty, $flip:expr);* $(;)?) => { $(
        impl Label for $type {}

        impl keys::Keyed for $type {
            #[inline]
            fn key(self) -> (u64, bool) {
                ((self as $of_64_bits) as u64 ^ $flip, true)
            }

            fn of_key(key: u64) -> Self {
                (key ^ $flip) as $of_64_bits as $type
            }

            fn rank(self) -> u64 {
                self.key().0
            }

            fn of_rank(rank: u64) -> Self {
                Self::of_key(rank)
            }

            fn wide(self) -> Option<f64> {
                let wide = self as f64;
                // The greatest of 64 bits round to the next power of two, which would be them again.
                (wide as $type == self && wide.abs() <= (1_u64 << 62) as f64).then_some(wide)
            }
        }
    )* };
}

integers! {
    i64: i64, SIGN;
    i32: i64, SIGN;
    i16: i64, SIGN;
    i8: i64, SIGN;
    u64: u64, 0;
    u32: u64, 0;
    u16: u64, 0;
    u8: u64, 0;
}

impl Label for bool {}

impl keys::Keyed for bool {
    #[inline]
    fn key(self) -> (u64, bool) {
        (u64::from(self), true)
    }

    fn of_key(key: u64) -> Self {
        key == 1
    }

    fn rank(self) -> u64 {
        u64::from(self)
    }

    fn of_rank(rank: u64) -> Self {
        rank == 1
    }

    fn wide(self) -> Option<f64> {
        Some(f64::from(u8::from(self)))
    }
}

macro_rules! floats {
    ($($type:ty),*) => { $(
        impl Label for $type {}

        impl keys::Keyed for $type {
            #[inline]
            fn key(self) -> (u64, bool) {
                let whole = self as i64;
                (whole as u64 ^ SIGN, whole as $type == self)
            }

            fn of_key(key: u64) -> Self {
                (key ^ SIGN) as i64 as $type
            }

            fn rank(self) -> u64 {
                // Adding 0 makes -0 a 0.
                let bits = (f64::from(self) + 0.0).to_bits();
                if bits & SIGN == 0 { bits | SIGN } else { !bits }
            }

            fn of_rank(rank: u64) -> Self {
                let bits = if rank & SIGN == 0 { !rank } else { rank ^ SIGN };
                f64::from_bits(bits) as $type
            }

            fn wide(self) -> Option<f64> {
                Some(f64::from(self))
            }
        }
    )* };
}

floats!(f32, f64);

#[cfg(test)]
mod tests {
    use super::keys::Keyed;

    /// Labels in ascending order have ascending keys and ranks, and are what these stand for.
    fn ascends<T: Keyed + PartialEq + std::fmt::Debug>(labels: &[T]) {
        for label in labels {
            let (key, is_whole) = label.key();
            assert!(!is_whole || T::of_key(key) == *label, "{label}");
            assert_eq!(T::of_rank(label.rank()), *label);
        }
        let whole = labels.iter().filter(|label| label.key().1);
        assert!(whole.is_sorted_by(|a, b| a.key().0 < b.key().0));
        assert!(labels.is_sorted_by(|a, b| a.rank() < b.rank()));
    }

    #[test]
    fn keys_ascend_with_the_labels_of_every_type() {
        ascends(&[i64::MIN, -1, 0, 1, i64::MAX]);
        ascends(&[i8::MIN, -1, 0, i8::MAX]);
        ascends(&[0, 1, u64::MAX - 1, u64::MAX]);
        ascends(&[false, true]);
        ascends(&[-1e300, -9.3e18, -2.0, 0.0, 1.0, 9.2e18, 1e300]);
        ascends(&[-3e38_f32, -1.0, 0.0, 1.0, 16_777_216.0, 3e38]);
        assert_eq!((-0.0_f64).rank(), 0.0_f64.rank());
        for none in [0.5, f64::NAN, f64::INFINITY, 1e19] {
            assert!(!none.key().1, "{none}");
        }
    }

    #[test]
    fn f64_holds_what_it_gives_back() {
        assert_eq!((1_i64 << 53).wide(), Some(9_007_199_254_740_992.0));
        assert_eq!(((1_i64 << 53) + 1).wide(), None);
        assert_eq!((i64::MAX.wide(), u64::MAX.wide()), (None, None));
        assert_eq!(
            (i32::MIN.wide(), true.wide()),
            (Some(-2_147_483_648.0), Some(1.0))
        );
    }
}
