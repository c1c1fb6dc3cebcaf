//! Dense matrices in memory that somebody else owns.

use std::ops::Range;

use ndarray::{Array2, ArrayView2, ShapeBuilder};
use rayon::prelude::*;

use super::SharedSlice;

/// In which order the elements of a dense matrix lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Row after row, as C has them.
    Rows,
    /// Column after column, as Fortran has them.
    Columns,
}

/// A dense matrix whose elements are borrowed from whatever owns them, a NumPy array or a mapped file: nothing is copied.
///
/// ```
/// use warpfuse::matrix::{Features, Order, SharedDense};
///
/// let x = SharedDense::new((2, 3), Order::Columns, vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0].into()).expect("6 elements");
/// assert_eq!(x.view(), ndarray::array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
/// assert_eq!(Features::Shared(x).rows(), 2);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct SharedDense<T> {
    shape: (usize, usize),
    order: Order,
    /// As many as the shape says.
    elements: SharedSlice<T>,
}

impl<T> SharedDense<T> {
    /// A matrix of m rows and n columns, if `elements` are m·n.
    pub fn new(
        shape: (usize, usize),
        order: Order,
        elements: SharedSlice<T>,
    ) -> Option<SharedDense<T>> {
        (shape.0.checked_mul(shape.1) == Some(elements.len())).then_some(SharedDense {
            shape,
            order,
            elements,
        })
    }

    /// Some of the rows, in the same memory; `None` where rows do not lie one after the other.
    pub(super) fn share_rows(&self, rows: Range<usize>) -> Option<SharedDense<T>> {
        let cols = self.shape.1;
        (self.order == Order::Rows).then(|| SharedDense {
            shape: (rows.len(), cols),
            order: Order::Rows,
            elements: self.elements.part(rows.start * cols..rows.end * cols),
        })
    }

    /// m and n.
    pub fn dim(&self) -> (usize, usize) {
        self.shape
    }

    /// The order of its elements.
    pub fn order(&self) -> Order {
        self.order
    }

    /// The matrix as ndarray sees it.
    pub fn view(&self) -> ArrayView2<'_, T> {
        let is_by_columns = self.order == Order::Columns;
        ArrayView2::from_shape(self.shape.set_f(is_by_columns), &self.elements)
            .expect("m·n elements")
    }
}

/// Columns that are read side by side: the elements of a row that share a line of the cache.
const COLUMNS: usize = 16;

/// Writes a range of the rows of `x` as they lie one after the other, `ld` elements apart, with zeros in the gaps. `x` is
/// best stored by columns: it is read in steps of [`COLUMNS`] of them.
pub(crate) fn copy_rows<T: Copy + Default>(
    x: ArrayView2<'_, T>,
    ld: usize,
    range: Range<usize>,
    to: &mut [T],
) {
    if range.is_empty() {
        return;
    }
    to.fill(T::default());
    for first in (0..x.ncols()).step_by(COLUMNS) {
        for row in range.start / ld..=(range.end - 1) / ld {
            for col in first..x.ncols().min(first + COLUMNS) {
                let place = row * ld + col;
                if range.contains(&place) {
                    to[place - range.start] = x[(row, col)];
                }
            }
        }
    }
}

/// A copy of `x` with its rows one after the other, made by all cores.
pub(crate) fn rows_of<T: Copy + Default + Send + Sync>(x: ArrayView2<'_, T>) -> Array2<T> {
    let (rows, cols) = x.dim();
    let mut copy = vec![T::default(); rows * cols];
    let block = (ROWS * cols).max(1);
    copy.par_chunks_mut(block).enumerate().for_each(|(i, to)| {
        let start = i * block;
        copy_rows(x, cols, start..start + to.len(), to);
    });
    Array2::from_shape_vec((rows, cols), copy).expect("m·n elements")
}

/// Rows that one task copies.
const ROWS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_copied_wherever_a_range_begins_and_ends() {
        let x = Array2::from_shape_fn((3, 20), |(i, j)| (20 * i + j + 1) as f32);
        let by_columns = x.t().as_standard_layout().into_owned();
        let whole: Vec<f32> = (0..3 * 24)
            .map(|place| *x.get((place / 24, place % 24)).unwrap_or(&0.0))
            .collect();
        for (start, end) in [(0, 72), (0, 0), (5, 6), (19, 49), (20, 24), (71, 72)] {
            let mut to = vec![-1.0; end - start];
            copy_rows(by_columns.t(), 24, start..end, &mut to);
            assert_eq!(to, whole[start..end], "{start}..{end}");
        }
        assert_eq!(rows_of(by_columns.t()), x);
        assert_eq!(rows_of(Array2::<f64>::zeros((4, 0)).view()).dim(), (4, 0));
    }

    #[test]
    fn too_few_elements_are_no_matrix() {
        let of = |shape| SharedDense::new(shape, Order::Rows, vec![1.0; 6].into());
        assert!(of((2, 3)).is_some() && of((2, 4)).is_none());
        assert!(of((usize::MAX, 2)).is_none());
    }
}
