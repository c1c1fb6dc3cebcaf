//! Hot columns made where X lies: the layout of [`hot`](crate::fused::hot) from CSR on a device.
//!
//! Formula: a copy of X, entry for entry, in slices; see [`hot`](crate::fused::hot). Which of a row's entries comes in which
//! step is not the host's choice: lanes deal their entries two at a time instead of one after the other.
//!
//! | file | passes |
//! |---|---|
//! | `count` | a sample of the entries; how many each column has; numbers of some columns |
//! | `rows` | hot and cold entries of rows; steps of slices |
//! | `sort` | columns by frequency and rows by length: a stable sort by small keys, chunk by chunk |
//! | `scan` | running sums, chunk by chunk |
//! | `judge` | in how few bits values can be stored |
//! | `copy`, `deal` | entries put where lanes find them |
//!
//! Mapping: passes over entries or columns give a thread elements i, i + threads of the grid, …; passes over rows give a row
//! a warp; *copy* gives a slice a warp; chunks have a warp each. What depends on all chunks (how many elements of each
//! key, or what sum, the chunks before have) the host adds up between two passes. Shared memory: see
//! [`OrderVariant::shared_bytes`] and [`MakingVariant::shared_bytes`]. Result: when the kernel has ended.
//! Guarantees: exact, and the same bits every time.
//!
//! Why: the host takes seconds for 566 million entries, of which a device reads each in 4 to 8 bytes a few times.
//!
//! Source: ours; a stable sort by small keys is a pass of a radix sort (D. Merrill, A. Grimshaw, *High Performance and
//! Scalable Radix Sorting*, 2011).

mod contract;
mod copy;
mod count;
mod deal;
mod judge;
mod rows;
mod scan;
mod sort;
mod table;

use crate::cta::{Cache, Cta};
use crate::fused::hot::{CLASSES, SPARE};
use crate::memory::{In, Out};

/// Neighbouring entries of a sample.
pub const RUN: u64 = 1_024;
/// Elements of a chunk.
pub const CHUNK: u32 = 4_096;
/// No key: an element that is left out of a sort.
pub const SKIP: u32 = u32::MAX;
/// Columns with as many entries as this, or fewer, keep their own order: those as rare as that are not wanted together
/// anyway.
pub const RARE: u32 = 64;
/// Keys of columns: the leading zeros of how many entries they have.
pub const DIGITS: u32 = u32::BITS;
/// Flags of [`MakingArgs::flags`], which are 1 if so: some value differs from the first; some row's values differ, or are
/// not finite; a hot column has infinities or NaN; a hot value is no bfloat16; a hot value is no f32. The last one is the
/// largest exponent field.
pub const FLAGS: usize = 6;
/// Values differ.
pub const DIFFER: usize = 0;
/// Values of a row differ, or are not finite.
pub const DIFFER_IN_ROW: usize = 1;
/// Hot columns have infinities or NaN.
pub const NOT_FINITE: usize = 2;
/// Not every hot value is a bfloat16.
pub const NOT_BF16: usize = 3;
/// Not every hot value is an f32.
pub const NOT_SINGLE: usize = 4;
/// The largest exponent field.
pub const WIDEST: usize = 5;

/// The family of kernels that order rows and columns.
pub struct HotOrder;

/// Arguments of every kernel that orders; an entry ignores what it does not name.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct OrderArgs<'a> {
    /// Elements, rows or slices.
    pub len: u64,
    /// Rows of X.
    pub rows: u32,
    /// One run of this many is in the sample.
    pub step: u32,
    /// Keys, or fields in a word.
    pub width: u32,
    /// The field of all columns, where there are no `fields`.
    pub field: u32,
    /// The slices behind the last of each class.
    pub slices: [u32; CLASSES],
    /// The entries before each row of X, and their number.
    pub offsets: In<'a, u32>,
    /// The column of each entry.
    pub indices: In<'a, u32>,
    /// Which columns are hot: for every 32 of them a word with a bit for each, and how many before these are.
    pub members: In<'a, u32>,
    /// The place of each of these, in the order of the columns.
    pub places: In<'a, u32>,
    /// The column of each place or rank.
    pub columns: In<'a, u32>,
    /// A number for each column, or for each element.
    pub fields: In<'a, u32>,
    /// How many elements of each key, or what sum, the chunks before have.
    pub bases: In<'a, u32>,
    /// The row at each position; without it row r is at position r.
    pub order: In<'a, u32>,
    /// Hot and cold entries of each row.
    pub hot_lengths: In<'a, u32>,
    /// The same of cold ones.
    pub cold_lengths: In<'a, u32>,
    /// How many entries each column has, two in an element, the first in the lower half.
    pub counts: Out<'a, u64>,
    /// What is written.
    pub to: Out<'a, u32>,
    /// What is written besides.
    pub second: Out<'a, u32>,
    /// What is written besides.
    pub third: Out<'a, u32>,
    /// Steps of each slice, from element 1 on: hot ones in the lower half, cold ones in the upper.
    pub steps: Out<'a, u64>,
}

/// What is ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OrderVariant {
    /// `to` are `len` entries of every `step`-th run of `indices`.
    Sampled,
    /// Adds 1 to `counts` for each of `len` `indices`; those of `members` are added up in a block first, to `columns` by place.
    Counted,
    /// `len` words `to` of the `fields` of `columns`, `width` in a word.
    Packed,
    /// The keys of `len` columns by how many entries they have (`fields`), the most first; none of `members`.
    Columns,
    /// How many hot entries a row has (`to`), cold ones (`second`), and its key (`third`).
    Rows,
    /// How many `fields` of each chunk have each of `width` keys: `to`, chunk by chunk.
    Tallied,
    /// The elements in the order of their `fields` (`to`), and where each went (`second`, which may be absent).
    Sorted,
    /// The `steps` of each slice, and the cold entries of each position (`to`).
    Stepped,
    /// The sum of each chunk of `fields`.
    Summed,
    /// Replaces each of `len` elements of `to` by the sum of those before it.
    Scanned,
}

