//! What a report page shows besides the figures of a fit.

use anyhow::Result;

use crate::cli::args::OutcomeArgs;
use crate::device::{Phase, Phases};
use crate::learning::{
    Assessment, Diagnostics, FitError, Inference, InferenceError, Model, ResidentDataset, Targets,
};
use crate::matrix::{Features, MatrixStats};
use crate::ops::Number;
use crate::report::{Coefficients, DataFacts, FitDetails, Hardware};

/// Columns for which there are standard errors without being requested, and products of entries and columns: some
/// hundredths of a second of a core.
const COLUMNS: usize = 512;
const WORK: u64 = 100_000_000;

/// Whether anything besides the figures is wanted.
pub(super) fn are_wanted(outcome: &OutcomeArgs) -> bool {
    outcome.report.is_wanted() || outcome.standard_errors
}

/// The data and the model.
pub(super) struct Subject<'a, T: Number> {
    pub(super) outcome: &'a OutcomeArgs,
    pub(super) model: &'a Model,
    pub(super) assessment: &'a Assessment<'a, T>,
    pub(super) resident: &'a ResidentDataset<T>,
    pub(super) features: &'a Features<T>,
    pub(super) stats: &'a MatrixStats,
    pub(super) targets: Targets<'a, T>,
    pub(super) weights: Option<&'a [f64]>,
    pub(super) tolerance: f64,
}

impl<T: Number> Subject<'_, T> {
    /// Computes what a page shows; X is read once for the frequencies of its columns, and once for
    /// every eight standard errors.
    ///
    /// # Errors
    /// When the device fails.
    pub(super) fn details(
        &self,
        phases: &mut Phases,
        validation_diagnostics: Option<Diagnostics>,
    ) -> Result<FitDetails> {
        let (matrix, model) = (self.resident.matrix(), self.model);
        let device = matrix.device();
        let solve_seconds = phases.of(Phase::Solve).seconds;
        let details = phases.time(Phase::Report, device, || -> Result<FitDetails, FitError> {
            let diagnostics = self.assessment.diagnose()?;
            let (inference, no_inference) = self.inference()?;
            let moments = self.resident.moments();
            let columns = (&moments.columns, moments.rows);
            Ok(FitDetails {
                tolerance: self.tolerance,
                data: DataFacts::of(self.features, self.stats, &moments.columns)
                    .with_target(self.targets),
                coefficients: Coefficients::of(model, columns, model.schema(), inference.as_ref()),
                inference,
                no_inference,
                diagnostics: Some(diagnostics),
                validation_diagnostics,
                not_validated: None,
                hardware: Hardware::of(matrix, model.report(), solve_seconds),
            })
        })?;
        Ok(details)
    }

    /// Standard errors, or why there are none.
    fn inference(&self) -> Result<(Option<Inference>, Option<String>), FitError> {
        let matrix = self.resident.matrix();
        let work = self.stats.nnz.saturating_mul(matrix.cols() as u64);
        let is_little = matrix.cols() <= COLUMNS && work <= WORK;
        if !is_little && !self.outcome.standard_errors {
            let reason =
                "they would take long for data of this size, and --standard-errors asks for them";
            return Ok((None, Some(reason.to_owned())));
        }
        match self.model.infer(matrix, self.targets, self.weights) {
            Ok(found) => Ok((Some(found), None)),
            Err(InferenceError::Fit(error)) => Err(error),
            Err(reason) => Ok((None, Some(reason.to_string()))),
        }
    }
}
