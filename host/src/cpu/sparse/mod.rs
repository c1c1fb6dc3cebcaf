//! Passes over compressed sparse rows.
//!
//! A row is walked twice, the second time from the nearest cache: gather from y, then scatter to w
//! ([`rows`]). What bounds a pass is the core more than memory: indices are checked when a matrix is made and
//! not at every access, and y and w lie side by side where they fit in the second-level cache ([`pairs`]), w in the element type
//! for some thousand rows at a time where a pass has enough entries for that.
//!
//! Measured on a Xeon with AVX-512 at 3.6 GHz, rows of 20 entries, per entry: the dot product 1.05 cycles (three
//! loads, of which the core does three a cycle), the axpy 1.7 with w in the nearest cache and 3.8 in the
//! second-level one, where every entry fetches a line and writes one back. Tried there and no faster: gathers of 8 and 16
//! lanes, scatters of AVX-512, blocks of rows with all products before all axpys, products written to a buffer and
//! added up in one loop over all entries. A step beyond needs another layout, which a matrix would be converted to once: 16 rows
//! side by side with indices of 16 bits, whose dot products take a third of the time, and lists of each column's products
//! (`benches/results/README.md` has what each gives).

mod pairs;
mod rows;

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

#[cfg(test)]
pub(super) use self::pairs::BLOCK;
use self::pairs::{Layout, Paired};
use self::rows::{Apart, Gather, Inputs, Scatter, Sums, Walk, axpy, dot};
use super::chunks;
use super::fused::{ChunkedRows, RowInput};
use super::matrix::Csr;
use super::scalar::Scalar;
use super::scratch::Pool;
use super::terms::RowMap;

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

    fn copies(&self) -> usize {
        chunks::copies(self.work(), self.bytes(), self.cols())
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
        assert!(rows.end <= self.rows(), "rows of X");
        Arch::new().dispatch(Multiply {
            x: *self,
            rows,
            y: Inputs::new(self, y),
            products,
        });
    }

    fn accumulate(
        &self,
        rows: Range<usize>,
        input: RowInput<T>,
        map: RowMap<T>,
        w: &mut [f64],
        pool: &Pool,
    ) {
        assert!(rows.end <= self.rows(), "rows of X");
        assert_eq!(w.len(), self.cols(), "w needs one element per column of X");
        if let RowInput::Product(y) = input {
            assert_eq!(y.len(), self.cols(), "y needs one element per column of X");
        }
        match input {
            RowInput::Given(p) => Arch::new().dispatch(Transpose {
                x: *self,
                rows,
                p,
                map,
                w: Sums::new(self, w),
            }),
            RowInput::Product(y) => {
                let done = match Layout::of(self, &rows) {
                    Layout::Apart => None,
                    Layout::Pairs => in_pairs::<T, f64>(self, &rows, rows.len(), y, map, w, pool),
                    Layout::Blocks(block) => in_pairs::<T, T>(self, &rows, block, y, map, w, pool),
                };
                if done.is_none() {
                    fused(self, rows, map, Apart::new(self, y, w));
                }
            }
        }
    }
}

/// `w += X[rows]ᵀ · map(X[rows]·y)` by way of pairs, whose w goes to `w` after every `block` rows; `None`, and
/// nothing done, where there is no memory for them.
fn in_pairs<T: Scalar, W: Scalar>(
    x: &Csr<T>,
    rows: &Range<usize>,
    block: usize,
    y: &[T],
    map: RowMap<T>,
    w: &mut [f64],
    pool: &Pool,
) -> Option<()> {
    let mut memory = Paired::<T, W>::memory(x, pool)?;
    let mut columns = Paired::<T, W>::new(x, &mut memory);
    let arch = Arch::new();
    arch.dispatch(Fill {
        columns: columns.reborrow(),
        y,
    });
    for start in rows.clone().step_by(block.max(1)) {
        let end = rows.end.min(start + block);
        fused(x, start..end, map, columns.reborrow());
        arch.dispatch(Drain {
            columns: columns.reborrow(),
            w: &mut *w,
        });
    }
    pool.give_back(memory);
    Some(())
}

fn fused<T: Scalar>(
    x: &Csr<T>,
    rows: Range<usize>,
    map: RowMap<T>,
    columns: impl Gather<T> + Scatter,
) {
    Arch::new().dispatch(Fused {
        x: *x,
        rows,
        map,
        columns,
    });
}

/// `products = X[rows]·y`; rows of X.
struct Multiply<'a, T> {
    x: Csr<'a, T>,
    rows: Range<usize>,
    y: Inputs<'a, T>,
    products: &'a mut [f64],
}

impl<T: Scalar> WithSimd for Multiply<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for ((_, entries), product) in Walk::new(&self.x, self.rows).zip(self.products) {
            // SAFETY: y was made for X, and the entries are of X.
            *product = unsafe { dot(simd, entries, &self.y) };
        }
    }
}

/// `w += X[rows]ᵀ · map(p[rows])`; rows of X.
struct Transpose<'a, T> {
    x: Csr<'a, T>,
    rows: Range<usize>,
    p: &'a [T],
    map: RowMap<'a, T>,
    w: Sums<'a>,
}

impl<T: Scalar> WithSimd for Transpose<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        for (row, entries) in Walk::new(&self.x, self.rows) {
            let factor = self.map.apply(row, self.p[row].into());
            // SAFETY: w was made for X, and the entries are of X.
            unsafe { axpy(simd, entries, factor, &mut self.w) };
        }
    }
}

/// `w += X[rows]ᵀ · map(X[rows]·y)`; rows of X, and columns that were made for X.
struct Fused<'a, T, C> {
    x: Csr<'a, T>,
    rows: Range<usize>,
    map: RowMap<'a, T>,
    // Held by value: a pointer to it would be followed again after every store.
    columns: C,
}

impl<T: Scalar, C: Gather<T> + Scatter> WithSimd for Fused<'_, T, C> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        for (row, entries) in Walk::new(&self.x, self.rows) {
            // SAFETY: the columns were made for X, and the entries are of X.
            let product = unsafe { dot(simd, entries, &self.columns) };
            let factor = self.map.apply(row, product);
            // SAFETY: as above.
            unsafe { axpy(simd, entries, factor, &mut self.columns) };
        }
    }
}

/// Makes pairs of y and zeros.
struct Fill<'a, T, W> {
    columns: Paired<'a, T, W>,
    y: &'a [T],
}

impl<T: Scalar, W: Scalar> WithSimd for Fill<'_, T, W> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) {
        self.columns.fill(self.y);
    }
}

/// Adds the w of pairs to w, and begins them again.
struct Drain<'a, T, W> {
    columns: Paired<'a, T, W>,
    w: &'a mut [f64],
}

impl<T: Scalar, W: Scalar> WithSimd for Drain<'_, T, W> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) {
        self.columns.drain_to(self.w);
    }
}
