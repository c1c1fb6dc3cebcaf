//! Per-column sums over all entries.

use std::ops::Range;

use ndarray::{ArrayView2, Axis};

use super::{CsrMatrix, Element, Features, Storage, frequencies};
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
        match features {
            Features::Sparse(x) if are_ones(x.data()) => Self::of_ones(x),
            Features::Sparse(_) | Features::Dense(_) | Features::Shared(_) => {
                Self::of_rows(features, |_| true)
            }
        }
    }

    /// [`ColumnMoments::of`] the rows that are taken.
    pub fn of_rows<T: Element>(
        features: &Features<T>,
        takes: impl Fn(usize) -> bool + Sync,
    ) -> Self {
        match features.storage() {
            Storage::Sparse(x) => Self::of_csr(x, takes),
            Storage::Dense(x) if x.is_standard_layout() => Self::of_dense(x, takes),
            Storage::Dense(x) => Self::of_columns(x, takes),
        }
    }

    /// Mean of each column over `rows` rows; zeros when there are none.
    pub fn means(&self, rows: usize) -> Vec<f64> {
        let m = rows.max(1) as f64;
        self.sum.iter().map(|sum| sum / m).collect()
    }

    /// Sums of ones are counts, exact in any order; counting takes a fifth of the time.
    fn of_ones<T: Element>(x: &CsrMatrix<T>) -> Self {
        let sum: Vec<f64> = frequencies(x).into_iter().map(|of| of as f64).collect();
        Self {
            sum_of_squares: sum.clone(),
            sum,
        }
    }

    fn of_csr<T: Element>(x: &CsrMatrix<T>, takes: impl Fn(usize) -> bool + Sync) -> Self {
        let offsets = x.indptr();
        let offsets = offsets.raw_storage();
        Self::by_blocks(x.rows(), x.cols(), x.nnz(), |rows, sums| {
            for row in rows.filter(|row| takes(*row)) {
                let entries = offsets[row] as usize..offsets[row + 1] as usize;
                let indices = &x.indices()[entries.clone()];
                for (&j, value) in indices.iter().zip(&x.data()[entries]) {
                    add(&mut sums[j as usize], value.to_f64());
                }
            }
        })
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
        Self::of_sums(&total)
    }

    fn of_sums(sums: &[Sums]) -> Self {
        Self {
            sum: parallel::convert(sums, |[sum, _]| *sum),
            sum_of_squares: parallel::convert(sums, |[_, of_squares]| *of_squares),
        }
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
