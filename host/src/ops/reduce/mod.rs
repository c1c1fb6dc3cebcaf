//! Reductions on a device: sums, products, norms, extremes, moments; of arrays, rows, columns and segments.
//!
//! A [`Reducer`] holds the little memory that a device needs for them and is used again and again:
//!
//! ```
//! use warpfuse::device::Device;
//! use warpfuse::ops::reduce::Reducer;
//!
//! let device = Device::auto();
//! let x = device.upload(&[3.0_f32, -4.0, 1.0])?;
//! let mut reduce = Reducer::new(&device)?;
//! assert_eq!(reduce.sum(&x)?, 0.0);
//! assert_eq!(reduce.norm1(&x)?, 8.0);
//! assert_eq!(reduce.min(&x)?, Some(-4.0));
//! assert_eq!(reduce.arg_max(&x)?, Some(0));
//! # Ok::<(), warpfuse::ops::OpError>(())
//! ```
//!
//! | of whole arrays | of [`Parts`] | result |
//! |---|---|---|
//! | [`sum`](Reducer::sum) | [`sums`](Reducer::sums) | Σ x, in f64 or i64 |
//! | [`dot`](Reducer::dot) | | Σ x·y, in f64 or i64 |
//! | [`norm1`](Reducer::norm1), [`norm2`](Reducer::norm2), [`norm_max`](Reducer::norm_max) | [`norms1`](Reducer::norms1), [`norms2`](Reducer::norms2), [`norms_max`](Reducer::norms_max) | Σ \|x\|, √Σ x², max \|x\| |
//! | [`moments`](Reducer::moments) | [`moments_of`](Reducer::moments_of) | count, mean, variance, in one pass |
//! | [`min`](Reducer::min), [`max`](Reducer::max), [`arg_min`](Reducer::arg_min), [`arg_max`](Reducer::arg_max) | [`extremes`](Reducer::extremes) | the value and its first index |
//! | [`count`](Reducer::count), [`any`](Reducer::any), [`all`](Reducer::all) | [`counts`](Reducer::counts) | elements that are not zero |
//!
//! **Reproducibility.** The bits of a result hang on values and shape alone: the same on every run, every GPU
//! and the CPU ([`Reproducibility::Device`]). [`Reducer::with_level`] gives that up for whole arrays.
//!
//! **NaN.** Sums and moments follow IEEE 754. A NaN anywhere is the minimum, the maximum and the largest
//! magnitude; its index is that of the first. −0 is less than +0. A NaN is not zero.
//!
//! **Overflow.** f32 and f64 are added in f64, i32 and i64 in i64 modulo 2⁶⁴. Squares are formed in f64: those
//! of doubles beyond 1.3·10¹⁵⁴ become infinite.

pub mod ladder;
mod launch;
mod parts;
mod whole;

use gpu_kernels::Entry;
use gpu_kernels::Family;
use gpu_kernels::reduce::{ReduceKernels, ReduceVariant};
pub use gpu_kernels::reduce::{Sought, Statistic, Term};

pub use crate::plan::reduce::Reproducibility;
pub use parts::Parts;
pub use whole::Repeated;

use super::OpError;
use crate::device::{Buffer, Device};

/// An element that reductions take: `f32`, `f64`, `i32` or `i64`.
pub trait Reducible: ReduceKernels + bytemuck::Pod {}

impl<T: ReduceKernels + bytemuck::Pod> Reducible for T {}

/// Count, mean and variance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    /// n.
    pub count: u64,
    /// Σ x / n; NaN of no elements.
    pub mean: f64,
    /// Σ (x − mean)².
    pub deviations: f64,
}

impl Moments {
    /// Σ (x − mean)² / n; NaN of no elements.
    pub fn variance(&self) -> f64 {
        self.deviations / self.count as f64
    }

    /// Σ (x − mean)² / (n − 1); NaN of fewer than two elements.
    pub fn sample_variance(&self) -> f64 {
        if self.count < 2 {
            return f64::NAN;
        }
        self.deviations / (self.count - 1) as f64
    }
}

impl From<gpu_kernels::reduce::Moments> for Moments {
    fn from(total: gpu_kernels::reduce::Moments) -> Moments {
        let gpu_kernels::reduce::Moments {
            count,
            mean,
            deviations,
        } = total;
        Moments {
            count: count as u64,
            mean: if count == 0.0 { f64::NAN } else { mean },
            deviations,
        }
    }
}

/// Reduces arrays on one device.
#[derive(Debug)]
pub struct Reducer {
    device: Device,
    level: Reproducibility,
    partials: Buffer<u64>,
    tickets: Buffer<u32>,
    out: Buffer<u64>,
}

impl Reducer {
    /// For arrays on `device`.
    ///
    /// # Errors
    /// [`OpError::Device`] when the device has no memory left.
    pub fn new(device: &Device) -> Result<Reducer, OpError> {
        Ok(Reducer {
            device: device.clone(),
            level: Reproducibility::default(),
            partials: device.zeros(0)?,
            tickets: device.zeros(1)?,
            out: device.zeros(gpu_kernels::reduce::total::MOST_WORDS)?,
        })
    }

    /// What is promised of the bits of results of whole arrays; those of parts always depend on shapes alone.
    pub fn with_level(self, level: Reproducibility) -> Reducer {
        Reducer { level, ..self }
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }
}

fn entry<T: Reducible>(variant: ReduceVariant) -> &'static Entry<T::Reduce> {
    let found = T::Reduce::entries()
        .iter()
        .find(|entry| entry.variant == variant);
    found.expect("the table has every reduction")
}

/// A copy of an array view on `device`, in the order of its indices (row-major).
///
/// # Errors
/// [`OpError::Device`] when it does not fit.
///
/// ```
/// use ndarray::array;
/// use warpfuse::device::Device;
/// use warpfuse::ops::reduce::{Reducer, upload_view};
/// let (device, x) = (Device::cpu(), array![[1_i64, 2], [3, 4]]);
/// let second = upload_view(&device, x.column(1))?;
/// assert_eq!(Reducer::new(&device)?.sum(&second)?, 6);
/// # Ok::<(), warpfuse::ops::OpError>(())
/// ```
pub fn upload_view<T: bytemuck::Pod, D: ndarray::Dimension>(
    device: &Device,
    view: ndarray::ArrayView<'_, T, D>,
) -> Result<Buffer<T>, OpError> {
    if let Some(values) = view.as_slice() {
        return Ok(device.upload(values)?);
    }
    let values: Vec<T> = view.iter().copied().collect();
    Ok(device.upload(&values)?)
}
