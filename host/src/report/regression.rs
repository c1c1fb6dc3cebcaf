//! Residuals of regressions.

use warpfuse_figures::{Axis, Bar, Cell, Figure, Shape, Tone};

use super::number::Unit;
use super::page::{Section, Table, Value};
use crate::learning::{Group, Histogram, Pairs, RegressionDiagnostics, Spread};

/// Adds what residuals say.
pub(super) fn add(section: Section, stem: &str, found: &RegressionDiagnostics) -> Section {
    let figures = vec![
        observed(stem, &found.pairs),
        groups(stem, &found.groups),
        histogram(stem, &found.residual_histogram),
        quantiles(stem, &found.residual_quantiles),
        deviances(stem, &found.groups),
    ];
    sampled(section, found.rows, found.sampled_from)
        .figures(figures)
        .table(spreads(found))
        .table(table(&found.groups))
}

/// Says that figures are of some rows.
pub(super) fn sampled(section: Section, rows: usize, all: Option<usize>) -> Section {
    match all {
        None => section,
        Some(all) => section.note(format!(
            "The figures below are of {rows} of the {all} rows, spread evenly over them."
        )),
    }
}

fn observed(stem: &str, pairs: &Pairs) -> Figure {
    let figure = Figure::new(format!("{stem}-observed"), "Predicted beside observed")
        .summary("The target of each row by its prediction; a perfect model has all on the line.")
        .x(Axis::linear("predicted"))
        .y(Axis::linear("observed"));
    match pairs {
        Pairs::Points(points) => {
            let points: Vec<(f64, f64)> = points.iter().map(|[x, y]| (*x, *y)).collect();
            let finite = points
                .iter()
                .flat_map(|(x, y)| [*x, *y])
                .filter(|v| v.is_finite());
            let ends = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| {
                (a.min(v), b.max(v))
            });
            figure
                .line(
                    "as it should be",
                    Tone::Reference,
                    vec![(ends.0, ends.0), (ends.1, ends.1)],
                )
                .points("", Tone::First, points)
        }
        Pairs::Cells {
            predicted_edges: x,
            target_edges: y,
            counts,
        } => {
            let mut cells = Vec::new();
            for (row, counts) in counts.iter().enumerate() {
                for (column, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                    cells.push(Cell {
                        x: (x[column], x[column + 1]),
                        y: (y[row], y[row + 1]),
                        value: (*count as f64).sqrt(),
                        label: String::new(),
                    });
                }
            }
            let (low, high) = (x[0].max(y[0]), x[x.len() - 1].min(y[y.len() - 1]));
            figure
                .mark("rows, darker for more", Tone::First, Shape::Cells(cells))
                .line(
                    "as it should be",
                    Tone::Second,
                    vec![(low, low), (high, high)],
                )
        }
    }
}

fn groups(stem: &str, groups: &[Group]) -> Figure {
    let points: Vec<(f64, f64)> = groups
        .iter()
        .map(|group| {
            (
                group.mean_predicted,
                group.mean_target - group.mean_predicted,
            )
        })
        .collect();
    Figure::new(
        format!("{stem}-residuals"),
        "Mean residual by prediction, tenths of the rows",
    )
    .summary("A pattern means that something is missing from the model.")
    .x(Axis::linear("mean predicted"))
    .y(Axis::linear("mean residual"))
    .mark("", Tone::Reference, Shape::Level(0.0))
    .line("", Tone::First, points.clone())
    .points("", Tone::First, points)
}

fn histogram(stem: &str, found: &Histogram) -> Figure {
    let bar = |(ends, count): (&[f64], &u64)| Bar {
        from: ends[0],
        to: ends[1],
        value: *count as f64,
    };
    let bars = found.edges.windows(2).zip(&found.counts).map(bar).collect();
    Figure::new(format!("{stem}-histogram"), "Residuals, the middle 98 %")
        .summary("How many rows have a residual in each stretch.")
        .x(Axis::linear("residual"))
        .y(Axis::linear("rows"))
        .mark("", Tone::First, Shape::Bars(bars))
}

fn quantiles(stem: &str, points: &[[f64; 2]]) -> Figure {
    let ends = vec![(-2.6, -2.6), (2.6, 2.6)];
    let points = points.iter().map(|[x, y]| (*x, *y)).collect();
    Figure::new(
        format!("{stem}-quantiles"),
        "Quantiles of the residuals beside a normal distribution's",
    )
    .summary("Points on the line: residuals are normal. Points off it at the ends: heavy tails.")
    .x(Axis::linear("normal quantile"))
    .y(Axis::linear("residual over its deviation"))
    .line("normal", Tone::Reference, ends)
    .points("residuals", Tone::First, points)
}

fn deviances(stem: &str, groups: &[Group]) -> Figure {
    let values: Vec<f64> = groups.iter().map(|group| group.mean_deviance).collect();
    let names = (1..=groups.len()).map(|group| group.to_string());
    Figure::new(
        format!("{stem}-deviance"),
        "Mean deviance by tenth of the predictions",
    )
    .summary("Where the model fits worst.")
    .x(Axis::categories("tenth of the rows, by prediction", names))
    .y(Axis::linear("mean deviance"))
    .bars("", Tone::First, &values)
}

fn number(value: f64) -> Value {
    Value::Number(value, Unit::Plain)
}

fn spreads(found: &RegressionDiagnostics) -> Table {
    let heads = [
        "of",
        "least",
        "25 %",
        "median",
        "75 %",
        "greatest",
        "mean",
        "deviation",
    ];
    let mut table = Table::new("Where values lie", heads);
    let row = |name: &str, spread: &Spread| {
        let Spread {
            min,
            lower_quartile,
            median,
            upper_quartile,
            max,
            mean,
            deviation,
        } = *spread;
        let values = [
            min,
            lower_quartile,
            median,
            upper_quartile,
            max,
            mean,
            deviation,
        ];
        let mut row = vec![Value::from(name)];
        row.extend(values.map(number));
        row
    };
    table.rows.push(row("observed", &found.target));
    table.rows.push(row("predicted", &found.predicted));
    table.rows.push(row("residual", &found.residual));
    table
}

fn table(groups: &[Group]) -> Table {
    let heads = [
        "tenth",
        "rows",
        "mean predicted",
        "mean observed",
        "mean deviance",
    ];
    let mut table = Table::new("Groups of rows by prediction", heads);
    for (at, group) in groups.iter().enumerate() {
        table.rows.push(vec![
            (at + 1).to_string().into(),
            Value::Number(group.rows as f64, Unit::Count),
            number(group.mean_predicted),
            number(group.mean_target),
            number(group.mean_deviance),
        ]);
    }
    table
}
