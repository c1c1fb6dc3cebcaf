//! `train` of linear models: arguments as meant, fit, report.

use std::num::NonZeroUsize;
use std::sync::Arc;

use anyhow::{Result, bail};

use crate::cli::args::{DeviceName, DtypeName};
use crate::cli::data::{self, Loaded};
use crate::cli::exit::Exit;
use crate::cli::fitted::{FittedSummary, warn_undefined};
use crate::cli::memory::MemoryFacts;
use crate::cli::portions::{self, Place};
use crate::cli::progress::Ui;
use crate::cli::report::bytes;
use crate::cli::targets::Known;
use crate::cli::trainers::Job;
use crate::cli::{checkpoints, device, group, output, pages};
use crate::device::group::Group;
use crate::device::{Device, Phase, Phases};
use crate::io::ReadError;
use crate::learning::{
    Assessment, Classes, Convergence, Diagnostics, Estimator, Evaluate, Evaluation, FitError,
    FitOptions, Model, Patience, ResidentDataset, Targets, Validation,
};
use crate::matrix::{Features, MatrixStats};
use crate::ops::{Matrix, Number, Residency};
use crate::report::{FitDetails, FitPage, advice};

use super::details::{self, Subject};
use super::several;

/// Fits, saves, scores, reports.
pub(super) fn run(job: &Job<'_>, ui: &Ui) -> Result<Exit> {
    match job.source.dtype {
        DtypeName::F32 => fit::<f32>(job, ui),
        DtypeName::F64 => fit::<f64>(job, ui),
    }
}

fn fit<T: Number>(job: &Job<'_>, ui: &Ui) -> Result<Exit> {
    let group = group::join(ui)?;
    let several = several::targets(job)?;
    group::check(&group, &job.source.data, several.is_some())?;
    if let Some(target) = several {
        return several::run::<T>(job, target, ui);
    }
    let outcome = job.outcome;
    if let Some(path) = outcome.output.as_deref() {
        output::check_place(path)?;
    }
    pages::check(&outcome.report)?;
    let mut phases = Phases::default();
    let (shared, (device, (data, known))) = match group.is_alone() {
        true => (None, read_alone(job, &mut phases, ui)?),
        false => {
            let (own, read) = read_together(&group, job, &mut phases, ui)?;
            (Some((group, own)), read)
        }
    };
    let (other, not_validated) = match load_validation::<T>(job, &data, ui) {
        Ok(other) => (other, None),
        Err(error) if outcome.report.is_wanted() && is_of_empty_file(&error) => {
            ui.warn(format_args!("no validation: {error:#}"));
            (None, Some(format!("{error:#}")))
        }
        Err(error) => return Err(error),
    };
    let mut run = Run {
        job,
        ui,
        device,
        shared,
        phases,
        not_validated,
    };
    run.fit(data, &known, other)
}

/// A device, and the data with their targets.
type Read<T> = (Device, (Loaded<T>, Known<T>));

/// Opens the device while the data are read.
fn read_alone<T: Number>(job: &Job<'_>, phases: &mut Phases, ui: &Ui) -> Result<Read<T>> {
    let source = job.source;
    let (reading, target) = (job.outcome.reading()?, source.target.as_deref());
    let task = job.own.task();
    let read = || data::load_known::<T>(&source.data, target, task, &reading, ui);
    let place = (source.device, source.data.as_path(), device::FIT_READS);
    device::open_beside(place, ui, phases, read)
}

/// The device of this member of `group`, which joins the others while it reads its rows.
fn read_together<T: Number>(
    group: &Group,
    job: &Job<'_>,
    phases: &mut Phases,
    ui: &Ui,
) -> Result<(Device, Read<T>)> {
    let source = job.source;
    let place = Place {
        data: &source.data,
        reading: &job.outcome.reading()?,
        // A page counts entries on the host.
        whole: details::are_wanted(job.outcome),
        ui,
    };
    let read = || portions::begin::<T>(group, place);
    let (own, begun) = group::device_beside((group, source.device, ui), read)?;
    let data = begun.complete((group, &own), place)?;
    phases.add(Phase::Read, data.read_cost());
    let known = data::known(
        data,
        (&source.data, source.target.as_deref()),
        job.own.task(),
    )?;
    // What each member does by itself is done by its CPU.
    let device = device::open(DeviceName::Cpu, ui)?;
    Ok((own, (device, known)))
}

