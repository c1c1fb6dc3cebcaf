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
//! from every strategy, with these exceptions. [`ConvStrategy::Coo`] skips zero inputs and so does not make NaN of them and an
//! infinite weight. [`ConvStrategy::Staged`] and [`ConvStrategy::Skip`] are not taken for infinite weights; a sum of −0 may be
//! +0 there. [`ConvStrategy::Lowered`] adds in another order and multiplies zero weights.
//! So does [`ConvStrategy::Tensor`] for halves, whose products are exact: with n nonzeros in a filter a sum is within
//! 3n · 2⁻²³ · Σ |w · x| of the true one, and an infinite or NaN input makes NaN of what zero weights of its block of 16 channels
//! meet. Who needs the same bits everywhere names another strategy ([`Layer::strategy`]).
//!
//! **Zeros.** Where inputs are mostly zero, as after max(0, ·), say so ([`Layer::zeros`]): the planner then weighs a strategy
//! that lists the others ([`ConvStrategy::Skip`]).
//!
//! **Arrays of the host.** [`ArrayConv`] copies parts of a batch to the device and back while others are computed.

mod arrays;
mod choose;
mod element;
mod error;
mod format;
mod host;
mod launch;
mod layer;
mod lowered;
mod maps;

use super::{OpError, checks};
use crate::device::{Buffer, Device};
use crate::matrix::filters::SparseFilters;
pub use crate::plan::sparse_conv::{
    ConvPlan, ConvShape, ConvShapeError, ConvStrategy, ConvWork, MapLayout, Pool, PoolKind, Tiles,
};
pub use arrays::ArrayConv;
pub use choose::work_of;
pub use element::{Bf16, ConvElement, ConvSum, F16, I8, I8Wide, I16, I16Wide};
pub use error::SparseConvError;
use launch::OnGpu;
pub use layer::Layer;
use layer::check_bound;
use lowered::Lowered;
pub use maps::Maps;

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
            checks::length("the bias", shape.filters, bias.len())?;
        }
        check_bound::<E>(shape, filters, layer.bias)?;
        let place = match device.limits().cloned() {
            Some(limits) => {
                let wanted = (layer.strategy, layer.zeros);
                let plan = choose::choose::<E>(device, &limits, shape, filters, wanted)?;
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
        checks::length("x", self.shape.inputs(), x.len())?;
        checks::length("the result", self.shape.results(), out.len())?;
        for (what, on) in [("x", x.device()), ("the result", out.device())] {
            checks::same_device(what, &self.device, &on)?;
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
