//! Convolutional layers with sparse filters on a device.
//!
//! `sum[n][f] = bias[f] + Σ filters[f][c] ∗ x[n][c]` over the nonzeros of filter f, then `max(0, ·)` if wanted, then pooling.
//! Inputs outside an image contribute nothing.
//!
//! ```
//! use warpfuse::device::Device;
//! use warpfuse::matrix::filters::SparseFilters;
//! use warpfuse::ops::sparse_conv::{ConvShape, I16, Layer, Maps, SparseConv};
//!
//! let device = Device::auto();
//! let shape = ConvShape { padding: [1; 2], ..ConvShape::new(1, [2; 2], 1, [3; 2]) };
//! let filters = SparseFilters::from_dense(shape.filter_shape(), &[0_i16, 0, 0, 0, 2, 1, 0, 0, 0])?;
//! let layer = SparseConv::<I16>::new(&device, &shape, &filters, Layer::default())?;
//! let x = Maps::upload(&device, &[1, 2, 3, 4])?;
//! let mut out = device.zeros(shape.results())?;
//! layer.run(&x, &mut out)?;
//! assert_eq!(out.to_vec()?, [4, 4, 10, 8]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Exact integers.** [`SparseConv::new`] computes what the largest sum of each filter can be, over all inputs of the type,
//! and refuses 32-bit sums that could overflow: [`SparseConvError::Overflow`] names the filter. [`I16Wide`] and [`I8Wide`] add
//! in 64 bits, where none can.
//!
//! **Floats.** A sum is one chain of fused multiply-adds by channel, row and column: the same bits on every device and
//! from every strategy, but for [`ConvStrategy::Coo`], which skips zero inputs and so does not make NaN of them and an
//! infinite weight, and for [`ConvStrategy::Lowered`], which adds in another order and multiplies zero weights.

mod choose;
mod element;
mod host;
mod launch;
mod lowered;
mod maps;

use thiserror::Error;

use super::OpError;
use crate::device::{Buffer, Device, DeviceError};
use crate::matrix::filters::{FilterError, SparseFilters};
pub use crate::plan::sparse_conv::{
    ConvPlan, ConvShape, ConvShapeError, ConvStrategy, ConvWork, MapLayout, Pool, PoolKind,
};
pub use element::{Bf16, ConvElement, ConvSum, F16, I8, I8Wide, I16, I16Wide};
use launch::OnGpu;
use lowered::Lowered;
pub use maps::Maps;

/// Why a layer was not made or not run.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum SparseConvError {
    /// An impossible shape.
    #[error("cannot convolve: {0}")]
    Shape(#[from] ConvShapeError),
    /// Filters that a format cannot hold.
    #[error(transparent)]
    Filters(#[from] FilterError),
    /// Sums that could overflow.
    #[error(
        "sums of filter {filter} could reach {bound:.0}, but {bits}-bit ones end at {limit:.0}; take the type with 64-bit sums"
    )]
    Overflow {
        /// The filter.
        filter: usize,
        /// The largest possible magnitude.
        bound: f64,
        /// Bits of a sum.
        bits: u32,
        /// The largest exact magnitude.
        limit: f64,
    },
    /// A strategy that does not suit the layer.
    #[error("{strategy} does not suit this layer on {device}; let the planner choose")]
    Strategy {
        /// The strategy.
        strategy: ConvStrategy,
        /// The device.
        device: String,
    },
    /// Lengths and devices of operands, and what devices refuse.
    #[error(transparent)]
    Op(#[from] OpError),
}

impl From<DeviceError> for SparseConvError {
    fn from(error: DeviceError) -> SparseConvError {
        SparseConvError::Op(error.into())
    }
}

/// What follows a convolution, beside pooling, and who chooses the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Layer<'a, S> {
    /// One number per filter.
    pub bias: Option<&'a [S]>,
    /// Whether negative sums become 0 before pooling.
    pub rectify: bool,
    /// A strategy instead of the planner's.
    pub strategy: Option<ConvStrategy>,
}

/// A layer on a device: filters in the format of its kernel, and memory between its launches.
pub struct SparseConv<E: ConvElement> {
    shape: ConvShape,
    device: Device,
    place: Place<E>,
}

enum Place<E: ConvElement> {
    Host(host::OnHost<E>),
    Gpu(Box<OnGpu<E>>),
    Lowered(Box<Lowered<E>>),
}

