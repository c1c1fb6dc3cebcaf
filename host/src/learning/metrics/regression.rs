//! Figures of regressions: R², mean squared and absolute error.

use super::MetricError;
use super::sums::{Weights, explained_share, same_length, sums};

/// R², the coefficient of determination: `1 − Σ w(t − p)² / Σ w(t − t̄)²`, t̄ the weighted mean.
///
/// For constant targets it is 1 when every prediction is exact and 0 otherwise. Of fewer than two samples with weight it
/// is not defined: NaN, as in scikit-learn.
///
/// # Errors
/// [`MetricError`] when lengths or weights do not fit.
///
/// ```
/// use warpfuse::learning::metrics::r2;
/// assert_eq!(r2(&[1.0, 2.0, 3.0], &[1.0, 2.0, 2.0], None)?, 0.5);
/// assert_eq!(r2(&[1.0, 2.0, 3.0], &[1.0, 2.0, 2.0], Some(&[1.0, 1.0, 0.0]))?, 1.0);
/// # Ok::<(), warpfuse::learning::metrics::MetricError>(())
/// ```
pub fn r2(
    targets: &[f64],
    predictions: &[f64],
    weights: Option<&[f64]>,
) -> Result<f64, MetricError> {
    let weights = check(targets, predictions, weights)?;
    let samples = (0..targets.len()).filter(|row| weights.of(*row) > 0.0);
    if samples.take(2).count() < 2 {
        return Ok(f64::NAN);
    }
    let mean = weights.mean(|row| targets[row]);
    let [residual, total] = sums(targets.len(), |row| {
        let weight = weights.of(row);
        let (error, spread) = (targets[row] - predictions[row], targets[row] - mean);
        [weight * error * error, weight * spread * spread]
    });
    let is_constant = targets.iter().all(|target| *target == targets[0]);
    let total = if is_constant { 0.0 } else { total };
    Ok(explained_share(residual, total))
}

/// `Σ w(t − p)² / Σ w`; its root is the RMSE.
///
/// # Errors
/// As [`r2`].
pub fn mean_squared_error(
    targets: &[f64],
    predictions: &[f64],
    weights: Option<&[f64]>,
) -> Result<f64, MetricError> {
    let weights = check(targets, predictions, weights)?;
    Ok(weights.mean(|row| (targets[row] - predictions[row]).powi(2)))
}

/// `Σ w|t − p| / Σ w`.
///
/// # Errors
/// As [`r2`].
pub fn mean_absolute_error(
    targets: &[f64],
    predictions: &[f64],
    weights: Option<&[f64]>,
) -> Result<f64, MetricError> {
    let weights = check(targets, predictions, weights)?;
    Ok(weights.mean(|row| (targets[row] - predictions[row]).abs()))
}

fn check<'a>(
    targets: &[f64],
    predictions: &[f64],
    weights: Option<&'a [f64]>,
) -> Result<Weights<'a>, MetricError> {
    same_length("predictions", predictions.len(), targets.len())?;
    Weights::check(weights, targets.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_targets_follow_scikit_learn() {
        assert_eq!(r2(&[2.0, 2.0], &[2.0, 2.0], None), Ok(1.0));
        assert_eq!(r2(&[2.0, 2.0], &[2.0, 3.0], None), Ok(0.0));
    }

    #[test]
    fn one_sample_has_no_score() {
        for weights in [None, Some(&[1.0][..])] {
            let score = r2(&[2.0], &[2.0], weights).expect("one sample");
            assert!(score.is_nan(), "{score}");
        }
        let held_out = r2(&[1.0, 2.0], &[1.0, 2.0], Some(&[0.0, 1.0])).expect("weights");
        assert!(held_out.is_nan(), "{held_out}");
    }

    #[test]
    fn a_prediction_that_is_not_a_number_gives_no_score() {
        let score = r2(&[1.0, 2.0], &[1.0, f64::NAN], None).expect("two samples");
        assert!(score.is_nan(), "{score}");
    }
}
