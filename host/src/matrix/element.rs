//! The two element types.

use std::fmt;
use std::ops::{AddAssign, MulAssign, Neg, SubAssign};

/// The name of an element type, for files, messages and choices made at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
}

impl Dtype {
    /// Size of one element in bytes.
    pub const fn size(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
        })
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// What an entry of a matrix or a vector may be: `f32` or `f64`.
///
/// Sealed: kernels exist for these two only.
///
/// ```
/// use warpfuse::matrix::{Dtype, Element};
/// assert_eq!(f32::DTYPE, Dtype::F32);
/// assert_eq!(f32::from_f64(0.1).to_f64(), 0.1_f32 as f64);
/// assert_eq!(f32::try_from_f64(1e300), None);
/// ```
pub trait Element:
    sealed::Sealed
    + ndarray::LinalgScalar
    + ndarray::ScalarOperand
    + bytemuck::Pod
    + AddAssign
    + SubAssign
    + MulAssign
    + Neg<Output = Self>
    + PartialOrd
    + Default
    + fmt::Debug
    + fmt::Display
    + Send
    + Sync
{
    /// The run-time name of this type.
    const DTYPE: Dtype;

    /// The value in double precision; exact.
    fn to_f64(self) -> f64;

    /// The nearest value of this type; too large a magnitude becomes infinite.
    fn from_f64(value: f64) -> Self;

    /// The nearest value of this type, or `None` where a finite value would become infinite.
    fn try_from_f64(value: f64) -> Option<Self> {
        let near = Self::from_f64(value);
        (near.is_finite() || !value.is_finite()).then_some(near)
    }

    /// Neither infinite nor NaN.
    fn is_finite(self) -> bool;

    /// Reads a decimal number from the start of `text`: the correctly rounded value and the number
    /// of bytes it takes, or `None` where no number starts. `nan` and `inf` count as numbers.
    fn parse_decimal(text: &[u8]) -> Option<(Self, usize)>;

    /// Appends the shortest decimal number that reads back as this value.
    fn write_decimal(self, out: &mut Vec<u8>);
}

macro_rules! element {
    ($type:ty, $dtype:expr) => {
        impl Element for $type {
            const DTYPE: Dtype = $dtype;

            #[inline]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }

            #[inline]
            fn from_f64(value: f64) -> Self {
                value as $type
            }

            #[inline]
            fn is_finite(self) -> bool {
                <$type>::is_finite(self)
            }

            #[inline]
            fn parse_decimal(text: &[u8]) -> Option<(Self, usize)> {
                fast_float2::parse_partial(text).ok()
            }

            fn write_decimal(self, out: &mut Vec<u8>) {
                let mut buffer = [0_u8; lexical_core::BUFFER_SIZE];
                out.extend_from_slice(lexical_core::write(self, &mut buffer));
            }
        }
    };
}

element!(f32, Dtype::F32);
element!(f64, Dtype::F64);
