//! The page of `calibrate`: what a GPU reaches.

use warpfuse_figures::{Axis, Figure, Tone};

use super::number::Unit;
use super::page::{Fact, Mood, Report, Section, Table, Value};
use crate::device::Calibration;
use crate::plan::rates::{ProbedRates, RateSource, SizeTable};

/// What the page is made of.
#[derive(Debug, Clone, Copy)]
pub struct RatesPage<'a> {
    /// What was found.
    pub calibration: &'a Calibration,
    /// The command that makes the page again.
    pub command: &'a str,
}

impl RatesPage<'_> {
    /// The page.
    pub fn report(&self) -> Report {
        let Calibration {
            subject,
            at,
            probed,
        } = self.calibration;
        let mut report = Report::new(format!("Rates of {}", subject.device), self.command);
        report.subtitle = RateSource::Calibrated { at: *at }.to_string();
        match probed.implausible() {
            None => report.verdict(
                Mood::Good,
                "Plausible",
                "No rate is far from what other GPUs reach.",
            ),
            Some((what, rate)) => {
                let text =
                    format!("{what} of {rate:.3}: measure again with --force on an idle GPU.");
                report.verdict(Mood::Bad, "A rate is implausible", text);
            }
        }
        let tables = [
            ("gather", "Gathers from global memory", &probed.gather),
            (
                "scatter-f32",
                "f32 additions to global memory",
                &probed.scatter_f32,
            ),
            (
                "scatter-f64",
                "f64 additions to global memory",
                &probed.scatter_f64,
            ),
        ];
        let mut section = Section::new("Rates").facts(facts(probed)).figures(
            tables
                .iter()
                .map(|(stem, title, rates)| figure(stem, title, rates))
                .collect(),
        );
        for (_, title, rates) in tables {
            section = section.table(table(title, rates));
        }
        report.sections.push(section);
        report
    }
}

fn facts(probed: &ProbedRates) -> Vec<Fact> {
    let rate = |name: &str, value: f64| Fact::number(format!("{name}, 10⁹/s"), value, Unit::Plain);
    vec![
        Fact::number("memory read", probed.stream_gbs, Unit::Rate),
        rate("shared add f32", probed.shared_add_f32),
        rate("shared add f64", probed.shared_add_f64),
        rate("shared add integer", probed.shared_count),
        rate("shared gather", probed.shared_gather),
        Fact::number("launch", probed.launch_us, Unit::Microseconds),
    ]
}

fn figure(stem: &str, title: &str, rates: &SizeTable) -> Figure {
    let points = rates.points().to_vec();
    Figure::new(stem, title)
        .summary("Rates by the size of the memory that is accessed.")
        .x(Axis::log("bytes"))
        .y(Axis::log("10⁹ per second"))
        .line("", Tone::First, points.clone())
        .points("", Tone::First, points)
}

fn table(title: &str, rates: &SizeTable) -> Table {
    let mut table = Table::new(title, ["size", "10⁹ per second"]);
    for (bytes, rate) in rates.points() {
        table.rows.push(vec![
            Value::Number(*bytes, Unit::Bytes),
            Value::Number(*rate, Unit::Plain),
        ]);
    }
    table
}
