//! Sparse X (CSR): X·y with the work cut by nonzeros and rows alike, however long rows are.
//!
//! Formula: `p = α · v ⊙ (X·(u ⊙ y) − s) + β · z`, X m × n in CSR with 32-bit offsets and indices. Over the stored transpose
//! of X, whose rows are the columns of X, the same entries give `α · Xᵀ(v ⊙ p) + β · z` without atomics, v in the part of u.
//!
//! The ends of rows and the nonzeros, in the order in which they come, are cut into *tiles* of TILE items: no tile has
//! more rows or more nonzeros than that, be rows empty or as long as X. Once for a matrix *partition* finds where tiles
//! start. For each product *walk* sums the rows of every tile and writes those that begin and end in it; what a tile has of
//! a row that began before (its *head*) or goes on after it (its *carry*) is written down, and *finish* adds it up.
//!
//! Mapping of *walk*: a block of THREADS works on one tile at a time, tiles in strides of the grid. Nonzeros are loaded in
//! order, whatever their row, PER_THREAD by each thread; those of the next tile are requested before the rows of this one are
//! summed. The products go to shared memory, and so does where rows begin. From there a power of two of threads sums each row: as
//! many as leave every row of the tile its own, a warp at most. A row that is longer than the others has a whole warp, and a tile
//! within one row the whole block. *partition* has a thread for each tile, and so has *finish*, in which a warp shares a row over
//! more than SHORT tiles.
//!
//! Shared memory of *walk*: TILE elements, of which those behind the products say where rows begin, one for each warp and two
//! words; of *scan*: products and flags for each warp, and behind them u ⊙ y if that is kept there; *partition* and *finish*: none. Result: in the output when *finish* has ended. Guarantees: the same bits on every run and
//! for every grid, as tiles, and with them the order of additions, follow from X alone; not those of other kernels or of the CPU,
//! which add in other orders.
//!
//! Longer rows by whole warps, and offsets on their way with the nonzeros, count where rows of all lengths are mixed. Medians of an
//! H100 in f32, µs, *walk* alone, columns of transposes in random order:
//!
//! | | nonzeros | a thread or more for each row, offsets one after the other | now |
//! |---|---|---|---|
//! | transpose, shape of rcv1 | 1.2 million | 31.8 | 14.0 |
//! | transpose, a quarter of url's rows | 51 million | 649 | 346 |
//! | transpose, a twentieth of kddb's rows | 24 million | 663 | 295 |
//! | 4,000,000 × 100,000, 20 a row, Zipf 0.8: rows; transpose | 79 million | 573; 663 | 572; 659 |
//! | 4,000,000 × 10,000, 20 a row: rows | 80 million | 299 | 304 |
//!
//! Of a small matrix each tile has a block of its own at once, as far as registers let that many share the SMs: the transpose of
//! rcv1's shape, 1.5 million nonzeros in 754 tiles, takes 11.5 µs with four blocks on an SM (columns in random order 13.8) and 10.1
//! (11.0) with six, *walk at once*. There a row of several tiles is added up by whichever of these draws the last of its tickets, in
//! the order of *finish*, which is not launched. Large matrices take as long with four as with five, but for 4,000,000 rows of log-normal
//! lengths over 10,000 columns (292 and 272); with six up to 4 % longer.
//!
//! *Scan* does what *walk* does for large matrices with rows of uneven lengths, a warp for each tile, by *pieces* of up to PIECE nonzeros.
//! Those of the next piece are requested before this one is summed. Products go to shared memory, from where each lane takes HELD that
//! follow each other, adds up to where flags say that rows end, and a segmented scan over the lanes carries what is open from one to
//! the next. So a piece takes as long whatever the lengths of its rows, and nothing waits but the lanes of a warp. *Scan of shared
//! input* copies u ⊙ y to the shared memory of each block first. Of short rows, as wide transposes have, *walk* takes less time: a warp
//! looks for the ends of 32 rows at a time. Medians of an H200, µs, with *finish*, beside a vector of lanes for each row, which waits for
//! the longest row of its warp:
//!
//! | | nonzeros | vector for each row | *walk* | *scan* | of shared input |
//! |---|---|---|---|---|---|
//! | 4,000,000 × 10,000, log-normal | 80 million | 305 | 320 | 216 | 194 |
//! | the same in f64 | | 408 | 429 | 362 | 278 |
//! | 4,000,000 × 40,000, 20 a row | 80 million | 219 | | | 203 |
//! | 4,000,000 × 1,000,000, log-normal, Zipf 1.1 | 80 million | 365 | 329 | 315 | |
//! | the same in f64 | | 452 | 442 | 427 | |
//! | 19,264,097 × 29,890,095, log-normal, Zipf 1.1 | 566 million | 3,373 | 2,739 | 2,837 | |
//! | the same in f64 | | 4,394 | 3,792 | 3,674 | |
//! | 677,399 × 47,236, log-normal, Zipf 1.0 | 49 million | 159 | 180 | 154 | 149 |
//! | the same in f64 | | 219 | 245 | 243 | |
//! | transpose of 4,000,000 × 29,890,095, log-normal, Zipf 1.1 (gathers one by one) | 116 million | | 896 | 956 | |
//! | the same in f64 (gathers one by one) | | | 1,161 | 1,293 | |
//!
//! Gathers of a thread are on their way together. Until each had no condition of its own, one was waited for before the next began: the
//! first line's *scan* took 251 µs, the fourth's *walk* 472 and *scan* 310. The transposes take 873 and 1,136 by *walk* now.
//!
//! What did not help, µs of prototypes in CUDA for the first and the third line, where *scan* takes 200 and 210: vectors of eight lanes that
//! go on to their next row when they have ended one, whatever the others of the warp do (327, 197: they drift apart, and what neighbours
//! shared is requested twice); tiles of a warp with a power of two of lanes for each row (378, 454); one long share of the items for
//! each warp (239, 235); six and eight blocks of 256 threads on an SM (303, 370: registers).
//!
//! Offsets in shared memory of their own take L1 from the gathers: 611 instead of 572 for 100,000 columns. Warps from 16 or from
//! 64 products on differ by no more than 4 %.
//!
//! Source: Merrill and Garland, *Merge-based parallel sparse matrix-vector multiplication* (SC 2016), for tiles and their
//! partition; summing a tile's rows from shared memory by groups that fit their number follows Greathouse and Daga,
//! *Efficient sparse matrix-vector multiplication on GPUs using the CSR storage format* (SC 2014); the scan is that of Blelloch, Heroux and
//! Zagha, *Segmented operations for sparse matrix computation on vector multiprocessors* (CMU-CS-93-173, 1993).

