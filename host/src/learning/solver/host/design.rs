//! X̃ on the host, in f64: centred, scaled, with a column of ones, in blocks of rows.

use std::borrow::Cow;
use std::ops::Range;

use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::{Accum, Mat, MatMut, MatRef, Par};

use super::scaled_rows::ScaledRows;
use crate::learning::Columns;
use crate::matrix::{CsrMatrix, Element, Features, Storage};
use crate::parallel;

/// Elements up to which X̃ is written out once: 128 MiB.
const WHOLE: usize = 1 << 24;
/// Elements of a block that is written out for one product: a share of a second-level cache.
const BLOCK: usize = 1 << 15;
/// Multiplications that are worth a thread of their own.
const MIN_WORK: usize = 1 << 20;
/// Groups of rows at most, each with sums of its own.
const MOST_GROUPS: usize = 16;

/// X̃ = [(X − 1·μᵀ)·S, 1], m × `width`.
pub(in crate::learning) struct HostDesign<'a> {
    rows: usize,
    width: usize,
    source: Source<'a>,
}

enum Source<'a> {
    /// Row by row.
    Whole(Vec<f64>),
    /// From X, block by block.
    Streamed(Box<dyn Rows + 'a>),
}

/// X with what is done to its columns.
trait Rows: Sync {
    /// Writes some rows of X̃, row by row.
    fn write(&self, rows: Range<usize>, out: &mut [f64]);

    /// Writes these columns of some rows of X̃, row by row. `places` says for each column of X which of them it is.
    fn write_some(&self, rows: Range<usize>, columns: &[usize], places: &[u32], out: &mut [f64]);

    /// The sparse matrix, where products with it are shorter than with X̃.
    fn sparse_products(&self) -> Option<&dyn SparseProducts>;
}

/// Products that touch stored entries only.
trait SparseProducts: Sync {
    fn predictors(&self, theta: &[f64], k: usize, rows: Range<usize>, out: &mut [f64]);
    fn transposed(&self, slopes: &[f64], k: usize, rows: Range<usize>, out: &mut [f64]);
}

/// Says for a column of X that it is none of those asked for.
const ABSENT: u32 = u32::MAX;

