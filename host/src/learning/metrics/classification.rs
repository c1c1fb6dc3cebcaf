//! Figures of classifiers: confusion matrix, accuracy, precision, recall, F1, log-loss.

use ndarray::{Array2, ArrayView2};
use rayon::prelude::*;

use super::MetricError;
use super::sums::{Weights, same_length};

/// Samples that one task counts, at least.
const CHUNK: usize = 1 << 14;

/// How the figures of the classes become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Average {
    /// Those of this class alone.
    Binary {
        /// The class that counts as positive.
        positive: u32,
    },
    /// The mean over the classes that occur.
    Macro,
    /// The mean over the classes, each weighted by its samples.
    Weighted,
    /// From the sums over the classes; then all three are the accuracy.
    Micro,
}

/// Precision, recall and F1; each 0 where it would be 0 / 0.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct ClassScores {
    /// `tp / (tp + fp)`: the share of what was called positive that is.
    pub precision: f64,
    /// `tp / (tp + fn)`: the share of what is positive that was called so.
    pub recall: f64,
    /// `2·tp / (2·tp + fp + fn)`, the harmonic mean of the two.
    pub f1: f64,
}

/// Which classes were taken for which: entry (i, j) is the weight of the samples of class i that were
/// predicted to be of class j.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfusionMatrix {
    weights: Array2<f64>,
    /// Classes that occur among the targets or the predictions, in samples with weight.
    present: Vec<bool>,
}

impl ConfusionMatrix {
    /// Counts in parallel.
    ///
    /// # Errors
    /// [`MetricError`] when lengths or weights do not fit, or a class is not below `classes`.
    ///
    /// ```
    /// use warpfuse::learning::metrics::{Average, ConfusionMatrix};
    /// let confusion = ConfusionMatrix::of(&[0, 0, 1, 1], &[0, 1, 1, 1], 2, None)?;
    /// assert_eq!(confusion.weights(), &ndarray::array![[1.0, 1.0], [0.0, 2.0]]);
    /// assert_eq!(confusion.accuracy(), 0.75);
    /// assert_eq!(confusion.scores(Average::Binary { positive: 1 }).recall, 1.0);
    /// # Ok::<(), warpfuse::learning::metrics::MetricError>(())
    /// ```
    pub fn of(
        targets: &[u32],
        predictions: &[u32],
        classes: usize,
        weights: Option<&[f64]>,
    ) -> Result<Self, MetricError> {
        same_length("predictions", predictions.len(), targets.len())?;
        let sample_weights = Weights::check(weights, targets.len())?;
        check_classes(targets, classes)?;
        check_classes(predictions, classes)?;
        let chunk = CHUNK.max(4 * classes * classes);
        let count = |index: usize| {
            let rows = index * chunk..targets.len().min((index + 1) * chunk);
            let mut counted = Array2::zeros((classes, classes));
            for row in rows {
                let (truth, predicted) = (targets[row] as usize, predictions[row] as usize);
                counted[[truth, predicted]] += sample_weights.of(row);
            }
            counted
        };
        let chunks = (0..targets.len().div_ceil(chunk))
            .into_par_iter()
            .map(count);
        let parts: Vec<Array2<f64>> = chunks.collect();
        let mut weights = Array2::zeros((classes, classes));
        parts.iter().for_each(|part| weights += part);
        Ok(Self::of_weights(weights))
    }

    /// Of its k × k entries; a class occurs that has weight.
    pub(super) fn of_weights(weights: Array2<f64>) -> Self {
        let occurs = |class: usize| {
            let (row, column) = (weights.row(class), weights.column(class));
            row.iter().chain(column).any(|weight| *weight > 0.0)
        };
        let present = (0..weights.nrows()).map(occurs).collect();
        ConfusionMatrix { weights, present }
    }

    /// k × k: rows are true classes, columns predicted ones.
    pub fn weights(&self) -> &Array2<f64> {
        &self.weights
    }

    /// The share of the weight that is on the diagonal.
    pub fn accuracy(&self) -> f64 {
        self.weights.diag().sum() / self.weights.sum()
    }

