//! Running sums: what the chunks have, and what stands before each element.

use crate::cta::{Cache, Cta, Shuffle, WARP};
use crate::forms::hot::{CHUNK, OrderArgs};
use crate::verbs::{FULL, global_warp, global_warps, lane};

/// The sum over the lanes up to this one; the whole warp calls.
#[inline(always)]
fn sum_up_to<C: Cta>(cta: &C, mut sum: u32) -> u32 {
    let mut distance = 1;
    while distance < WARP {
        let other = cta.shuffle(sum, Shuffle::Up(distance), WARP, FULL);
        if lane(cta) >= distance {
            sum += other;
        }
        distance *= 2;
    }
    sum
}

#[inline(always)]
fn of_last_lane<C: Cta>(cta: &C, value: u32) -> u32 {
    cta.shuffle(value, Shuffle::Index(WARP - 1), WARP, FULL)
}

/// [`OrderVariant::Summed`](super::OrderVariant::Summed).
#[inline(always)]
pub(super) fn summed<C: Cta>(cta: &C, args: &OrderArgs<'_>) {
    let mut chunk = global_warp(cta) as u64;
    while chunk * (CHUNK as u64) < args.len {
        let first = chunk * CHUNK as u64;
        let end = (first + CHUNK as u64).min(args.len);
        let (mut sum, mut at) = (0, first + lane(cta) as u64);
        while at < end {
            let value: u32 = cta.load(args.fields, at as usize, Cache::Once);
            sum += value;
            at += WARP as u64;
        }
        let sum = of_last_lane(cta, sum_up_to(cta, sum));
        if lane(cta) == 0 {
            cta.write(args.to, chunk as usize, sum);
        }
        chunk += global_warps(cta) as u64;
    }
}

/// [`OrderVariant::Scanned`](super::OrderVariant::Scanned).
#[inline(always)]
pub(super) fn scanned<C: Cta>(cta: &C, args: &OrderArgs<'_>) {
    let mut chunk = global_warp(cta) as u64;
    while chunk * (CHUNK as u64) < args.len {
        let mut first = chunk * CHUNK as u64;
        let end = (first + CHUNK as u64).min(args.len);
        let mut before: u32 = cta.load(args.bases, chunk as usize, Cache::Keep);
        while first < end {
            let at = first + lane(cta) as u64;
            let mut value = 0;
            if at < end {
                value = cta.read(args.to, at as usize);
            }
            let sum = sum_up_to(cta, value);
            if at < end {
                cta.write(args.to, at as usize, before + sum - value);
            }
            before += of_last_lane(cta, sum);
            first += WARP as u64;
        }
        chunk += global_warps(cta) as u64;
    }
}
