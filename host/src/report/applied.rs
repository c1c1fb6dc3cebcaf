//! The page of a model applied to data with known targets: `evaluate` and `predict`.

use super::course::{self, Outcome};
use super::data::{self, DataFacts};
use super::evaluation::{self, Scored};
use super::hardware::{self, Hardware};
use super::page::Report;
use crate::device::Phases;
use crate::learning::{Diagnostics, Evaluation};
use crate::matrix::Schema;

/// What the page of an evaluation is made of.
#[derive(Debug, Clone, Copy)]
pub struct AppliedPage<'a> {
    /// The head.
    pub title: &'a str,
    /// The file of the model.
    pub model: &'a str,
    /// Where the data come from.
    pub source: &'a str,
    /// The command that makes the page again.
    pub command: &'a str,
    /// The classes, of a classifier.
    pub classes: &'a [String],
    /// Names of the columns.
    pub names: &'a Schema,
    /// The data.
    pub data: &'a DataFacts,
    /// The figures; `None` where there are no rows to score on.
    pub evaluation: Option<&'a Evaluation>,
    /// Why there are none.
    pub not_scored: Option<&'a str>,
    /// Curves or residuals.
    pub diagnostics: Option<&'a Diagnostics>,
    /// How the fit ended, where the model was fitted in the same run.
    pub outcome: Option<&'a Outcome>,
    /// What ran where.
    pub hardware: &'a Hardware,
    /// What the phases took.
    pub phases: &'a Phases,
}

impl AppliedPage<'_> {
    /// The page.
    pub fn report(&self) -> Report {
        let mut report = Report::new(self.title, self.command);
        report.subtitle = format!("{} on {}", self.model, self.source);
        if let Some(outcome) = self.outcome {
            course::judge(&mut report, outcome);
        }
        if let Some(evaluation) = self.evaluation {
            let scored = Scored {
                on: "these data",
                stem: "evaluation",
                evaluation,
                diagnostics: self.diagnostics,
                classes: self.classes,
            };
            evaluation::judge(&mut report, &scored);
            report.sections.push(evaluation::section(&scored));
        }
        if let Some(reason) = self.not_scored {
            report.verdict(super::Mood::Bad, "Not scored", reason);
        }
        hardware::place(&mut report, self.hardware);
        data::judge(&mut report, self.data, true);
        report.sections.push(data::section(self.data, self.names));
        report
            .sections
            .push(hardware::section(self.hardware, self.phases));
        report
    }
}
