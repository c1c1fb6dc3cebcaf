//! One result of a whole array, in one launch.
//!
//! Formula: total = ⊕ᵢ lift(xᵢ), or ⊕ᵢ lift(xᵢ, yᵢ).
//!
//! Order: the array is cut into *rows* of [`BLOCK`] packs of 16 bytes, rows into *chunks*. Lane l of thread t
//! takes elements t·LANES + l of the chunk's rows, one after the other; then lanes of a pack, threads of a
//! warp (by halves), warps, and at the end chunks (thread t takes chunks t, t + [`BLOCK`], …). Chunk c is rows
//! c·R to (c+1)·R − 1, or with *interleaved* chunks every chunks-th row from c on. As chunks are as many as the
//! length says and not the grid, every grid and the CPU add up in the same order.
//!
//! Mapping: a block takes chunks block, block + blocks, …; it loads `IN_FLIGHT` packs per thread at a time.
//! The block that finishes last (a ticket tells) combines the chunks. Shared memory: [`SHARED_BYTES`].
//! Source: M. Harris, "Optimizing Parallel Reduction in CUDA"; the last block as in CUDA's
//! `threadFenceReduction` sample.
//!
//! [`SHARED_BYTES`]: super::verbs::SHARED_BYTES

use super::args::{ORDER_INTERLEAVED, ReduceArgs};
use super::element::Element;
use super::total::{Reduction, Total};
use super::verbs::{BLOCK, is_last, total_of_block, total_of_parts, write_total};
use crate::cta::{Cache, Cta};
use crate::scalar::Words;

/// Packs of each array that a thread has in flight.
const IN_FLIGHT: u64 = 4;
/// The most elements of a pack.
const MOST_LANES: usize = 4;

