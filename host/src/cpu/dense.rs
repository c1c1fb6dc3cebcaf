//! Passes over dense rows: dot product, then axpy, while the row is in the nearest cache.
//!
//! Four rows at a time, so that y and w are loaded once for four rows of X. The dot product adds
//! [`TILE`] elements in a vector register before it goes to f64, and w collects [`BLOCK`] rows before
//! it goes to f64: an f32 result loses at most some n/lanes + [`BLOCK`] roundings, however many rows.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use super::chunks;
use super::fused::{ChunkedRows, RowInput, Workspace};
use super::lanes::MAX_LANES;
use super::matrix::Dense;
use super::scalar::Scalar;
use super::terms::{RowMap, Terms};
use super::wide;

/// Rows that go through the registers together.
const GROUP: usize = 4;

/// Vectors of a dot product that are added up in T.
const TILE: usize = 256;

/// Rows whose contributions to w are added up in T.
const BLOCK: usize = 256;

impl<T: Scalar> ChunkedRows<T> for Dense<'_, T> {
    fn shape(&self) -> (usize, usize) {
        (self.rows(), self.cols())
    }

    fn row_chunks(&self) -> usize {
        chunks::count(self.rows().saturating_mul(self.cols()))
    }

    /// At least 128 rows per copy of w, so that copies cost a hundredth of X.
    fn copies(&self) -> usize {
        self.row_chunks().min(self.rows() / 128).max(1)
    }

    fn first_row(&self, chunk: usize, chunks: usize) -> usize {
        chunks::boundary(self.rows(), chunk, chunks)
    }

    fn multiply(&self, rows: Range<usize>, y: &[T], products: &mut [f64]) {
        if self.cols() == 0 {
            return products.fill(0.0);
        }
        Arch::new().dispatch(Multiply {
            x: *self,
            rows,
            y,
            products,
        });
    }

    fn accumulate(&self, rows: Range<usize>, input: RowInput<T>, map: RowMap<T>, w: &mut [f64]) {
        if self.cols() > 0 {
            Arch::new().dispatch(Accumulate {
                x: *self,
                rows,
                input,
                map,
                w,
            });
        }
    }

    fn transpose(&self, input: RowInput<T>, terms: &Terms<T>, w: &mut [T], ws: &mut Workspace) {
        if wide::is_wide(self) {
            wide::transpose(self, input, terms, w);
        } else {
            super::fused::in_one_pass(self, input, terms, w, ws);
        }
    }

    fn project(&self, y: &[T], terms: &Terms<T>, p: &mut [T]) {
        if wide::is_wide(self) {
            wide::project(self, y, terms, p);
        } else {
            super::fused::by_rows(self, y, terms, p);
        }
    }
}

/// `products = X[rows]·y`.
struct Multiply<'a, T> {
    x: Dense<'a, T>,
    rows: Range<usize>,
    y: &'a [T],
    products: &'a mut [f64],
}

impl<T: Scalar> WithSimd for Multiply<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let reader = RowReader::<T, S>::new(simd, self.x);
        let y = reader.vectors(self.y);
        for (row, product) in self.rows.zip(self.products) {
            *product = dot(simd, &reader, reader.row(row), y);
        }
    }
}

/// `w += X[rows]ᵀ · map(input[rows])`.
struct Accumulate<'a, T> {
    x: Dense<'a, T>,
    rows: Range<usize>,
    input: RowInput<'a, T>,
    map: RowMap<'a, T>,
    w: &'a mut [f64],
}

impl<T: Scalar> WithSimd for Accumulate<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let reader = RowReader::<T, S>::new(simd, self.x);
        let input = match self.input {
            RowInput::Product(y) => SplitInput::Product(reader.vectors(y)),
            RowInput::Given(p) => SplitInput::Given(p),
        };
        let mut block = vec![T::default(); (reader.full + 1) * T::count::<S>()];
        let mut row = self.rows.start;
        while row < self.rows.end {
            let end = self.rows.end.min(row + BLOCK);
            while row + GROUP <= end {
                add_group::<T, S, GROUP>(simd, &reader, row, input, self.map, &mut block);
                row += GROUP;
            }
            while row < end {
                add_group::<T, S, 1>(simd, &reader, row, input, self.map, &mut block);
                row += 1;
            }
            flush(&mut block, self.w);
        }
    }
}

