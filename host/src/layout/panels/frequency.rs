//! Columns in the order of their frequency.

use rayon::prelude::*;

use crate::matrix::{CsrMatrix, Element, frequencies};

/// Entries of columns that keep their own order, at most: sums that lie side by side are added together, and columns as
/// rare as that share no inputs anyway.
const RARE: u64 = 64;

/// Columns by the number of binary digits of their frequency, the most first, else in their own order; rare ones are all
/// alike.
pub(crate) struct ByFrequency {
    /// The column of each rank.
    pub order: Vec<u32>,
    /// The entries of each rank.
    pub counts: Vec<u32>,
}

impl ByFrequency {
    /// Those of `x`, which has at most 2³² rows: a column has no more entries.
    pub(crate) fn of<T: Element>(x: &CsrMatrix<T>) -> Self {
        let counts = frequencies(x);
        let narrow = |count: &u64| u32::try_from(*count).unwrap_or(u32::MAX);
        Self::of_counts(&counts.par_iter().map(narrow).collect::<Vec<_>>())
    }

    /// Those of columns with this many entries.
    pub(crate) fn of_counts(counts: &[u32]) -> Self {
        let class = |count: &u32| digits_missing((*count).into()) as u8;
        let classes: Vec<u8> = counts.par_iter().map(class).collect();
        let mut order: Vec<u32> = Vec::with_capacity(counts.len());
        // A sort of 30 million columns takes longer than a look at their classes for each of the few there are.
        for class in digits_missing(u32::MAX.into()) as u8..=digits_missing(RARE) as u8 {
            let columns = (0..counts.len() as u32).into_par_iter();
            order.par_extend(columns.filter(|column| classes[*column as usize] == class));
        }
        ByFrequency {
            counts: order
                .par_iter()
                .map(|column| counts[*column as usize])
                .collect(),
            order,
        }
    }

    /// The rank of each column; none where columns are in order as they are.
    pub(crate) fn ranks(&self) -> Option<Vec<u32>> {
        if (0..).zip(&self.order).all(|(rank, column)| rank == *column) {
            return None;
        }
        let mut ranks = vec![0; self.order.len()];
        for (rank, column) in (0..).zip(&self.order) {
            ranks[*column as usize] = rank;
        }
        Some(ranks)
    }
}

pub(super) fn digits_missing(count: u64) -> u32 {
    count.max(RARE).leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_sorted_by_digits_and_keep_their_order() {
        let count = |i: u32| match i % 7 {
            0 => i,
            1 => 64 + i % 100,
            2 => u32::MAX - i,
            _ => i % 65,
        };
        let counts: Vec<u32> = (0..10_000).map(count).collect();
        let mut expected: Vec<u32> = (0..10_000).collect();
        expected.sort_by_key(|column| digits_missing(counts[*column as usize].into()));
        let found = ByFrequency::of_counts(&counts);
        assert_eq!(found.order, expected);
        let of_order = expected.iter().map(|column| counts[*column as usize]);
        assert!(found.counts.iter().copied().eq(of_order));
        let ranks = found.ranks().expect("they are not in order");
        let back = (0..)
            .zip(&found.order)
            .all(|(rank, column)| ranks[*column as usize] == rank);
        assert!(back);
        assert!(ByFrequency::of_counts(&[9, 3, 64]).ranks().is_none());
        assert!(ByFrequency::of_counts(&[]).order.is_empty());
    }
}
