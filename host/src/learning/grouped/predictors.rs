//! Linear predictors of rows, each by the coefficients of its group.

use ndarray::ArrayView2;

use super::ONE_A_ROW;
use super::batch::dot;
use crate::learning::checks::expect_len;
use crate::learning::{FitError, LabelError};
use crate::matrix::Features;
use crate::ops::Number;
use crate::parallel;

/// Linear predictors `x·coef[g] + intercept[g]` (m) of rows of `features` (m × n) by the models of their groups, on the CPU: of
/// coefficients (groups × n) and intercepts that are kept elsewhere than in a [`Grouped`](super::Grouped). `groups` (m) number the
/// group of each row.
///
/// ```
/// use ndarray::array;
/// use warpfuse::learning::group_predictors;
/// use warpfuse::matrix::Features;
///
/// let x = Features::Dense(array![[1.0], [2.0], [3.0]]);
/// let coef = array![[10.0], [-1.0]];
/// let predicted = group_predictors(&x, (coef.view(), &[0.5, 0.0]), &[0, 1, 0])?;
/// assert_eq!(predicted, [10.5, -2.0, 30.5]);
/// # Ok::<(), warpfuse::learning::FitError>(())
/// ```
///
/// # Errors
/// [`FitError::Features`] when n differs, [`FitError::Length`] when there is not one group for each row or one intercept for
/// each group, [`LabelError::Unknown`] for a number that is no group's.
pub fn group_predictors<T: Number>(
    features: &Features<T>,
    (coef, intercept): (ArrayView2<'_, f64>, &[f64]),
    groups: &[u32],
) -> Result<Vec<f64>, FitError> {
    let (known, expected) = coef.dim();
    let found = features.cols();
    if expected != found {
        return Err(FitError::Features { expected, found });
    }
    expect_len(
        "intercepts, one for each group",
        Some(intercept.len()),
        known,
    )?;
    expect_len(ONE_A_ROW, Some(groups.len()), features.rows())?;
    if let Some(row) = parallel::position(groups, |group| *group as usize >= known) {
        return Err(FitError::Labels(LabelError::Unknown {
            row,
            label: groups[row].to_string(),
            known: format!("from 0 to {known}, exclusively"),
        }));
    }
    let coef = coef.as_standard_layout();
    let of_group = |group: usize| coef.row(group).to_slice().expect("rows of C order");
    Ok(parallel::filled(groups.len(), |row| {
        let group = groups[row] as usize;
        intercept[group] + dot(features, row, of_group(group))
    }))
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn what_does_not_fit_is_refused() {
        let x = Features::Dense(array![[1.0_f32, 2.0], [3.0, 4.0]]);
        // By columns: rows of coefficients do not lie in one piece.
        let coef = array![[1.0, 3.0], [2.0, 4.0]].reversed_axes();
        let of = |intercept: &[f64], groups: &[u32]| {
            group_predictors(&x, (coef.view(), intercept), groups)
        };
        assert_eq!(of(&[0.5, -1.0], &[1, 0]), Ok(vec![10.0, 11.5]));
        assert!(matches!(of(&[0.5], &[1, 0]), Err(FitError::Length { .. })));
        assert!(matches!(
            of(&[0.5, 0.0], &[1]),
            Err(FitError::Length { .. })
        ));
        let unknown = of(&[0.5, 0.0], &[1, 2]).expect_err("no group 2");
        assert!(
            unknown.to_string().contains("found 2 for sample 1"),
            "{unknown}"
        );
        let narrow = group_predictors(&x, (array![[1.0]].view(), &[0.0]), &[0, 0]);
        assert!(matches!(
            narrow,
            Err(FitError::Features {
                expected: 1,
                found: 2
            })
        ));
    }
}
