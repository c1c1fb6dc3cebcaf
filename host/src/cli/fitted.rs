//! The report on a fitted model: JSON for programs, a listing for people.

use std::fmt::{self, Display};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use super::json;
use super::memory::MemoryFacts;
use super::pages;
use super::progress::Ui;
use super::report::{Listing, figure, largest, seconds};
use crate::device::Phases;
use crate::learning::{Classifier, Convergence, Evaluation, Model};
use crate::matrix::{MatrixStats, Schema};
use crate::report::FitDetails;

/// The name of the coefficients.
const COEF: &str = "coef";
/// Coefficients that the report shows.
const COEFFICIENTS: usize = 10;

/// Everything there is to say about a fit.
pub(super) struct FittedSummary<'a> {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) model: &'a Model,
    pub(super) stats: &'a MatrixStats,
    /// Such as `cuda:0`.
    pub(super) device: &'a str,
    pub(super) memory: MemoryFacts,
    pub(super) parse_seconds: f64,
    pub(super) phases: &'a Phases,
    pub(super) training: &'a Evaluation,
    pub(super) validation: Option<&'a Evaluation>,
    pub(super) saved: Option<&'a Path>,
    /// What a report page shows besides.
    pub(super) details: Option<&'a FitDetails>,
}

impl FittedSummary<'_> {
    /// One object: `coef` and `intercept` are one list and one number, or one list and one number per class.
    ///
    /// # Errors
    /// When a part cannot be written as JSON.
    pub(super) fn to_json(&self) -> Result<Value> {
        let mut all = self.facts()?;
        let coef = self.model.coef();
        let coef = match (&coef[..], &self.model.intercept()[..]) {
            ([coef], [_]) => json!(coef),
            _ => json!(coef),
        };
        all.insert(COEF.to_owned(), coef);
        Ok(Value::Object(all))
    }

    /// [`FittedSummary::to_json`] as text; coefficients, of which there may be millions, are written by all threads.
    ///
    /// # Errors
    /// As [`FittedSummary::to_json`].
    pub(super) fn json_text(&self) -> Result<String> {
        let coef = self.model.coef();
        let coef = match (&coef[..], &self.model.intercept()[..]) {
            ([coef], [_]) => json::numbers(coef),
            _ => json::list(coef.iter().map(|coef| json::numbers(coef))),
        };
        json::object(self.facts()?, (COEF, coef))
    }

    /// Everything but the coefficients.
    fn facts(&self) -> Result<Map<String, Value>> {
        let mut all = Map::new();
        let mut put = |name: &str, value: Value| {
            all.insert(name.to_owned(), value);
        };
        put("model", self.name.into());
        put("version", env!("CARGO_PKG_VERSION").into());
        let intercept = self.model.intercept();
        match &intercept[..] {
            [intercept] => put("intercept", json!(intercept)),
            _ => put("intercept", json!(intercept)),
        }
        if let Some(classes) = self.model.classifier().map(Classifier::classes) {
            put("classes", to_value(classes)?);
        }
        if let Some(names) = self.model.feature_names() {
            put("feature_names", json!(names));
        }
        put("converged", self.model.converged().into());
        let report = self.model.report();
        put("objective", json!(report.objective));
        put("n_iter", report.n_iter.into());
        put("convergence", to_value(&report.convergence)?);
        put("solver", report.solver.name().into());
        put("solver_reason", report.solver_reason.clone().into());
        if let Some(gap) = report.relative_gap {
            put("relative_gap", json!(gap));
        }
        put("gradient_norm_ratio", json!(report.gradient_ratio));
        put("history", to_value(&report.history)?);
        put("device_name", report.device.clone().into());
        put("transfer_seconds", report.transfer_seconds.into());
        put("seconds", report.seconds.into());
        put("peak_device_bytes", report.peak_device_bytes.into());
        put("memory", to_value(&self.memory)?);
        put("device", self.device.into());
        put("dtype", self.model.dtype().to_string().into());
        put("rows", self.stats.rows.into());
        put("cols", self.stats.cols.into());
        put("nnz", self.stats.nnz.into());
        put("density", self.stats.density().into());
        put("parse_seconds", self.parse_seconds.into());
        put("phases", to_value(self.phases)?);
        put("saved", json!(self.saved));
        if let Some(validation) = self.validation {
            put("validation", to_value(validation)?);
        }
        if let Value::Object(figures) = to_value(self.training)? {
            all.extend(figures);
        }
        if let Some(details) = self.details {
            pages::extend(&mut all, details)?;
        }
        Ok(all)
    }

    fn add_data(&self, lines: &mut Listing) {
        let stats = self.stats;
        let stored = format!("{} ({:.4} %)", stats.nnz, 100.0 * stats.density());
        lines
            .line(
                "data",
                format_args!("{} samples x {} features", stats.rows, stats.cols),
            )
            .line("stored entries", stored)
            .line("reading", seconds(self.parse_seconds));
        if let Some(classes) = self.model.classifier().map(Classifier::classes) {
            lines.line("classes", format_args!("{}: {classes}", classes.len()));
        }
    }

    fn add_course(&self, lines: &mut Listing) {
        let report = self.model.report();
        let verdict = verdict(report.convergence);
        let (name, device, dtype) = (&report.device, self.device, self.model.dtype());
        let solver = format!("{} ({})", report.solver.name(), report.solver_reason);
        let gradient = format!("{:.1e} of the first", report.gradient_ratio);
        lines
            .line("device", format_args!("{name} ({device}), {dtype}"))
            .line("transfer", seconds(report.transfer_seconds))
            .line("solver", solver)
            .line("iterations", format_args!("{}, {verdict}", report.n_iter))
            .line("objective", figure(report.objective))
            .line("gradient norm", gradient);
        if let Some(gap) = report.relative_gap {
            lines.line("duality gap", format_args!("{gap:.1e} of the objective"));
        }
        lines
            .line("time", seconds(report.seconds))
            .line("phases", self.phases)
            .line("peak device memory", self.memory.line());
    }

    fn add_coefficients(&self, lines: &mut Listing) {
        let (coef, intercept) = (self.model.coef(), self.model.intercept());
        let ([coef], [intercept]) = (&coef[..], &intercept[..]) else {
            let shape = format!(
                "{} lists of {}, see --json or -o",
                coef.len(),
                self.stats.cols
            );
            lines.line("coefficients", shape);
            return;
        };
        lines.line("intercept", figure(*intercept));
        for (column, value) in largest(coef, COEFFICIENTS) {
            lines.line(
                &coefficient_name(self.model.schema(), column),
                figure(value),
            );
        }
        if coef.len() > COEFFICIENTS {
            let rest = coef.len() - COEFFICIENTS;
            let base = self.model.schema().first();
            let text = match self.model.schema().name(0) {
                Some(_) => format!("and {rest} smaller ones"),
                None => format!("and {rest} smaller ones; columns are counted from {base}"),
            };
            lines.line("", text);
        }
    }
}

