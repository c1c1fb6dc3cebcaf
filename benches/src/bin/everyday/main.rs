//! Fits of everyday problems that `benches/everyday/everyday.py` has written: `everyday FOLDER [DEVICE]`.
//!
//! Reads `problems.json` in the folder, and for each problem prints one JSON line: the least seconds of some fits, how the
//! fit ended, which solver it took, coefficients and intercepts. Reading is left out of the seconds; placing X is not.

mod problem;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use warpfuse::device::Device;
use warpfuse::learning::{FitOptions, Labels, Model, Targets};
use warpfuse::matrix::Features;

use problem::{Problem, Task};

/// Seconds that are spent on the fits of one problem, unless one takes longer.
const BUDGET: f64 = 0.7;
/// Fits of one problem at most, and at least.
const FITS: (usize, usize) = (15, 2);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().context("expected a folder")?);
    let device = match arguments.next().as_deref() {
        None | Some("cpu") => Device::cpu(),
        Some("auto") => Device::auto(),
        Some(other) => bail!("expected the device cpu or auto, found {other}"),
    };
    let text = std::fs::read(folder.join("problems.json")).context("reading problems.json")?;
    let problems: Vec<Problem> = serde_json::from_slice(&text).context("problems.json")?;
    for problem in &problems {
        let line = match measure(problem, &folder, &device) {
            Ok(line) => line,
            Err(error) => json!({ "name": problem.name, "failed": format!("{error:#}") }),
        };
        println!("{line}");
    }
    Ok(())
}

/// Fits until the budget is spent; the line of the fastest.
fn measure(problem: &Problem, folder: &std::path::Path, device: &Device) -> Result<Value> {
    let features = Arc::new(problem.features(folder)?);
    let targets = problem.targets(folder)?;
    if let Task::Kernel(params) = problem.task()? {
        let Features::Dense(x) = &*features else {
            bail!("expected dense features of a kernel ridge regression");
        };
        let (seconds, model) = fastest(|| Ok(params.fit(device, x.view(), &targets)?))?;
        let report = model.report();
        return Ok(json!({
            "name": problem.name, "seconds": seconds, "coef": [model.dual_coef()], "intercept": [0.0],
            "n_iter": report.n_iter, "convergence": report.convergence, "ratio": report.residual_ratio,
            "solver": report.solver.name(), "reason": report.solver_reason,
        }));
    }
    let (seconds, model) = fastest(|| linear(problem, &features, &targets, device))?;
    let report = model.report();
    Ok(json!({
        "name": problem.name, "seconds": seconds, "coef": model.coef(), "intercept": model.intercept(),
        "n_iter": report.n_iter, "convergence": report.convergence, "ratio": report.gradient_ratio,
        "gap": report.relative_gap, "solver": report.solver.name(), "reason": report.solver_reason,
        "inner": report.history.iter().map(|i| i.inner).sum::<usize>(),
    }))
}

fn linear(
    problem: &Problem,
    features: &Arc<Features<f64>>,
    targets: &[f64],
    device: &Device,
) -> Result<Model> {
    let Task::Linear(estimator) = problem.task()? else {
        bail!("expected a linear model");
    };
    let labels = Labels::Numbers(targets.to_vec());
    let given = match estimator.is_classifier() {
        true => Targets::Labels(&labels),
        false => Targets::Numbers(targets),
    };
    let options = FitOptions::default();
    Ok(estimator.fit_with(device, Arc::clone(features), given, options)?)
}

/// The least seconds, and what the last run gave.
fn fastest<R>(mut run: impl FnMut() -> Result<R>) -> Result<(f64, R)> {
    let begun = Instant::now();
    let mut least = f64::INFINITY;
    let mut fits = 0;
    loop {
        let start = Instant::now();
        let found = run()?;
        least = least.min(start.elapsed().as_secs_f64());
        fits += 1;
        let spent = begun.elapsed().as_secs_f64() > BUDGET;
        if fits >= FITS.0 || spent && (fits >= FITS.1 || least > BUDGET) {
            return Ok((least, found));
        }
    }
}
