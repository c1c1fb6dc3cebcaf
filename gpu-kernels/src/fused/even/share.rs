//! The share of a warp: see [`even`](crate::fused::even).

use crate::cta::{Cache, Cta, Shuffle, WARP};
use crate::fused::SparseArgs;
use crate::verbs::{FULL, global_warp, global_warps, lane};

/// Lanes that look for one end of the share.
const HALF: u32 = WARP / 2;

/// Rows and entries of a share.
pub(super) struct Range {
    /// The first row that does not end before the share, and the first that does not end in it.
    pub rows: [u32; 2],
    /// The first entry, and the one after the last.
    pub entries: [u32; 2],
}

impl Range {
    /// This warp's: whole rows, or an even part of the ends of rows and the entries.
    #[inline(always)]
    pub fn of<C: Cta, T, const WHOLE_ROWS: bool>(cta: &C, x: &SparseArgs<'_, T>) -> Self {
        let nonzeros: u32 = cta.load(x.offsets, x.rows as usize, Cache::Keep);
        let items = x.rows as u64 + nonzeros as u64;
        let each = items.div_ceil(global_warps(cta) as u64);
        // The lower half of the warp looks for the start, the upper one for the end.
        let side = lane(cta) / HALF;
        let own = (each * (global_warp(cta) + side) as u64).min(items);
        let ended = ended_before(cta, x, (own, nonzeros));
        let row = |side: u32| cta.shuffle(ended, Shuffle::Index(side * HALF), WARP, FULL);
        let rows = [row(0), row(1)];
        let entry = if WHOLE_ROWS {
            cta.load(x.offsets, ended as usize, Cache::Keep)
        } else {
            (own - ended as u64) as u32
        };
        let at = |side: u32| cta.shuffle(entry, Shuffle::Index(side * HALF), WARP, FULL);
        Range {
            rows,
            entries: [at(0), at(1)],
        }
    }
}

/// Rows that end before an item, each half of the warp for its own: the end of row r is item number offsets\[r + 1\] + r.
#[inline(always)]
fn ended_before<C: Cta, T>(cta: &C, x: &SparseArgs<'_, T>, (item, nonzeros): (u64, u32)) -> u32 {
    let mut ended = item.saturating_sub(nonzeros as u64) as u32;
    let mut beyond = item.min(x.rows as u64) as u32;
    while cta.ballot(ended < beyond, FULL) != 0 {
        let step = (beyond - ended).div_ceil(HALF);
        let probe = |number: u32| (ended + (number + 1) * step - 1).min(beyond - 1);
        let mut is_before = false;
        if ended < beyond {
            let row = probe(lane(cta) % HALF);
            let end: u32 = cta.load(x.offsets, row as usize + 1, Cache::Keep);
            is_before = (end as u64 + row as u64) < item;
        }
        let all = cta.ballot(is_before, FULL) >> (lane(cta) / HALF * HALF);
        // Rows are in order: those before come first.
        let before = (all & 0xffff).count_ones();
        if ended < beyond {
            let least = if before == 0 {
                ended
            } else {
                probe(before - 1) + 1
            };
            if before < HALF {
                beyond = probe(before);
            }
            ended = least;
        }
    }
    ended
}
