//! How well scores rank: the area under the ROC curve.

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
    match weights.are_given() {
        false => pairs::counted(positive, scores),
        true => weighed(positive, scores, weights),
    }
}

fn weighed(positive: &[bool], scores: &[f64], weights: Weights<'_>) -> Result<f64, MetricError> {
    // -0.0 and 0.0 are one score: adding 0.0 makes them so.
    let with_row = scores.par_iter().enumerate();
    let mut ranked: Vec<(f64, usize)> = with_row.map(|(row, t)| (t + 0.0, row)).collect();
    ranked.par_sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut area = Area::default();
    for tied in ranked.chunk_by(|a, b| a.0 == b.0) {
        area.add(tied, positive, weights);
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
    fn add(&mut self, tied: &[(f64, usize)], positive: &[bool], weights: Weights<'_>) {
        let (mut up, mut right) = (0.0, 0.0);
        for &(_, row) in tied {
            let weight = weights.of(row);
            if positive[row] {
                up += weight;
            } else {
                right += weight;
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
            let (counted, weighed) =
                (roc_auc(&positive, &scores, None), roc_auc(&positive, &scores, Some(&ones)));
            prop_assert_eq!(counted, weighed);
        }
    }

    #[test]
    fn long_lists_are_counted_in_parts() {
        let rows = 3 * pairs::MANY;
        let positive: Vec<bool> = (0..rows).map(|row| row % 3 == 0).collect();
        let scores: Vec<f64> = (0..rows)
            .map(|row| f64::from((row * 7919 % 1000) as u32))
            .collect();
        let counted = roc_auc(&positive, &scores, None).expect("two classes");
        let weighed = roc_auc(&positive, &scores, Some(&vec![1.0; rows])).expect("two classes");
        assert!((counted - weighed).abs() < 1e-13, "{counted} {weighed}");
    }
}
