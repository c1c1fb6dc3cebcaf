//! Access to a matrix row by row, whatever its storage.

use ndarray::{ArrayBase, Data, Ix2};

use crate::matrix::{CsrMatrix, Features};

/// A matrix that can list the stored entries of a row as `(column, value)`, widened to f64.
pub trait Rows {
    /// Number of rows, m.
    fn rows(&self) -> usize;

    /// Number of columns, n.
    fn cols(&self) -> usize;

    /// The stored entries of row `row`, in the order of storage.
    ///
    /// # Panics
    /// When `row` is not below [`rows`](Self::rows).
    fn entries(&self, row: usize) -> impl Iterator<Item = (usize, f64)>;
}

impl<T: Copy + Into<f64>> Rows for CsrMatrix<T> {
    fn rows(&self) -> usize {
        CsrMatrix::rows(self)
    }

    fn cols(&self) -> usize {
        CsrMatrix::cols(self)
    }

    fn entries(&self, row: usize) -> impl Iterator<Item = (usize, f64)> {
        let range = self.indptr().outer_inds_sz(row);
        let columns = &self.indices()[range.clone()];
        let values = &self.data()[range];
        columns
            .iter()
            .zip(values)
            .map(|(&column, &value)| (column as usize, value.into()))
    }
}

impl<T: Copy + Into<f64>, S: Data<Elem = T>> Rows for ArrayBase<S, Ix2> {
    fn rows(&self) -> usize {
        self.nrows()
    }

    fn cols(&self) -> usize {
        self.ncols()
    }

    fn entries(&self, row: usize) -> impl Iterator<Item = (usize, f64)> {
        // A copy, because the elements of a view need not lie side by side, and to index them one by one is slow.
        let elements = self.row(row).to_vec();
        elements.into_iter().map(Into::into).enumerate()
    }
}

impl<T: Copy + Into<f64>> Rows for Features<T> {
    fn rows(&self) -> usize {
        Features::rows(self)
    }

    fn cols(&self) -> usize {
        Features::cols(self)
    }

    fn entries(&self, row: usize) -> impl Iterator<Item = (usize, f64)> {
        let entries: Box<dyn Iterator<Item = (usize, f64)>> = match self {
            Features::Sparse(x) => Box::new(x.entries(row)),
            Features::Narrow(x) => Box::new(x.widened().entries(row)),
            Features::Dense(x) => Box::new(x.entries(row)),
            Features::Shared(x) => {
                let elements = x.view().row(row).to_vec();
                Box::new(elements.into_iter().map(Into::into).enumerate())
            }
        };
        entries
    }
}

/// `|X|`: the same entries without their signs.
pub(super) struct Magnitudes<'a, R>(pub &'a R);

impl<R: Rows> Rows for Magnitudes<'_, R> {
    fn rows(&self) -> usize {
        self.0.rows()
    }

    fn cols(&self) -> usize {
        self.0.cols()
    }

    fn entries(&self, row: usize) -> impl Iterator<Item = (usize, f64)> {
        self.0
            .entries(row)
            .map(|(column, value)| (column, value.abs()))
    }
}
