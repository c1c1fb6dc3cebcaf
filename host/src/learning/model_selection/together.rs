//! The fits of a path and its folds in one launch, where X has few columns.
//!
//! All share X and the targets; the folds are weights of 0. A fit by itself spreads its rows over the threads of the host, which
//! pays for many rows only: here each is one block's of the GPU, or one core's.

use std::mem::discriminant;
use std::ops::Range;

use crate::device::{Buffer, Device, DeviceError};
use crate::learning::fit::Training;
use crate::learning::problem::Task;
use crate::learning::report::Summary;
use crate::learning::solver::host::choice::{Chosen, Direct};
use crate::learning::weights::Weights;
use crate::learning::{
    Classes, Estimator, FitError, FitOptions, Model, ResidentDataset, Targets, small,
};
use crate::matrix::{Element, Features};
use crate::ops::fits::{
    FitRows, FitRules, Minima, SmallFit, are_possible_on, is_worth_one_launch, minimise_each,
};
use crate::ops::objective::Loss;
use crate::ops::{Number, OpError};
use crate::parallel;

/// What is fitted: the estimators, each to the rows of each fold, of one point after the other.
pub(super) struct Path<'a, T> {
    pub(super) estimators: &'a [Estimator],
    pub(super) targets: Targets<'a, T>,
    /// Of each fold, the weights with which it is trained.
    pub(super) training: &'a [Vec<f64>],
    /// Those of all rows.
    pub(super) sample_weight: Option<&'a [f64]>,
    pub(super) offset: Option<&'a [f64]>,
    pub(super) penalty_factors: Option<&'a [f64]>,
}

/// A fit of the launch.
struct Member<'a, T> {
    task: Task<'a, T>,
    classes: Option<Classes>,
}

/// The models, as far as one launch has them; none where that is not for these fits.
pub(super) fn fit<T: Number>(
    data: &ResidentDataset<T>,
    path: &Path<'_, T>,
) -> Result<Option<Vec<Option<Model>>>, FitError> {
    let rows = data.matrix().rows();
    let fits = path.estimators.len() * path.training.len();
    let threads = rayon::current_num_threads() as u64;
    // Reproducible fits have the same bits on every device, which a launch has not.
    let host = data.host_features();
    let Some(features) = host.filter(|_| !data.matrix().is_reproducible()) else {
        return Ok(None);
    };
    let is_worth = is_worth_one_launch(fits as u64, rows as u64, threads)
        && are_possible_on::<T>(data.matrix().device());
    if !is_worth || !small::is_narrow(features.cols()) || !path.is_alike() {
        return Ok(None);
    }
    let Some(members) = path.members(rows)? else {
        return Ok(None);
    };
    let Some(rules) = path.rules(data, &members)? else {
        return Ok(None);
    };
    let placed = Placed::new(data.matrix().device(), (features, path.offset), &members)?;
    let minima = minimise(&placed, (rows, features.cols()), &rules, &members)?;
    let options = path.options(None);
    let models = members.into_iter().enumerate().map(|(number, member)| {
        let estimator = &path.estimators[number / path.training.len()];
        model(data, (estimator, &options), member, (&minima, number))
    });
    models.collect::<Result<_, _>>().map(Some)
}

impl<'a, T: Number> Path<'a, T> {
    /// Whether all points are of one estimator.
    fn is_alike(&self) -> bool {
        let kinds = self.estimators.iter().map(discriminant);
        let is_first = |kind| self.estimators.first().map(discriminant) == Some(kind);
        kinds.into_iter().all(is_first)
    }

    /// What a fit is given.
    fn options<'o>(&self, weights: Option<&'o [f64]>) -> FitOptions<'o>
    where
        'a: 'o,
    {
        FitOptions {
            sample_weight: weights,
            offset: self.offset,
            penalty_factors: self.penalty_factors,
            ..FitOptions::default()
        }
    }

    /// The fits; none where one is several problems.
    fn members(&self, rows: usize) -> Result<Option<Vec<Member<'a, T>>>, FitError> {
        let each = self.estimators.iter().flat_map(|estimator| {
            let folds = self.training.iter();
            folds.map(move |weights| (estimator, weights))
        });
        each.map(|(estimator, weights)| {
            let options = self.options(Some(weights));
            let task = estimator.task(rows, self.targets, &options)?;
            Ok(task.map(|(task, classes)| Member { task, classes }))
        })
        .collect()
    }

    /// What all fits are told, where that is the same.
    fn rules(
        &self,
        data: &ResidentDataset<T>,
        members: &[Member<'_, T>],
    ) -> Result<Option<FitRules<'a>>, FitError> {
        let mut all = None;
        for member in members {
            let own = self.rules_of(data, &member.task)?;
            if own.is_none() || all.is_some_and(|all| Some(all) != own) {
                return Ok(None);
            }
            all = own;
        }
        Ok(all)
    }

    /// What a fit is told that the host would make by a Hessian.
    fn rules_of(
        &self,
        data: &ResidentDataset<T>,
        Task { controls, spec, .. }: &Task<'_, T>,
    ) -> Result<Option<FitRules<'a>>, FitError> {
        let training = Training::new(data, *controls, &self.options(None))?;
        let shape = training.shape(spec, self.penalty_factors);
        let is_direct = training.choose(&shape)?.direct == Some(Direct::Cholesky);
        // Deviations are those of rows with weight there, and of all that a fold learns from otherwise.
        let has_deviations = !controls.standardize || self.sample_weight.is_none();
        let loss = small::loss_of(shape.cols, spec, controls);
        let loss = loss.filter(|_| is_direct && has_deviations);
        Ok(loss.map(|loss| small::rules(loss, controls, self.penalty_factors)))
    }
}

