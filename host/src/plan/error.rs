//! What can be wrong with a request for a plan.

use thiserror::Error;

use super::fused::Strategy;
use super::limiter::Limiter;
use super::problem::{Precision, Product};

/// Why no plan could be made, with the figures that led there.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A limit that models divide by is zero.
    #[error(
        "limits of `{device}`: expected `{limit}` above zero, found 0; read them from the driver again or take a known device"
    )]
    Limits {
        /// The device's name.
        device: String,
        /// The field that is zero.
        limit: &'static str,
    },
    /// More nonzeros than the matrix has places.
    #[error("expected at most {rows} x {cols} nonzeros, found {nnz}; check the shape")]
    Nonzeros {
        /// Rows of X.
        rows: u64,
        /// Columns of X.
        cols: u64,
        /// Nonzeros given.
        nnz: u64,
    },
    /// The longest row has more nonzeros than it has columns, or than the whole matrix.
    #[error("expected a longest row of at most {limit} nonzeros, found {longest}; count it again")]
    LongestRow {
        /// Nonzeros given for the longest row.
        longest: u64,
        /// The smaller of columns and nonzeros.
        limit: u64,
    },
    /// Rows of a dense matrix that overlap.
    #[error("expected a row pitch of at least {cols} elements, found {pitch}")]
    Pitch {
        /// Columns of X.
        cols: u64,
        /// Elements between the starts of two rows.
        pitch: u64,
    },
    /// A size or a grid beyond what the arithmetic or a launch can hold.
    #[error("{what} of a {rows} x {cols} problem does not fit in {bits} bits; split the matrix")]
    TooLarge {
        /// What overflowed.
        what: &'static str,
        /// Rows of X.
        rows: u64,
        /// Columns of X.
        cols: u64,
        /// Width of the number that would have to hold it.
        bits: u32,
    },
    /// No compiled kernel computes what is wanted.
    #[error(
        "expected a kernel for {product} in {precision}{wanted}, found none among {considered} compiled ones; {remedy}"
    )]
    NoKernel {
        /// The product.
        product: Product,
        /// The precision.
        precision: Precision,
        /// What else was required, from the shape of the problem or from the user; may be empty.
        wanted: String,
        /// Number of kernels looked at.
        considered: usize,
        /// What to do.
        remedy: &'static str,
    },
    /// The kernels exist, but no launch of them fits on the device.
    #[error(
        "no launch of `{kernel}` with {bs} threads, {registers} registers each and {shared_bytes} bytes of shared memory fits on `{device}`: {limiter} run out; use a smaller block or another strategy"
    )]
    DoesNotFit {
        /// The kernel.
        kernel: String,
        /// Threads of a block.
        bs: u32,
        /// Registers of a thread.
        registers: u32,
        /// Shared memory of a block.
        shared_bytes: u64,
        /// The device.
        device: String,
        /// The resource that runs out.
        limiter: Limiter,
    },
    /// A block size that is no multiple of a warp, or beyond what kernel and device allow.
    #[error(
        "expected a block size that is a multiple of {warp_size} from {warp_size} to {max}, found {bs}"
    )]
    BlockSize {
        /// The block size given.
        bs: u32,
        /// Threads of a warp.
        warp_size: u32,
        /// The largest block that is allowed.
        max: u32,
    },
    /// A grid of no blocks, or of more than a launch takes.
    #[error("expected a grid of 1 to {max} blocks, found {grid}")]
    Grid {
        /// Blocks given.
        grid: u32,
        /// Blocks that a launch takes.
        max: u32,
    },
    /// A plan that contradicts itself, the problem or the device.
    #[error(
        "plan of strategy {strategy}: expected {field} {expected}, found {found}; make the plan anew for this problem and device"
    )]
    Invalid {
        /// The plan's strategy.
        strategy: Strategy,
        /// The field at fault.
        field: &'static str,
        /// What the field would have to be.
        expected: String,
        /// What it is.
        found: String,
    },
}
