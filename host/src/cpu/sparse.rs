//! Passes over compressed sparse rows.
//!
//! A row is walked twice, the second time from the nearest cache: gather from y, then scatter to w.
//! Gathers are scalar: on the processors at hand the vector instruction is no quicker, and rows are
//! short. The dot product keeps four sums so that additions do not wait for one another.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use super::chunks;
use super::fused::{ChunkedRows, RowInput};
use super::lanes::Lanes;
use super::matrix::Csr;
use super::scalar::Scalar;
use super::terms::RowMap;

/// Entries of a dot product that are added up in T before they go to f64.
const TILE: usize = 4096;

/// Copies of w that are made even when they take as much memory as X.
const FEW_COPIES: usize = 8;

impl<T: Scalar> Csr<'_, T> {
    /// Stored entries, with one for each row so that empty rows count.
    fn work(&self) -> usize {
        self.nnz() + self.rows()
    }

    fn bytes(&self) -> usize {
        self.nnz() * (size_of::<T>() + size_of::<u32>()) + self.rows() * size_of::<u64>()
    }
}

impl<T: Scalar> ChunkedRows<T> for Csr<'_, T> {
    fn shape(&self) -> (usize, usize) {
        (self.rows(), self.cols())
    }

    fn row_chunks(&self) -> usize {
        chunks::count(self.work())
    }

    /// As many as take an eighth of X's memory; or up to [`FEW_COPIES`], and all of X's memory, where
    /// that would leave cores idle.
    fn copies(&self) -> usize {
        let fitting = self.bytes() / (self.cols().max(1) * size_of::<f64>());
        self.row_chunks()
            .min((fitting / 8).max(fitting.min(FEW_COPIES)))
            .max(1)
    }

    /// Chunks of equal work, not of equal numbers of rows.
    fn first_row(&self, chunk: usize, chunks: usize) -> usize {
        let target = chunks::boundary(self.work(), chunk, chunks);
        if chunk == chunks {
            return self.rows();
        }
        // The first row with `offset + row >= target`, by bisection: both ascend.
        let (mut low, mut high) = (0, self.rows());
        while low < high {
            let row = low + (high - low) / 2;
            if self.offsets()[row] as usize + row < target {
                low = row + 1;
            } else {
                high = row;
            }
        }
        low
    }

    fn multiply(&self, rows: Range<usize>, y: &[T], products: &mut [f64]) {
        assert_eq!(y.len(), self.cols(), "y needs one element per column of X");
        Arch::new().dispatch(Multiply {
            x: *self,
            rows,
            y,
            products,
        });
    }

    fn accumulate(&self, rows: Range<usize>, input: RowInput<T>, map: RowMap<T>, w: &mut [f64]) {
        assert_eq!(w.len(), self.cols(), "w needs one element per column of X");
        if let RowInput::Product(y) = input {
            assert_eq!(y.len(), self.cols(), "y needs one element per column of X");
        }
        Arch::new().dispatch(Accumulate {
            x: *self,
            rows,
            input,
            map,
            w,
        });
    }
}

/// `products = X[rows]·y`, with `y.len()` checked against X.
struct Multiply<'a, T> {
    x: Csr<'a, T>,
    rows: Range<usize>,
    y: &'a [T],
    products: &'a mut [f64],
}

impl<T: Scalar> WithSimd for Multiply<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for (row, product) in self.rows.zip(self.products) {
            *product = dot(simd, entries(self.x, row), self.y);
        }
    }
}

/// `w += X[rows]ᵀ · map(input[rows])`, with the lengths of y and w checked against X.
struct Accumulate<'a, T> {
    x: Csr<'a, T>,
    rows: Range<usize>,
    input: RowInput<'a, T>,
    map: RowMap<'a, T>,
    w: &'a mut [f64],
}

impl<T: Scalar> WithSimd for Accumulate<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for row in self.rows {
            let entries = entries(self.x, row);
            let product = match self.input {
                RowInput::Product(y) => dot(simd, entries, y),
                RowInput::Given(p) => p[row].into(),
            };
            axpy(simd, entries, self.map.apply(row, product), self.w);
        }
    }
}

/// The entries of a row.
#[derive(Clone, Copy)]
struct Entries<'a, T> {
    // As many as values, and all below the number of columns of the matrix they come from.
    indices: &'a [u32],
    values: &'a [T],
}

#[inline(always)]
fn entries<'a, T: Scalar>(x: Csr<'a, T>, row: usize) -> Entries<'a, T> {
    let range = x.offsets()[row] as usize..x.offsets()[row + 1] as usize;
    Entries {
        indices: &x.indices()[range.clone()],
        values: &x.values()[range],
    }
}

/// `Σ values[k]·y[indices[k]]`; y has an element for every column.
#[inline(always)]
fn dot<T: Scalar, S: Simd>(simd: S, row: Entries<T>, y: &[T]) -> f64 {
    let mut total = 0.0;
    for (indices, values) in row.indices.chunks(TILE).zip(row.values.chunks(TILE)) {
        total += dot_tile(simd, indices, values, y);
    }
    total
}

#[inline(always)]
fn dot_tile<T: Scalar, S: Simd>(simd: S, indices: &[u32], values: &[T], y: &[T]) -> f64 {
    let (index_quads, index_rest) = indices.as_chunks::<4>();
    let (value_quads, value_rest) = values.as_chunks::<4>();
    let mut sums = [T::default(); 4];
    for (index, value) in index_quads.iter().zip(value_quads) {
        for i in 0..4 {
            sums[i] = T::mul_add_one(simd, value[i], element(y, index[i]), sums[i]);
        }
    }
    for ((sum, &value), &index) in sums.iter_mut().zip(value_rest).zip(index_rest) {
        *sum = T::mul_add_one(simd, value, element(y, index), *sum);
    }
    let [a, b, c, d] = sums.map(Into::<f64>::into);
    (a + b) + (c + d)
}

/// `w[indices[k]] += factor·values[k]`; w has an element for every column.
#[inline(always)]
fn axpy<T: Scalar, S: Simd>(simd: S, row: Entries<T>, factor: f64, w: &mut [f64]) {
    for (&index, &value) in row.indices.iter().zip(row.values) {
        let w = element_mut(w, index);
        *w = f64::mul_add_one(simd, value.into(), factor, *w);
    }
}

#[inline(always)]
fn element<T: Copy>(y: &[T], index: u32) -> T {
    y[index as usize]
}

#[inline(always)]
fn element_mut(w: &mut [f64], index: u32) -> &mut f64 {
    &mut w[index as usize]
}
