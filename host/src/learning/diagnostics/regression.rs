//! Residuals of a regression.

use std::cmp::Ordering;

use serde::Serialize;

use super::ranked::{FEW, Ranked, put_in_place};
use crate::learning::FitError;
use crate::learning::inference::Distribution;
use crate::learning::metrics::Deviance;
use crate::parallel;

/// Rows that are shown one by one; more are counted in cells.
const POINTS: usize = 400;
/// Cells along each axis, bars of a histogram, groups of rows, points of the quantiles.
const CELLS: usize = 24;
const BARS: usize = 24;
const GROUPS: usize = 10;
const QUANTILES: usize = FEW;

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
        let rows: Vec<usize> = (0..targets.len())
            .filter(|row| weight(*row) > 0.0)
            .collect();
        let [target, predicted, residual] = ranked(
            [
                (&|row| targets[row], &ENDS),
                (&|row| means[row], &ENDS),
                (&|row| targets[row] - means[row], &residual_shares()),
            ],
            &rows,
        );
        let spread = residual.spread();
        Ok(RegressionDiagnostics {
            rows: rows.len(),
            residual_quantiles: normal_quantiles(&residual, &spread),
            residual_histogram: Histogram::of(&residual),
            residual: spread,
            groups: groups(&rows, (targets, means), deviance, weights),
            pairs: Pairs::of((targets, means), &rows, (&target, &predicted)),
            target: target.spread(),
            predicted: predicted.spread(),
        })
    }
}

/// What spreads and the ends of axes need to know.
const ENDS: [f64; 7] = [0.0, 0.001, 0.25, 0.5, 0.75, 0.999, 1.0];

/// What is computed of residuals: spread, ends of the histogram, and points against a normal distribution.
fn residual_shares() -> Vec<f64> {
    let points = (0..QUANTILES).map(|i| normal_share(i, QUANTILES));
    [0.01, 0.99].into_iter().chain(ENDS).chain(points).collect()
}

/// Values by row, and the shares whose quantiles are wanted.
type Wanted<'a> = (&'a (dyn Fn(usize) -> f64 + Sync), &'a [f64]);

