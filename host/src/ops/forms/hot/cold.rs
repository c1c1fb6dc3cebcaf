//! The panels of columns that are not hot.

use gpu_kernels::In;
use gpu_kernels::fused::panels::widest_panel;

use super::super::panels::{DevicePanels, Ranked};
use super::making::{ColdRows, MadeColumns};
use crate::device::Device;
use crate::layout::hot::HotLayout;
use crate::layout::panels::{PanelLayout, PanelSize};
use crate::ops::launch::optional;
use crate::ops::{Number, OpError};

/// Entries that a block over cold panels has at least.
const ENTRIES_PER_RANGE: usize = 1 << 12;

/// Those that the host makes; X has this many columns.
pub(super) fn of_layout<T: Number>(
    device: &Device,
    layout: &HotLayout<T>,
    cols: usize,
) -> Result<Option<DevicePanels<T>>, OpError> {
    if layout.cold.nnz() == 0 {
        return Ok(None);
    }
    let size = cut(device, (layout.cold.nnz(), cols), T::SIZE);
    // Where values are constant, the rows' factors have them.
    let mut panels = match layout.values.form().is_constant() {
        true => PanelLayout::of_columns_of_ones(&layout.cold, size),
        false => PanelLayout::of_columns(&layout.cold, size),
    };
    for column in panels.order.iter_mut().flatten() {
        *column = layout.cold_columns[*column as usize];
    }
    DevicePanels::upload(device, &panels).map(Some)
}

/// Those that the device makes; X has this many columns.
pub(super) fn of_rows<T: Number>(
    device: &Device,
    made: &MadeColumns<T>,
    cols: usize,
) -> Result<Option<DevicePanels<T>>, OpError> {
    let Some(rows) = &made.cold else {
        return Ok(None);
    };
    let ColdRows {
        offsets,
        ranks,
        entries,
        counts,
    } = rows;
    let order = made.stored.cold_columns.try_clone()?;
    let size = cut(device, (ranks.len(), cols), T::SIZE);
    let entries = Ranked {
        offsets: offsets.input(),
        ranks: ranks.input(),
        rank_of: In::none(),
        values: optional(entries),
    };
    DevicePanels::of_ranked(device, &entries, (counts, order), size).map(Some)
}

/// How panels of this many cold entries are cut, of elements of `size` bytes.
fn cut(device: &Device, (entries, cols): (usize, usize), size: u32) -> PanelSize {
    let sms = device.limits().map_or(1, |limits| limits.sms as usize);
    PanelSize {
        widest: widest_panel(size) as usize,
        ranges: entries.div_ceil(ENTRIES_PER_RANGE).min(sms),
        result: cols,
    }
}
