//! The page of a fitted linear model.

use serde::Serialize;

use super::coefficients;
use super::coefficients::Coefficients;
use super::course::{self, Outcome, advice};
use super::data::{self, DataFacts};
use super::evaluation::{self, Scored};
use super::hardware::{self, Hardware};
use super::page::{Mood, Report};
use crate::device::{Phase, Phases};
use crate::learning::{Diagnostics, Evaluation, Inference, Model};
use crate::matrix::Schema;

/// What a page shows beside the figures of a fit; `--json` has it too.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FitDetails {
    /// The norm of the gradient at which the solve should stop, of that at the start.
    pub tolerance: f64,
    /// The data that were learnt from.
    pub data: DataFacts,
    /// The largest coefficients.
    pub coefficients: Coefficients,
    /// Standard errors of all coefficients.
    pub inference: Option<Inference>,
    /// Why there are none.
    pub no_inference: Option<String>,
    /// Curves or residuals on the data that were learnt from.
    pub diagnostics: Option<Diagnostics>,
    /// On the data of `--validation`.
    pub validation_diagnostics: Option<Diagnostics>,
    /// Why there are no figures on the data of `--validation`, where they were requested.
    pub not_validated: Option<String>,
    /// What ran where.
    pub hardware: Hardware,
}

/// What the page of a fit is made of.
#[derive(Debug, Clone, Copy)]
pub struct FitPage<'a> {
    /// Such as `Ridge regression`.
    pub title: &'a str,
    /// Where the data come from.
    pub source: &'a str,
    /// The command that makes the page again.
    pub command: &'a str,
    /// The model.
    pub model: &'a Model,
    /// Whether columns were divided by their deviations.
    pub standardized: bool,
    /// What the columns are called.
    pub names: &'a Schema,
    /// Figures on the data that were learnt from.
    pub training: &'a Evaluation,
    /// Figures on other data.
    pub validation: Option<&'a Evaluation>,
    /// What the phases took.
    pub phases: &'a Phases,
    /// The rest.
    pub details: &'a FitDetails,
}

impl FitPage<'_> {
    /// The page.
    pub fn report(&self) -> Report {
        let (details, fit) = (self.details, self.model.report());
        let mut report = Report::new(self.title, self.command);
        report.subtitle = format!("fitted to {}", self.source);
        course::judge(
            &mut report,
            &Outcome {
                convergence: fit.convergence,
                n_iter: fit.n_iter,
                change: fit.gradient_ratio,
                tolerance: details.tolerance,
                advice: advice(fit.convergence, self.standardized, self.model.dtype()),
            },
        );
        let classes = details.coefficients.classes.as_slice();
        let training = Scored {
            on: "training data",
            stem: "training",
            evaluation: self.training,
            diagnostics: details.diagnostics.as_ref(),
            classes,
        };
        let other = self.validation.map(|evaluation| Scored {
            on: "validation data",
            stem: "validation",
            evaluation,
            diagnostics: details.validation_diagnostics.as_ref(),
            classes,
        });
        evaluation::judge(&mut report, other.as_ref().unwrap_or(&training));
        if let Some(other) = self.validation {
            evaluation::judge_gap(&mut report, self.training, other);
        }
        if let Some(reason) = &details.not_validated {
            let text = format!("{reason}. All figures are those of the training data.");
            report.verdict(Mood::Bad, "Not validated", text);
        }
        coefficients::judge(&mut report, &details.coefficients);
        hardware::judge(
            &mut report,
            &details.hardware,
            self.phases.of(Phase::Solve).seconds,
        );
        data::judge(&mut report, &details.data, self.standardized);
        report
            .sections
            .extend(other.iter().map(evaluation::section));
        report.sections.push(evaluation::section(&training));
        let inference = details.inference.as_ref();
        let reason = details
            .no_inference
            .as_deref()
            .unwrap_or("they were not requested");
        report.sections.push(coefficients::section(
            &details.coefficients,
            inference.ok_or(reason),
        ));
        report
            .sections
            .push(course::section(fit, details.tolerance, self.judged_by()));
        report
            .sections
            .push(data::section(&details.data, self.names));
        report
            .sections
            .push(hardware::section(&details.hardware, self.phases));
        report
    }

    /// What [`Iteration::validation`](crate::learning::Iteration::validation) is.
    fn judged_by(&self) -> &'static str {
        match self.training {
            Evaluation::Classification(summary) if summary.log_loss.is_some() => "log-loss",
            Evaluation::Classification(_) => "accuracy",
            Evaluation::Regression {
                deviance: Some(_), ..
            } => "mean deviance",
            Evaluation::Regression { .. } => "R²",
        }
    }
}
