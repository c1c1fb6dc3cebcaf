//! Residuals of a regression.

use rayon::prelude::*;
use serde::Serialize;

use crate::learning::FitError;
use crate::learning::inference::Distribution;
use crate::learning::metrics::Deviance;

/// Rows that are shown one by one; more are counted in cells.
const POINTS: usize = 400;
/// Cells along each axis, bars of a histogram, groups of rows, points of the quantiles.
const CELLS: usize = 24;
const BARS: usize = 24;
const GROUPS: usize = 10;
const QUANTILES: usize = 99;

/// Residuals of a regression on data with known targets; a residual is the target less the prediction.
///
/// Rows of weight 0 take no part. Counts, quantiles and groups are of rows; means of groups are weighted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RegressionDiagnostics {
    /// Rows with weight.
    pub rows: usize,
    /// How the targets are spread.
    pub target: Spread,
    /// How the predictions are spread.
    pub predicted: Spread,
    /// How the residuals are spread.
    pub residual: Spread,
    /// Points (quantile of the normal distribution, that of the residuals over their deviation).
    pub residual_quantiles: Vec<[f64; 2]>,
    /// Residuals between the first and the last hundredth of them.
    pub residual_histogram: Histogram,
    /// Predictions beside targets.
    pub pairs: Pairs,
    /// Tenths of the rows by their prediction, from the lowest up.
    pub groups: Vec<Group>,
}

/// Where values lie.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The least.
    pub min: f64,
    /// A quarter of the values are at most this.
    pub lower_quartile: f64,
    /// Half of the values are at most this.
    pub median: f64,
    /// Three quarters of the values are at most this.
    pub upper_quartile: f64,
    /// The greatest.
    pub max: f64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation around it.
    pub deviation: f64,
}

/// Rows in equally wide stretches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Histogram {
    /// One more than there are stretches.
    pub edges: Vec<f64>,
    /// Rows in each.
    pub counts: Vec<u64>,
    /// Rows below the first edge and above the last.
    pub outside: u64,
}

/// Predictions beside targets.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pairs {
    /// (prediction, target) of each row.
    Points(Vec<[f64; 2]>),
    /// Rows in the cells of a grid.
    Cells {
        /// Edges along predictions.
        predicted_edges: Vec<f64>,
        /// Edges along targets.
        target_edges: Vec<f64>,
        /// Rows: one list for each stretch of targets, from the lowest up.
        counts: Vec<Vec<u64>>,
    },
}

/// Rows of similar predictions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Group {
    /// Rows.
    pub rows: usize,
    /// Mean of the predictions.
    pub mean_predicted: f64,
    /// Mean of the targets.
    pub mean_target: f64,
    /// Mean unit deviance of the family; of others mean squared error. NaN where it is not defined.
    pub mean_deviance: f64,
}

impl RegressionDiagnostics {
    /// Of targets and predicted means.
    ///
    /// # Errors
    /// [`FitError::Metric`] without rows, and when lengths or weights do not fit.
    pub(super) fn of(
        targets: &[f64],
        means: &[f64],
        deviance: Deviance,
        weights: Option<&[f64]>,
    ) -> Result<Self, FitError> {
        // Checks lengths and weights; predictions that are not finite make figures that are not.
        Deviance::Gaussian.mean(targets, &vec![0.0; means.len()], weights)?;
        let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
        let mut rows: Vec<usize> = (0..targets.len())
            .filter(|row| weight(*row) > 0.0)
            .collect();
        let of = |values: &[f64]| -> Vec<f64> { rows.iter().map(|row| values[*row]).collect() };
        let (target, predicted) = (sorted(of(targets)), sorted(of(means)));
        let residual = sorted(
            rows.par_iter()
                .map(|row| targets[*row] - means[*row])
                .collect(),
        );
        let spread = Spread::of(&residual);
        let pairs = Pairs::of((targets, means), &rows, (&target, &predicted));
        rows.par_sort_unstable_by(|a, b| means[*a].total_cmp(&means[*b]).then(a.cmp(b)));
        Ok(RegressionDiagnostics {
            rows: rows.len(),
            residual_quantiles: normal_quantiles(&residual, &spread),
            residual_histogram: Histogram::of(&residual),
            residual: spread,
            groups: groups(&rows, (targets, means), deviance, weights),
            target: Spread::of(&target),
            predicted: Spread::of(&predicted),
            pairs,
        })
    }
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.par_sort_unstable_by(f64::total_cmp);
    values
}

