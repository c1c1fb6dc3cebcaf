//! Sums over some rows of X, for their columns' deviations.

use crate::device::group::Group;
use crate::matrix::{ColumnMoments, Element, Features, PartMoments, RowsOf};
use crate::ops::{Matrix, Number, OpError, joined_moments};

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

    /// Over the rows of `x` that `takes` takes, of which `features` are this member's where members of a group share them.
    /// Whatever the number of members, the bits are those of one, if they are promised to repeat.
    pub(super) fn of_shared<T: Number>(
        x: &Matrix<T>,
        features: &Features<T>,
        takes: impl Fn(usize) -> bool + Sync,
    ) -> Result<RowMoments, OpError> {
        let own = x.own_rows();
        let takes = |row: usize| takes(own.start + row);
        let mut rows = [(0..features.rows()).filter(|row| takes(*row)).count() as u64];
        let columns = match x.device().group() {
            None => ColumnMoments::of_rows(features, takes),
            Some(group) => {
                group.sum(&mut rows)?;
                match x.is_reproducible() {
                    true => carried(group, (x, features), &takes)?,
                    false => {
                        let own = ColumnMoments::of_rows(features, takes);
                        joined_moments((group, x.device()), own)?
                    }
                }
            }
        };
        Ok(RowMoments {
            columns,
            rows: rows[0] as usize,
        })
    }
}

/// The sums of all members in the order of the rows.
fn carried<T: Number>(
    group: &Group,
    (x, features): (&Matrix<T>, &Features<T>),
    takes: &(dyn Fn(usize) -> bool + Sync),
) -> Result<ColumnMoments, OpError> {
    let cells = x.rows() * x.cols();
    let place = RowsOf {
        rows: x.rows(),
        entries: x.problem().nnz.map_or(cells, |entries| entries as usize),
        first: x.own_rows().start,
    };
    let part = PartMoments::begin(features, place, takes);
    let mut passed = vec![0.0; PartMoments::<T>::len(x.cols())];
    group.carry((&mut passed, 1), |_, passed| part.carry(passed))?;
    group.broadcast(group.size() - 1, &mut passed)?;
    Ok(PartMoments::<T>::finish(&passed))
}
