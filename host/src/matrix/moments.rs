//! Per-column sums over all entries.

use std::ops::Range;

use ndarray::{ArrayView2, Axis};

use super::frequencies::counted;
use super::{CsrArrays, Element, Features, Storage, with_offsets};
use crate::parallel;

/// Most blocks of rows that get sums of their own.
const MAX_BLOCKS: usize = 64;
/// Entries that a block needs per column before sums of its own pay.
const ENTRIES_PER_COLUMN: usize = 4;
/// Values that one task compares with 1.
const VALUES_PER_TASK: usize = 1 << 16;

/// First and second moments of each column, not divided by the number of rows, in f64.
///
/// For centring (`sum / m` is the mean), for scaling, and for the Jacobi preconditioner of the
/// normal equations (`sum_of_squares` is the diagonal of XᵀX).
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnMoments {
    /// Σᵢ Xᵢⱼ for each column j; n entries.
    pub sum: Vec<f64>,
    /// Σᵢ Xᵢⱼ² for each column j; n entries.
    pub sum_of_squares: Vec<f64>,
}

impl ColumnMoments {
    /// Computes both moments in one parallel pass; entries that are not stored count as zero.
    ///
    /// The rows are cut into blocks by the shape alone and the blocks are added in order, so the
    /// result is the same on every machine and with any number of threads.
    ///
    /// ```
    /// use ndarray::array;
    /// use warpfuse::matrix::{ColumnMoments, Features};
    /// let moments = ColumnMoments::of(&Features::Dense(array![[1.0, 2.0], [3.0, -4.0]]));
    /// assert_eq!(moments.sum, [4.0, -2.0]);
    /// assert_eq!(moments.sum_of_squares, [10.0, 20.0]);
    /// ```
    pub fn of<T: Element>(features: &Features<T>) -> Self {
        match features.csr_arrays() {
            Some(x) if are_ones(x.values) => Self::of_ones(&x),
            _ => Self::of_rows(features, |_| true),
        }
    }

    /// [`ColumnMoments::of`] the rows that are taken.
    pub fn of_rows<T: Element>(
        features: &Features<T>,
        takes: impl Fn(usize) -> bool + Sync,
    ) -> Self {
        if let Some(x) = features.csr_arrays() {
            return Self::of_csr(&x, takes);
        }
        match features.storage() {
            Storage::Sparse(_) => unreachable!("sparse features have their arrays"),
            Storage::Dense(x) if x.is_standard_layout() => Self::of_dense(x, takes),
            Storage::Dense(x) => Self::of_columns(x, takes),
        }
    }

    /// Of no rows.
    pub(crate) fn zeros(cols: usize) -> Self {
        Self {
            sum: vec![0.0; cols],
            sum_of_squares: vec![0.0; cols],
        }
    }

    /// Adds those of further rows.
    pub(crate) fn add(&mut self, more: &Self) {
        let both = [
            (&mut self.sum, &more.sum),
            (&mut self.sum_of_squares, &more.sum_of_squares),
        ];
        for (sums, more) in both {
            sums.iter_mut()
                .zip(more)
                .for_each(|(sum, more)| *sum += more);
        }
    }

    /// Mean of each column over `rows` rows; zeros when there are none.
    pub fn means(&self, rows: usize) -> Vec<f64> {
        let m = rows.max(1) as f64;
        self.sum.iter().map(|sum| sum / m).collect()
    }

    /// Sums of ones are counts, exact in any order; counting takes a fifth of the time.
    fn of_ones<T: Element>(x: &CsrArrays<'_, T>) -> Self {
        let counts = counted(x.indices, x.shape);
        let sum: Vec<f64> = counts.into_iter().map(|of| of as f64).collect();
        Self {
            sum_of_squares: sum.clone(),
            sum,
        }
    }

    fn of_csr<T: Element>(x: &CsrArrays<'_, T>, takes: impl Fn(usize) -> bool + Sync) -> Self {
        let ((rows, cols), nnz) = (x.shape, x.values.len());
        if sums_are_large(rows, cols, nnz, size_of::<T>()) {
            return Self::of_csr_by_columns(x, takes);
        }
        Self::by_blocks(rows, cols, nnz, |rows, sums| {
            add_csr_rows(x, rows.filter(|row| takes(*row)), sums);
        })
    }

