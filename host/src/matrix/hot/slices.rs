//! Which rows share a slice.

use std::cmp::Reverse;

use gpu_kernels::cta::WARP;
use gpu_kernels::fused::hot::{CLASSES, HELD, HELD_COLD, LANES, NONE};
use rayon::prelude::*;

use super::labels::Labels;
use crate::matrix::{CsrMatrix, Element};

/// Hot and cold entries of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lengths {
    hot: u32,
    cold: u32,
}

impl Lengths {
    /// The class of rows of so many entries.
    fn class(self) -> usize {
        let is_short =
            |lanes: &&u32| self.hot <= 2 * **lanes * HELD && self.cold <= **lanes * HELD_COLD;
        LANES[1..].iter().take_while(is_short).count()
    }

    /// Hot and cold steps.
    fn steps(self) -> (u32, u32) {
        let lanes = LANES[self.class()];
        (self.hot.div_ceil(2 * lanes), self.cold.div_ceil(lanes))
    }
}

/// Which rows share a slice.
pub(super) struct Slices {
    pub(super) order: Option<Vec<u32>>,
    pub(super) ends: [u32; CLASSES],
}

impl Slices {
    /// Rows by class, the longest first, and by steps; each class begins with a slice.
    pub(super) fn of<T: Element>(x: &CsrMatrix<T>, labels: &Labels) -> Self {
        let offsets = x.proper_indptr();
        let lengths = |row: usize| {
            let columns = &x.indices()[offsets[row] as usize..offsets[row + 1] as usize];
            let is_hot = |column: &&u32| labels.is_hot(**column);
            let hot = columns.iter().filter(is_hot).count() as u32;
            Lengths {
                hot,
                cold: columns.len() as u32 - hot,
            }
        };
        let lengths: Vec<Lengths> = (0..x.rows()).into_par_iter().map(lengths).collect();
        Self::sorted(&lengths)
    }

    fn sorted(lengths: &[Lengths]) -> Self {
        let class = |row: &u32| lengths[*row as usize].class();
        let key = |row: &u32| (class(row), Reverse(lengths[*row as usize].steps()));
        let rows = lengths.len() as u32;
        let is_sorted = (0..rows).is_sorted_by_key(|row| key(&row));
        let mut order: Vec<u32> = (0..rows).collect();
        if !is_sorted {
            order.par_sort_by_key(key);
        }
        let (mut ends, mut padded, mut slices) = ([0; CLASSES], Vec::new(), 0);
        let mut rest = &order[..];
        for (number, end) in ends.iter_mut().enumerate() {
            let count = rest.partition_point(|row| class(row) == number);
            let (own, others) = rest.split_at(count);
            let rows = (WARP / LANES[number]) as usize;
            let end_of_class = padded.len() + count.next_multiple_of(rows);
            padded.extend(own);
            padded.resize(end_of_class, NONE);
            slices += count.div_ceil(rows) as u32;
            *end = slices;
            rest = others;
        }
        let is_padded_inside = padded.iter().zip(&order).any(|(a, b)| a != b);
        let order = (!is_sorted || is_padded_inside).then_some(padded);
        Slices { order, ends }
    }

    pub(super) fn count(&self) -> u32 {
        self.ends[CLASSES - 1]
    }

    /// The lanes of the rows of a slice, and its first position.
    pub(super) fn place(&self, slice: u32) -> (usize, usize) {
        let (mut position, mut from) = (0, 0);
        for (end, lanes) in self.ends.iter().zip(LANES) {
            let rows = (WARP / lanes) as usize;
            if slice < *end {
                return (lanes as usize, position + (slice - from) as usize * rows);
            }
            position += (end - from) as usize * rows;
            from = *end;
        }
        (LANES[CLASSES - 1] as usize, position)
    }

    /// The row at a position; none where a slice is not full.
    pub(super) fn row(&self, position: usize, rows: usize) -> Option<usize> {
        let row = match &self.order {
            Some(order) => order[position] as usize,
            None => position,
        };
        (row < rows).then_some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_rows_keep_their_order() {
        let all = vec![Lengths { hot: 20, cold: 0 }; 50];
        let slices = Slices::sorted(&all);
        assert_eq!((slices.order, slices.ends), (None, [0, 0, 0, 0, 4]));
        let none = Slices::sorted(&[]);
        assert_eq!((none.order, none.ends), (None, [0; CLASSES]));
    }

    #[test]
    fn long_rows_of_either_kind_have_more_lanes() {
        let lanes = |hot, cold| LANES[Lengths { hot, cold }.class()];
        assert_eq!([lanes(20, 8), lanes(21, 0), lanes(0, 9)], [2, 4, 4]);
        assert_eq!(
            [lanes(160, 64), lanes(161, 0), lanes(0, 9_999)],
            [16, 32, 32]
        );
    }

    #[test]
    fn slices_begin_where_their_rows_do() {
        let length = |row: u32| Lengths {
            hot: row * 7 % 50,
            cold: row % 3,
        };
        let lengths: Vec<Lengths> = (0..300).map(length).collect();
        let slices = Slices::sorted(&lengths);
        let mut expected = 0;
        for slice in 0..slices.count() {
            let (lanes, first) = slices.place(slice);
            assert_eq!(first, expected);
            for position in first..first + 32 / lanes {
                if let Some(row) = slices.row(position, 300) {
                    assert_eq!(LANES[lengths[row].class()] as usize, lanes);
                }
            }
            expected += 32 / lanes;
        }
    }
}
