//! The numbers of a launch.

use crate::plan::occupancy::Occupancy;

/// Blocks of a kernel, and how many of them an SM holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Blocks {
    pub vs: u32,
    pub bs: u32,
    pub shared_bytes: u64,
    pub occupancy: Occupancy,
}

impl Blocks {
    /// The same with as many blocks on an SM as the user fixes; `None` when that does not fit, or when
    /// not even one does.
    pub fn with_forced(self, forced: Option<u32>) -> Option<Self> {
        let held = self.occupancy.blocks_per_sm;
        let blocks_per_sm = forced.unwrap_or(held);
        ((1..=held).contains(&blocks_per_sm)).then(|| self.with_resident(blocks_per_sm))
    }

    /// The same with `blocks_per_sm` of the blocks that an SM holds.
    pub fn with_resident(self, blocks_per_sm: u32) -> Self {
        let warps = self.occupancy.warps_per_sm / self.occupancy.blocks_per_sm.max(1);
        let warps_per_sm = warps * blocks_per_sm;
        Self {
            occupancy: Occupancy {
                blocks_per_sm,
                warps_per_sm,
                ..self.occupancy
            },
            ..self
        }
    }
}

/// Windows of columns where all are added to at once.
pub(super) const ONE_WINDOW: u32 = 1;

/// A launch without its reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Launch {
    pub blocks: Blocks,
    pub grid: u32,
    pub column_tiles: u32,
    /// Windows of columns that are added to one after the other.
    pub windows: u32,
    pub c: u64,
}

impl Launch {
    /// Vectors of the grid that work on different rows.
    pub fn vectors(&self) -> u64 {
        vectors(self.grid, self.column_tiles, self.blocks.bs, self.blocks.vs)
    }
}

/// Vectors of a grid that work on different rows.
pub(super) fn vectors(grid: u32, column_tiles: u32, bs: u32, vs: u32) -> u64 {
    u64::from(grid / column_tiles.max(1)) * u64::from(bs / vs.max(1))
}

/// Whether blocks without rows stay in the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Surplus {
    /// The published model launches what the device holds.
    Keep,
    /// No more blocks than there are rows for.
    Drop,
    /// The same where rows are shared out as to this many blocks, of which all of a launch take as many.
    Chunks(u32),
}
