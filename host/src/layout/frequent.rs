//! A table of frequent columns: the layout of [`gpu_kernels::fused::even::sums`].

use std::cmp::Reverse;

use gpu_kernels::fused::even::sums::{BUSIEST, BUSY, NO_COLUMN, slot_of, slots};
use rayon::prelude::*;

/// Entries that are looked at, in runs that lie evenly over the matrix.
const SAMPLE: usize = 1 << 17;
const RUN: usize = 64;
/// How often a column has to be in the sample at least: once may be by chance.
const LEAST: usize = 2;
/// Multipliers of which the one that keeps most is taken: the first is 2³² over the golden ratio, which spreads neighbours.
const MULTIPLIERS: u32 = 16;
const FIRST: u32 = 0x9e37_79b1;
const NEXT: u32 = 0x2c1b_3c6d;

/// Frequent columns in slots, with the multiplier by which a column finds its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrequentTable {
    /// What each slot has.
    pub keys: Vec<u32>,
    /// Of the hash.
    pub multiplier: u32,
}

impl FrequentTable {
    /// Of no column, for elements of `size` bytes.
    pub fn empty(size: u32) -> Self {
        FrequentTable {
            keys: vec![NO_COLUMN; slots(size) as usize],
            multiplier: FIRST,
        }
    }

    /// Of those that a sample of the column indices of all rows says are the most frequent ones, with `least` entries or more.
    ///
    /// ```
    /// use warpfuse::layout::frequent::FrequentTable;
    /// let table = FrequentTable::of(&[7, 3, 7, 9, 7, 9], 4, 1);
    /// let has = |column: u32| table.keys.iter().any(|key| key & 0x7fff_ffff == column);
    /// assert!(has(7) && has(9) && !has(3));
    /// ```
    pub fn of(indices: &[u32], size: u32, least: u64) -> Self {
        let frequent = sampled(indices, (slots(size) as usize, least));
        let tables = (0..MULTIPLIERS).map(|i| {
            let multiplier = FIRST.wrapping_add(i.wrapping_mul(NEXT)) | 1;
            Self::with_multiplier(&frequent, multiplier, size)
        });
        let best = tables.max_by_key(|(kept, table)| (*kept, Reverse(table.multiplier)));
        best.map_or_else(|| Self::empty(size), |(_, table)| table)
    }

    /// The table with one multiplier, and how many entries of the sample its columns have; busy ones count twice.
    fn with_multiplier(frequent: &[(usize, u32)], multiplier: u32, size: u32) -> (usize, Self) {
        let mut table = FrequentTable {
            multiplier,
            ..Self::empty(size)
        };
        let (mut kept, mut has_busy) = (0, [false; BUSIEST as usize]);
        for (count, column) in frequent {
            let slot = slot_of(*column, multiplier, size);
            let (key, busy) = (&mut table.keys[slot as usize], (slot % BUSIEST) as usize);
            if *key != NO_COLUMN {
                continue;
            }
            let is_busy = !std::mem::replace(&mut has_busy[busy], true);
            kept += count << u32::from(is_busy);
            *key = column | if is_busy { BUSY } else { 0 };
        }
        (kept, table)
    }
}

/// How often columns are in a sample, and which those are: the most frequent first, `most` at most, of `least` entries each.
fn sampled(indices: &[u32], (most, least): (usize, u64)) -> Vec<(usize, u32)> {
    let step = (indices.len() / SAMPLE).max(1);
    let runs = indices.chunks(RUN).step_by(step);
    let mut sample: Vec<u32> = runs.flatten().copied().collect();
    sample.par_sort_unstable();
    // Of each entry of the sample there are this many.
    let each = indices.len() as f64 / sample.len().max(1) as f64;
    let least = ((least as f64 / each).ceil() as usize).max(LEAST);
    let alike = sample.chunk_by(|a, b| a == b);
    let counted = alike.map(|run| (run.len(), run[0]));
    let mut frequent: Vec<_> = counted.filter(|(count, _)| *count >= least).collect();
    frequent.sort_unstable_by_key(|(count, column)| (Reverse(*count), *column));
    frequent.truncate(most);
    frequent
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(key: &u32) -> Option<u32> {
        (*key != NO_COLUMN).then_some(key & !BUSY)
    }

    /// Column j as often as a power law says, among columns that are there once.
    fn skewed() -> Vec<u32> {
        let of = |j: u32| std::iter::repeat_n(j * 977, (20_000 / (j + 1)) as usize);
        let mut all: Vec<u32> = (0..200).flat_map(of).chain(1_000_000..1_050_000).collect();
        // In no order that a sample of runs would see.
        all.sort_unstable_by_key(|j| j.wrapping_mul(FIRST) ^ (j >> 3));
        let len = all.len();
        (0..len).map(|i| all[i * 7_919 % len]).collect()
    }

    #[test]
    fn frequent_columns_are_in_their_slots() {
        for size in [4, 8] {
            let table = FrequentTable::of(&skewed(), size, 1);
            for (slot, key) in (0..).zip(&table.keys) {
                if let Some(column) = column(key) {
                    assert_eq!(slot, slot_of(column, table.multiplier, size));
                }
            }
            let has = |j: u32| table.keys.iter().any(|key| column(key) == Some(j * 977));
            assert!((0..20).all(has), "the most frequent ones");
        }
    }

    #[test]
    fn busy_columns_share_no_sum() {
        let table = FrequentTable::of(&skewed(), 4, 1);
        let busy = (0_u32..).zip(&table.keys);
        let busy = busy.filter(|(_, key)| column(key).is_some() && *key & BUSY != 0);
        let mut sums: Vec<u32> = busy.map(|(slot, _)| slot % BUSIEST).collect();
        let all = sums.len();
        sums.sort_unstable();
        sums.dedup();
        assert!(all > 10 && sums.len() == all, "{all}");
    }

    #[test]
    fn columns_of_few_entries_have_no_slot() {
        let has = |least: u64, j: u32| {
            let table = FrequentTable::of(&skewed(), 4, least);
            table.keys.iter().any(|key| column(key) == Some(j * 977))
        };
        // 200 entries.
        assert!(has(100, 99) && !has(400, 99));
    }

    #[test]
    fn columns_that_are_alike_by_chance_are_not_frequent() {
        let indices: Vec<u32> = (0..1_000).collect();
        assert_eq!(
            FrequentTable::of(&indices, 4, 1).keys,
            FrequentTable::empty(4).keys
        );
        assert_eq!(
            FrequentTable::of(&[], 4, 1).keys,
            FrequentTable::empty(4).keys
        );
    }
}
