//! Sums over some rows of X, for their columns' deviations.

use crate::matrix::{ColumnMoments, Element, Features};

/// Sums over the columns of some rows.
///
/// ```
/// use ndarray::array;
/// use warpfuse::learning::RowMoments;
/// use warpfuse::matrix::Features;
/// let x = Features::Dense(array![[1.0], [2.0], [100.0]]);
/// let moments = RowMoments::of(&x, &[1.0, 1.0, 0.0]);
/// assert_eq!((moments.rows, moments.columns.sum_of_squares[0]), (2, 5.0));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RowMoments {
    /// The sums.
    pub columns: ColumnMoments,
    /// How many rows were added up.
    pub rows: usize,
}

impl RowMoments {
    /// Over all rows.
    pub fn of_all<T: Element>(features: &Features<T>) -> RowMoments {
        RowMoments {
            columns: ColumnMoments::of(features),
            rows: features.rows(),
        }
    }

    /// Over the rows with weight, each counted once.
    ///
    /// # Panics
    /// When there is not one weight per row.
    pub fn of<T: Element>(features: &Features<T>, weights: &[f64]) -> RowMoments {
        assert_eq!(weights.len(), features.rows(), "one weight per row");
        let takes = |row: usize| weights[row] > 0.0;
        RowMoments {
            columns: ColumnMoments::of_rows(features, takes),
            rows: weights.iter().filter(|weight| **weight > 0.0).count(),
        }
    }
}
