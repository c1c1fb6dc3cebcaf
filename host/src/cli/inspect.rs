//! `warpfuse inspect`: a model file → what is in it; two of them → how they differ.

mod diff;
mod page;

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::args::InspectArgs;
use super::exit::Exit;
use super::fitted::{coefficient_name, verdict};
use super::output;
use super::report::{Listing, bytes, figure, largest, seconds};
use crate::learning::{Classifier, KernelModel, Model, SavedModel};
use crate::matrix::{ColumnKind, MissingCategory, Schema, TableColumn};

/// Shows one model, or the differences of two.
pub(super) fn run(args: &InspectArgs) -> Result<Exit> {
    let model = SavedModel::load(&args.model)?;
    if let Some(other) = &args.diff {
        let other = (other.as_path(), SavedModel::load(other)?);
        return diff::run(args, (&args.model, model), other);
    }
    if let Some(place) = &args.report {
        let page = page::of_model(&model, &args.model, args.top)?;
        output::write_file(place, page.to_html().as_bytes())?;
    }
    if args.json {
        output::print_json(&to_json(&model)?)?;
    } else {
        output::print(text(&model, &args.model, args.top)?)?;
    }
    Ok(Exit::Success)
}

/// Everything that the file holds: one object.
fn to_json(model: &SavedModel) -> Result<Value> {
    let mut all = match model {
        SavedModel::Linear(model) => {
            json!({
                "kind": if model.classifier().is_some() { "classifier" } else { "regressor" },
                "params": params(model)?,
                "report": value(model.report())?,
                "converged": model.converged(),
                "coef": model.coef(),
                "intercept": model.intercept(),
                "classes": model.classifier().map(Classifier::classes).map(value).transpose()?,
            })
        }
        SavedModel::Kernel(model) => json!({
            "kind": "kernel-ridge",
            "params": kernel_params(model),
            "report": value(model.report())?,
            "converged": model.converged(),
            "points": model.points().nrows(),
            "dual_coef": model.dual_coef(),
        }),
    };
    all["dtype"] = model.dtype().to_string().into();
    all["cols"] = model.cols().into();
    all["feature_names"] = json!(model.schema().feature_names(model.cols()));
    all["schema"] = value(model.schema())?;
    Ok(all)
}

fn value(part: &impl serde::Serialize) -> Result<Value> {
    serde_json::to_value(part).context("cannot write the model as JSON")
}

/// The estimator and its parameters.
fn params(model: &Model) -> Result<Value> {
    match model {
        Model::Regressor(model) => value(model.params()),
        Model::Classifier(model) => value(model.params()),
    }
}

fn kernel_params(model: &KernelModel) -> Value {
    json!({
        "estimator": "kernel_ridge",
        "kernel": model.kernel().function().name(),
        "length_scale": model.kernel().length_scale(),
        "alpha": model.alpha(),
    })
}

fn text(model: &SavedModel, path: &Path, top: usize) -> Result<String> {
    let mut lines = Listing::new();
    match model {
        SavedModel::Linear(model) => {
            add_params(&mut lines, &params(model)?);
            add_classes(&mut lines, model);
            add_schema(&mut lines, model.schema(), model.cols());
            add_report(&mut lines, model);
            add_coefficients(&mut lines, model, top);
        }
        SavedModel::Kernel(model) => {
            add_params(&mut lines, &kernel_params(model));
            add_schema(&mut lines, model.schema(), model.points().ncols());
            add_kernel(&mut lines, model);
        }
    }
    Ok(format!("{} ({})\n{lines}", path.display(), model.dtype()))
}

/// The parameters, nested ones with their path.
fn add_params(lines: &mut Listing, params: &Value) {
    for (name, value) in flat(params) {
        lines.line(&name, value);
    }
}

/// Names and values of nested objects.
fn flat(value: &Value) -> Vec<(String, String)> {
    let Value::Object(fields) = value else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for (name, value) in fields {
        match value {
            Value::Object(_) => all.extend(
                flat(value)
                    .into_iter()
                    .map(|(inner, value)| (format!("{name}.{inner}"), value)),
            ),
            Value::String(text) => all.push((name.clone(), text.clone())),
            other => all.push((name.clone(), other.to_string())),
        }
    }
    all
}

