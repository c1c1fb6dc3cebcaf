//! In which order the entries of a matrix lie.

use std::ops::Range;

use crate::cpu::lanes::MAX_LANES;
use crate::cpu::scratch::Pool;

/// Lists that lie side by side: as many as the widest vector has lanes.
pub const LANES: usize = MAX_LANES;

/// Numbers that an index of 16 bits has.
pub const INDICES: usize = 1 << 16;

/// The owner of what pads a slice.
pub const NOBODY: u16 = u16::MAX;

/// Where the entries of each list lie: rows and columns, blocks and slices.
#[derive(Debug)]
pub struct Order {
    pub(super) shape: (usize, usize),
    /// Columns of a tile.
    pub(super) width: usize,
    pub(super) blocks: Vec<Block>,
    /// With what pads slices.
    pub(super) entries: usize,
    /// Stored entries, with one for each row so that empty rows count.
    pub(super) work: usize,
    /// Of all entries, which are not stored then.
    pub(super) equal_value: Option<f64>,
    /// Memory of passes, kept from one to the next.
    pub(super) pool: Pool,
}

/// Some rows.
#[derive(Debug)]
pub struct Block {
    pub(super) rows: Range<usize>,
    /// Entries by rows, for each tile of columns.
    pub(super) by_rows: Vec<Part>,
    /// The same by columns; nothing where columns get their sums from the entries by rows.
    pub(super) by_columns: Vec<Part>,
    /// Of the blocks before.
    pub(super) work_before: usize,
}

/// The entries of a block and a tile, in slices of [`LANES`] lists side by side.
#[derive(Debug, Default)]
pub struct Part {
    /// Entries of the longest list of each slice.
    pub(super) lens: Vec<u8>,
    /// The row in the block or the column in the tile of each list, [`NOBODY`] for what pads a slice.
    pub(super) owners: Vec<u16>,
    /// Where its entries start.
    pub(super) start: usize,
}

impl Order {
    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        self.shape
    }

    /// Entries, each by rows and, in most blocks, by columns, with what pads slices.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Values: as many as entries, or none where all are equal.
    pub fn values(&self) -> usize {
        match self.equal_value {
            None => self.entries,
            Some(_) => 0,
        }
    }

    /// Of all entries, which are not stored then.
    pub fn equal_value(&self) -> Option<f64> {
        self.equal_value
    }

    /// Columns of a tile.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    pub(super) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    pub(super) fn work(&self) -> usize {
        self.work
    }

    /// Columns, with one behind each tile.
    pub(super) fn padded_columns(&self) -> usize {
        self.shape.1.div_ceil(self.width) * (self.width + 1)
    }

    /// Rows of the block that has most.
    pub(super) fn longest_block(&self) -> usize {
        let rows = self.blocks.iter().map(|block| block.rows.len());
        rows.max().unwrap_or(0)
    }
}
