//! `warpfuse evaluate`: model and data with known targets → figures.

use anyhow::{Context, Result};
use serde_json::Value;

use super::args::EvaluateArgs;
use super::exit::Exit;
use super::fitted::{figures, warn_undefined};
use super::predict::{dtype, task};
use super::progress::Ui;
use super::report::Listing;
use super::{data, device, output};
use crate::learning::{Evaluation, SavedModel};
use crate::matrix::Dtype;
use crate::ops::Number;

/// Scores a model.
pub(super) fn run(args: &EvaluateArgs, ui: &Ui) -> Result<Exit> {
    let model = SavedModel::load(&args.apply.model)?;
    match dtype(&args.compute, &model) {
        Dtype::F32 => evaluate::<f32>(&model, args, ui),
        Dtype::F64 => evaluate::<f64>(&model, args, ui),
    }
}

fn evaluate<T: Number>(model: &SavedModel, args: &EvaluateArgs, ui: &Ui) -> Result<Exit> {
    let device = device::open_for(args.compute.device, &args.apply.data, 1, ui)?;
    let (data, known) = data::load_known::<T>(
        &args.apply.data,
        args.apply.target.as_deref(),
        task(model),
        &args.apply.reading(model, &args.read)?,
        ui,
    )?;
    let rows = data.stats.rows;
    let weights = data::sample_weights(args.sample_weight.as_deref(), rows)?;
    let targets = known.targets();
    let evaluation = model.evaluate(&device, data.features, targets, weights.as_deref())?;
    warn_undefined(&evaluation, ui);
    if args.json {
        output::print_json(&to_json(&evaluation, model, rows)?)?;
    } else {
        output::print(listing(&evaluation, model, rows).to_string())?;
    }
    Ok(Exit::Success)
}

fn to_json(evaluation: &Evaluation, model: &SavedModel, rows: usize) -> Result<Value> {
    let mut all = serde_json::to_value(evaluation).context("cannot write the result as JSON")?;
    all["rows"] = rows.into();
    if let Some(classifier) = model.classifier() {
        all["classes"] = serde_json::to_value(classifier.classes())?;
    }
    Ok(all)
}

fn listing(evaluation: &Evaluation, model: &SavedModel, rows: usize) -> Listing {
    let mut lines = Listing::new();
    lines.line("samples", rows);
    for (name, value) in figures(evaluation) {
        lines.line(&name, value);
    }
    if let (Evaluation::Classification(summary), Some(classifier)) =
        (evaluation, model.classifier())
    {
        for (class, row) in summary.confusion.iter().enumerate() {
            let counts: Vec<String> = row.iter().map(f64::to_string).collect();
            let name = format!("{} taken for", classifier.classes().label(class));
            lines.line(&name, counts.join("  "));
        }
    }
    lines
}
