//! Curves of classifiers.

use warpfuse_figures::{Axis, Cell, Figure, Shape, Tone};

use super::number::{Unit, shown};
use super::page::{Section, Table, Value};
use super::regression::sampled;
use crate::learning::metrics::ClassificationSummary;
use crate::learning::{ClassCurves, ClassificationDiagnostics};

/// Classes that a figure of the confusion matrix has room for.
const DRAWN: usize = 12;
/// Pairs of classes in the table of a larger one.
const LISTED: usize = 15;

/// Adds confusion, curves and calibration.
pub(super) fn add(
    section: Section,
    stem: &str,
    summary: &ClassificationSummary,
    classes: &[String],
    found: Option<&ClassificationDiagnostics>,
) -> Section {
    let mut figures = Vec::new();
    if classes.len() <= DRAWN {
        figures.push(confusion(stem, summary, classes));
    }
    let Some(found) = found else {
        return section.figures(figures);
    };
    let with_points: Vec<&ClassCurves> = found
        .curves
        .iter()
        .filter(|one| !one.roc.is_empty())
        .collect();
    if !with_points.is_empty() {
        figures.push(roc(stem, &with_points));
        figures.push(precision_recall(stem, &with_points));
    }
    if found.curves.iter().any(|one| !one.calibration.is_empty()) {
        figures.push(calibration(stem, &found.curves));
    }
    if let [one] = found.curves.as_slice() {
        figures.extend(histogram(stem, one));
    }
    let section = sampled(section, found.rows, found.sampled_from)
        .figures(figures)
        .table(of_classes(found, classes));
    match classes.len() {
        count if count > DRAWN => section.table(confused(summary, classes)),
        _ => section,
    }
}

fn confusion(stem: &str, summary: &ClassificationSummary, classes: &[String]) -> Figure {
    let mut cells = Vec::new();
    for (actual, row) in summary.confusion.iter().enumerate() {
        let total: f64 = row.iter().sum();
        for (predicted, weight) in row.iter().enumerate() {
            let (x, y) = (predicted as f64, actual as f64);
            cells.push(Cell {
                x: (x - 0.5, x + 0.5),
                y: (y - 0.5, y + 0.5),
                value: if total > 0.0 { weight / total } else { 0.0 },
                label: shown(*weight, Unit::Count),
            });
        }
    }
    Figure::new(
        format!("{stem}-confusion"),
        "Confusion: rows of each class by what they were taken for",
    )
    .summary("Colours are shares of the rows of a class.")
    .x(Axis::categories("taken for", classes))
    .y(Axis::categories("class", classes))
    .mark("", Tone::First, Shape::Cells(cells))
}

fn named(curves: &[&ClassCurves], one: &ClassCurves, figure: Option<f64>) -> String {
    let figure = figure.map_or("not defined".to_owned(), |figure| format!("{figure:.3}"));
    match curves.len() {
        1 => format!("area {figure}"),
        _ => format!("{}: {figure}", one.class),
    }
}

fn pairs(points: &[[f64; 2]]) -> Vec<(f64, f64)> {
    points.iter().map(|[x, y]| (*x, *y)).collect()
}

fn roc(stem: &str, curves: &[&ClassCurves]) -> Figure {
    let chance = vec![(0.0, 0.0), (1.0, 1.0)];
    let figure = Figure::new(format!("{stem}-roc"), "ROC curve")
        .summary("True positives by false positives over all thresholds; the area under a curve is in the legend.")
        .x(Axis::linear("false positive rate").range(0.0, 1.0))
        .y(Axis::linear("true positive rate").range(0.0, 1.0))
        .line("chance", Tone::Reference, chance);
    curves
        .iter()
        .enumerate()
        .fold(figure, |figure, (number, one)| {
            figure.line(
                named(curves, one, one.auc),
                Tone::of(number),
                pairs(&one.roc),
            )
        })
}

fn precision_recall(stem: &str, curves: &[&ClassCurves]) -> Figure {
    let figure = Figure::new(format!("{stem}-precision-recall"), "Precision and recall")
        .summary("Precision by recall over all thresholds; the mean precision is in the legend.")
        .x(Axis::linear("recall").range(0.0, 1.0))
        .y(Axis::linear("precision").range(0.0, 1.0));
    curves
        .iter()
        .enumerate()
        .fold(figure, |figure, (number, one)| {
            let name = named(curves, one, one.average_precision).replace("area", "mean precision");
            // Precision holds until the next higher recall.
            figure.steps(
                name,
                Tone::of(number),
                pairs(&one.precision_recall).into_iter().rev().collect(),
            )
        })
}

