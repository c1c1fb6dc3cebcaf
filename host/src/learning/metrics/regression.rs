//! Figures of regressions: R², mean squared and absolute error.

use super::MetricError;
use super::sums::{Weights, explained_share, same_length, sums};

/// Figures of a regression.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct RegressionMetrics {
    /// Coefficient of determination, 1 − Σ(t − p)² / Σ(t − t̄)². For constant targets it is 1 when every
    /// prediction is exact and 0 otherwise, as in scikit-learn.
    pub r2: f64,
    /// Root of the mean squared error.
    pub rmse: f64,
}

impl RegressionMetrics {
    /// From the sums of squares of the residuals and of the centred targets, over `rows` samples.
    pub fn of_sums(residual: f64, total: f64, rows: usize) -> RegressionMetrics {
        RegressionMetrics {
            r2: explained_share(residual, total),
            rmse: (residual / rows as f64).sqrt(),
        }
    }
}

/// R² and RMSE of `predictions` against `targets`, in f64.
///
/// # Panics
/// When the lengths differ or there are no samples.
///
/// ```
/// use warpfuse::learning::regression_metrics;
/// let metrics = regression_metrics(&[1.0, 2.0, 3.0], &[1.0, 2.0, 2.0]);
/// assert_eq!(metrics.r2, 0.5);
/// ```
pub fn regression_metrics(targets: &[f64], predictions: &[f64]) -> RegressionMetrics {
    assert_eq!(
        targets.len(),
        predictions.len(),
        "one prediction per target"
    );
    assert!(!targets.is_empty(), "metrics need at least one sample");
    let mean = targets.iter().sum::<f64>() / targets.len() as f64;
    let residual = targets
        .iter()
        .zip(predictions)
        .map(|(t, p)| (t - p) * (t - p))
        .sum();
    let total = targets.iter().map(|t| (t - mean) * (t - mean)).sum();
    RegressionMetrics::of_sums(residual, total, targets.len())
}

/// R², the coefficient of determination: `1 − Σ w(t − p)² / Σ w(t − t̄)²`, t̄ the weighted mean.
///
/// For constant targets (one sample among them) it is 1 when every prediction is exact and 0 otherwise.
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
    let mean = weights.mean(|row| targets[row]);
    let [residual, total] = sums(targets.len(), |row| {
        let weight = weights.of(row);
        let (error, spread) = (targets[row] - predictions[row], targets[row] - mean);
        [weight * error * error, weight * spread * spread]
    });
    let is_constant = targets.iter().all(|target| *target == targets[0]);
    let total = if is_constant { 0.0 } else { total };
    Ok(RegressionMetrics::of_sums(residual, total, targets.len()).r2)
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
        assert_eq!(regression_metrics(&[2.0, 2.0], &[2.0, 2.0]).r2, 1.0);
        assert_eq!(regression_metrics(&[2.0, 2.0], &[2.0, 3.0]).r2, 0.0);
    }

    #[test]
    fn a_prediction_that_is_not_a_number_gives_no_score() {
        let metrics = regression_metrics(&[1.0, 2.0], &[1.0, f64::NAN]);
        assert!(metrics.r2.is_nan() && metrics.rmse.is_nan());
    }
}
