//! The entries that a warp takes in a step, from rows or from pairs.

use super::{By, PanelMakingArgs};
use crate::cta::{Cache, Cta, WARP};
use crate::fused::panels::CHUNK;
use crate::verbs::lane;

/// Entries of a lane that are on the way together.
pub(super) const TOGETHER: usize = (CHUNK / WARP) as usize;

/// The entries of a lane in a step of a warp.
pub(super) struct Step {
    /// What each is split by: its rank, column or row; [`NOTHING`] where there is no entry.
    pub numbers: [u32; TOGETHER],
    /// The other one of row and column, as far as it is stored with the entry.
    pub others: [u32; TOGETHER],
}

/// No number of an output, or of a column.
pub(super) const NOTHING: u32 = u32::MAX;

impl Step {
    /// The entries from `first` on, of those before `end`.
    #[inline(always)]
    #[expect(
        clippy::needless_range_loop,
        reason = "iterators over registers put them into local memory"
    )]
    pub fn load<C: Cta, T>(
        cta: &C,
        args: &PanelMakingArgs<'_, T>,
        (first, end): (u32, u32),
    ) -> Self {
        let (mut numbers, mut others) = ([NOTHING; TOGETHER], [0; TOGETHER]);
        let is_there = |k: usize| k as u32 * WARP + lane(cta) < end - first;
        let at = |k: usize| first as usize + k * WARP as usize + lane(cta) as usize;
        if args.pairs.is_some() {
            let mut pairs = [0_u64; TOGETHER];
            for k in 0..TOGETHER {
                if is_there(k) {
                    pairs[k] = cta.load(args.pairs, at(k), Cache::Once);
                }
            }
            for k in 0..TOGETHER {
                if is_there(k) {
                    let (row, column) = ((pairs[k] >> 32) as u32, pairs[k] as u32);
                    (numbers[k], others[k]) = match args.by {
                        By::Row => (row, column),
                        By::Column | By::Digit => (column, row),
                    };
                }
            }
        } else {
            for k in 0..TOGETHER {
                if is_there(k) {
                    numbers[k] = cta.load(args.columns, at(k), Cache::Once);
                }
            }
            if args.ranks.is_some() {
                for k in 0..TOGETHER {
                    if is_there(k) {
                        numbers[k] = cta.load(args.ranks, numbers[k] as usize, Cache::Keep);
                    }
                }
            }
        }
        Step { numbers, others }
    }
}
