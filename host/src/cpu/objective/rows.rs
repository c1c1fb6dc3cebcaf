//! Products with a block of rows, sparse and dense.

use std::ops::Range;

use pulp::Arch;

use super::super::fused::ChunkedRows;
use super::super::{Csr, Dense};
use super::{BLOCK, Element};

/// Bytes of a block of rows that stay cached between the two products.
const BLOCK_BYTES: usize = 24 * 1024;

/// Sums side by side, so that additions do not wait for one another.
const LANES: usize = 16;

/// A matrix whose rows are multiplied in blocks: [`Csr`] or [`Dense`]. Sealed.
pub trait BlockedRows<T>: ChunkedRows<T> {
    /// Rows that a block should have.
    fn block(&self) -> usize;
    /// `dots[i] = X[rows.start + i]·y`; a row whose weight (one for each row of X) is 0 is not read, and has 0.
    fn dots(&self, rows: Range<usize>, y: &[T], weights: Option<&[T]>, dots: &mut [f64]);
    /// `w += X[rows]ᵀ·factors`; a row of factor 0 is not read.
    fn add(&self, rows: Range<usize>, factors: &[T], w: &mut [f64]);
    /// `dots += X[row]·Y`, Y n × k, row-major, k as long as `dots`.
    fn dot_columns(&self, row: usize, y: &[T], dots: &mut [f64]);
    /// `W += X[row]ᵀ·factors`, W n × k, row-major.
    fn add_columns(&self, row: usize, factors: &[f64], w: &mut [f64]);
}

/// Rows of a block, when this many take this many bytes.
pub fn block_of(bytes: usize, rows: usize) -> usize {
    let per_row = (bytes / rows.max(1)).max(1);
    (BLOCK_BYTES / per_row).clamp(1, BLOCK)
}

fn entries<'a, T>(x: &Csr<'a, T>, row: usize) -> (&'a [u32], &'a [T]) {
    let range = x.offsets()[row] as usize..x.offsets()[row + 1] as usize;
    (&x.indices()[range.clone()], &x.values()[range])
}

/// Whether a row takes part.
#[inline(always)]
fn counts<T: Element>(weights: Option<&[T]>, row: usize) -> bool {
    weights.is_none_or(|weights| weights[row] != T::default())
}

pub fn sparse_dots<T: Element>(
    x: &Csr<T>,
    rows: Range<usize>,
    y: &[T],
    weights: Option<&[T]>,
    dots: &mut [f64],
) {
    Arch::new().dispatch(
        #[inline(always)]
        || {
            for (row, dot) in rows.zip(dots) {
                *dot = 0.0;
                if !counts(weights, row) {
                    continue;
                }
                let (indices, values) = entries(x, row);
                let mut sums = [0.0; 4];
                for (k, (&index, &value)) in indices.iter().zip(values).enumerate() {
                    let sum = &mut sums[k % 4];
                    *sum = f64::mul_add(value.into(), y[index as usize].into(), *sum);
                }
                *dot = (sums[0] + sums[1]) + (sums[2] + sums[3]);
            }
        },
    );
}

pub fn sparse_add<T: Element>(x: &Csr<T>, rows: Range<usize>, factors: &[T], w: &mut [f64]) {
    Arch::new().dispatch(
        #[inline(always)]
        || {
            for (row, &factor) in rows.zip(factors) {
                if factor == T::default() {
                    continue;
                }
                let (indices, values) = entries(x, row);
                for (&index, &value) in indices.iter().zip(values) {
                    let w = &mut w[index as usize];
                    *w = f64::mul_add(value.into(), factor.into(), *w);
                }
            }
        },
    );
}

pub fn dense_dots<T: Element>(
    x: &Dense<T>,
    rows: Range<usize>,
    y: &[T],
    weights: Option<&[T]>,
    dots: &mut [f64],
) {
    Arch::new().dispatch(
        #[inline(always)]
        || {
            for (row, dot) in rows.zip(dots) {
                *dot = match counts(weights, row) {
                    true => dense_dot(x.row(row), y),
                    false => 0.0,
                };
            }
        },
    );
}

/// Products are added in T, [`LANES`] sums side by side, and those in f64.
#[inline(always)]
fn dense_dot<T: Element>(x: &[T], y: &[T]) -> f64 {
    let (x_groups, x_rest) = x.as_chunks::<LANES>();
    let (y_groups, y_rest) = y.as_chunks::<LANES>();
    let mut sums = [T::default(); LANES];
    for (x, y) in x_groups.iter().zip(y_groups) {
        for i in 0..LANES {
            sums[i] = x[i].fma(y[i], sums[i]);
        }
    }
    for ((sum, &x), &y) in sums.iter_mut().zip(x_rest).zip(y_rest) {
        *sum = x.fma(y, *sum);
    }
    sums.into_iter().map(Into::<f64>::into).sum()
}

pub fn dense_add<T: Element>(x: &Dense<T>, rows: Range<usize>, factors: &[T], w: &mut [f64]) {
    Arch::new().dispatch(
        #[inline(always)]
        || {
            for (row, &factor) in rows.zip(factors) {
                if factor == T::default() {
                    continue;
                }
                let factor: f64 = factor.into();
                for (w, &x) in w.iter_mut().zip(x.row(row)) {
                    *w = f64::mul_add(x.into(), factor, *w);
                }
            }
        },
    );
}

pub fn sparse_dot_columns<T: Element>(x: &Csr<T>, row: usize, y: &[T], dots: &mut [f64]) {
    let (indices, values) = entries(x, row);
    for (&index, &value) in indices.iter().zip(values) {
        add_row(value.into(), y, index as usize, dots);
    }
}

pub fn sparse_add_columns<T: Element>(x: &Csr<T>, row: usize, factors: &[f64], w: &mut [f64]) {
    let (indices, values) = entries(x, row);
    for (&index, &value) in indices.iter().zip(values) {
        add_to_row(value.into(), factors, index as usize, w);
    }
}

pub fn dense_dot_columns<T: Element>(x: &Dense<T>, row: usize, y: &[T], dots: &mut [f64]) {
    for (column, &value) in x.row(row).iter().enumerate() {
        add_row(value.into(), y, column, dots);
    }
}

pub fn dense_add_columns<T: Element>(x: &Dense<T>, row: usize, factors: &[f64], w: &mut [f64]) {
    for (column, &value) in x.row(row).iter().enumerate() {
        add_to_row(value.into(), factors, column, w);
    }
}

/// `dots += value · Y[column]`.
#[inline(always)]
fn add_row<T: Element>(value: f64, y: &[T], column: usize, dots: &mut [f64]) {
    let k = dots.len();
    for (dot, &y) in dots.iter_mut().zip(&y[column * k..(column + 1) * k]) {
        *dot = f64::mul_add(value, y.into(), *dot);
    }
}

/// `W[column] += value · factors`.
#[inline(always)]
fn add_to_row(value: f64, factors: &[f64], column: usize, w: &mut [f64]) {
    let k = factors.len();
    for (w, factor) in w[column * k..(column + 1) * k].iter_mut().zip(factors) {
        *w = f64::mul_add(value, *factor, *w);
    }
}
