//! How well scores rank: the area under the ROC curve.

use std::cmp::Ordering;

use ndarray::ArrayView2;
use rayon::prelude::*;

use super::MetricError;
use super::classification::check_classes;
use super::pairs;
use super::sums::{Weights, same_length};

/// The area under the receiver operating characteristic: the chance that a positive sample has a higher
/// score than a negative one, ties counted half (the Mann–Whitney statistic).
///
/// Exact, and always on the host: all scores have to be in order, and all cores sort them. Scores that lie on a device
/// are copied for it.
///
/// # Errors
/// [`MetricError::OneClass`] where no weight is on positives or none on negatives, [`MetricError::Domain`] for
/// scores that are NaN, and when lengths or weights do not fit.
///
/// ```
/// use warpfuse::learning::metrics::roc_auc;
/// let positive = [false, false, true, true];
/// assert_eq!(roc_auc(&positive, &[0.1, 0.4, 0.35, 0.8], None)?, 0.75);
/// assert_eq!(roc_auc(&positive, &[0.5; 4], None)?, 0.5);
/// # Ok::<(), warpfuse::learning::metrics::MetricError>(())
/// ```
pub fn roc_auc(
    positive: &[bool],
    scores: &[f64],
    weights: Option<&[f64]>,
) -> Result<f64, MetricError> {
    same_length("scores", scores.len(), positive.len())?;
    let weights = Weights::check(weights, positive.len())?;
    if let Some(row) = scores.par_iter().position_first(|score| score.is_nan()) {
        let (what, expected) = ("scores", "that are numbers");
        let value = scores[row];
        return Err(MetricError::Domain {
            what,
            expected,
            row,
            value,
        });
    }
    if !weights.are_given() {
        return pairs::counted(positive, scores);
    }
    let samples = Sample::counting(positive, scores, weights);
    match samples.iter().all(|one| one.weight == samples[0].weight) {
        true => {
            let positive: Vec<bool> = samples.par_iter().map(|one| one.positive).collect();
            let scores: Vec<f64> = samples.par_iter().map(|one| one.score).collect();
            pairs::counted(&positive, &scores)
        }
        false => weighed(samples),
    }
}

/// A sample that counts.
#[derive(Debug, Clone, Copy)]
struct Sample {
    score: f64,
    weight: f64,
    positive: bool,
}

impl Sample {
    /// Those of a positive weight: cross-validation gives 0 to all rows but those of one fold.
    fn counting(positive: &[bool], scores: &[f64], weights: Weights<'_>) -> Vec<Sample> {
        let rows = (0..scores.len()).into_par_iter();
        let rows = rows.filter(|row| weights.of(*row) > 0.0);
        rows.map(|row| Sample {
            // -0.0 and 0.0 are one score: adding 0.0 makes them so.
            score: scores[row] + 0.0,
            weight: weights.of(row),
            positive: positive[row],
        })
        .collect()
    }

    /// The greatest score first; those of one score in an order which the samples alone decide, as sums round.
    fn before(&self, other: &Sample) -> Ordering {
        let by_score = other.score.total_cmp(&self.score);
        let by_class = || self.positive.cmp(&other.positive);
        let by_weight = || self.weight.total_cmp(&other.weight);
        by_score.then_with(by_class).then_with(by_weight)
    }
}

fn weighed(mut samples: Vec<Sample>) -> Result<f64, MetricError> {
    samples.par_sort_unstable_by(Sample::before);
    let mut area = Area::default();
    for tied in samples.chunk_by(|a, b| a.score == b.score) {
        area.add(tied);
    }
    area.share()
}

/// Pairs that were ranked right so far, from the highest score down.
#[derive(Debug, Default)]
struct Area {
    positives: f64,
    negatives: f64,
    right: f64,
}

impl Area {
    fn add(&mut self, tied: &[Sample]) {
        let (mut up, mut right) = (0.0, 0.0);
        for sample in tied {
            match sample.positive {
                true => up += sample.weight,
                false => right += sample.weight,
            }
        }
        self.right += right * (self.positives + 0.5 * up);
        self.positives += up;
        self.negatives += right;
    }

