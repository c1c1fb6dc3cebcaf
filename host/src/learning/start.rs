//! Where a solve begins without a warm start.

use super::controls::Controls;
use super::metrics::sums;
use super::row_targets::RowTargets;
use super::sample_weights::SampleWeights;
use super::spec::{ObjectiveSpec, SampleLoss};
use crate::matrix::Element;
use crate::ops::Number;
use crate::ops::objective::{self as kernels, Loss};

/// Intercepts to start from, and the mean curvature there.
pub(super) struct Start {
    pub(super) intercepts: Vec<f64>,
    pub(super) curvature: f64,
    /// Mean size of the slopes there: rounding makes gradients of some units in the last place of this.
    pub(super) slope: f64,
}

impl Start {
    pub(super) fn of<T: Number>(
        spec: &ObjectiveSpec,
        (targets, weights, offset): (&RowTargets<'_, T>, &SampleWeights, Option<&[f64]>),
        controls: &Controls,
    ) -> Start {
        let free = controls.fit_intercept && spec.intercept_l2 == 0.0;
        let row = |row: usize| (Element::to_f64(targets.at(row)), weights.at(row));
        match spec.loss {
            SampleLoss::Single(loss) => {
                Start::of_single(loss, (targets, weights, offset.unwrap_or_default()), free)
            }
            SampleLoss::Kinked(_) => Start {
                intercepts: vec![0.0],
                curvature: 1.0,
                slope: 1.0,
            },
            SampleLoss::Multinomial { classes } => {
                let mut shares = vec![0.0; classes];
                let add = |(b, v): (f64, f64)| shares[b as usize] += v;
                match targets.weighed(weights) {
                    Some(of) => of.into_iter().for_each(add),
                    None => (0..targets.len()).map(row).for_each(add),
                }
                let logs: Vec<f64> = shares
                    .iter()
                    .map(|share: &f64| share.max(f64::MIN_POSITIVE).ln())
                    .collect();
                let mean = logs.iter().sum::<f64>() / classes as f64;
                let intercept = |log: &f64| if free { log - mean } else { 0.0 };
                let share = 1.0 / classes as f64;
                Start {
                    intercepts: logs.iter().map(intercept).collect(),
                    curvature: share * (1.0 - share),
                    slope: 1.0,
                }
            }
        }
    }

    /// Of one linear predictor; `offset` has an element for each row, or none.
    fn of_single<T: Number>(
        loss: Loss,
        (targets, weights, offset): (&RowTargets<'_, T>, &SampleWeights, &[f64]),
        free: bool,
    ) -> Start {
        let row = |row: usize| (Element::to_f64(targets.at(row)), weights.at(row));
        let of_offset = |row: usize| offset.get(row).copied().unwrap_or(0.0);
        let rows = (0..offset.len()).map(|i| (row(i).0, row(i).1, of_offset(i)));
        let classes = targets.weighed(weights);
        let [mean] = over_rows(targets.len(), classes.as_deref(), row, |(b, v)| [b * v]);
        let intercept = if free {
            beside_offset(loss, first_predictor(loss, mean), rows)
        } else {
            0.0
        };
        let intercept = if intercept.is_finite() {
            intercept
        } else {
            0.0
        };
        let [curvature, slope] = match loss {
            // The curvature is that of all targets (Fisher's weight, of a generalised linear model), and the slope is a
            // straight line over the target.
            Loss::Squared | Loss::Logistic | Loss::Glm { .. } if offset.is_empty() => {
                let zero = loss.at(intercept, 0.0);
                let step = loss.at(intercept, 1.0).slope - zero.slope;
                let of_row = |(b, v): (f64, f64)| [v, v * step.mul_add(b, zero.slope).abs()];
                let [total, slope] = over_rows(targets.len(), classes.as_deref(), row, of_row);
                [zero.curvature * total, slope]
            }
            _ => sums(targets.len(), |at| {
                let (b, v) = row(at);
                let of_row = loss.at(intercept + of_offset(at), b);
                [v * of_row.curvature, v * of_row.slope.abs()]
            }),
        };
        let usable = curvature.is_finite() && curvature > 0.0;
        Start {
            intercepts: vec![intercept],
            curvature: if usable { curvature } else { 1.0 },
            slope,
        }
    }
}

/// Σ `of` (target, weight), which is linear in the weight: over classes where these are known, otherwise over rows.
fn over_rows<const N: usize>(
    rows: usize,
    classes: Option<&[(f64, f64)]>,
    row: impl Fn(usize) -> (f64, f64) + Sync,
    of: impl Fn((f64, f64)) -> [f64; N] + Sync,
) -> [f64; N] {
    let Some(classes) = classes else {
        return sums(rows, |at| of(row(at)));
    };
    classes.iter().fold([0.0; N], |mut all, class| {
        let own = of(*class);
        all.iter_mut().zip(own).for_each(|(all, own)| *all += own);
        all
    })
}

/// An intercept beside offsets, of rows of targets, weights and offsets: in the domain of the link wherever that is to be
/// had, and the best there is where the link is a logarithm.
fn beside_offset(
    loss: Loss,
    alone: f64,
    rows: impl Iterator<Item = (f64, f64, f64)> + Clone,
) -> f64 {
    let weighed = rows.clone().filter(|(_, v, _)| *v > 0.0);
    if weighed.clone().next().is_none() {
        return alone;
    }
    let of_offsets =
        |f: &dyn Fn(f64) -> f64| -> f64 { weighed.clone().map(|(_, v, o)| v * f(o)).sum() };
    let is_log = matches!(
        loss,
        Loss::Glm {
            link: kernels::Link::Log,
            ..
        }
    );
    let by_exposure = -of_offsets(&f64::exp).ln();
    let least = weighed.clone().fold(f64::INFINITY, |a, (.., o)| a.min(o));
    let most = weighed
        .clone()
        .fold(f64::NEG_INFINITY, |a, (.., o)| a.max(o));
    let shifts = [by_exposure, -of_offsets(&|o| o), -least, -most];
    let fits = |intercept: &f64| {
        let mut losses = weighed.clone().map(|(b, _, o)| loss.at(intercept + o, b));
        losses.all(|at| at.loss.is_finite() && at.slope.is_finite())
    };
    let shifts = shifts.iter().skip(usize::from(!is_log));
    let mut found = shifts.map(|shift| alone + shift);
    found.find(fits).unwrap_or(alone)
}

/// The linear predictor whose mean is that of the targets.
pub(super) fn first_predictor(loss: Loss, mean: f64) -> f64 {
    match loss {
        Loss::Squared | Loss::EpsilonInsensitive { .. } | Loss::Huber { .. } => mean,
        Loss::Logistic => (mean / (1.0 - mean)).ln(),
        Loss::SquaredHinge => 0.0,
        Loss::Glm { link, .. } => super::family::link_of_mean(link, mean),
    }
}
