//! Checks of parameters and lists before a fit.

use super::FitError;
use super::metrics::sums;
use super::options::FitOptions;
use super::problem::Labelled;
use super::row_targets::RowTargets;
use super::sample_weights::SampleWeights;
use crate::device::Device;
use crate::matrix::Element;
use crate::ops::Number;
use crate::parallel;

/// Sample weights, 1 where none are given; their sum is positive.
pub(super) fn sample_weights(
    rows: usize,
    options: &FitOptions<'_>,
) -> Result<SampleWeights, FitError> {
    let Some(weights) = options.sample_weight else {
        return Ok(SampleWeights::ones(rows));
    };
    expect_len("sample weights", Some(weights.len()), rows)?;
    let wrong = |weight: &f64| not_negative("a sample weight", *weight).is_err();
    if let Some(row) = parallel::position(weights, wrong) {
        not_negative("a sample weight", weights[row])?;
    }
    let [found] = sums(rows, |row| [weights[row]]);
    if found > 0.0 && found.is_finite() {
        return Ok(SampleWeights::each(parallel::convert(weights, |v| *v)));
    }
    Err(FitError::Parameter {
        name: "the sum of sample weights",
        expected: "positive and finite",
        found,
    })
}

/// One finite target per row.
pub(super) fn check_targets<T: Number>(
    rows: usize,
    targets: &RowTargets<'_, T>,
) -> Result<(), FitError> {
    if targets.len() != rows {
        let targets = targets.len();
        return Err(FitError::Targets { rows, targets });
    }
    match targets.position(|b| !Element::is_finite(b)) {
        Some(row) => {
            let value = Element::to_f64(targets.at(row));
            Err(FitError::TargetNotFinite { row, value })
        }
        None => Ok(()),
    }
}

/// One label per row, of two classes at least.
pub(super) fn check_labels(rows: usize, labels: &Labelled<'_>) -> Result<(), FitError> {
    let targets = labels.codes.len();
    if targets != rows {
        return Err(FitError::Targets { rows, targets });
    }
    match labels.classes.len() {
        found @ 0..2 => Err(FitError::Classes { found }),
        _ => Ok(()),
    }
}

/// A parameter that must be finite and at least 0.
pub(super) fn not_negative(name: &'static str, found: f64) -> Result<(), FitError> {
    if found >= 0.0 && found.is_finite() {
        return Ok(());
    }
    let expected = "finite and not negative";
    Err(FitError::Parameter {
        name,
        expected,
        found,
    })
}

/// A parameter that must be above 0; infinity is allowed.
pub(super) fn positive(name: &'static str, found: f64) -> Result<(), FitError> {
    if found > 0.0 {
        return Ok(());
    }
    let expected = "positive";
    Err(FitError::Parameter {
        name,
        expected,
        found,
    })
}

/// A parameter that must lie between 0 and 1.
pub(super) fn share(name: &'static str, found: f64) -> Result<(), FitError> {
    if (0.0..=1.0).contains(&found) {
        return Ok(());
    }
    let expected = "from 0 to 1";
    Err(FitError::Parameter {
        name,
        expected,
        found,
    })
}

/// A list of the length that the data ask for, where it is given.
pub(super) fn expect_len(
    what: &'static str,
    found: Option<usize>,
    expected: usize,
) -> Result<(), FitError> {
    match found {
        Some(found) if found != expected => Err(FitError::Length {
            what,
            expected,
            found,
        }),
        _ => Ok(()),
    }
}

/// Fails where members of a group share the rows, for what needs all of them in one place.
pub(super) fn whole(device: &Device, what: &'static str) -> Result<(), FitError> {
    match device.group() {
        None => Ok(()),
        Some(_) => Err(FitError::Combination {
            first: what,
            second: "rows that several processes share",
            remedy: "run one process, with all rows",
        }),
    }
}
