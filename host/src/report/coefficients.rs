//! The coefficients that matter, with their names, signs and errors.

use serde::Serialize;
use warpfuse_figures::{Axis, Figure, Interval, Shape, Tone};

use super::data::column_name;
use super::number::{Unit, shown};
use super::page::{Mood, Report, Section, Table, Value};
use crate::learning::{Estimate, Inference, Model};
use crate::matrix::{ColumnMoments, Schema};

/// Coefficients in the table, and in the figure.
const LISTED: usize = 30;
const DRAWN: usize = 15;
/// Classes with a column in the table.
const CLASSES: usize = 5;

/// The largest coefficients of a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Coefficients {
    /// Coefficients that are not 0, of all classes.
    pub nonzero: usize,
    /// Coefficients, of all classes.
    pub count: usize,
    /// What the values of [`Coefficient`] belong to: one class or none, or several.
    pub classes: Vec<String>,
    /// Of each class.
    pub intercepts: Vec<f64>,
    /// The largest ones by their effect, the largest first.
    pub largest: Vec<Coefficient>,
}

/// A column's coefficients.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Coefficient {
    /// The column, counted from 0.
    pub column: usize,
    /// Its name.
    pub name: String,
    /// Of each class, or one.
    pub coef: Vec<f64>,
    /// The coefficient that is largest, times the standard deviation of the column: how far one deviation moves the
    /// linear predictor.
    pub effect: f64,
    /// How sure the coefficient is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
}

impl Coefficients {
    /// Of a model, and the columns of the data that it was fitted to.
    pub fn of(
        model: &Model,
        (moments, rows): (&ColumnMoments, usize),
        names: &Schema,
        inference: Option<&Inference>,
    ) -> Coefficients {
        let coef = model.coef();
        let deviation = |j: usize| {
            let (rows, sum) = (rows.max(1) as f64, moments.sum[j]);
            ((moments.sum_of_squares[j] - sum * sum / rows).max(0.0) / rows).sqrt()
        };
        let effect = |j: usize| {
            let larger = |most: f64, w: &f64| if w.abs() > most.abs() { *w } else { most };
            coef.iter()
                .map(|coef| coef[j])
                .fold(0.0, |most, w| larger(most, &w))
                * deviation(j)
        };
        let mut ranked: Vec<(usize, f64)> = (0..model.cols()).map(|j| (j, effect(j))).collect();
        let order = |a: &(usize, f64), b: &(usize, f64)| {
            b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0))
        };
        if ranked.len() > LISTED {
            ranked.select_nth_unstable_by(LISTED, order);
            ranked.truncate(LISTED);
        }
        ranked.sort_unstable_by(order);
        let one = |(column, effect): (usize, f64)| Coefficient {
            column,
            name: column_name(names, column),
            coef: coef.iter().map(|coef| coef[column]).collect(),
            effect,
            estimate: inference.and_then(|all| all.columns[column]),
        };
        let classes = model.classifier().map(|model| model.classes());
        let labels = classes.map(|classes| {
            (0..classes.len())
                .map(|class| classes.label(class))
                .collect()
        });
        Coefficients {
            nonzero: coef
                .iter()
                .flat_map(|coef| coef.iter())
                .filter(|w| **w != 0.0)
                .count(),
            count: coef.iter().map(|coef| coef.len()).sum(),
            classes: labels.unwrap_or_default(),
            intercepts: model.intercept(),
            largest: ranked.into_iter().map(one).collect(),
        }
    }

    /// Whether there is one linear predictor.
    fn is_one(&self) -> bool {
        self.intercepts.len() == 1
    }
}

/// Says first which features matter.
pub(super) fn judge(report: &mut Report, all: &Coefficients) {
    const NAMED: usize = 3;
    let effective = all.largest.iter().filter(|one| one.effect != 0.0);
    let named: Vec<String> = effective
        .clone()
        .take(NAMED)
        .map(|one| format!("{} ({})", one.name, shown(one.effect, Unit::Plain)))
        .collect();
    if named.is_empty() {
        let text = "All coefficients are 0: the model knows the intercept alone.";
        return report.verdict(Mood::Look, "No feature matters", text);
    }
    let estimates: Vec<Estimate> = all.largest.iter().filter_map(|one| one.estimate).collect();
    let sure = estimates
        .iter()
        .filter(|one| one.low * one.high > 0.0)
        .count();
    let errors = match estimates.len() {
        0 => String::new(),
        count => format!(" Of {count} coefficients {sure} have a 95 % interval without 0."),
    };
    let text = format!(
        "By the effect of one standard deviation: {}.{errors}",
        named.join(", ")
    );
    report.verdict(Mood::Plain, "Which features matter", text);
}

