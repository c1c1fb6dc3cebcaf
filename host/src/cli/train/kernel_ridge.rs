//! `train kernel-ridge`.

use std::fmt::{self, Display};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use ndarray::ArrayView2;
use serde_json::{Map, Value, json};

use crate::cli::applied::{Applied, Details};
use crate::cli::args::{DtypeName, KernelName, KernelRidgeArgs, KernelSolverName};
use crate::cli::data::{self, Loaded};
use crate::cli::exit::Exit;
use crate::cli::memory::MemoryFacts;
use crate::cli::portions::{self, Place};
use crate::cli::progress::Ui;
use crate::cli::report::{Listing, figure, seconds};
use crate::cli::{checkpoints, device, group, output, pages};
use crate::device::group::Group;
use crate::device::{Device, Phase, PhaseCost, Phases};
use crate::learning::metrics::RegressionSummary;
use crate::learning::{Convergence, KernelModel, KernelRidge, KernelSolver, SavedModel, Targets};
use crate::ops::Number;
use crate::report::Outcome;

/// Columns of the preconditioner where none are requested.
const DEFAULT_RANK: usize = 64;

/// Fits, saves, scores, reports.
pub(super) fn run(args: &KernelRidgeArgs, ui: &Ui) -> Result<Exit> {
    match args.source.dtype {
        DtypeName::F32 => fit::<f32>(args, ui),
        DtypeName::F64 => fit::<f64>(args, ui),
    }
}

fn fit<T: Number>(args: &KernelRidgeArgs, ui: &Ui) -> Result<Exit> {
    args.source.expect_one_target()?;
    let group = group::join(ui)?;
    group::check(&group, &args.source.data, false)?;
    if let Some(path) = &args.output {
        output::check_place(path)?;
    }
    pages::check(&args.report)?;
    let opened = || device::open(args.source.device, ui);
    let device = group::device_or(&group, (args.source.device, ui), opened)?;
    let (data, targets) = load::<T>(args, (&group, &device), ui)?;
    let own = group::rows_of((&group, &device), (data.features.clone(), data.rows));
    let own = own.to_dense()?;
    let model = solve(args, (&device, data.stats.cols), (own.view(), &targets), ui)?;
    let model = model.with_schema(data.schema.clone());
    if let Some(path) = &args.output {
        model.save(output::place(path))?;
    }
    checkpoints::remove(&args.checkpoint, ui);
    let scoring = ui.doing("scoring");
    let summary = Summary {
        model: &model,
        training: model.evaluate(&device, own.view(), &targets, None)?,
        validation: validate::<T>(&model, args, ((&group, &device), &data), ui)?,
        device: device.to_string(),
        memory: MemoryFacts::of(&device),
        data: &data,
        args,
    };
    drop(scoring);
    // A page is made of all rows, by each member for itself.
    let details = page(&model, (&data, &targets), (args, &device.alone()), ui)?;
    tell(args, &summary, details.as_ref(), ui)?;
    Ok(judge(&model, args, ui))
}

/// The rows of this process, and the targets of all.
fn load<T: Number>(
    args: &KernelRidgeArgs,
    member: (&Group, &Device),
    ui: &Ui,
) -> Result<(Loaded<T>, Vec<T>)> {
    let (data, target) = (&args.source.data, args.source.target.as_deref());
    let place = Place {
        data,
        reading: &args.table.reading(&args.read)?,
        whole: args.report.is_wanted(),
        ui,
    };
    let mut loaded = portions::load::<T>(member, place)?;
    let begun = Instant::now();
    let targets = match target {
        Some(path) => data::read_targets(path, loaded.stats.rows)?,
        None => loaded.take_targets(data)?,
    };
    loaded.seconds += begun.elapsed().as_secs_f64();
    Ok((loaded, targets))
}

