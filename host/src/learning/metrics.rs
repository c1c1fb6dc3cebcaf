//! How well predictions fit.

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
        let r2 = match (residual == 0.0, total == 0.0) {
            (true, true) => 1.0,
            (false, true) => 0.0,
            _ => 1.0 - residual / total,
        };
        RegressionMetrics {
            r2,
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
