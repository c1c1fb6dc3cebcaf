//! `train` of linear models: arguments as meant, fit, report.

use anyhow::Result;

use crate::cli::args::DtypeName;
use crate::cli::data::{self, Loaded};
use crate::cli::exit::Exit;
use crate::cli::fitted::FittedSummary;
use crate::cli::progress::Ui;
use crate::cli::targets::Known;
use crate::cli::trainers::Job;
use crate::cli::{device, output};
use crate::device::Device;
use crate::io::Columns;
use crate::learning::{Classes, Convergence, Estimator, Evaluation, FitOptions, Model, Validation};
use crate::ops::Number;

/// Fits, saves, scores, reports.
pub(super) fn run(job: &Job<'_>, ui: &Ui) -> Result<Exit> {
    match job.source.dtype {
        DtypeName::F32 => fit::<f32>(job, ui),
        DtypeName::F64 => fit::<f64>(job, ui),
    }
}

fn fit<T: Number>(job: &Job<'_>, ui: &Ui) -> Result<Exit> {
    let Job {
        own,
        source,
        samples,
        outcome,
        ..
    } = job;
    let saved = outcome.output.as_deref();
    if let Some(path) = saved {
        output::check_folder(path)?;
    }
    let device = device::open(source.device, ui)?;
    let target = source.target.as_deref();
    let (data, known) = data::load_known::<T>(
        &source.data,
        target,
        own.task(),
        Columns::Infer,
        &outcome.read,
        ui,
    )?;
    let weights = data::sample_weights(samples.sample_weight.as_deref(), data.stats.rows)?;
    let estimator = job.estimator(&known)?;
    let other = load_validation::<T>(job, data.stats.cols, ui)?;
    let mut during = match &other {
        Some(other) => during_fit(&estimator, &device, other, &known)?,
        None => None,
    };
    let judges = during.is_some();
    let mut evaluate = |coef: &[Vec<f64>], intercepts: &[f64]| {
        let score = during.as_mut().map(|during| during.score(coef, intercepts));
        score.unwrap_or(f64::NAN)
    };
    let bar = ui.iterations("gradient");
    let mut watch = |iteration| bar.solver_iteration(iteration, job.solve.max_iter.get());
    let mut options = FitOptions {
        sample_weight: weights.as_deref(),
        watch: Some(&mut watch),
        ..FitOptions::default()
    };
    if judges {
        options.evaluate = Some(&mut evaluate);
    }
    let features = data.features.clone();
    let model = estimator.fit_with(&device, features, known.targets(), options)?;
    drop(bar);
    if let Some(path) = saved {
        model.save(path)?;
    }
    let features = data.features.clone();
    let training = model.evaluate(&device, features, known.targets(), weights.as_deref())?;
    let validation = match other {
        Some((other, known)) => {
            Some(model.evaluate(&device, other.features, known.targets(), None)?)
        }
        None => None,
    };
    report(
        job,
        &model,
        &device,
        &data,
        (&training, validation.as_ref()),
    )?;
    Ok(judge(&model, job, ui))
}

/// The data of `--validation`.
fn load_validation<T: Number>(
    job: &Job<'_>,
    cols: usize,
    ui: &Ui,
) -> Result<Option<(Loaded<T>, Known<T>)>> {
    let Some(path) = &job.samples.validation else {
        return Ok(None);
    };
    let target = job.samples.validation_target.as_deref();
    let columns = Columns::Exactly(cols);
    let task = job.own.task();
    Ok(Some(data::load_known(
        path,
        target,
        task,
        columns,
        &job.outcome.read,
        ui,
    )?))
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

fn report<T: Number>(
    job: &Job<'_>,
    model: &Model,
    device: &Device,
    data: &Loaded<T>,
    (training, validation): (&Evaluation, Option<&Evaluation>),
) -> Result<()> {
    let device = device.to_string();
    let summary = FittedSummary {
        name: job.name,
        title: job.own.title(),
        model,
        stats: &data.stats,
        device: &device,
        parse_seconds: data.seconds,
        training,
        validation,
        saved: job.outcome.output.as_deref(),
    };
    if job.outcome.json {
        output::print_json(&summary.to_json()?)
    } else {
        output::print(summary.to_string())
    }
}

/// Warns when the fit did not converge; whether that counts is for the user to say.
fn judge(model: &Model, job: &Job<'_>, ui: &Ui) -> Exit {
    let report = model.report();
    if report.convergence.is_success() {
        return Exit::Success;
    }
    let advice = match report.convergence {
        Convergence::Separable => {
            "the classes can be told apart without error, so that no finite coefficients are best: use a penalty"
        }
        Convergence::Singular => {
            "the columns are linearly dependent to working precision: penalise more, or accept this fit"
        }
        _ => "scale the features (--standardize), raise --max-iter, or raise --tol",
    };
    ui.warn(format_args!(
        "NOT CONVERGED after {} iterations: the gradient is {:.1e} of what it was, asked for was {:.1e}; {advice}",
        report.n_iter, report.gradient_ratio, job.solve.tol
    ));
    if job.outcome.strict {
        Exit::NotConverged
    } else {
        Exit::Success
    }
}
