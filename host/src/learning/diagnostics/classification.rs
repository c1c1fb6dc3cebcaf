//! Curves of a classifier.

use ndarray::Array2;
use serde::Serialize;

use crate::learning::metrics::{
    CalibrationBin, MetricError, RankedScores, brier_score, calibration_curve, thinned,
};
use crate::learning::{Classes, FitError};

/// Classes that have curves: the most frequent ones.
const CURVES: usize = 5;
/// Points of a curve.
const POINTS: usize = 200;
/// Stretches of probabilities.
const BINS: usize = 10;
const HISTOGRAM: usize = 20;

/// Curves of a classifier on labelled data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassificationDiagnostics {
    /// Rows that curves are of.
    pub rows: usize,
    /// All rows, where curves are not of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampled_from: Option<usize>,
    /// Weight of the rows of each class, in the order of the classes; their number where no weights were given.
    pub class_weights: Vec<f64>,
    /// The accuracy of naming the most frequent class always.
    pub majority_share: f64,
    /// Of two classes the second; of more the most frequent ones, each against the others.
    pub curves: Vec<ClassCurves>,
}

/// How well one class is told from the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassCurves {
    /// The class.
    pub class: String,
    /// Area under the ROC curve; `None` where all rows are of one class.
    pub auc: Option<f64>,
    /// Mean precision over the recall.
    pub average_precision: Option<f64>,
    /// Points (false positive rate, true positive rate).
    pub roc: Vec<[f64; 2]>,
    /// Points (recall, precision), from recall 1 down.
    pub precision_recall: Vec<[f64; 2]>,
    /// Probabilities beside observed shares, in ten stretches; empty without probabilities.
    pub calibration: Vec<CalibrationBin>,
    /// Mean squared difference of probability and outcome.
    pub brier: Option<f64>,
    /// How probabilities are spread.
    pub histogram: Option<ScoreHistogram>,
}

/// Weight of rows whose probability lies in each of equally wide stretches from 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScoreHistogram {
    /// Of rows of the class.
    pub positives: Vec<f64>,
    /// Of other rows.
    pub negatives: Vec<f64>,
}

/// What curves are made of: classes, linear predictors (m × k or m × 1), probabilities (m × k) where there are any, and
/// weights of the rows that are looked at.
pub(in crate::learning) struct Shown<'a> {
    pub(in crate::learning) codes: &'a [u32],
    pub(in crate::learning) decisions: &'a Array2<f64>,
    pub(in crate::learning) probabilities: Option<&'a Array2<f64>>,
    pub(in crate::learning) weights: Option<&'a [f64]>,
}

impl Shown<'_> {
    fn curves(&self, class: usize, label: String) -> Result<ClassCurves, MetricError> {
        let is_class = |code: &u32| *code as usize == class;
        let positive: Vec<bool> = self.codes.iter().map(is_class).collect();
        let probabilities = self.probabilities.map(|all| all.column(class).to_vec());
        // Probabilities that round to 1 are tied; linear predictors of two classes are not.
        let scores = match self.decisions.ncols() {
            1 => self.decisions.column(0).to_vec(),
            _ => probabilities
                .clone()
                .unwrap_or_else(|| self.decisions.column(class).to_vec()),
        };
        let scores = (&scores[..], probabilities.as_deref());
        ClassCurves::of(label, &positive, scores, self.weights)
    }
}