fn calibration(stem: &str, curves: &[ClassCurves]) -> Figure {
    let figure = Figure::new(format!("{stem}-calibration"), "Calibration")
        .summary("Observed share of a class by its mean predicted probability, in ten stretches.")
        .x(Axis::linear("mean predicted probability").range(0.0, 1.0))
        .y(Axis::linear("share of positives").range(0.0, 1.0))
        .line(
            "as it should be",
            Tone::Reference,
            vec![(0.0, 0.0), (1.0, 1.0)],
        );
    curves
        .iter()
        .enumerate()
        .fold(figure, |figure, (number, one)| {
            let points: Vec<(f64, f64)> = one
                .calibration
                .iter()
                .map(|bin| (bin.mean_predicted, bin.fraction_of_positives))
                .collect();
            let name = if curves.len() == 1 {
                "model"
            } else {
                one.class.as_str()
            };
            figure
                .line(name, Tone::of(number), points.clone())
                .points("", Tone::of(number), points)
        })
}

fn histogram(stem: &str, one: &ClassCurves) -> Option<Figure> {
    let spread = one.histogram.as_ref()?;
    let steps = |values: &[f64]| -> Vec<(f64, f64)> {
        let width = 1.0 / values.len() as f64;
        let mut points: Vec<(f64, f64)> = values
            .iter()
            .enumerate()
            .map(|(bin, value)| (bin as f64 * width, *value))
            .collect();
        points.extend(values.last().map(|last| (1.0, *last)));
        points
    };
    Some(
        Figure::new(
            format!("{stem}-probabilities"),
            format!("Probabilities of {}", one.class),
        )
        .summary("How predicted probabilities are spread, for rows of the class and for others.")
        .x(Axis::linear("predicted probability").range(0.0, 1.0))
        .y(Axis::linear("rows"))
        .steps(
            format!("rows of {}", one.class),
            Tone::First,
            steps(&spread.positives),
        )
        .steps("other rows", Tone::Second, steps(&spread.negatives)),
    )
}

fn of_classes(found: &ClassificationDiagnostics, classes: &[String]) -> Table {
    let heads = [
        "class",
        "rows",
        "share",
        "AUC",
        "mean precision",
        "Brier score",
    ];
    let mut table = Table::new("Classes, each against the others", heads);
    let total: f64 = found.class_weights.iter().sum();
    let optional = |value: Option<f64>| match value {
        Some(value) => Value::Number(value, Unit::Plain),
        None => Value::Text("–".to_owned()),
    };
    for (class, weight) in classes.iter().zip(&found.class_weights).take(LISTED) {
        let curves = found.curves.iter().find(|one| one.class == *class);
        let share = match total > 0.0 {
            true => Value::Text(shown(weight / total, Unit::Share)),
            false => Value::Text("–".to_owned()),
        };
        table.rows.push(vec![
            class.clone().into(),
            Value::Number(*weight, Unit::Count),
            share,
            optional(curves.and_then(|one| one.auc)),
            optional(curves.and_then(|one| one.average_precision)),
            optional(curves.and_then(|one| one.brier)),
        ]);
    }
    table
}

/// The pairs of classes that are confused most.
fn confused(summary: &ClassificationSummary, classes: &[String]) -> Table {
    let mut pairs: Vec<(usize, usize, f64)> = Vec::new();
    for (actual, row) in summary.confusion.iter().enumerate() {
        let wrong = row
            .iter()
            .enumerate()
            .filter(|(predicted, weight)| *predicted != actual && **weight > 0.0);
        pairs.extend(wrong.map(|(predicted, weight)| (actual, predicted, *weight)));
    }
    pairs.sort_by(|a, b| b.2.total_cmp(&a.2).then((a.0, a.1).cmp(&(b.0, b.1))));
    let mut table = Table::new(
        "Classes that are confused most",
        ["class", "taken for", "rows"],
    );
    for (actual, predicted, weight) in pairs.into_iter().take(LISTED) {
        let name = |class: usize| Value::Text(classes[class].clone());
        table.rows.push(vec![
            name(actual),
            name(predicted),
            Value::Number(weight, Unit::Count),
        ]);
    }
    table
}
