//! The most frequent columns, which are marked among the indices: the layout of [`gpu_kernels::fused::head`].

use std::cmp::Reverse;

use rayon::prelude::*;

use crate::matrix::counted_together;

/// Entries that are looked at for the columns' frequencies, in runs.
const SAMPLE: usize = 1 << 22;
const RUN: usize = 1_024;
/// What tables of counts may take of the entries' memory.
const MOST_OF_ENTRIES: usize = 64;
/// Shares of the runs for each thread, where all count in one table.
const SHARES: usize = 4;
/// Bytes of an entry: an index and a value of f32.
const ENTRY: usize = 8;

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
    let entries = |count: u32| u64::from(count) * step as u64;
    let seen = counts.into_par_iter().enumerate();
    let seen = seen.filter(|(_, count)| entries(*count) >= least);
    let mut seen: Vec<Frequent> = seen
        .map(|(column, count)| Frequent {
            entries: entries(count),
            column: column as u32,
        })
        .collect();
    seen.par_sort_unstable_by_key(|one| (Reverse(one.entries), one.column));
    seen
}

/// How often each column appears in every `step`-th run: counted by all cores, each with a table of its own, or in one table
/// where theirs would take much memory beside the entries.
fn sampled_counts(indices: &[u32], cols: usize, step: usize) -> Vec<u32> {
    let threads = rayon::current_num_threads();
    if threads * cols * size_of::<u32>() > indices.len() * ENTRY / MOST_OF_ENTRIES {
        return in_one_table(indices, cols, step);
    }
    let of_share = |own: usize| {
        let mut counts = vec![0_u32; cols];
        share(indices, step, (own, threads)).for_each(|column| counts[*column as usize] += 1);
        counts
    };
    let tables: Vec<Vec<u32>> = (0..threads).into_par_iter().map(of_share).collect();
    let sum = |column: usize| tables.iter().map(|table| table[column]).sum();
    (0..cols).into_par_iter().map(sum).collect()
}

fn in_one_table(indices: &[u32], cols: usize, step: usize) -> Vec<u32> {
    let shares = SHARES * rayon::current_num_threads();
    counted_together(cols, shares, |own| share(indices, step, (own, shares)))
}

/// One of this many shares of every `step`-th run.
fn share(
    indices: &[u32],
    step: usize,
    (own, shares): (usize, usize),
) -> impl Iterator<Item = &u32> {
    let runs = indices.len().div_ceil(RUN).div_ceil(step);
    let share = runs.div_ceil(shares);
    let runs = indices.chunks(RUN).step_by(step);
    runs.skip(own * share).take(share).flatten()
}

/// Which columns are in a head and where: what [`UnpackVariant::Marked`](gpu_kernels::fused::UnpackVariant::Marked) takes. A
/// quarter of a byte for each column, which caches hold, where a place for each is 120 MB for 30 million.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadColumns {
    /// For every 32 columns a word with a bit for each that is in the head, and how many columns before these are.
    pub members: Vec<u32>,
    /// The place of each column that is in the head, in the order of the columns.
    pub places: Vec<u32>,
}

impl HeadColumns {
    /// Of a head with these columns, all different, in the order of its places; there are `cols` in all.
    ///
    /// ```
    /// use warpfuse::layout::head::HeadColumns;
    /// let head = HeadColumns::of(&[33, 1], 40);
    /// assert_eq!(head.members, [0b10, 0, 0b10, 1]);
    /// assert_eq!(head.places, [1, 0]);
    /// ```
    ///
    /// # Panics
    /// When there is no such column.
    pub fn of(order: &[u32], cols: usize) -> HeadColumns {
        let mut members = vec![0_u32; 2 * cols.div_ceil(32)];
        let mut numbered: Vec<(u32, u32)> = order.iter().copied().zip(0..).collect();
        numbered.sort_unstable();
        for (column, _) in &numbered {
            members[*column as usize / 32 * 2] |= 1 << (column % 32);
        }
        let mut before = 0;
        for pair in members.as_chunks_mut::<2>().0 {
            pair[1] = before;
            before += pair[0].count_ones();
        }
        let places = numbered.into_iter().map(|(_, place)| place);
        HeadColumns {
            members,
            places: places.collect(),
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
    fn the_most_frequent_columns_have_places() {
        let indices = [3, 1, 2, 1, 3, 1];
        let frequent = by_frequency(&indices, 5, 1);
        let frequent: Vec<_> = frequent.iter().map(|f| (f.entries, f.column)).collect();
        assert_eq!(frequent, [(3, 1), (2, 3), (1, 2)]);
        assert_eq!(by_frequency(&indices, 5, 2).len(), 2);
    }
}
