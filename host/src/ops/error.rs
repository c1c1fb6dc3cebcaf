//! What can go wrong in an operation.

use thiserror::Error;

use crate::device::DeviceError;
use crate::device::group::GroupError;
use crate::matrix::{CsrError, FileChanged};
use crate::plan::PlanError;

/// Why an operation was not done.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum OpError {
    /// Whoever waits for it wanted an end; see [`interruptible`](super::interruptible).
    #[error("interrupted")]
    Interrupted,
    /// A vector's length does not fit the matrix or the other vectors.
    #[error("{what} must have {expected} elements, but has {found}")]
    Length {
        /// The vector's name in the formula.
        what: &'static str,
        /// The length that fits.
        expected: usize,
        /// The length that it has.
        found: usize,
    },
    /// More rows or columns than a kernel can count.
    #[error("at most {limit} {what} are supported, but there are {found}; split the matrix")]
    TooLarge {
        /// What is counted.
        what: &'static str,
        /// The most that is supported.
        limit: u64,
        /// How many there are.
        found: u64,
    },
    /// A convolution of an impossible shape.
    #[error("cannot convolve: {0}")]
    Conv1d(#[from] crate::plan::conv1d::Conv1dShapeError),
    /// A QR factorisation of an impossible shape.
    #[error("cannot factor: {0}")]
    Qr(#[from] crate::plan::qr::QrShapeError),
    /// A forced strategy that the shape or the device does not allow.
    #[error("{strategy} does not suit this shape on {device}; let the planner choose")]
    Strategy {
        /// The strategy.
        strategy: String,
        /// The device.
        device: String,
    },
    /// Offsets of segments that do not ascend.
    #[error(
        "offsets of segments must ascend, but segment {segment} begins at {start} and ends at {end}"
    )]
    Offsets {
        /// The segment.
        segment: usize,
        /// Its first element.
        start: u64,
        /// The element after its last.
        end: u64,
    },
    /// A vector lies on another device than the matrix.
    #[error("{what} lies on {found}, but the matrix on {expected}; upload it there")]
    OtherDevice {
        /// The vector's name in the formula.
        what: &'static str,
        /// The matrix's device.
        expected: String,
        /// The vector's device.
        found: String,
    },
    /// A parameter that makes no sense.
    #[error("{name} must be {expected}, but is {found}")]
    Parameter {
        /// The parameter.
        name: &'static str,
        /// What it has to be.
        expected: &'static str,
        /// What it is.
        found: f64,
    },
    /// A number that is infinite or NaN.
    #[error("{what} must be finite, but number {index} has a coordinate {value}")]
    NotFinite {
        /// What the number belongs to.
        what: &'static str,
        /// Which of them.
        index: usize,
        /// The number.
        value: f64,
    },
    /// A kernel was requested by a variant that is not compiled.
    #[error("there is no {what} by {wanted}; let the planner choose, or take another variant")]
    NoVariant {
        /// The operation.
        what: &'static str,
        /// The variant with its element type.
        wanted: String,
    },
    /// No launch could be planned.
    #[error("cannot plan the launch: {0}")]
    Plan(#[from] PlanError),
    /// The file that X lies in changed.
    #[error(transparent)]
    FileChanged(#[from] FileChanged),
    /// Arrays on a device that are no matrix of compressed rows.
    #[error(transparent)]
    Csr(#[from] CsrError),
    /// Members of a group whose rows are not of one matrix.
    #[error(
        "the rows of rank {rank} are {found}, those of rank 0 {expected}: all members need the same columns"
    )]
    Shares {
        /// Who.
        rank: usize,
        /// What rank 0 has.
        expected: String,
        /// What that member has.
        found: String,
    },
    /// The members of a group cannot go on together.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The device refused.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl OpError {
    /// Whether the device has too little memory.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self, OpError::Device(DeviceError::OutOfMemory { .. }))
    }
}
