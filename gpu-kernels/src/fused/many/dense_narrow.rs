//! Dense X (row-major) of few columns, several right-hand sides: the fused product, a thread for each row.
//!
//! Formula: `W += α · Xᵀ( V ⊙ (X·Y − s) )` for up to B sides; W holds β·Z (or zero) before.
//!
//! Mapping: Y and a partial W of L columns and B sides stay in a thread's registers for the whole kernel. A warp works on
//! tiles of rows, of which a thread has M chunks of neighbouring rows, each chunk whole packs of 16 bytes where X has L
//! columns. Nothing is summed over lanes before the end.
//!
//! Tiles are on their way by `cp.async` to slots of shared memory that belong to a warp. Where rows follow one another
//! without a gap a tile is one run of packs, whatever n is: its lanes copy neighbouring ones, and each reads its own rows.
//!
//! Instructions decide, those of a row besides its 2 · L · B multiply-adds: with rows in registers, copied from one step to
//! the next, a shift and a multiplier for each side and row, and places computed for each of them, two columns and eight
//! sides of f32 took 160 for a row where 32 are multiply-adds, which is what 125,000,000 rows had to wait for (0.68 ms on an
//! H200, one side 0.24; 2.24 by [`super::dense_split`], which left six of eight columns idle). Here they are 49, eight of
//! which move the shifts out of uniform registers, and with eight columns 157 for 128: 0.21 and 0.17 ms of instructions,
//! where reading takes 0.22. Both together are 0.249 ms, and 0.238 with eight columns (split among lanes 0.47).
//!
//! Shared memory: those slots; W at the end (aggregation over the block). Result: when the kernel has ended. Guarantees:
//! atomics add to W in any order.
//!
//! Source: ours.

#![expect(
    clippy::needless_range_loop,
    reason = "iterators over registers put them into local memory"
)]

use super::Ends;
use super::dense::{DenseManyArgs, Walk};
use super::dense_split::{LANES_THREADS, flush};
use super::narrow_tiles::{STEPS, Tiles};
use crate::cta::{Cache, Cta, WARP};
use crate::fused::dense::ring::wait;
use crate::fused::{Fused, Lanes};
use crate::scalar::{Real, Words};
use crate::verbs::lane;

/// The product, n ≤ L. R is M chunks of rows.
#[inline(always)]
pub(super) fn accumulate<
    C,
    T,
    const L: usize,
    const B: usize,
    const CHUNK: usize,
    const M: usize,
    const R: usize,
>(
    cta: &C,
    args: &DenseManyArgs<'_, T>,
) where
    C: Cta,
    T: Real,
{
    const { assert!(CHUNK * M == R, "R is all chunks' rows") };
    const {
        assert!(
            (L * CHUNK).is_multiple_of(T::Pack::LANES),
            "chunks are whole packs"
        )
    };
    bound_registers(cta, 2 * L * B * T::SIZE as usize / 4);
    let mut sums = Sums::<T, L, B>::new(cta, args);
    let columns = args.columns;
    // One weight for all sides, or none.
    let is_simple = args.sides.weights_stride == 1 || !args.x.weights.is_some();
    if is_simple && columns == L as u32 && args.x.ld == L as u64 {
        add_tiles::<C, T, L, B, CHUNK, M, R, true>(cta, &mut sums);
    } else {
        add_tiles::<C, T, L, B, CHUNK, M, R, false>(cta, &mut sums);
    }
    // W takes the place of the rows.
    wait(cta, 0);
    cta.sync();
    flush::<C, T, Lanes<1>, 1, L, B>(cta, args, |column| column as u32, &sums.w);
}

/// As many registers as leave room for warps enough, of a thread with this many words in Y and W.
#[inline(always)]
fn bound_registers<C: Cta>(cta: &C, words: usize) {
    match words {
        ..=32 => cta.launch_bounds::<LANES_THREADS, 5>(),
        33..=64 => cta.launch_bounds::<LANES_THREADS, 4>(),
        _ => cta.launch_bounds::<LANES_THREADS, 3>(),
    }
}

/// The rows of a warp: all whole tiles that fall to it, then what it has of the last.
///
/// PLAIN rows have L columns and nothing between them, and one weight for all sides or none.
#[inline(always)]
fn add_tiles<
    C,
    T,
    const L: usize,
    const B: usize,
    const CHUNK: usize,
    const M: usize,
    const R: usize,
    const PLAIN: bool,