fn solve<T: Number>(
    args: &KernelRidgeArgs,
    (device, features): (&Device, usize),
    (x, targets): (ArrayView2<'_, T>, &[T]),
    ui: &Ui,
) -> Result<KernelModel> {
    let params = params(args, features)?;
    let bar = ui.iterations("residual", args.tol);
    let watch = |progress| bar.iteration(progress);
    Ok(match &checkpoints::of(&args.checkpoint, ui) {
        None => params.fit_watched(device, x, targets, watch)?,
        Some(checkpoint) => params.fit_with_checkpoint(device, x, targets, checkpoint, watch)?,
    })
}

/// Prints what there is to say.
fn tell<T>(
    args: &KernelRidgeArgs,
    summary: &Summary<'_, T>,
    details: Option<&Details>,
    ui: &Ui,
) -> Result<()> {
    if args.output.as_deref().is_some_and(output::is_stdout) {
        // Standard output is the model's.
        ui.remark(summary.to_string().trim_end());
        return Ok(());
    }
    if !args.json {
        return output::print(summary.to_string());
    }
    let mut all = object(summary.to_json()?);
    if let Some(details) = details {
        pages::extend(&mut all, details)?;
    }
    output::print_json(&all)
}

/// The page, where one is requested, and what it shows besides.
fn page<T: Number>(
    model: &KernelModel,
    (data, targets): (&Loaded<T>, &[T]),
    (args, device): (&KernelRidgeArgs, &Device),
    ui: &Ui,
) -> Result<Option<Details>> {
    if !args.report.is_wanted() {
        return Ok(None);
    }
    let report = model.report();
    let mut phases = Phases::default();
    let read = PhaseCost {
        seconds: data.seconds,
        read_bytes: data.bytes,
        ..PhaseCost::default()
    };
    let solve = PhaseCost {
        seconds: report.seconds,
        ..PhaseCost::default()
    };
    phases.add(Phase::Read, read);
    phases.add(Phase::Solve, solve);
    let outcome = Outcome {
        convergence: report.convergence,
        n_iter: report.n_iter,
        change: report.residual_ratio,
        tolerance: args.tol,
        advice: advice(report.convergence, report.solver, args.source.dtype),
    };
    let saved = SavedModel::Kernel(model.clone());
    let mut applied = Applied {
        model: &saved,
        file: Path::new("fitted"),
        source: &args.source.data,
        title: "Kernel ridge regression",
        device,
        args: &args.report,
        outcome: Some(outcome),
        phases,
    };
    let (_, details) = applied.evaluate(data, (Targets::Numbers(targets), None), ui)?;
    Ok(details)
}

fn params(args: &KernelRidgeArgs, features: usize) -> Result<KernelRidge> {
    let length_scale = length_scale(args, features)?;
    let solver = match (args.rank, args.solver) {
        (Some(_), KernelSolverName::Cholesky) => bail!(
            "--rank: expected --solver conjugate-gradient, which it is for, found --solver cholesky"
        ),
        (Some(_), _) => KernelSolver::ConjugateGradient,
        (None, solver) => solver.into(),
    };
    Ok(KernelRidge::params()
        .kernel(args.kernel.into(), length_scale)
        .alpha(args.alpha)
        .tolerance(args.tol)
        .max_iter(args.max_iter.get())
        .rank(args.rank.unwrap_or(DEFAULT_RANK))
        .solver(solver))
}

/// ℓ as given, from γ, or from the γ = 1/n that scikit-learn takes for the Gaussian kernel.
fn length_scale(args: &KernelRidgeArgs, features: usize) -> Result<f64> {
    let of_gamma = |gamma: f64| (0.5 / gamma).sqrt();
    Ok(match (args.length_scale, args.gamma, args.kernel) {
        (Some(length), ..) => length,
        (None, None, _) => of_gamma(1.0 / features.max(1) as f64),
        (None, Some(gamma), KernelName::Gaussian) => of_gamma(gamma),
        (None, Some(gamma), KernelName::Laplace) => 1.0 / gamma,
        _ => bail!(
            "--gamma: expected the kernel gaussian or laplace, found another one; use --length-scale"
        ),
    })
}

/// Scores the model on the data of `--validation`.
fn validate<T: Number>(
    model: &KernelModel,
    args: &KernelRidgeArgs,
    ((group, device), like): ((&Group, &Device), &Loaded<T>),
    ui: &Ui,
) -> Result<Option<RegressionSummary>> {
    let Some(path) = &args.validation else {
        return Ok(None);
    };
    let target = args.validation_target.as_deref();
    let mut data = data::load_as::<T>(path, target, &like.reading_like(&args.read), ui)?;
    let targets = data.take_targets(path)?;
    let own = group::rows_of((group, device), (data.features, data.rows));
    Ok(Some(model.evaluate(
        device,
        own.to_dense()?.view(),
        &targets,
        None,
    )?))
}

/// Everything there is to say about a fit.
struct Summary<'a, T> {
    model: &'a KernelModel,
    training: RegressionSummary,
    validation: Option<RegressionSummary>,
    /// Such as `cuda:0`.
    device: String,
    memory: MemoryFacts,
    data: &'a Loaded<T>,
    args: &'a KernelRidgeArgs,
}