/// A fit under way.
struct Run<'a> {
    job: &'a Job<'a>,
    ui: &'a Ui,
    device: Device,
    /// The group that shares the rows to learn from, and the device of this member of it.
    shared: Option<(Group, Device)>,
    phases: Phases,
    /// Why there is no validation, where a page says so.
    not_validated: Option<String>,
}

impl Run<'_> {
    fn fit<T: Number>(
        &mut self,
        data: Loaded<T>,
        known: &Known<T>,
        other: Option<(Loaded<T>, Known<T>)>,
    ) -> Result<Exit> {
        let (job, device) = (self.job, &self.device);
        let weights = job.samples.sample_weight.as_deref();
        let weights = data::sample_weights(weights, data.stats.rows)?;
        let estimator = job.estimator(known)?;
        let mut during = match &other {
            Some(other) => during_fit(&estimator, device, other, known)?,
            None => None,
        };
        let judges = during.is_some();
        let patience = patience(job, during.as_ref())?;
        let mut evaluate = |coef: &[Vec<f64>], intercepts: &[f64]| {
            let score = during.as_mut().map(|during| during.score(coef, intercepts));
            score.unwrap_or(f64::NAN)
        };
        let start = job.start(data.stats.cols, known.classes())?;
        let start = start
            .as_ref()
            .map(|(coef, intercepts)| (&coef[..], &intercepts[..]));
        let beside = job.beside((data.stats.rows, data.stats.cols))?;
        let targets = known.targets();
        // A page counts entries on the host: they have to stay there.
        let features = details::are_wanted(job.outcome).then(|| data.features.clone());
        let placing = self.ui.doing("placing the data");
        let resident = match &self.shared {
            None => estimator.place(device, data.features, targets)?,
            Some((group, device)) => {
                let own = group::rows_of((group, device), (data.features, data.rows));
                estimator.place(device, own, targets)?
            }
        };
        drop(placing);
        self.phases.extend(resident.phases());
        remark_streaming(&resident.matrix().residency(), self.ui);
        let checkpoint = checkpoints::of(&job.course.checkpoint, self.ui);
        let bar = self.ui.iterations("gradient", job.solve.tol);
        let mut watch = |iteration| bar.solver_iteration(iteration, job.solve.max_iter.get());
        let options = FitOptions {
            sample_weight: weights.as_deref(),
            offset: beside.offset.as_deref(),
            penalty_factors: beside.penalty_factors.as_deref(),
            start,
            checkpoint: checkpoint.as_ref(),
            watch: Some(&mut watch),
            patience,
            evaluate: judges.then_some(&mut evaluate as &mut Evaluate<'_>),
            ..FitOptions::default()
        };
        let solve = || estimator.fit_on(&resident, targets, options);
        let model = self.phases.time(Phase::Solve, device, solve)?;
        let model = model.with_schema(data.schema);
        drop(bar);
        let fitted = Fitted {
            model: &model,
            resident: &resident,
            features,
            stats: &data.stats,
            parse_seconds: data.seconds,
            targets,
            weights: weights.as_deref(),
            offset: beside.offset.as_deref(),
        };
        self.finish(&fitted, other)
    }

    /// Saves, scores, reports.
    fn finish<T: Number>(
        &mut self,
        fitted: &Fitted<'_, T>,
        other: Option<(Loaded<T>, Known<T>)>,
    ) -> Result<Exit> {
        let (job, model) = (self.job, fitted.model);
        if let Some(path) = &job.outcome.output {
            output::save(model, path)?;
        }
        checkpoints::remove(&job.course.checkpoint, self.ui);
        let scoring = self.ui.doing("scoring");
        let (assessment, training) =
            self.phases
                .time(Phase::Evaluate, &self.device, || -> Result<_, FitError> {
                    let x = fitted.resident.matrix();
                    let (targets, weights) = (fitted.targets, fitted.weights);
                    let assessment = model.assess(x, targets, weights, fitted.offset)?;
                    let training = assessment.evaluate()?;
                    Ok((assessment, training))
                })?;
        let wanted = fitted.features.is_some();
        let (validation, validation_diagnostics) = match other {
            Some(other) => self.validate(model, other, wanted)?,
            None => (None, None),
        };
        drop(scoring);
        warn_undefined(&training, self.ui);
        let describing = self.ui.doing("describing the fit");
        let details = match fitted.subject(job, &assessment) {
            Some(subject) => Some(FitDetails {
                not_validated: self.not_validated.take(),
                ..subject.details(&mut self.phases, validation_diagnostics)?
            }),
            None => None,
        };
        drop(describing);
        let found = Found {
            model,
            stats: fitted.stats,
            parse_seconds: fitted.parse_seconds,
            training: &training,
            validation: validation.as_ref(),
            details: details.as_ref(),
        };
        self.report(&found)?;
        Ok(judge(model, job, self.ui))
    }

    /// Scores the model on the data of `--validation`, with curves or residuals where they are wanted.
    fn validate<T: Number>(
        &self,
        model: &Model,
        (data, known): (Loaded<T>, Known<T>),
        wanted: bool,
    ) -> Result<(Option<Evaluation>, Option<Diagnostics>)> {
        let (matrix, targets) = (Matrix::new(&self.device, data.features)?, known.targets());
        let assessment = model.assess(&matrix, targets, None, None)?;
        let evaluation = assessment.evaluate()?;
        let diagnostics = match wanted {
            true => Some(assessment.diagnose()?),
            false => None,
        };
        Ok((Some(evaluation), diagnostics))
    }

    fn report(&self, found: &Found<'_>) -> Result<()> {
        let (job, outcome) = (self.job, self.job.outcome);
        let own = self.shared.as_ref().map_or(&self.device, |(_, own)| own);
        let summary = FittedSummary {
            name: job.name,
            title: job.own.title(),
            model: found.model,
            stats: found.stats,
            device: &own.to_string(),
            memory: MemoryFacts::of(own),
            parse_seconds: found.parse_seconds,
            phases: &self.phases,
            training: found.training,
            validation: found.validation,
            saved: outcome.output.as_deref(),
            details: found.details,
        };
        if outcome.output.as_deref().is_some_and(output::is_stdout) {
            // Standard output is the model's.
            self.ui.remark(summary.to_string().trim_end());
        } else if outcome.json {
            output::print(summary.json_text()? + "\n")?;
        } else {
            output::print(summary.to_string())?;
        }
        self.write_page(found)
    }

    /// Writes the page and the figures, where they are requested.
    fn write_page(&self, found: &Found<'_>) -> Result<()> {
        let job = self.job;
        let Some(details) = found.details.filter(|_| job.outcome.report.is_wanted()) else {
            return Ok(());
        };
        let page = FitPage {
            title: job.own.title(),
            source: &pages::source(&job.source.data),
            command: self.ui.command(),
            model: found.model,
            standardized: job.solve.standardize,
            names: found.model.schema(),
            training: found.training,
            validation: found.validation,
            phases: &self.phases,
            details,
        };
        pages::write(&job.outcome.report, &page.report(), self.ui)
    }
}

