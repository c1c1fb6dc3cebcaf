//! Panels made where X lies: the arrays of [`panels`](crate::fused::panels) from those of its rows.
//!
//! Formula: an entry whose output has number o goes to the panel p with `bounds[p] ≤ o < bounds[p + 1]`, as its input and the sum
//! `o − bounds[p]`. The entries of a panel keep their order, in which inputs ascend, and fill chunks. Outputs are ranks of columns
//! and inputs rows, or outputs are rows and inputs columns: then entries have been put in the order of their columns before, by one
//! digit of the column after the other, each with a split of its own ([`By`]).
//!
//! Four launches: [`PanelMakingVariant::Count`] says how many entries of each *run* each panel has, `Sum` where those of each
//! run begin in each panel, `Split` puts them there, and `Pack` makes chunks of them; before it, `Measure` says how many chunks
//! there are to be, and how many sectors of the inputs they want. A run is as many entries as a warp takes, one after the other:
//! with about 5,000 runs for all SMs the counts of 1,000 panels are 20 MB. More panels than shared memory has counters for come in
//! *windows*, each with a pass over the entries of its own.
//!
//! Between splits by digits an entry is one word of 64 bits, its row above and its column below. Between `Split` by panels and
//! `Pack` it is another: [`PRESENT`], the input, and in the lower 16 bits the sum. Panels begin at
//! multiples of [`CHUNK`]: a *group* is as many words, of which the last of a panel has some left over. A group becomes a chunk,
//! or several where inputs are further apart than 16 bits count; those behind the first lie at the end of the panel.
//!
//! Entries that have been put in the order of all digits of their columns are the transpose of X but for its offsets:
//! [`PanelMakingVariant::Unzip`] writes these, and rows by themselves.
//!
//! Mapping: a warp takes a run, 32 entries at a time, or groups that follow one another. Shared memory: `bounds` of the window
//! and a counter of each panel for each warp; in `Pack`, for each warp a counter of each bank in each go, and the bank of each entry.
//! Guarantees: the same entries in the same order every time; only chunks behind the first of their group come in any order.
//!
//! Bounds: of 230 million entries over 30 million columns in 1,050 panels, 4 bytes an entry are read to count, 4 to 8 read and 8 to 12
//! written to split, each by itself in a sector of the L2 cache (6.2 ps), 8 read to measure, and 12 read and 8 written to pack:
//! about 12 GB, or 4 ms of an H100's memory, and 3 to 5 for the sectors.
//!
//! Source: the multisplit of Ashkiani et al. (2016), by ballots; the order of chunks is ours.

mod chunk;
mod contract;
mod counting;
mod groups;
mod part;
mod rows;
mod split;
mod step;
mod table;
mod unzip;
mod window;

use crate::cta::WARP;
use crate::fused::panels::CHUNK;
use crate::memory::{In, Out};

/// Marks a word that is an entry.
pub const PRESENT: u64 = 1 << 63;
/// Words of [`PanelMakingArgs::work`] for each panel: chunks behind the first of their groups, and sectors of inputs.
pub const WORK_WORDS: u32 = 2;

/// The family of kernels that make panels.
pub struct PanelMaking<T>(core::marker::PhantomData<T>);

/// What entries are split by: [`PanelMakingArgs::by`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum By {
    /// The panel of the rank of their column.
    Column,
    /// A digit of their column.
    Digit,
    /// The panel of their row.
    Row,
}