mod finish;
mod pieces;
mod scan;
mod table;
mod walk;

use crate::cta::{Cache, Cta, WARP};
use crate::describe::SharedUse;
use crate::fused::SparseArgs;
use crate::fused::balanced::finish::Edge;
use crate::memory::{In, Out};
use crate::scalar::Real;
use crate::verbs::each_of_grid;

/// Threads of a block of *walk*.
pub const THREADS: u32 = 256;
/// Nonzeros of a thread in a tile, at most.
pub const PER_THREAD: u32 = 8;
/// Nonzeros and ends of rows in a tile.
pub const TILE: u32 = THREADS * PER_THREAD;
/// Nonzeros of a lane in a piece of *scan*.
pub const HELD: usize = 8;
/// Nonzeros of a piece, at most.
pub const PIECE: u32 = HELD as u32 * WARP;
/// Words of flags of a piece.
const FLAG_WORDS: u32 = PIECE / 32;

/// Threads of a block of *scan of shared input*, for elements of `size` bytes: as many as registers allow without spilling.
pub const fn threads_of_shared(size: u32) -> u32 {
    if size == 4 { 1024 } else { 768 }
}

/// Of *walk*: where the row of a tile begins that does not end in it, and where the tile ends.
const SPARE_BYTES: u32 = 8;

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
    /// A number for each tile, 0 before and after each launch: how many tiles have summed what they have of the row that ends in it
    /// first; [`BalancedVariant::WalkAtOnce`] alone has it.
    pub tickets: Out<'a, u32>,
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
    /// The same with [more blocks](blocks_at_once) on an SM, and fewer registers for each, where every tile has a block that way; and
    /// rows of several tiles are added up by whichever of these is the last, so that nothing is left to finish.
    WalkAtOnce,
    /// Sums the rows of tiles, a warp for each tile.
    Scan,
    /// The same with the input in shared memory.
    ScanOfShared,
    /// Sums the rows of several tiles.
    Finish,
}

