//! `train linreg` and `train ridge`.

use anyhow::Result;

use crate::cli::args::{DtypeName, LinregArgs, OutcomeArgs, RidgeArgs, SourceArgs};
use crate::cli::exit::Exit;
use crate::cli::progress::Ui;
use crate::cli::report::FitSummary;
use crate::cli::{data, device, output};
use crate::io::Columns;
use crate::learning::{Convergence, LinearModel, LinearRegression};
use crate::ops::{MatrixOptions, Number};

/// Linear regression as meant.
pub(super) struct Linear<'a> {
    name: &'static str,
    source: &'a SourceArgs,
    outcome: &'a OutcomeArgs,
    params: LinearRegression,
    tolerance: f64,
}

impl<'a> From<&'a LinregArgs> for Linear<'a> {
    fn from(args: &'a LinregArgs) -> Self {
        let params = LinearRegression::params()
            .l2(args.l2)
            .tolerance(args.tol)
            .max_iter(args.max_iter.get())
            .fit_intercept(!args.no_intercept);
        Linear::new("linreg", &args.source, &args.outcome, params, args.tol)
    }
}

impl<'a> From<&'a RidgeArgs> for Linear<'a> {
    fn from(args: &'a RidgeArgs) -> Self {
        let params = LinearRegression::params()
            .l2(args.alpha)
            .tolerance(args.tol)
            .max_iter(args.max_iter.get())
            .fit_intercept(!args.no_intercept);
        Linear::new("ridge", &args.source, &args.outcome, params, args.tol)
    }
}

impl<'a> Linear<'a> {
    fn new(
        name: &'static str,
        source: &'a SourceArgs,
        outcome: &'a OutcomeArgs,
        params: LinearRegression,
        tolerance: f64,
    ) -> Self {
        let matrix = MatrixOptions {
            model: outcome.model.into(),
            ..MatrixOptions::default()
        };
        Linear {
            name,
            source,
            outcome,
            params: params.matrix_options(matrix),
            tolerance,
        }
    }
}

/// Fits, saves, reports.
pub(super) fn run(meant: &Linear<'_>, ui: &Ui) -> Result<Exit> {
    match meant.source.dtype {
        DtypeName::F32 => fit::<f32>(meant, ui),
        DtypeName::F64 => fit::<f64>(meant, ui),
    }
}

fn fit<T: Number>(meant: &Linear<'_>, ui: &Ui) -> Result<Exit> {
    let Linear {
        source, outcome, ..
    } = meant;
    let saved = outcome.output.as_deref();
    if let Some(path) = saved {
        output::check_folder(path)?;
    }
    let device = device::open(source.device, ui)?;
    let target = source.target.as_deref();
    let mut data = data::load::<T>(&source.data, target, Columns::Infer, &outcome.read, ui)?;
    let targets = data.take_targets(&source.data)?;
    let bar = ui.iterations("gradient");
    let watch = |progress| bar.iteration(progress);
    let model = meant
        .params
        .fit_watched(&device, data.features, &targets, watch)?;
    drop(bar);
    if let Some(path) = saved {
        model.save(path)?;
    }
    let device = device.to_string();
    let summary = FitSummary::new(
        meant.name,
        &model,
        &data.stats,
        &device,
        data.seconds,
        saved,
    );
    if outcome.json {
        output::print_json(&summary)?;
    } else {
        output::print(summary.to_string())?;
    }
    Ok(judge(&model, meant, ui))
}

/// Warns when the fit did not converge; whether that counts is for the user to say.
fn judge(model: &LinearModel, meant: &Linear<'_>, ui: &Ui) -> Exit {
    if model.converged() {
        return Exit::Success;
    }
    let report = model.report();
    let advice = match (report.convergence, meant.name) {
        (Convergence::Singular, "ridge") => {
            "the columns are linearly dependent to working precision: raise --alpha, or accept this fit"
        }
        (Convergence::Singular, _) => {
            "the columns are linearly dependent to working precision: use --l2, or accept this fit"
        }
        _ => "scale the features, raise --max-iter, or raise --tol",
    };
    ui.warn(format_args!(
        "NOT CONVERGED after {} iterations: the gradient is {:.1e} of what it was, asked for was {:.1e}; {advice}",
        report.n_iter, report.residual_ratio, meant.tolerance
    ));
    if meant.outcome.strict {
        Exit::NotConverged
    } else {
        Exit::Success
    }
}
