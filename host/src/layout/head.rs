//! Indices in which the most frequent columns are marked: the layout of [`gpu_kernels::objective::head`].

use std::cmp::Reverse;

use gpu_kernels::objective::head::HEAD;
use rayon::prelude::*;

/// Entries that are looked at for the columns' frequencies, in runs.
const SAMPLE: usize = 1 << 24;
const RUN: usize = 1_024;
/// Entries that one thread marks.
const CHUNK: usize = 1 << 16;
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
    let mut counts = vec![0_u32; cols];
    let runs = indices.chunks(RUN).step_by(step);
    runs.flatten()
        .for_each(|column| counts[*column as usize] += 1);
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

/// Indices in which the columns of `order` are places of the head.
pub fn marked(indices: &[u32], order: &[u32], cols: usize) -> Vec<u32> {
    let mut places = vec![NONE; cols];
    for (place, column) in (0..).zip(order) {
        places[*column as usize] = place;
    }
    let mark = |index: &u32| match places[*index as usize] {
        NONE => *index,
        place => place | HEAD,
    };
    let all = indices.par_iter().with_min_len(CHUNK);
    all.map(mark).collect()
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
        let marked = marked(&indices, &[1, 3], 5);
        let (first, second) = (HEAD, HEAD | 1);
        assert_eq!(marked, [second, first, 2, first, second, first]);
    }
}