/// [`RowInput`] as a kernel wants it.
#[derive(Clone, Copy)]
enum SplitInput<'a, T: Scalar, S: Simd> {
    Product(Vectors<'a, T, S>),
    Given(&'a [T]),
}

/// `w += Xᵀ · map(input)` for `R` rows from `row` on.
#[inline(always)]
fn add_group<T: Scalar, S: Simd, const R: usize>(
    simd: S,
    reader: &RowReader<T, S>,
    row: usize,
    input: SplitInput<T, S>,
    map: RowMap<T>,
    w: &mut [T],
) {
    let mut rows = [reader.row(row); R];
    let mut factors = [T::splat(simd, T::default()); R];
    for i in 0..R {
        rows[i] = reader.row(row + i);
        // One dot product after the other, so that memory is read in order.
        let product = match input {
            SplitInput::Product(y) => dot(simd, reader, rows[i], y),
            SplitInput::Given(p) => p[row + i].into(),
        };
        factors[i] = T::splat(simd, T::narrow(map.apply(row + i, product)));
    }
    axpy(simd, reader, &rows, &factors, w);
}

/// The product of a row with y.
#[inline(always)]
fn dot<T: Scalar, S: Simd>(
    simd: S,
    reader: &RowReader<T, S>,
    row: Row<T, S>,
    y: Vectors<T, S>,
) -> f64 {
    let mut total = 0.0;
    let (mut x, mut y_full) = (row.full, y.full);
    while y_full.len() > TILE {
        total += T::sum(simd, dot_tile::<T, S>(simd, &x[..TILE], &y_full[..TILE])).into();
        (x, y_full) = (&x[TILE..], &y_full[TILE..]);
    }
    let sum = dot_tile::<T, S>(simd, x, y_full);
    total + T::sum(simd, T::mul_add(simd, reader.last(row), y.last, sum)).into()
}

/// `x ⊙ y`, added up in T to one vector.
#[inline(always)]
fn dot_tile<T: Scalar, S: Simd>(simd: S, x: &[T::Vector<S>], y: &[T::Vector<S>]) -> T::Vector<S> {
    let (x_quads, x_rest) = x.as_chunks::<4>();
    let (y_quads, y_rest) = y.as_chunks::<4>();
    let mut sums = [T::splat(simd, T::default()); 4];
    for (x, y) in x_quads.iter().zip(y_quads) {
        for i in 0..4 {
            sums[i] = T::mul_add(simd, x[i], y[i], sums[i]);
        }
    }
    let [a, b, c, d] = sums;
    let mut sum = T::add(simd, T::add(simd, a, b), T::add(simd, c, d));
    // One sum for all that is left over: picking one of the four would keep them out of registers.
    for (&x, &y) in x_rest.iter().zip(y_rest) {
        sum = T::mul_add(simd, x, y, sum);
    }
    sum
}

/// `w += Σ factors[i]·rows[i]`.
#[inline(always)]
fn axpy<T: Scalar, S: Simd, const R: usize>(
    simd: S,
    reader: &RowReader<T, S>,
    rows: &[Row<T, S>; R],
    factors: &[T::Vector<S>; R],
    w: &mut [T],
) {
    let w = T::vectors_mut::<S>(w);
    let (last, full) = w.split_last_mut().expect("w has at least one vector");
    let mut x = [rows[0].full; R];
    for i in 0..R {
        x[i] = &rows[i].full[..full.len()];
    }
    for (j, w) in full.iter_mut().enumerate() {
        let mut sum = *w;
        for i in 0..R {
            sum = T::mul_add(simd, x[i][j], factors[i], sum);
        }
        *w = sum;
    }
    for i in 0..R {
        *last = T::mul_add(simd, reader.last(rows[i]), factors[i], *last);
    }
}

/// Moves a block's contributions to w. What lies in `block` beyond w is dropped.
#[inline(always)]
fn flush<T: Scalar>(block: &mut [T], w: &mut [f64]) {
    for (w, &value) in w.iter_mut().zip(&*block) {
        *w += value.into();
    }
    block.fill(T::default());
}

/// n elements as vectors: all but the last, and the last, with zeros beyond the n-th element.
#[derive(Clone, Copy)]
struct Vectors<'a, T: Scalar, S: Simd> {
    full: &'a [T::Vector<S>],
    last: T::Vector<S>,
}

/// A row of which the last vector is still to be read (by [`RowReader::last`], in its turn).
#[derive(Clone, Copy)]
struct Row<'a, T: Scalar, S: Simd> {
    full: &'a [T::Vector<S>],
    /// What follows in memory: the rest of the row, and the next rows.
    tail: &'a [T],
}

/// Reads rows of a matrix with at least one column as vectors.
struct RowReader<'a, T: Scalar, S: Simd> {
    x: Dense<'a, T>,
    /// Vectors before the last one.
    full: usize,
    /// The lanes of the last vector that belong to the row.
    mask: T::Mask<S>,
    simd: S,
}

impl<'a, T: Scalar, S: Simd> RowReader<'a, T, S> {
    #[inline(always)]
    fn new(simd: S, x: Dense<'a, T>) -> Self {
        let full = (x.cols() - 1) / T::count::<S>();
        let mask = T::first(simd, x.cols() - full * T::count::<S>());
        RowReader {
            x,
            full,
            mask,
            simd,
        }
    }

    #[inline(always)]
    fn row(&self, row: usize) -> Row<'a, T, S> {
        self.split(&self.x.values()[row * self.x.stride()..])
    }

    #[inline(always)]
    fn vectors<'b>(&self, values: &'b [T]) -> Vectors<'b, T, S> {
        let row = self.split(values);
        Vectors {
            full: row.full,
            last: self.last(row),
        }
    }

    #[inline(always)]
    fn split<'b>(&self, values: &'b [T]) -> Row<'b, T, S> {
        let (head, tail) = values.split_at(self.full * T::count::<S>());
        Row {
            full: T::vectors::<S>(head),
            tail,
        }
    }

    /// The last vector of a row. May read, but does not use, elements of the next rows.
    #[inline(always)]
    fn last(&self, row: Row<T, S>) -> T::Vector<S> {
        match T::vectors::<S>(row.tail).first() {
            Some(&vector) => T::keep(self.simd, self.mask, vector),
            None => self.padded(&row.tail[..self.x.cols() - self.full * T::count::<S>()]),
        }
    }

    /// The last elements of the last rows, where a whole vector would reach beyond the matrix.
    #[inline(always)]
    fn padded(&self, tail: &[T]) -> T::Vector<S> {
        let mut buffer = [T::default(); MAX_LANES];
        buffer[..tail.len()].copy_from_slice(tail);
        T::vectors::<S>(&buffer)[0]
    }
}
