//! The page of `plan --measure`: launches timed beside their predictions.

use warpfuse_figures::{Axis, Figure, Tone};

use super::number::Unit;
use super::page::{Mood, Report, Section, Table, Value};
use crate::ops::measure::{Comparison, Measured};

/// Launches of a figure, and of a table.
const DRAWN: usize = 10;
const LISTED: usize = 20;

/// Launches over X in one form.
#[derive(Debug, Clone, Copy)]
pub struct LaunchGroup<'a> {
    /// How X is stored.
    pub form: &'a str,
    /// What was timed.
    pub comparison: &'a Comparison,
}

/// What the page is made of.
#[derive(Debug, Clone, Copy)]
pub struct LaunchPage<'a> {
    /// The GPU's name.
    pub gpu: &'a str,
    /// The shape of X.
    pub problem: &'a str,
    /// The product.
    pub product: &'a str,
    /// The command that makes the page again.
    pub command: &'a str,
    /// Bytes that a read of X takes, and 10⁹ bytes per second of the device's memory.
    pub limit: Option<(f64, f64)>,
    /// X as it is, then in further forms.
    pub groups: &'a [LaunchGroup<'a>],
}

/// Both kernels where there are two.
fn launch(measured: &Measured) -> String {
    let plan = &measured.plan;
    match &plan.then {
        None => format!("{} bs{} grid{}", plan.kernel, plan.bs, plan.grid),
        Some(next) => format!("{} + {}", plan.kernel, next.kernel),
    }
}

impl LaunchPage<'_> {
    /// The page.
    pub fn report(&self) -> Report {
        let mut report = Report::new(
            format!("{} product: launches measured", self.product),
            self.command,
        );
        report.subtitle = format!("{} on {}", self.problem, self.gpu);
        if let Some(first) = self.groups.first() {
            let regret = first.comparison.regret();
            let text = format!(
                "{}: {:.1} µs, {:.1} % above the fastest of {} launches.",
                launch(&first.comparison.chosen),
                first.comparison.chosen.measured_us,
                100.0 * regret,
                first.comparison.candidates.len()
            );
            let (mood, title) = match regret {
                r if r <= 0.1 => (Mood::Good, "The planner chose well"),
                _ => (Mood::Look, "A faster launch was found"),
            };
            report.verdict(mood, title, text);
            self.judge_limit(&mut report, &first.comparison.chosen);
        }
        report.sections.extend(
            self.groups
                .iter()
                .enumerate()
                .map(|(number, group)| self.section(number, group)),
        );
        report
    }

    fn judge_limit(&self, report: &mut Report, chosen: &Measured) {
        let Some((bytes, bandwidth)) = self.limit else {
            return;
        };
        let least = bytes / bandwidth / 1e3;
        let text = format!(
            "One read of X at {bandwidth:.0} GB/s would take {least:.1} µs: the chosen launch reaches {:.0} % of that.",
            100.0 * least / chosen.measured_us
        );
        report.verdict(Mood::Plain, "Beside the limit of the memory", text);
    }

    fn section(&self, number: usize, group: &LaunchGroup<'_>) -> Section {
        let Comparison { chosen, candidates } = group.comparison;
        let drawn = &candidates[..candidates.len().min(DRAWN)];
        let names: Vec<String> = drawn
            .iter()
            .map(|one| format!("{} bs{}", one.plan.strategy.name(), one.plan.bs))
            .collect();
        let of = |value: fn(&Measured) -> f64, shift: f64| -> Vec<(f64, f64)> {
            drawn
                .iter()
                .enumerate()
                .map(|(at, one)| (value(one), at as f64 + shift))
                .collect()
        };
        let measured: Vec<f64> = drawn.iter().map(|one| one.measured_us).collect();
        let figure = Figure::new(
            format!("launches-{}", number + 1),
            "Fastest launches, measured and predicted",
        )
        .summary("Measured times as bars, predicted ones as points.")
        .x(Axis::linear("µs"))
        .y(Axis::categories("", names))
        .bars("measured", Tone::First, &measured)
        .points("predicted", Tone::Second, of(|one| one.predicted_us, 0.0));
        let mut table = Table::new(
            "Launches",
            [
                "measured",
                "predicted",
                "predicted off by",
                "strategy",
                "launch",
                "bound by",
            ],
        );
        for one in candidates.iter().take(LISTED) {
            let bound = one
                .plan
                .prediction
                .map_or("–".to_owned(), |prediction| prediction.bound.to_string());
            table.rows.push(vec![
                Value::Number(one.measured_us, Unit::Microseconds),
                Value::Number(one.predicted_us, Unit::Microseconds),
                Value::Text(format!("{:+.0} %", 100.0 * one.prediction_off_by())),
                one.plan.strategy.name().into(),
                launch(one).into(),
                bound.into(),
            ]);
        }
        Section::new(format!("X stored as {}", group.form))
            .figures(vec![figure])
            .table(table)
            .note(format!("Why {} was chosen:", launch(chosen)))
            .list(
                chosen
                    .plan
                    .reasons
                    .iter()
                    .map(ToString::to_string)
                    .collect(),
            )
    }
}