    /// Precision, recall and F1.
    pub fn scores(&self, average: Average) -> ClassScores {
        let occurring = || (0..self.present.len()).filter(|class| self.present[*class]);
        match average {
            Average::Binary { positive } => self.of_class(positive as usize),
            Average::Macro => mean(occurring().map(|class| (1.0, self.of_class(class)))),
            Average::Weighted => {
                mean(occurring().map(|class| (self.weights.row(class).sum(), self.of_class(class))))
            }
            Average::Micro => {
                let accuracy = self.accuracy();
                ClassScores {
                    precision: accuracy,
                    recall: accuracy,
                    f1: accuracy,
                }
            }
        }
    }

    /// The scores of one class against the rest; zeros for a class that there is not.
    pub fn of_class(&self, class: usize) -> ClassScores {
        if class >= self.present.len() {
            return ClassScores::default();
        }
        let hits = self.weights[[class, class]];
        let called = self.weights.column(class).sum();
        let true_weight = self.weights.row(class).sum();
        ClassScores {
            precision: ratio(hits, called),
            recall: ratio(hits, true_weight),
            f1: ratio(2.0 * hits, called + true_weight),
        }
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}

fn mean(scores: impl Iterator<Item = (f64, ClassScores)>) -> ClassScores {
    let (mut total, mut sum) = (0.0, ClassScores::default());
    for (weight, scores) in scores {
        total += weight;
        sum.precision += weight * scores.precision;
        sum.recall += weight * scores.recall;
        sum.f1 += weight * scores.f1;
    }
    ClassScores {
        precision: ratio(sum.precision, total),
        recall: ratio(sum.recall, total),
        f1: ratio(sum.f1, total),
    }
}

/// The share of samples that were predicted right.
///
/// # Errors
/// [`MetricError`] when lengths or weights do not fit.
pub fn accuracy(
    targets: &[u32],
    predictions: &[u32],
    weights: Option<&[f64]>,
) -> Result<f64, MetricError> {
    same_length("predictions", predictions.len(), targets.len())?;
    let weights = Weights::check(weights, targets.len())?;
    Ok(weights.mean(|row| f64::from(u8::from(targets[row] == predictions[row]))))
}

/// The mean negative log-likelihood: `−Σ w·ln P(row, target) / Σ w`.
///
/// `probabilities` has a row per sample and a column per class. Probabilities are kept
/// [`f64::EPSILON`] away from 0 and 1, as scikit-learn does, so that one confident mistake does not make it
/// infinite.
///
/// # Errors
/// [`MetricError`] when lengths or weights do not fit, a class has no column, or a probability is not one.
pub fn log_loss(
    targets: &[u32],
    probabilities: ArrayView2<'_, f64>,
    weights: Option<&[f64]>,
) -> Result<f64, MetricError> {
    same_length(
        "rows of probabilities",
        probabilities.nrows(),
        targets.len(),
    )?;
    let weights = Weights::check(weights, targets.len())?;
    check_classes(targets, probabilities.ncols())?;
    check_probabilities(probabilities)?;
    Ok(weights.mean(|row| {
        let probability = probabilities[[row, targets[row] as usize]];
        -probability.clamp(f64::EPSILON, 1.0 - f64::EPSILON).ln()
    }))
}

fn check_probabilities(probabilities: ArrayView2<'_, f64>) -> Result<(), MetricError> {
    let wrong = |p: &f64| !(0.0..=1.0).contains(p);
    let in_row = |row: usize| probabilities.row(row).iter().copied().find(|p| wrong(p));
    let first = (0..probabilities.nrows())
        .into_par_iter()
        .with_min_len(CHUNK);
    match first.find_map_first(|row| in_row(row).map(|value| (row, value))) {
        None => Ok(()),
        Some((row, value)) => Err(MetricError::Domain {
            what: "probabilities",
            expected: "from 0 to 1",
            row,
            value,
        }),
    }
}

/// Fails at the first class that is not below `classes`.
pub(super) fn check_classes(found: &[u32], classes: usize) -> Result<(), MetricError> {
    let is_wrong = |class: &u32| *class as usize >= classes;
    match found
        .par_iter()
        .with_min_len(CHUNK)
        .position_first(is_wrong)
    {
        None => Ok(()),
        Some(row) => Err(MetricError::Class {
            row,
            class: found[row],
            classes,
        }),
    }
}
