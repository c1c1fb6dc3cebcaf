//! The element types of the CPU device.

use std::fmt::Debug;

use super::lanes::Lanes;

/// f32 or f64. Sealed: the kernels know these two.
pub trait Scalar:
    Lanes + Debug + Default + PartialEq + Into<f64> + bytemuck::Pod + Send + Sync
{
    /// 1.
    const ONE: Self;

    /// The nearest `Self`: rounded for f32, exact for f64.
    fn narrow(value: f64) -> Self;
}

impl Scalar for f32 {
    const ONE: f32 = 1.0;

    #[inline(always)]
    fn narrow(value: f64) -> f32 {
        value as f32
    }
}

impl Scalar for f64 {
    const ONE: f64 = 1.0;

    #[inline(always)]
    fn narrow(value: f64) -> f64 {
        value
    }
}
