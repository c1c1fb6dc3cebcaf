//! `warpfuse evaluate`: model and data with known targets → figures.

use anyhow::{Context, Result};
use serde_json::Value;

use super::applied::Applied;
use super::args::EvaluateArgs;
use super::exit::Exit;
use super::fitted::{figures, warn_undefined};
use super::predict::{dtype, task};
use super::progress::Ui;
use super::report::Listing;
use super::{data, device, output, pages};
use crate::device::Phases;
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
    pages::check(&args.report)?;
    let reading = args.apply.reading(model, &args.read)?;
    let mut phases = Phases::default();
    let place = (args.compute.device, args.apply.data.as_path(), 1);
    let (device, (data, known)) = device::open_beside(place, ui, &mut phases, || {
        data::load_known::<T>(
            &args.apply.data,
            args.apply.target.as_deref(),
            task(model),
            &reading,
            ui,
        )
    })?;
    let rows = data.stats.rows;
    let weights = data::sample_weights(args.sample_weight.as_deref(), rows)?;
    let mut applied = Applied {
        model,
        file: &args.apply.model,
        source: &args.apply.data,
        title: "Evaluation",
        device: &device,
        args: &args.report,
        outcome: None,
        phases,
    };
    let targets = (known.targets(), weights.as_deref());
    let (evaluation, details) = applied.evaluate(&data, targets, ui)?;
    warn_undefined(&evaluation, ui);
    if args.json {
        let mut all = to_json(&evaluation, model, rows)?;
        if let (Value::Object(all), Some(details)) = (&mut all, &details) {
            pages::extend(all, details)?;
        }
        output::print_json(&all)?;
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
