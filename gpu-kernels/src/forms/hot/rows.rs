//! How long rows are, and how many steps slices have.

use crate::cta::{Cache, Cta, WARP};
use crate::forms::hot::{OrderArgs, is_member, row_at};
use crate::fused::hot::lengths::{Lengths, place_of_slice};
use crate::verbs::{FULL, each_of_grid, global_warp, global_warps, lane};

/// [`OrderVariant::Rows`](super::OrderVariant::Rows): a row has a warp.
#[inline(always)]
pub(super) fn rows<C: Cta>(cta: &C, args: &OrderArgs<'_>) {
    let mut row = global_warp(cta) as u64;
    while row < args.len {
        let at = row as usize;
        let start: u32 = cta.load(args.offsets, at, Cache::Keep);
        let end: u32 = cta.load(args.offsets, at + 1, Cache::Keep);
        let (mut hot, mut entry) = (0, start);
        while entry < end {
            let own = entry as u64 + lane(cta) as u64;
            let mut is_hot = false;
            if own < end as u64 {
                let column: u32 = cta.load(args.indices, own as usize, Cache::Once);
                is_hot = is_member(cta, args.members, column);
            }
            hot += cta.ballot(is_hot, FULL).count_ones();
            entry += WARP.min(end - entry);
        }
        let lengths = Lengths {
            hot,
            cold: end - start - hot,
        };
        if lane(cta) == 0 {
            cta.write(args.to, at, lengths.hot);
            cta.write(args.second, at, lengths.cold);
            cta.write(args.third, at, lengths.key());
        }
        row += global_warps(cta) as u64;
    }
}

/// [`OrderVariant::Stepped`](super::OrderVariant::Stepped).
#[inline(always)]
pub(super) fn stepped<C: Cta>(cta: &C, args: &OrderArgs<'_>) {
    each_of_grid(cta, args.len, |slice| {
        let (bits, first) = place_of_slice(args.slices, slice as u32);
        let (mut hot, mut cold) = (0, 0);
        for position in first..first + (1 << bits) {
            let row = row_at(cta, args.order, position);
            let mut own = Lengths::default();
            if row < args.rows {
                own.hot = cta.load(args.hot_lengths, row as usize, Cache::Once);
                own.cold = cta.load(args.cold_lengths, row as usize, Cache::Once);
            }
            cta.write(args.to, position as usize, own.cold);
            (hot, cold) = (own.hot.max(hot), own.cold.max(cold));
        }
        let lanes = WARP >> bits;
        let (hot, cold) = (hot.div_ceil(2 * lanes), cold.div_ceil(lanes));
        cta.write(args.steps, slice + 1, hot as u64 | (cold as u64) << 32);
    });
}