fn add_classes(lines: &mut Listing, model: &Model) {
    if let Some(classes) = model.classifier().map(Classifier::classes) {
        lines.line("classes", format_args!("{}: {classes}", classes.len()));
    }
}

fn add_schema(lines: &mut Listing, schema: &Schema, cols: usize) {
    lines.line("features", cols);
    if let Some(format) = &schema.format {
        lines.line("trained on", format_args!("a file of format {format}"));
    }
    if let Some(base) = schema.index_base {
        lines.line("index base", base);
    }
    if let Some(target) = &schema.target {
        lines.line("target", target);
    }
    let Some(table) = &schema.table else { return };
    for column in table.columns.iter().filter(|_| !table.is_plain()) {
        lines.line(
            &format!("column {}", column.label().unwrap_or_default()),
            told(column),
        );
    }
    if table.buckets > 0 {
        lines.line("hashed into", format_args!("{} columns", table.buckets));
    }
    if !table.dropped.is_empty() {
        lines.line("left out", table.dropped.join(", "));
    }
}

/// What a column of a table became.
fn told(column: &TableColumn) -> String {
    match &column.kind {
        ColumnKind::Number { fill: None, .. } => "a number".to_owned(),
        ColumnKind::Number {
            fill: Some(fill),
            indicator,
        } => {
            let further = if *indicator {
                ", and a column says so"
            } else {
                ""
            };
            format!("a number; missing ones are {}{further}", figure(*fill))
        }
        ColumnKind::Category { levels, missing } => {
            const SHOWN: usize = 5;
            let shown = levels
                .iter()
                .take(SHOWN)
                .cloned()
                .collect::<Vec<_>>()
                .join(", ");
            let more = if levels.len() > SHOWN { ", ..." } else { "" };
            let own = if *missing == MissingCategory::OwnColumn {
                ", or missing"
            } else {
                ""
            };
            format!("{} categories: {shown}{more}{own}", levels.len())
        }
        ColumnKind::Hashed { .. } => "text, hashed".to_owned(),
    }
}

fn add_report(lines: &mut Listing, model: &Model) {
    let report = model.report();
    let verdict = verdict(report.convergence);
    lines
        .line("training rows", report.rows)
        .line("stored entries", report.nnz)
        .line("solver", report.solver.name())
        .line("iterations", format_args!("{}, {verdict}", report.n_iter))
        .line("objective", figure(report.objective))
        .line(
            "gradient norm",
            format_args!("{:.1e} of the first", report.gradient_ratio),
        )
        .line("device", &report.device)
        .line("time", seconds(report.seconds))
        .line("peak device memory", bytes(report.peak_device_bytes));
}

fn add_kernel(lines: &mut Listing, model: &KernelModel) {
    let report = model.report();
    let verdict = if model.converged() {
        "converged"
    } else {
        "NOT CONVERGED"
    };
    lines
        .line("training rows", model.points().nrows())
        .line("solver", report.solver.name())
        .line("iterations", format_args!("{}, {verdict}", report.n_iter))
        .line("device", &report.device)
        .line("time", seconds(report.seconds));
}

/// The largest coefficients of each linear predictor.
fn add_coefficients(lines: &mut Listing, model: &Model, top: usize) {
    let (all, intercepts) = (model.coef(), model.intercept());
    for (class, (coef, intercept)) in all.iter().zip(intercepts).enumerate() {
        let of = match model.classifier() {
            Some(classifier) if all.len() > 1 => {
                format!("{}: ", classifier.classes().label(class))
            }
            _ => String::new(),
        };
        lines.line(&format!("{of}intercept"), figure(intercept));
        for (column, value) in largest(coef, top) {
            let name = coefficient_name(model.schema(), column);
            lines.line(&format!("{of}{name}"), figure(value));
        }
        if coef.len() > top {
            lines.line(
                "",
                format_args!("and {} smaller ones (--top)", coef.len() - top),
            );
        }
    }
}
