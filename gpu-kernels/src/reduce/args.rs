//! Arguments of reductions.

use crate::memory::{In, Out};

/// Chunks are runs of rows: the order is the same for every grid.
pub const ORDER_FIXED: u32 = 0;
/// Chunks are interleaved rows: neighbouring blocks read neighbouring memory.
pub const ORDER_INTERLEAVED: u32 = 1;

/// Arguments of every reduction; an entry ignores what it does not name.
#[repr(C)]
#[derive(Debug)]
pub struct ReduceArgs<'a, T> {
    /// The array.
    pub x: In<'a, T>,
    /// Second operand of products.
    pub y: In<'a, T>,
    /// Where segments begin, and the end of the last; absent where segments are rows.
    pub offsets: In<'a, u64>,
    /// Elements of a whole array.
    pub len: u64,
    /// Segments, or rows.
    pub parts: u64,
    /// Elements of a row.
    pub cols: u64,
    /// From the start of a row to that of the next.
    pub pitch: u64,
    /// Chunks of a whole array, or of the rows of a matrix.
    pub chunks: u64,
    /// Rows of a chunk.
    pub rows_per_chunk: u64,
    /// How rows make chunks: [`ORDER_FIXED`] or [`ORDER_INTERLEAVED`].
    pub order: u32,
    /// [`Term`](super::Term) or [`Sought`](super::Sought) of entries over parts.
    pub choice: u32,
    /// Columns of a tile, or lanes of a segment: a power of two up to 32.
    pub tile: u32,
    /// Totals of chunks.
    pub partials: Out<'a, u64>,
    /// Zeros: one counter, or one for each tile. Zeros again when the launch ends.
    pub tickets: Out<'a, u32>,
    /// Totals.
    pub out: Out<'a, u64>,
}

impl<T> Clone for ReduceArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for ReduceArgs<'_, T> {}
