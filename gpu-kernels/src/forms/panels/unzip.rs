//! Entries in the order of their columns, taken apart.

use super::PanelMakingArgs;
use crate::cta::{Cache, Cta};
use crate::verbs::each_of_grid;

/// [`PanelMakingVariant::Unzip`](super::PanelMakingVariant::Unzip): a thread takes an entry, then a column. Columns without
/// entries may lie between any two, so each looks for its first entry by itself: neighbours read the same pairs.
#[inline(always)]
pub(super) fn unzip<C: Cta, T>(cta: &C, args: &PanelMakingArgs<'_, T>) {
    each_of_grid(cta, args.pairs.len(), |entry| {
        let pair: u64 = cta.load(args.pairs, entry, Cache::Keep);
        cta.write(args.keys, entry, (pair >> 32) as u32);
    });
    each_of_grid(cta, args.totals.len(), |column| {
        let before = entries_before(cta, args, column as u32);
        cta.write(args.totals, column, before);
    });
}

/// Entries of the columns before this one.
#[inline(always)]
fn entries_before<C: Cta, T>(cta: &C, args: &PanelMakingArgs<'_, T>, column: u32) -> u32 {
    let (mut low, mut high) = (0, args.pairs.len() as u32);
    while low < high {
        let middle = low + (high - low) / 2;
        let pair: u64 = cta.load(args.pairs, middle as usize, Cache::Keep);
        if (pair as u32) < column {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
