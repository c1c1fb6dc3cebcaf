//! Residuals of a regression.

use serde::Serialize;

use super::groups::{Group, groups};
use super::ranked::{FEW, Ranked};
use super::rows::Rows;
use crate::learning::FitError;
use crate::learning::inference::Distribution;
use crate::learning::metrics::{Deviance, check_samples};
use crate::parallel;

/// Rows that are shown one by one; more are counted in cells.
const POINTS: usize = 400;
/// Cells along each axis, bars of a histogram, points of the quantiles.
const CELLS: usize = 24;
const BARS: usize = 24;
const QUANTILES: usize = FEW;

/// Residuals of a regression on data with known targets; a residual is the target less the prediction.
///
/// Rows of weight 0 take no part. Counts, quantiles and groups are of rows; means of groups are weighted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RegressionDiagnostics {
    /// Rows with weight that were looked at.
    pub rows: usize,
    /// All rows, where not all were looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampled_from: Option<usize>,
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

impl RegressionDiagnostics {
    /// Of targets and predicted means.
    ///
    /// # Errors
    /// [`FitError::Metric`] without rows, and when lengths or weights do not fit.
    pub(in crate::learning) fn of(
        targets: &[f64],
        means: &[f64],
        deviance: Deviance,
        weights: Option<&[f64]>,
    ) -> Result<Self, FitError> {
        // Predictions that are not finite make figures that are not.
        check_samples(targets.len(), means.len(), weights)?;
        let rows = Rows::of(targets, means, weights);
        let lists: [&(dyn Fn() -> Ranked + Sync); 3] = [
            &|| Ranked::of(rows.targets().iter().copied(), &ENDS),
            &|| Ranked::of(rows.means().iter().copied(), &ENDS),
            &|| Ranked::of(rows.residuals(), &residual_shares()),
        ];
        let [target, predicted, residual] = parallel::map(3, |list| lists[list]())
            .try_into()
            .unwrap_or_else(|_| unreachable!("one for each list"));
        let spread = residual.spread();
        Ok(RegressionDiagnostics {
            rows: rows.len(),
            sampled_from: None,
            residual_quantiles: normal_quantiles(&residual, &spread),
            residual_histogram: Histogram::of(&rows, &residual),
            residual: spread,
            groups: groups(&rows, deviance),
            pairs: Pairs::of(&rows, (&target, &predicted)),
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

/// At most [`QUANTILES`] points of the residuals against a normal distribution.
fn normal_quantiles(residual: &Ranked, spread: &Spread) -> Vec<[f64; 2]> {
    if !(spread.deviation > 0.0 && spread.deviation.is_finite()) {
        return Vec::new();
    }
    let rows = residual.len();
    let count = rows.min(QUANTILES);
    let point = |i: usize| {
        let share = normal_share(i, count);
        let tail = Distribution::Normal.quantile(2.0 * share.min(1.0 - share));
        let normal = if share < 0.5 { -tail } else { tail };
        let at = match count == rows {
            true => residual.at(i),
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
    fn of(rows: &Rows<'_>, residual: &Ranked) -> Histogram {
        let (least, most) = (residual.quantile(0.01), residual.quantile(0.99));
        let is_range = least.is_finite() && most.is_finite() && least < most;
        let stretches = Stretches::new(least, most, if is_range { BARS } else { 1 });
        let (targets, means) = (rows.targets(), rows.means());
        let counts = parallel::counts(rows.len(), stretches.edges.len() - 1, |row| {
            stretches.find(targets[row] - means[row])
        });
        Histogram {
            outside: rows.len() as u64 - counts.iter().sum::<u64>(),
            edges: stretches.edges,
            counts,
        }
    }
}

impl Pairs {
    fn of(rows: &Rows<'_>, (target, predicted): (&Ranked, &Ranked)) -> Pairs {
        let (targets, means) = (rows.targets(), rows.means());
        if rows.len() <= POINTS {
            let points = means.iter().zip(targets);
            return Pairs::Points(points.map(|(mean, target)| [*mean, *target]).collect());
        }
        let ends = |of: &Ranked| Stretches::new(of.quantile(0.001), of.quantile(0.999), CELLS);
        let (up, along) = (ends(target), ends(predicted));
        let counts = parallel::counts(rows.len(), CELLS * CELLS, |row| {
            Some(up.find(targets[row])? * CELLS + along.find(means[row])?)
        });
        Pairs::Cells {
            predicted_edges: along.edges,
            target_edges: up.edges,
            counts: counts.chunks(CELLS).map(<[u64]>::to_vec).collect(),
        }
    }
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
