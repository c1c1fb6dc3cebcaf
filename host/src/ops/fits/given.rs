//! Whether what fits are given belongs together.

use gpu_kernels::fits::MOST_COLUMNS;

use super::values::{FitRows, FitRules, SmallFit};
use crate::ops::{Number, OpError, checks};

/// There are 1 to [`MOST_COLUMNS`] columns, and as many factors of penalties where there are any.
pub(super) fn check_columns(cols: usize, rules: &FitRules<'_>) -> Result<(), OpError> {
    let limit = u64::from(MOST_COLUMNS);
    if cols as u64 > limit {
        return Err(too_large("columns of a small fit", limit, cols));
    }
    if cols == 0 {
        return Err(OpError::Parameter {
            name: "the number of columns",
            expected: "1 at least",
            found: 0.0,
        });
    }
    let factors = rules.factors.map_or(cols, <[f64]>::len);
    checks::length("factors of penalties", cols, factors)
}

/// Arrays are as long as the rows want, and on one device.
pub(super) fn check_rows<T: Number>(rows: &FitRows<'_, T>) -> Result<(), OpError> {
    at_least("a row of X", rows.cols, rows.pitch)?;
    let elements = match rows.rows {
        0 => 0,
        rows_of_x => (rows_of_x - 1)
            .saturating_mul(rows.pitch)
            .saturating_add(rows.cols),
    };
    at_least("X", elements, rows.x.len())?;
    let device = rows.x.device();
    checks::same_device("the targets", &device, &rows.targets.device())?;
    if let Some(weights) = rows.weights {
        checks::same_device("the weights", &device, &weights.device())?;
    }
    if let Some(offset) = rows.offset {
        checks::same_length("the offset", offset, rows.rows)?;
        checks::same_device("the offset", &device, &offset.device())?;
    }
    Ok(())
}

/// A kernel can count the rows of a fit.
pub(super) fn check_size(fit: &SmallFit) -> Result<(), OpError> {
    let limit = u64::from(u32::MAX / 2);
    match fit.rows as u64 > limit {
        true => Err(too_large("rows of a small fit", limit, fit.rows)),
        false => Ok(()),
    }
}

/// Rows, targets and weights of a fit are there.
pub(super) fn check_fit<T: Number>(rows: &FitRows<'_, T>, fit: &SmallFit) -> Result<(), OpError> {
    check_size(fit)?;
    let end = |first: usize| first.saturating_add(fit.rows);
    at_least("rows of X", end(fit.row), rows.rows)?;
    at_least("the targets", end(fit.target), rows.targets.len())?;
    match rows.weights {
        Some(weights) => at_least("the weights", end(fit.weight), weights.len()),
        None => Ok(()),
    }
}

/// Fails where there are fewer.
pub(super) fn at_least(what: &'static str, expected: usize, found: usize) -> Result<(), OpError> {
    match found < expected {
        true => Err(OpError::Length {
            what,
            expected,
            found,
        }),
        false => Ok(()),
    }
}

/// That there are more than a limit allows.
pub(super) fn too_large(what: &'static str, limit: u64, found: usize) -> OpError {
    OpError::TooLarge {
        what,
        limit,
        found: found as u64,
    }
}
