//! Dense X (row-major) with short rows that start anywhere: tiles of whole rows through shared memory.
//!
//! Formula: as [`crate::fused::dense`], [`crate::fused::Product::Fused`]. Rows follow one another without a gap, or n is their
//! distance's last multiple of the pack: X is one stream, copied 16 bytes at a time whatever n is.
//!
//! Mapping: a block takes a tile of rows, R for each team, and has the next ones copied meanwhile by `cp.async` into
//! [`STAGES`] places that take turns, one barrier for a tile. A team of one or two threads owns a row; thread j has the
//! columns from j · K packs on, with its parts of y and w in registers. Neighbouring threads read words that are a row
//! apart, in 32 different banks where a row is an odd number of packs; for two threads where K is 16 modulo 32 (of
//! pairs, and of f64: 8 modulo 16) as well.
//!
//! Shared memory: [`STAGES`] tiles of rows. Result: in w when the kernel has ended. Guarantees: as
//! [`crate::fused::dense`].
//!
//! Source: ours; the stages are those of matrix products.

use crate::cta::{Cta, Shared};
use crate::fused::dense::DenseArgs;
use crate::fused::dense::flush::flush;
use crate::fused::dense::load::{Columns, load_vector};
use crate::fused::dense::step::{TeamStep, Weigh};
use crate::fused::{Fused, Team};
use crate::scalar::{Pack, Real, Words};

/// Tiles in shared memory: one that is worked on, two on their way.
pub(crate) const STAGES: u32 = 3;

/// Elements that a thread holds of its rows between their two uses; where there are more it reads them again.
const HELD: usize = 36;

/// Threads of a block at most: a thread has 128 registers. (Without that ptxas takes 143 for 25 columns, which leaves an
/// SM of an H200 too few warps: 10,000,000 × 25 in 0.32 ms.)
pub(crate) const THREADS: u32 = 512;

/// Bytes of a row in a thread up to which 128 registers are enough.
const NARROW: usize = 128;

/// Neighbouring elements that are read from shared memory together.
pub(crate) trait Piece<T: Real>: Pack<T> {
    /// Reads those from element `i` on, a multiple of the piece.
    fn read<C: Cta>(cta: &C, from: Shared<T>, i: usize) -> Self;
}

impl<T: Real> Piece<T> for [T; 1] {
    #[inline(always)]
    fn read<C: Cta>(cta: &C, from: Shared<T>, i: usize) -> Self {
        [cta.shared_read(from, i)]
    }
}

impl Piece<f32> for [f32; 2] {
    #[inline(always)]
    fn read<C: Cta>(cta: &C, from: Shared<f32>, i: usize) -> Self {
        let pairs = Shared::<u64>::at(from.byte(), from.len() / 2);
        let bits = cta.shared_read(pairs, i / 2);
        [
            f32::from_bits(bits as u32),
            f32::from_bits((bits >> 32) as u32),
        ]
    }
}

impl Piece<f32> for [f32; 4] {
    #[inline(always)]
    fn read<C: Cta>(cta: &C, from: Shared<f32>, i: usize) -> Self {
        cta.shared_read_pack(from, i)
    }
}

/// The tiles of X, and where they are put.
struct Tiles<'a, 'b, T> {
    args: &'b DenseArgs<'a, T>,
    /// Elements of a tile.
    len: u32,
}

impl<T: Real> Tiles<'_, '_, T> {
    #[inline(always)]
    fn stage(&self, turn: u32) -> Shared<T> {
        Shared::at(turn % STAGES * self.len * T::SIZE, self.len)
    }

    /// Begins to copy a tile, as far as it is there, to the stage of a turn.
    #[inline(always)]
    fn ask<C: Cta>(&self, cta: &C, tile: u64, turn: u32) {
        let lanes = T::Pack::LANES;
        let (start, to) = (tile * self.len as u64, self.stage(turn));
        let all = self.args.rows as u64 * self.args.ld;
        let left = all.saturating_sub(start).min(self.len as u64) as usize;
        let mut i = cta.thread() as usize * lanes;
        while i < left {
            let present = (left - i).min(lanes);
            cta.copy_pack(to, i, self.args.x, start as usize + i, present);
            i += cta.threads() as usize * lanes;
        }
        cta.end_copies();
    }
}

/// A thread's pieces of R rows of a tile, zero where a row or the rows end.
struct Rows {
    /// The thread's first element of its team's first row in the tile.
    at: usize,
    /// From one of its team's rows to the next.
    step: usize,
    /// The thread's first column.
    column: u32,
    cols: u32,
    /// Which of the R rows are there: those below.
    present: u32,
}

impl Rows {
    #[inline(always)]
    fn read<C, T, P, const K: usize, const R: usize>(
        &self,
        cta: &C,
        stage: Shared<T>,
    ) -> [[P; K]; R]
    where
        C: Cta,
        T: Real,
        P: Piece<T>,
    {
        let mut rows = [[P::ZERO; K]; R];
        for (i, row) in rows.iter_mut().enumerate() {
            for (k, piece) in row.iter_mut().enumerate() {
                let column = self.column + (k * P::LANES) as u32;
                // In one condition: a branch for every row would have its reads wait for those of the row before.
                if column < self.cols && (i as u32) < self.present {
                    *piece = P::read(cta, stage, self.at + i * self.step + k * P::LANES);
                }
            }
        }
        rows
    }
}

