//! How a classifier trades one kind of error for the other: points of curves over all thresholds.

use rayon::prelude::*;

use super::MetricError;
use super::sums::{Weights, same_length};

/// Points of the receiver operating characteristic, from the highest threshold down.
#[derive(Debug, Clone, PartialEq)]
pub struct RocCurve {
    /// Share of the negatives with a score of at least the threshold.
    pub false_positive_rate: Vec<f64>,
    /// Share of the positives with a score of at least the threshold.
    pub true_positive_rate: Vec<f64>,
    /// The thresholds; the first is infinite and lets nothing through.
    pub thresholds: Vec<f64>,
}

/// Points of precision and recall, from the lowest threshold up.
#[derive(Debug, Clone, PartialEq)]
pub struct PrecisionRecallCurve {
    /// Share of the positives among what is let through; 1 at the end, where nothing is.
    pub precision: Vec<f64>,
    /// Share of the positives that are let through; 0 at the end.
    pub recall: Vec<f64>,
    /// The thresholds, one for each point but the last.
    pub thresholds: Vec<f64>,
}

/// Weights of positives and negatives at or above each distinct score, from the highest down.
pub(in crate::learning) struct RankedScores {
    thresholds: Vec<f64>,
    positives: Vec<f64>,
    negatives: Vec<f64>,
}

impl RankedScores {
    /// Sorts the scores once, for everything that needs their order.
    ///
    /// # Errors
    /// As [`roc_curve`].
    pub(in crate::learning) fn of(
        positive: &[bool],
        scores: &[f64],
        weights: Option<&[f64]>,
    ) -> Result<RankedScores, MetricError> {
        same_length("scores", scores.len(), positive.len())?;
        let weights = Weights::check(weights, positive.len())?;
        if let Some(row) = scores.par_iter().position_first(|score| score.is_nan()) {
            let (what, expected, value) = ("scores", "that are numbers", scores[row]);
            return Err(MetricError::Domain {
                what,
                expected,
                row,
                value,
            });
        }
        // -0.0 and 0.0 are one score: adding 0.0 makes them so. Rows without weight take no part.
        let rows = (0..scores.len())
            .into_par_iter()
            .filter(|row| weights.of(*row) > 0.0);
        let mut rows: Vec<(f64, usize)> = rows.map(|row| (scores[row] + 0.0, row)).collect();
        rows.par_sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut ranked = RankedScores {
            thresholds: vec![],
            positives: vec![],
            negatives: vec![],
        };
        let (mut above, mut below) = (0.0, 0.0);
        for tied in rows.chunk_by(|a, b| a.0 == b.0) {
            for (_, row) in tied {
                let side = if positive[*row] {
                    &mut above
                } else {
                    &mut below
                };
                *side += weights.of(*row);
            }
            ranked.thresholds.push(tied[0].0);
            ranked.positives.push(above);
            ranked.negatives.push(below);
        }
        match above > 0.0 && below > 0.0 {
            true => Ok(ranked),
            false => Err(MetricError::OneClass),
        }
    }

    /// See [`roc_curve`].
    pub(in crate::learning) fn roc(&self) -> RocCurve {
        let (positives, negatives) = self.totals();
        let count = self.thresholds.len();
        let bends =
            |values: &[f64], i: usize| values[i + 1] - values[i] != values[i] - values[i - 1];
        let is_corner = |i: usize| {
            let inner = i > 0 && i + 1 < count;
            !inner || bends(&self.positives, i) || bends(&self.negatives, i)
        };
        let mut curve = RocCurve {
            false_positive_rate: vec![0.0],
            true_positive_rate: vec![0.0],
            thresholds: vec![f64::INFINITY],
        };
        for i in (0..count).filter(|i| is_corner(*i)) {
            let (wrong, right) = (self.negatives[i] / negatives, self.positives[i] / positives);
            curve.false_positive_rate.push(wrong);
            curve.true_positive_rate.push(right);
            curve.thresholds.push(self.thresholds[i]);
        }
        curve
    }

    /// See [`precision_recall_curve`].
    pub(in crate::learning) fn precision_recall(&self) -> PrecisionRecallCurve {
        let (positives, _) = self.totals();
        let both = self.positives.iter().zip(&self.negatives).rev();
        let mut precision: Vec<f64> = both.map(|(right, wrong)| right / (right + wrong)).collect();
        let shares = self.positives.iter().rev().map(|p| p / positives);
        let mut recall: Vec<f64> = shares.collect();
        precision.push(1.0);
        recall.push(0.0);
        PrecisionRecallCurve {
            precision,
            recall,
            thresholds: self.thresholds.iter().rev().copied().collect(),
        }
    }

    /// The area under the curve of [`RankedScores::roc`]: that of [`roc_auc`](super::roc_auc) up to rounding, and exact
    /// below 2⁵² pairs of samples that weigh the same.
    pub(in crate::learning) fn auc(&self) -> f64 {
        let (mut above, mut right) = ([0.0, 0.0], 0.0);
        for (positives, negatives) in self.positives.iter().zip(&self.negatives) {
            let [up, along] = [positives - above[0], negatives - above[1]];
            right += along * (above[0] + 0.5 * up);
            above = [*positives, *negatives];
        }
        right / (above[0] * above[1])
    }

    fn totals(&self) -> (f64, f64) {
        let last = |values: &[f64]| values.last().copied().unwrap_or(0.0);
        (last(&self.positives), last(&self.negatives))
    }
}

