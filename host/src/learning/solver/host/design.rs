//! X̃ on the host, in f64: centred, scaled, with a column of ones, in blocks of rows.

use std::ops::Range;

use faer::{Accum, Mat, MatMut, MatRef};

use super::groups::{
    BLOCK, MIN_WORK, MOST_GROUPS, add_gram, added, cut, mirror, multiply, rows_of_group, written,
};
use super::scaled_rows::ScaledRows;
use super::streamed::{ABSENT, Entered, Entries, Rows, SparseProducts, Streamed};
use crate::learning::Columns;
use crate::matrix::{Element, Features};
use crate::parallel;

/// Elements up to which X̃ is written out once: 128 MiB.
const WHOLE: usize = 1 << 24;
/// The same where it is read a few times only: what a second-level cache holds. Writing more takes as long as reading X
/// three times, in memory that the system has to clear first.
const WHOLE_FOR_FEW: usize = 1 << 16;
/// Columns that are worth sums of their own in a Gram matrix of rows.
const MIN_COLUMNS: usize = 256;
/// Multiplications, one after the other in memory, that take as long as one with a stored entry of a sparse X.
const PER_ENTRY: f64 = 8.0;
/// Groups of rows at most where sums take more memory than rows.
const FEW_GROUPS: usize = 4;

/// X̃ = [(X − 1·μᵀ)·S, 1], m × `width`.
pub(in crate::learning) struct HostDesign<'a> {
    rows: usize,
    width: usize,
    source: Source<'a>,
}

/// How often a solve reads X̃.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::learning) enum Reads {
    /// A Hessian, and two points.
    Few,
    /// Every iteration.
    Many,
    /// Every iteration, by the stored entries of a sparse X alone.
    Stored,
}

/// Predictors of all rows, what a loss makes of them, and X̃ᵀ·slopes.
pub(super) struct ForthAndBack {
    /// m × k.
    pub(super) predictors: Vec<f64>,
    /// Σ v·loss.
    pub(super) loss: f64,
    /// m × k.
    pub(super) slopes: Vec<f64>,
    /// What the loss keeps for the Hessian, m × k.
    pub(super) kept: Vec<f64>,
    /// `width` × k.
    pub(super) gradient: Vec<f64>,
    /// X̃ᵀ·diag(d)·X̃, where d was given.
    pub(super) gram: Option<Mat<f64>>,
}

/// d of X̃ᵀ·diag(d)·X̃, one element for each row.
pub(super) type Diagonal<'a> = &'a (dyn Fn(usize) -> f64 + Sync);

/// Θ, and for products with stored entries, where it is those.
type Theta<'a> = (&'a [f64], Option<&'a (&'a dyn SparseProducts, Entered<'a>)>);

/// What some rows add up to.
struct OfGroup {
    loss: f64,
    gradient: Vec<f64>,
    gram: Option<Mat<f64>>,
}

/// Predictors of some rows, and where what a loss makes of them goes.
pub(super) struct OfRows<'a> {
    pub(super) predictors: &'a mut [f64],
    pub(super) slopes: &'a mut [f64],
    pub(super) kept: &'a mut [f64],
}

impl OfGroup {
    fn add(&mut self, other: OfGroup) {
        self.loss += other.loss;
        self.gradient
            .iter_mut()
            .zip(other.gradient)
            .for_each(|(a, b)| *a += b);
        match (&mut self.gram, other.gram) {
            (Some(sum), Some(gram)) => *sum += gram,
            (sum, gram) => *sum = gram,
        }
    }
}

impl OfRows<'_> {
    /// Those from row `start` on of k elements each, `count` of them.
    fn rows(&mut self, start: usize, count: usize, k: usize) -> OfRows<'_> {
        let own = start * k..(start + count) * k;
        OfRows {
            predictors: &mut self.predictors[own.clone()],
            slopes: &mut self.slopes[own.clone()],
            kept: &mut self.kept[own],
        }
    }
}