/// The value below which a share of sorted values lies, between neighbours on a straight line, as NumPy's.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let place = share * last as f64;
    let (low, rest) = (place.floor() as usize, place.fract());
    let high = (low + 1).min(last);
    match rest {
        0.0 => sorted[low],
        rest => sorted[low] + rest * (sorted[high] - sorted[low]),
    }
}

impl Spread {
    fn of(sorted: &[f64]) -> Spread {
        let count = sorted.len() as f64;
        let mean = sorted.iter().sum::<f64>() / count;
        let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
        Spread {
            min: quantile(sorted, 0.0),
            lower_quartile: quantile(sorted, 0.25),
            median: quantile(sorted, 0.5),
            upper_quartile: quantile(sorted, 0.75),
            max: quantile(sorted, 1.0),
            mean,
            deviation: (squares / count).sqrt(),
        }
    }
}

/// At most [`QUANTILES`] points of the residuals against a normal distribution.
fn normal_quantiles(sorted: &[f64], spread: &Spread) -> Vec<[f64; 2]> {
    if !(spread.deviation > 0.0 && spread.deviation.is_finite()) {
        return Vec::new();
    }
    let count = sorted.len().min(QUANTILES);
    let point = |i: usize| {
        let share = (i as f64 + 0.5) / count as f64;
        let tail = Distribution::Normal.quantile(2.0 * share.min(1.0 - share));
        let normal = if share < 0.5 { -tail } else { tail };
        let at = match count == sorted.len() {
            true => sorted[i],
            false => quantile(sorted, share),
        };
        [normal, (at - spread.mean) / spread.deviation]
    };
    (0..count).map(point).collect()
}

fn edges(least: f64, most: f64, count: usize) -> Vec<f64> {
    let step = (most - least) / count as f64;
    (0..=count)
        .map(|i| {
            if i == count {
                most
            } else {
                least + step * i as f64
            }
        })
        .collect()
}

/// The stretch of equally wide ones that holds a value between the first and the last edge.
fn stretch(edges: &[f64], value: f64) -> Option<usize> {
    let (first, last) = (*edges.first()?, *edges.last()?);
    if !(first..=last).contains(&value) {
        return None;
    }
    Some(
        edges
            .partition_point(|edge| *edge <= value)
            .clamp(1, edges.len() - 1)
            - 1,
    )
}

impl Histogram {
    fn of(sorted: &[f64]) -> Histogram {
        let (least, most) = (quantile(sorted, 0.01), quantile(sorted, 0.99));
        let is_range = least.is_finite() && most.is_finite() && least < most;
        let edges = if is_range {
            edges(least, most, BARS)
        } else {
            vec![least, most]
        };
        let mut counts = vec![0; edges.len() - 1];
        let mut outside = 0;
        for value in sorted {
            match stretch(&edges, *value) {
                Some(at) => counts[at] += 1,
                None => outside += 1,
            }
        }
        Histogram {
            edges,
            counts,
            outside,
        }
    }
}

