//! Numbers that members add and compare.

use bytemuck::Pod;

use super::between_devices::NumberKind;

/// A number that [`Group::sum`](super::Group::sum) and [`Group::max`](super::Group::max) take: f32, f64, i64, u64. Sealed.
pub trait GroupNumber: Pod + Send + Sync + sealed::Sealed {
    /// Its name, for errors.
    const NAME: &'static str;
    /// Integers wrap.
    fn plus(self, other: Self) -> Self;
    /// The greater one; NaN of a float where either is.
    fn greater(self, other: Self) -> Self;
}

pub(super) mod sealed {
    use super::NumberKind;

    pub trait Sealed {
        const KIND: NumberKind;
    }
}

macro_rules! floats {
    ($($number:ident $kind:ident),*) => {$(
        impl sealed::Sealed for $number {
            const KIND: NumberKind = NumberKind::$kind;
        }
        impl GroupNumber for $number {
            const NAME: &'static str = stringify!($number);
            fn plus(self, other: Self) -> Self {
                self + other
            }
            fn greater(self, other: Self) -> Self {
                if self.is_nan() || self > other { self } else { other }
            }
        }
    )*};
}

macro_rules! integers {
    ($($number:ident $kind:ident),*) => {$(
        impl sealed::Sealed for $number {
            const KIND: NumberKind = NumberKind::$kind;
        }
        impl GroupNumber for $number {
            const NAME: &'static str = stringify!($number);
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            fn greater(self, other: Self) -> Self {
                self.max(other)
            }
        }
    )*};
}

floats!(f32 F32, f64 F64);
integers!(i64 I64, u64 U64);