impl BalancedVariant {
    /// Dynamic shared memory of a block for elements of `size` bytes.
    pub const fn shared(&self, size: u32) -> SharedUse {
        match self {
            BalancedVariant::Walk | BalancedVariant::WalkAtOnce => {
                SharedUse::fixed((TILE + THREADS / WARP) * size + SPARE_BYTES)
            }
            BalancedVariant::Scan => SharedUse::NONE.and_per_warp(scan::bytes(size)),
            BalancedVariant::ScanOfShared => SharedUse {
                per_column: size,
                ..SharedUse::NONE.and_per_warp(scan::bytes(size))
            },
            _ => SharedUse::NONE,
        }
    }

    /// Threads of a block of that step, where it matters.
    pub const fn threads(&self, size: u32) -> Option<u32> {
        match self {
            BalancedVariant::ScanOfShared => Some(threads_of_shared(size)),
            BalancedVariant::Partition | BalancedVariant::Finish => None,
            _ => Some(THREADS),
        }
    }
}

/// Blocks of [`BalancedVariant::WalkAtOnce`] that share an SM, for elements of `size` bytes.
pub const fn blocks_at_once(size: u32) -> u32 {
    match size {
        4 => 6,
        _ => 4,
    }
}

/// Tiles of a matrix with this many rows and nonzeros; at most 2²², as 32 bits count each.
pub const fn tiles(rows: u64, nonzeros: u64) -> u32 {
    (rows + nonzeros).div_ceil(TILE as u64) as u32
}

/// Ends of rows and nonzeros of X, and its tiles.
pub(crate) struct Items {
    pub rows: u32,
    pub nonzeros: u32,
    pub tiles: u32,
}

impl Items {
    #[inline(always)]
    pub fn of<T>(args: &BalancedArgs<'_, T>) -> Self {
        let (rows, nonzeros) = (args.x.rows, args.nonzeros);
        Items {
            rows,
            nonzeros,
            tiles: tiles(rows as u64, nonzeros as u64),
        }
    }

    /// The number of the item with which a tile starts.
    #[inline(always)]
    fn start(&self, tile: u32) -> u64 {
        let all = self.rows as u64 + self.nonzeros as u64;
        (tile as u64 * TILE as u64).min(all)
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

/// The element of u ⊙ y of a column.
#[inline(always)]
fn weighted_input<C: Cta, T: Real>(cta: &C, args: &BalancedArgs<'_, T>, column: u32) -> T {
    let [element] = weighted_inputs(cta, args, [column]);
    element
}

/// The elements of u ⊙ y of some columns, all of which are on their way at once: a load under a condition of its own is waited for
/// before the next one begins.
#[inline(always)]
fn weighted_inputs<C: Cta, T: Real, const N: usize>(
    cta: &C,
    args: &BalancedArgs<'_, T>,
    columns: [u32; N],
) -> [T; N] {
    let load =
        |from: In<'_, T>, k: usize| -> T { cta.load(from, columns[k] as usize, Cache::Keep) };
    // Apart, since columns are wanted for longer where there are weights.
    match args.input_weights.is_some() {
        true => core::array::from_fn(|k| load(args.x.input, k) * load(args.input_weights, k)),
        false => core::array::from_fn(|k| load(args.x.input, k)),
    }
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

    /// The row that an edge may cut, and the first nonzero behind the edge.
    #[inline(always)]
    fn edge(&self, edge: Edge) -> (u32, u32) {
        match edge {
            Edge::Start => self.start(),
            Edge::End => (self.rows[1], self.nonzeros[1]),
        }
    }

    /// The first row that ends in it, and the first nonzero.
    #[inline(always)]
    pub fn start(&self) -> (u32, u32) {
        (self.rows[0], self.nonzeros[0])
    }

    /// The end of a piece that begins with this nonzero.
    #[inline(always)]
    pub fn piece_end(&self, nonzero: u32) -> u32 {
        nonzero.saturating_add(PIECE).min(self.nonzeros[1])
    }

    /// Rows that end in it.
    #[inline(always)]
    pub fn ends(&self) -> u32 {
        self.rows[1] - self.rows[0]
    }

    /// Whether rows alone end in it, of a matrix that may have no column.
    #[inline(always)]
    pub fn has_no_nonzeros(&self) -> bool {
        self.nonzeros[0] == self.nonzeros[1]
    }

    /// Whether it lies within one row.
    #[inline(always)]
    pub fn is_within_row(&self) -> bool {
        self.rows[0] == self.rows[1]
    }

    /// Threads for each row, of those that end in the tile and the one that does not.
    #[inline(always)]
    pub fn threads_per_row(&self) -> u32 {
        let rows = self.ends() + 1;
        if rows >= THREADS {
            return 1;
        }
        (1 << (THREADS / rows).ilog2()).min(WARP)
    }
}