impl Pairs {
    fn of(
        (targets, means): (&[f64], &[f64]),
        rows: &[usize],
        (target, predicted): (&[f64], &[f64]),
    ) -> Pairs {
        if rows.len() <= POINTS {
            return Pairs::Points(
                rows.iter()
                    .map(|row| [means[*row], targets[*row]])
                    .collect(),
            );
        }
        let ends = |sorted: &[f64]| edges(quantile(sorted, 0.001), quantile(sorted, 0.999), CELLS);
        let (target_edges, predicted_edges) = (ends(target), ends(predicted));
        let mut counts = vec![vec![0; CELLS]; CELLS];
        for row in rows {
            let places = (
                stretch(&target_edges, targets[*row]),
                stretch(&predicted_edges, means[*row]),
            );
            if let (Some(up), Some(along)) = places {
                counts[up][along] += 1;
            }
        }
        Pairs::Cells {
            predicted_edges,
            target_edges,
            counts,
        }
    }
}

/// Tenths of rows that are in the order of their predictions.
fn groups(
    rows: &[usize],
    (targets, means): (&[f64], &[f64]),
    deviance: Deviance,
    weights: Option<&[f64]>,
) -> Vec<Group> {
    let count = GROUPS.min(rows.len());
    let group = |number: usize| {
        let rows = &rows[number * rows.len() / count..(number + 1) * rows.len() / count];
        let of = |values: &[f64]| -> Vec<f64> { rows.iter().map(|row| values[*row]).collect() };
        let (targets, means, weights) = (of(targets), of(means), weights.map(of));
        let mean = |values: &[f64]| {
            let weight = |i: usize| weights.as_ref().map_or(1.0, |weights| weights[i]);
            let total: f64 = (0..rows.len()).map(weight).sum();
            values
                .iter()
                .enumerate()
                .map(|(i, value)| weight(i) * value)
                .sum::<f64>()
                / total
        };
        Group {
            rows: rows.len(),
            mean_predicted: mean(&means),
            mean_target: mean(&targets),
            mean_deviance: deviance
                .mean(&targets, &means, weights.as_deref())
                .unwrap_or(f64::NAN),
        }
    };
    (0..count).map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(targets: &[f64], means: &[f64], weights: Option<&[f64]>) -> RegressionDiagnostics {
        RegressionDiagnostics::of(targets, means, Deviance::Gaussian, weights).expect("diagnostics")
    }

    #[test]
    fn spreads_are_numpys() {
        let spread = Spread::of(&[1.0, 2.0, 4.0, 8.0]);
        assert_eq!(
            (spread.lower_quartile, spread.median, spread.upper_quartile),
            (1.75, 3.0, 5.0)
        );
        assert_eq!((spread.mean, spread.deviation), (3.75, 7.1875_f64.sqrt()));
    }

    #[test]
    fn every_row_is_in_one_group_and_one_cell() {
        let targets: Vec<f64> = (0..5000).map(|i| f64::from(i * 7919 % 5003)).collect();
        let means: Vec<f64> = targets.iter().map(|t| 0.5 * t + 3.0).collect();
        let found = of(&targets, &means, None);
        assert_eq!(
            found.groups.iter().map(|group| group.rows).sum::<usize>(),
            5000
        );
        let counted: u64 = found.residual_histogram.counts.iter().sum();
        assert_eq!(counted + found.residual_histogram.outside, 5000);
        let Pairs::Cells { counts, .. } = found.pairs else {
            panic!("cells")
        };
        let inside: u64 = counts.iter().flatten().sum();
        assert!(inside >= 4980, "{inside}");
    }

    #[test]
    fn rows_without_weight_take_no_part() {
        let found = of(&[1.0, 2.0, 9.0], &[1.5, 2.5, 0.0], Some(&[1.0, 1.0, 0.0]));
        assert_eq!(found, of(&[1.0, 2.0], &[1.5, 2.5], Some(&[1.0, 1.0])));
    }

    #[test]
    fn predictions_that_are_not_finite_are_no_panic() {
        for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let found = of(&[1.0, 2.0, 3.0], &[1.0, wrong, 3.0], None);
            assert!(!found.residual.mean.is_finite());
        }
        let same = of(&[1.0; 500], &[1.0; 500], None);
        assert_eq!(
            (same.residual.deviation, same.residual_quantiles.len()),
            (0.0, 0)
        );
    }
}
