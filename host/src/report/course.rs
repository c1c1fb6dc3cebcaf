//! How a fit went: its verdict, and its iterations.

use warpfuse_figures::{Axis, Figure, Shape, Tone};

use super::number::Unit;
use super::page::{Fact, Mood, Report, Section, Table, Value};
use crate::learning::{Convergence, FitReport, Iteration};
use crate::matrix::Dtype;

/// Iterations in the table: the first and the last of them.
const LISTED: usize = 12;

/// How a fit ended, beside its tolerance.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// How it ended.
    pub convergence: Convergence,
    /// Outer iterations.
    pub n_iter: usize,
    /// What was compared with the tolerance, at the end.
    pub change: f64,
    /// The tolerance.
    pub tolerance: f64,
    /// What there is to do about it.
    pub advice: String,
}

/// What to do about a fit that has not converged, with the names of the command line: nothing that was done already, which is
/// to divide columns by their deviations, or to compute in f64.
pub fn advice(convergence: Convergence, standardized: bool, dtype: Dtype) -> String {
    let (scale, wider) = match (standardized, dtype) {
        (true, Dtype::F32) => ("", "use --dtype f64, "),
        (true, Dtype::F64) => ("", ""),
        (false, Dtype::F32) => ("scale the features (--standardize), ", "use --dtype f64, "),
        (false, Dtype::F64) => ("scale the features (--standardize), ", ""),
    };
    match convergence {
        Convergence::Separable => {
            "the classes can be separated without error, so that no finite coefficients are best: use a penalty".to_owned()
        }
        Convergence::Singular => {
            "the columns are linearly dependent to working precision: penalise more, or accept this fit".to_owned()
        }
        Convergence::Stalled => format!(
            "no step decreased the objective, far from a minimum: {scale}{wider}penalise more, or try another --solver, or \
             another link of a glm"
        ),
        Convergence::PrecisionLimit => match dtype {
            Dtype::F32 => "no further decrease at working precision: --dtype f64 has a smaller gradient".to_owned(),
            Dtype::F64 => "no further decrease at working precision".to_owned(),
        },
        Convergence::Converged | Convergence::EarlyStopped => convergence.advice().to_owned(),
        Convergence::IterationLimit | Convergence::NotFinite => format!("{scale}raise --max-iter, or raise --tol"),
    }
}

/// Says first whether it converged.
pub(super) fn judge(report: &mut Report, outcome: &Outcome) {
    let Outcome {
        convergence,
        n_iter,
        change,
        tolerance,
        ref advice,
    } = *outcome;
    let iterations = if n_iter == 1 {
        "iteration"
    } else {
        "iterations"
    };
    let course = format!(
        "{n_iter} {iterations}; the gradient is {change:.1e} of that at the start, the tolerance is {tolerance:.1e}."
    );
    match convergence {
        Convergence::Converged => report.verdict(Mood::Good, "Converged", course),
        Convergence::PrecisionLimit => report.verdict(
            Mood::Good,
            "Converged as far as the precision allows",
            format!("{course} {}.", capital(advice)),
        ),
        Convergence::EarlyStopped => report.verdict(
            Mood::Good,
            "Stopped early",
            format!("{course} {}.", capital(advice)),
        ),
        _ => report.verdict(
            Mood::Bad,
            "Not converged",
            format!("{course} Advice: {advice}."),
        ),
    }
}

pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

/// Solver, iterations, objective and gradient of a fit.
pub(crate) fn facts(fit: &FitReport) -> [Fact; 4] {
    [
        Fact::text("solver", fit.solver.name()),
        Fact::count("iterations", fit.n_iter as u64),
        Fact::number("objective", fit.objective, Unit::Plain),
        Fact::number(
            "gradient, of that at the start",
            fit.gradient_ratio,
            Unit::Plain,
        ),
    ]
}

/// The section on the iterations of a linear model; `validation` says what [`Iteration::validation`] is.
pub(super) fn section(fit: &FitReport, tolerance: f64, validation: &str) -> Section {
    let mut facts = Vec::from(facts(fit));
    facts.push(Fact::number("tolerance", tolerance, Unit::Plain));
    if let Some(gap) = fit.relative_gap {
        facts.push(Fact::number(
            "duality gap, of the objective",
            gap,
            Unit::Plain,
        ));
    }
    let mut section = Section::new("Convergence").facts(facts);
    if !fit.solver_reason.is_empty() {
        section = section.note(format!("Why {}: {}.", fit.solver.name(), fit.solver_reason));
    }
    if fit.history.is_empty() {
        return section.note("The solver has no iterations.");
    }
    let figures = match fit.history.len() {
        1 => Vec::new(),
        _ => figures(&fit.history, tolerance, validation),
    };
    section.figures(figures).table(table(&fit.history))
}