/// A model, and what it was fitted to.
struct Fitted<'a, T: Number> {
    model: &'a Model,
    resident: &'a ResidentDataset<T>,
    /// X on the host, where a page is wanted.
    features: Option<Arc<Features<T>>>,
    stats: &'a MatrixStats,
    parse_seconds: f64,
    targets: Targets<'a, T>,
    weights: Option<&'a [f64]>,
    offset: Option<&'a [f64]>,
}

impl<T: Number> Fitted<'_, T> {
    /// What a page is about, where one is wanted.
    fn subject<'s>(
        &'s self,
        job: &'s Job<'_>,
        assessment: &'s Assessment<'_, T>,
    ) -> Option<Subject<'s, T>> {
        Some(Subject {
            assessment,
            outcome: job.outcome,
            model: self.model,
            resident: self.resident,
            features: self.features.as_deref()?,
            stats: self.stats,
            targets: self.targets,
            weights: self.weights,
            tolerance: job.solve.tol,
        })
    }
}

/// What a fit has led to.
struct Found<'a> {
    model: &'a Model,
    stats: &'a MatrixStats,
    parse_seconds: f64,
    training: &'a Evaluation,
    validation: Option<&'a Evaluation>,
    details: Option<&'a FitDetails>,
}

/// Says that X is larger than what the device has room for: the fit takes as long as the link does.
fn remark_streaming(residency: &Residency, ui: &Ui) {
    let Residency {
        streams,
        block_bytes,
        resident_bytes,
        ..
    } = *residency;
    if streams && resident_bytes < block_bytes {
        ui.remark(format_args!(
            "X does not fit the device: {} of {} stay there, the others cross the link in every pass",
            bytes(resident_bytes),
            bytes(block_bytes)
        ));
    }
}

