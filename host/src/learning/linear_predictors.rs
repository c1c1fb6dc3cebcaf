//! What a model predicts before its link, kept so that figures and curves of the same rows read X once.

use super::classifier::by_rows;
use super::metrics::Deviance;
use super::model::of_numbers;
use super::{
    ClassificationDiagnostics, Diagnostics, Evaluation, FitError, Model, RegressionDiagnostics,
    Targets, scoring,
};
use crate::device::Buffer;
use crate::matrix::Element;
use crate::ops::{Matrix, Number};

/// Linear predictors of a model, m × k by rows.
///
/// ```
/// use ndarray::array;
/// use warpfuse::device::Device;
/// use warpfuse::learning::{Diagnostics, Labels, LogisticRegression, Model, Targets};
/// use warpfuse::matrix::Features;
/// use warpfuse::ops::Matrix;
///
/// let (device, labels) = (Device::cpu(), Labels::Numbers(vec![0.0, 0.0, 1.0, 1.0]));
/// let x = Features::Dense(array![[0.0], [1.0], [2.0], [3.0]]);
/// let model = LogisticRegression::params().fit(&device, x.clone(), &labels)?;
/// let model = Model::Classifier(model);
/// let predictors = model.linear_predictors(&Matrix::<f64>::new(&device, x)?, None)?;
/// assert_eq!(predictors.evaluate(Targets::Labels(&labels), None)?.score(), 1.0);
/// let found = predictors.diagnose(Targets::Labels(&labels), None)?;
/// let Diagnostics::Classification(found) = found else { panic!("labels") };
/// assert_eq!(found.curves[0].auc, Some(1.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct LinearPredictors<'a, T: Number> {
    model: &'a Model,
    place: Place<T>,
}

#[derive(Debug)]
enum Place<T: Number> {
    /// Where X is.
    Device(Buffer<T>),
    /// On the host, where offsets were added.
    Host(Vec<T>),
}

impl Model {
    /// The linear predictors of the rows of `x`, on its device; X is read once. `offset` has one summand for each row.
    ///
    /// # Errors
    /// [`FitError::Features`] for X of other columns, [`FitError::Length`] when there is not one offset for each row,
    /// [`FitError::Combination`] for offsets and a model of several linear predictors, [`FitError::Op`] when the device
    /// fails.
    pub fn linear_predictors<T: Number>(
        &self,
        x: &Matrix<T>,
        offset: Option<&[f64]>,
    ) -> Result<LinearPredictors<'_, T>, FitError> {
        let place = match offset {
            None => Place::Device(self.predictors_on(x)?),
            Some(offset) => Place::Host(self.predictors_with_offset(x, offset)?),
        };
        Ok(LinearPredictors { model: self, place })
    }
}

impl<T: Number> LinearPredictors<'_, T> {
    /// The figures of the model's task: see [`Model::evaluate`].
    ///
    /// # Errors
    /// [`FitError::Metric`] and [`FitError::Labels`] for targets that do not fit the rows or the model,
    /// [`FitError::Combination`] for labels in a regression and the reverse.
    pub fn evaluate(
        &self,
        targets: Targets<'_, T>,
        weights: Option<&[f64]>,
    ) -> Result<Evaluation, FitError> {
        let predictors = match &self.place {
            Place::Host(predictors) => {
                return self.model.evaluate_predictors(predictors, targets, weights);
            }
            Place::Device(predictors) => predictors,
        };
        match (self.model, targets) {
            (Model::Classifier(model), Targets::Labels(labels)) => {
                let summary = scoring::labels(model, predictors, labels, weights)?;
                Ok(Evaluation::Classification(summary))
            }
            (Model::Regressor(model), Targets::Numbers(targets)) => {
                let glm = model.params().glm();
                scoring::numbers(predictors, targets, weights, glm).map(of_numbers)
            }
            (_, targets) => Err(targets.mismatch()),
        }
    }

    /// Curves, residuals and groups, computed on the host.
    ///
    /// # Errors
    /// As [`LinearPredictors::evaluate`].
    pub fn diagnose(
        &self,
        targets: Targets<'_, T>,
        weights: Option<&[f64]>,
    ) -> Result<Diagnostics, FitError> {
        match &self.place {
            Place::Host(predictors) => self.diagnosed(predictors, targets, weights),
            Place::Device(predictors) => match predictors.as_host_slice() {
                Some(predictors) => self.diagnosed(predictors, targets, weights),
                None => self.diagnosed(&predictors.to_vec()?, targets, weights),
            },
        }
    }

    fn diagnosed(
        &self,
        predictors: &[T],
        targets: Targets<'_, T>,
        weights: Option<&[f64]>,
    ) -> Result<Diagnostics, FitError> {
        match (self.model, targets) {
            (Model::Classifier(model), Targets::Labels(labels)) => {
                let decisions = model.rows_of(predictors);
                let codes = model.classes().codes(labels)?;
                let scores = model
                    .is_probabilistic()
                    .then(|| model.probabilities_of(&decisions));
                let found = ClassificationDiagnostics::of(
                    (model.classes(), &codes),
                    &decisions,
                    scores.as_ref(),
                    weights,
                )?;
                Ok(Diagnostics::Classification(Box::new(found)))
            }
            (Model::Regressor(model), Targets::Numbers(targets)) => {
                let (family, link) = model.params().family_and_link();
                let mean = |t: &T| link.mean(Element::to_f64(*t));
                let means = crate::parallel::convert(predictors, mean);
                let targets = crate::parallel::convert(targets, |b| Element::to_f64(*b));
                let found =
                    RegressionDiagnostics::of(&targets, &means, Deviance::from(family), weights)?;
                Ok(Diagnostics::Regression(Box::new(found)))
            }
            (_, targets) => Err(targets.mismatch()),
        }
    }
}

impl Model {
    /// [`Model::evaluate_on`] of a model with one linear predictor per row, known already.
    pub(super) fn evaluate_predictors<T: Number>(
        &self,
        predictors: &[T],
        targets: Targets<'_, T>,
        weights: Option<&[f64]>,
    ) -> Result<Evaluation, FitError> {
        match (self, targets) {
            (Model::Classifier(model), Targets::Labels(labels)) => {
                let decisions = by_rows(&[predictors]);
                let summary = scoring::labels_on_host(model, &decisions, labels, weights)?;
                Ok(Evaluation::Classification(summary))
            }
            (Model::Regressor(model), Targets::Numbers(targets)) => {
                scoring::numbers_on_host(predictors, targets, weights, model.params().glm())
                    .map(of_numbers)
            }
            (_, targets) => Err(targets.mismatch()),
        }
    }
}
