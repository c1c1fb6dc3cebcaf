//! Whether probabilities are what they say: predicted shares beside observed ones.

use serde::Serialize;

use super::MetricError;
use super::sums::{Weights, same_length};

/// Rows whose probability lies in one stretch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CalibrationBin {
    /// Mean of the probabilities.
    pub mean_predicted: f64,
    /// Share of positives.
    pub fraction_of_positives: f64,
    /// Weight of the rows; their number where none were given.
    pub weight: f64,
}

/// Mean probability and share of positives in `bins` equally wide stretches of probabilities; empty ones are left out.
/// Without weights scikit-learn's `calibration_curve`.
///
/// # Errors
/// [`MetricError::Domain`] for probabilities outside 0..=1, and when lengths or weights do not fit.
///
/// ```
/// use warpfuse::learning::metrics::calibration_curve;
/// let bins = calibration_curve(&[false, true, true], &[0.1, 0.3, 0.9], 2, None)?;
/// assert_eq!((bins[0].mean_predicted, bins[0].fraction_of_positives), (0.2, 0.5));
/// assert_eq!(bins.len(), 2);
/// # Ok::<(), warpfuse::learning::metrics::MetricError>(())
/// ```
pub fn calibration_curve(
    positive: &[bool],
    probabilities: &[f64],
    bins: usize,
    weights: Option<&[f64]>,
) -> Result<Vec<CalibrationBin>, MetricError> {
    let weights = checked(positive, probabilities, weights)?;
    let bins = bins.max(1);
    let edges: Vec<f64> = (1..bins).map(|bin| bin as f64 / bins as f64).collect();
    let mut sums = vec![[0.0; 3]; bins];
    for (row, (is, p)) in positive.iter().zip(probabilities).enumerate() {
        // A probability on an edge belongs to the stretch below it.
        let [weight, predicted, found] = &mut sums[edges.partition_point(|edge| edge < p)];
        *weight += weights.of(row);
        *predicted += weights.of(row) * p;
        *found += weights.of(row) * f64::from(u8::from(*is));
    }
    let filled = sums.into_iter().filter(|[weight, ..]| *weight > 0.0);
    let bin = |[weight, predicted, found]: [f64; 3]| CalibrationBin {
        mean_predicted: predicted / weight,
        fraction_of_positives: found / weight,
        weight,
    };
    Ok(filled.map(bin).collect())
}

/// Mean squared difference of probability and outcome: scikit-learn's `brier_score_loss`.
///
/// # Errors
/// As [`calibration_curve`].
///
/// ```
/// use warpfuse::learning::metrics::brier_score;
/// assert_eq!(brier_score(&[true, false], &[0.5, 0.5], None)?, 0.25);
/// # Ok::<(), warpfuse::learning::metrics::MetricError>(())
/// ```
pub fn brier_score(
    positive: &[bool],
    probabilities: &[f64],
    weights: Option<&[f64]>,
) -> Result<f64, MetricError> {
    let weights = checked(positive, probabilities, weights)?;
    Ok(weights.mean(|row| (probabilities[row] - f64::from(u8::from(positive[row]))).powi(2)))
}

fn checked<'a>(
    positive: &[bool],
    probabilities: &[f64],
    weights: Option<&'a [f64]>,
) -> Result<Weights<'a>, MetricError> {
    same_length("probabilities", probabilities.len(), positive.len())?;
    let weights = Weights::check(weights, positive.len())?;
    match probabilities.iter().position(|p| !(0.0..=1.0).contains(p)) {
        None => Ok(weights),
        Some(row) => Err(MetricError::Domain {
            what: "probabilities",
            expected: "from 0 to 1",
            row,
            value: probabilities[row],
        }),
    }
}
