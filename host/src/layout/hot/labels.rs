//! What columns are called in the copy.

use std::cmp::Reverse;

use rayon::prelude::*;

use super::HotSize;

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

    /// The hot columns as a set.
    pub(super) fn hot_columns(&self) -> Columns {
        let mut words = vec![0; self.of_columns.len().div_ceil(64)];
        for column in &self.hot {
            words[*column as usize / 64] |= 1 << (column % 64);
        }
        Columns(words)
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

/// Some columns, a bit for each: few enough bytes for the L2 cache where the names are not.
pub(super) struct Columns(Vec<u64>);

impl Columns {
    pub(super) fn has(&self, column: u32) -> bool {
        self.0[column as usize / 64] >> (column % 64) & 1 != 0
    }
}
