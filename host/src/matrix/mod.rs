//! Matrices at the border of the library: sprs and ndarray types, data sets, statistics.

use ndarray::Array2;

/// A compressed-sparse-row matrix: 32-bit column indices, 64-bit row offsets.
///
/// sprs guarantees that offsets ascend, that indices are below the number of columns and that the
/// indices of a row strictly ascend (no duplicates).
pub type CsrMatrix<T> = sprs::CsMatI<T, u32, u64>;

/// The feature matrix of a data set, m samples × n features.
#[derive(Debug, Clone, PartialEq)]
pub enum Features<T> {
    /// Compressed sparse rows.
    Sparse(CsrMatrix<T>),
    /// Row-major dense.
    Dense(Array2<T>),
}

/// Features and, when the source has them, one target per sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset<T> {
    /// m × n features.
    pub features: Features<T>,
    /// m targets (labels), or `None` when the file has none.
    pub targets: Option<Vec<T>>,
}