impl<'a> HostDesign<'a> {
    /// X̃ of `features`, which keep as they are.
    pub(in crate::learning) fn new<T: Element>(
        features: &'a Features<T>,
        columns: &'a Columns,
    ) -> HostDesign<'a> {
        let rows = features.rows();
        let width = features.cols() + usize::from(columns.intercept);
        let streamed = Streamed { features, columns };
        let source = if rows.saturating_mul(width) <= WHOLE && !streamed.is_very_sparse() {
            Source::Whole(written(rows, width, |range, out| {
                streamed.write(range, out)
            }))
        } else {
            Source::Streamed(Box::new(streamed))
        };
        HostDesign {
            rows,
            width,
            source,
        }
    }

    /// Of X̃ itself, row by row.
    pub(in crate::learning) fn of_values(rows: usize, width: usize, values: Vec<f64>) -> Self {
        assert_eq!(values.len(), rows * width, "elements of X̃");
        HostDesign {
            rows,
            width,
            source: Source::Whole(values),
        }
    }

    /// m.
    pub(in crate::learning) fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of X̃.
    pub(in crate::learning) fn width(&self) -> usize {
        self.width
    }

    /// Some columns of X̃, in ascending order.
    pub(super) fn select(&self, columns: &[usize]) -> HostDesign<'static> {
        let (rows, width) = (self.rows, columns.len());
        let values = match &self.source {
            Source::Whole(all) => written(rows, width, |range, out| {
                let from = all[range.start * self.width..].chunks_exact(self.width.max(1));
                for (row, out) in from.zip(out.chunks_exact_mut(width)) {
                    let pairs = out.iter_mut().zip(columns);
                    pairs.for_each(|(out, column)| *out = row[*column]);
                }
            }),
            Source::Streamed(x) => {
                let mut places = vec![ABSENT; self.width];
                for (place, column) in columns.iter().enumerate() {
                    places[*column] = place as u32;
                }
                written(rows, width, |range, out| {
                    x.write_some(range, columns, &places, out);
                })
            }
        };
        HostDesign::of_values(rows, width, values)
    }

    /// X̃·Θ, m × k row by row, Θ `width` × k row by row.
    pub(in crate::learning) fn predictors(&self, theta: &[f64], k: usize) -> Vec<f64> {
        let groups = self.in_groups(self.width * k, |rows| {
            let mut out = vec![0.0; rows.len() * k];
            if let Some(sparse) = self.sparse_products() {
                sparse.predictors(theta, k, rows, &mut out);
                return out;
            }
            let theta = MatRef::from_row_major_slice(theta, self.width, k);
            let first = rows.start;
            self.for_blocks(rows, |at, block| {
                let own = &mut out[(at.start - first) * k..][..at.len() * k];
                let own = MatMut::from_row_major_slice_mut(own, at.len(), k);
                matmul(own, Accum::Replace, block, theta, 1.0, Par::Seq);
            });
            out
        });
        groups.concat()
    }

    /// X̃ᵀ·S, `width` × k row by row, S m × k row by row.
    pub(in crate::learning) fn transposed(&self, slopes: &[f64], k: usize) -> Vec<f64> {
        let groups = self.in_groups(self.width * k, |rows| {
            let mut out = vec![0.0; self.width * k];
            if let Some(sparse) = self.sparse_products() {
                sparse.transposed(slopes, k, rows, &mut out);
                return out;
            }
            self.for_blocks(rows, |at, block| {
                let own = &slopes[at.start * k..at.end * k];
                let own = MatRef::from_row_major_slice(own, at.len(), k);
                let out = MatMut::from_row_major_slice_mut(&mut out, self.width, k);
                matmul(out, Accum::Add, block.transpose(), own, 1.0, Par::Seq);
            });
            out
        });
        added(groups)
    }

    /// X̃ᵀ·diag(dₑ)·X̃ for `count` diagonals, `width` × `width` each; `diagonal(e, i)` is element i of dₑ.
    pub(in crate::learning) fn grams(
        &self,
        count: usize,
        diagonal: impl Fn(usize, usize) -> f64 + Sync,
    ) -> Vec<Mat<f64>> {
        let width = self.width;
        let work = width * width * count / 2;
        let groups = self.in_groups(work.max(1), |rows| {
            let mut sums = vec![Mat::<f64>::zeros(width, width); count];
            let mut rows_of = ScaledRows::default();
            self.for_blocks(rows, |at, block| {
                for (number, sum) in sums.iter_mut().enumerate() {
                    rows_of.fill(block, |i| diagonal(number, at.start + i));
                    let (left, scaled) = rows_of.both(block);
                    add_gram(sum, left, scaled);
                }
            });
            sums
        });
        let mut groups = groups.into_iter();
        let mut total = groups.next().unwrap_or_default();
        for group in groups {
            for (total, part) in total.iter_mut().zip(&group) {
                *total += part;
            }
        }
        total.resize_with(count, || Mat::zeros(width, width));
        total.iter_mut().for_each(mirror);
        total
    }

    /// The lower triangle of X̃·X̃ᵀ over the first `columns` columns that are not held: m × m.
    pub(super) fn row_gram(&self, columns: usize, held: &[bool]) -> Mat<f64> {
        let (m, free) = (self.rows, (0..columns).filter(|j| !held[*j]));
        let free: Vec<usize> = free.collect();
        let all = match &self.source {
            Source::Whole(values) => Cow::Borrowed(values),
            Source::Streamed(x) => {
                Cow::Owned(written(m, self.width, |rows, out| x.write(rows, out)))
            }
        };
        // Columns are cut into groups as rows are elsewhere: each reads its part of every row.
        let parts = grouped(free.len(), m * m / 2, |part| {
            let mut sum = Mat::<f64>::zeros(m, m);
            let mut values = Vec::new();
            for part in free[part].chunks((BLOCK / m.max(1)).clamp(32, 1024)) {
                values.clear();
                for row in all.chunks_exact(self.width) {
                    values.extend(part.iter().map(|j| row[*j]));
                }
                let part = MatRef::from_row_major_slice(&values, m, part.len());
                add_gram(&mut sum, part.transpose(), part.transpose());
            }
            sum
        });
        let mut parts = parts.into_iter();
        let first = parts.next().unwrap_or_else(|| Mat::zeros(m, m));
        parts.fold(first, |sum, part| sum + part)
    }

    /// X̃ some rows at a time, in order.
    pub(super) fn for_blocks(
        &self,
        rows: Range<usize>,
        mut f: impl FnMut(Range<usize>, MatRef<'_, f64>),
    ) {
        let width = self.width;
        let step = (BLOCK / width.max(1)).clamp(16, 1024);
        let mut scratch = Vec::new();
        let mut start = rows.start;
        while start < rows.end {
            let range = start..(start + step).min(rows.end);
            start = range.end;
            let values = match &self.source {
                Source::Whole(values) => &values[range.start * width..range.end * width],
                Source::Streamed(x) => {
                    scratch.resize(range.len() * width, 0.0);
                    x.write(range.clone(), &mut scratch);
                    &scratch[..]
                }
            };
            f(
                range.clone(),
                MatRef::from_row_major_slice(values, range.len(), width),
            );
        }
    }

    fn sparse_products(&self) -> Option<&dyn SparseProducts> {
        match &self.source {
            Source::Whole(_) => None,
            Source::Streamed(x) => x.sparse_products(),
        }
    }

    /// What `f` makes of groups of rows, in order. Groups depend on the shape alone.
    fn in_groups<R: Send>(&self, per_row: usize, f: impl Fn(Range<usize>) -> R + Sync) -> Vec<R> {
        grouped(self.rows, per_row, f)
    }
}

