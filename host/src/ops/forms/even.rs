//! Rows of which every warp has an even share of the entries.

use std::sync::Arc;

use gpu_kernels::fused::even::Window;
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
    /// Launches for each block of rows, each of which adds to a window of columns.
    windows: u32,
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
            windows: plan.windows,
        })
    }

    /// Adds what a block of rows gives.
    pub(in crate::ops) fn launch(&self, x: SparseArgs<'_, T>) -> Result<(), OpError> {
        for window in windows(x.cols, self.windows) {
            self.kernel.launch(EvenArgs {
                x,
                keys: self.keys.input(),
                multiplier: self.multiplier,
                window,
            })?;
        }
        Ok(())
    }
}

/// All columns in this number of windows, fewer where there are not as many columns.
pub(super) fn windows(columns: u32, windows: u32) -> impl Iterator<Item = Window> {
    let each = columns.div_ceil(windows.max(1)).max(1);
    let window = move |number| Window {
        first: number * each,
        columns: each.min(columns - number * each),
    };
    (0..columns.div_ceil(each).max(1)).map(window)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_have_every_column_once() {
        for (columns, count) in [(0, 3), (1, 1), (10, 4), (7, 9), (u32::MAX, 16)] {
            let mut next = 0;
            for window in windows(columns, count) {
                assert_eq!(window.first, next, "{columns} in {count}");
                next += window.columns;
            }
            assert_eq!(next, columns, "{columns} in {count}");
            assert!(windows(columns, count).count() <= count as usize);
        }
    }
}