>(
    cta: &C,
    sums: &mut Sums<'_, '_, T, L, B>,
) where
    C: Cta,
    T: Real,
{
    let args = sums.args;
    let tiles = Tiles::<T, L, R, PLAIN>::new(cta, args);
    let walk = Walk::of::<C, Lanes<1>, R>(cta, args.x.rows);
    for turn in 0..cta.fresh(STEPS - 1) {
        tiles.ask(cta, walk.first + turn as u64 * walk.stride, turn);
    }
    let ahead = (STEPS - 1) as u64 * walk.stride;
    let row_of = |i: usize| {
        let chunk = (i / CHUNK) as u32 * WARP + lane(cta);
        (chunk * CHUNK as u32) as u64 + (i % CHUNK) as u64
    };
    let (mut first, mut slot) = (walk.first, 0);
    while first < tiles.end() {
        let weights: [T; R] = core::array::from_fn(|i| sums.weight(cta, first + row_of(i)));
        wait(cta, STEPS as usize - 2);
        cta.sync_warp();
        // The slot of the step before: every lane has read it, since it is past the warp's barrier.
        tiles.ask(
            cta,
            first + ahead,
            if slot == 0 { STEPS - 1 } else { slot - 1 },
        );
        for number in 0..M {
            let chunk = tiles.read::<C, CHUNK>(cta, slot, number as u32);
            for i in 0..CHUNK {
                let at = number * CHUNK + i;
                let of_row = (first + row_of(at), weights[at]);
                sums.add::<C, PLAIN>(cta, &chunk[i], of_row);
            }
        }
        first += walk.stride;
        slot = if slot + 1 == STEPS { 0 } else { slot + 1 };
    }
    // Whoever comes to the last rows: no weight would make up for an infinite shift where there is no row.
    for i in 0..cta.fresh(R as u32) as usize {
        let row = first + row_of(i);
        if row < args.x.rows as u64 {
            let weight = sums.weight(cta, row);
            let elements = tiles.load(cta, row);
            sums.add::<C, false>(cta, &elements, (row, weight));
        }
    }
}

/// What a thread has in registers all the time.
struct Sums<'a, 'b, T, const L: usize, const B: usize> {
    args: &'b DenseManyArgs<'a, T>,
    ends: Ends<'a, T>,
    y: [[T; B]; L],
    /// −s.
    shifts: [T; B],
    w: [[T; B]; L],
}

impl<'a, 'b, T: Real, const L: usize, const B: usize> Sums<'a, 'b, T, L, B> {
    #[inline(always)]
    fn new<C: Cta>(cta: &C, args: &'b DenseManyArgs<'a, T>) -> Self {
        let ends = args.ends_of();
        let y = core::array::from_fn(|column| {
            if (column as u32) < args.columns {
                ends.input_of(cta, (args.first_column + column as u32) as u64)
            } else {
                [T::ZERO; B]
            }
        });
        let shifts = core::array::from_fn(|side| -ends.shift::<C, Fused>(cta, side as u32));
        Sums {
            args,
            ends,
            y,
            shifts,
            w: [[T::ZERO; B]; L],
        }
    }

    /// What all sides of a row are multiplied by.
    #[inline(always)]
    fn weight<C: Cta>(&self, cta: &C, row: u64) -> T {
        let weights = self.ends.weights;
        match self.ends.sides.weights_stride == 1 && weights.is_some() {
            true => cta.load(weights, row as usize, Cache::Once),
            false => T::ONE,
        }
    }

    /// Adds a row, whose weight for all sides comes with it.
    #[inline(always)]
    fn add<C: Cta, const PLAIN: bool>(&mut self, cta: &C, x: &[T; L], (row, weight): (u64, T)) {
        let mut p = self.shifts;
        for column in 0..L {
            for side in 0..B {
                p[side] = x[column].fma(self.y[column][side], p[side]);
            }
        }
        if PLAIN || self.ends.sides.weights_stride == 1 {
            if self.ends.weights.is_some() {
                p.iter_mut().for_each(|p| *p = *p * weight);
            }
        } else if self.ends.weights.is_some() {
            self.weigh(cta, row, &mut p);
        }
        for column in 0..L {
            for side in 0..B {
                self.w[column][side] = x[column].fma(p[side], self.w[column][side]);
            }
        }
    }

    /// Where every side has a weight of its own.
    #[inline(always)]
    fn weigh<C: Cta>(&self, cta: &C, row: u64, p: &mut [T; B]) {
        let ends = self.ends.fresh(cta);
        let start = (row * ends.sides.weights_stride as u64 + ends.sides.first as u64) as usize;
        for side in 0..B {
            if (side as u32) < ends.sides.count {
                p[side] = p[side] * cta.load(ends.weights, start + side, Cache::Once);
            }
        }
    }
}