impl ClassificationDiagnostics {
    /// Of the classes of all rows with their weights, and of the rows that are looked at.
    ///
    /// # Errors
    /// [`FitError::Metric`] for predictors that are NaN, and when weights do not fit.
    pub(in crate::learning) fn of(
        classes: &Classes,
        (codes, weights): (&[u32], Option<&[f64]>),
        shown: &Shown<'_>,
    ) -> Result<Self, FitError> {
        let mut class_weights = vec![0.0; classes.len()];
        for (row, code) in codes.iter().enumerate() {
            class_weights[*code as usize] += weights.map_or(1.0, |weights| weights[row]);
        }
        let total: f64 = class_weights.iter().sum();
        let most = class_weights.iter().copied().fold(0.0, f64::max);
        let curves = chosen(&class_weights)
            .into_iter()
            .map(|class| shown.curves(class, classes.label(class)))
            .collect::<Result<Vec<ClassCurves>, MetricError>>()?;
        let rows = shown.codes.len();
        Ok(ClassificationDiagnostics {
            rows,
            sampled_from: (rows < codes.len()).then_some(codes.len()),
            majority_share: most / total,
            class_weights,
            curves,
        })
    }
}

/// The second of two classes; the most frequent ones of more, in their order.
fn chosen(weights: &[f64]) -> Vec<usize> {
    if weights.len() == 2 {
        return vec![1];
    }
    let mut classes: Vec<usize> = (0..weights.len()).collect();
    classes.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]).then(a.cmp(b)));
    classes.truncate(CURVES);
    classes.sort_unstable();
    classes
}

impl ClassCurves {
    fn of(
        class: String,
        positive: &[bool],
        (scores, probabilities): (&[f64], Option<&[f64]>),
        weights: Option<&[f64]>,
    ) -> Result<ClassCurves, MetricError> {
        let mut curves = ClassCurves {
            class,
            auc: None,
            average_precision: None,
            roc: Vec::new(),
            precision_recall: Vec::new(),
            calibration: Vec::new(),
            brier: None,
            histogram: None,
        };
        match RankedScores::of(positive, scores, weights) {
            Ok(ranked) => {
                let (roc, precise) = (ranked.roc(), ranked.precision_recall());
                curves.auc = Some(ranked.auc());
                curves.average_precision = Some(precise.average_precision());
                curves.roc = thinned(&roc.false_positive_rate, &roc.true_positive_rate, POINTS);
                curves.precision_recall = thinned(&precise.recall, &precise.precision, POINTS);
            }
            Err(MetricError::OneClass) => {}
            Err(error) => return Err(error),
        }
        if let Some(probabilities) = probabilities {
            curves.calibration = calibration_curve(positive, probabilities, BINS, weights)?;
            curves.brier = Some(brier_score(positive, probabilities, weights)?);
            curves.histogram = Some(ScoreHistogram::of(positive, probabilities, weights));
        }
        Ok(curves)
    }
}

impl ScoreHistogram {
    fn of(positive: &[bool], probabilities: &[f64], weights: Option<&[f64]>) -> ScoreHistogram {
        let mut all = ScoreHistogram {
            positives: vec![0.0; HISTOGRAM],
            negatives: vec![0.0; HISTOGRAM],
        };
        for (row, (is, p)) in positive.iter().zip(probabilities).enumerate() {
            let bin = ((p * HISTOGRAM as f64) as usize).min(HISTOGRAM - 1);
            let side = if *is {
                &mut all.positives
            } else {
                &mut all.negatives
            };
            side[bin] += weights.map_or(1.0, |weights| weights[row]);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_classes_the_most_frequent_have_curves() {
        assert_eq!(chosen(&[1.0, 9.0]), [1]);
        assert_eq!(chosen(&[3.0, 1.0, 2.0]), [0, 1, 2]);
        assert_eq!(
            chosen(&[1.0, 5.0, 5.0, 0.0, 7.0, 2.0, 9.0]),
            [1, 2, 4, 5, 6]
        );
    }

    #[test]
    fn one_class_has_no_curve_but_is_calibrated() {
        let curves = ClassCurves::of(
            "a".into(),
            &[true; 3],
            (&[1.0, 2.0, 3.0], Some(&[0.9, 1.0, 0.8])),
            None,
        );
        let curves = curves.expect("curves");
        assert_eq!((curves.auc, curves.roc.len()), (None, 0));
        assert_eq!(curves.calibration.len(), 3);
        assert_eq!(curves.histogram.expect("probabilities").positives[19], 1.0);
    }
}
