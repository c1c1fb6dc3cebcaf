//! Rows of many vectors: the axpy of two rows runs along with the dot products of the next two.
//!
//! What limits this pass besides memory is the nearest cache: two rows at a time take 3.5 accesses per
//! vector of X, where one row takes 5.

use std::ops::Range;

use pulp::Simd;

use super::reader::{Row, RowReader, Vectors};
use super::{BLOCK, flush};
use crate::cpu::lanes::prefetch;
use crate::cpu::scalar::Scalar;
use crate::cpu::terms::RowMap;

/// Rows that are multiplied together.
const PAIR: usize = 2;

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
    let mut row = rows.start;
    if rows.len() >= PAIR {
        let mut pair = [reader.row(row), reader.row(row + 1)];
        let mut products = [dot(reader, pair[0], y), dot(reader, pair[1], y)];
        row += PAIR;
        while row + PAIR <= rows.end {
            let factors = factors(map, row - PAIR, products);
            let next = [reader.row(row), reader.row(row + 1)];
            products = axpy_and_dot(reader, factors, pair, &mut block, next, y);
            pair = next;
            row += PAIR;
            if (row - rows.start).is_multiple_of(BLOCK) {
                flush(&mut block, w);
            }
        }
        let [first, second] = factors(map, row - PAIR, products);
        axpy(reader, first, pair[0], &mut block);
        axpy(reader, second, pair[1], &mut block);
    }
    if row < rows.end {
        let last = reader.row(row);
        axpy(
            reader,
            T::narrow(map.apply(row, dot(reader, last, y))),
            last,
            &mut block,
        );
    }
    flush(&mut block, w);
}

#[inline(always)]
fn factors<T: Scalar>(map: RowMap<T>, row: usize, products: [f64; PAIR]) -> [T; PAIR] {
    let [first, second] = products;
    [
        T::narrow(map.apply(row, first)),
        T::narrow(map.apply(row + 1, second)),
    ]
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

/// `w += Σ factors[i]·rows[i]`, and the products of the next rows with y, in the same order as [`axpy`]
/// and [`dot`] would.
#[inline(always)]
fn axpy_and_dot<T: Scalar, S: Simd>(
    reader: &RowReader<T, S>,
    factors: [T; PAIR],
    rows: [Row<T, S>; PAIR],
    w: &mut [T],
    next: [Row<T, S>; PAIR],
    y: Vectors<T, S>,
) -> [f64; PAIR] {
    let simd = reader.simd;
    let factors = [T::splat(simd, factors[0]), T::splat(simd, factors[1])];
    let (last, full) = split_last::<T, S>(w);
    let (w_quads, w_rest) = full.as_chunks_mut::<4>();
    let (y_quads, y_rest) = y.full.as_chunks::<4>();
    let x = [rows[0].full.as_chunks::<4>(), rows[1].full.as_chunks::<4>()];
    let n = [next[0].full.as_chunks::<4>(), next[1].full.as_chunks::<4>()];
    let mut following = Following::new(reader, next[0]);
    let mut sums = [[T::splat(simd, T::default()); 4]; PAIR];

    let quads = x[0].0.iter().zip(x[1].0).zip(n[0].0.iter().zip(n[1].0));
    for (((x0, x1), (n0, n1)), (w, y)) in quads.zip(w_quads.iter_mut().zip(y_quads)) {
        following.prefetch(size_of_val(n0));
        for k in 0..4 {
            sums[0][k] = T::mul_add(simd, n0[k], y[k], sums[0][k]);
            sums[1][k] = T::mul_add(simd, n1[k], y[k], sums[1][k]);
            let first = T::mul_add(simd, x0[k], factors[0], w[k]);
            w[k] = T::mul_add(simd, x1[k], factors[1], first);
        }
    }
    let [first, second] = sums;
    let mut sums = [add_up::<T, S>(simd, first), add_up::<T, S>(simd, second)];
    let rest = x[0].1.iter().zip(x[1].1).zip(n[0].1.iter().zip(n[1].1));
    for (((&x0, &x1), (&n0, &n1)), (w, &y)) in rest.zip(w_rest.iter_mut().zip(y_rest)) {
        sums = [
            T::mul_add(simd, n0, y, sums[0]),
            T::mul_add(simd, n1, y, sums[1]),
        ];
        *w = T::mul_add(simd, x1, factors[1], T::mul_add(simd, x0, factors[0], *w));
    }
    let first = T::mul_add(simd, reader.last(rows[0]), factors[0], *last);
    *last = T::mul_add(simd, reader.last(rows[1]), factors[1], first);
    let product = |i: usize| -> f64 {
        T::sum(
            simd,
            T::mul_add(simd, reader.last(next[i]), y.last, sums[i]),
        )
        .into()
    };
    [product(0), product(1)]
}

/// The rows after the next ones, which memory is asked for while the next ones are multiplied.
struct Following {
    address: *const u8,
    row_bytes: usize,
    order: Order,
}

/// In which order the following rows are asked for.
///
/// Measured on a Zen 3, as a fraction of a sum's rate: row after row 72-79 % throughout; as two streams
/// 80-90 % for rows of up to 512 bytes and from a page upwards, but 58-65 % in between, where both
/// streams share a page.
enum Order {
    Streams,
    Linear,
}

impl Following {
    #[inline(always)]
    fn new<T: Scalar, S: Simd>(reader: &RowReader<T, S>, next: Row<T, S>) -> Self {
        let address = next
            .full
            .as_ptr()
            .cast::<T>()
            .wrapping_add(PAIR * reader.stride())
            .cast();
        let row_bytes = reader.stride() * size_of::<T>();
        let order = if (513..4096).contains(&row_bytes) {
            Order::Linear
        } else {
            Order::Streams
        };
        Following {
            address,
            row_bytes,
            order,
        }
    }

    /// Asks for `bytes` more of each of the two rows, or for as much from where it left off.
    #[inline(always)]
    fn prefetch(&mut self, bytes: usize) {
        let (gap, step) = match self.order {
            Order::Streams => (self.row_bytes, bytes),
            Order::Linear => (bytes, PAIR * bytes),
        };
        prefetch(self.address, bytes);
        prefetch(self.address.wrapping_add(gap), bytes);
        self.address = self.address.wrapping_add(step);
    }
}

/// The last vector of w, and those before it.
#[inline(always)]
fn split_last<T: Scalar, S: Simd>(w: &mut [T]) -> (&mut T::Vector<S>, &mut [T::Vector<S>]) {
    T::vectors_mut::<S>(w)
        .split_last_mut()
        .expect("a row has at least one vector")
}
