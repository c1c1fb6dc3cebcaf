//! Rows of at most eight vectors: row, y and w stay in registers.
//!
//! The number of vectors, `V`, is a constant so that the loops over them unroll. It comes as the type
//! of a last argument, `[(); V]`, which carries nothing else.

use std::ops::Range;

use pulp::Simd;

use super::reader::{RowReader, Vectors};
use super::{BLOCK, flush};
use crate::cpu::lanes::MAX_LANES;
use crate::cpu::scalar::Scalar;
use crate::cpu::terms::RowMap;

/// `products = X[rows]·y`.
#[inline(always)]
pub fn multiply<T: Scalar, S: Simd, const V: usize>(
    reader: &RowReader<T, S>,
    rows: Range<usize>,
    y: Vectors<T, S>,
    products: &mut [f64],
    _: [(); V],
) {
    let y = y.to_array::<V>();
    for (row, product) in rows.zip(products) {
        *product = dot::<T, S, V>(reader.simd, &reader.load(row), &y);
    }
}

/// `w += X[rows]ᵀ · map(X[rows]·y)`.
#[inline(always)]
pub fn fused<T: Scalar, S: Simd, const V: usize>(
    reader: &RowReader<T, S>,
    rows: Range<usize>,
    y: Vectors<T, S>,
    map: RowMap<T>,
    w: &mut [f64],
    _: [(); V],
) {
    let y = y.to_array::<V>();
    let mut start = rows.start;
    while start < rows.end {
        let end = rows.end.min(start + BLOCK);
        let mut sums = [T::splat(reader.simd, T::default()); V];
        for row in start..end {
            reader.prefetch(row);
            let x = reader.load(row);
            let factor = map.apply(row, dot::<T, S, V>(reader.simd, &x, &y));
            axpy::<T, S, V>(reader.simd, T::narrow(factor), &x, &mut sums);
        }
        flush_registers::<T, S, V>(&sums, w);
        start = end;
    }
}

/// `w += X[rows]ᵀ · map(p[rows])`.
#[inline(always)]
pub fn transposed<T: Scalar, S: Simd, const V: usize>(
    reader: &RowReader<T, S>,
    rows: Range<usize>,
    p: &[T],
    map: RowMap<T>,
    w: &mut [f64],
    _: [(); V],
) {
    let mut start = rows.start;
    while start < rows.end {
        let end = rows.end.min(start + BLOCK);
        let mut sums = [T::splat(reader.simd, T::default()); V];
        for (row, &p) in (start..end).zip(&p[start..end]) {
            let factor = map.apply(row, p.into());
            axpy::<T, S, V>(reader.simd, T::narrow(factor), &reader.load(row), &mut sums);
        }
        flush_registers::<T, S, V>(&sums, w);
        start = end;
    }
}

#[inline(always)]
fn dot<T: Scalar, S: Simd, const V: usize>(
    simd: S,
    x: &[T::Vector<S>; V],
    y: &[T::Vector<S>; V],
) -> f64 {
    let zero = T::splat(simd, T::default());
    // Two sums: additions wait for one another half as long.
    let (mut even, mut odd) = (zero, zero);
    for i in 0..V {
        let sum = if i % 2 == 0 { &mut even } else { &mut odd };
        *sum = T::mul_add(simd, x[i], y[i], *sum);
    }
    T::sum(simd, T::add(simd, even, odd)).into()
}

/// `w += factor·x`.
#[inline(always)]
fn axpy<T: Scalar, S: Simd, const V: usize>(
    simd: S,
    factor: T,
    x: &[T::Vector<S>; V],
    w: &mut [T::Vector<S>; V],
) {
    let factor = T::splat(simd, factor);
    for i in 0..V {
        w[i] = T::mul_add(simd, x[i], factor, w[i]);
    }
}

#[inline(always)]
fn flush_registers<T: Scalar, S: Simd, const V: usize>(sums: &[T::Vector<S>; V], w: &mut [f64]) {
    let mut block = [[T::default(); MAX_LANES]; V];
    let block = block.as_flattened_mut();
    T::vectors_mut::<S>(block)[..V].copy_from_slice(sums);
    flush(&mut block[..V * T::count::<S>()], w);
}
