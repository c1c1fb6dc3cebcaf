//! The page of a spectral method: the top nodes of a graph, or singular values.

use warpfuse_figures::{Axis, Figure, Tone};

use super::data::{self, DataFacts};
use super::hardware::{self, Hardware};
use super::number::{Unit, shown};
use super::page::{Fact, Mood, Report, Section, Table, Value};
use crate::device::Phases;
use crate::learning::SpectralReport;
use crate::matrix::Schema;

/// Bars of a figure.
const DRAWN: usize = 20;

/// Numbers in the order that matters.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// Such as `Top hubs`.
    pub title: String,
    /// The stem of the figure's name.
    pub stem: String,
    /// What the number is, such as `score`.
    pub value: String,
    /// Names and numbers, the largest first.
    pub all: Vec<(String, f64)>,
    /// Share of the variance of each, of singular values.
    pub shares: Vec<f64>,
}

/// What the page of a spectral method is made of.
#[derive(Debug, Clone, Copy)]
pub struct SpectralPage<'a> {
    /// Such as `PageRank`.
    pub title: &'a str,
    /// Where the data come from.
    pub source: &'a str,
    /// The command that makes the page again.
    pub command: &'a str,
    /// How it went.
    pub report: &'a SpectralReport,
    /// The tolerance.
    pub tolerance: f64,
    /// What was found.
    pub listed: &'a [Listed],
    /// The data.
    pub data: &'a DataFacts,
    /// What ran where.
    pub hardware: &'a Hardware,
    /// What the phases took.
    pub phases: &'a Phases,
}

impl SpectralPage<'_> {
    /// The page.
    pub fn report(&self) -> Report {
        let SpectralReport {
            n_iter,
            converged,
            change,
            ..
        } = *self.report;
        let mut report = Report::new(self.title, self.command);
        report.subtitle = format!("of {}", self.source);
        let course = format!(
            "{n_iter} products; the last change is {change:.1e}, the tolerance is {:.1e}.",
            self.tolerance
        );
        match converged {
            true => report.verdict(Mood::Good, "Converged", course),
            false => report.verdict(
                Mood::Bad,
                "Not converged",
                format!("{course} Raise --max-iter, or raise --tol."),
            ),
        }
        for listed in self.listed {
            listed.judge(&mut report);
        }
        hardware::place(&mut report, self.hardware);
        report
            .sections
            .extend(self.listed.iter().map(Listed::section));
        report.sections.push(Section::new("Convergence").facts(vec![
            Fact::count("products with X and Xᵀ", n_iter as u64),
            Fact::number("last change", change, Unit::Plain),
            Fact::number("tolerance", self.tolerance, Unit::Plain),
            Fact::number("time", self.report.seconds, Unit::Seconds),
        ]));
        report
            .sections
            .push(data::section(self.data, &Schema::default()));
        report
            .sections
            .push(hardware::section(self.hardware, self.phases));
        report
    }
}

impl Listed {
    /// Says first what is on top.
    fn judge(&self, report: &mut Report) {
        const NAMED: usize = 3;
        if self.shares.is_empty() {
            let named = self.all.iter().take(NAMED);
            let named: Vec<String> = named
                .map(|(name, value)| format!("{name} ({})", shown(*value, Unit::Plain)))
                .collect();
            return report.verdict(Mood::Plain, &self.title, format!("{}.", named.join(", ")));
        }
        let share = shown(self.shares[0], Unit::Share);
        let text = format!("The first component explains {share} of the variance.");
        report.verdict(Mood::Plain, &self.title, text);
    }

    fn section(&self) -> Section {
        let has_shares = !self.shares.is_empty();
        let heads = ["", self.value.as_str()]
            .into_iter()
            .chain(has_shares.then_some("share of the variance"));
        let mut table = Table::new(self.title.clone(), heads);
        for (at, (name, value)) in self.all.iter().enumerate() {
            let mut row = vec![name.clone().into(), Value::Number(*value, Unit::Plain)];
            row.extend(
                self.shares
                    .get(at)
                    .map(|share| Value::Number(*share, Unit::Share)),
            );
            table.rows.push(row);
        }
        Section::new(self.title.clone())
            .figures(self.figures())
            .table(table)
    }

    fn figures(&self) -> Vec<Figure> {
        if self.shares.is_empty() {
            let drawn = &self.all[..self.all.len().min(DRAWN)];
            let values: Vec<f64> = drawn.iter().map(|(_, value)| *value).collect();
            return vec![
                Figure::new(&self.stem, &self.title)
                    .summary("The largest scores.")
                    .x(Axis::linear(&self.value))
                    .y(Axis::categories(
                        "",
                        drawn.iter().map(|(name, _)| name.as_str()),
                    ))
                    .bars("", Tone::First, &values),
            ];
        }
        let numbered = |values: Vec<f64>| -> Vec<(f64, f64)> {
            values
                .into_iter()
                .enumerate()
                .map(|(at, value)| ((at + 1) as f64, value))
                .collect()
        };
        let values = numbered(self.all.iter().map(|(_, value)| *value).collect());
        let sums = self.shares.iter().scan(0.0, |sum, share| {
            *sum += share;
            Some(*sum)
        });
        let sums = numbered(sums.collect());
        vec![
            Figure::new(&self.stem, &self.title)
                .summary("Singular values, the largest first.")
                .x(Axis::linear("component"))
                .y(Axis::linear(&self.value))
                .line("", Tone::First, values.clone())
                .points("", Tone::First, values),
            Figure::new(
                format!("{}-variance", self.stem),
                "Explained variance, added up",
            )
            .summary("The share of the variance that the first components explain together.")
            .x(Axis::linear("components"))
            .y(Axis::linear("share of the variance").range(0.0, 1.0))
            .line("", Tone::First, sums.clone())
            .points("", Tone::First, sums),
        ]
    }
}
