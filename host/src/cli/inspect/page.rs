//! A model, and how two differ, as pages.

use std::path::Path;

use anyhow::Result;

use super::diff::{Change, Difference};
use super::{flat, kernel_params, params, told};
use crate::cli::fitted::{coefficient_name, verdict};
use crate::cli::report::largest;
use crate::learning::{Classifier, Convergence, KernelModel, Model, SavedModel};
use crate::matrix::{Schema, TableEncoding};
use crate::report::figures::{Axis, Figure, Tone};
use crate::report::{Fact, Mood, Report, Section, Table, Unit, Value, course_facts};

/// Coefficients in a figure.
const DRAWN: usize = 15;
/// Classes with a column in the table.
const CLASSES: usize = 5;

/// The page of one model.
pub(super) fn of_model(model: &SavedModel, path: &Path, top: usize) -> Result<Report> {
    let name = file_name(path);
    let mut report = Report::new(
        format!("Model {name}"),
        format!("warpfuse inspect {name} --report {name}.html"),
    );
    report.subtitle = format!("{} features, {}", model.cols(), model.dtype());
    match model {
        SavedModel::Linear(linear) => {
            judge(
                &mut report,
                linear.report().convergence,
                linear.report().n_iter,
            );
            report.sections.push(coefficients(linear, top));
            report.sections.push(parameters(&flat(&params(linear)?)));
            let (rows, entries) = (linear.report().rows, Some(linear.report().nnz));
            report
                .sections
                .push(data(linear.schema(), (rows, model.cols(), entries)));
            report.sections.push(course(linear));
        }
        SavedModel::Kernel(kernel) => {
            let ended = match kernel.converged() {
                true => Convergence::Converged,
                false => Convergence::IterationLimit,
            };
            judge(&mut report, ended, kernel.report().n_iter);
            report
                .sections
                .push(parameters(&flat(&kernel_params(kernel))));
            let rows = kernel.points().nrows();
            report
                .sections
                .push(data(kernel.schema(), (rows, model.cols(), None)));
            report.sections.push(kernel_course(kernel));
        }
    }
    Ok(report)
}

/// The page of what differs between two.
pub(super) fn of_difference(
    (first, second): (&Path, &Path),
    facts: &[Difference],
    changes: &[Change],
    top: usize,
) -> Report {
    let (first, second) = (file_name(first), file_name(second));
    let command = format!("warpfuse inspect {first} --diff {second} --report difference.html");
    let mut report = Report::new(format!("{first} and {second}"), command);
    report.subtitle = match facts.is_empty() && changes.is_empty() {
        true => "they do not differ".to_owned(),
        false => format!(
            "{} facts and {} coefficients differ",
            facts.len(),
            changes.len()
        ),
    };
    let mut table = Table::new(
        "Parameters, data and ends of the fits",
        ["", &first, &second],
    );
    let row = |fact: &Difference| {
        vec![
            fact.name.clone().into(),
            fact.first.clone().into(),
            fact.second.clone().into(),
        ]
    };
    table.rows = facts.iter().map(row).collect();
    report.sections.push(Section::new("Facts").table(table));
    let mut table = Table::new("The largest changes", ["", &first, &second]);
    let side = |value: Option<f64>| {
        value.map_or("absent".into(), |value| Value::Number(value, Unit::Plain))
    };
    let row = |change: &Change| {
        vec![
            change.name.clone().into(),
            side(change.first),
            side(change.second),
        ]
    };
    table.rows = changes.iter().take(top).map(row).collect();
    report
        .sections
        .push(Section::new("Coefficients").table(table));
    report
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(
        || path.display().to_string(),
        |name| name.to_string_lossy().into_owned(),
    )
}

fn judge(report: &mut Report, ended: Convergence, n_iter: usize) {
    let mood = match ended {
        Convergence::EarlyStopped => Mood::Good,
        ended if ended.is_success() => Mood::Good,
        _ => Mood::Bad,
    };
    let text = format!("After {n_iter} iterations: {}.", ended.advice());
    let title = match verdict(ended) {
        "converged" => "Converged",
        "stopped early" => "Stopped early",
        _ => "Not converged",
    };
    report.verdict(mood, title, text);
}

