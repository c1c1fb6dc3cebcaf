//! Rows of which every warp has an even share of the entries.

use std::sync::Arc;

use gpu_kernels::fused::EvenArgs;

use super::rows::SparseRows;
use super::site::{Call, OnDevice, Site};
use crate::device::{Buffer, Prepared};
use crate::layout::frequent::FrequentTable;
use crate::ops::launch::prepare;
use crate::ops::{Number, OpError};
use crate::plan::fused::Plan;

/// One kernel over the rows, block after block.
pub(in crate::ops) struct EvenKernel<T: Number> {
    kernel: Prepared<T::Even>,
    rows: Arc<SparseRows<T>>,
    keys: Buffer<u32>,
    multiplier: u32,
}

impl<T: Number> EvenKernel<T> {
    /// The kernel that a plan names, with the frequent columns where they are known.
    pub(in crate::ops) fn prepare(
        site: &Site<T>,
        (rows, frequent): (&Arc<SparseRows<T>>, Option<&FrequentTable>),
        plan: &Plan,
    ) -> Result<Self, OpError> {
        let none = || FrequentTable::empty(size_of::<T>() as u32);
        let table = frequent.cloned().unwrap_or_else(none);
        Ok(EvenKernel {
            kernel: prepare::<T::Even>(&site.device, plan)?,
            rows: rows.clone(),
            keys: site.device.upload(&table.keys)?,
            multiplier: table.multiplier,
        })
    }
}

impl<T: Number> OnDevice<T> for EvenKernel<T> {
    fn writes_all(&self) -> bool {
        false
    }

    fn run(&self, site: &Site<T>, call: Call<'_, '_, T>) -> Result<(), OpError> {
        self.rows.each(call.part, |_, block| {
            let of_block = Call {
                output: &mut *call.output,
                ..call
            };
            Ok(self.kernel.launch(EvenArgs {
                x: block.args(site.cols, of_block),
                keys: self.keys.input(),
                multiplier: self.multiplier,
            })?)
        })
    }
}