    /// Each task walks through all rows and adds up columns of its own, in the order of the rows: the bits do not depend on
    /// how many tasks there are.
    fn of_csr_by_columns<T: Element>(
        x: &CsrArrays<'_, T>,
        takes: impl Fn(usize) -> bool + Sync,
    ) -> Self {
        let (rows, cols) = x.shape;
        let (mut sum, mut sum_of_squares) = (vec![0.0; cols], vec![0.0; cols]);
        let own = cols.div_ceil(rayon::current_num_threads()).max(COLUMNS);
        let parts = sum.chunks_mut(own).zip(sum_of_squares.chunks_mut(own));
        parallel::for_each_item(parts, |number, (sum, sum_of_squares)| {
            let first = number * own;
            for row in (0..rows).filter(|row| takes(*row)) {
                let entries = x.row(row);
                let indices = &x.indices[entries.clone()];
                let from = indices.partition_point(|j| (*j as usize) < first);
                let values = &x.values[entries][from..];
                for (&j, value) in indices[from..].iter().zip(values) {
                    let (j, value) = (j as usize - first, value.to_f64());
                    if j >= sum.len() {
                        break;
                    }
                    let mut sums = [sum[j], sum_of_squares[j]];
                    add(&mut sums, value);
                    [sum[j], sum_of_squares[j]] = sums;
                }
            }
        });
        Self {
            sum,
            sum_of_squares,
        }
    }

    fn of_dense<T: Element>(x: ArrayView2<'_, T>, takes: impl Fn(usize) -> bool + Sync) -> Self {
        Self::by_blocks(x.nrows(), x.ncols(), x.len(), |rows, sums| {
            for row in rows.filter(|row| takes(*row)) {
                let values = x.index_axis(Axis(0), row);
                match values.as_slice() {
                    Some(values) => add_row(sums, values),
                    None => add_row(sums, values),
                }
            }
        })
    }

    /// Of elements that lie column after column.
    fn of_columns<T: Element>(x: ArrayView2<'_, T>, takes: impl Fn(usize) -> bool + Sync) -> Self {
        let of_column = |column: usize| {
            let mut sums = [0.0; 2];
            let values = x.index_axis(Axis(1), column);
            let taken = values.iter().enumerate().filter(|(row, _)| takes(*row));
            taken.for_each(|(_, value)| add(&mut sums, value.to_f64()));
            sums
        };
        Self::of_sums(&parallel::map(x.ncols(), of_column))
    }

    fn by_blocks(
        rows: usize,
        cols: usize,
        nnz: usize,
        fill: impl Fn(Range<usize>, &mut [Sums]) + Sync,
    ) -> Self {
        let partial = |_, rows| {
            let mut sums = vec![[0.0; 2]; cols];
            fill(rows, &mut sums);
            sums
        };
        let blocks = parallel::map_items(row_blocks(rows, cols, nnz), partial);
        let mut blocks = blocks.into_iter();
        let mut total = blocks.next().unwrap_or_else(|| vec![[0.0; 2]; cols]);
        add_blocks(&mut total, blocks.as_slice());
        drop(blocks);
        Self::of_own_sums(total)
    }

    /// [`ColumnMoments::of_sums`] with half as much memory besides: the squares take the place of the pairs.
    fn of_own_sums(sums: Vec<Sums>) -> Self {
        let sum = parallel::convert(&sums, |[sum, _]| *sum);
        let mut pairs: Vec<f64> = sums.into_flattened();
        (0..sum.len()).for_each(|column| pairs[column] = pairs[2 * column + 1]);
        pairs.truncate(sum.len());
        pairs.shrink_to_fit();
        Self {
            sum,
            sum_of_squares: pairs,
        }
    }

    fn of_sums(sums: &[Sums]) -> Self {
        Self {
            sum: parallel::convert(sums, |[sum, _]| *sum),
            sum_of_squares: parallel::convert(sums, |[_, of_squares]| *of_squares),
        }
    }
}

/// The rows of a larger matrix that somebody has: how many the matrix has, its stored entries, and the number of the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowsOf {
    pub(crate) rows: usize,
    pub(crate) entries: usize,
    pub(crate) first: usize,
}

/// Sums over some rows of a larger matrix, to be continued by who has the next ones: with the bits of
/// [`ColumnMoments::of_rows`] over the whole.
///
/// What goes from one to the next are the sums of the blocks that are complete, and those of the one that is not.
pub(crate) struct PartMoments<'a, T> {
    features: &'a Features<T>,
    takes: &'a (dyn Fn(usize) -> bool + Sync),
    place: RowsOf,
    /// Blocks that begin here, with their sums over the rows that are here.
    begun: Vec<(Range<usize>, Vec<Sums>)>,
    /// The block that began before, as far as it is here.
    head: Option<Range<usize>>,
}