enum Source<'a> {
    /// Row by row.
    Whole(Vec<f64>),
    /// From X, block by block.
    Streamed(Box<dyn Rows + 'a>),
}

impl<'a> HostDesign<'a> {
    /// X̃ of `features`, which keep as they are.
    pub(in crate::learning) fn new<T: Element>(
        features: &'a Features<T>,
        columns: &'a Columns<'a>,
        reads: Reads,
    ) -> HostDesign<'a> {
        let rows = features.rows();
        let width = features.cols() + usize::from(columns.intercept);
        let streamed = Streamed { features, columns };
        let most = match reads {
            Reads::Few if !features.is_sparse() => WHOLE_FOR_FEW,
            Reads::Few | Reads::Many => WHOLE,
            Reads::Stored => 0,
        };
        let source = if rows.saturating_mul(width) <= most && !streamed.is_very_sparse() {
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
        let step = rows_of_group(self.rows, self.per_row() * k, MOST_GROUPS);
        let mut out = vec![0.0; self.rows * k];
        let sparse = self.entered(theta, k);
        parallel::for_each_item(out.chunks_mut(step * k), |group, out| {
            let rows = group * step..group * step + out.len() / k;
            if let Some((sparse, theta)) = &sparse {
                return sparse.predictors(theta, rows, out);
            }
            let theta = MatRef::from_row_major_slice(theta, self.width, k);
            let first = rows.start;
            self.for_blocks(rows, |at, block| {
                let own = &mut out[(at.start - first) * k..][..at.len() * k];
                let own = MatMut::from_row_major_slice_mut(own, at.len(), k);
                multiply(own, Accum::Replace, block, theta);
            });
        });
        out
    }

