//! What columns are called in the copy.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;

use super::HotSize;
use crate::matrix::{CsrMatrix, Element};

/// Entries that one task looks at.
pub(super) const CHUNK: usize = 1 << 18;
/// Marks the label of a hot column.
const HOT: u32 = 1 << 31;
/// Entries of columns that keep their own order, at most: those as rare as that are not wanted together anyway.
const RARE: u64 = 64;

/// A column's name in the copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    /// Its place among the hot columns.
    Place(u32),
    /// Its rank among the cold ones.
    Rank(u32),
}

/// The names of all columns.
pub(super) struct Labels {
    of_columns: Vec<u32>,
    pub(super) hot: Vec<u32>,
    pub(super) cold: Vec<u32>,
}

impl Labels {
    pub(super) fn new(frequencies: &[u64], size: HotSize) -> Self {
        let frequency = |column: &u32| frequencies[*column as usize];
        let wanted = |column: &u32| frequency(column) >= size.least.max(1);
        let mut hot: Vec<u32> = (0..frequencies.len() as u32).filter(wanted).collect();
        hot.par_sort_unstable_by_key(|column| (Reverse(frequency(column)), *column));
        hot.truncate(size.most);
        let mut of_columns = vec![0; frequencies.len()];
        for (place, column) in (0..).zip(&hot) {
            of_columns[*column as usize] = place | HOT;
        }
        let is_cold =
            |column: &u32| of_columns[*column as usize] & HOT == 0 && frequency(column) > 0;
        let mut cold: Vec<u32> = (0..frequencies.len() as u32).filter(is_cold).collect();
        cold.par_sort_by_key(|column| frequency(column).max(RARE).leading_zeros());
        for (rank, column) in (0..).zip(&cold) {
            of_columns[*column as usize] = rank;
        }
        Labels {
            of_columns,
            hot,
            cold,
        }
    }

    /// The name of a column that has entries.
    pub(super) fn of(&self, column: u32) -> Label {
        match self.of_columns[column as usize] {
            label if label & HOT != 0 => Label::Place(label ^ HOT),
            rank => Label::Rank(rank),
        }
    }

    pub(super) fn is_hot(&self, column: u32) -> bool {
        self.of_columns[column as usize] & HOT != 0
    }
}

/// Entries of each column: in parallel whatever n is, as nobody has counts of its own.
pub(in crate::matrix) fn frequencies<T: Element>(x: &CsrMatrix<T>) -> Vec<u64> {
    let counts: Vec<AtomicU32> = (0..x.cols()).map(|_| AtomicU32::new(0)).collect();
    x.indices().par_chunks(CHUNK).for_each(|chunk| {
        for column in chunk {
            counts[*column as usize].fetch_add(1, Ordering::Relaxed);
        }
    });
    counts
        .into_iter()
        .map(|count| u64::from(count.into_inner()))
        .collect()
}