/// Arguments of every kernel that makes panels; an entry ignores what it does not name.
#[repr(C)]
pub struct PanelMakingArgs<'a, T> {
    /// m.
    pub rows: u32,
    /// Entries of a run, a multiple of [`CHUNK`].
    pub run: u32,
    /// The first panel of the window.
    pub first: u32,
    /// Panels of the window, or values of the digit.
    pub panels: u32,
    /// What entries are split by.
    pub by: By,
    /// Bits of a column below the digit; bits of inputs that do not ascend, for `Measure` and `Pack`.
    pub shift: u32,
    /// Inputs that lie in a sector.
    pub in_sector: u32,
    /// Sums of the widest panel.
    pub width: u32,
    /// The entries before each row, and their number.
    pub offsets: In<'a, u32>,
    /// The column of each entry, or its rank.
    pub columns: In<'a, u32>,
    /// The rank of each column; absent where `columns` are ranks.
    pub ranks: In<'a, u32>,
    /// Entries as a split by digits leaves them, instead of `offsets` and `columns`.
    pub pairs: In<'a, u64>,
    /// The value of each entry; absent where all are 1.
    pub values: In<'a, T>,
    /// The first output of each panel, and the number of outputs; absent for digits.
    pub bounds: In<'a, u32>,
    /// For each run, how many entries each panel of the window has; then where they begin in the panel.
    pub counts: Out<'a, u32>,
    /// The entries of each panel of the window; of `Unzip`, the entries before each column, and their number.
    pub totals: Out<'a, u32>,
    /// The first group of each panel, and the number of groups; the first entry of each value of a digit.
    pub groups: In<'a, u32>,
    /// Entries as `Split` writes them; zeros before.
    pub ends: Out<'a, u64>,
    /// Their values.
    pub split_values: Out<'a, T>,
    /// [`WORK_WORDS`] of each panel; zeros before.
    pub work: Out<'a, u64>,
    /// Entries in groups, as `Measure` and `Pack` read them.
    pub given: In<'a, u64>,
    /// Their values.
    pub given_values: In<'a, T>,
    /// The first chunk of each panel, and the number of chunks.
    pub chunks: In<'a, u32>,
    /// How many chunks behind the first of their groups have been placed, of each panel; zeros before.
    pub placed: Out<'a, u32>,
    /// A key of each entry; of `Unzip`, its row.
    pub keys: Out<'a, u32>,
    /// A value of each entry.
    pub packed: Out<'a, T>,
    /// A base of each chunk.
    pub bases: Out<'a, u32>,
}

impl<T: Copy> Clone for PanelMakingArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for PanelMakingArgs<'_, T> {}

impl<T> PanelMakingArgs<'_, T> {
    /// Number of entries.
    #[inline(always)]
    pub(crate) fn entries(&self) -> u64 {
        if self.pairs.is_some() {
            self.pairs.len()
        } else {
            self.columns.len()
        }
    }

    /// Arguments without arrays.
    pub const fn none() -> Self {
        PanelMakingArgs {
            rows: 0,
            run: CHUNK,
            first: 0,
            panels: 0,
            by: By::Column,
            shift: 0,
            in_sector: 1,
            width: 0,
            offsets: In::none(),
            columns: In::none(),
            ranks: In::none(),
            pairs: In::none(),
            values: In::none(),
            bounds: In::none(),
            counts: Out::none(),
            totals: Out::none(),
            groups: In::none(),
            ends: Out::none(),
            split_values: Out::none(),
            work: Out::none(),
            given: In::none(),
            given_values: In::none(),
            chunks: In::none(),
            placed: Out::none(),
            keys: Out::none(),
            packed: Out::none(),
            bases: Out::none(),
        }
    }
}

/// What an entry does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PanelMakingVariant {
    /// `counts` of each run.
    Count,
    /// `counts` of all runs before, and `totals`.
    Sum,
    /// `ends` and `split_values`.
    Split,
    /// `work`.
    Measure,
    /// `keys`, `packed` and `bases`.
    Pack,
    /// `keys` and `totals` of `pairs` in the order of their columns: rows of the transpose.
    Unzip,
}

impl PanelMakingVariant {
    /// Dynamic shared memory of a block of `block` threads with `panels` panels in a window.
    pub const fn shared_bytes(&self, panels: u32, block: u32) -> u64 {
        let (panels, warps) = (panels as u64, (block / WARP) as u64);
        match self {
            PanelMakingVariant::Count | PanelMakingVariant::Split => {
                4 * (panels + 1 + panels * warps)
            }
            PanelMakingVariant::Pack => 2 * 4 * CHUNK as u64 * warps,
            PanelMakingVariant::Sum | PanelMakingVariant::Measure | PanelMakingVariant::Unzip => 0,
        }
    }
}
