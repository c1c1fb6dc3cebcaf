//! Dense X (row-major) of very few columns, several right-hand sides: the fused product, a thread for each row.
//!
//! Formula: `W += α · Xᵀ( V ⊙ (X·Y − s) )` for up to B sides; W holds β·Z (or zero) before.
//!
//! Mapping: Y and a partial W of L columns and B sides stay in a thread's registers for the whole kernel; a thread takes
//! chunks of C neighbouring rows, which are whole packs of 16 bytes where X has exactly L columns and no gaps, and has M
//! chunks on their way while it works on M others. Nothing is summed over lanes before the end: what two columns are too
//! few for is everything else. 125,000,000 × 2 and eight sides of f32 take 0.68 ms on an H200 (one side 0.23), and 2.24 by
//! [`super::dense_split`], which leaves six of eight columns idle.
//!
//! Shared memory: W at the end (aggregation over the block). Result: when the kernel has ended. Guarantees: atomics add
//! to W in any order.
//!
//! Source: ours.

#![expect(
    clippy::needless_range_loop,
    reason = "iterators over registers put them into local memory"
)]

use super::Ends;
use super::dense::{DenseManyArgs, Walk};
use super::dense_split::{bound_registers, flush};
use crate::cta::{Cache, Cta};
use crate::fused::{Fused, Lanes};
use crate::scalar::{Real, Words};
use crate::verbs::lane;

/// A chunk of rows from `row` on, zero where the rows or the columns end.
#[inline(always)]
fn load<C: Cta, T: Real, const L: usize, const CHUNK: usize>(
    cta: &C,
    args: &DenseManyArgs<'_, T>,
    row: u64,
) -> [[T; L]; CHUNK] {
    const {
        assert!(
            (L * CHUNK).is_multiple_of(T::Pack::LANES),
            "chunks are whole packs"
        )
    };
    let (x, lanes) = (&args.x, T::Pack::LANES);
    let mut rows = [[T::ZERO; L]; CHUNK];
    let is_whole = x.ld == L as u64 && args.columns == L as u32;
    if is_whole && row + CHUNK as u64 <= x.rows as u64 {
        for first in (0..L * CHUNK).step_by(lanes) {
            let pack: T::Pack = cta.load_pack(x.x, row as usize * L + first, Cache::Once);
            for i in 0..lanes {
                rows[(first + i) / L][(first + i) % L] = pack.as_ref()[i];
            }
        }
        return rows;
    }
    for i in 0..CHUNK {
        let row = row + i as u64;
        for column in 0..L {
            if row < x.rows as u64 && (column as u32) < args.columns {
                let at = row * x.ld + args.first_column as u64 + column as u64;
                rows[i][column] = cta.load(x.x, at as usize, Cache::Keep);
            }
        }
    }
    rows
}

/// What the products of a row and all sides are multiplied by.
#[inline(always)]
fn multipliers<C: Cta, T: Real, const B: usize>(cta: &C, ends: &Ends<'_, T>, row: u64) -> [T; B] {
    if ends.sides.weights_stride == 1 {
        return [ends.multiplier::<C, Fused>(cta, row, 0); B];
    }
    core::array::from_fn(|side| ends.multiplier::<C, Fused>(cta, row, side as u32))
}

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
    // The last are for what a chunk needs besides.
    let words = (2 * L * B + 2 * R * L + 6 * B) * T::SIZE as usize / 4;
    bound_registers::<C, Lanes<1>>(cta, words);
    let ends = args.ends_of();
    let walk = Walk::of::<C, Lanes<1>, R>(cta, args.x.rows);
    let row_of = |first: u64, chunk: usize| {
        first + ((chunk as u32 * crate::cta::WARP + lane(cta)) * CHUNK as u32) as u64
    };
    let chunks = |first: u64| -> [[[T; L]; CHUNK]; M] {
        core::array::from_fn(|chunk| load(cta, args, row_of(first, chunk)))
    };
    let y: [[T; B]; L] = core::array::from_fn(|column| {
        if (column as u32) < args.columns {
            ends.input_of(cta, (args.first_column + column as u32) as u64)
        } else {
            [T::ZERO; B]
        }
    });
    let shifts: [T; B] = core::array::from_fn(|side| ends.shift::<C, Fused>(cta, side as u32));
    let mut w = [[T::ZERO; B]; L];
    let mut here = chunks(walk.first);
    walk.each(|first| {
        let next = chunks(first + walk.stride);
        for number in 0..M {
            for i in 0..CHUNK {
                let factors = multipliers(cta, &ends, row_of(first, number) + i as u64);
                add_row(&here[number][i], &y, (&shifts, &factors), &mut w);
            }
        }
        here = next;
    });
    flush::<C, T, Lanes<1>, 1, L, B>(cta, args, |column| column as u32, &w);
}

/// Adds a row's part to W.
#[inline(always)]
fn add_row<T: Real, const L: usize, const B: usize>(
    row: &[T; L],
    y: &[[T; B]; L],
    (shifts, factors): (&[T; B], &[T; B]),
    w: &mut [[T; B]; L],
) {
    for side in 0..B {
        let mut dot = T::ZERO;
        for column in 0..L {
            dot = row[column].fma(y[column][side], dot);
        }
        let p = factors[side] * (dot - shifts[side]);
        for column in 0..L {
            w[column][side] = row[column].fma(p, w[column][side]);
        }
    }
}
