//! R of one tall matrix from AᵀA, in one read of A: products and their sums in f64, on tensor cores (A in f32 alone).
//!
//! Products of two f32 are exact in f64, and squares of f32 stay in its range. R with RᵀR = AᵀA + E is that of A + ΔA; where
//! ‖ΔA‖ is not known to be below a unit of f32 ([`triangle`] says how), nothing is written but the verdict [`REFUSED`], and the
//! launches of [`Dressed`](super::QrVariant::Dressed) behind this one, which else do nothing, factor A by reflectors.
//!
//! | step | what | where |
//! |---|---|---|
//! | 1 | 16 rows of a warp, three times as many ahead | asynchronous copies; but for `Rows` each lane reads what it copied itself: no barrier |
//! | 2 | their products: six instructions, the upper tiles of 16 × 8 of AᵀA | registers; one register is of both factors |
//! | 3 | sums of warps, of blocks, of groups of [`GROUP`] blocks, each in the order of its members | shared memory; `sums` |
//! | 4 | LDLᵀ, R and the verdict | the block that comes last |
//!
//! Mapping: with g = lane / 4 and t = lane mod 4, a lane has columns 4g to 4g + 3 of four of the 16 rows: what lies side by
//! side is one pack. Column 4g + c is number 8c + g of the products. Which four rows is of no consequence to a sum, and follows
//! from how A lies ([`Way`]). Warps take turns.
//!
//! | how A lies | a copy of a warp | rows of a lane |
//! |---|---|---|
//! | [`Rows`] | four rows of 128 bytes, eight lanes each | t, t + 4, t + 8, t + 12 |
//! | [`Columns`] | 64 bytes of eight columns | 4t to 4t + 3 |
//! | [`Elements`] | four rows of eight columns, an element each | as `Rows` |
//!
//! Rows that are dressed ([`Dress`](super::Dress)) change on their way from shared memory to the products, in f64.
//!
//! Shared memory: [`STAGES`] × 64 (80) bytes a thread; afterwards the products of all warps, then those of the whole.
//! Guarantees: the same bits on every run of one grid.
//!
//! Source: A. Stathopoulos and K. Wu, A block orthogonalization procedure with constant synchronization requirements, 2002 (R of
//! a tall matrix from AᵀA); I. Yamazaki, S. Tomov, J. Dongarra, Mixed-precision Cholesky QR factorization, 2015.

mod sums;
mod triangle;
mod ways;

pub use ways::{Columns, Elements, Rows, Way};

use super::args::QrArgs;
use crate::cta::{Cache, Cta, Shared, WARP};
use crate::scalar::Real;
use crate::verbs::{global_warp, global_warps, lane};

/// Threads of a block.
pub const GRAM_BLOCK: u32 = 256;
/// Rows that a warp multiplies at once.
pub const GRAM_ROWS: u32 = 16;
/// The most columns.
pub const GRAM_COLUMNS: u32 = 32;
/// Blocks whose sums one block adds.
pub const GROUP: u32 = 20;
/// [`QrArgs::verdict`], first word: R is not known to be right, and was not written.
pub const REFUSED: u32 = 4;

/// Copies of 16 rows that are on their way, with the one that is read.
const STAGES: u32 = 4;
const WARPS: u32 = GRAM_BLOCK / WARP;
/// Tiles of 16 × 8 with an element that counts: those of the first 16 rows, and of the others.
const TILES: usize = 6;
const SECOND: usize = 2;
/// Sums of a warp, and of a block.
const SUMS: u32 = TILES as u32 * 4 * WARP;
/// Those of a thread, where a block has them once.
const OWN: usize = (SUMS / GRAM_BLOCK) as usize;

/// Packs of a lane and 16 rows: of A, and of the roots of weights.
const fn packs(is_dressed: bool) -> u32 {
    4 + is_dressed as u32
}

