//! Sparse X (CSR): X·y with the work cut by nonzeros and rows alike, however long rows are.
//!
//! Formula: `p = α · v ⊙ (X·(u ⊙ y) − s) + β · z`, X m × n in CSR with 32-bit offsets and indices. Over the stored transpose
//! of X, whose rows are the columns of X, the same entries give `α · Xᵀ(v ⊙ p) + β · z` without atomics, v in the part of u.
//!
//! The ends of rows and the nonzeros, in the order in which they come, are cut into *tiles* of [`tile_items`] items: no tile has
//! more rows or more nonzeros than that, be rows empty or as long as X. Once for a matrix *partition* finds where tiles
//! start. For each product *walk* sums the rows of every tile and writes those that begin and end in it; what a tile has of
//! a row that began before (its *head*) or goes on after it (its *carry*) is written down, and *finish* adds it up.
//!
//! Mapping of *walk*: a warp works on one tile at a time, tiles in strides of the grid, by *pieces* of up to PIECE nonzeros. Nonzeros are loaded in order, whatever their row, HELD by each lane; those of the next piece are requested
//! before this one is summed. The products go to shared memory, from where each lane takes HELD that follow each other, adds up to
//! where flags say that rows end, and a segmented scan over the lanes carries what is open from one to the next. So a piece takes as long
//! whatever the lengths of its rows, and nothing waits but the lanes of a warp. *partition* and *finish* have a thread for each
//! tile; in *finish* a warp shares a row over more than SHORT tiles.
//!
//! *Walk of shared input* copies u ⊙ y to the shared memory of each block first: gathers from there take a quarter of those that
//! hit L1.
//!
//! Shared memory of *walk*: an exchange for each warp, [`scan`]'s products and flags, and behind them u ⊙ y if that is kept there;
//! *partition* and *finish*: none. Result: in the output when *finish* has ended. Guarantees: the same bits on every run and
//! for every grid, as tiles and pieces, and with them the order of additions, follow from X alone; not those of other kernels or of the
//! CPU, which add in other orders.
//!
//! Medians of an H200 in f32, µs, of a prototype in CUDA with *finish*, beside a vector of lanes for each row (the fastest number of them),
//! which waits for the longest row of its warp:
//!
//! | | nonzeros | vector for each row | a tile 2,048 | 512 | input in shared memory |
//! |---|---|---|---|---|---|
//! | 4,000,000 × 10,000, log-normal | 80 million | 302 | 217 | 236 | 187 |
//! | 4,000,000 × 10,000, 20 a row | 80 million | 178 | 210 | 230 | 184 |
//! | 4,000,000 × 1,000,000, log-normal, Zipf 1.1 | 80 million | 340 | 280 | 285 | |
//! | 4,000,000 × 29,890,095, log-normal, Zipf 1.1 | 116 million | 650 | 524 | 532 | |
//! | 677,399 × 47,236, log-normal, Zipf 1.0 | 49 million | 180 | 140 | 139 | 130 |
//! | 19,996 × 1,355,191, log-normal, Zipf 1.0 | 9 million | 149 | 54 | 48 | |
//! | 20,242 × 47,236, log-normal, Zipf 1.0 | 1.5 million | 16 | 16 | 11 | 12 |
//!
//! What did not help there, µs for the first two shapes: a block of 256 threads for a tile of 2,048, a power of two of threads for each
//! of its rows and barriers between (338, 299: this kernel until 2026-11-30); vectors of eight lanes that go on to their next row when
//! they have ended one, whatever the others of the warp do (327, 197: they drift apart, and what neighbours shared is requested
//! twice); tiles of a warp with a power of two of lanes for each row (378, 454); one long share of the items for each warp (239, 235);
//! six and eight blocks of 256 threads on an SM (303, 370: registers).
//!
//! Source: Merrill and Garland, *Merge-based parallel sparse matrix-vector multiplication* (SC 2016), for tiles and their
//! partition; Blelloch, Heroux and Zagha, *Segmented operations for sparse matrix computation on vector multiprocessors* (CMU-CS-93-173,
//! 1993), for the scan.

mod finish;
mod scan;
mod table;
mod walk;

use crate::cta::{Cache, Cta, WARP};
use crate::describe::SharedUse;
use crate::fused::SparseArgs;
use crate::memory::{In, Out};
use crate::scalar::Real;
use crate::verbs::each_of_grid;

/// Threads of a block of *walk*.
pub const THREADS: u32 = 256;
/// Nonzeros of a lane in a piece.
pub const HELD: usize = 8;
/// Nonzeros of a piece, at most.
pub const PIECE: u32 = HELD as u32 * WARP;
/// Words of flags of a piece.
const FLAG_WORDS: u32 = PIECE / 32;

/// Threads of a block of *walk of shared input*, for elements of `size` bytes: as many as registers allow without spilling.
pub const fn threads_of_shared(size: u32) -> u32 {
    if size == 4 { 1024 } else { 768 }
}

/// Nonzeros and ends of rows in a tile of a matrix with this many of both: fewer of a small one, so that all warps have some.
pub const fn tile_items(rows: u64, nonzeros: u64) -> u32 {
    const LARGE: u64 = 1 << 25;
    if rows + nonzeros < LARGE { 512 } else { 2_048 }
}

/// The family of balanced kernels.
pub struct Balanced<T>(core::marker::PhantomData<T>);

