//! A model applied to data with known targets, and the page on that: `evaluate` and `predict`.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use super::args::ReportArgs;
use super::data::Loaded;
use super::pages;
use super::progress::Ui;
use crate::device::{Device, Phase, Phases};
use crate::learning::{Classifier, Diagnostics, Evaluation, FitError, Model, SavedModel, Targets};
use crate::matrix::ColumnMoments;
use crate::ops::{Matrix, Number};
use crate::report::{AppliedPage, DataFacts, Hardware, Outcome};

/// What a page shows beside the figures; `--json` has it too.
#[derive(Serialize)]
pub(super) struct Details {
    /// Of the fit, where the model was fitted in the same run.
    #[serde(skip_serializing_if = "Option::is_none")]
    tolerance: Option<f64>,
    data: DataFacts,
    diagnostics: Option<Diagnostics>,
    hardware: Hardware,
    phases: Phases,
}

/// A model and what it is applied to.
pub(super) struct Applied<'a> {
    pub(super) model: &'a SavedModel,
    pub(super) file: &'a Path,
    pub(super) source: &'a Path,
    /// The head of the page.
    pub(super) title: &'a str,
    pub(super) device: &'a Device,
    pub(super) args: &'a ReportArgs,
    /// How the fit ended, where the model was fitted in the same run.
    pub(super) outcome: Option<Outcome>,
    pub(super) phases: Phases,
}

type Scores = (Evaluation, Option<Diagnostics>);

impl Applied<'_> {
    /// Scores the model and writes the page, where one is requested; a page is written too where there is no score.
    ///
    /// # Errors
    /// As [`SavedModel::evaluate`], and when a file cannot be written.
    pub(super) fn evaluate<T: Number>(
        &mut self,
        data: &Loaded<T>,
        targets: (Targets<'_, T>, Option<&[f64]>),
        ui: &Ui,
    ) -> Result<(Evaluation, Option<Details>)> {
        let scoring = ui.doing("scoring");
        let scores = self.scores(data, targets);
        drop(scoring);
        if !self.args.is_wanted() {
            return Ok((scores?.0, None));
        }
        let facts = self.phases.time(Phase::Report, self.device, || {
            DataFacts::of(
                &data.features,
                &data.stats,
                &ColumnMoments::of(&data.features),
            )
            .with_target(targets.0)
        });
        let (evaluation, diagnostics, failure) = match scores {
            Ok((evaluation, diagnostics)) => (Some(evaluation), diagnostics, None),
            Err(error) => (None, None, Some(error)),
        };
        let peak = self.device.usage().peak_bytes as u64;
        let details = Details {
            tolerance: self.outcome.as_ref().map(|outcome| outcome.tolerance),
            data: facts,
            diagnostics,
            hardware: Hardware::of_device(self.device, T::DTYPE, peak),
            phases: self.phases.clone(),
        };
        let not_scored = failure.as_ref().map(ToString::to_string);
        self.write(evaluation.as_ref(), not_scored.as_deref(), &details, ui)?;
        match (evaluation, failure) {
            (Some(evaluation), _) => Ok((evaluation, Some(details))),
            (None, Some(failure)) => Err(failure.into()),
            (None, None) => unreachable!("a score or the reason why there is none"),
        }
    }

    /// Figures, with curves or residuals for a page.
    fn scores<T: Number>(
        &mut self,
        data: &Loaded<T>,
        (targets, weights): (Targets<'_, T>, Option<&[f64]>),
    ) -> Result<Scores, FitError> {
        let (device, wanted) = (self.device, self.args.is_wanted());
        let features = || data.features.clone();
        let model = match self.model {
            SavedModel::Linear(model) => model,
            SavedModel::Kernel(_) => {
                let evaluation = self.phases.time(Phase::Evaluate, device, || {
                    self.model.evaluate(device, features(), targets, weights)
                })?;
                let diagnose = || self.model.diagnose(device, features(), targets, weights);
                let diagnostics = match wanted {
                    true => Some(self.phases.time(Phase::Report, device, diagnose)?),
                    false => None,
                };
                return Ok((evaluation, diagnostics));
            }
        };
        let place = || Matrix::new(device, features());
        let matrix = self.phases.time(Phase::Place, device, place)?;
        let (assessment, evaluation) =
            self.phases
                .time(Phase::Evaluate, device, || -> Result<_, FitError> {
                    let assessment = model.assess(&matrix, targets, weights, None)?;
                    let evaluation = assessment.evaluate()?;
                    Ok((assessment, evaluation))
                })?;
        let diagnose = || assessment.diagnose();
        let diagnostics = match wanted {
            true => Some(self.phases.time(Phase::Report, device, diagnose)?),
            false => None,
        };
        Ok((evaluation, diagnostics))
    }

    fn write(
        &self,
        evaluation: Option<&Evaluation>,
        not_scored: Option<&str>,
        details: &Details,
        ui: &Ui,
    ) -> Result<()> {
        let page = AppliedPage {
            title: self.title,
            model: &pages::source(self.file),
            source: &pages::source(self.source),
            command: ui.command(),
            classes: &classes(self.model.linear()),
            names: self.model.schema(),
            data: &details.data,
            evaluation,
            not_scored,
            diagnostics: details.diagnostics.as_ref(),
            outcome: self.outcome.as_ref(),
            hardware: &details.hardware,
            phases: &details.phases,
        };
        pages::write(self.args, &page.report(), ui)
    }
}

/// The labels of a classifier.
fn classes(model: Option<&Model>) -> Vec<String> {
    let classes = model.and_then(Model::classifier).map(Classifier::classes);
    classes.map_or_else(Vec::new, |classes| {
        (0..classes.len())
            .map(|class| classes.label(class))
            .collect()
    })
}
