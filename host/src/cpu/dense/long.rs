//! Rows of many vectors: the axpy of a row runs along with the dot product of the next one.

use std::ops::Range;

use pulp::Simd;

use super::reader::{Row, RowReader, Vectors};
use super::{BLOCK, flush};
use crate::cpu::scalar::Scalar;
use crate::cpu::terms::RowMap;

/// Vectors of a dot product that are added up in T before they go to f64.
pub const TILE: usize = 256;

/// `products = X[rows]·y`.
#[inline(always)]
pub fn multiply<T: Scalar, S: Simd>(
    reader: &RowReader<T, S>,
    rows: Range<usize>,
    y: Vectors<T, S>,
    products: &mut [f64],
) {
    for (row, product) in rows.zip(products) {
        *product = dot(reader, reader.row(row), y);
    }
}

/// `w += X[rows]ᵀ · map(X[rows]·y)`.
#[inline(always)]
pub fn fused<T: Scalar, S: Simd>(
    reader: &RowReader<T, S>,
    rows: Range<usize>,
    y: Vectors<T, S>,
    map: RowMap<T>,
    w: &mut [f64],
) {
    if rows.is_empty() {
        return;
    }
    let mut block = vec![T::default(); reader.vectors_per_row() * T::count::<S>()];
    let mut previous = reader.row(rows.start);
    let mut product = dot(reader, previous, y);
    for row in rows.start + 1..rows.end {
        let next = reader.row(row);
        let factor = T::narrow(map.apply(row - 1, product));
        product = axpy_and_dot(reader, factor, previous, &mut block, next, y);
        previous = next;
        if (row - rows.start).is_multiple_of(BLOCK) {
            flush(&mut block, w);
        }
    }
    axpy(
        reader,
        T::narrow(map.apply(rows.end - 1, product)),
        previous,
        &mut block,
    );
    flush(&mut block, w);
}

/// `w += X[rows]ᵀ · map(p[rows])`.
#[inline(always)]
pub fn transposed<T: Scalar, S: Simd>(
    reader: &RowReader<T, S>,
    rows: Range<usize>,
    p: &[T],
    map: RowMap<T>,
    w: &mut [f64],
) {
    let mut block = vec![T::default(); reader.vectors_per_row() * T::count::<S>()];
    let mut start = rows.start;
    while start < rows.end {
        let end = rows.end.min(start + BLOCK);
        for (row, &p) in (start..end).zip(&p[start..end]) {
            axpy(
                reader,
                T::narrow(map.apply(row, p.into())),
                reader.row(row),
                &mut block,
            );
        }
        flush(&mut block, w);
        start = end;
    }
}

/// The product of a row with y.
#[inline(always)]
fn dot<T: Scalar, S: Simd>(reader: &RowReader<T, S>, x: Row<T, S>, y: Vectors<T, S>) -> f64 {
    let mut total = 0.0;
    for (x, y) in x.full.chunks(TILE).zip(y.full.chunks(TILE)) {
        total += dot_tile::<T, S>(reader.simd, x, y);
    }
    total + dot_last(reader, x, y)
}

/// The last vector's part of a dot product.
#[inline(always)]
fn dot_last<T: Scalar, S: Simd>(reader: &RowReader<T, S>, x: Row<T, S>, y: Vectors<T, S>) -> f64 {
    let zero = T::splat(reader.simd, T::default());
    T::sum(
        reader.simd,
        T::mul_add(reader.simd, reader.last(x), y.last, zero),
    )
    .into()
}

#[inline(always)]
fn dot_tile<T: Scalar, S: Simd>(simd: S, x: &[T::Vector<S>], y: &[T::Vector<S>]) -> f64 {
    let (x_quads, x_rest) = x.as_chunks::<4>();
    let (y_quads, y_rest) = y.as_chunks::<4>();
    let mut sums = [T::splat(simd, T::default()); 4];
    for (x, y) in x_quads.iter().zip(y_quads) {
        for i in 0..4 {
            sums[i] = T::mul_add(simd, x[i], y[i], sums[i]);
        }
    }
    let mut sum = add_up::<T, S>(simd, sums);
    for (&x, &y) in x_rest.iter().zip(y_rest) {
        sum = T::mul_add(simd, x, y, sum);
    }
    T::sum(simd, sum).into()
}