/// Whether a file was read that has no samples: a page says so, and has all the rest.
fn is_of_empty_file(error: &anyhow::Error) -> bool {
    let causes = error.chain();
    let mut reasons = causes.filter_map(|cause| cause.downcast_ref::<ReadError>());
    reasons.any(ReadError::is_of_empty_file)
}

/// The data of `--validation`.
fn load_validation<T: Number>(
    job: &Job<'_>,
    data: &Loaded<T>,
    ui: &Ui,
) -> Result<Option<(Loaded<T>, Known<T>)>> {
    let Some(path) = &job.course.validation else {
        return Ok(None);
    };
    let target = job.course.validation_target.as_deref();
    let reading = data.reading_like(&job.outcome.read);
    let task = job.own.task();
    Ok(Some(data::load_known(path, target, task, &reading, ui)?))
}

/// What judges every iteration by the data of `--validation`; nothing for one-vs-rest fits, which end with a figure.
fn during_fit<T: Number>(
    estimator: &Estimator,
    device: &Device,
    (data, known): &(Loaded<T>, Known<T>),
    training: &Known<T>,
) -> Result<Option<Validation<T>>> {
    let classes = training.classes();
    if estimator.problems(classes.map_or(0, Classes::len)) > 1 {
        return Ok(None);
    }
    let features = data.features.clone();
    let targets = known.targets();
    Ok(Some(Validation::new(
        device, features, estimator, targets, classes,
    )?))
}

/// When the fit ends early.
fn patience<T: Number>(job: &Job<'_>, during: Option<&Validation<T>>) -> Result<Option<Patience>> {
    let Some(iterations) = job.course.patience else {
        return Ok(None);
    };
    let Some(during) = during else {
        bail!(
            "--patience: expected a fit whose iterations can be judged as a whole, found one for each class; \
             train logreg learns all classes together"
        )
    };
    Ok(Some(Patience {
        iterations: iterations.get(),
        larger_is_better: during.larger_is_better(),
    }))
}

/// Warns when the fit did not converge; whether that counts is for the user to say.
pub(super) fn judge(model: &Model, job: &Job<'_>, ui: &Ui) -> Exit {
    let report = model.report();
    if report.convergence.is_success() {
        return Exit::Success;
    }
    if report.convergence == Convergence::EarlyStopped {
        ui.remark(format_args!(
            "stopped after {} iterations: {} in a row were no better on the validation data; the best coefficients are kept",
            report.n_iter,
            job.course.patience.map_or(0, NonZeroUsize::get)
        ));
        return Exit::Success;
    }
    let dtype = job.source.dtype.into();
    let advice = advice(report.convergence, job.solve.standardize, dtype);
    ui.warn(format_args!(
        "NOT CONVERGED after {} iterations: the gradient is {:.1e} of what it was, the tolerance is {:.1e}; {advice}",
        report.n_iter, report.gradient_ratio, job.solve.tol
    ));
    if job.outcome.strict {
        Exit::NotConverged
    } else {
        Exit::Success
    }
}
