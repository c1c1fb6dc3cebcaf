//! Groups that are fitted together, in one launch.

use super::Extras;
use super::batch::{Batch, GroupSums, dot};
use super::member::{Ending, Member};
use crate::device::Device;
use crate::learning::FitError;
use crate::learning::cg::Convergence;
use crate::learning::controls::Controls;
use crate::learning::solver::Solver;
use crate::learning::spec::{ObjectiveSpec, SampleLoss};
use crate::learning::start::first_predictor;
use crate::matrix::{Element, Features};
use crate::ops::Number;
use crate::ops::fits::{End, FitRows, FitRules, MOST_COLUMNS, Outcome, SmallFit, minimise_each};
use crate::ops::objective::Loss;
use crate::parallel;

/// What is minimised for a group of this total weight.
pub(super) type SpecOf<'a> = &'a (dyn Fn(f64) -> ObjectiveSpec + Sync);

/// The loss, where all groups can be fitted together: one predictor, no l1 term, few columns, nothing that only a solver by
/// itself knows.
pub(super) fn loss_of<T: Number>(
    features: &Features<T>,
    (spec, controls): (&ObjectiveSpec, &Controls),
    extras: &Extras<'_>,
) -> Option<Loss> {
    let is_narrow = (1..=MOST_COLUMNS as usize).contains(&features.cols());
    let is_asked = matches!(controls.solver, Solver::Auto | Solver::NewtonCholesky);
    // Deviations are those of rows with weight there, and of all rows otherwise.
    let has_deviations = !controls.standardize || extras.sample_weight.is_none();
    let fits = is_narrow
        && is_asked
        && has_deviations
        && extras.columns.is_none()
        && !controls.non_negative;
    match spec.loss {
        SampleLoss::Single(loss) if fits && spec.l1 == 0.0 => Some(loss),
        _ => None,
    }
}

/// Fits all groups whose numbers say that there is something to fit; none for those that have to be fitted by themselves.
pub(super) fn fit<T: Number>(
    device: &Device,
    batch: &Batch<'_, T>,
    (loss, spec, controls): (Loss, SpecOf<'_>, &Controls),
    (sums, factors): (&[GroupSums], Option<&[f64]>),
) -> Result<Vec<Option<Member>>, FitError> {
    let (x, targets) = (batch.upload(device)?, batch.targets(device)?);
    let (weights, offset) = (batch.weights(device)?, batch.offset(device)?);
    let rows = FitRows {
        x: &x,
        rows: batch.order.len(),
        cols: batch.features.cols(),
        pitch: batch.features.cols(),
        targets: &targets,
        weights: weights.as_ref(),
        offset: offset.as_ref(),
    };
    let rules = FitRules {
        loss,
        has_intercept: controls.fit_intercept,
        standardizes: controls.standardize,
        factors,
        tolerance: controls.tolerance,
        max_iter: u32::try_from(controls.max_iter).unwrap_or(u32::MAX),
    };
    let each = 0..sums.len();
    let fits: Vec<SmallFit> = each
        .map(|group| one(batch, spec, &sums[group], group))
        .collect();
    let order = rows.cols + 1;
    let mut start = vec![0.0; fits.len() * order];
    for (start, sums) in start.chunks_exact_mut(order).zip(sums) {
        start[0] = intercept(loss, &spec(sums.weight), (controls, sums));
    }
    let minima = minimise_each(&rows, &rules, &fits, &start)?;
    Ok(parallel::map(fits.len(), |group| {
        let is_held = loss != Loss::Logistic || fits[group].l2 > 0.0;
        let found = member::<T>(minima.theta(group), &minima.outcomes[group]);
        found.filter(|member| is_held || !separates(batch, group, member))
    }))
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

/// Where a fit begins: the model without columns.
fn intercept(loss: Loss, spec: &ObjectiveSpec, (controls, sums): (&Controls, &GroupSums)) -> f64 {
    let is_free = controls.fit_intercept && spec.intercept_l2 == 0.0;
    let alone = first_predictor(loss, sums.target / sums.weight);
    if is_free && alone.is_finite() {
        alone
    } else {
        0.0
    }
}

/// What came of a group; none where a solver by itself may do better, or says what is wrong.
fn member<T: Number>(theta: &[f64], outcome: &Outcome) -> Option<Member> {
    let convergence = match outcome.end {
        End::Met => Convergence::Converged,
        End::PrecisionLimit => Convergence::PrecisionLimit,
        End::IterationLimit => Convergence::IterationLimit,
        End::Stalled | End::NotFinite | End::NoRows => return None,
    };
    if outcome.is_dependent {
        return None;
    }
    let rounded = |w: &f64| Element::to_f64(<T as Element>::from_f64(*w));
    Some(Member {
        intercept: rounded(&theta[0]),
        coef: theta[1..].iter().map(rounded).collect(),
        ending: Ending::Fitted(convergence),
        n_iter: outcome.n_iter as usize,
    })
}
