//! The element types that every operation knows.

use gpu_kernels::In;
use gpu_kernels::fused::{UnpackArgs, UnpackVariant};

use super::OpError;
use super::blocks::{Unpacking, no_arrays};
use super::reduce::{Moments, Parts, Reducer, Reducible};
use crate::cpu;
use crate::device::buffer::RowLayout;
use crate::device::group::GroupNumber;
use crate::device::{Buffer, Device, SharedBuffer};
use crate::matrix::Element;
use crate::plan::fused::Precision;

/// `f32` or `f64`: an element of matrices and vectors, with kernels on every device.
pub trait Number:
    Element
    + GroupNumber
    + cpu::Scalar
    + cpu::kernel_sum::Exponential
    + cpu::matmul::Multiply
    + gpu_kernels::Kernels
{
    /// The precision, for plans.
    const PRECISION: Precision;

    /// Count, mean and squared deviations of each column, added in f64 where the rows lie.
    ///
    /// # Errors
    /// As [`Reducer::moments_of`].
    fn column_moments(x: &Buffer<Self>, layout: RowLayout) -> Result<Vec<Moments>, OpError>;

    /// The values as f64, on their device.
    ///
    /// # Errors
    /// [`OpError::Device`] when the device has too little memory, or fails.
    fn widened(values: &SharedBuffer<Self>) -> Result<SharedBuffer<f64>, OpError>;
}

fn moments_of<T: Reducible>(x: &Buffer<T>, layout: RowLayout) -> Result<Vec<Moments>, OpError> {
    Reducer::new(&x.device())?.moments_of(x, Parts::Columns(layout))
}

impl Number for f32 {
    const PRECISION: Precision = Precision::F32;

    fn column_moments(x: &Buffer<f32>, layout: RowLayout) -> Result<Vec<Moments>, OpError> {
        moments_of(x, layout)
    }

    fn widened(values: &SharedBuffer<f32>) -> Result<SharedBuffer<f64>, OpError> {
        if let Some(values) = values.as_host_slice() {
            let wide: Vec<f64> = values.iter().map(|value| f64::from(*value)).collect();
            return Ok(Device::cpu().upload(&wide)?.into());
        }
        let (device, len) = (values.device(), values.len());
        let mut wide = device.zeros::<f64>(len)?;
        let args = UnpackArgs {
            packed: bits_of(values),
            values: wide.output(),
            ..no_arrays::<f64>(len)
        };
        let variant = UnpackVariant::Single;
        Unpacking::<f64>::new(&device, &[variant])?.launch(variant, args)?;
        Ok(wide.into())
    }
}

/// The bits of values of f32.
fn bits_of(values: &Buffer<f32>) -> In<'_, u32> {
    let all = values.input();
    // SAFETY: as many words of the same size lie in the same memory, borrowed for as long; any bits are a word.
    unsafe { In::new(all.pointer().cast(), all.len()) }
}

impl Number for f64 {
    const PRECISION: Precision = Precision::F64;

    fn column_moments(x: &Buffer<f64>, layout: RowLayout) -> Result<Vec<Moments>, OpError> {
        moments_of(x, layout)
    }

    fn widened(values: &SharedBuffer<f64>) -> Result<SharedBuffer<f64>, OpError> {
        Ok(values.clone())
    }
}
