//! One result per part of an array: per segment (rows are segments of equal length), per column.
//!
//! **Segments.** Formula: `total[s]` = ⊕ᵢ lift(xᵢ), i from `offsets[s]` to `offsets[s + 1]` − 1, or from s·pitch to
//! s·pitch + cols − 1. A team of 1 to 32 lanes of a warp, or of [`BLOCK`] threads, takes a segment; thread t takes elements t,
//! t + team, … one after the other, then halves of the team's lanes are combined, then warps. Indices count from the segment's
//! start.
//!
//! **Columns** of a row-major matrix. Formula: `total[j] = ⊕ᵢ lift(x[i][j])`. Rows are cut into *chunks*, columns
//! into *tiles* of `tile` (a power of two up to 32). Lane l of a warp takes column l mod tile; the 256 / tile
//! threads of a column take rows s, s + 256/tile, … of the chunk; then halves of warps, then warps. The block
//! that finishes a tile last combines the tile's chunks in the same way.
//!
//! The order hangs on shapes alone: every grid and the CPU get the same bits. Shared memory:
//! [`SHARED_BYTES`](super::verbs::SHARED_BYTES), for columns [`COLUMN_SHARED_BYTES`].

use super::args::ReduceArgs;
use super::element::Element;
use super::total::{MOST_WORDS, Reduction, Total};
use super::verbs::{
    BLOCK, WARPS, is_last, total_of_block, total_of_lanes, total_of_parts, total_of_team,
    write_total,
};
use crate::cta::{Cache, Cta, Shared, WARP};
use crate::verbs::{global_warp, global_warps, lane};

/// Loads that a thread has in flight.
const IN_FLIGHT: usize = 4;
/// The same of lanes, which have hardly more elements of a segment than that.
const OF_LANES: usize = 8;
/// Totals of the columns of each warp, above what all kernels of the family have.
pub const COLUMN_SHARED_BYTES: u32 =
    super::verbs::SHARED_BYTES + WARPS * WARP * MOST_WORDS as u32 * 8;

/// First element of segment `s`, and the one after its last.
#[inline(always)]
fn bounds<C: Cta, T: Element>(cta: &C, args: &ReduceArgs<'_, T>, s: u64) -> (u64, u64) {
    if args.offsets.is_some() {
        let start = cta.load(args.offsets, s as usize, Cache::Keep);
        (start, cta.load(args.offsets, s as usize + 1, Cache::Keep))
    } else {
        (s * args.pitch, s * args.pitch + args.cols)
    }
}

/// What one thread takes of values `first`, `first + stride`, … below `count`: value i is `load(i)`, and its index is
/// `base + i`.
#[inline(always)]
#[track_caller]
fn total_of_thread<T: Element, R: Reduction<T>, const IN_FLIGHT: usize>(
    reduction: R,
    (first, stride, count): (u64, u64, u64),
    base: u64,
    load: impl Fn(u64) -> T,
) -> R::Total {
    if first >= count {
        return R::Total::NONE;
    }
    let pivot = load(0);
    let mut running = reduction.start();
    let mut i = first;
    while i + (IN_FLIGHT as u64 - 1) * stride < count {
        let mut held = [pivot; IN_FLIGHT];
        for (k, held) in held.iter_mut().enumerate() {
            *held = load(i + k as u64 * stride);
        }
        for (k, held) in held.into_iter().enumerate() {
            reduction.step(&mut running, held, pivot, base + i + k as u64 * stride);
        }
        i += IN_FLIGHT as u64 * stride;
    }
    // The rest is on its way together as well.
    let mut held = [pivot; IN_FLIGHT];
    for (k, held) in held.iter_mut().enumerate() {
        if i + (k as u64) * stride < count {
            *held = load(i + k as u64 * stride);
        }
    }
    for (k, held) in held.into_iter().enumerate() {
        let at = i + k as u64 * stride;
        if at < count {
            reduction.step(&mut running, held, pivot, base + at);
        }
    }
    reduction.finish(running, pivot)
}

/// `tile` lanes per segment: a power of two up to 32.
#[inline(always)]
pub fn by_lanes<C: Cta, T: Element, R: Reduction<T>>(
    cta: &C,
    args: &ReduceArgs<'_, T>,
    reduction: R,
) {
    let (team, lane) = (args.tile, lane(cta));
    let of_warp = (WARP / team) as u64;
    let mut first = global_warp(cta) as u64 * of_warp;
    while first < args.parts {
        let s = first + (lane / team) as u64;
        let is_there = s < args.parts;
        let (start, end) = if is_there {
            bounds(cta, args, s)
        } else {
            (0, 0)
        };
        let own = ((lane % team) as u64, team as u64, end - start);
        // Lanes of several instructions share a line.
        let load = |i: u64| cta.load(args.x, (start + i) as usize, Cache::Keep);
        let total = total_of_thread::<T, R, OF_LANES>(reduction, own, 0, load);
        let total = total_of_team(cta, total, team);
        if is_there && lane.is_multiple_of(team) {
            write_total(cta, args.out, s, total);
        }
        first += global_warps(cta) as u64 * of_warp;
    }
}

