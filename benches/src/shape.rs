//! Shapes of what is measured.

use std::fmt;

use anyhow::Result;
use serde::Serialize;
use warpfuse::matrix::{Element, Features};

use crate::data;

/// The shape of a matrix or of vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "layout", rename_all = "snake_case")]
pub enum Shape {
    /// Row-major.
    Dense {
        /// m.
        rows: usize,
        /// n.
        cols: usize,
    },
    /// CSR with as many nonzeros in every row, at stratified uniform columns.
    Sparse {
        /// m.
        rows: usize,
        /// n.
        cols: usize,
        /// Nonzeros of a row.
        per_row: usize,
    },
    /// Vectors.
    Vector {
        /// Elements of each.
        len: usize,
    },
    /// Pairs of points.
    Points {
        /// M.
        targets: usize,
        /// N.
        sources: usize,
        /// D.
        dims: usize,
    },
    /// A matrix product, m × k by k × n.
    Product {
        /// Rows of the result.
        m: usize,
        /// Columns of the result.
        n: usize,
        /// Length of the dot products.
        k: usize,
    },
}

const fn dense(rows: usize, cols: usize) -> Shape {
    Shape::Dense { rows, cols }
}

const fn sparse(rows: usize, cols: usize, per_row: usize) -> Shape {
    Shape::Sparse {
        rows,
        cols,
        per_row,
    }
}

/// The matrices of the fused pattern: each several times the largest L2 cache (60 MB on an H200).
pub const MATRICES: [Shape; 10] = [
    // HIGGS.
    dense(11_000_000, 28),
    dense(8_000_000, 128),
    dense(2_000_000, 512),
    dense(1_000_000, 1_024),
    sparse(4_000_000, 1_000, 20),
    sparse(4_000_000, 4_000, 20),
    sparse(4_000_000, 10_000, 20),
    sparse(4_000_000, 40_000, 20),
    sparse(4_000_000, 1_000_000, 20),
    // The shape of kddb, without its power law.
    sparse(8_000_000, 20_000_000, 28),
];

impl Shape {
    /// m; 1 for a vector.
    pub fn rows(&self) -> usize {
        match *self {
            Shape::Dense { rows, .. } | Shape::Sparse { rows, .. } => rows,
            Shape::Vector { .. } => 1,
            Shape::Points { targets, .. } => targets,
            Shape::Product { m, .. } => m,
        }
    }

    /// n; the length of a vector.
    pub fn cols(&self) -> usize {
        match *self {
            Shape::Dense { cols, .. } | Shape::Sparse { cols, .. } => cols,
            Shape::Vector { len } => len,
            Shape::Points { dims, .. } => dims,
            Shape::Product { n, .. } => n,
        }
    }

    /// Whether only nonzeros are stored.
    pub fn is_sparse(&self) -> bool {
        matches!(self, Shape::Sparse { .. })
    }

    /// Stored elements.
    pub fn entries(&self) -> usize {
        match *self {
            Shape::Dense { rows, cols } => rows * cols,
            Shape::Sparse { rows, per_row, .. } => rows * per_row,
            Shape::Vector { len } => len,
            Shape::Points {
                targets,
                sources,
                dims,
            } => (targets + sources) * dims,
            Shape::Product { m, n, k } => (m + n) * k + m * n,
        }
    }

    /// Bytes of the matrix with 32-bit column indices and row offsets of `offset` bytes.
    pub fn bytes<T>(&self, offset: usize) -> usize {
        let structure = if self.is_sparse() {
            4 * self.entries() + offset * (self.rows() + 1)
        } else {
            0
        };
        self.entries() * size_of::<T>() + structure
    }

    /// The matrix of this shape that `seed` names; a vector is a matrix of one row.
    ///
    /// # Errors
    /// When rows have more nonzeros than columns.
    pub fn features<T: Element>(&self, seed: u64) -> Result<Features<T>> {
        Ok(match *self {
            Shape::Sparse {
                rows,
                cols,
                per_row,
            } => Features::Sparse(data::stratified(rows, cols, per_row, seed)?),
            _ => Features::Dense(data::dense(self.rows(), self.cols(), seed)),
        })
    }
}

/// Such as `dense-11000000x28` or `sparse-4000000x1000x20`.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shape::Dense { rows, cols } => write!(f, "dense-{rows}x{cols}"),
            Shape::Sparse {
                rows,
                cols,
                per_row,
            } => write!(f, "sparse-{rows}x{cols}x{per_row}"),
            Shape::Vector { len } => write!(f, "vector-{len}"),
            Shape::Points {
                targets,
                sources,
                dims,
            } => write!(f, "points-{targets}x{sources}x{dims}"),
            Shape::Product { m, n, k } => write!(f, "product-{m}x{n}x{k}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_the_stored_arrays() {
        assert_eq!(dense(3, 5).bytes::<f64>(4), 120);
        assert_eq!(sparse(3, 50, 5).bytes::<f32>(4), 15 * 8 + 16);
        assert_eq!(sparse(3, 50, 5).bytes::<f32>(8), 15 * 8 + 32);
    }

    #[test]
    fn features_have_the_shape() {
        for shape in [dense(7, 3), sparse(9, 40, 4)] {
            let x = shape.features::<f32>(1).expect("a valid shape");
            assert_eq!(
                (x.rows(), x.cols(), x.nnz()),
                (shape.rows(), shape.cols(), shape.entries())
            );
        }
    }
}
