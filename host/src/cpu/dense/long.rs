//! Rows of many vectors: the axpy of a row runs along with the dot product of the next one.
//!
//! So X is read in the order of memory, once, at an even rate; the second time a row is used it comes from a
//! near cache.

use std::ops::Range;

use pulp::Simd;

use super::reader::{Row, RowReader, Vectors};
use super::{BLOCK, flush};
use crate::cpu::lanes::prefetch;
use crate::cpu::scalar::Scalar;
use crate::cpu::terms::RowMap;

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
    let mut block = vec![T::default(); reader.vectors_per_row() * T::count::<S>()];
    let Some(first) = rows.clone().next() else {
        return;
    };
    let mut previous = reader.row(first);
    let mut factor = T::narrow(map.apply(first, dot(reader, previous, y)));
    for row in first + 1..rows.end {
        let next = reader.row(row);
        let product = axpy_and_dot(reader, factor, previous, &mut block, next, y);
        factor = T::narrow(map.apply(row, product));
        previous = next;
        if (row - first).is_multiple_of(BLOCK) {
            flush(&mut block, w);
        }
    }
    axpy(reader, factor, previous, &mut block);
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

/// The product of a row with y, added up in four vectors so that additions need not wait.
#[inline(always)]
fn dot<T: Scalar, S: Simd>(reader: &RowReader<T, S>, x: Row<T, S>, y: Vectors<T, S>) -> f64 {
    let simd = reader.simd;
    let (x_quads, x_rest) = x.full.as_chunks::<4>();
    let (y_quads, y_rest) = y.full.as_chunks::<4>();
    let mut sums = [T::splat(simd, T::default()); 4];
    for (x, y) in x_quads.iter().zip(y_quads) {
        for k in 0..4 {
            sums[k] = T::mul_add(simd, x[k], y[k], sums[k]);
        }
    }
    let mut sum = add_up::<T, S>(simd, sums);
    for (&x, &y) in x_rest.iter().zip(y_rest) {
        sum = T::mul_add(simd, x, y, sum);
    }
    T::sum(simd, T::mul_add(simd, reader.last(x), y.last, sum)).into()
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

/// `w += factor·row`, and the product of the next row with y, in the same order as [`axpy`] and [`dot`] would.
#[inline(always)]
fn axpy_and_dot<T: Scalar, S: Simd>(
    reader: &RowReader<T, S>,
    factor: T,
    row: Row<T, S>,
    w: &mut [T],
    next: Row<T, S>,
    y: Vectors<T, S>,
) -> f64 {
    let simd = reader.simd;
    let factor = T::splat(simd, factor);
    let (last, full) = split_last::<T, S>(w);
    let (w_quads, w_rest) = full.as_chunks_mut::<4>();
    let (y_quads, y_rest) = y.full.as_chunks::<4>();
    let (x_quads, x_rest) = row.full.as_chunks::<4>();
    let (n_quads, n_rest) = next.full.as_chunks::<4>();
    let mut sums = [T::splat(simd, T::default()); 4];

    let quads = x_quads
        .iter()
        .zip(n_quads)
        .zip(w_quads.iter_mut().zip(y_quads));
    for ((x, n), (w, y)) in quads {
        prefetch(n.as_ptr().cast(), size_of_val(n));
        for k in 0..4 {
            sums[k] = T::mul_add(simd, n[k], y[k], sums[k]);
            w[k] = T::mul_add(simd, x[k], factor, w[k]);
        }
    }
    let mut sum = add_up::<T, S>(simd, sums);
    let rest = x_rest.iter().zip(n_rest).zip(w_rest.iter_mut().zip(y_rest));
    for ((&x, &n), (w, &y)) in rest {
        sum = T::mul_add(simd, n, y, sum);
        *w = T::mul_add(simd, x, factor, *w);
    }
    *last = T::mul_add(simd, reader.last(row), factor, *last);
    T::sum(simd, T::mul_add(simd, reader.last(next), y.last, sum)).into()
}

/// The last vector of w, and those before it.
#[inline(always)]
fn split_last<T: Scalar, S: Simd>(w: &mut [T]) -> (&mut T::Vector<S>, &mut [T::Vector<S>]) {
    T::vectors_mut::<S>(w)
        .split_last_mut()
        .expect("a row has at least one vector")
}
