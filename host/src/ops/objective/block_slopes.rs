//! The slopes of the losses of a block's rows, while the block is on the device.

use std::ops::Range;
use std::sync::Mutex;

use gpu_kernels::objective::RowArgs;

use super::super::launch::{slice, slice_mut};
use super::super::{Number, OpError};
use super::row_args::row_args;
use super::row_kernel::RowKernel;
use super::{Evaluation, ObjectiveOut, ObjectiveSums};
use crate::device::{Buffer, Device};
use crate::parallel::locked;
use crate::plan::fused::Summation;

/// Makes slopes block by block; the sums of losses, which have an order over all rows, are those of another kernel.
pub(super) struct BlockSlopes<T: Number> {
    kernel: RowKernel<T>,
    /// Where the kernel leaves sums, which nobody reads.
    unread: Mutex<Buffer<f64>>,
}

impl<T: Number> BlockSlopes<T> {
    /// For a matrix with this many rows.
    pub(super) fn new(device: &Device, rows: usize) -> Result<Self, OpError> {
        Ok(BlockSlopes {
            kernel: RowKernel::new(device, rows, Summation::Free)?,
            unread: Mutex::new(device.zeros(ObjectiveSums::LEN)?),
        })
    }

    /// Writes the slopes of the rows `range` from their X·y; both vectors have an element for each row of X. Nothing is done
    /// once `solve` has ended.
    pub(super) fn launch(
        &self,
        (evaluation, y): (&Evaluation<'_, T>, &Buffer<T>),
        (products, slopes): (&Buffer<T>, &mut Buffer<T>),
        range: &Range<usize>,
        solve: Option<&Buffer<f64>>,
    ) -> Result<(), OpError> {
        let mut unread = locked(&self.unread);
        let mut out = ObjectiveOut {
            sums: &mut unread,
            gradient: None,
            addend: None,
            residual: None,
            curvature: None,
            solve,
        };
        let (rows, _) = row_args(evaluation, y, &mut out, range.clone());
        let rows = RowArgs {
            residual: slice_mut(slopes, range),
            ..rows
        };
        self.kernel.launch(slice(products, range), rows)
    }
}