/// [`crate::fused::Product::Fused`], n ≤ size · K packs.
#[inline(always)]
pub(crate) fn accumulate<C, T, P, G, const K: usize, const R: usize>(
    cta: &C,
    args: &DenseArgs<'_, T>,
) where
    C: Cta,
    T: Real,
    P: Piece<T>,
    G: Team,
{
    let mut step = Weigh::<T, Fused>::new(args);
    accumulate_rows::<C, T, P, G, _, K, R>(cta, args, &mut step);
}

/// Walks the tiles, adding each row times its factor to w.
#[inline(always)]
fn accumulate_rows<C, T, P, G, S, const K: usize, const R: usize>(
    cta: &C,
    args: &DenseArgs<'_, T>,
    step: &mut S,
) where
    C: Cta,
    T: Real,
    P: Piece<T>,
    G: Team,
    S: TeamStep<T>,
{
    if K * P::LANES * T::SIZE as usize <= NARROW {
        cta.launch_bounds::<THREADS, 1>();
    }
    let group_rows = R as u32 * G::TEAMS;
    let tile_rows = (G::groups(cta) * group_rows) as u64;
    let tiles = Tiles {
        args,
        len: tile_rows as u32 * args.ld as u32,
    };
    let columns = Columns::run(G::rank(cta) * (K * P::LANES) as u32, P::LANES as u32);
    let slices = args.slices(cta.blocks());
    let mut slice = cta.block();
    while slice < slices {
        // What the slice before came to has been read.
        cta.sync();
        let place = (slice, slices);
        let w = add_tiles::<C, T, P, G, S, K, R>(cta, args, step, (&tiles, &columns, place));
        flush::<C, T, P, G, K>(cta, args, (0, slice), &columns, &w);
        slice += cta.blocks();
    }
}

/// What the tiles of a slice come to in this thread's columns.
#[inline(always)]
fn add_tiles<C, T, P, G, S, const K: usize, const R: usize>(
    cta: &C,
    args: &DenseArgs<'_, T>,
    step: &mut S,
    (tiles, columns, (slice, slices)): (&Tiles<'_, '_, T>, &Columns, (u32, u32)),
) -> [P; K]
where
    C: Cta,
    T: Real,
    P: Piece<T>,
    G: Team,
    S: TeamStep<T>,
{
    let group_rows = R as u32 * G::TEAMS;
    let tile_rows = (G::groups(cta) * group_rows) as u64;
    let (mut tile, stride) = (slice as u64, slices as u64);
    for turn in 0..STAGES - 1 {
        tiles.ask(cta, tile + turn as u64 * stride, turn);
    }
    step.open(cta);
    let y: [P; K] = load_vector(cta, args.input, &columns.fresh(cta), args.cols);
    let mut w = [P::ZERO; K];
    let own = G::group(cta) * group_rows + G::team(cta);
    let mut turn = 0;
    while tile * tile_rows < args.rows as u64 {
        cta.copies_done::<{ STAGES - 2 }>();
        // Also: everyone has done with the stage that is loaded next.
        cta.sync();
        tiles.ask(cta, tile + (STAGES - 1) as u64 * stride, turn + STAGES - 1);
        let first = tile * tile_rows + (G::group(cta) * group_rows) as u64;
        let left = (args.rows as u64).saturating_sub(tile * tile_rows + own as u64);
        let rows = Rows {
            at: own as usize * args.ld as usize + columns.at(0) as usize,
            step: G::TEAMS as usize * args.ld as usize,
            column: columns.at(0),
            cols: args.cols,
            present: left.min(tile_rows).div_ceil(G::TEAMS as u64) as u32,
        };
        add_rows::<C, T, P, G, S, K, R>(cta, step, (&rows, tiles.stage(turn), first), &y, &mut w);
        turn += 1;
        tile += stride;
    }
    cta.copies_done::<0>();
    w
}

/// Adds the R rows of a team, each times its factor, to w.
#[inline(always)]
fn add_rows<C, T, P, G, S, const K: usize, const R: usize>(
    cta: &C,
    step: &mut S,
    (rows, stage, first): (&Rows, Shared<T>, u64),
    y: &[P; K],
    w: &mut [P; K],
) where
    C: Cta,
    T: Real,
    P: Piece<T>,
    G: Team,
    S: TeamStep<T>,
{
    let early = step.early::<C, G, R>(cta, first);
    let held: [[P; K]; R] = rows.read(cta, stage);
    let mut dots = [T::ZERO; R];
    for (row, dot) in held.iter().zip(&mut dots) {
        for (x, y) in row.iter().zip(y) {
            *dot = x.dot(y, *dot);
        }
    }
    let dots = G::sum(cta, dots, Shared::at(0, 0), 0);
    let ready = step.ready::<C, G, R>(cta, first, dots, early);
    let held = if R * K * P::LANES <= HELD {
        held
    } else {
        rows.read(cta, stage)
    };
    for (i, row) in held.iter().enumerate() {
        let p = step.factor(&ready, i);
        for (x, w) in row.iter().zip(w.iter_mut()) {
            x.scale_add(p, w);
        }
    }
}
