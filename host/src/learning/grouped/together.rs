//! Groups that are fitted together, in one launch.

use std::ops::Range;

use super::Extras;
use super::batch::{Batch, GroupSums, dot};
use super::member::{Ending, Member};
use crate::device::Device;
use crate::learning::FitError;
use crate::learning::controls::Controls;
use crate::learning::small;
use crate::learning::spec::ObjectiveSpec;
use crate::matrix::{Element, Features};
use crate::ops::fits::{FitRules, MadeRows, Minima, Outcome, SmallFit, minimise_made};
use crate::ops::objective::Loss;
use crate::ops::{Number, OpError};
use crate::parallel;

/// What is minimised for a group of this total weight.
pub(super) type SpecOf<'a> = &'a (dyn Fn(f64) -> ObjectiveSpec + Sync);

/// The loss, where all groups can be fitted together: nothing is wanted that only a solver by itself knows.
pub(super) fn loss_of<T: Number>(
    features: &Features<T>,
    (spec, controls): (&ObjectiveSpec, &Controls),
    extras: &Extras<'_>,
) -> Option<Loss> {
    // Deviations are those of rows with weight there, and of all rows otherwise.
    let has_deviations = !controls.standardize || extras.sample_weight.is_none();
    let loss = small::loss_of(features.cols(), spec, controls);
    loss.filter(|_| has_deviations && extras.columns.is_none())
}

/// Fits all groups whose numbers say that there is something to fit; none for those that have to be fitted by themselves.
pub(super) fn fit<T: Number>(
    device: &Device,
    batch: &Batch<'_, T>,
    (loss, spec, controls): (Loss, SpecOf<'_>, &Controls),
    (sums, factors): (&[GroupSums], Option<&[f64]>),
) -> Result<Vec<Option<Member>>, FitError> {
    let rules = small::rules(loss, controls, factors);
    let each = 0..sums.len();
    let fits: Vec<SmallFit> = each
        .map(|group| one(batch, spec, &sums[group], group))
        .collect();
    let order = batch.features.cols() + 1;
    let mut start = vec![0.0; fits.len() * order];
    for (start, sums) in start.chunks_exact_mut(order).zip(sums) {
        let mean = sums.target / sums.weight;
        start[0] = small::intercept(loss, &spec(sums.weight), controls, mean);
    }
    let minima = crossing(device, batch, &rules, (&fits, &start))?;
    Ok(parallel::map(fits.len(), |group| {
        let is_held = loss != Loss::Logistic || fits[group].l2 > 0.0;
        let found = member::<T>(minima.theta(group), &minima.outcomes[group]);
        found.filter(|member| is_held || !separates(batch, group, member))
    }))
}

/// The fits, of rows that are brought in the order of the groups on their way to the device.
fn crossing<T: Number>(
    device: &Device,
    batch: &Batch<'_, T>,
    rules: &FitRules<'_>,
    (fits, start): (&[SmallFit], &[f64]),
) -> Result<Minima, OpError> {
    let narrow = <T as Element>::from_f64;
    let targets = |places: Range<usize>, to: &mut [T]| batch.fill_targets(places, to);
    let weights = |places: Range<usize>, to: &mut [T]| {
        batch.fill_each(places, to, |row| narrow(batch.weights.at(row)));
    };
    let offset = |places: Range<usize>, to: &mut [T]| {
        let of = batch.extras.offset;
        batch.fill_each(places, to, |row| {
            of.map_or(T::default(), |of| narrow(of[row]))
        });
    };
    let made = MadeRows {
        rows: batch.order.len(),
        cols: batch.features.cols(),
        x: &|range, to: &mut [T]| batch.fill_rows(range, to),
        targets: &targets,
        weights: (!batch.weights.is_even()).then_some(&weights),
        offset: batch.extras.offset.is_some().then_some(&offset),
    };
    minimise_made(device, &made, rules, fits, start)
}

/// Whether a model tells the classes of all rows of a group apart: without a penalty its coefficients have no limit, which a
/// solver by itself says.
fn separates<T: Number>(batch: &Batch<'_, T>, group: usize, member: &Member) -> bool {
    let is_right = |row: usize| {
        let offset = batch.extras.offset.map_or(0.0, |offset| offset[row]);
        let t = member.intercept + offset + dot(batch.features, row, &member.coef);
        let b = Element::to_f64(batch.targets.at(row));
        t * (2.0 * b - 1.0) > 0.0
    };
    let mut weighed = batch.rows(group).filter(|row| batch.weights.at(*row) > 0.0);
    weighed.all(is_right)
}

fn one<T: Number>(
    batch: &Batch<'_, T>,
    spec: SpecOf<'_>,
    sums: &GroupSums,
    group: usize,
) -> SmallFit {
    let places = batch.order.places(group);
    let spec = spec(sums.weight);
    let has_weight = sums.weight > 0.0;
    SmallFit {
        row: places.start,
        rows: if has_weight { places.len() } else { 0 },
        target: places.start,
        weight: places.start,
        scale: match batch.weights.is_even() {
            true => 1.0 / places.len() as f64,
            false => 1.0 / sums.weight,
        },
        l2: spec.l2,
        intercept_l2: spec.intercept_l2,
    }
}

/// What came of a group; none where a solver by itself may do better, or says what is wrong.
fn member<T: Number>(theta: &[f64], outcome: &Outcome) -> Option<Member> {
    let convergence = small::convergence(outcome)?;
    let (intercept, coef) = small::rounded::<T>(theta);
    Some(Member {
        intercept,
        coef,
        ending: Ending::Fitted(convergence),
        n_iter: outcome.n_iter as usize,
    })
}
