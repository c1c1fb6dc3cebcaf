//! How unevenly entries are spread over columns, from a sample.

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
        let half = |which: usize| -> Vec<u32> {
            let runs = indices.chunks(RUN).step_by(step);
            let mut half: Vec<u32> = match step {
                1 => indices.to_vec(),
                _ => runs.skip(which).step_by(2).flatten().copied().collect(),
            };
            half.sort_unstable();
            half
        };
        let (ranking, rest) = (half(0), half(1));
        let mut columns: Vec<(usize, u32)> = ranking
            .chunk_by(|a, b| a == b)
            .map(|run| (run.len(), run[0]))
            .collect();
        columns.sort_unstable_by(|a, b| b.cmp(a));
        let busiest = columns.first().map_or(0, |(count, _)| *count);
        columns.truncate(frequent);
        columns.sort_unstable_by_key(|(_, column)| *column);
        let is_frequent = |column: &&u32| {
            columns
                .binary_search_by_key(*column, |(_, own)| *own)
                .is_ok()
        };
        let found = rest.iter().filter(is_frequent).count();
        Skew {
            busiest: busiest as f64 / ranking.len().max(1) as f64,
            frequent: found as f64 / rest.len().max(1) as f64,
        }
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
