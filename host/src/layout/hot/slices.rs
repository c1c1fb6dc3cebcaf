//! Which rows share a slice.

use std::cmp::Reverse;

use gpu_kernels::cta::WARP;
pub(super) use gpu_kernels::fused::hot::lengths::Lengths;
use gpu_kernels::fused::hot::lengths::{BUCKETS, buckets};
use gpu_kernels::fused::hot::{CLASSES, LANES, NONE};
use rayon::prelude::*;

use super::labels::Labels;
use crate::layout::parallel::cut;
use crate::matrix::{CsrMatrix, Element};
use crate::parallel;

/// Rows that one task puts in order.
const BLOCK: usize = 1 << 16;
/// Rows whose entries one task counts.
const ROWS: usize = 1 << 10;

/// Rows of each bucket.
type Counts = [u32; BUCKETS];

/// Which rows share a slice.
pub(super) struct Slices {
    pub(super) order: Option<Vec<u32>>,
    pub(super) ends: [u32; CLASSES],
    /// Of the rows of X.
    lengths: Vec<Lengths>,
}

impl Slices {
    /// Rows by class, the longest first, and by steps; each class begins with a slice.
    pub(super) fn of<T: Element>(x: &CsrMatrix<T>, labels: &Labels) -> Self {
        let offsets = x.indptr();
        let offsets = offsets.raw_storage();
        let hot = labels.hot_columns();
        let lengths = |row: usize| {
            let columns = &x.indices()[offsets[row] as usize..offsets[row + 1] as usize];
            let of_row = columns.iter().map(|column| u32::from(hot.has(*column)));
            let hot = of_row.sum();
            Lengths {
                hot,
                cold: columns.len() as u32 - hot,
            }
        };
        let rows = (0..x.rows()).into_par_iter().with_min_len(ROWS);
        Self::sorted(rows.map(lengths).collect())
    }

    fn sorted(lengths: Vec<Lengths>) -> Self {
        let counts: Vec<Counts> = lengths.par_chunks(BLOCK).map(count).collect();
        let mut totals: Counts = [0; BUCKETS];
        for counts in &counts {
            totals
                .iter_mut()
                .zip(counts)
                .for_each(|(all, own)| *all += own);
        }
        let (mut ends, mut slices, mut is_padded_inside, mut padding) = ([0; CLASSES], 0, false, 0);
        for (number, end) in ends.iter_mut().enumerate() {
            let rows = WARP / LANES[number];
            let count: u32 = totals[buckets(number)].iter().sum();
            is_padded_inside |= padding > 0 && count > 0;
            slices += count.div_ceil(rows);
            padding += count.next_multiple_of(rows) - count;
            *end = slices;
        }
        let is_sorted = is_sorted(&lengths);
        let order = (!is_sorted || is_padded_inside).then(|| order(&lengths, &counts, &totals));
        Slices {
            order,
            ends,
            lengths,
        }
    }

    /// Hot and cold entries of the row at a position.
    pub(super) fn lengths(&self, position: usize) -> Lengths {
        let row = self.row(position, self.lengths.len());
        row.map_or(Lengths::default(), |row| self.lengths[row])
    }