/// The largest coefficients, in a figure and a table.
fn coefficients(model: &Model, top: usize) -> Section {
    let (all, intercepts) = (model.coef(), model.intercept());
    let size = |column: usize| {
        all.iter()
            .fold(0.0_f64, |most, coef| most.max(coef[column].abs()))
    };
    let sizes: Vec<f64> = (0..model.cols()).map(size).collect();
    let columns: Vec<usize> = largest(&sizes, top)
        .into_iter()
        .map(|(column, _)| column)
        .collect();
    let name = |column: usize| coefficient_name(model.schema(), column);
    let label = |class: usize| match model.classifier() {
        Some(classifier) if all.len() > 1 => classifier.classes().label(class),
        _ => "coefficient".to_owned(),
    };
    let classes = all.len().min(CLASSES);
    let heads = ["column".to_owned()]
        .into_iter()
        .chain((0..classes).map(label));
    let mut table = Table::new("The largest coefficients", heads);
    let number = |value: f64| Value::Number(value, Unit::Plain);
    for &column in &columns {
        let values = all.iter().take(classes).map(|coef| number(coef[column]));
        table
            .rows
            .push([name(column).into()].into_iter().chain(values).collect());
    }
    let values = intercepts.iter().take(classes).map(|value| number(*value));
    table
        .rows
        .push(["intercept".into()].into_iter().chain(values).collect());
    let mut section = Section::new("Coefficients");
    if all.len() == 1 && !columns.is_empty() {
        let drawn = &columns[..columns.len().min(DRAWN)];
        let values: Vec<f64> = drawn.iter().map(|column| all[0][*column]).collect();
        let figure = Figure::new("coefficients", "The largest coefficients")
            .summary("Coefficients in the units of the data.")
            .x(Axis::linear("coefficient"))
            .y(Axis::categories(
                "",
                drawn.iter().map(|column| name(*column)),
            ))
            .bars("", Tone::First, &values);
        section = section.figures(vec![figure]);
    }
    let rest = model.cols().saturating_sub(columns.len());
    let section = section.table(table);
    match rest {
        0 => section,
        rest => section.note(format!("And {rest} columns with smaller ones (--top).")),
    }
}

fn parameters(params: &[(String, String)]) -> Section {
    let fact = |(name, value): &(String, String)| Fact::text(name.as_str(), value.as_str());
    Section::new("Parameters").facts(params.iter().map(fact).collect())
}

/// What is known about the data that were learnt from.
fn data(schema: &Schema, (rows, cols, entries): (usize, usize, Option<u64>)) -> Section {
    let mut facts = vec![
        Fact::count("rows", rows as u64),
        Fact::count("features", cols as u64),
    ];
    facts.extend(entries.map(|entries| Fact::count("stored entries", entries)));
    let texts = [("format", &schema.format), ("target", &schema.target)];
    for (name, value) in texts {
        facts.extend(value.as_deref().map(|value| Fact::text(name, value)));
    }
    facts.extend(
        schema
            .index_base
            .map(|base| Fact::count("index base", u64::from(base))),
    );
    let section = Section::new("Training data").facts(facts);
    match &schema.table {
        Some(encoding) if !encoding.is_plain() => section.table(columns(encoding)),
        _ => section,
    }
}

/// What became of the columns of a table.
fn columns(encoding: &TableEncoding) -> Table {
    let mut table = Table::new("Columns of the table", ["column", "became"]);
    for column in &encoding.columns {
        let name = column.label().unwrap_or_default();
        table.rows.push(vec![name.into(), told(column).into()]);
    }
    let dropped = encoding.dropped.iter();
    table
        .rows
        .extend(dropped.map(|name| vec![name.clone().into(), "left out".into()]));
    table
}

fn course(model: &Model) -> Section {
    let report = model.report();
    let mut facts = Vec::from(course_facts(report));
    facts.push(Fact::text("device", report.device.as_str()));
    if let Some(classes) = model.classifier().map(Classifier::classes) {
        facts.push(Fact::text("classes", classes.to_string()));
    }
    let section = Section::new("Fit").facts(facts);
    let history: Vec<(f64, f64)> = report
        .history
        .iter()
        .zip(1..)
        .map(|(one, n)| (f64::from(n), one.objective))
        .collect();
    if history.len() < 2 {
        return section;
    }
    let figure = Figure::new("objective", "Objective by iteration")
        .summary("The objective after each outer iteration.")
        .x(Axis::linear("iteration"))
        .y(Axis::linear("objective"))
        .line("", Tone::First, history);
    section.figures(vec![figure])
}

fn kernel_course(model: &KernelModel) -> Section {
    let report = model.report();
    Section::new("Fit").facts(vec![
        Fact::text("solver", report.solver.name()),
        Fact::count("iterations", report.n_iter as u64),
        Fact::number(
            "residual, of the targets",
            report.residual_ratio,
            Unit::Plain,
        ),
        Fact::text("device", report.device.as_str()),
    ])
}