/// The receiver operating characteristic; points on a straight line between their neighbours are left out, as in
/// scikit-learn's `roc_curve`.
///
/// # Errors
/// [`MetricError::OneClass`] where no weight is on positives or none on negatives, [`MetricError::Domain`] for scores that
/// are NaN, and when lengths or weights do not fit.
///
/// ```
/// use warpfuse::learning::metrics::roc_curve;
/// let curve = roc_curve(&[false, false, true, true], &[0.1, 0.4, 0.35, 0.8], None)?;
/// assert_eq!(curve.false_positive_rate, [0.0, 0.0, 0.5, 0.5, 1.0]);
/// assert_eq!(curve.true_positive_rate, [0.0, 0.5, 0.5, 1.0, 1.0]);
/// # Ok::<(), warpfuse::learning::metrics::MetricError>(())
/// ```
pub fn roc_curve(
    positive: &[bool],
    scores: &[f64],
    weights: Option<&[f64]>,
) -> Result<RocCurve, MetricError> {
    Ok(RankedScores::of(positive, scores, weights)?.roc())
}

/// Precision and recall over all thresholds, as scikit-learn's `precision_recall_curve`.
///
/// # Errors
/// As [`roc_curve`].
///
/// ```
/// use warpfuse::learning::metrics::precision_recall_curve;
/// let curve = precision_recall_curve(&[false, false, true, true], &[0.1, 0.4, 0.35, 0.8], None)?;
/// assert_eq!(curve.precision, [0.5, 2.0 / 3.0, 0.5, 1.0, 1.0]);
/// assert_eq!(curve.recall, [1.0, 1.0, 0.5, 0.5, 0.0]);
/// # Ok::<(), warpfuse::learning::metrics::MetricError>(())
/// ```
pub fn precision_recall_curve(
    positive: &[bool],
    scores: &[f64],
    weights: Option<&[f64]>,
) -> Result<PrecisionRecallCurve, MetricError> {
    Ok(RankedScores::of(positive, scores, weights)?.precision_recall())
}

impl PrecisionRecallCurve {
    /// The mean of the precision, weighted with the steps of the recall: scikit-learn's `average_precision_score`.
    pub fn average_precision(&self) -> f64 {
        let steps = self.recall.windows(2).zip(&self.precision);
        steps
            .map(|(recall, precision)| (recall[0] - recall[1]) * precision)
            .sum()
    }
}

/// At most `most` points of a curve, about equally far apart along it; the first and the last are among them.
pub(in crate::learning) fn thinned(x: &[f64], y: &[f64], most: usize) -> Vec<[f64; 2]> {
    let count = x.len().min(y.len());
    let all = (0..count).map(|i| [x[i], y[i]]);
    if count <= most {
        return all.collect();
    }
    let far = |i: usize| (x[i] - x[i - 1]).abs() + (y[i] - y[i - 1]).abs();
    let step = (1..count).map(far).sum::<f64>() / (most as f64 - 2.0).max(1.0);
    let (mut kept, mut gone) = (vec![[x[0], y[0]]], 0.0);
    for (i, point) in all.enumerate().skip(1) {
        gone += far(i);
        if gone >= step && i + 1 < count {
            kept.push(point);
            gone -= step * (gone / step).floor();
        }
    }
    kept.push([x[count - 1], y[count - 1]]);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_area_under_the_curve_is_the_exact_one() {
        let positive: Vec<bool> = (0..500).map(|row| row * row % 7 < 3).collect();
        let scores: Vec<f64> = (0..500).map(|row| f64::from(row * 7919 % 97)).collect();
        let curve = roc_curve(&positive, &scores, None).expect("two classes");
        let points: Vec<(f64, f64)> = curve
            .false_positive_rate
            .into_iter()
            .zip(curve.true_positive_rate)
            .collect();
        let area: f64 = points
            .windows(2)
            .map(|pair| 0.5 * (pair[1].0 - pair[0].0) * (pair[1].1 + pair[0].1))
            .sum();
        let exact = super::super::roc_auc(&positive, &scores, None).expect("two classes");
        assert!((area - exact).abs() < 1e-12, "{area} {exact}");
    }

    #[test]
    fn rows_without_weight_take_no_part() {
        let (positive, scores) = ([true, false, true, false], [0.9, 0.8, 0.7, 0.1]);
        let weighted = roc_curve(&positive, &scores, Some(&[1.0, 0.0, 1.0, 1.0]));
        let without = roc_curve(&[true, true, false], &[0.9, 0.7, 0.1], None);
        assert_eq!(weighted, without);
        let one_class = roc_curve(&positive, &scores, Some(&[1.0, 0.0, 1.0, 0.0]));
        assert_eq!(one_class, Err(MetricError::OneClass));
        let nan = roc_curve(&positive, &[0.1, f64::NAN, 0.2, 0.3], None);
        assert!(matches!(nan, Err(MetricError::Domain { row: 1, .. })));
    }

    #[test]
    fn thinned_curves_keep_their_ends() {
        let x: Vec<f64> = (0..=10_000).map(|i| f64::from(i) / 1e4).collect();
        let kept = thinned(&x, &x, 200);
        assert!(kept.len() <= 200 && kept.len() > 150, "{}", kept.len());
        assert_eq!((kept[0], kept[kept.len() - 1]), ([0.0, 0.0], [1.0, 1.0]));
        assert_eq!(thinned(&[0.0, 1.0], &[0.0, 1.0], 200).len(), 2);
    }
}