impl OrderVariant {
    /// Dynamic shared memory of a block of `block` threads, for this many keys, or places.
    pub const fn shared_bytes(&self, block: u32, width: u32) -> u64 {
        match self {
            OrderVariant::Counted => 4 * width as u64,
            OrderVariant::Tallied | OrderVariant::Sorted => {
                4 * width as u64 * (block / crate::cta::WARP) as u64
            }
            _ => 0,
        }
    }
}

/// The family of kernels that copy entries.
pub struct HotMaking<T>(core::marker::PhantomData<T>);

/// How values are rounded before they are stored.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// Not at all.
    Exact,
    /// To an f32.
    Single,
    /// To bfloat16.
    Bf16,
}

/// How hot values are stored: [`HotValues`](crate::fused::HotValues) as a number.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoredAs {
    /// As they are.
    Whole,
    /// As the bits of an f32.
    Single,
    /// As bfloat16.
    Bf16,
    /// Once for each row, or for all.
    Constant,
}

/// Arguments of every kernel that copies; an entry ignores what it does not name.
#[repr(C)]
pub struct MakingArgs<'a, T> {
    /// Rows of X, or entries.
    pub len: u64,
    /// Rows of X.
    pub rows: u32,
    /// Hot columns.
    pub hot_columns: u32,
    /// The exponent field of all columns, where there are no `fields`.
    pub field: u32,
    /// How values are rounded.
    pub rounding: Rounding,
    /// How they are stored.
    pub stored: StoredAs,
    /// The slices behind the last of each class.
    pub slices: [u32; CLASSES],
    /// The first value.
    pub first: T,
    /// The entries before each row of X, and their number.
    pub offsets: In<'a, u32>,
    /// The column of each entry.
    pub indices: In<'a, u32>,
    /// The value of each entry.
    pub values: In<'a, T>,
    /// As of [`OrderArgs`].
    pub members: In<'a, u32>,
    /// As of [`OrderArgs`].
    pub places: In<'a, u32>,
    /// The rank of each column that is not hot.
    pub labels: In<'a, u32>,
    /// The exponent field that each column is scaled by.
    pub fields: In<'a, u32>,
    /// The row at each position; without it row r is at position r.
    pub order: In<'a, u32>,
    /// The steps before each slice, and their number.
    pub steps: In<'a, u64>,
    /// The cold entries before each position.
    pub cold_offsets: In<'a, u32>,
    /// [`FLAGS`] of them.
    pub flags: Out<'a, u32>,
    /// The largest exponent field of each column.
    pub largest: Out<'a, u32>,
    /// As of [`HotArgs`](crate::fused::HotArgs).
    pub to_places: Out<'a, u32>,
    /// The same.
    pub to_values: Out<'a, T>,
    /// The same.
    pub to_packed: Out<'a, u32>,
    /// The same; absent where the values of all rows are equal.
    pub to_constants: Out<'a, T>,
    /// The same.
    pub to_ranks: Out<'a, u32>,
    /// The same.
    pub to_cold_values: Out<'a, T>,
    /// The ranks of cold entries, position after position.
    pub cold_ranks: Out<'a, u32>,
    /// Their values as they are, or as they were rounded; absent where those of a row are equal.
    pub cold_entries: Out<'a, T>,
}

impl<T: Copy> Clone for MakingArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for MakingArgs<'_, T> {}

/// What is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MakingVariant {
    /// Flags of values that differ, of `len` rows.
    Judged,
    /// `largest`, and the flags of what it says, of `len` entries.
    Fields,
    /// Flags of values that do not fit fewer bits, of `len` entries.
    Fits,
    /// The copy.
    Copied,
}

impl MakingVariant {
    /// Dynamic shared memory of a block of `block` threads for elements of `size` bytes.
    pub const fn shared_bytes(&self, block: u32, size: u32) -> u64 {
        match self {
            MakingVariant::Copied => {
                (block / crate::cta::WARP) as u64 * deal::bytes_of_warp(size) as u64
            }
            _ => 0,
        }
    }
}

/// The bits and the number before of a column's 32.
#[inline(always)]
fn is_member<C: Cta>(cta: &C, members: In<'_, u32>, column: u32) -> bool {
    let own: u32 = cta.load(members, column as usize / 32 * 2, Cache::Keep);
    own >> (column % 32) & 1 != 0
}

/// The place of a column, if it has one.
#[inline(always)]
fn place_of<C: Cta>(
    cta: &C,
    (members, places): (In<'_, u32>, In<'_, u32>),
    column: u32,
) -> Option<u32> {
    let (at, bit) = (column as usize / 32 * 2, 1_u32 << (column % 32));
    let own: u32 = cta.load(members, at, Cache::Keep);
    if own & bit == 0 {
        return None;
    }
    let before: u32 = cta.load(members, at + 1, Cache::Keep);
    let number = before + (own & (bit - 1)).count_ones();
    Some(cta.load(places, number as usize, Cache::Keep))
}

/// The row at a position; `rows` or more where there is none.
#[inline(always)]
fn row_at<C: Cta>(cta: &C, order: In<'_, u32>, position: u32) -> u32 {
    if order.is_some() {
        cta.load(order, position as usize, Cache::Keep)
    } else {
        position
    }
}

/// The place of a lane without an entry.
#[inline(always)]
fn spare(hot_columns: u32, lane: u32) -> u32 {
    debug_assert!(lane < SPARE, "each lane has one");
    hot_columns + lane
}
