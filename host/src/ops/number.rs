//! The element types that every operation knows.

use crate::cpu;
use crate::matrix::Element;
use crate::plan::fused::Precision;

/// `f32` or `f64`: an element of matrices and vectors, with kernels on every device.
pub trait Number:
    Element + cpu::Scalar + cpu::kernel_sum::Exponential + cpu::matmul::Multiply + gpu_kernels::Kernels
{
    /// The precision, for plans.
    const PRECISION: Precision;
}

impl Number for f32 {
    const PRECISION: Precision = Precision::F32;
}

impl Number for f64 {
    const PRECISION: Precision = Precision::F64;
}