/// What `f` makes of groups of rows, in order; each row takes `per_row` multiplications.
pub(super) fn grouped<R: Send>(
    rows: usize,
    per_row: usize,
    f: impl Fn(Range<usize>) -> R + Sync,
) -> Vec<R> {
    let work = rows.saturating_mul(per_row);
    let groups = (work / MIN_WORK).clamp(1, MOST_GROUPS);
    if groups == 1 {
        return vec![f(0..rows)];
    }
    let step = rows.div_ceil(groups);
    let range = |group: usize| (group * step).min(rows)..((group + 1) * step).min(rows);
    parallel::map(groups, |group| f(range(group)))
}

/// m × `width` elements, row by row, that `write` fills some rows at a time.
fn written(rows: usize, width: usize, write: impl Fn(Range<usize>, &mut [f64]) + Sync) -> Vec<f64> {
    let mut values = vec![0.0; rows * width];
    if rows * width < MIN_WORK {
        write(0..rows, &mut values);
        return values;
    }
    let step = (BLOCK / width.max(1)).max(1);
    let chunks = values.chunks_mut(step * width);
    parallel::for_each_item(chunks, |chunk, out| {
        let start = chunk * step;
        write(start..start + out.len() / width, out);
    });
    values
}

/// The sum of lists of equal length.
pub(super) fn added(lists: Vec<Vec<f64>>) -> Vec<f64> {
    let mut lists = lists.into_iter();
    let mut total = lists.next().unwrap_or_default();
    for list in lists {
        total.iter_mut().zip(list).for_each(|(a, b)| *a += b);
    }
    total
}

/// Adds the lower triangle of `block`ᵀ·`scaled`.
fn add_gram(sum: &mut Mat<f64>, block: MatRef<'_, f64>, scaled: MatRef<'_, f64>) {
    triangular::matmul(
        sum.as_mut(),
        BlockStructure::TriangularLower,
        Accum::Add,
        block.transpose(),
        BlockStructure::Rectangular,
        scaled,
        BlockStructure::Rectangular,
        1.0,
        Par::Seq,
    );
}

/// Fills the upper triangle from the lower.
fn mirror(matrix: &mut Mat<f64>) {
    for j in 0..matrix.ncols() {
        for i in 0..j {
            matrix[(i, j)] = matrix[(j, i)];
        }
    }
}

/// X and what is done to its columns.
struct Streamed<'a, T> {
    features: &'a Features<T>,
    columns: &'a Columns,
}

/// Share of stored entries below which products touch those alone.
const VERY_SPARSE: f64 = 0.05;

impl<T: Element> Streamed<'_, T> {
    fn is_very_sparse(&self) -> bool {
        match self.features.storage() {
            Storage::Sparse(x) => {
                (x.nnz() as f64) < VERY_SPARSE * x.rows() as f64 * x.cols() as f64
            }
            Storage::Dense(_) => false,
        }
    }

    fn mean(&self, j: usize) -> f64 {
        self.columns.means.as_ref().map_or(0.0, |means| means[j])
    }

    fn scale(&self, j: usize) -> f64 {
        self.columns.scales.as_ref().map_or(1.0, |scales| scales[j])
    }

    /// X̃ of a zero entry of column j; 1 for the column of ones.
    fn of_zero(&self, j: usize) -> f64 {
        if j == self.features.cols() {
            1.0
        } else {
            -self.mean(j) * self.scale(j)
        }
    }
}

