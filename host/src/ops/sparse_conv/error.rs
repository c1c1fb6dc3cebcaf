//! What can go wrong with a layer.

use thiserror::Error;

use crate::device::DeviceError;
use crate::matrix::filters::FilterError;
use crate::ops::OpError;
use crate::plan::sparse_conv::{ConvShapeError, ConvStrategy};

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