    fn share(self) -> Result<f64, MetricError> {
        if self.positives == 0.0 || self.negatives == 0.0 {
            return Err(MetricError::OneClass);
        }
        Ok(self.right / (self.positives * self.negatives))
    }
}

/// The mean over classes of the area with which a class's column of `scores` (samples × classes) tells it
/// from the rest; scikit-learn's `multi_class="ovr", average="macro"`.
///
/// # Errors
/// As [`roc_auc`]; [`MetricError::OneClass`] also where a class has no sample.
pub fn roc_auc_one_vs_rest(
    targets: &[u32],
    scores: ArrayView2<'_, f64>,
    weights: Option<&[f64]>,
) -> Result<f64, MetricError> {
    same_length("rows of scores", scores.nrows(), targets.len())?;
    check_classes(targets, scores.ncols())?;
    let areas = scores
        .columns()
        .into_iter()
        .enumerate()
        .map(|(class, column)| {
            let positive: Vec<bool> = targets
                .iter()
                .map(|target| *target as usize == class)
                .collect();
            roc_auc(&positive, &column.to_vec(), weights)
        });
    let areas = areas.collect::<Result<Vec<f64>, _>>()?;
    Ok(areas.iter().sum::<f64>() / areas.len() as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn counting_pairs_and_weighing_them_agree(
            samples in prop::collection::vec((any::<bool>(), -3_i8..4), 1..300)
        ) {
            let positive: Vec<bool> = samples.iter().map(|sample| sample.0).collect();
            // Zeros of both signs, infinities, and many ties.
            let scores: Vec<f64> = samples.iter().map(|sample| match sample.1 {
                -3 => f64::NEG_INFINITY,
                0 => -0.0,
                1 => 0.0,
                score => f64::from(score),
            }).collect();
            let ones = vec![1.0; scores.len()];
            prop_assert_eq!(roc_auc(&positive, &scores, None), by_weight(&positive, &scores, &ones));
        }

        #[test]
        fn rows_of_no_weight_do_not_count(
            samples in prop::collection::vec((any::<bool>(), -3_i8..4, any::<bool>()), 1..300)
        ) {
            let all = |of: fn(&(bool, i8, bool)) -> f64| samples.iter().map(of).collect::<Vec<f64>>();
            let positive: Vec<bool> = samples.iter().map(|sample| sample.0).collect();
            let (scores, mask) = (all(|s| f64::from(s.1)), all(|s| if s.2 { 0.5 } else { 0.0 }));
            let kept: Vec<_> = samples.iter().filter(|sample| sample.2).collect();
            let alone: Vec<bool> = kept.iter().map(|sample| sample.0).collect();
            let few: Vec<f64> = kept.iter().map(|sample| f64::from(sample.1)).collect();
            match kept.is_empty() {
                true => prop_assert_eq!(roc_auc(&positive, &scores, Some(&mask)), Err(MetricError::NoWeight)),
                false => prop_assert_eq!(
                    roc_auc(&positive, &scores, Some(&mask)), roc_auc(&alone, &few, None)
                ),
            }
        }
    }

    /// As samples of different weights are.
    fn by_weight(positive: &[bool], scores: &[f64], weights: &[f64]) -> Result<f64, MetricError> {
        let weights = Weights::check(Some(weights), scores.len())?;
        weighed(Sample::counting(positive, scores, weights))
    }

    #[test]
    fn long_lists_are_counted_in_parts() {
        let rows = 3 * pairs::MANY;
        let positive: Vec<bool> = (0..rows).map(|row| row % 3 == 0).collect();
        let scores: Vec<f64> = (0..rows)
            .map(|row| f64::from((row * 7919 % 1000) as u32))
            .collect();
        let counted = roc_auc(&positive, &scores, None).expect("two classes");
        let weighed = by_weight(&positive, &scores, &vec![1.0; rows]).expect("two classes");
        assert!((counted - weighed).abs() < 1e-13, "{counted} {weighed}");
    }
}
