//! `train linreg`.

use anyhow::Result;

use crate::cli::args::{DtypeName, LinregArgs};
use crate::cli::exit::Exit;
use crate::cli::progress::Ui;
use crate::cli::report::FitSummary;
use crate::cli::{data, device, output};
use crate::io::Columns;
use crate::learning::{Convergence, LinearModel, LinearRegression};
use crate::ops::Number;

/// Fits, saves, reports.
pub(super) fn run(args: &LinregArgs, ui: &Ui) -> Result<Exit> {
    match args.source.dtype {
        DtypeName::F32 => fit::<f32>(args, ui),
        DtypeName::F64 => fit::<f64>(args, ui),
    }
}

fn fit<T: Number>(args: &LinregArgs, ui: &Ui) -> Result<Exit> {
    let LinregArgs {
        source, outcome, ..
    } = args;
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
    let model = params(args).fit_watched(&device, data.features, &targets, watch)?;
    drop(bar);
    if let Some(path) = saved {
        model.save(path)?;
    }
    let device = device.to_string();
    let summary = FitSummary::new(&model, &data.stats, &device, data.seconds, saved);
    if outcome.json {
        output::print_json(&summary)?;
    } else {
        output::print(summary.to_string())?;
    }
    Ok(judge(&model, args, ui))
}

fn params(args: &LinregArgs) -> LinearRegression {
    LinearRegression::params()
        .l2(args.l2)
        .tolerance(args.tol)
        .max_iter(args.max_iter.get())
        .fit_intercept(!args.no_intercept)
        .matrix_options(args.outcome.matrix_options())
}

/// Warns when the fit did not converge; whether that counts is for the user to say.
fn judge(model: &LinearModel, args: &LinregArgs, ui: &Ui) -> Exit {
    if model.converged() {
        return Exit::Success;
    }
    let report = model.report();
    let advice = match report.convergence {
        Convergence::Singular => {
            "the columns are linearly dependent to working precision: use --l2, or accept this fit"
        }
        _ => "scale the features, raise --max-iter, or raise --tol",
    };
    ui.warn(format_args!(
        "NOT CONVERGED after {} iterations: the gradient is {:.1e} of what it was, asked for was {:.1e}; {advice}",
        report.n_iter, report.residual_ratio, args.tol
    ));
    if args.outcome.strict {
        Exit::NotConverged
    } else {
        Exit::Success
    }
}