impl<T> Summary<'_, T> {
    /// One object, with the names of the other trainers where they mean the same.
    fn to_json(&self) -> Result<Value> {
        let report = self.model.report();
        let all = json!({
            "model": "kernel-ridge",
            "version": env!("CARGO_PKG_VERSION"),
            "kernel": self.model.kernel().function().name(),
            "length_scale": self.model.kernel().length_scale(),
            "alpha": self.model.alpha(),
            "converged": self.model.converged(),
            "device": self.device,
            "memory": self.memory,
            "device_name": report.device,
            "dtype": self.model.dtype().to_string(),
            "rows": self.data.stats.rows,
            "cols": self.data.stats.cols,
            "parse_seconds": self.data.seconds,
            "validation": self.validation,
            "saved": self.args.output,
        });
        let mut all = object(all);
        for part in [
            serde_json::to_value(report),
            serde_json::to_value(self.training),
        ] {
            let part = part.context("cannot write the result as JSON")?;
            // The device is named above as it is on the command line.
            all.extend(
                object(part)
                    .into_iter()
                    .filter(|(name, _)| name != "device"),
            );
        }
        if self.args.output.is_none() {
            all.insert("dual_coef".into(), json!(self.model.dual_coef()));
        }
        Ok(Value::Object(all))
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

impl<T> Display for Summary<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (model, report, stats) = (self.model, self.model.report(), &self.data.stats);
        let verdict = if model.converged() {
            "converged"
        } else {
            "NOT CONVERGED"
        };
        let (kernel, dtype) = (model.kernel(), model.dtype());
        let shape = format!("{} samples x {} features", stats.rows, stats.cols);
        let computed = format!("{} ({}), {dtype}", report.device, self.device);
        let residual = format!("{:.1e} of the targets", report.residual_ratio);
        let solver = format!("{} ({})", report.solver.name(), report.solver_reason);
        let mut lines = Listing::new();
        lines
            .line("data", shape)
            .line("reading", seconds(self.data.seconds))
            .line("kernel", kernel.function().name())
            .line("length scale", figure(kernel.length_scale()))
            .line("alpha", figure(model.alpha()))
            .line("device", computed)
            .line("solver", solver)
            .line("setup", seconds(report.setup_seconds))
            .line("iterations", format_args!("{}, {verdict}", report.n_iter))
            .line("residual", residual)
            .line("time", seconds(report.seconds))
            .line("peak device memory", self.memory.line());
        add_figures(&mut lines, "", &self.training);
        if let Some(validation) = &self.validation {
            add_figures(&mut lines, "validation ", validation);
        }
        if let Some(path) = &self.args.output {
            lines.line("saved", path.display());
        }
        write!(f, "Kernel ridge regression\n{lines}")
    }
}

fn add_figures(lines: &mut Listing, of: &str, summary: &RegressionSummary) {
    lines
        .line(&format!("{of}R²"), figure(summary.r2))
        .line(&format!("{of}RMSE"), figure(summary.rmse))
        .line(&format!("{of}MAE"), figure(summary.mae));
}

/// What to do about a fit that has not converged: nothing that was done already, or that its solver has no use for.
fn advice(convergence: Convergence, solver: KernelSolver, dtype: DtypeName) -> String {
    if convergence == Convergence::Converged {
        return convergence.advice().to_owned();
    }
    let iterations = match solver {
        KernelSolver::Cholesky => "raise --alpha",
        _ => "raise --rank, --max-iter or --alpha",
    };
    let wider = match dtype {
        DtypeName::F32 => ", use --dtype f64",
        DtypeName::F64 => "",
    };
    format!("{iterations}{wider}, or raise --tol")
}

/// Warns when the fit did not converge; whether that counts is for the user to say.
fn judge(model: &KernelModel, args: &KernelRidgeArgs, ui: &Ui) -> Exit {
    if model.converged() {
        return Exit::Success;
    }
    let report = model.report();
    ui.warn(format_args!(
        "NOT CONVERGED after {} iterations: the residual is {:.1e} of the targets, the tolerance is {:.1e}; {}",
        report.n_iter,
        report.residual_ratio,
        args.tol,
        advice(report.convergence, report.solver, args.source.dtype)
    ));
    if args.strict {
        Exit::NotConverged
    } else {
        Exit::Success
    }
}
