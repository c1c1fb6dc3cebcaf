//! `warpfuse predict`: model and data → predictions.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use super::args::{DtypeName, PredictArgs};
use super::exit::Exit;
use super::progress::Ui;
use super::{data, device, output};
use crate::io::Columns;
use crate::learning::{LinearModel, RegressionMetrics, regression_metrics};
use crate::matrix::{Dtype, Element};
use crate::ops::Number;

/// Applies a model.
pub(super) fn run(args: &PredictArgs, ui: &Ui) -> Result<Exit> {
    let model = LinearModel::load(&args.model)?;
    let dtype = match args.dtype {
        Some(DtypeName::F32) => Dtype::F32,
        Some(DtypeName::F64) => Dtype::F64,
        None => model.dtype(),
    };
    match dtype {
        Dtype::F32 => predict::<f32>(&model, args, ui),
        Dtype::F64 => predict::<f64>(&model, args, ui),
    }
}

fn predict<T: Number>(model: &LinearModel, args: &PredictArgs, ui: &Ui) -> Result<Exit> {
    if let Some(path) = &args.output {
        output::check_folder(path)?;
    }
    let device = device::open(args.device, ui)?;
    // A sparse file shows only columns that occur in it; the model knows how many there are.
    let columns = Columns::Exactly(model.coef().len());
    let data = data::load::<T>(&args.data, args.target.as_deref(), columns, &args.read, ui)?;
    let predictions = model.predict(&device, data.features)?;
    let metrics = data
        .targets
        .as_deref()
        .filter(|targets| !targets.is_empty())
        .map(|targets| score(targets, &predictions));
    if let Some(path) = &args.output {
        output::write_numbers(path, &predictions)?;
    }
    if args.json {
        output::print_json(&Summary::new(
            &predictions,
            metrics,
            &device.to_string(),
            args.output.as_deref(),
        ))?;
    } else if args.output.is_none() {
        output::print(output::lines(&predictions))?;
    }
    if let Some(RegressionMetrics { r2, rmse }) = metrics {
        ui.remark(format_args!(
            "R² {r2:.6}, RMSE {rmse:.6} on {} samples",
            predictions.len()
        ));
    }
    Ok(Exit::Success)
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Summary<'a> {
    rows: usize,
    device: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    predictions: Option<Vec<f64>>,
    output: Option<&'a Path>,
    r2: Option<f64>,
    rmse: Option<f64>,
}

impl<'a> Summary<'a> {
    fn new<T: Element>(
        predictions: &[T],
        metrics: Option<RegressionMetrics>,
        device: &'a str,
        output: Option<&'a Path>,
    ) -> Self {
        Summary {
            rows: predictions.len(),
            device,
            predictions: output.is_none().then(|| wide(predictions)),
            output,
            r2: metrics.map(|metrics| metrics.r2),
            rmse: metrics.map(|metrics| metrics.rmse),
        }
    }
}

fn score<T: Element>(targets: &[T], predictions: &[T]) -> RegressionMetrics {
    regression_metrics(&wide(targets), &wide(predictions))
}

fn wide<T: Element>(values: &[T]) -> Vec<f64> {
    values.iter().map(|value| value.to_f64()).collect()
}