/// Shared memory of a block.
pub const fn gram_shared_bytes(is_dressed: bool) -> u32 {
    STAGES * packs(is_dressed) * 16 * GRAM_BLOCK
}

/// Groups of blocks.
const fn groups(blocks: u32) -> u32 {
    blocks.div_ceil(GROUP)
}

/// Elements of [`QrArgs::sums`] for a grid.
pub const fn gram_sums(blocks: u32) -> u64 {
    (blocks + groups(blocks)) as u64 * SUMS as u64
}

/// Words of [`QrArgs::verdict`] for a grid: the verdict, then tickets, which are 0 before the first launch.
pub const fn gram_words(blocks: u32) -> u64 {
    groups(blocks) as u64 + 2
}

/// Sums of the products of 16 × 8.
type Sums = [[f64; 4]; TILES];

/// A warp's way through A.
pub struct Walk {
    lane: u32,
    /// Rows, and columns of A itself.
    rows: u32,
    cols: u32,
    /// Packs of the warp, from stage to stage.
    ring: Shared<f32>,
    /// Packs of a lane in a stage.
    packs: u32,
}

impl Walk {
    #[inline(always)]
    fn of<C: Cta>(cta: &C, args: &QrArgs<'_, f32>, is_dressed: bool) -> Walk {
        let packs = packs(is_dressed);
        let elements = STAGES * packs * WARP * 4;
        let warp = cta.thread() / WARP;
        Walk {
            lane: lane(cta),
            rows: args.rows,
            cols: args.cols - args.dress.targets.is_some() as u32,
            ring: Shared::at(warp * elements * 4, elements),
            packs,
        }
    }

    /// Where the packs of stage `stage` begin.
    #[inline(always)]
    fn first(&self, stage: u32) -> usize {
        (stage * self.packs * WARP * 4) as usize
    }

    /// Where pack `i` of the lane in stage `stage` begins.
    #[inline(always)]
    fn place(&self, stage: u32, i: u32) -> usize {
        self.first(stage) + ((i * WARP + self.lane) * 4) as usize
    }

    /// The lane's first column.
    #[inline(always)]
    fn column(&self) -> u32 {
        self.lane / 4 * 4
    }
}

/// See the head of the file.
#[inline(always)]
pub fn gram<C: Cta, W: Way, const DRESSED: bool>(cta: &C, args: &QrArgs<'_, f32>) {
    cta.launch_bounds::<GRAM_BLOCK, 2>();
    let walk = Walk::of(cta, args, DRESSED);
    let sums = products::<C, W, DRESSED>(cta, args, &walk);
    let sums = sums::of_block(cta, &sums);
    if let Some(sums) = sums::of_grid(cta, args, sums) {
        triangle::triangle(cta, args, &sums);
    }
}

/// The products of the warp's rows.
#[inline(always)]
#[track_caller]
fn products<C: Cta, W: Way, const DRESSED: bool>(
    cta: &C,
    args: &QrArgs<'_, f32>,
    walk: &Walk,
) -> Sums {
    let (all, step) = (walk.rows.div_ceil(GRAM_ROWS), global_warps(cta));
    let means = if DRESSED {
        means(cta, args, walk)
    } else {
        [0.0; 4]
    };
    let mut sums = [[0.0; 4]; TILES];
    let (mut chunk, mut stage) = (global_warp(cta), 0);
    for ahead in 0..STAGES - 1 {
        begin::<C, W, DRESSED>(
            cta,
            args,
            walk,
            (chunk as u64 + ahead as u64 * step as u64, ahead),
        );
    }
    while chunk < all {
        cta.copies_done::<{ STAGES - 2 }>();
        if W::IS_SHARED {
            cta.sync_warp();
        }
        let mut x = staged::<C, W>(cta, walk, stage);
        if DRESSED {
            dress::<C, W>(cta, args, walk, (chunk, stage), &means, &mut x);
        }
        let ahead = (stage + STAGES - 1) % STAGES;
        let next = chunk as u64 + (STAGES - 1) as u64 * step as u64;
        begin::<C, W, DRESSED>(cta, args, walk, (next, ahead));
        multiply(cta, &x, &mut sums);
        stage = (stage + 1) % STAGES;
        // Past the last row where the sum has no room.
        chunk = chunk.saturating_add(step);
    }
    cta.copies_done::<0>();
    sums
}