    /// Θ for products with stored entries, where it is those.
    fn entered<'t>(
        &self,
        theta: &'t [f64],
        k: usize,
    ) -> Option<(&dyn SparseProducts, Entered<'t>)> {
        let sparse = self.sparse_products()?;
        Some((sparse, sparse.enter(theta, k)))
    }

    /// X̃ᵀ·S, `width` × k row by row, S m × k row by row.
    pub(in crate::learning) fn transposed(&self, slopes: &[f64], k: usize) -> Vec<f64> {
        let groups = self.in_groups(self.per_row() * k, |rows| {
            let mut out = vec![0.0; self.width * k];
            if let Some(sparse) = self.sparse_products() {
                let own = &slopes[rows.start * k..rows.end * k];
                sparse.transposed(own, k, rows, &mut out);
                return out;
            }
            self.for_blocks(rows, |at, block| {
                let own = &slopes[at.start * k..at.end * k];
                let own = MatRef::from_row_major_slice(own, at.len(), k);
                let out = MatMut::from_row_major_slice_mut(&mut out, self.width, k);
                multiply(out, Accum::Add, block.transpose(), own);
            });
            out
        });
        added(groups)
    }

    /// Predictors X̃·Θ, what `judge` makes of some rows at a time, X̃ᵀ·slopes, and a Gram matrix where its diagonal is given:
    /// X̃ is read once.
    ///
    /// `judge` may change the predictors that it is given, fills in slopes and what is kept, and returns Σ v·loss; `per_row`
    /// is what it takes, in multiplications.
    pub(super) fn forth_and_back(
        &self,
        (theta, k): (&[f64], usize),
        per_row: usize,
        diagonal: Option<Diagonal<'_>>,
        judge: impl Fn(Range<usize>, OfRows<'_>) -> f64 + Sync,
    ) -> ForthAndBack {
        let all = || vec![0.0; self.rows * k];
        let (mut predictors, mut slopes, mut kept) = (all(), all(), all());
        let groups = match diagonal {
            None => self.most_sums(),
            Some(_) => self.most_grams(1),
        };
        let sparse = self.entered(theta, k);
        let per_row = per_row + diagonal.map_or(0, |_| self.width * self.width / 2);
        let step = rows_of_group(self.rows, 2 * self.per_row() * k + per_row, groups);
        let own = (predictors.chunks_mut(step * k))
            .zip(slopes.chunks_mut(step * k))
            .zip(kept.chunks_mut(step * k));
        let parts = parallel::map_items(own, |group, ((predictors, slopes), kept)| {
            let start = group * step;
            let mut out = OfRows {
                predictors,
                slopes,
                kept,
            };
            let theta = (theta, sparse.as_ref());
            self.group_forth_and_back((theta, k), start, &mut out, (&judge, diagonal))
        });
        let mut total = OfGroup {
            loss: 0.0,
            gradient: vec![0.0; self.width * k],
            gram: None,
        };
        parts.into_iter().for_each(|part| total.add(part));
        if let Some(gram) = &mut total.gram {
            mirror(gram);
        }
        ForthAndBack {
            predictors,
            loss: total.loss,
            slopes,
            kept,
            gradient: total.gradient,
            gram: total.gram,
        }
    }

    /// Groups of rows that sums over the columns are worth: of a sparse X they take no more than its entries.
    fn most_sums(&self) -> usize {
        let of_entries = |x: &dyn SparseProducts| {
            let entries = x.mean_entries() * self.rows as f64;
            (entries as usize / self.width.max(1)).clamp(1, MOST_GROUPS)
        };
        self.sparse_products().map_or(MOST_GROUPS, of_entries)
    }

    /// Groups of rows that sums of `count` Gram matrices are worth: they stay smaller than X̃ itself.
    fn most_grams(&self, count: usize) -> usize {
        (self.rows / (2 * self.width * count).max(1)).clamp(FEW_GROUPS, MOST_GROUPS)
    }

    /// Of the rows from `start` on.
    fn group_forth_and_back(
        &self,
        ((theta, sparse), k): (Theta<'_>, usize),
        start: usize,
        out: &mut OfRows<'_>,
        (judge, diagonal): (
            &(impl Fn(Range<usize>, OfRows<'_>) -> f64 + Sync),
            Option<Diagonal<'_>>,
        ),
    ) -> OfGroup {
        let rows = start..start + out.predictors.len() / k;
        let mut gradient = vec![0.0; self.width * k];
        let mut gram = diagonal.map(|_| Mat::zeros(self.width, self.width));
        if let Some((sparse, theta)) = sparse {
            sparse.predictors(theta, rows.clone(), out.predictors);
            let loss = judge(rows.clone(), out.rows(0, rows.len(), k));
            sparse.transposed(out.slopes, k, rows, &mut gradient);
            return OfGroup {
                loss,
                gradient,
                gram: None,
            };
        }
        let (mut loss, mut rows_of) = (0.0, ScaledRows::default());
        let theta = MatRef::from_row_major_slice(theta, self.width, k);
        self.for_blocks(rows, |at, block| {
            let own = out.rows(at.start - start, at.len(), k);
            let predictors = MatMut::from_row_major_slice_mut(own.predictors, at.len(), k);
            multiply(predictors, Accum::Replace, block, theta);
            loss += judge(at.clone(), out.rows(at.start - start, at.len(), k));
            let own = out.rows(at.start - start, at.len(), k);
            let slopes = MatRef::from_row_major_slice(&*own.slopes, at.len(), k);
            let sum = MatMut::from_row_major_slice_mut(&mut gradient, self.width, k);
            multiply(sum, Accum::Add, block.transpose(), slopes);
            if let (Some(gram), Some(diagonal)) = (&mut gram, diagonal) {
                rows_of.fill(block, |i| diagonal(at.start + i));
                let (left, scaled, by) = rows_of.both(block);
                add_gram(gram, left, scaled, by);
            }
        });
        OfGroup {
            loss,
            gradient,
            gram,
        }
    }

    /// X̃ᵀ·diag(dₑ)·X̃ for `count` diagonals, `width` × `width` each; `diagonal(e, i)` is element i of dₑ.
    pub(in crate::learning) fn grams(
        &self,
        count: usize,
        diagonal: impl Fn(usize, usize) -> f64 + Sync,
    ) -> Vec<Mat<f64>> {
        let width = self.width;
        let work = width * width * count / 2;
        let groups = (self.rows.saturating_mul(work.max(1)) / MIN_WORK).min(self.most_grams(count));
        let groups = cut(self.rows, groups, |rows| {
            let mut sums = vec![Mat::<f64>::zeros(width, width); count];
            let mut rows_of = ScaledRows::default();
            self.for_blocks(rows, |at, block| {
                for (number, sum) in sums.iter_mut().enumerate() {
                    rows_of.fill(block, |i| diagonal(number, at.start + i));
                    let (left, scaled, by) = rows_of.both(block);
                    add_gram(sum, left, scaled, by);
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
        // Columns of sparse rows are not at hand one by one.
        let written = match &self.source {
            Source::Streamed(x) if x.sparse_products().is_some() => {
                let all = written(m, self.width, |rows, out| x.write(rows, out));
                Some(HostDesign::of_values(m, self.width, all))
            }
            _ => None,
        };
        let source = &written.as_ref().unwrap_or(self).source;
        // Columns are cut into groups as rows are elsewhere: each reads its part of every row.
        let groups = (free.len() * (m * m / 2) / MIN_WORK).min(free.len() / MIN_COLUMNS);
        let parts = cut(free.len(), groups, |part| {
            let mut sum = Mat::<f64>::zeros(m, m);
            let mut values = Vec::new();
            for part in free[part].chunks((BLOCK / m.max(1)).clamp(32, 1024)) {
                self.columns_of(source, part, &mut values);
                let part = MatRef::from_row_major_slice(&values, m, part.len());
                add_gram(&mut sum, part.transpose(), part.transpose(), 1.0);
            }
            sum
        });
        let mut parts = parts.into_iter();
        let mut sum = parts.next().unwrap_or_else(|| Mat::zeros(m, m));
        parts.for_each(|part| sum += part);
        sum
    }

    /// These columns of every row, row by row.
    fn columns_of(&self, source: &Source<'_>, columns: &[usize], values: &mut Vec<f64>) {
        match source {
            Source::Whole(all) => {
                values.clear();
                for row in all.chunks_exact(self.width) {
                    values.extend(columns.iter().map(|j| row[*j]));
                }
            }
            Source::Streamed(x) => {
                values.resize(self.rows * columns.len(), 0.0);
                x.write_some(0..self.rows, columns, &[], values);
            }
        }
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

    /// The entries of a sparse X that is read as it is.
    pub(super) fn entries(&self) -> Option<&dyn Entries> {
        match &self.source {
            Source::Whole(_) => None,
            Source::Streamed(x) => x.entries(),
        }
    }

    /// Whether products touch stored entries only.
    pub(super) fn is_sparse(&self) -> bool {
        self.sparse_products().is_some()
    }

    /// Whether products with k columns are worth several threads.
    pub(super) fn is_parallel(&self, k: usize) -> bool {
        self.rows.saturating_mul(self.per_row() * k) >= 2 * MIN_WORK
    }

    /// Multiplications that a row's product with a vector is worth.
    fn per_row(&self) -> usize {
        match self.sparse_products() {
            Some(x) => (PER_ENTRY * x.mean_entries()) as usize + 1,
            None => self.width,
        }
    }

    pub(super) fn sparse_products(&self) -> Option<&dyn SparseProducts> {
        match &self.source {
            Source::Whole(_) => None,
            Source::Streamed(x) => x.sparse_products(),
        }
    }

    /// What `f` makes of groups of rows that have sums over the columns, in order. Groups depend on the shape alone.
    fn in_groups<R: Send>(&self, per_row: usize, f: impl Fn(Range<usize>) -> R + Sync) -> Vec<R> {
        let groups = self.rows.saturating_mul(per_row) / MIN_WORK;
        cut(self.rows, groups.min(self.most_sums()), f)
    }
}
