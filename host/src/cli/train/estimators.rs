//! `train ridge`, `lasso`, `elasticnet`, `logreg`, `glm`, `svc`, `svr`: arguments as meant, fit, report.

use anyhow::Result;

use crate::cli::args::{DtypeName, OutcomeArgs, SampleArgs, SolveArgs, SourceArgs};
use crate::cli::data::{self, Loaded};
use crate::cli::exit::Exit;
use crate::cli::fitted::FittedSummary;
use crate::cli::meant::Meant;
use crate::cli::progress::Ui;
use crate::cli::targets::Known;
use crate::cli::{device, output};
use crate::device::Device;
use crate::io::Columns;
use crate::learning::{Convergence, Evaluation, Extras, Model};
use crate::ops::Number;

/// What a trainer is given, whatever it trains.
pub(super) struct Job<'a> {
    pub(super) meant: Meant<'a>,
    pub(super) source: &'a SourceArgs,
    pub(super) solve: &'a SolveArgs,
    pub(super) samples: &'a SampleArgs,
    pub(super) outcome: &'a OutcomeArgs,
}

/// Fits, saves, scores, reports.
pub(super) fn run(job: &Job<'_>, ui: &Ui) -> Result<Exit> {
    match job.source.dtype {
        DtypeName::F32 => fit::<f32>(job, ui),
        DtypeName::F64 => fit::<f64>(job, ui),
    }
}

fn fit<T: Number>(job: &Job<'_>, ui: &Ui) -> Result<Exit> {
    let Job {
        meant,
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
        meant.task(),
        Columns::Infer,
        &outcome.read,
        ui,
    )?;
    let weights = data::sample_weights(samples.sample_weight.as_deref(), data.stats.rows)?;
    let estimator = meant.estimator(&known)?;
    let bar = ui.iterations("gradient");
    let mut watch = |iteration| bar.solver_iteration(iteration, job.solve.max_iter.get());
    let extras = Extras {
        sample_weight: weights.as_deref(),
        watch: Some(&mut watch),
        ..Extras::default()
    };
    let features = data.features.clone();
    let model = estimator.fit_with(&device, features, known.targets(), extras)?;
    drop(bar);
    if let Some(path) = saved {
        model.save(path)?;
    }
    let features = data.features.clone();
    let training = model.evaluate(&device, features, known.targets(), weights.as_deref())?;
    let validation = validate::<T>(&model, job, &device, ui)?;
    report(
        job,
        &model,
        &device,
        &data,
        (&training, validation.as_ref()),
    )?;
    Ok(judge(&model, job, ui))
}

/// Scores the model on the data of `--validation`.
fn validate<T: Number>(
    model: &Model,
    job: &Job<'_>,
    device: &Device,
    ui: &Ui,
) -> Result<Option<Evaluation>> {
    let Some(path) = &job.samples.validation else {
        return Ok(None);
    };
    let target = job.samples.validation_target.as_deref();
    let columns = Columns::Exactly(model.cols());
    let task = job.meant.task();
    let (data, known): (Loaded<T>, Known<T>) =
        data::load_known(path, target, task, columns, &job.outcome.read, ui)?;
    Ok(Some(model.evaluate(
        device,
        data.features,
        known.targets(),
        None,
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
        name: job.meant.name(),
        title: job.meant.title(),
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
    let report = match model {
        Model::Regressor(model) => model.report(),
        Model::Classifier(model) => model.report(),
        Model::Linear(_) => return Exit::Success,
    };
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
