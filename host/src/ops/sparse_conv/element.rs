//! The types of layers.

use bytemuck::Pod;
use gpu_kernels::Family;
use gpu_kernels::sparse_conv::{
    Accumulator, Element, SparseConv as Kernels, SparseConvArgs, SparseConvVariant,
};
use half::{bf16, f16};

use crate::device::Buffer;
use crate::matrix::filters::FilterValue;
use crate::ops::OpError;
use crate::ops::matmul::{Choice, Factor, Layout, Workspace, matmul_with};

pub use gpu_kernels::sparse_conv::{Bf16, F16, I8, I8Wide, I16, I16Wide};

/// A number that results have: `i32`, `i64`, `f32` or `f64`.
pub trait ConvSum: Accumulator + Pod {
    /// The largest magnitude of exact sums; infinite for floats, which round instead.
    const MOST: f64;
    /// Memory that products keep.
    type Workspace: Default + Send;
    /// The value; rounded from integers beyond 2⁵³.
    fn to_f64(self) -> f64;
    /// `C = A · B` of row-major m × k and k × n matrices in the first elements of buffers.
    ///
    /// # Errors
    /// When the device fails, or the sums are integers, of which there are no products.
    fn multiply(
        workspace: &mut Self::Workspace,
        sizes: [usize; 3],
        factors: (&Buffer<Self>, &Buffer<Self>),
        product: &mut Buffer<Self>,
    ) -> Result<(), OpError>;
}

macro_rules! integer_sums {
    ($($t:ident)*) => { $(
        impl ConvSum for $t {
            const MOST: f64 = $t::MAX as f64;
            type Workspace = ();
            fn to_f64(self) -> f64 {
                self as f64
            }
            fn multiply(
                (): &mut (),
                _: [usize; 3],
                _: (&Buffer<$t>, &Buffer<$t>),
                _: &mut Buffer<$t>,
            ) -> Result<(), OpError> {
                Err(OpError::NoVariant {
                    what: "matrix product",
                    wanted: stringify!($t).into(),
                })
            }
        }
    )* };
}

macro_rules! float_sums {
    ($($t:ident)*) => { $(
        impl ConvSum for $t {
            const MOST: f64 = f64::INFINITY;
            type Workspace = Workspace<$t>;
            fn to_f64(self) -> f64 {
                self.into()
            }
            fn multiply(
                workspace: &mut Workspace<$t>,
                [m, k, n]: [usize; 3],
                (a, b): (&Buffer<$t>, &Buffer<$t>),
                product: &mut Buffer<$t>,
            ) -> Result<(), OpError> {
                let (a, b) = (Factor::new(a, m, k), Factor::new(b, k, n));
                let c = (product, Layout::dense(m, n));
                matmul_with(workspace, 1.0, &a, &b, 0.0, c, Choice::Best)
            }
        }
    )* };
}

integer_sums!(i32 i64);
float_sums!(f32 f64);

/// The type of a layer.
///
/// | type | inputs and weights | sums |
/// |---|---|---|
/// | [`I8`], [`I8Wide`] | `i8` | `i32`, `i64` |
/// | [`I16`], [`I16Wide`] | `i16` | `i32`, `i64` |
/// | [`F16`], [`Bf16`] | `f16`, `bf16` | `f32` |
/// | `f32`, `f64` | the same | the same |
pub trait ConvElement: Element<Stored: Pod, Wide: Pod, Packed: Pod, Acc = Self::Sum> {
    /// The name of the type, as tables of tuned launches have it.
    const NAME: &'static str;
    /// What results are.
    type Sum: ConvSum;
    /// What inputs and weights are.
    type Value: FilterValue;
    /// The compiled kernels.
    type Kernels: Family<Variant = SparseConvVariant>
        + for<'a> Family<Args<'a> = SparseConvArgs<'a, Self>>;
    /// The largest magnitude of an input; infinite for floats.
    const MOST: f64;
    /// A weight as it is multiplied.
    fn wide(value: Self::Value) -> Self::Wide;
    /// The bits of a weight, of which tensor cores take pieces; 0 of numbers that they do not take.
    fn bits_of(value: Self::Value) -> u32;
    /// A word of the packed format.
    fn packed(word: u64) -> Self::Packed;
}

macro_rules! elements {
    ($($t:ident: $value:ident, $sum:ident, $packed:ident, $most:expr, $wide:expr, $bits:expr;)*) => { $(
        impl ConvElement for $t {
            const NAME: &'static str = stringify!($t);
            type Sum = $sum;
            type Value = $value;
            type Kernels = Kernels<$t>;
            const MOST: f64 = $most;
            fn wide(value: $value) -> Self::Wide {
                $wide(value)
            }
            fn bits_of(value: $value) -> u32 {
                $bits(value)
            }
            fn packed(word: u64) -> $packed {
                word as $packed
            }
        }
    )* };
}

elements! {
    I8: i8, i32, u32, 128.0, i32::from, |value| i32::from(value) as u32;
    I8Wide: i8, i64, u32, 128.0, i32::from, |value| i32::from(value) as u32;
    I16: i16, i32, u32, 32_768.0, i32::from, |value| i32::from(value) as u32;
    I16Wide: i16, i64, u32, 32_768.0, i32::from, |value| i32::from(value) as u32;
    F16: f16, f32, u32, f64::INFINITY, f16::to_f32, |value: f16| value.to_bits().into();
    Bf16: bf16, f32, u32, f64::INFINITY, bf16::to_f32, |value: bf16| value.to_bits().into();
    f32: f32, f32, u64, f64::INFINITY, core::convert::identity, |_| 0;
    f64: f64, f64, u64, f64::INFINITY, core::convert::identity, |_| 0;
}
