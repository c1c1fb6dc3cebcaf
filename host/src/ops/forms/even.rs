//! Rows of which every warp has an even share of the entries.

use std::sync::Arc;

use gpu_kernels::fused::{EvenArgs, SparseArgs};

use super::rows::SparseRows;
use super::site::{Call, OnDevice, Site};
use crate::device::{Buffer, Prepared};
use crate::layout::frequent::FrequentTable;
use crate::ops::launch::prepare;
use crate::ops::{Number, OpError};
use crate::plan::fused::Plan;

/// A kernel of even shares with its frequent columns.
pub(in crate::ops) struct EvenLaunch<T: Number> {
    kernel: Prepared<T::Even>,
    keys: Buffer<u32>,
    multiplier: u32,
}

impl<T: Number> EvenLaunch<T> {
    /// The kernel that a plan names, with the frequent columns where they are known.
    pub(in crate::ops) fn prepare(
        site: &Site<T>,
        frequent: Option<&FrequentTable>,
        plan: &Plan,
    ) -> Result<Self, OpError> {
        let none = || FrequentTable::empty(size_of::<T>() as u32);
        let table = frequent.cloned().unwrap_or_else(none);
        Ok(EvenLaunch {
            kernel: prepare::<T::Even>(&site.device, plan)?,
            keys: site.device.upload(&table.keys)?,
            multiplier: table.multiplier,
        })
    }

    /// Adds what a block of rows gives.
    pub(in crate::ops) fn launch(&self, x: SparseArgs<'_, T>) -> Result<(), OpError> {
        Ok(self.kernel.launch(EvenArgs {
            x,
            keys: self.keys.input(),
            multiplier: self.multiplier,
        })?)
    }
}

/// One kernel over the rows, block after block.
pub(in crate::ops) struct EvenKernel<T: Number> {
    kernel: EvenLaunch<T>,
    rows: Arc<SparseRows<T>>,
}

impl<T: Number> EvenKernel<T> {
    /// The kernel that a plan names.
    pub(in crate::ops) fn prepare(
        site: &Site<T>,
        (rows, frequent): (&Arc<SparseRows<T>>, Option<&FrequentTable>),
        plan: &Plan,
    ) -> Result<Self, OpError> {
        Ok(EvenKernel {
            kernel: EvenLaunch::prepare(site, frequent, plan)?,
            rows: rows.clone(),
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
            self.kernel.launch(block.args(site.cols, of_block))
        })
    }
}
