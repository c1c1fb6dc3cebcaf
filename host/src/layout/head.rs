//! Indices in which the most frequent columns are marked: the layout of [`gpu_kernels::objective::head`].

use std::cmp::Reverse;

use gpu_kernels::objective::head::HEAD;
use rayon::prelude::*;

/// Entries that are looked at for the columns' frequencies, in runs.
const SAMPLE: usize = 1 << 24;
const RUN: usize = 1_024;
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

/// Columns that appear in a sample of the entries, the most frequent first; equally frequent ones in their own order, so
/// that the head is always the same.
pub fn by_frequency(indices: &[u32], cols: usize) -> Vec<Frequent> {
    let step = indices.len().div_ceil(SAMPLE).max(1);
    let counts = sampled_counts(indices, cols, step);
    let seen = (0..).zip(counts).filter(|(_, count)| *count > 0);
    let mut seen: Vec<Frequent> = seen
        .map(|(column, count)| Frequent {
            entries: u64::from(count) * step as u64,
            column,
        })
        .collect();
    seen.par_sort_unstable_by_key(|one| (Reverse(one.entries), one.column));
    seen
}

/// How often each column appears in every `step`-th run: counted by all cores, each with a table of its own.
fn sampled_counts(indices: &[u32], cols: usize, step: usize) -> Vec<u32> {
    let runs = indices.len().div_ceil(RUN).div_ceil(step);
    let share = runs.div_ceil(rayon::current_num_threads()).max(1);
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
    fn the_most_frequent_columns_are_marked() {
        let indices = [3, 1, 2, 1, 3, 1];
        let frequent = by_frequency(&indices, 5);
        let frequent: Vec<_> = frequent.iter().map(|f| (f.entries, f.column)).collect();
        assert_eq!(frequent, [(3, 1), (2, 3), (1, 2)]);
        let mut marked = [0; 6];
        Marks::new(&[1, 3], 5).mark(&indices, &mut marked);
        let (first, second) = (HEAD, HEAD | 1);
        assert_eq!(marked, [second, first, 2, first, second, first]);
    }
}
