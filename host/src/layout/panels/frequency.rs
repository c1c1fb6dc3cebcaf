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
        let mut order: Vec<u32> = (0..counts.len() as u32).collect();
        order.par_sort_by_key(|column| digits_missing(counts[*column as usize]));
        let count = |column: &u32| u32::try_from(counts[*column as usize]).unwrap_or(u32::MAX);
        ByFrequency {
            counts: order.par_iter().map(count).collect(),
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