/// Lists of values, side by side.
fn ranked<const N: usize>(lists: [Wanted<'_>; N], rows: &[usize]) -> [Ranked; N] {
    let ranked = parallel::map(N, |list| {
        let (value, shares) = lists[list];
        Ranked::of(rows.iter().map(|row| value(*row)).collect(), shares)
    });
    ranked
        .try_into()
        .unwrap_or_else(|_| unreachable!("one for each list"))
}

/// At most [`QUANTILES`] points of the residuals against a normal distribution.
fn normal_quantiles(residual: &Ranked, spread: &Spread) -> Vec<[f64; 2]> {
    if !(spread.deviation > 0.0 && spread.deviation.is_finite()) {
        return Vec::new();
    }
    let rows = residual.values.len();
    let count = rows.min(QUANTILES);
    let point = |i: usize| {
        let share = normal_share(i, count);
        let tail = Distribution::Normal.quantile(2.0 * share.min(1.0 - share));
        let normal = if share < 0.5 { -tail } else { tail };
        let at = match count == rows {
            true => residual.values[i],
            false => residual.quantile(share),
        };
        [normal, (at - spread.mean) / spread.deviation]
    };
    (0..count).map(point).collect()
}

/// How much of the distribution is below point number `i`.
fn normal_share(i: usize, count: usize) -> f64 {
    (i as f64 + 0.5) / count as f64
}

/// Equally wide stretches.
struct Stretches {
    /// One more than there are stretches, ascending.
    edges: Vec<f64>,
    per_unit: f64,
}

impl Stretches {
    fn new(least: f64, most: f64, count: usize) -> Stretches {
        let step = (most - least) / count as f64;
        let inner = (1..count).map(|i| least + step * i as f64);
        Stretches {
            edges: [least].into_iter().chain(inner).chain([most]).collect(),
            per_unit: step.recip(),
        }
    }

    /// The stretch that holds a value between the first and the last edge.
    fn find(&self, value: f64) -> Option<usize> {
        let edges = &self.edges[..];
        let (first, last) = (*edges.first()?, *edges.last()?);
        if !(first..=last).contains(&value) {
            return None;
        }
        let count = edges.len() - 1;
        // Up to rounding. A cast of what is no number is 0.
        let mut at = (((value - first) * self.per_unit) as usize).min(count - 1);
        while at > 0 && value < edges[at] {
            at -= 1;
        }
        while at + 1 < count && value >= edges[at + 1] {
            at += 1;
        }
        Some(at)
    }
}

impl Histogram {
    fn of(residual: &Ranked) -> Histogram {
        let (least, most) = (residual.quantile(0.01), residual.quantile(0.99));
        let is_range = least.is_finite() && most.is_finite() && least < most;
        let stretches = Stretches::new(least, most, if is_range { BARS } else { 1 });
        let mut counts = vec![0; stretches.edges.len() - 1];
        let mut outside = 0;
        for value in &residual.values {
            match stretches.find(*value) {
                Some(at) => counts[at] += 1,
                None => outside += 1,
            }
        }
        Histogram {
            edges: stretches.edges,
            counts,
            outside,
        }
    }
}

impl Pairs {
    fn of(
        (targets, means): (&[f64], &[f64]),
        rows: &[usize],
        (target, predicted): (&Ranked, &Ranked),
    ) -> Pairs {
        if rows.len() <= POINTS {
            return Pairs::Points(
                rows.iter()
                    .map(|row| [means[*row], targets[*row]])
                    .collect(),
            );
        }
        let ends = |of: &Ranked| Stretches::new(of.quantile(0.001), of.quantile(0.999), CELLS);
        let (up, along) = (ends(target), ends(predicted));
        let mut counts = vec![vec![0; CELLS]; CELLS];
        for row in rows {
            let places = (up.find(targets[*row]), along.find(means[*row]));
            if let (Some(up), Some(along)) = places {
                counts[up][along] += 1;
            }
        }
        Pairs::Cells {
            predicted_edges: along.edges,
            target_edges: up.edges,
            counts,
        }
    }
}

/// A row's prediction and number: rows in the order of their predictions, then of their numbers.
type Key = (f64, usize);

fn by_prediction(a: &Key, b: &Key) -> Ordering {
    a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
}

/// Tenths of the rows by their prediction.
fn groups(
    rows: &[usize],
    (targets, means): (&[f64], &[f64]),
    deviance: Deviance,
    weights: Option<&[f64]>,
) -> Vec<Group> {
    let count = GROUPS.min(rows.len());
    let firsts: Vec<usize> = (1..count).map(|group| group * rows.len() / count).collect();
    let mut keys: Vec<Key> = rows.iter().map(|row| (means[*row], *row)).collect();
    put_in_place(&mut keys, &firsts, 0, by_prediction);
    let firsts: Vec<Key> = firsts.into_iter().map(|rank| keys[rank]).collect();
    let mut members = vec![Vec::with_capacity(rows.len() / count.max(1) + 1); count];
    for row in rows {
        let key = (means[*row], *row);
        let group = firsts.partition_point(|first| by_prediction(first, &key).is_le());
        members[group].push(*row);
    }
    let group = |rows: Vec<usize>| {
        let of = |values: &[f64]| -> Vec<f64> { rows.iter().map(|row| values[*row]).collect() };
        let (targets, means, weights) = (of(targets), of(means), weights.map(of));
        let mean = |values: &[f64]| {
            let weight = |i: usize| weights.as_ref().map_or(1.0, |weights| weights[i]);
            let total: f64 = (0..rows.len()).map(weight).sum();
            let sum: f64 = values
                .iter()
                .enumerate()
                .map(|(i, value)| weight(i) * value)
                .sum();
            sum / total
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
    members.into_iter().map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(targets: &[f64], means: &[f64], weights: Option<&[f64]>) -> RegressionDiagnostics {
        RegressionDiagnostics::of(targets, means, Deviance::Gaussian, weights).expect("diagnostics")
    }

    /// Against a search among the edges.
    #[test]
    fn stretches_hold_what_is_between_their_edges() {
        for (least, most) in [(-1.0, 2.0), (0.1, 0.1), (1e300, 1.5e308), (-3e-320, 2e-320)] {
            let stretches = Stretches::new(least, most, 7);
            let edges = stretches.edges.clone();
            let inside = (0..=700).map(|i| least + (most - least) * (f64::from(i) / 700.0));
            for value in inside
                .chain(edges.iter().copied())
                .filter(|v| (least..=most).contains(v))
            {
                let expected = edges.partition_point(|edge| *edge <= value).clamp(1, 7) - 1;
                assert_eq!(
                    stretches.find(value),
                    Some(expected),
                    "{value} of {edges:?}"
                );
            }
            for value in [least - least.abs() - 1.0, most + most.abs() + 1.0, f64::NAN] {
                assert_eq!(stretches.find(value), None, "{value}");
            }
        }
    }

    #[test]
    fn groups_are_tenths_of_the_rows_in_order() {
        let means: Vec<f64> = (0..1003).map(|i| f64::from(i * 7919 % 50)).collect();
        let rows: Vec<usize> = (0..means.len()).collect();
        let mut in_order = rows.clone();
        in_order.sort_by(|a, b| means[*a].total_cmp(&means[*b]).then(a.cmp(b)));
        let found = groups(&rows, (&means, &means), Deviance::Gaussian, None);
        for (number, group) in found.iter().enumerate() {
            let members = &in_order[number * 1003 / 10..(number + 1) * 1003 / 10];
            let sum: f64 = members.iter().map(|row| means[*row]).sum();
            assert_eq!(group.rows, members.len());
            assert_eq!(group.mean_target, sum / members.len() as f64);
        }
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
