//! Products with the stored entries of a sparse X.

use std::borrow::Cow;
use std::ops::Range;

use super::streamed::{Entered, SparseProducts, Streamed};
use crate::matrix::{CsrMatrix, Element, Storage};

/// Rows of a sparse X as slices.
struct Lines<'a, T> {
    offsets: &'a [u64],
    indices: &'a [u32],
    values: &'a [T],
}

impl<'a, T: Element> Lines<'a, T> {
    fn of(x: &'a CsrMatrix<T>) -> Self {
        Lines {
            offsets: x.indptr().into_raw_storage(),
            indices: x.indices(),
            values: x.data(),
        }
    }

    /// Columns and values of a row.
    #[inline]
    fn row(&self, row: usize) -> (&'a [u32], &'a [T]) {
        let first = self.offsets[0];
        let [start, end] = [row, row + 1].map(|i| (self.offsets[i] - first) as usize);
        (&self.indices[start..end], &self.values[start..end])
    }
}

/// x·y of a row, `y` by columns; four sums side by side, so that additions do not wait for each other.
#[inline]
fn dot<T: Element>((indices, values): (&[u32], &[T]), y: impl Fn(usize) -> f64) -> f64 {
    let (indices, last_indices) = indices.as_chunks::<4>();
    let (values, last_values) = values.as_chunks::<4>();
    let mut sums = [0.0; 4];
    for (j, x) in indices.iter().zip(values) {
        for lane in 0..4 {
            sums[lane] += x[lane].to_f64() * y(j[lane] as usize);
        }
    }
    let last = last_indices.iter().zip(last_values);
    let last: f64 = last.map(|(j, x)| x.to_f64() * y(*j as usize)).sum();
    (sums[0] + sums[2]) + (sums[1] + sums[3]) + last
}

impl<T: Element> Streamed<'_, T> {
    pub(super) fn sparse(&self) -> &CsrMatrix<T> {
        match self.features.storage() {
            Storage::Sparse(x) => x,
            Storage::Dense(_) => unreachable!("requested of sparse features only"),
        }
    }
}

impl<T: Element> SparseProducts for Streamed<'_, T> {
    fn enter<'t>(&self, theta: &'t [f64], k: usize) -> Entered<'t> {
        let (coef, intercepts) = theta.split_at(self.features.cols() * k);
        let mut constants = vec![0.0; k];
        constants[..intercepts.len()].copy_from_slice(intercepts);
        let mut coef = Cow::Borrowed(coef);
        if self.columns.scales.is_some() {
            let rows = coef.to_mut().chunks_exact_mut(k).enumerate();
            rows.for_each(|(j, row)| row.iter_mut().for_each(|w| *w *= self.scale(j)));
        }
        if self.columns.means.is_some() {
            for (j, row) in coef.chunks_exact(k).enumerate() {
                let pairs = constants.iter_mut().zip(row);
                pairs.for_each(|(constant, w)| *constant -= self.mean(j) * w);
            }
        }
        Entered { coef, constants }
    }

    fn predictors(&self, entered: &Entered<'_>, rows: Range<usize>, out: &mut [f64]) {
        let x = Lines::of(self.sparse());
        let (coef, k) = (&*entered.coef, entered.constants.len());
        if let [constant] = entered.constants[..] {
            for (i, out) in rows.zip(out) {
                *out = constant + dot(x.row(i), |j| coef[j]);
            }
            return;
        }
        for (i, out) in rows.zip(out.chunks_exact_mut(k)) {
            out.copy_from_slice(&entered.constants);
            let (indices, values) = x.row(i);
            for (j, x) in indices.iter().zip(values) {
                let (j, x) = (*j as usize, x.to_f64());
                let theta = &coef[j * k..(j + 1) * k];
                out.iter_mut().zip(theta).for_each(|(out, w)| *out += x * w);
            }
        }
    }

    fn transposed(&self, slopes: &[f64], k: usize, rows: Range<usize>, out: &mut [f64]) {
        let x = Lines::of(self.sparse());
        let mut sums = vec![0.0; k];
        for (i, slopes) in rows.zip(slopes.chunks_exact(k)) {
            sums.iter_mut().zip(slopes).for_each(|(sum, s)| *sum += s);
            let (indices, values) = x.row(i);
            if let [slope] = slopes {
                let pairs = indices.iter().zip(values);
                pairs.for_each(|(j, x)| out[*j as usize] += x.to_f64() * slope);
                continue;
            }
            for (j, x) in indices.iter().zip(values) {
                let (j, x) = (*j as usize, x.to_f64());
                let out = &mut out[j * k..(j + 1) * k];
                out.iter_mut()
                    .zip(slopes)
                    .for_each(|(out, s)| *out += x * s);
            }
        }
        let (coef, intercepts) = out.split_at_mut(self.features.cols() * k);
        for (j, out) in coef.chunks_exact_mut(k).enumerate() {
            let (mean, scale) = (self.mean(j), self.scale(j));
            out.iter_mut()
                .zip(&sums)
                .for_each(|(out, sum)| *out = (*out - mean * sum) * scale);
        }
        intercepts.copy_from_slice(&sums[..intercepts.len()]);
    }

    fn mean_entries(&self) -> f64 {
        let x = self.sparse();
        x.nnz() as f64 / x.rows().max(1) as f64
    }

    fn curved(
        &self,
        (pairs, constant): (&mut [[f64; 2]], f64),
        (rows, by): (&[u32], &[f64]),
    ) -> f64 {
        let x = Lines::of(self.sparse());
        let mut total = 0.0;
        for (row, d) in rows.iter().zip(by) {
            let own = x.row(*row as usize);
            let factor = d * (constant + dot(own, |j| pairs[j][0]));
            total += factor;
            for (j, x) in own.0.iter().zip(own.1) {
                pairs[*j as usize][1] += x.to_f64() * factor;
            }
        }
        total
    }

    fn leave(&self, sums: &mut Vec<f64>, total: f64, width: usize) {
        for (j, sum) in sums.iter_mut().enumerate() {
            *sum = (*sum - self.mean(j) * total) * self.scale(j);
        }
        sums.resize(width, total);
    }

    fn weighted_squares(&self, (rows, by): (&[u32], &[f64])) -> Vec<f64> {
        let x = Lines::of(self.sparse());
        let cols = self.features.cols();
        let mut out = vec![0.0; 2 * cols + 1];
        let (columns, total) = out.split_at_mut(2 * cols);
        let (sums, squares) = columns.split_at_mut(cols);
        for (row, d) in rows.iter().zip(by) {
            let (indices, values) = x.row(*row as usize);
            total[0] += d;
            for (j, x) in indices.iter().zip(values) {
                let (j, x) = (*j as usize, x.to_f64());
                let weighted = d * x;
                sums[j] += weighted;
                squares[j] += weighted * x;
            }
        }
        out
    }

    fn centred_squares(&self, sums: Vec<f64>, width: usize) -> Vec<f64> {
        let cols = self.features.cols();
        let (total, squares) = (sums[2 * cols], &sums[cols..2 * cols]);
        let each = squares.iter().zip(&sums).enumerate();
        let mut out: Vec<f64> = each
            .map(|(j, (squares, sum))| {
                let (mean, scale) = (self.mean(j), self.scale(j));
                let centred = squares - 2.0 * mean * sum + mean * mean * total;
                scale * scale * centred.max(0.0)
            })
            .collect();
        out.resize(width, total);
        out
    }
}
