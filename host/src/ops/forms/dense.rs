//! A dense X, row-major with aligned rows.

use std::sync::Arc;

use gpu_kernels::fused::dense_order::leading_dimension;
use ndarray::ArrayView2;

use super::site::{Call, OnDevice, Site};
use crate::device::buffer::RowLayout;
use crate::device::{Buffer, Device, Prepared, SharedBuffer};
use crate::matrix::{Features, Storage, Values, copy_rows};
use crate::ops::blocks::{DenseBlock, DenseStream, Part, Place};
use crate::ops::launch::prepare;
use crate::ops::{Number, OpError};
use crate::plan::fused::Plan;
use crate::plan::streaming::Residence;

/// m rows, `ld` elements apart.
pub(in crate::ops) struct DenseRows<T: Number> {
    rows: usize,
    pub ld: usize,
    placed: Placed<T>,
}

/// Where the rows lie.
enum Placed<T: Number> {
    /// All on the device.
    Whole(SharedBuffer<T>),
    /// In blocks that stay or stream.
    Streamed(Box<DenseStream<T>>),
}

impl<T: Number> DenseRows<T> {
    /// Puts the rows of dense features on a device, as a whole where that is their place, else in blocks.
    pub(super) fn new(
        device: &Device,
        features: Arc<Features<T>>,
        place: Place,
        rounding: Values,
    ) -> Result<Self, OpError> {
        let (rows, cols) = (features.rows(), features.cols());
        let pack = 16 / size_of::<T>();
        let ld = leading_dimension(cols as u64, pack as u64) as usize;
        if place.residence == Residence::Whole {
            match upload(device, array(&features), ld) {
                Ok(values) => {
                    let placed = Placed::Whole(values.into());
                    return Ok(DenseRows { rows, ld, placed });
                }
                Err(error) if !error.is_out_of_memory() => return Err(error),
                Err(error) => tracing::info!(%error, "X has to stream"),
            }
        }
        let source = (features, ld);
        let place = place.in_blocks(device);
        let stream = DenseStream::new(device, source, place, rounding)?;
        let placed = Placed::Streamed(Box::new(stream));
        Ok(DenseRows { rows, ld, placed })
    }

    /// Rows that lie on the device already, `ld` elements apart.
    pub(in crate::ops) fn placed_already(rows: usize, ld: usize, values: SharedBuffer<T>) -> Self {
        let placed = Placed::Whole(values);
        DenseRows { rows, ld, placed }
    }

    /// Walks over the blocks of rows of a part.
    pub(in crate::ops) fn each(
        &self,
        part: Part,
        mut walk: impl FnMut(DenseBlock<'_, T>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        match &self.placed {
            Placed::Whole(values) => walk(DenseBlock {
                first_row: 0,
                rows: self.rows,
                ld: self.ld,
                values: values.input(),
            }),
            Placed::Streamed(stream) => stream.each(part, walk),
        }
    }

    /// The rows, `ld` elements apart, where all lie on the device.
    pub(in crate::ops) fn whole(&self) -> Option<&SharedBuffer<T>> {
        match &self.placed {
            Placed::Whole(values) => Some(values),
            Placed::Streamed(_) => None,
        }
    }

    /// The blocks, where they stay or stream.
    pub(in crate::ops) fn streamed(&self) -> Option<&DenseStream<T>> {
        match &self.placed {
            Placed::Whole(_) => None,
            Placed::Streamed(stream) => Some(stream),
        }
    }
}

fn array<T: Number>(features: &Features<T>) -> ArrayView2<'_, T> {
    match features.storage() {
        Storage::Dense(x) => x,
        Storage::Sparse(_) => unreachable!("rows are made of dense features alone"),
    }
}

/// Row after row, however they lie on the host; no copy of them is made there.
fn upload<T: Number>(
    device: &Device,
    x: ArrayView2<'_, T>,
    ld: usize,
) -> Result<Buffer<T>, OpError> {
    let (rows, cols) = x.dim();
    Ok(match x.as_slice() {
        Some(values) => {
            let pitch = ld;
            device.upload_rows(values, RowLayout { rows, cols, pitch })?
        }
        None => device.upload_with(rows * ld, |range, to| copy_rows(x, ld, range, to))?,
    })
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
        self.rows.each(call.part, |block| {
            let of_block = Call {
                output: &mut *call.output,
                ..call
            };
            Ok(self.kernel.launch(block.args(site.cols, of_block))?)
        })
    }
}