/// Begins to copy chunk number `chunk`, where there is one. A group of copies in any case.
#[inline(always)]
#[track_caller]
fn begin<C: Cta, W: Way, const DRESSED: bool>(
    cta: &C,
    args: &QrArgs<'_, f32>,
    walk: &Walk,
    (chunk, stage): (u64, u32),
) {
    if chunk * (GRAM_ROWS as u64) < walk.rows as u64 {
        let first = chunk as u32 * GRAM_ROWS;
        W::copy::<C, DRESSED>(cta, args, walk, (first, stage));
        if DRESSED && args.dress.roots.is_some() {
            for step in 0..4 {
                let row = first + W::row(walk.lane, step);
                let to = walk.place(stage, 4) + step as usize;
                let is_there = row < walk.rows;
                cta.copy_one(walk.ring, to, args.dress.roots, row as usize, is_there);
            }
        }
    }
    cta.end_copies();
}

/// Column c of the lane in its row s, as `[c][s]`.
#[inline(always)]
#[track_caller]
fn staged<C: Cta, W: Way>(cta: &C, walk: &Walk, stage: u32) -> [[f64; 4]; 4] {
    let packs: [[f32; 4]; 4] =
        core::array::from_fn(|i| cta.shared_read_pack(walk.ring, W::place(walk, stage, i as u32)));
    core::array::from_fn(|c| {
        core::array::from_fn(|s| {
            if W::BY_COLUMN {
                packs[c][s]
            } else {
                packs[s][c]
            }
            .to_f64()
        })
    })
}

/// The means of the lane's columns; 0 for those that have none.
#[inline(always)]
#[track_caller]
fn means<C: Cta>(cta: &C, args: &QrArgs<'_, f32>, walk: &Walk) -> [f64; 4] {
    core::array::from_fn(|c| {
        let col = walk.column() + c as u32;
        match args.dress.means.is_some() && col < walk.cols {
            true => cta
                .load(args.dress.means, col as usize, Cache::Keep)
                .to_f64(),
            false => 0.0,
        }
    })
}

/// Rows as least squares wants them; rows that are none stay 0.
#[inline(always)]
#[track_caller]
fn dress<C: Cta, W: Way>(
    cta: &C,
    args: &QrArgs<'_, f32>,
    walk: &Walk,
    (chunk, stage): (u32, u32),
    means: &[f64; 4],
    x: &mut [[f64; 4]; 4],
) {
    let roots: [f32; 4] = match args.dress.roots.is_some() {
        true => cta.shared_read_pack(walk.ring, walk.place(stage, 4)),
        false => core::array::from_fn(|s| {
            let row = chunk * GRAM_ROWS + W::row(walk.lane, s as u32);
            if row < walk.rows { 1.0 } else { 0.0 }
        }),
    };
    for (column, mean) in x.iter_mut().zip(means) {
        for (value, root) in column.iter_mut().zip(&roots) {
            *value = (*value - mean) * root.to_f64();
        }
    }
}

/// Adds the products of 16 rows.
#[inline(always)]
#[track_caller]
fn multiply<C: Cta>(cta: &C, x: &[[f64; 4]; 4], sums: &mut Sums) {
    for half in 0..2 {
        let rows: [f64; 8] = core::array::from_fn(|i| x[2 * half + i % 2][i / 2]);
        let (first, tiles) = if half == 0 { (0, SECOND) } else { (SECOND, 4) };
        for tile in 0..tiles {
            sums[first + tile] = cta.multiply_f64(rows, x[tile], sums[first + tile]);
        }
    }
}