/// What all fits share, and their weights, on the device.
struct Placed<T> {
    x: Buffer<T>,
    targets: Buffer<T>,
    /// Of one fit after the other.
    weights: Buffer<T>,
    offset: Option<Buffer<T>>,
}

impl<T: Number> Placed<T> {
    fn new(
        device: &Device,
        (features, offset): (&Features<T>, Option<&[f64]>),
        members: &[Member<'_, T>],
    ) -> Result<Self, DeviceError> {
        let (rows, cols) = (features.rows(), features.cols());
        let narrow = |value: f64| <T as Element>::from_f64(value);
        let weight = |at: usize| narrow(members[at / rows].task.weights.at(at % rows));
        let offset = offset.map(|of| device.upload_with(rows, each(|row| narrow(of[row]))));
        Ok(Placed {
            x: device.upload_with(rows * cols, |range, to: &mut [T]| {
                small::fill_rows(features, range, to);
            })?,
            targets: members[0].task.targets.upload(device)?,
            weights: device.upload_with(members.len() * rows, each(weight))?,
            offset: offset.transpose()?,
        })
    }
}

/// Writes `of` of each number of a range.
fn each<T>(of: impl Fn(usize) -> T + Sync) -> impl Fn(Range<usize>, &mut [T]) + Sync {
    move |range, to| to.iter_mut().zip(range).for_each(|(to, at)| *to = of(at))
}

/// The launch.
fn minimise<T: Number>(
    placed: &Placed<T>,
    (rows, cols): (usize, usize),
    rules: &FitRules<'_>,
    members: &[Member<'_, T>],
) -> Result<Minima, OpError> {
    let given = FitRows {
        x: &placed.x,
        rows,
        cols,
        pitch: cols,
        targets: &placed.targets,
        weights: Some(&placed.weights),
        offset: placed.offset.as_ref(),
    };
    let of = |number: usize| begin(rules.loss, &members[number], number);
    let begun = parallel::map(members.len(), of);
    let fits: Vec<SmallFit> = begun.iter().map(|(fit, _)| *fit).collect();
    let mut start = vec![0.0; fits.len() * (cols + 1)];
    let starts = start.chunks_exact_mut(cols + 1).zip(&begun);
    starts.for_each(|(start, (_, intercept))| start[0] = *intercept);
    minimise_each(&given, rules, &fits, &start)
}

/// A fit, and the intercept at which it begins.
fn begin<T: Number>(loss: Loss, member: &Member<'_, T>, number: usize) -> (SmallFit, f64) {
    let Task {
        controls,
        spec,
        targets,
        weights,
    } = &member.task;
    let rows = targets.len();
    let (mut total, mut target) = (0.0, 0.0);
    for row in 0..rows {
        let weight = weights.at(row);
        total += weight;
        target += weight * Element::to_f64(targets.at(row));
    }
    let fit = SmallFit {
        row: 0,
        rows,
        target: 0,
        weight: number * rows,
        scale: 1.0 / total,
        l2: spec.l2,
        intercept_l2: spec.intercept_l2,
    };
    (fit, small::intercept(loss, spec, controls, target / total))
}

/// The model of a fit; none where it has to be made by itself.
fn model<T: Number>(
    data: &ResidentDataset<T>,
    (estimator, options): (&Estimator, &FitOptions<'_>),
    Member { task, classes }: Member<'_, T>,
    (minima, number): (&Minima, usize),
) -> Result<Option<Model>, FitError> {
    let outcome = &minima.outcomes[number];
    let convergence = small::convergence(outcome).filter(|_| task.spec.l2 > 0.0);
    let Some(convergence) = convergence else {
        return Ok(None);
    };
    let summary = Summary {
        n_iter: outcome.n_iter as usize,
        convergence,
        gradient_ratio: outcome.gradient_ratio,
        objective: outcome.objective,
        gap: None,
        chosen: Chosen::together(),
    };
    let training = Training::new(data, task.controls, options)?;
    let report = training.report(&summary, &task.spec, Vec::new());
    let (intercept, coef) = small::rounded::<T>(minima.theta(number));
    let weights = Weights {
        coef: vec![coef],
        intercept: vec![intercept],
    };
    let params = (estimator.params(), classes);
    Ok(Some(Model::new(T::DTYPE, params, weights, report)))
}
