//! A dense X, row-major with aligned rows.

use std::sync::Arc;

use gpu_kernels::fused::dense_order::leading_dimension;
use ndarray::ArrayView2;

use super::site::{Call, OnDevice, Site};
use crate::device::buffer::RowLayout;
use crate::device::{Buffer, Device, Prepared};
use crate::matrix::copy_rows;
use crate::ops::blocks::DenseBlock;
use crate::ops::launch::prepare;
use crate::ops::{Number, OpError};
use crate::plan::fused::Plan;

/// m rows, `ld` elements apart.
pub(in crate::ops) struct DenseRows<T> {
    rows: usize,
    pub ld: usize,
    values: Buffer<T>,
}

impl<T: Number> DenseRows<T> {
    /// Row after row, however they lie on the host; no copy of them is made there.
    pub(super) fn upload(device: &Device, x: ArrayView2<'_, T>) -> Result<Self, OpError> {
        let (rows, cols) = x.dim();
        let pack = 16 / size_of::<T>();
        let ld = leading_dimension(cols as u64, pack as u64) as usize;
        let values = match x.as_slice() {
            Some(values) => {
                let pitch = ld;
                device.upload_rows(values, RowLayout { rows, cols, pitch })?
            }
            None => device.upload_with(rows * ld, |range, to| copy_rows(x, ld, range, to))?,
        };
        Ok(DenseRows { rows, ld, values })
    }

    /// Walks over the blocks of rows.
    pub(in crate::ops) fn each(
        &self,
        mut walk: impl FnMut(DenseBlock<'_, T>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        walk(self.whole())
    }

    /// All rows in one block.
    pub(in crate::ops) fn whole(&self) -> DenseBlock<'_, T> {
        DenseBlock {
            first_row: 0,
            rows: self.rows,
            ld: self.ld,
            values: self.values.input(),
        }
    }
}

/// One kernel over the rows, block after block.
pub(in crate::ops) struct DenseKernel<T: Number> {
    kernel: Prepared<T::Dense>,
    rows: Arc<DenseRows<T>>,
}

impl<T: Number> DenseKernel<T> {
    /// The kernel that a plan names.
    pub(in crate::ops) fn prepare(
        site: &Site<T>,
        rows: &Arc<DenseRows<T>>,
        plan: &Plan,
    ) -> Result<Self, OpError> {
        Ok(DenseKernel {
            kernel: prepare::<T::Dense>(&site.device, plan)?,
            rows: rows.clone(),
        })
    }
}

impl<T: Number> OnDevice<T> for DenseKernel<T> {
    fn writes_all(&self) -> bool {
        false
    }

    fn run(&self, site: &Site<T>, call: Call<'_, '_, T>) -> Result<(), OpError> {
        self.rows.each(|block| {
            let of_block = Call {
                output: &mut *call.output,
                ..call
            };
            Ok(self.kernel.launch(block.args(site.cols, of_block))?)
        })
    }
}