/// Where values come from.
pub trait Source<T: Element> {
    /// One value.
    type Value: Copy;
    /// Those of one load.
    type Pack: Copy;
    /// Loads in flight per thread.
    const LOADS: u64;
    /// The pack from element `i` on.
    fn pack<C: Cta>(cta: &C, args: &ReduceArgs<'_, T>, i: u64) -> Self::Pack;
    /// Value `lane` of a pack.
    fn lane(pack: &Self::Pack, lane: usize) -> Self::Value;
    /// Value `i`.
    fn one<C: Cta>(cta: &C, args: &ReduceArgs<'_, T>, i: u64) -> Self::Value;
}

/// The elements of x.
pub struct Elements;

impl<T: Element> Source<T> for Elements {
    type Value = T;
    type Pack = T::Pack;
    const LOADS: u64 = IN_FLIGHT;
    #[inline(always)]
    fn pack<C: Cta>(cta: &C, args: &ReduceArgs<'_, T>, i: u64) -> T::Pack {
        cta.load_pack(args.x, i as usize, Cache::Once)
    }
    #[inline(always)]
    fn lane(pack: &T::Pack, lane: usize) -> T {
        pack.as_ref()[lane]
    }
    #[inline(always)]
    fn one<C: Cta>(cta: &C, args: &ReduceArgs<'_, T>, i: u64) -> T {
        cta.load(args.x, i as usize, Cache::Once)
    }
}

/// The elements of x and y in pairs.
pub struct Pairs;

impl<T: Element> Source<T> for Pairs {
    type Value = (T, T);
    type Pack = (T::Pack, T::Pack);
    const LOADS: u64 = IN_FLIGHT / 2;
    #[inline(always)]
    fn pack<C: Cta>(cta: &C, args: &ReduceArgs<'_, T>, i: u64) -> (T::Pack, T::Pack) {
        let x = cta.load_pack(args.x, i as usize, Cache::Once);
        (x, cta.load_pack(args.y, i as usize, Cache::Once))
    }
    #[inline(always)]
    fn lane(pack: &(T::Pack, T::Pack), lane: usize) -> (T, T) {
        (pack.0.as_ref()[lane], pack.1.as_ref()[lane])
    }
    #[inline(always)]
    fn one<C: Cta>(cta: &C, args: &ReduceArgs<'_, T>, i: u64) -> (T, T) {
        let x = cta.load(args.x, i as usize, Cache::Once);
        (x, cta.load(args.y, i as usize, Cache::Once))
    }
}

/// The rows of one chunk.
#[derive(Clone, Copy)]
struct Rows {
    first: u64,
    stride: u64,
    /// The row after the last.
    end: u64,
}

#[inline(always)]
fn rows_of_chunk<T: Element>(args: &ReduceArgs<'_, T>, chunk: u64) -> Rows {
    let width = BLOCK as u64 * T::Pack::LANES as u64;
    let rows = args.len.div_ceil(width);
    if args.order == ORDER_INTERLEAVED {
        Rows {
            first: chunk,
            stride: args.chunks,
            end: rows,
        }
    } else {
        let first = chunk * args.rows_per_chunk;
        let end = first + args.rows_per_chunk;
        Rows {
            first,
            stride: 1,
            end: if end < rows { end } else { rows },
        }
    }
}

/// The body of every entry over whole arrays.
#[inline(always)]
pub fn reduce<C: Cta, T: Element, S: Source<T>, R: Reduction<S::Value>>(
    cta: &C,
    args: &ReduceArgs<'_, T>,
    reduction: R,
) {
    let mut chunk = cta.block() as u64;
    while chunk < args.chunks {
        let total = total_of_chunk::<C, T, S, R>(cta, args, reduction, rows_of_chunk(args, chunk));
        if cta.thread() == 0 {
            write_total(cta, args.partials, chunk, total);
        }
        chunk += cta.blocks() as u64;
    }
    if is_last(cta, args.tickets, 0, cta.blocks() as u64) {
        let own = (cta.thread() as u64, BLOCK as u64, args.chunks);
        let total: R::Total = total_of_parts(cta, args.partials, own, |chunk| chunk);
        let total = total_of_block(cta, total);
        if cta.thread() == 0 {
            write_total(cta, args.out, 0, total);
        }
    }
}

/// The total of a chunk, in thread 0.
#[inline(always)]
fn total_of_chunk<C: Cta, T: Element, S: Source<T>, R: Reduction<S::Value>>(
    cta: &C,
    args: &ReduceArgs<'_, T>,
    reduction: R,
    rows: Rows,
) -> R::Total {
    let lanes = T::Pack::LANES as u64;
    let width = BLOCK as u64 * lanes;
    let own = cta.thread() as u64 * lanes;
    let pivot = S::one(cta, args, rows.first * width);
    let mut slots = [reduction.start(); MOST_LANES];
    let take = |slots: &mut [R::Running; MOST_LANES], pack: &S::Pack, i: u64| {
        for (lane, slot) in slots.iter_mut().enumerate().take(T::Pack::LANES) {
            reduction.step(slot, S::lane(pack, lane), pivot, i + lane as u64);
        }
    };
    let whole = args.len / width;
    let end = if rows.end < whole { rows.end } else { whole };
    // The first row that has not been taken.
    let mut row = rows.first;
    let at = |row: u64, k: u64| row + k * rows.stride;
    while at(row, S::LOADS - 1) < end {
        // All loads before the first addition, none under a condition: those would wait for the one before.
        let mut held = [S::pack(cta, args, row * width + own); IN_FLIGHT as usize];
        for k in 1..S::LOADS {
            held[k as usize] = S::pack(cta, args, at(row, k) * width + own);
        }
        for k in 0..S::LOADS {
            take(&mut slots, &held[k as usize], at(row, k) * width + own);
        }
        row = at(row, S::LOADS);
    }
    while row < end {
        let pack = S::pack(cta, args, row * width + own);
        take(&mut slots, &pack, row * width + own);
        row += rows.stride;
    }
    if row < rows.end {
        for lane in 0..lanes {
            let i = row * width + own + lane;
            if i < args.len {
                let value = S::one(cta, args, i);
                reduction.step(&mut slots[lane as usize], value, pivot, i);
            }
        }
    }
    total_of_block(
        cta,
        total_of_pack::<T, S::Value, R>(reduction, slots, pivot),
    )
}

/// The total of a thread: its lanes by pairs.
#[inline(always)]
fn total_of_pack<T: Element, V: Copy, R: Reduction<V>>(
    reduction: R,
    slots: [R::Running; MOST_LANES],
    pivot: V,
) -> R::Total {
    let total = |lane: usize| reduction.finish(slots[lane], pivot);
    let low = total(0).with(total(1));
    if T::Pack::LANES == 4 {
        low.with(total(2).with(total(3)))
    } else {
        low
    }
}