impl<T: Element> Rows for Streamed<'_, T> {
    fn write(&self, rows: Range<usize>, out: &mut [f64]) {
        let n = self.features.cols();
        let width = n + usize::from(self.columns.intercept);
        let out = out.chunks_exact_mut(width.max(1));
        let means: Vec<f64> = (0..n).map(|j| self.mean(j)).collect();
        let scales: Vec<f64> = (0..n).map(|j| self.scale(j)).collect();
        let zeros: Vec<f64> = (0..width).map(|j| self.of_zero(j)).collect();
        for (i, out) in rows.zip(out) {
            out.copy_from_slice(&zeros);
            match self.features.storage() {
                Storage::Dense(x) => {
                    let units = means.iter().zip(&scales);
                    for ((out, x), (mean, scale)) in out.iter_mut().zip(x.row(i)).zip(units) {
                        *out = (x.to_f64() - mean) * scale;
                    }
                }
                Storage::Sparse(x) => {
                    let row = x.outer_view(i).expect("a row of X");
                    for (j, x) in row.iter() {
                        out[j] = (x.to_f64() - means[j]) * scales[j];
                    }
                }
            }
        }
    }

    fn write_some(&self, rows: Range<usize>, columns: &[usize], places: &[u32], out: &mut [f64]) {
        let zeros: Vec<f64> = columns.iter().map(|j| self.of_zero(*j)).collect();
        let of = |x: T, j: usize| (x.to_f64() - self.mean(j)) * self.scale(j);
        for (i, out) in rows.zip(out.chunks_exact_mut(columns.len().max(1))) {
            out.copy_from_slice(&zeros);
            match self.features.storage() {
                Storage::Dense(x) => {
                    for (out, j) in out.iter_mut().zip(columns) {
                        if *j < x.ncols() {
                            *out = of(x[[i, *j]], *j);
                        }
                    }
                }
                Storage::Sparse(x) => {
                    for (j, x) in x.outer_view(i).expect("a row of X").iter() {
                        if places[j] != ABSENT {
                            out[places[j] as usize] = of(*x, j);
                        }
                    }
                }
            }
        }
    }

    fn sparse_products(&self) -> Option<&dyn SparseProducts> {
        self.features
            .is_sparse()
            .then_some(self as &dyn SparseProducts)
    }
}

impl<T: Element> Streamed<'_, T> {
    fn sparse(&self) -> &CsrMatrix<T> {
        match self.features.storage() {
            Storage::Sparse(x) => x,
            Storage::Dense(_) => unreachable!("asked for of sparse features only"),
        }
    }
}

impl<T: Element> SparseProducts for Streamed<'_, T> {
    fn predictors(&self, theta: &[f64], k: usize, rows: Range<usize>, out: &mut [f64]) {
        let x = self.sparse();
        let mut constants = vec![0.0; k];
        let mut scaled = theta[..x.cols() * k].to_vec();
        for (j, theta) in scaled.chunks_exact_mut(k).enumerate() {
            let (mean, scale) = (self.mean(j), self.scale(j));
            for (theta, constant) in theta.iter_mut().zip(&mut constants) {
                *theta *= scale;
                *constant -= mean * *theta;
            }
        }
        let intercepts = theta[x.cols() * k..].iter();
        constants
            .iter_mut()
            .zip(intercepts)
            .for_each(|(c, b)| *c += b);
        for (i, out) in rows.zip(out.chunks_exact_mut(k)) {
            out.copy_from_slice(&constants);
            for (j, x) in x.outer_view(i).expect("a row of X").iter() {
                let x = x.to_f64();
                let theta = &scaled[j * k..(j + 1) * k];
                out.iter_mut().zip(theta).for_each(|(out, w)| *out += x * w);
            }
        }
    }

    fn transposed(&self, slopes: &[f64], k: usize, rows: Range<usize>, out: &mut [f64]) {
        let x = self.sparse();
        let mut sums = vec![0.0; k];
        for i in rows {
            let slopes = &slopes[i * k..(i + 1) * k];
            sums.iter_mut().zip(slopes).for_each(|(sum, s)| *sum += s);
            for (j, x) in x.outer_view(i).expect("a row of X").iter() {
                let x = x.to_f64();
                let out = &mut out[j * k..(j + 1) * k];
                out.iter_mut()
                    .zip(slopes)
                    .for_each(|(out, s)| *out += x * s);
            }
        }
        let (coef, intercepts) = out.split_at_mut(x.cols() * k);
        for (j, out) in coef.chunks_exact_mut(k).enumerate() {
            let (mean, scale) = (self.mean(j), self.scale(j));
            out.iter_mut()
                .zip(&sums)
                .for_each(|(out, sum)| *out = (*out - mean * sum) * scale);
        }
        intercepts.copy_from_slice(&sums[..intercepts.len()]);
    }
}
