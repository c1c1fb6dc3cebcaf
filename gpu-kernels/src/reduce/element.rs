//! The element types of reductions, and how their values are ranked.

use crate::scalar::{Word, Words};

/// A word that sums are formed in: `f64`, or `i64` modulo 2⁶⁴.
pub trait Accumulator: Word + PartialEq + core::fmt::Debug {
    /// 0.
    const ZERO: Self;
    /// The sum; integers wrap.
    fn plus(self, other: Self) -> Self;
    /// The product, rounded by itself: every device multiplies first and adds then, so that all get the same
    /// bits. Integers wrap.
    fn times(self, other: Self) -> Self;
    /// The magnitude; that of `i64::MIN` wraps.
    fn magnitude(self) -> Self;
    /// 1.
    const ONE: Self;
}

impl Accumulator for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
    #[inline(always)]
    fn plus(self, other: f64) -> f64 {
        self + other
    }
    #[inline(always)]
    fn times(self, other: f64) -> f64 {
        self * other
    }
    #[inline(always)]
    fn magnitude(self) -> f64 {
        f64::from_bits(self.to_bits() & !(1 << 63))
    }
}

impl Accumulator for i64 {
    const ZERO: i64 = 0;
    const ONE: i64 = 1;
    #[inline(always)]
    fn plus(self, other: i64) -> i64 {
        self.wrapping_add(other)
    }
    #[inline(always)]
    fn times(self, other: i64) -> i64 {
        self.wrapping_mul(other)
    }
    #[inline(always)]
    fn magnitude(self) -> i64 {
        self.wrapping_abs()
    }
}

/// What elements are ranked by: an integer of their width.
pub trait Rank: Word + Ord + core::fmt::Debug {
    /// Below or equal to every rank.
    const LOWEST: Self;
}

impl Rank for i32 {
    const LOWEST: i32 = i32::MIN;
}

impl Rank for i64 {
    const LOWEST: i64 = i64::MIN;
}

/// By what the greatest element is sought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Sought {
    /// The least value.
    Least = 0,
    /// The greatest value.
    Greatest = 1,
    /// The greatest magnitude.
    Magnitude = 2,
}

/// An element of a reduction: `f32`, `f64`, `i32` or `i64`.
///
/// Elements are ranked by an integer, the sought one highest. A NaN has the highest rank of all whatever is
/// sought, so that it shows in the result; −0 is less than +0, so that the result is one and the same however
/// the elements are grouped.
pub trait Element: Word + PartialEq + core::fmt::Debug {
    /// What sums are formed in.
    type Sum: Accumulator;
    /// What elements are ranked by.
    type Rank: Rank;
    /// The greatest magnitude: the type itself, unsigned for integers.
    type Magnitude: Copy + PartialEq + core::fmt::Debug;
    /// As many as fill a 16-byte load.
    type Pack: Words<Self>;
    /// Whether an element can have the lowest rank; floats leave it to a NaN, which has the highest.
    const REACHES_LOWEST: bool;

    /// The value; exact.
    fn to_sum(self) -> Self::Sum;
    /// The nearest double.
    fn to_f64(self) -> f64;
    /// Whether it is not zero; a NaN is not.
    fn is_nonzero(self) -> bool;
    /// The rank.
    fn rank(self, sought: Sought) -> Self::Rank;
    /// The value of a rank of [`Sought::Least`] or [`Sought::Greatest`].
    fn of_rank(rank: Self::Rank, sought: Sought) -> Self;
    /// The value of a rank of [`Sought::Magnitude`].
    fn magnitude_of(rank: Self::Rank) -> Self::Magnitude;
}

macro_rules! float {
    ($t:ident, $int:ident, $lanes:literal) => {
        impl Element for $t {
            type Sum = f64;
            type Rank = $int;
            type Magnitude = $t;
            type Pack = [$t; $lanes];
            const REACHES_LOWEST: bool = false;

            #[inline(always)]
            fn to_sum(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn is_nonzero(self) -> bool {
                self != 0.0
            }
            #[inline(always)]
            fn rank(self, sought: Sought) -> $int {
                let bits = $t::to_bits(self) as $int;
                // Magnitudes of negative numbers grow with the bits: turned round they ascend.
                let ascending = bits ^ ((bits >> ($int::BITS - 1)) & $int::MAX);
                let rank = match sought {
                    Sought::Least => !ascending,
                    Sought::Greatest => ascending,
                    Sought::Magnitude => bits & $int::MAX,
                };
                if self != self { $int::MAX } else { rank }
            }
            #[inline(always)]
            fn of_rank(rank: $int, sought: Sought) -> $t {
                if rank == $int::MAX {
                    return $t::NAN;
                }
                let ascending = if sought == Sought::Least { !rank } else { rank };
                let bits = ascending ^ ((ascending >> ($int::BITS - 1)) & $int::MAX);
                $t::from_bits(bits as _)
            }
            #[inline(always)]
            fn magnitude_of(rank: $int) -> $t {
                if rank == $int::MAX {
                    $t::NAN
                } else {
                    $t::from_bits(rank as _)
                }
            }
        }
    };
}

macro_rules! integer {
    ($t:ident, $unsigned:ident, $lanes:literal) => {
        impl Element for $t {
            type Sum = i64;
            type Rank = $t;
            type Magnitude = $unsigned;
            type Pack = [$t; $lanes];
            const REACHES_LOWEST: bool = true;

            #[inline(always)]
            fn to_sum(self) -> i64 {
                self as i64
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn is_nonzero(self) -> bool {
                self != 0
            }
            #[inline(always)]
            fn rank(self, sought: Sought) -> $t {
                match sought {
                    Sought::Least => !self,
                    Sought::Greatest => self,
                    // Magnitude − 1, which also the least integer has: −|x| never overflows.
                    Sought::Magnitude => !(if self > 0 { -self } else { self }),
                }
            }
            #[inline(always)]
            fn of_rank(rank: $t, sought: Sought) -> $t {
                if sought == Sought::Least { !rank } else { rank }
            }
            #[inline(always)]
            fn magnitude_of(rank: $t) -> $unsigned {
                (rank as $unsigned).wrapping_add(1)
            }
        }
    };
}

float!(f32, i32, 4);
float!(f64, i64, 2);
integer!(i32, u32, 4);
integer!(i64, u64, 2);