/// Arguments of every balanced kernel.
#[repr(C)]
pub struct BalancedArgs<'a, T> {
    /// X and the vectors, as [`Product::Forward`](crate::fused::Product::Forward) takes them; *partition* needs the offsets alone.
    pub x: SparseArgs<'a, T>,
    /// Nonzeros of X, as the last offset says: known without a load, for which everything else would wait.
    pub nonzeros: u32,
    /// As long as the input, which is multiplied by it element by element; optional.
    pub input_weights: In<'a, T>,
    /// The row in which each tile starts, and m; written by *partition*.
    pub starts: Out<'a, u32>,
    /// What each tile has of the row that ends in it first, if that began before.
    pub heads: Out<'a, T>,
    /// What each tile has of the row that does not end in it.
    pub carries: Out<'a, T>,
}

impl<T: Copy> Clone for BalancedArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for BalancedArgs<'_, T> {}

/// What distinguishes balanced entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BalancedVariant {
    /// Finds where tiles start.
    Partition,
    /// Sums the rows of tiles.
    Walk,
    /// The same with the input in shared memory.
    WalkOfShared,
    /// Sums the rows of several tiles.
    Finish,
}

impl BalancedVariant {
    /// Dynamic shared memory of a block for elements of `size` bytes.
    pub const fn shared(&self, size: u32) -> SharedUse {
        let per_column = match self {
            BalancedVariant::Walk => 0,
            BalancedVariant::WalkOfShared => size,
            _ => return SharedUse::NONE,
        };
        SharedUse {
            per_warp: scan::bytes(size),
            per_column,
            ..SharedUse::NONE
        }
    }

    /// Threads of a block of that step, where it matters.
    pub const fn threads(&self, size: u32) -> Option<u32> {
        match self {
            BalancedVariant::Walk => Some(THREADS),
            BalancedVariant::WalkOfShared => Some(threads_of_shared(size)),
            _ => None,
        }
    }
}

/// Tiles of a matrix with this many rows and nonzeros; at most 2²², as 32 bits count each.
pub const fn tiles(rows: u64, nonzeros: u64) -> u32 {
    (rows + nonzeros).div_ceil(tile_items(rows, nonzeros) as u64) as u32
}

/// Ends of rows and nonzeros of X, and its tiles.
pub(crate) struct Items {
    pub rows: u32,
    pub nonzeros: u32,
    pub tiles: u32,
    /// Items of each.
    each: u32,
}

impl Items {
    #[inline(always)]
    pub fn of<T>(args: &BalancedArgs<'_, T>) -> Self {
        let (rows, nonzeros) = (args.x.rows, args.nonzeros);
        Items {
            rows,
            nonzeros,
            tiles: tiles(rows as u64, nonzeros as u64),
            each: tile_items(rows as u64, nonzeros as u64),
        }
    }

    /// The tile that has an item.
    #[inline(always)]
    fn tile_of(&self, item: u64) -> u32 {
        (item / self.each as u64) as u32
    }

    /// The number of the item with which a tile starts.
    #[inline(always)]
    fn start(&self, tile: u32) -> u64 {
        let all = self.rows as u64 + self.nonzeros as u64;
        (tile as u64 * self.each as u64).min(all)
    }
}

/// [`BalancedVariant::Partition`].
#[inline(always)]
pub(crate) fn partition<C: Cta, T: Real>(cta: &C, args: &BalancedArgs<'_, T>) {
    let items = Items::of(args);
    each_of_grid(cta, items.tiles as u64 + 1, |tile| {
        let item = items.start(tile as u32);
        // Rows that end before the item: the end of row r is item number offsets[r + 1] + r.
        let mut ended = item.saturating_sub(items.nonzeros as u64) as u32;
        let mut beyond = item.min(items.rows as u64) as u32;
        while ended < beyond {
            let row = ended + (beyond - ended) / 2;
            let end: u32 = cta.load(args.x.offsets, row as usize + 1, Cache::Keep);
            if (end as u64 + row as u64) < item {
                ended = row + 1;
            } else {
                beyond = row;
            }
        }
        cta.write(args.starts, tile, ended);
    });
}

/// Rows and nonzeros of a tile.
#[derive(Clone, Copy)]
pub(crate) struct Tile {
    /// The first row that ends in the tile, and the first that does not.
    pub rows: [u32; 2],
    /// The first nonzero, and the first of the next tile.
    pub nonzeros: [u32; 2],
}

impl Tile {
    /// A tile that is not there is an empty one.
    #[inline(always)]
    pub fn read<C: Cta, T: Real>(
        cta: &C,
        args: &BalancedArgs<'_, T>,
        items: &Items,
        tile: u32,
    ) -> Self {
        if tile >= items.tiles {
            return Tile {
                rows: [0; 2],
                nonzeros: [0; 2],
            };
        }
        let rows = [tile, tile + 1].map(|tile| cta.read(args.starts, tile as usize));
        let first = |i: u32| (items.start(tile + i) - rows[i as usize] as u64) as u32;
        Tile {
            rows,
            nonzeros: [first(0), first(1)],
        }
    }

    /// The first row that ends in it, and the first nonzero.
    #[inline(always)]
    pub fn start(&self) -> (u32, u32) {
        (self.rows[0], self.nonzeros[0])
    }

    /// The end of a piece that begins with this nonzero, were rows as long as they can be.
    #[inline(always)]
    pub fn piece_end(&self, nonzero: u32) -> u32 {
        nonzero.saturating_add(PIECE).min(self.nonzeros[1])
    }

    /// Whether it lies within one row.
    #[inline(always)]
    pub fn is_within_row(&self) -> bool {
        self.rows[0] == self.rows[1]
    }
}
