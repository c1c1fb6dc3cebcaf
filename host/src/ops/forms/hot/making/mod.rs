//! Hot columns made on the device where X lies: see [`gpu_kernels::forms::hot`].
//!
//! | file | what |
//! |---|---|
//! | `launch` | kernels that order, and what the host adds up between them |
//! | `columns` | which columns are hot, and the ranks of the others |
//! | `kept` | in how few bits values can be stored |
//! | `rows` | which rows share a slice |
//! | `copy` | entries put where lanes find them |
//! | `steps` | what each of these takes |
//!
//! The result is that of [`HotLayout`](crate::layout::hot::HotLayout), but for the order of a row's entries, of rows of one
//! length, and of what is equally frequent. Which columns are hot is counted, among those that a sample of four million
//! entries says.

mod columns;
mod copy;
mod kept;
mod launch;
mod rows;
mod steps;

use super::stored::Stored;
use crate::device::{Buffer, Device};
use crate::layout::hot::HotSize;
use crate::matrix::Values;
use crate::ops::blocks::SparseBlock;
use crate::ops::{Number, OpError};
use crate::plan::fused::ColumnUse;
use columns::Columns;
use copy::copy;
use kept::Kept;
use launch::Order;
use rows::Rows;
pub use steps::HotStep;
pub(super) use steps::Steps;

/// What was made.
pub(super) struct MadeColumns<T> {
    pub stored: Stored<T>,
    pub columns: ColumnUse,
    /// None where there are no cold columns.
    pub cold: Option<ColdRows<T>>,
}

/// The entries of cold columns, by position.
pub(super) struct ColdRows<T> {
    /// The entries before each position, and their number.
    pub offsets: Buffer<u32>,
    /// The rank of each entry's column, within a row in any order.
    pub ranks: Buffer<u32>,
    /// None where all are 1.
    pub entries: Option<Buffer<T>>,
    /// How many entries each rank has.
    pub counts: Vec<u32>,
}

/// The form of `x`, which has some entries, of which this is the first value, and this many columns; its values stored as `values` allows.
pub(super) fn make<T: Number>(
    device: &Device,
    (x, first, cols): (&SparseBlock<'_, T>, T, usize),
    (size, values): (HotSize, Values),
    steps: &mut Steps<'_>,
) -> Result<MadeColumns<T>, OpError> {
    let order = Order::new(device);
    let columns = Columns::of(&order, (x.indices, cols), size, steps)?;
    let kept = Kept::choose(device, (x, first, &columns), values)?;
    steps.done(HotStep::Judge)?;
    let rows = Rows::of(&order, (x.offsets, x.indices, x.rows), &columns)?;
    steps.done(HotStep::Rows)?;
    let copied = copy(device, (x, first), (&columns, &kept, &rows))?;
    steps.done(HotStep::Copy)?;
    let of_columns = |of: &Buffer<u32>| kept.pack_fields::<T>(&order, of);
    let cold_entries = rows.cold_entries as usize;
    let counts = order.pack(&columns.cold, (Some(&columns.counts), 0), 1)?;
    let counts = counts.to_vec()?;
    Ok(MadeColumns {
        columns: ColumnUse {
            busiest: columns.busiest,
            hot_columns: columns.hot.len() as u32,
            hot_entries: (x.entries() - cold_entries) as u64,
            cold_columns: columns.cold.len() as u32,
            lines: [0; 3],
        },
        cold: (cold_entries > 0).then_some(ColdRows {
            offsets: rows.cold_offsets,
            ranks: copied.cold_ranks,
            entries: copied.cold_entries,
            counts,
        }),
        stored: Stored {
            steps: rows.steps,
            places: copied.places,
            values: copied.values,
            ranks: copied.ranks,
            cold_values: copied.cold_values,
            order: rows.order,
            slices: rows.slices,
            exponents: of_columns(&columns.hot)?,
            cold_exponents: of_columns(&columns.cold)?,
            columns: columns.hot,
            cold_columns: columns.cold,
            non_finite: u32::from(kept.has_non_finite),
            positions: rows.positions,
        },
    })
}