fn points(history: &[Iteration], of: impl Fn(&Iteration) -> Option<f64>) -> Vec<(f64, f64)> {
    let numbered = history.iter().enumerate();
    numbered
        .filter_map(|(number, one)| Some(((number + 1) as f64, of(one)?)))
        .collect()
}

fn figures(history: &[Iteration], tolerance: f64, validation: &str) -> Vec<Figure> {
    let objective = points(history, |one| Some(one.objective));
    let gradient = points(history, |one| Some(one.gradient_ratio));
    let mut all = vec![
        Figure::new("objective", "Objective by iteration")
            .summary("The objective after each outer iteration.")
            .x(Axis::linear("iteration"))
            .y(Axis::linear("objective"))
            .line("", Tone::First, objective.clone())
            .points("", Tone::First, few(objective)),
        Figure::new("gradient", "Gradient by iteration")
            .summary("The norm of the gradient after each outer iteration, over that at the start.")
            .x(Axis::linear("iteration"))
            .y(Axis::log("norm of the gradient, of that at the start"))
            .mark("tolerance", Tone::Reference, Shape::Level(tolerance))
            .line("gradient", Tone::First, gradient.clone())
            .points("", Tone::First, few(gradient)),
    ];
    let other = points(history, |one| one.validation);
    if !other.is_empty() {
        all.push(
            Figure::new(
                "validation",
                format!("Validation by iteration: {validation}"),
            )
            .summary("What the model was worth on other data after each iteration.")
            .x(Axis::linear("iteration"))
            .y(Axis::linear(validation))
            .line("", Tone::Second, other.clone())
            .points("", Tone::Second, few(other)),
        );
    }
    all
}

/// Points are drawn where they do not touch.
fn few(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    if points.len() > 40 {
        Vec::new()
    } else {
        points
    }
}

fn table(history: &[Iteration]) -> Table {
    let has_validation = history.iter().any(|one| one.validation.is_some());
    let heads = ["iteration", "objective", "gradient", "inner", "seconds"];
    let caption = match history.len() {
        count if count > LISTED => format!(
            "Iterations: the first {} and the last {} of {count}",
            LISTED / 2,
            LISTED / 2
        ),
        _ => "Iterations".to_owned(),
    };
    let mut table = Table::new(
        caption,
        heads
            .into_iter()
            .chain(has_validation.then_some("validation")),
    );
    for (number, one) in history.iter().enumerate() {
        if history.len() > LISTED && (LISTED / 2..history.len() - LISTED / 2).contains(&number) {
            continue;
        }
        let mut row = vec![
            Value::Text((number + 1).to_string()),
            Value::Number(one.objective, Unit::Plain),
            Value::Number(one.gradient_ratio, Unit::Plain),
            Value::Number(one.inner as f64, Unit::Count),
            Value::Number(one.seconds, Unit::Seconds),
        ];
        if has_validation {
            row.push(Value::Number(
                one.validation.unwrap_or(f64::NAN),
                Unit::Plain,
            ));
        }
        table.rows.push(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody is told to do what was done.
    #[test]
    fn advice_is_what_was_not_done() {
        use Convergence::{
            IterationLimit, NotFinite, PrecisionLimit, Separable, Singular, Stalled,
        };
        for convergence in [
            IterationLimit,
            NotFinite,
            PrecisionLimit,
            Separable,
            Singular,
            Stalled,
        ] {
            for (standardized, dtype) in [
                (false, Dtype::F32),
                (true, Dtype::F32),
                (false, Dtype::F64),
                (true, Dtype::F64),
            ] {
                let text = advice(convergence, standardized, dtype);
                assert!(!(standardized && text.contains("standardize")), "{text}");
                assert!(!(dtype == Dtype::F64 && text.contains("f64")), "{text}");
            }
        }
        let text = advice(Stalled, false, Dtype::F32);
        assert!(
            text.contains("--standardize") && text.contains("--dtype f64"),
            "{text}"
        );
    }
}
