//! How unevenly entries are spread over columns, from a sample.

use rayon::prelude::*;

/// Entries that are looked at, in runs that lie evenly over the matrix: two halves, so that columns that are frequent by
/// chance in one are not so in the other.
const SAMPLE: usize = 1 << 19;
const RUN: usize = 64;

/// Shares of all entries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Skew {
    /// Of the most frequent column.
    pub busiest: f64,
    /// Of the most frequent columns, as many as were requested.
    pub frequent: f64,
}

impl Skew {
    /// What a sample of the column indices of all rows says, or all where they are few; of this many frequent columns.
    pub fn of(indices: &[u32], frequent: usize) -> Skew {
        let step = (indices.len() / SAMPLE).max(1);
        if step == 1 {
            let all = Tally::of(indices.to_vec());
            let (busiest, ranked) = all.most(frequent);
            let found = ranked.iter().map(|(_, count)| count).sum();
            return Skew::over(busiest, found, (indices.len(), indices.len()));
        }
        let half = |which: usize| -> Vec<u32> {
            let runs = indices.chunks(RUN).step_by(step);
            runs.skip(which).step_by(2).flatten().copied().collect()
        };
        let (ranking, rest) = (half(0), half(1));
        let sizes = (ranking.len(), rest.len());
        let (busiest, ranked) = Tally::of(ranking).most(frequent);
        let found = Tally::of(rest).of_columns(&ranked);
        Skew::over(busiest, found, sizes)
    }

    fn over(busiest: usize, frequent: usize, (ranking, rest): (usize, usize)) -> Skew {
        Skew {
            busiest: busiest as f64 / ranking.max(1) as f64,
            frequent: frequent as f64 / rest.max(1) as f64,
        }
    }
}

/// The columns of a sample, in ascending order, with how often each is there.
struct Tally(Vec<(u32, usize)>);

impl Tally {
    /// Counted in an array where that is no larger than the sample, else sorted by all threads: half a million numbers took
    /// one thread 30 ms, more than a small X takes to get to a device.
    fn of(mut sample: Vec<u32>) -> Tally {
        let columns = sample.iter().max().map_or(0, |last| *last as usize + 1);
        if columns <= sample.len() {
            let mut counts = vec![0_usize; columns];
            sample
                .iter()
                .for_each(|column| counts[*column as usize] += 1);
            let counted = counts.into_iter().enumerate();
            let there = counted.filter(|(_, count)| *count > 0);
            return Tally(
                there
                    .map(|(column, count)| (column as u32, count))
                    .collect(),
            );
        }
        sample.par_sort_unstable();
        let runs = sample.chunk_by(|a, b| a == b);
        Tally(runs.map(|run| (run[0], run.len())).collect())
    }

    /// How often the most frequent column is there, and as many as are wanted of the most frequent ones, in ascending order.
    fn most(mut self, wanted: usize) -> (usize, Vec<(u32, usize)>) {
        let busiest = self.0.iter().map(|(_, count)| *count).max().unwrap_or(0);
        if wanted < self.0.len() {
            // Of columns that are as frequent the last ones.
            let ascending = |(column, count): &(u32, usize)| std::cmp::Reverse((*count, *column));
            self.0.select_nth_unstable_by_key(wanted, ascending);
            self.0.truncate(wanted);
            self.0.sort_unstable();
        }
        (busiest, self.0)
    }

    /// How many entries are in these columns, which ascend.
    fn of_columns(&self, columns: &[(u32, usize)]) -> usize {
        let mut wanted = columns.iter().map(|(column, _)| *column).peekable();
        let own = self.0.iter().filter(|(column, _)| {
            while wanted.next_if(|next| next < column).is_some() {}
            wanted.peek() == Some(column)
        });
        own.map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{CsrMatrix, csr_from_parts};

    /// Rows of eight entries: the first column, one of the next nine, six others.
    fn matrix(rows: usize) -> CsrMatrix<f32> {
        let hash = |i: usize| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        let mut indices = Vec::new();
        for row in 0..rows {
            let other = |k: usize| 10 + 20_000 * k as u32 + (hash(8 * row + k) % 20_000) as u32;
            indices.extend([0, 1 + (hash(row) % 9) as u32]);
            indices.extend((0..6).map(other));
        }
        let offsets = (0..=rows).map(|row| 8 * row as u64).collect();
        let values = vec![1.0; indices.len()];
        csr_from_parts((rows, 200_000), offsets, indices, values).expect("a matrix")
    }

    #[test]
    fn few_entries_are_counted() {
        let skew = Skew::of(matrix(100).indices(), 10);
        assert_eq!(skew.busiest, 0.125);
        assert!((skew.frequent - 0.25).abs() < 0.02, "{skew:?}");
        assert_eq!(Skew::of(&[], 10).frequent, 0.0);
    }

    #[test]
    fn many_entries_are_sampled_without_bias() {
        let skew = Skew::of(matrix(300_000).indices(), 1_000);
        assert!((skew.busiest - 0.125).abs() < 0.01, "{skew:?}");
        // 990 of 120,000 alike are frequent by chance, which says nothing of the others.
        assert!(
            (skew.frequent - 0.25 - 0.75 * 990.0 / 120_000.0).abs() < 0.01,
            "{skew:?}"
        );
    }
}
