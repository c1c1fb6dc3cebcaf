//! X̃ written from X: some rows, some of their columns, and products that touch stored entries only.

use std::ops::Range;

use ndarray::ArrayView1;

use crate::learning::Columns;
use crate::matrix::{CsrMatrix, Element, Features, Storage};

/// X with what is done to its columns.
pub(super) trait Rows: Sync {
    /// Writes some rows of X̃, row by row.
    fn write(&self, rows: Range<usize>, out: &mut [f64]);

    /// Writes these columns of some rows of X̃, row by row. `places` says for each column of X which of them it is.
    fn write_some(&self, rows: Range<usize>, columns: &[usize], places: &[u32], out: &mut [f64]);

    /// The sparse matrix, where products with it are shorter than with X̃.
    fn sparse_products(&self) -> Option<&dyn SparseProducts>;
}

/// Products that touch stored entries only.
pub(super) trait SparseProducts: Sync {
    fn predictors(&self, theta: &[f64], k: usize, rows: Range<usize>, out: &mut [f64]);
    fn transposed(&self, slopes: &[f64], k: usize, rows: Range<usize>, out: &mut [f64]);
}

/// Says for a column of X that it is none of those requested.
pub(super) const ABSENT: u32 = u32::MAX;

/// X and what is done to its columns.
pub(super) struct Streamed<'a, T> {
    pub(super) features: &'a Features<T>,
    pub(super) columns: &'a Columns,
}

/// Share of stored entries below which products touch those alone.
const VERY_SPARSE: f64 = 0.05;

impl<T: Element> Streamed<'_, T> {
    pub(super) fn is_very_sparse(&self) -> bool {
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

/// `(x − mean)·scale` of a row.
fn centred<T: Element>(row: ArrayView1<'_, T>, units: &[(f64, f64)], out: &mut [f64]) {
    let of = |(out, (x, (mean, scale))): (&mut f64, (&T, &(f64, f64)))| {
        *out = (x.to_f64() - mean) * scale;
    };
    match row.as_slice() {
        Some(row) => out.iter_mut().zip(row.iter().zip(units)).for_each(of),
        None => out.iter_mut().zip(row.iter().zip(units)).for_each(of),
    }
}

impl<T: Element> Rows for Streamed<'_, T> {
    fn write(&self, rows: Range<usize>, out: &mut [f64]) {
        let n = self.features.cols();
        let width = n + usize::from(self.columns.intercept);
        let out = out.chunks_exact_mut(width.max(1));
        let units: Vec<(f64, f64)> = (0..n).map(|j| (self.mean(j), self.scale(j))).collect();
        match self.features.storage() {
            Storage::Dense(x) => {
                for (i, out) in rows.zip(out) {
                    let (out, ones) = out.split_at_mut(n);
                    centred(x.row(i), &units, out);
                    ones.fill(1.0);
                }
            }
            Storage::Sparse(x) => {
                let zeros: Vec<f64> = (0..width).map(|j| self.of_zero(j)).collect();
                for (i, out) in rows.zip(out) {
                    out.copy_from_slice(&zeros);
                    for (j, x) in x.outer_view(i).expect("a row of X").iter() {
                        out[j] = (x.to_f64() - units[j].0) * units[j].1;
                    }
                }
            }
        }
    }

    fn write_some(&self, rows: Range<usize>, columns: &[usize], places: &[u32], out: &mut [f64]) {
        let out = out.chunks_exact_mut(columns.len().max(1));
        // The column of ones is none of X's.
        let of_x = columns.iter().filter(|j| **j < self.features.cols());
        let units: Vec<(f64, f64)> = of_x.map(|j| (self.mean(*j), self.scale(*j))).collect();
        let of = |x: T, (mean, scale): (f64, f64)| (x.to_f64() - mean) * scale;
        match self.features.storage() {
            Storage::Dense(x) => {
                for (i, out) in rows.zip(out) {
                    let (own, row) = (out.split_at_mut(units.len()), x.row(i));
                    for ((out, j), units) in own.0.iter_mut().zip(columns).zip(&units) {
                        *out = of(row[*j], *units);
                    }
                    own.1.fill(1.0);
                }
            }
            Storage::Sparse(x) => {
                let zeros: Vec<f64> = columns.iter().map(|j| self.of_zero(*j)).collect();
                for (i, out) in rows.zip(out) {
                    out.copy_from_slice(&zeros);
                    for (j, x) in x.outer_view(i).expect("a row of X").iter() {
                        if places[j] != ABSENT {
                            let place = places[j] as usize;
                            out[place] = of(*x, units[place]);
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
            Storage::Dense(_) => unreachable!("requested of sparse features only"),
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
