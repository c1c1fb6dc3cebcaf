//! What a solve is given besides the objective, targets and weights.

use super::FitError;
use super::checks::{expect_len, not_negative};
use super::options::FitOptions;

/// Coefficients and intercepts to start from.
pub(super) type Warm<'a> = (&'a [Vec<f64>], &'a [f64]);

/// What a solve is given besides spec, targets and weights.
#[derive(Clone, Copy, Default)]
pub(super) struct Given<'a> {
    /// Columns that take part.
    pub(super) mask: Option<&'a [bool]>,
    pub(super) warm: Option<Warm<'a>>,
    /// Added to the linear predictors of each row.
    pub(super) offset: Option<&'a [f64]>,
    /// What columns are multiplied by, instead of penalties that differ between them.
    pub(super) scaling: Option<&'a [f64]>,
}

/// One finite offset for each row, one factor for each column.
///
/// # Errors
/// [`FitError::Length`] and [`FitError::Parameter`].
pub(super) fn check_rows_and_columns(
    options: &FitOptions<'_>,
    (rows, cols): (usize, usize),
) -> Result<(), FitError> {
    expect_len("offsets", options.offset.map(<[f64]>::len), rows)?;
    if let Some(found) = options
        .offset
        .into_iter()
        .flatten()
        .find(|o| !o.is_finite())
    {
        return Err(FitError::Parameter {
            name: "an offset",
            expected: "finite (of an exposure: its logarithm)",
            found: *found,
        });
    }
    let factors = options.penalty_factors;
    expect_len("penalty factors", factors.map(<[f64]>::len), cols)?;
    let each = factors.into_iter().flatten();
    each.copied()
        .try_for_each(|factor| not_negative("a penalty factor", factor))
}

impl<'a> FitOptions<'a> {
    /// What a solve is told of them.
    pub(super) fn given(&self) -> Given<'a> {
        Given {
            mask: self.columns,
            warm: self.start,
            offset: self.offset,
            scaling: None,
        }
    }
}
