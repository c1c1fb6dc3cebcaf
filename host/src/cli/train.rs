//! `warpfuse train`: data → model.

use anyhow::Result;

use super::args::{DtypeName, LinregArgs, TrainArgs, Trainer};
use super::exit::Exit;
use super::progress::Ui;
use super::report::FitSummary;
use super::{data, device, output};
use crate::io::Columns;
use crate::learning::{Convergence, LinearModel, LinearRegression};
use crate::ops::{MatrixOptions, Number};

/// Trains what was asked for.
pub(super) fn run(args: &TrainArgs, ui: &Ui) -> Result<Exit> {
    match &args.trainer {
        Trainer::Linreg(args) => match args.dtype {
            DtypeName::F32 => linreg::<f32>(args, ui),
            DtypeName::F64 => linreg::<f64>(args, ui),
        },
    }
}

fn linreg<T: Number>(args: &LinregArgs, ui: &Ui) -> Result<Exit> {
    if let Some(path) = &args.output {
        output::check_folder(path)?;
    }
    let device = device::open(args.device, ui)?;
    let mut data = data::load::<T>(
        &args.data,
        args.target.as_deref(),
        Columns::Infer,
        &args.read,
        ui,
    )?;
    let targets = data.take_targets(&args.data)?;
    let bar = ui.iterations();
    let watch = |progress| bar.iteration(progress);
    let model = params(args).fit_watched(&device, data.features, &targets, watch)?;
    drop(bar);
    if let Some(path) = &args.output {
        model.save(path)?;
    }
    let device = device.to_string();
    let summary = FitSummary::new(
        &model,
        &data.stats,
        &device,
        data.seconds,
        args.output.as_deref(),
    );
    if args.json {
        output::print_json(&summary)?;
    } else {
        output::print(summary.to_string())?;
    }
    Ok(judge(&model, args, ui))
}

fn params(args: &LinregArgs) -> LinearRegression {
    let matrix = MatrixOptions {
        model: args.model.into(),
        ..MatrixOptions::default()
    };
    LinearRegression::params()
        .l2(args.l2)
        .tolerance(args.tol)
        .max_iter(args.max_iter.get())
        .fit_intercept(!args.no_intercept)
        .matrix_options(matrix)
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
    if args.strict {
        Exit::NotConverged
    } else {
        Exit::Success
    }
}