impl Display for FittedSummary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Listing::new();
        self.add_data(&mut lines);
        self.add_course(&mut lines);
        for (name, value) in figures(self.training) {
            lines.line(&name, value);
        }
        for (name, value) in self.validation.into_iter().flat_map(figures) {
            lines.line(&format!("validation {name}"), value);
        }
        self.add_coefficients(&mut lines);
        if let Some(path) = self.saved {
            lines.line("saved", path.display());
        }
        write!(f, "{}\n{lines}", self.title)
    }
}

/// How a fit ended, in two words.
pub(super) fn verdict(convergence: Convergence) -> &'static str {
    match convergence {
        Convergence::EarlyStopped => "stopped early",
        ended if ended.is_success() => "converged",
        _ => "NOT CONVERGED",
    }
}

/// What a report calls a coefficient: by the column's name, or by its number as the file has it.
pub(super) fn coefficient_name(schema: &Schema, column: usize) -> String {
    match schema.name(column) {
        Some(name) => name,
        None => format!("coef[{}]", schema.label(column)),
    }
}

/// The figures of an evaluation with their names, for people.
pub(super) fn figures(evaluation: &Evaluation) -> Vec<(String, String)> {
    let named = |name: &str, value: f64| (name.to_owned(), figure(value));
    match evaluation {
        Evaluation::Regression { summary, deviance } => {
            let mut all = vec![
                named("R²", summary.r2),
                named("RMSE", summary.rmse),
                named("MAE", summary.mae),
            ];
            if let Some(deviance) = deviance {
                all.push(named("mean deviance", deviance.mean_deviance));
                all.push(named("explained deviance", deviance.explained_deviance));
            }
            all
        }
        Evaluation::Classification(summary) => {
            let mut all = vec![
                named("accuracy", summary.accuracy),
                named("precision", summary.scores.precision),
                named("recall", summary.scores.recall),
                named("F1", summary.scores.f1),
            ];
            all.extend(summary.log_loss.map(|loss| named("log-loss", loss)));
            all.extend(summary.auc.map(|area| named("AUC", area)));
            all
        }
    }
}

/// Says which figures are not defined for so few samples.
pub(super) fn warn_undefined(evaluation: &Evaluation, ui: &Ui) {
    if let Evaluation::Regression { summary, .. } = evaluation
        && summary.r2.is_nan()
    {
        ui.warn("R² is not defined for fewer than two samples with weight, or for predictions that are not finite");
    }
}

fn to_value(part: &impl serde::Serialize) -> Result<Value> {
    serde_json::to_value(part).context("cannot write the result as JSON")
}