impl<E: ConvElement> SparseConv<E> {
    /// Chooses a kernel, and uploads filters in its format.
    ///
    /// # Errors
    /// [`SparseConvError`].
    pub fn new(
        device: &Device,
        shape: &ConvShape,
        filters: &SparseFilters<E::Value>,
        layer: Layer<'_, E::Sum>,
    ) -> Result<SparseConv<E>, SparseConvError> {
        shape.check()?;
        let (expected, found) = (shape.filter_shape(), filters.shape());
        if expected != found {
            return Err(ConvShapeError::Filters { expected, found }.into());
        }
        if let Some(bias) = layer.bias {
            check_len("the bias", shape.filters, bias.len())?;
        }
        check_bound::<E>(shape, filters, layer.bias)?;
        let place = match device.limits().cloned() {
            Some(limits) => {
                let plan = choose::choose::<E>(device, &limits, shape, filters, layer.strategy)?;
                if plan.0.strategy == ConvStrategy::Lowered {
                    Place::Lowered(Box::new(Lowered::new(
                        device, plan.0, shape, filters, layer,
                    )?))
                } else {
                    Place::Gpu(Box::new(OnGpu::new(device, plan, shape, filters, layer)?))
                }
            }
            None => Place::Host(host::OnHost::new(shape, filters, layer)),
        };
        Ok(SparseConv {
            shape: *shape,
            device: device.clone(),
            place,
        })
    }

    /// Sizes.
    pub fn shape(&self) -> &ConvShape {
        &self.shape
    }

    /// What was chosen; `None` on the CPU, where there is one way.
    pub fn plan(&self) -> Option<&ConvPlan> {
        match &self.place {
            Place::Gpu(gpu) => Some(gpu.plan()),
            Place::Lowered(dense) => Some(dense.plan()),
            Place::Host(_) => None,
        }
    }

    /// Bytes of the filters in the format of the kernel.
    pub fn filter_bytes(&self) -> usize {
        match &self.place {
            Place::Gpu(gpu) => gpu.filter_bytes(),
            Place::Lowered(dense) => dense.filter_bytes(),
            Place::Host(host) => host.filter_bytes(),
        }
    }

    /// Convolves x, images × channels × rows × columns in the layout of the shape. Waits for nothing.
    ///
    /// # Errors
    /// [`OpError::Length`] when x or out does not fit, [`OpError::OtherDevice`] when one lies elsewhere,
    /// [`OpError::Device`] when the device fails.
    pub fn run(&self, x: &Maps<E>, out: &mut Buffer<E::Sum>) -> Result<(), OpError> {
        check_len("x", self.shape.inputs(), x.len())?;
        check_len("the result", self.shape.results(), out.len())?;
        for (what, on) in [("x", x.device()), ("the result", out.device())] {
            if !on.shares_memory_with(&self.device) {
                return Err(OpError::OtherDevice {
                    what,
                    expected: self.device.to_string(),
                    found: on.to_string(),
                });
            }
        }
        match &self.place {
            Place::Gpu(gpu) => gpu.run(x, out),
            Place::Lowered(dense) => dense.run(x, out),
            Place::Host(host) => {
                host.run(x, out);
                Ok(())
            }
        }
    }

    /// [`run`](Self::run) from and to host arrays.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_on_host_arrays(&self, x: &[E::Value]) -> Result<Vec<E::Sum>, OpError> {
        let x = Maps::upload(&self.device, x)?;
        let mut out = self.device.zeros(self.shape.results())?;
        self.run(&x, &mut out)?;
        Ok(out.to_vec()?)
    }
}

fn check_len(what: &'static str, expected: usize, found: usize) -> Result<(), OpError> {
    if expected == found {
        Ok(())
    } else {
        Err(OpError::Length {
            what,
            expected,
            found,
        })
    }
}

/// Whether all sums are exact: (Σ |w| · max |x| + |bias|), times the window where a mean is taken, within the type.
fn check_bound<E: ConvElement>(
    shape: &ConvShape,
    filters: &SparseFilters<E::Value>,
    bias: Option<&[E::Sum]>,
) -> Result<(), SparseConvError> {
    if E::Sum::MOST.is_infinite() {
        return Ok(());
    }
    let window = match shape.pool {
        Some(pool) if pool.kind == PoolKind::Average => pool.window[0] * pool.window[1],
        _ => 1,
    };
    for filter in 0..shape.filters {
        use crate::matrix::filters::FilterValue;
        let sum: f64 = filters
            .of_filter(filter)
            .map(|(_, n)| n.value.magnitude())
            .sum();
        let bias = bias.map_or(0.0, |bias| bias[filter].to_f64().abs());
        let bound = (sum * E::MOST + bias) * window as f64;
        // Not `>`: exact in f64 up to 2⁵³, and what is beyond that is compared with 2⁶³.
        if bound > E::Sum::MOST {
            return Err(SparseConvError::Overflow {
                filter,
                bound,
                bits: 8 * size_of::<E::Sum>() as u32,
                limit: E::Sum::MOST,
            });
        }
    }
    Ok(())
}
