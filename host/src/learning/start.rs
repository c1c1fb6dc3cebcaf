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
    /// What leads to coefficients to start from, where those of 0 are outside the domain of the link.
    pub(super) way_in: Option<WayIn>,
}

/// A problem without an intercept whose minimum is inside the domain of a link, if any coefficients are: each row has the same
/// target, and no loss where its predictor is well inside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WayIn {
    /// In predictors over `unit`.
    pub(super) loss: Loss,
    pub(super) target: f64,
    pub(super) unit: f64,
    /// What the predictors should be on average, where they may be multiplied by any number above 0.
    pub(super) mean: Option<f64>,
}

impl WayIn {
    /// Beyond the predictor that has the mean of the targets, seen from 0; between 0 and 1 where the domain has two ends.
    fn of(loss: Loss, mean: f64) -> WayIn {
        let alone = first_predictor(loss, mean);
        if has_two_ends(loss) {
            let margin = 0.5 * alone.min(1.0 - alone).max(0.0);
            return WayIn {
                loss: Loss::EpsilonInsensitive {
                    epsilon: 0.5 - margin,
                },
                target: 0.5,
                unit: 1.0,
                mean: None,
            };
        }
        let is_number = alone.is_normal();
        WayIn {
            loss: Loss::SquaredHinge,
            target: if alone < 0.0 { -1.0 } else { 1.0 },
            unit: if is_number { alone.abs() } else { 1.0 },
            mean: (is_number && begins_at_zero(loss)).then_some(alone),
        }
    }
}

/// Whether a domain with one end ends at 0: means that are shares end at 1, and so do powers of them that shrink.
fn begins_at_zero(loss: Loss) -> bool {
    use kernels::{Distribution, Link};
    match loss {
        Loss::Glm { distribution, link } => {
            distribution != Distribution::Binomial || link == Link::Log
        }
        _ => true,
    }
}

/// Whether a predictor has to be between 0 and 1: shares whose link is a power of the mean that grows.
fn has_two_ends(loss: Loss) -> bool {
    let Loss::Glm { distribution, link } = loss else {
        return false;
    };
    let grows = match link {
        kernels::Link::Identity | kernels::Link::Sqrt => true,
        kernels::Link::Power(exponent) => exponent > 0.0,
        _ => false,
    };
    distribution == kernels::Distribution::Binomial && grows
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
                way_in: None,
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
                    way_in: None,
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
        let finite = |t: f64| if t.is_finite() { t } else { 0.0 };
        let alone = first_predictor(loss, mean);
        let way_in = (!free && starts_outside(loss, rows.clone())).then(|| WayIn::of(loss, mean));
        let intercept = match free {
            true => finite(beside_offset(loss, alone, rows)),
            false => 0.0,
        };
        // Where the rows' predictors are at the start, about.
        let typical = way_in.map_or(intercept, |_| finite(alone));
        let [curvature, slope] = match loss {
            // The curvature is that of all targets (Fisher's weight, of a generalised linear model), and the slope is a
            // straight line over the target.
            Loss::Squared | Loss::Logistic | Loss::Glm { .. } if offset.is_empty() => {
                let zero = loss.at(typical, 0.0);
                let step = loss.at(typical, 1.0).slope - zero.slope;
                let of_row = |(b, v): (f64, f64)| [v, v * step.mul_add(b, zero.slope).abs()];
                let [total, slope] = over_rows(targets.len(), classes.as_deref(), row, of_row);
                [zero.curvature * total, slope]
            }
            _ => sums(targets.len(), |at| {
                let (b, v) = row(at);
                let of_row = loss.at(typical + of_offset(at), b);
                [v * of_row.curvature, v * of_row.slope.abs()]
            }),
        };
        let usable = curvature.is_finite() && curvature > 0.0;
        Start {
            intercepts: vec![intercept],
            curvature: if usable { curvature } else { 1.0 },
            slope: finite(slope),
            way_in,
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

/// Whether coefficients of 0 are outside the domain in some row of target, weight and offset, of all rows that have an offset;
/// without offsets rows do not differ.
fn starts_outside(loss: Loss, mut rows: impl Iterator<Item = (f64, f64, f64)> + Clone) -> bool {
    let is_outside = |b: f64, t: f64| !is_inside(loss, t, b);
    match rows.clone().next() {
        None => is_outside(1.0, 0.0),
        Some(_) => rows.any(|(b, v, o)| v > 0.0 && is_outside(b, o)),
    }
}

/// Whether a row of this predictor and target has a loss.
fn is_inside(loss: Loss, t: f64, b: f64) -> bool {
    let at = loss.at(t, b);
    at.loss.is_finite() && at.slope.is_finite()
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
        weighed
            .clone()
            .all(|(b, _, o)| is_inside(loss, intercept + o, b))
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

#[cfg(test)]
mod tests {
    use super::*;
    use kernels::{Distribution, Link};

    fn start(distribution: Distribution, link: Link, offset: Option<&[f64]>) -> Option<WayIn> {
        let loss = Loss::Glm { distribution, link }.simplified();
        let spec = ObjectiveSpec::mean_of(SampleLoss::Single(loss));
        let (targets, weights) = ([0.25_f64, 0.75], SampleWeights::each(vec![0.5, 0.5]));
        let controls = Controls {
            fit_intercept: false,
            ..Controls::default()
        };
        let rows = (&RowTargets::Given(&targets), &weights, offset);
        let start = Start::of(&spec, rows, &controls);
        assert!(start.slope.is_finite() && start.curvature > 0.0);
        start.way_in
    }

    fn hinge(target: f64, unit: f64) -> Option<WayIn> {
        Some(WayIn {
            loss: Loss::SquaredHinge,
            target,
            unit,
            mean: Some(target * unit),
        })
    }

    #[test]
    fn the_way_in_leads_to_the_side_of_the_mean() {
        use Distribution::{Binomial, Gamma, Gaussian, InverseGaussian, Poisson};
        let tweedie = Distribution::Tweedie { power: 1.5 };
        assert_eq!(start(tweedie, Link::Identity, None), hinge(1.0, 0.5));
        assert_eq!(start(Poisson, Link::Identity, None), hinge(1.0, 0.5));
        assert_eq!(start(Gamma, Link::Inverse, None), hinge(1.0, 2.0));
        let link = Link::Power(-2.0);
        assert_eq!(start(InverseGaussian, link, None), hinge(1.0, 4.0));
        assert_eq!(start(Binomial, Link::Log, None), hinge(-1.0, 2_f64.ln()));
        let beyond = hinge(1.0, 2.0).map(|way| WayIn { mean: None, ..way });
        assert_eq!(start(Binomial, Link::Inverse, None), beyond);
        let between = WayIn {
            loss: Loss::EpsilonInsensitive { epsilon: 0.25 },
            target: 0.5,
            unit: 1.0,
            mean: None,
        };
        assert_eq!(start(Binomial, Link::Identity, None), Some(between));
        for inside in [Link::Log, Link::Identity, Link::Probit] {
            assert_eq!(start(Gaussian, inside, None), None);
        }
        assert_eq!(start(Poisson, Link::Log, None), None);
    }

    /// Offsets may lead inside by themselves, and outside.
    #[test]
    fn offsets_count() {
        let poisson = |offset: &[f64]| start(Distribution::Poisson, Link::Identity, Some(offset));
        assert_eq!(poisson(&[0.5, 1.0]), None);
        assert_eq!(poisson(&[0.5, 0.0]), hinge(1.0, 0.5));
    }
}