/// The four sums as one: what is left over goes there, as picking one of the four by an index that the
/// compiler does not know would keep all of them out of registers.
#[inline(always)]
fn add_up<T: Scalar, S: Simd>(simd: S, [a, b, c, d]: [T::Vector<S>; 4]) -> T::Vector<S> {
    T::add(simd, T::add(simd, a, b), T::add(simd, c, d))
}

/// `w += factor·x`.
#[inline(always)]
fn axpy<T: Scalar, S: Simd>(reader: &RowReader<T, S>, factor: T, x: Row<T, S>, w: &mut [T]) {
    let factor = T::splat(reader.simd, factor);
    let (last, full) = split_last::<T, S>(w);
    for (w, &x) in full.iter_mut().zip(x.full) {
        *w = T::mul_add(reader.simd, x, factor, *w);
    }
    *last = T::mul_add(reader.simd, reader.last(x), factor, *last);
}

/// `w += factor·previous`, and the product of `next` with y.
#[inline(always)]
fn axpy_and_dot<T: Scalar, S: Simd>(
    reader: &RowReader<T, S>,
    factor: T,
    previous: Row<T, S>,
    w: &mut [T],
    next: Row<T, S>,
    y: Vectors<T, S>,
) -> f64 {
    let factor = T::splat(reader.simd, factor);
    let (last, full) = split_last::<T, S>(w);
    let mut total = 0.0;
    let added = previous.full.chunks(TILE).zip(full.chunks_mut(TILE));
    let multiplied = next.full.chunks(TILE).zip(y.full.chunks(TILE));
    for ((x, w), (next, y)) in added.zip(multiplied) {
        total += axpy_and_dot_tile::<T, S>(reader.simd, factor, x, w, next, y);
    }
    *last = T::mul_add(reader.simd, reader.last(previous), factor, *last);
    total + dot_last(reader, next, y)
}

#[inline(always)]
fn axpy_and_dot_tile<T: Scalar, S: Simd>(
    simd: S,
    factor: T::Vector<S>,
    x: &[T::Vector<S>],
    w: &mut [T::Vector<S>],
    next: &[T::Vector<S>],
    y: &[T::Vector<S>],
) -> f64 {
    let (x_quads, x_rest) = x.as_chunks::<4>();
    let (w_quads, w_rest) = w.as_chunks_mut::<4>();
    let (next_quads, next_rest) = next.as_chunks::<4>();
    let (y_quads, y_rest) = y.as_chunks::<4>();
    let mut sums = [T::splat(simd, T::default()); 4];
    let quads = x_quads.iter().zip(w_quads).zip(next_quads).zip(y_quads);
    for (((x, w), next), y) in quads {
        for i in 0..4 {
            sums[i] = T::mul_add(simd, next[i], y[i], sums[i]);
            w[i] = T::mul_add(simd, x[i], factor, w[i]);
        }
    }
    let mut sum = add_up::<T, S>(simd, sums);
    for (((&x, w), &next), &y) in x_rest.iter().zip(w_rest).zip(next_rest).zip(y_rest) {
        sum = T::mul_add(simd, next, y, sum);
        *w = T::mul_add(simd, x, factor, *w);
    }
    T::sum(simd, sum).into()
}

/// The last vector of w, and those before it.
#[inline(always)]
fn split_last<T: Scalar, S: Simd>(w: &mut [T]) -> (&mut T::Vector<S>, &mut [T::Vector<S>]) {
    T::vectors_mut::<S>(w)
        .split_last_mut()
        .expect("a row has at least one vector")
}
