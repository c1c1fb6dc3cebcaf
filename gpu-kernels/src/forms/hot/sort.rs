//! A stable sort by small keys: how often each key is in each chunk, and where the elements of a chunk go.

use crate::cta::{Cache, Cta, Shared, Shuffle, WARP};
use crate::forms::hot::{CHUNK, OrderArgs, SKIP};
use crate::verbs::{FULL, global_warp, global_warps, lane};

/// A number for each key of this warp's chunk.
#[inline(always)]
fn of_keys<C: Cta>(cta: &C, width: u32) -> Shared<u32> {
    Shared::at(cta.thread() / WARP * width * 4, width)
}

/// Calls `each` with every element of a chunk, 32 at a time, all lanes together: with its number and its key.
#[inline(always)]
fn each_of_chunk<C: Cta>(
    cta: &C,
    args: &OrderArgs<'_>,
    chunk: u32,
    mut each: impl FnMut(usize, u32),
) {
    let mut first = chunk as u64 * CHUNK as u64;
    let end = (first + CHUNK as u64).min(args.len);
    while first < end {
        let at = first + lane(cta) as u64;
        let mut key = SKIP;
        if at < end {
            key = cta.load(args.fields, at as usize, Cache::Once);
        }
        each(at as usize, key);
        first += WARP as u64;
    }
}

/// Chunks of `len` elements.
#[inline(always)]
fn chunks(args: &OrderArgs<'_>) -> u32 {
    args.len.div_ceil(CHUNK as u64) as u32
}

/// [`OrderVariant::Tallied`](super::OrderVariant::Tallied).
#[inline(always)]
pub(super) fn tallied<C: Cta>(cta: &C, args: &OrderArgs<'_>) {
    let tallies = of_keys(cta, args.width);
    let mut chunk = global_warp(cta);
    while chunk < chunks(args) {
        each_key(cta, args.width, |key| cta.shared_write(tallies, key, 0));
        cta.sync_warp();
        each_of_chunk(cta, args, chunk, |_, key| {
            if key != SKIP {
                cta.shared_fetch_add(tallies, key as usize, 1);
            }
        });
        cta.sync_warp();
        let to = chunk as usize * args.width as usize;
        each_key(cta, args.width, |key| {
            let tally = cta.shared_read(tallies, key);
            cta.write(args.to, to + key, tally);
        });
        chunk += global_warps(cta);
    }
}

/// This lane's keys.
#[inline(always)]
fn each_key<C: Cta>(cta: &C, width: u32, mut each: impl FnMut(usize)) {
    let mut key = lane(cta);
    while key < width {
        each(key as usize);
        key += WARP;
    }
}

/// [`OrderVariant::Sorted`](super::OrderVariant::Sorted).
#[inline(always)]
pub(super) fn sorted<C: Cta>(cta: &C, args: &OrderArgs<'_>) {
    let bases = of_keys(cta, args.width);
    let mut chunk = global_warp(cta);
    while chunk < chunks(args) {
        let from = chunk as usize * args.width as usize;
        each_key(cta, args.width, |key| {
            let base: u32 = cta.load(args.bases, from + key, Cache::Once);
            cta.shared_write(bases, key, base);
        });
        cta.sync_warp();
        each_of_chunk(cta, args, chunk, |element, key| {
            let (before, alike) = among_lanes(cta, key);
            if key != SKIP {
                let position = cta.shared_read(bases, key as usize) + before;
                cta.write(args.to, position as usize, element as u32);
                if args.second.is_some() {
                    cta.write(args.second, element, position);
                }
            }
            cta.sync_warp();
            if key != SKIP && before == 0 {
                let base = cta.shared_read(bases, key as usize);
                cta.shared_write(bases, key as usize, base + alike);
            }
            cta.sync_warp();
        });
        chunk += global_warps(cta);
    }
}

/// How many lanes before this one have its key, and how many have it; the whole warp calls.
#[inline(always)]
fn among_lanes<C: Cta>(cta: &C, key: u32) -> (u32, u32) {
    let below = (1_u32 << lane(cta)) - 1;
    let (mut before, mut alike) = (0, 0);
    let mut left = cta.ballot(key != SKIP, FULL);
    while left != 0 {
        let first = cta.shuffle(key, Shuffle::Index(left.trailing_zeros()), WARP, FULL);
        let same = cta.ballot(key == first, FULL);
        if key == first {
            (before, alike) = ((same & below).count_ones(), same.count_ones());
        }
        left &= !same;
    }
    (before, alike)
}