impl<'a, T: Element> PartMoments<'a, T> {
    /// Adds up what does not wait for others: the rows that `takes` takes, numbered as those of `features`.
    pub(crate) fn begin(
        features: &'a Features<T>,
        place: RowsOf,
        takes: &'a (dyn Fn(usize) -> bool + Sync),
    ) -> Self {
        let (cols, own) = (features.cols(), place.first..place.first + features.rows());
        let blocks = match features.is_sparse()
            && sums_are_large(place.rows, cols, place.entries, size_of::<T>())
        {
            true => std::iter::once(0..place.rows).collect(),
            false => row_blocks(place.rows, cols, place.entries),
        };
        let here = |block: &Range<usize>| block.start.max(own.start)..block.end.min(own.end);
        let begins = |block: &Range<usize>| own.contains(&block.start) && !block.is_empty();
        let head = blocks
            .iter()
            .find(|block| block.start < own.start && block.end > own.start && !own.is_empty());
        let mut part = PartMoments {
            features,
            takes,
            place,
            begun: Vec::new(),
            head: head.cloned(),
        };
        let begun: Vec<Range<usize>> = blocks.into_iter().filter(|block| begins(block)).collect();
        part.begun = parallel::map_items(begun, |_, block| {
            let mut sums = vec![[0.0; 2]; cols];
            part.add(here(&block), &mut sums);
            (block, sums)
        });
        part
    }

    /// Numbers that are passed on, of `cols` columns; zeros at first.
    pub(crate) fn len(cols: usize) -> usize {
        4 * cols
    }

    /// Goes on with what those before have passed on.
    pub(crate) fn carry(&self, passed: &mut [f64]) {
        let end = self.place.first + self.features.rows();
        let (passed, _) = passed.as_chunks_mut::<2>();
        let (total, open) = passed.split_at_mut(self.features.cols());
        if let Some(head) = &self.head {
            self.add(self.place.first..head.end.min(end), open);
            if head.end <= end {
                complete(total, open);
            }
        }
        for (block, sums) in &self.begun {
            open.copy_from_slice(sums);
            if block.end <= end {
                complete(total, open);
            }
        }
    }

    /// Of what the last one has passed on.
    pub(crate) fn finish(passed: &[f64]) -> ColumnMoments {
        let (passed, _) = passed.as_chunks::<2>();
        ColumnMoments::of_sums(&passed[..passed.len() / 2])
    }

    fn add(&self, rows: Range<usize>, sums: &mut [Sums]) {
        let own = rows.start - self.place.first..rows.end - self.place.first;
        let taken = own.filter(|row| (self.takes)(*row));
        if let Some(x) = self.features.csr_arrays() {
            return add_csr_rows(&x, taken, sums);
        }
        match self.features.storage() {
            Storage::Sparse(_) => unreachable!("sparse features have their arrays"),
            Storage::Dense(x) => taken.for_each(|row| add_row(sums, x.index_axis(Axis(0), row))),
        }
    }
}

/// Adds the entries of some rows to the sums of their columns.
fn add_csr_rows<T: Element>(
    x: &CsrArrays<'_, T>,
    rows: impl Iterator<Item = usize>,
    sums: &mut [Sums],
) {
    with_offsets!(x.offsets, offsets => {
        for row in rows {
            let entries = offsets[row] as usize..offsets[row + 1] as usize;
            let indices = &x.indices[entries.clone()];
            for (&j, value) in indices.iter().zip(&x.values[entries]) {
                add(&mut sums[j as usize], value.to_f64());
            }
        }
    });
}

/// Adds the sums of a block that is complete.
fn complete(total: &mut [Sums], open: &[Sums]) {
    for (total, sums) in total.iter_mut().zip(open) {
        total[0] += sums[0];
        total[1] += sums[1];
    }
}

fn are_ones<T: Element>(values: &[T]) -> bool {
    let one = T::from_f64(1.0);
    // Parts are looked at to their ends, by loops that vectorise.
    let are_ones = |part: &[T]| part.iter().fold(true, |all, value| all & (*value == one));
    parallel::all_chunks(values, VALUES_PER_TASK, are_ones)
}

/// Columns whose sums one task adds.
const COLUMNS: usize = 1 << 12;

/// Σ x and Σ x² of a column, side by side: both are in the line of the cache that one entry needs.
type Sums = [f64; 2];

#[inline]
fn add(sums: &mut Sums, value: f64) {
    sums[0] += value;
    sums[1] += value * value;
}

fn add_row<'a, T: Element>(sums: &mut [Sums], values: impl IntoIterator<Item = &'a T>) {
    for (sums, value) in sums.iter_mut().zip(values) {
        add(sums, value.to_f64());
    }
}

/// Adds to each column the sums of the blocks in order.
fn add_blocks(total: &mut [Sums], blocks: &[Vec<Sums>]) {
    parallel::for_each_item(total.chunks_mut(COLUMNS), |number, total| {
        for block in blocks {
            for (total, sums) in total.iter_mut().zip(&block[number * COLUMNS..]) {
                total[0] += sums[0];
                total[1] += sums[1];
            }
        }
    });
}

