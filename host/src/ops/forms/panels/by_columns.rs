//! Entries by columns, made on the device: the rows of the transpose.

use gpu_kernels::Launch;
use gpu_kernels::forms::panels::{PanelMaking, PanelMakingArgs, PanelMakingVariant};

use super::split::{Ranked, Split, in_order, kernel};
use crate::device::{Buffer, Device};
use crate::ops::{Number, OpError};
use crate::plan::panel_making::{THREADS, digits};

/// Blocks of an SM, at most.
const BLOCKS_PER_SM: u32 = 8;

/// The arrays of Xᵀ in CSR.
pub(in crate::ops) struct ByColumns<T> {
    /// The entries before each column, and their number.
    pub offsets: Buffer<u32>,
    /// The row of each entry; those of a column ascend.
    pub rows: Buffer<u32>,
    pub values: Buffer<T>,
}

impl<T: Number> ByColumns<T> {
    /// Of entries with values, at least one, over `cols` columns: the same arrays as the host makes. While it runs it needs 16
    /// bytes and a value an entry beside the result.
    pub(in crate::ops) fn of(
        device: &Device,
        entries: &Ranked<'_, T>,
        cols: usize,
    ) -> Result<Self, OpError> {
        // Of all bits of a column: none may be left in any order.
        let all = digits(device.limits(), cols as u32, 1);
        let sorted = in_order(device, entries, all, || Ok(()))?;
        let Split { ends, values, .. } = sorted.expect("a column has a bit at least");
        let mut offsets = device.zeros(cols + 1)?;
        let mut rows = device.zeros(ends.len())?;
        let launch = Launch {
            grid: blocks(device, ends.len().max(cols + 1)),
            block: THREADS,
            shared_bytes: 0,
        };
        let unzip = kernel::<PanelMaking<f32>>(device, PanelMakingVariant::Unzip, launch)?;
        unzip.launch(PanelMakingArgs {
            pairs: ends.input(),
            keys: rows.output(),
            totals: offsets.output(),
            ..PanelMakingArgs::none()
        })?;
        Ok(ByColumns {
            offsets,
            rows,
            values: values.expect("entries with values"),
        })
    }
}

/// A thread for each of `len` elements, as far as they run at the same time.
fn blocks(device: &Device, len: usize) -> u32 {
    let most = device.limits().map_or(1, |limits| limits.sms) * BLOCKS_PER_SM;
    let wanted = len.div_ceil(THREADS as usize);
    u32::try_from(wanted)
        .unwrap_or(u32::MAX)
        .clamp(1, most.max(1))
}
