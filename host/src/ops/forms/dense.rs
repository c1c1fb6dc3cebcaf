//! A dense X, row-major with aligned rows.

use std::sync::Arc;

use gpu_kernels::In;
use gpu_kernels::fused::DenseArgs;
use gpu_kernels::fused::dense_order::leading_dimension;

use super::site::{Call, OnDevice, Site};
use crate::device::buffer::RowLayout;
use crate::device::{Buffer, Device, Prepared};
use crate::ops::launch::prepare;
use crate::ops::{Number, OpError};
use crate::plan::fused::{Plan, Product};

/// m rows, `ld` elements apart.
pub(in crate::ops) struct DenseRows<T> {
    pub ld: usize,
    pub values: Buffer<T>,
}

impl<T: Number> DenseRows<T> {
    pub(super) fn upload(device: &Device, x: &ndarray::Array2<T>) -> Result<Self, OpError> {
        let x = x.as_standard_layout();
        let values = x.as_slice().expect("standard layout is contiguous");
        let (rows, cols) = x.dim();
        let pack = 16 / size_of::<T>();
        let ld = leading_dimension(cols as u64, pack as u64) as usize;
        let values = device.upload_rows(
            values,
            RowLayout {
                rows,
                cols,
                pitch: ld,
            },
        )?;
        Ok(DenseRows { ld, values })
    }

    /// The arguments of a product.
    pub(in crate::ops) fn args<'a>(
        &'a self,
        site: &Site<T>,
        call: Call<'a, 'a, T>,
    ) -> DenseArgs<'a, T> {
        let terms = call.terms;
        DenseArgs {
            rows: site.rows as u32,
            cols: site.cols as u32,
            chunks: 0,
            ld: self.ld as u64,
            x: self.values.input(),
            input: call.input.input(),
            weights: terms.weights(),
            shift: terms.shift(),
            addend: match call.product {
                Product::Forward => terms.addend(),
                Product::Fused | Product::Transposed => In::none(),
            },
            output: call.output.output(),
            alpha: terms.alpha,
            beta: terms.beta(),
        }
    }
}

/// One kernel over all rows.
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
        Ok(self.kernel.launch(self.rows.args(site, call))?)
    }
}