/// Whether sums of blocks would take more than a sixteenth of the entries' memory: a matter of the shape alone.
fn sums_are_large(rows: usize, cols: usize, nnz: usize, value: usize) -> bool {
    let blocks = row_blocks(rows, cols, nnz).len();
    blocks > 1 && blocks * cols * size_of::<Sums>() > nnz * (4 + value) / 16
}

/// Cuts the rows into blocks by the shape alone: as many as pay for clearing and adding n sums
/// each, so that a matrix with very many columns is not drowned in partial sums.
fn row_blocks(rows: usize, cols: usize, nnz: usize) -> Vec<Range<usize>> {
    let paid = nnz / (ENTRIES_PER_COLUMN * cols.max(1));
    let blocks = paid.clamp(1, MAX_BLOCKS).min(rows.max(1));
    let step = rows.div_ceil(blocks).max(1);
    (0..rows)
        .step_by(step)
        .map(|start| start..rows.min(start + step))
        .collect()
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;
    use crate::matrix::csr_from_parts;

    /// 6,000 rows of 3 entries in 4,500 columns, of small whole numbers: sums are exact in any order.
    #[test]
    fn wide_sparse_columns_are_summed_without_sums_of_blocks() {
        let (rows, cols) = (6_000_usize, 4_500_usize);
        let column = |row: usize, k: usize| ((row * 37) % 1_500 + 1_500 * k) as u32;
        let indices: Vec<u32> = (0..rows)
            .flat_map(|row| (0..3).map(move |k| column(row, k)))
            .collect();
        let values: Vec<f32> = (0..3 * rows).map(|i| (i % 7) as f32 - 3.0).collect();
        let mut expected = vec![[0.0; 2]; cols];
        for (j, value) in indices.iter().zip(&values) {
            add(&mut expected[*j as usize], f64::from(*value));
        }
        let offsets = (0..=rows).map(|row| 3 * row as u64).collect();
        let x = csr_from_parts((rows, cols), offsets, indices, values).expect("rows that ascend");
        let expected = ColumnMoments::of_sums(&expected);
        assert_eq!(
            ColumnMoments::of_csr_by_columns(&CsrArrays::of(&x), |_| true),
            expected
        );
        assert_eq!(
            ColumnMoments::of_rows(&Features::Sparse(x), |_| true),
            expected
        );
    }

    /// The moments of X in parts of these many rows.
    fn in_parts(x: &Features<f32>, parts: &[usize], takes: fn(usize) -> bool) -> ColumnMoments {
        let mut passed = vec![0.0; PartMoments::<f32>::len(x.cols())];
        let mut first = 0;
        for rows in parts {
            let part = x.select_rows(first..first + rows);
            let place = RowsOf {
                rows: x.rows(),
                entries: x.nnz(),
                first,
            };
            let own = move |row: usize| takes(first + row);
            PartMoments::begin(&part, place, &own).carry(&mut passed);
            first += rows;
        }
        assert_eq!(first, x.rows());
        PartMoments::<f32>::finish(&passed)
    }

    #[test]
    fn parts_that_continue_each_other_have_the_bits_of_the_whole() {
        let value = |i: usize, j: usize| {
            let x = ((17 * i + 5 * j) % 101) as f32 / 7.0;
            if (i + j).is_multiple_of(3) {
                1e-3 * x
            } else {
                1e3 * x
            }
        };
        let dense = Array2::from_shape_fn((997, 3), |(i, j)| value(i, j));
        let rows = 700_usize;
        let indices = (0..rows).flat_map(|i| [(i % 5) as u32, 5 + (i % 900) as u32]);
        let values = (0..2 * rows).map(|i| value(i, i % 3)).collect();
        let offsets = (0..=rows as u64).map(|row| 2 * row).collect();
        let wide = csr_from_parts((rows, 905), offsets, indices.collect(), values).expect("rows");
        // Wide ones are cut into few blocks or none.
        for x in [Features::Dense(dense), Features::Sparse(wide)] {
            let m = x.rows();
            for takes in [(|_| true) as fn(usize) -> bool, |row| row % 7 != 3] {
                let expected = ColumnMoments::of_rows(&x, takes);
                for parts in [
                    vec![m],
                    vec![0, m],
                    vec![1, m - 1],
                    vec![m / 2, 0, m - m / 2],
                    vec![m / 3, m / 7, m - m / 3 - m / 7, 0],
                ] {
                    assert_eq!(in_parts(&x, &parts, takes), expected, "{parts:?}");
                }
            }
        }
    }

    #[test]
    fn sums_of_blocks_stay_small() {
        assert!(sums_are_large(4_000_000, 1_000_000, 80_000_000, 4));
        assert!(!sums_are_large(4_000_000, 1_000, 80_000_000, 4));
    }
}
