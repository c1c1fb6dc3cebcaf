//! QR factorisations on the CPU: a core for each matrix, column by column.
//!
//! The steps and the contract are those of [`gpu_kernels::qr`]; sums are added up in another order.

use gpu_kernels::qr::reflector::{Ranged, Scale, is_finite, is_safe, reflector, square};
use gpu_kernels::qr::{NOT_FINITE, ZERO_PIVOT};

use super::dispatch::dispatch;

/// Sums of a dot product.
const SUMS: usize = 16;

/// One matrix and where its factors go.
#[derive(Debug)]
pub struct Job<'a, T> {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// A, column-major, which R and the reflectors take the place of.
    pub packed: &'a mut [T],
    /// First components of the reflectors.
    pub first: &'a mut [T],
    /// T, row-major; empty where it is not wanted.
    pub t: &'a mut [T],
    /// What was met.
    pub status: &'a mut u32,
}

/// Factors one matrix.
///
/// # Panics
/// When a slice is too short.
pub fn factor<T: Ranged>(job: &mut Job<'_, T>) {
    dispatch(
        #[inline(always)]
        || each_step(job),
    );
}

#[inline(always)]
fn each_step<T: Ranged>(job: &mut Job<'_, T>) {
    let (rows, cols) = (job.rows, job.cols);
    let least = rows.min(cols);
    *job.status = 0;
    if job.packed.iter().any(|x| !is_finite(*x)) {
        *job.status |= NOT_FINITE;
    }
    let mut z = vec![T::ZERO; cols];
    for k in 0..least {
        let tau = step(job, k, &mut z);
        if job.t.is_empty() {
            continue;
        }
        for i in 0..k {
            let row = &job.t[i * least..][..k];
            let sum = dot(&row[i..], &z[i..k]);
            job.t[i * least + k] = sum;
        }
        job.t[k * least + k] = tau;
        job.t[k * least..][..k].fill(T::ZERO);
    }
    if job.packed.iter().any(|x| !is_finite(*x)) {
        *job.status |= NOT_FINITE;
    }
}

/// Reflector k and what it makes of the later columns; z of all columns.
#[inline(always)]
fn step<T: Ranged>(job: &mut Job<'_, T>, k: usize, z: &mut [T]) -> T {
    let rows = job.rows;
    let (before, rest) = job.packed.split_at_mut(k * rows);
    let (own, after) = rest.split_at_mut(rows);
    let x = &mut own[k..];
    let mut scale = Scale::ONE;
    let mut tail = dot(&x[1..], &x[1..]);
    if !is_safe(square(x[0], tail)) {
        scale = Scale::of(largest(x));
        x.iter_mut().for_each(|x| *x = scale.up(*x));
        tail = dot(&x[1..], &x[1..]);
    }
    let of = reflector(x[0], square(x[0], tail), scale);
    let tail = &x[1..];
    for (j, column) in before.chunks_exact(rows).enumerate() {
        z[j] = -of.tau * of.first.fma(column[k], dot(tail, &column[k + 1..]));
    }
    for (j, column) in after.chunks_exact_mut(rows).enumerate() {
        let value = -of.tau * of.first.fma(column[k], dot(tail, &column[k + 1..]));
        z[k + 1 + j] = value;
        column[k] = of.first.fma(value, column[k]);
        let below = column[k + 1..].iter_mut().zip(tail);
        below.for_each(|(a, v)| *a = v.fma(value, *a));
    }
    if of.diagonal == T::ZERO {
        *job.status |= ZERO_PIVOT;
    }
    (job.first[k], own[k]) = (of.first, of.diagonal);
    of.tau
}

fn largest<T: Ranged>(x: &[T]) -> T {
    let larger = |a: T, b: &T| {
        let b = gpu_kernels::math::abs(*b);
        if b > a { b } else { a }
    };
    x.iter().fold(T::ZERO, larger)
}

#[inline(always)]
fn dot<T: Ranged>(a: &[T], b: &[T]) -> T {
    let mut sums = [T::ZERO; SUMS];
    let (a_chunks, b_chunks) = (a.chunks_exact(SUMS), b.chunks_exact(SUMS));
    let rest = a_chunks.remainder().iter().zip(b_chunks.remainder());
    let rest = rest.fold(T::ZERO, |sum, (a, b)| a.fma(*b, sum));
    for (a, b) in a_chunks.zip(b_chunks) {
        for i in 0..SUMS {
            sums[i] = a[i].fma(b[i], sums[i]);
        }
    }
    sums.into_iter().fold(rest, |sum, of| sum + of)
}

/// What Q or Qᵀ is made of, to be applied.
#[derive(Debug, Clone, Copy)]
pub struct Reflectors<'a, T> {
    /// Rows of A.
    pub rows: usize,
    /// Reflectors.
    pub least: usize,
    /// R and the reflectors.
    pub packed: &'a [T],
    /// First components.
    pub first: &'a [T],
    /// T, row-major, of which the diagonal is read.
    pub t: &'a [T],
}

/// Q·c, or Qᵀ·c.
///
/// # Panics
/// When a slice is too short.
pub fn apply<T: Ranged>(of: &Reflectors<'_, T>, transposed: bool, c: &mut [T]) {
    for i in 0..of.least {
        let k = if transposed { i } else { of.least - 1 - i };
        let tail = &of.packed[k * of.rows + k + 1..(k + 1) * of.rows];
        let sum = of.first[k].fma(c[k], dot(tail, &c[k + 1..]));
        let z = -of.t[k * of.least + k] * sum;
        c[k] = of.first[k].fma(z, c[k]);
        let below = c[k + 1..].iter_mut().zip(tail);
        below.for_each(|(c, v)| *c = v.fma(z, *c));
    }
}

/// R·x = c for the upper triangle of a packed matrix of `rows` rows; x takes the place of the first elements of c.
///
/// # Panics
/// When a slice is too short.
pub fn solve<T: Ranged>(packed: &[T], rows: usize, unknowns: usize, c: &mut [T]) {
    for k in (0..unknowns).rev() {
        let column = &packed[k * rows..][..k + 1];
        let x = c[k] / column[k];
        c[k] = x;
        let above = c[..k].iter_mut().zip(column);
        above.for_each(|(c, r)| *c = (-*r).fma(x, *c));
    }
}