    /// All positions, those without rows among them.
    pub(super) fn positions(&self) -> usize {
        self.place(self.count()).1
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

/// Rows of a block in each bucket.
fn count(lengths: &[Lengths]) -> Counts {
    let mut counts = [0; BUCKETS];
    lengths.iter().for_each(|own| counts[own.bucket()] += 1);
    counts
}

/// The order of long rows among them.
fn longest_first(lengths: Lengths) -> Reverse<(u32, u32)> {
    Reverse(lengths.steps())
}

/// Whether rows are in order as they are.
fn is_sorted(lengths: &[Lengths]) -> bool {
    let key = |own: Lengths| match own.bucket() {
        0 => (0, longest_first(own)),
        bucket => (bucket, Reverse((0, 0))),
    };
    let pairs = lengths.par_windows(2).with_min_len(BLOCK);
    pairs.all(|pair| key(pair[0]) <= key(pair[1]))
}

/// The row at each position: bucket by bucket, rows of one in their own order, long ones the longest first.
fn order(lengths: &[Lengths], counts: &[Counts], totals: &Counts) -> Vec<u32> {
    let ends_class = |bucket: usize| (0..CLASSES).find(|class| buckets(*class).end == bucket + 1);
    let (mut pieces, mut of_class) = (Vec::new(), 0);
    for bucket in 0..BUCKETS {
        pieces.extend(counts.iter().map(|counts| counts[bucket] as usize));
        of_class += totals[bucket];
        if let Some(class) = ends_class(bucket) {
            let padding = of_class.next_multiple_of(WARP / LANES[class]) - of_class;
            pieces.push(padding as usize);
            of_class = 0;
        }
    }
    let mut order = vec![0; pieces.iter().sum()];
    let mut of_blocks: Vec<Vec<&mut [u32]>> = counts.iter().map(|_| Vec::new()).collect();
    let mut pieces = cut(&mut order, pieces).into_iter();
    for bucket in 0..BUCKETS {
        of_blocks
            .iter_mut()
            .zip(pieces.by_ref())
            .for_each(|(block, piece)| block.push(piece));
        if ends_class(bucket).is_some() {
            pieces
                .by_ref()
                .take(1)
                .for_each(|padding| padding.fill(NONE));
        }
    }
    parallel::for_each_item(of_blocks, |block, mut pieces| {
        let mut next = [0; BUCKETS];
        let lengths = parallel::chunk(lengths, BLOCK, block);
        for (row, lengths) in ((block * BLOCK) as u32..).zip(lengths) {
            let bucket = lengths.bucket();
            pieces[bucket][next[bucket]] = row;
            next[bucket] += 1;
        }
    });
    order[..totals[0] as usize].par_sort_by_key(|row| longest_first(lengths[*row as usize]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_rows_keep_their_order() {
        let all = vec![Lengths { hot: 20, cold: 0 }; 50];
        let slices = Slices::sorted(all);
        assert_eq!((slices.order, slices.ends), (None, [0, 0, 0, 0, 4]));
        let none = Slices::sorted(Vec::new());
        assert_eq!((none.order, none.ends), (None, [0; CLASSES]));
    }

    #[test]
    fn long_rows_of_either_kind_have_more_lanes() {
        let lanes = |hot, cold| LANES[Lengths { hot, cold }.class() as usize];
        assert_eq!([lanes(20, 8), lanes(21, 0), lanes(0, 9)], [2, 4, 4]);
        assert_eq!(
            [lanes(160, 64), lanes(161, 0), lanes(0, 9_999)],
            [16, 32, 32]
        );
    }

    #[test]
    fn rows_are_ordered_as_by_a_sort() {
        let hash = |row: u32| row.wrapping_mul(2_654_435_761) >> 8;
        let length = |row: u32| Lengths {
            hot: hash(row) % [3, 50, 1_000][row as usize % 3],
            cold: hash(row + 1) % [2, 20, 300][row as usize / 3 % 3],
        };
        let count = 2 * BLOCK as u32 + 77;
        let lengths: Vec<Lengths> = (0..count).map(length).collect();
        let key = |row: &u32| {
            let own = lengths[*row as usize];
            (own.class(), longest_first(own))
        };
        let mut expected: Vec<u32> = (0..count).collect();
        expected.sort_by_key(key);
        let order = Slices::sorted(lengths.clone()).order.expect("an order");
        let found: Vec<u32> = order.iter().copied().filter(|row| *row != NONE).collect();
        assert!(found == expected);
        let mut sorted: Vec<Lengths> = expected.iter().map(|r| lengths[*r as usize]).collect();
        assert!(is_sorted(&sorted) && !is_sorted(&lengths));
        sorted.swap(0, 70_000);
        assert!(!is_sorted(&sorted));
    }

    #[test]
    fn slices_begin_where_their_rows_do() {
        let length = |row: u32| Lengths {
            hot: row * 7 % 50,
            cold: row % 3,
        };
        let lengths: Vec<Lengths> = (0..300).map(length).collect();
        let slices = Slices::sorted(lengths.clone());
        let mut expected = 0;
        for slice in 0..slices.count() {
            let (lanes, first) = slices.place(slice);
            assert_eq!(first, expected);
            for position in first..first + 32 / lanes {
                if let Some(row) = slices.row(position, 300) {
                    assert_eq!(LANES[lengths[row].class() as usize] as usize, lanes);
                }
            }
            expected += 32 / lanes;
        }
    }
}
