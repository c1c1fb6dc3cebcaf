//! Indices in which the most frequent columns are marked: the layout of [`gpu_kernels::objective::head`].

use std::cmp::Reverse;
use std::sync::atomic::{AtomicU32, Ordering};

use gpu_kernels::objective::head::HEAD;
use rayon::prelude::*;

/// Entries that are looked at for the columns' frequencies, in runs.
const SAMPLE: usize = 1 << 24;
const RUN: usize = 1_024;
/// What tables of counts may take of the entries' memory.
const MOST_OF_ENTRIES: usize = 64;
/// Bytes of an entry: an index and a value of f32.
const ENTRY: usize = 8;
/// No place.
const NONE: u32 = u32::MAX;

/// A column with about how many entries it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frequent {
    /// Entries.
    pub entries: u64,
    /// The column.
    pub column: u32,
}

/// Columns that have `least` entries or more, as a sample of them says, the most frequent first; equally frequent ones in
/// their own order, so that the head is always the same.
pub fn by_frequency(indices: &[u32], cols: usize, least: u64) -> Vec<Frequent> {
    let step = indices.len().div_ceil(SAMPLE).max(1);
    let counts = sampled_counts(indices, cols, step);
    let least = least.max(1);
    let seen = (0..).zip(counts);
    let seen = seen.filter(|(_, count)| u64::from(*count) * step as u64 >= least);
    let mut seen: Vec<Frequent> = seen
        .map(|(column, count)| Frequent {
            entries: u64::from(count) * step as u64,
            column,
        })
        .collect();
    seen.par_sort_unstable_by_key(|one| (Reverse(one.entries), one.column));
    seen
}

/// How often each column appears in every `step`-th run: counted by all cores, each with a table of its own, or in one table
/// where theirs would take much memory beside the entries.
fn sampled_counts(indices: &[u32], cols: usize, step: usize) -> Vec<u32> {
    let runs = indices.len().div_ceil(RUN).div_ceil(step);
    let threads = rayon::current_num_threads();
    if threads * cols * size_of::<u32>() > indices.len() * ENTRY / MOST_OF_ENTRIES {
        return in_one_table(indices, cols, step);
    }
    let share = runs.div_ceil(threads).max(1);
    let of_share = |first: usize| {
        let mut counts = vec![0_u32; cols];
        let runs = indices.chunks(RUN).step_by(step);
        let own = runs.skip(first).take(share).flatten();
        own.for_each(|column| counts[*column as usize] += 1);
        counts
    };
    let shares: Vec<usize> = (0..runs).step_by(share).collect();
    let tables: Vec<Vec<u32>> = shares.into_par_iter().map(of_share).collect();
    let sum = |column: usize| tables.iter().map(|table| table[column]).sum();
    (0..cols).into_par_iter().map(sum).collect()
}

fn in_one_table(indices: &[u32], cols: usize, step: usize) -> Vec<u32> {
    let counts: Vec<AtomicU32> = (0..cols).map(|_| AtomicU32::new(0)).collect();
    let runs = indices.par_chunks(RUN).step_by(step);
    runs.flat_map_iter(|run| run).for_each(|column| {
        counts[*column as usize].fetch_add(1, Ordering::Relaxed);
    });
    counts.into_iter().map(AtomicU32::into_inner).collect()
}

/// The places of some columns in a head.
#[derive(Debug)]
pub struct Marks(Vec<u32>);

impl Marks {
    /// Of the columns of `order`, where X has this many columns in all.
    pub fn new(order: &[u32], cols: usize) -> Marks {
        let mut places = vec![NONE; cols];
        for (place, column) in (0..).zip(order) {
            places[*column as usize] = place;
        }
        Marks(places)
    }

    /// Writes `indices` to `to`, those of the head's columns as places.
    pub fn mark(&self, indices: &[u32], to: &mut [u32]) {
        for (to, index) in to.iter_mut().zip(indices) {
            *to = match self.0[*index as usize] {
                NONE => *index,
                place => place | HEAD,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_counting_agree() {
        let columns = 1_000;
        // More entries than tables of all threads need, so that each has its own.
        let indices: Vec<u32> = (0..1_000_000_u64)
            .map(|i| (i * i % columns) as u32)
            .collect();
        for step in [1, 3] {
            let own = sampled_counts(&indices, columns as usize, step);
            assert_eq!(own, in_one_table(&indices, columns as usize, step));
            assert!(own.iter().sum::<u32>() as usize >= indices.len() / step);
        }
    }

    #[test]
    fn the_most_frequent_columns_are_marked() {
        let indices = [3, 1, 2, 1, 3, 1];
        let frequent = by_frequency(&indices, 5, 1);
        let frequent: Vec<_> = frequent.iter().map(|f| (f.entries, f.column)).collect();
        assert_eq!(frequent, [(3, 1), (2, 3), (1, 2)]);
        assert_eq!(by_frequency(&indices, 5, 2).len(), 2);
        let mut marked = [0; 6];
        Marks::new(&[1, 3], 5).mark(&indices, &mut marked);
        let (first, second) = (HEAD, HEAD | 1);
        assert_eq!(marked, [second, first, 2, first, second, first]);
    }
}
