//! Passes over dense rows: dot product, then axpy, while the row is in the nearest cache.
//!
//! A thread gets its share of the memory's rate only while memory is kept busy, so rows are read in the
//! order of memory and requested ahead of time: rows of a few vectors stay in registers between the two
//! products ([`narrow`]); for longer ones the axpy of a row runs along with the dot product of the next one
//! ([`long`]). Tried before: four rows at a time, first all dot products, then all axpys, and two rows along
//! with the next two. That reads y and w less often, but several streams at once, or the ends of rows before
//! their beginnings, reached 40-70 % of a sum's rate.
//!
//! A dot product is added up in T and w collects [`BLOCK`] rows before it goes to f64: an f32 result
//! loses at most some n/lanes + [`BLOCK`] roundings, however many rows there are.

mod long;
mod narrow;
mod reader;

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use self::reader::RowReader;
use super::chunks;
use super::fused::{ChunkedRows, RowInput, Workspace, by_rows, in_one_pass};
use super::matrix::Dense;
use super::scalar::Scalar;
use super::scratch::Pool;
use super::terms::{RowMap, Terms};
use super::wide;

/// Rows whose contributions to w are added up in T.
const BLOCK: usize = 256;

/// Rows per copy of w at least, so that the copies cost a hundredth of X.
const MIN_ROWS: usize = 128;

impl<T: Scalar> ChunkedRows<T> for Dense<'_, T> {
    fn shape(&self) -> (usize, usize) {
        (self.rows(), self.cols())
    }

    fn row_chunks(&self) -> usize {
        chunks::count(self.rows().saturating_mul(self.cols()))
    }

    fn copies(&self) -> usize {
        self.row_chunks().min(self.rows() / MIN_ROWS).max(1)
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

    fn accumulate(
        &self,
        rows: Range<usize>,
        input: RowInput<T>,
        map: RowMap<T>,
        w: &mut [f64],
        _: &Pool,
    ) {
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
            wide::transpose(self, input, terms, w, &ws.pool);
        } else {
            in_one_pass(self, input, terms, w, ws);
        }
    }

    fn project(&self, y: &[T], terms: &Terms<T>, p: &mut [T]) {
        if wide::is_wide(self) {
            wide::project(self, y, terms, p);
        } else {
            by_rows(self, y, terms, p);
        }
    }
}

/// Calls the kernel for rows of as many vectors as the reader's: `narrow` with that number as a
/// constant, or `long`.
macro_rules! by_vectors {
    ($reader:expr, $narrow:path, $long:path, $arguments:tt) => {
        match $reader.vectors_per_row() {
            1 => by_vectors!(@call $narrow, 1, $arguments),
            2 => by_vectors!(@call $narrow, 2, $arguments),
            3 => by_vectors!(@call $narrow, 3, $arguments),
            4 => by_vectors!(@call $narrow, 4, $arguments),
            5 => by_vectors!(@call $narrow, 5, $arguments),
            6 => by_vectors!(@call $narrow, 6, $arguments),
            7 => by_vectors!(@call $narrow, 7, $arguments),
            8 => by_vectors!(@call $narrow, 8, $arguments),
            _ => $long $arguments,
        }
    };
    (@call $narrow:path, $vectors:literal, ($($argument:expr),*)) => {
        $narrow($($argument,)* [(); $vectors])
    };
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
        by_vectors!(
            reader,
            narrow::multiply,
            long::multiply,
            (&reader, self.rows, y, self.products)
        );
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
        let Accumulate { rows, map, w, .. } = self;
        let reader = RowReader::<T, S>::new(simd, self.x);
        match self.input {
            RowInput::Product(y) => {
                let y = reader.vectors(y);
                by_vectors!(
                    reader,
                    narrow::fused,
                    long::fused,
                    (&reader, rows, y, map, w)
                );
            }
            RowInput::Given(p) => {
                by_vectors!(
                    reader,
                    narrow::transposed,
                    long::transposed,
                    (&reader, rows, p, map, w)
                );
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::tests::cases::{rng, values};
    use crate::reference;
    use crate::reference::rounding::{UNIT_F32, gamma, within};

    /// The kernels with vectors of every width, whatever this processor has.
    fn check<S: Simd>(simd: S, rows: usize, cols: usize) {
        let mut rng = rng(41);
        let x = values::<f32>(rows * cols, &mut rng);
        let y = values::<f32>(cols, &mut rng);
        let dense = Dense::new(rows, cols, cols, &x).expect("rows · cols values");
        let view = ndarray::ArrayView2::from_shape((rows, cols), &x).expect("rows · cols values");
        let plain = reference::fused::Terms::scaled(1.0f32, 0.0);
        let gamma = gamma(cols + rows + 8, UNIT_F32);
        let bound = |magnitude: Vec<f64>| magnitude.iter().map(|m| gamma * m).collect::<Vec<_>>();

        let mut p = vec![f64::NAN; rows];
        Multiply {
            x: dense,
            rows: 0..rows,
            y: &y,
            products: &mut p,
        }
        .with_simd(simd);
        let magnitude = reference::fused::forward_magnitude(&view, &y, &plain);
        let truth = reference::fused::forward(&view, &y, &plain);
        assert!(
            within(&p, &truth, &bound(magnitude)),
            "X·y, {rows} × {cols}, {simd:?}"
        );

        let mut w = vec![0.0; cols];
        let (input, map) = (RowInput::Product(&y), Terms::scaled(1.0).row_map());
        Accumulate {
            x: dense,
            rows: 0..rows,
            input,
            map,
            w: &mut w,
        }
        .with_simd(simd);
        let magnitude = reference::fused::fused_magnitude(&view, &y, &plain);
        let truth = reference::fused::fused(&view, &y, &plain);
        assert!(
            within(&w, &truth, &bound(magnitude)),
            "fused, {rows} × {cols}, {simd:?}"
        );
    }

    #[test]
    fn vectors_of_every_width() {
        for rows in [1, 3, 257, 600] {
            for cols in [1, 2, 7, 8, 9, 15, 16, 17, 64, 65, 127, 128, 129, 200] {
                check(pulp::Scalar, rows, cols);
                check(pulp::Scalar128b, rows, cols);
                check(pulp::Scalar256b, rows, cols);
                check(pulp::Scalar512b, rows, cols);
            }
        }
    }
}