/// A block per segment.
#[inline(always)]
pub fn by_blocks<C: Cta, T: Element, R: Reduction<T>>(
    cta: &C,
    args: &ReduceArgs<'_, T>,
    reduction: R,
) {
    let mut s = cta.block() as u64;
    while s < args.parts {
        let (start, end) = bounds(cta, args, s);
        let own = (cta.thread() as u64, BLOCK as u64, end - start);
        let load = |i: u64| cta.load(args.x, (start + i) as usize, Cache::Once);
        let total = total_of_thread::<T, R, IN_FLIGHT>(reduction, own, 0, load);
        let total = total_of_block(cta, total);
        if cta.thread() == 0 {
            write_total(cta, args.out, s, total);
        }
        s += cta.blocks() as u64;
    }
}

/// Which columns and rows a thread takes.
#[derive(Clone, Copy)]
struct Place {
    column: u64,
    /// Its number among the threads of its column.
    slot: u64,
    /// Threads of a column.
    slots: u64,
    is_inside: bool,
}

/// All columns.
#[inline(always)]
pub fn by_columns<C: Cta, T: Element, R: Reduction<T>>(
    cta: &C,
    args: &ReduceArgs<'_, T>,
    reduction: R,
) {
    let tile = args.tile as u64;
    let tiles = args.cols.div_ceil(tile);
    let mut item = cta.block() as u64;
    while item < args.chunks * tiles {
        let (chunk, number) = (item / tiles, item % tiles);
        let place = place(cta, args, number);
        let first = chunk * args.rows_per_chunk;
        let end = first + args.rows_per_chunk;
        let end = if end < args.parts { end } else { args.parts };
        let count = if place.is_inside { end - first } else { 0 };
        let own = (place.slot, place.slots, count);
        let load = |row: u64| {
            let at = (first + row) * args.pitch + place.column;
            cta.load(args.x, at as usize, Cache::Once)
        };
        let total = total_of_thread::<T, R, IN_FLIGHT>(reduction, own, first, load);
        write_columns(cta, args.partials, total, place, tile, chunk * args.cols);
        // The writers are the threads of the first warp.
        cta.sync();
        if is_last(cta, args.tickets, number as usize, args.chunks) {
            let count = if place.is_inside { args.chunks } else { 0 };
            let own = (place.slot, place.slots, count);
            let at = |chunk: u64| chunk * args.cols + place.column;
            let total: R::Total = total_of_parts(cta, args.partials, own, at);
            write_columns(cta, args.out, total, place, tile, 0);
        }
        item += cta.blocks() as u64;
    }
}

#[inline(always)]
fn place<C: Cta, T: Element>(cta: &C, args: &ReduceArgs<'_, T>, number: u64) -> Place {
    let tile = args.tile as u64;
    let column = number * tile + lane(cta) as u64 % tile;
    let of_warp = WARP as u64 / tile;
    Place {
        column,
        slot: (cta.thread() / WARP) as u64 * of_warp + lane(cta) as u64 / tile,
        slots: WARPS as u64 * of_warp,
        is_inside: column < args.cols,
    }
}

/// Combines the threads of each column and writes the totals from place `base` on.
#[inline(always)]
#[track_caller]
fn write_columns<C: Cta, R: Total>(
    cta: &C,
    to: crate::memory::Out<'_, u64>,
    total: R,
    place: Place,
    tile: u64,
    base: u64,
) {
    let array: Shared<u64> =
        Shared::at(super::verbs::SHARED_BYTES, WARPS * WARP * MOST_WORDS as u32);
    let mut total = total_of_lanes(cta, total, tile as u32);
    let (lane, warp) = (lane(cta) as usize, (cta.thread() / WARP) as usize);
    let at = |warp: usize, word: usize| (warp * MOST_WORDS + word) * WARP as usize + lane;
    cta.sync();
    if (lane as u64) < tile {
        for (i, word) in total.to_words().into_iter().enumerate().take(R::WORDS) {
            cta.shared_write(array, at(warp, i), word);
        }
    }
    cta.sync();
    if (cta.thread() as u64) < tile && place.is_inside {
        for warp in 1..WARPS as usize {
            let mut words = [0; MOST_WORDS];
            for (i, word) in words.iter_mut().enumerate().take(R::WORDS) {
                *word = cta.shared_read(array, at(warp, i));
            }
            total = total.with(R::from_words(words));
        }
        write_total(cta, to, base + place.column, total);
    }
}
