//! What distinguishes dense entries, and what they need.

use super::{Product, TeamSize};
use crate::cta::WARP;

/// What distinguishes dense entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DenseVariant {
    /// What is computed.
    pub product: Product,
    /// Who shares a row.
    pub team: TeamSize,
    /// TL: elements of a row per thread (per step, for [`Product::Forward`]).
    pub tl: u32,
    /// Elements per load: 16 bytes of them, or 1.
    pub width: u32,
    /// R: rows in flight per team.
    pub rows: u32,
    /// Where rows are between their arrival and their addition to w.
    pub held: RowStore,
}

/// Where rows are between their arrival and their addition to w.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowStore {
    /// In registers.
    Registers,
    /// In slots of shared memory that belong to a thread each.
    Ring {
        /// Packs of 16 bytes that a thread has in shared memory, rows and y.
        packs: u32,
        /// Packs of a thread that are on their way all the time.
        ahead: u32,
        /// Threads of a block at most.
        threads: u32,
        /// Blocks that share a row, in a cluster of which each owns a part of the columns; 1 for a block by itself.
        blocks: u32,
    },
    /// In tiles of whole rows that a block shares.
    Tiles {
        /// Tiles that a block has in shared memory.
        stages: u32,
        /// Threads of a block at most.
        threads: u32,
    },
}

impl DenseVariant {
    /// Columns that a team covers in blocks of `block` threads, all blocks of its cluster together.
    pub const fn columns(&self, block: u32) -> u64 {
        self.cluster() as u64 * self.team.threads(block) as u64 * self.tl as u64
    }

    /// Blocks that share a row.
    pub const fn cluster(&self) -> u32 {
        match self.held {
            RowStore::Ring { blocks, .. } => blocks,
            _ => 1,
        }
    }

    /// Panels that n columns are cut into.
    pub const fn panels(&self, block: u32, cols: u32) -> u64 {
        let panels = (cols as u64).div_ceil(self.columns(block));
        if panels == 0 { 1 } else { panels }
    }

    /// Dynamic shared memory that a block of `block` threads needs for rows `ld` elements of `size` bytes apart.
    pub const fn shared_bytes(&self, block: u32, ld: u64, size: u32) -> u64 {
        let elements = match (self.product, self.team) {
            (Product::Forward, TeamSize::Lanes(_)) => 0,
            (_, TeamSize::Lanes(_)) => self.columns(block),
            (_, TeamSize::Block) => self.scratch(block),
        };
        let rows = match self.held {
            RowStore::Registers => 0,
            RowStore::Ring { packs, .. } => packs as u64 * 16 * block as u64,
            RowStore::Tiles { .. } => {
                let teams = (block / self.team.threads(block)) as u64;
                // At the end w takes the place of the tiles.
                let tiles = ld.saturating_mul(teams * self.tile_bytes(size) as u64);
                return if tiles > elements * size as u64 {
                    tiles
                } else {
                    elements * size as u64
                };
            }
        };
        elements * size as u64 + rows
    }

    /// Elements by which a block exchanges its warps' sums, of as many rows as are added at once.
    const fn scratch(&self, block: u32) -> u64 {
        match self.held {
            RowStore::Ring {
                threads, blocks, ..
            } => 2 * (blocks * threads / WARP) as u64,
            _ => 2 * self.rows as u64 * (block / WARP) as u64,
        }
    }

    /// Shared memory of [`RowStore::Tiles`] for each team of a block and column, bytes.
    pub const fn tile_bytes(&self, size: u32) -> u32 {
        match self.held {
            RowStore::Tiles { stages, .. } => stages * self.rows * size,
            _ => 0,
        }
    }

    /// Elements of a thread that are on their way to a [`RowStore::Ring`] all the time.
    pub const fn elements_ahead(&self) -> u32 {
        match self.held {
            RowStore::Ring { ahead, .. } => ahead * self.width,
            _ => 0,
        }
    }

    /// Threads of a block at most.
    pub const fn most_threads(&self) -> u32 {
        match self.held {
            RowStore::Ring { threads, .. } | RowStore::Tiles { threads, .. } => threads,
            RowStore::Registers => 1024,
        }
    }
}
