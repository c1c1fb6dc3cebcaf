//! What distinguishes dense entries, and what they need.

use crate::cta::WARP;
use crate::describe::{Description, Form, Input, Load, Number, SharedUse, Sums, Walk};
use crate::fused::{Held, Place, Product, TeamSize};
use crate::scalar::Real;

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

impl RowStore {
    /// Without what does not matter to the order of sums.
    pub const fn held(&self) -> Held {
        match self {
            RowStore::Registers => Held::Registers,
            RowStore::Ring { .. } => Held::Ring,
            RowStore::Tiles { .. } => Held::Tiles,
        }
    }
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

/// What an entry of elements of type T does.
pub(crate) const fn describe<T: Real>(variant: &DenseVariant) -> Description {
    let product = variant.product;
    let description = Description::of(product, Form::Dense);
    let place = match product {
        Product::Forward => Place::Absent,
        _ => Place::Registers,
    };
    Description {
        walk: match product {
            Product::Transposed => Walk::ColumnTiles,
            _ => Walk::Rows,
        },
        sums: Sums {
            place,
            number: Number::Float,
        },
        input: match product {
            Product::Fused => Input::Registers,
            _ => description.input,
        },
        team: variant.team,
        load: Load {
            elements: variant.tl,
            width: variant.width,
            rows: variant.rows,
            ahead: variant.elements_ahead(),
            held: variant.held.held(),
        },
        shared: shared_use(variant, T::SIZE),
        cluster: variant.cluster(),
        most_threads: variant.most_threads(),
        ..description
    }
}

const fn shared_use(variant: &DenseVariant, size: u32) -> SharedUse {
    let of_warp = variant.shared_bytes(WARP, 0, size) as u32;
    match (variant.team, variant.held) {
        (TeamSize::Lanes(_), RowStore::Tiles { .. }) => SharedUse {
            per_vector_column: variant.tile_bytes(size),
            ..SharedUse::NONE
        },
        (TeamSize::Lanes(_), _) => SharedUse::fixed(of_warp),
        // A ring's scratch is as large whatever the block.
        (TeamSize::Block, RowStore::Ring { .. }) => {
            let scratch = variant.scratch(WARP) as u32 * size;
            SharedUse::fixed(scratch).and_per_warp(of_warp - scratch)
        }
        (TeamSize::Block, _) => SharedUse::NONE.and_per_warp(of_warp),
    }
}