/// The section on the coefficients.
pub(super) fn section(all: &Coefficients, inference: Result<&Inference, &str>) -> Section {
    let mut section = Section::new("Which features matter");
    let shown = all.largest.len();
    let zeros = all.count - all.nonzero;
    section = section.note(format!(
        "Ordered by effect: how far one standard deviation of the column moves the linear predictor. {}{}",
        if all.largest.len() * all.intercepts.len() < all.count {
            format!("The {shown} largest; the others are in the model. ")
        } else {
            String::new()
        },
        if zeros > 0 { format!("{zeros} of {} coefficients are 0.", all.count) } else { String::new() }
    ));
    section = section.figures(vec![figure(all)]);
    section = match inference {
        Ok(inference) if all.is_one() => section.table(with_errors(all, inference)).note(format!(
            "Standard errors, {} statistics with {} degrees of freedom and 95 % confidence intervals; p is the chance of a \
             statistic as far from 0 where the true coefficient is 0.",
            inference.statistic,
            inference.degrees_of_freedom
        )),
        Ok(_) => section.table(plain(all)),
        Err(reason) => section.table(plain(all)).note(format!("No standard errors: {reason}.")),
    };
    section
}

fn figure(all: &Coefficients) -> Figure {
    let drawn: Vec<&Coefficient> = all.largest.iter().take(DRAWN).collect();
    let names: Vec<&str> = drawn.iter().map(|one| one.name.as_str()).collect();
    let is_sure = all.is_one() && drawn.iter().any(|one| one.estimate.is_some());
    let axis = Axis::categories("", names);
    if is_sure {
        let interval = |(at, one): (usize, &&Coefficient)| Interval {
            at: at as f64,
            low: one.estimate.map_or(f64::NAN, |estimate| estimate.low),
            middle: one.coef[0],
            high: one.estimate.map_or(f64::NAN, |estimate| estimate.high),
        };
        let all = drawn.iter().enumerate().map(interval).collect();
        return Figure::new(
            "coefficients",
            "Largest coefficients by effect, with 95 % intervals",
        )
        .summary("Coefficients with their confidence intervals; those that cross 0 may be nothing.")
        .x(Axis::linear("coefficient"))
        .y(axis)
        .mark("", Tone::Reference, Shape::Rule(0.0))
        .mark("", Tone::First, Shape::Errors(all));
    }
    let effects: Vec<f64> = drawn.iter().map(|one| one.effect).collect();
    Figure::new("coefficients", "Largest effects")
        .summary("How far one standard deviation of each column moves the linear predictor.")
        .x(Axis::linear("effect of one standard deviation"))
        .y(axis)
        .bars("", Tone::First, &effects)
}

fn number(value: f64) -> Value {
    Value::Number(value, Unit::Plain)
}

fn with_errors(all: &Coefficients, inference: &Inference) -> Table {
    let mut table = Table::new(
        "Coefficients",
        [
            "column",
            "coefficient",
            "effect",
            "std. error",
            inference.statistic,
            "p",
            "2.5 %",
            "97.5 %",
        ],
    );
    let missing = || Value::Text("–".to_owned());
    let errors = |estimate: Option<Estimate>| match estimate {
        Some(one) => vec![
            number(one.standard_error),
            number(one.statistic),
            Value::Number(one.p_value, Unit::Chance),
            number(one.low),
            number(one.high),
        ],
        None => (0..5).map(|_| missing()).collect(),
    };
    for one in &all.largest {
        let mut row = vec![
            one.name.clone().into(),
            number(one.coef[0]),
            number(one.effect),
        ];
        row.extend(errors(one.estimate));
        table.rows.push(row);
    }
    let mut row = vec!["intercept".into(), number(all.intercepts[0]), missing()];
    row.extend(errors(inference.intercept));
    table.rows.push(row);
    table
}

fn plain(all: &Coefficients) -> Table {
    if all.is_one() {
        let mut table = Table::new("Coefficients", ["column", "coefficient", "effect"]);
        for one in &all.largest {
            table.rows.push(vec![
                one.name.clone().into(),
                number(one.coef[0]),
                number(one.effect),
            ]);
        }
        table.rows.push(vec![
            "intercept".into(),
            number(all.intercepts[0]),
            "–".into(),
        ]);
        return table;
    }
    let classes = all.classes.len().min(CLASSES);
    let caption = match all.classes.len() {
        count if count > CLASSES => {
            format!("Coefficients of the first {CLASSES} of {count} classes")
        }
        _ => "Coefficients of each class".to_owned(),
    };
    let heads = ["column".to_owned(), "effect".to_owned()].into_iter();
    let mut table = Table::new(caption, heads.chain(all.classes[..classes].iter().cloned()));
    for one in &all.largest {
        let mut row = vec![one.name.clone().into(), number(one.effect)];
        row.extend(one.coef[..classes].iter().map(|w| number(*w)));
        table.rows.push(row);
    }
    let mut row = vec!["intercept".into(), "–".into()];
    row.extend(all.intercepts[..classes].iter().map(|b| number(*b)));
    table.rows.push(row);
    table
}
