//! A fitted linear model of any kind, as files hold them.

use std::sync::Arc;

use super::classifier::by_rows;
use super::estimator::mismatch;
use super::metrics::{ClassificationSummary, RegressionSummary};
use super::scoring;
use super::{Classifier, FitError, LinearModel, Regressor, SolveReport, Targets};
use crate::device::Device;
use crate::matrix::{Dtype, Features};
use crate::ops::{Matrix, Number};

/// A fitted linear model.
///
/// [`Model::save`] and [`Model::load`] keep it in a safetensors file.
#[derive(Debug, Clone, PartialEq)]
pub enum Model {
    /// Of [`LinearRegression`](super::LinearRegression).
    Linear(LinearModel),
    /// Of an estimator of numbers.
    Regressor(Regressor),
    /// Of a classifier.
    Classifier(Classifier),
}

/// Figures of a model on data with known targets.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum Evaluation {
    /// Of numbers.
    Regression {
        /// R², RMSE, MAE.
        #[serde(flatten)]
        summary: RegressionSummary,
        /// Mean deviance and the share of it that is explained, of a [`Glm`](super::Glm).
        #[serde(flatten, skip_serializing_if = "Option::is_none")]
        deviance: Option<DevianceSummary>,
    },
    /// Of labels.
    Classification(ClassificationSummary),
}

/// The deviance of a generalised linear model.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct DevianceSummary {
    /// Mean unit deviance.
    pub mean_deviance: f64,
    /// D², the explained share.
    pub explained_deviance: f64,
}

impl Model {
    /// n.
    pub fn cols(&self) -> usize {
        match self {
            Model::Linear(model) => model.coef().len(),
            Model::Regressor(model) => model.coef().len(),
            Model::Classifier(model) => model.coef().first().map_or(0, Vec::len),
        }
    }

    /// The type that the model was fitted in.
    pub fn dtype(&self) -> Dtype {
        match self {
            Model::Linear(model) => model.dtype(),
            Model::Regressor(model) => model.dtype(),
            Model::Classifier(model) => model.dtype(),
        }
    }

    /// Coefficients, one list per linear predictor.
    pub fn coef(&self) -> Vec<&[f64]> {
        match self {
            Model::Linear(model) => vec![model.coef()],
            Model::Regressor(model) => vec![model.coef()],
            Model::Classifier(model) => model.coef().iter().map(Vec::as_slice).collect(),
        }
    }

    /// Intercepts, one per linear predictor.
    pub fn intercept(&self) -> Vec<f64> {
        match self {
            Model::Linear(model) => vec![model.intercept()],
            Model::Regressor(model) => vec![model.intercept()],
            Model::Classifier(model) => model.intercept().to_vec(),
        }
    }

    /// Outer iterations of the fit.
    pub fn n_iter(&self) -> usize {
        match self {
            Model::Linear(model) => model.n_iter(),
            Model::Regressor(model) => model.n_iter(),
            Model::Classifier(model) => model.n_iter(),
        }
    }

    /// Whether the fit reached its tolerance.
    pub fn converged(&self) -> bool {
        match self {
            Model::Linear(model) => model.converged(),
            Model::Regressor(model) => model.converged(),
            Model::Classifier(model) => model.converged(),
        }
    }

    /// How the fit went; `None` of a [`LinearModel`], which has a report of its own.
    pub fn report(&self) -> Option<&SolveReport> {
        match self {
            Model::Linear(_) => None,
            Model::Regressor(model) => Some(model.report()),
            Model::Classifier(model) => Some(model.report()),
        }
    }

    /// The classifier, if it is one.
    pub fn classifier(&self) -> Option<&Classifier> {
        match self {
            Model::Classifier(model) => Some(model),
            _ => None,
        }
    }

    /// Predicted numbers.
    ///
    /// # Errors
    /// As [`Regressor::predict`]; [`FitError::Combination`] for a classifier, which predicts labels.
    pub fn predict<T: Number>(
        &self,
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
    ) -> Result<Vec<T>, FitError> {
        match self {
            Model::Linear(model) => model.predict(device, features),
            Model::Regressor(model) => model.predict(device, features),
            Model::Classifier(_) => Err(mismatch(
                "predicted numbers",
                "a classifier",
                "ask the classifier itself for labels, decisions or probabilities",
            )),
        }
    }

    /// The figures of the model's task on data with known targets.
    ///
    /// # Errors
    /// As the prediction's; [`FitError::Metric`] and [`FitError::Labels`] for targets that do not fit the rows or
    /// the model, [`FitError::Combination`] for labels in a regression and the reverse.
    pub fn evaluate<T: Number>(
        &self,
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
        targets: Targets<'_, T>,
        weights: Option<&[f64]>,
    ) -> Result<Evaluation, FitError> {
        let x = Matrix::new(device, features)?;
        self.evaluate_on(&x, targets, weights)
    }

    /// [`Model::evaluate`] on a matrix that is on a device already.
    ///
    /// # Errors
    /// As [`Model::evaluate`].
    pub fn evaluate_on<T: Number>(
        &self,
        x: &Matrix<T>,
        targets: Targets<'_, T>,
        weights: Option<&[f64]>,
    ) -> Result<Evaluation, FitError> {
        match (self, targets) {
            (Model::Classifier(model), Targets::Labels(labels)) => {
                let predictors = model.predictors_on(x)?;
                let summary = scoring::labels(model, &predictors, labels, weights)?;
                Ok(Evaluation::Classification(summary))
            }
            (Model::Regressor(model), Targets::Numbers(targets)) => {
                let predictors = model.predictors_on(x)?;
                scoring::numbers(&predictors, targets, weights, model.glm()).map(of_numbers)
            }
            (Model::Linear(model), Targets::Numbers(targets)) => {
                let predictions = model.predictions_on(x)?;
                scoring::numbers(&predictions, targets, weights, None).map(of_numbers)
            }
            (Model::Classifier(_), Targets::Numbers(_)) => {
                Err(mismatch("numbers", "a classifier", "give labels"))
            }
            (_, Targets::Labels(_)) => Err(mismatch("labels", "a regression", "give numbers")),
        }
    }

    /// [`Model::evaluate_on`] of a model with one linear predictor per row, known already.
    pub(super) fn evaluate_predictors<T: Number>(
        &self,
        predictors: Vec<T>,
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
                scoring::numbers_on_host(&predictors, targets, weights, model.glm()).map(of_numbers)
            }
            (Model::Linear(_), Targets::Numbers(targets)) => {
                scoring::numbers_on_host(&predictors, targets, weights, None).map(of_numbers)
            }
            (Model::Classifier(_), Targets::Numbers(_)) => {
                Err(mismatch("numbers", "a classifier", "give labels"))
            }
            (_, Targets::Labels(_)) => Err(mismatch("labels", "a regression", "give numbers")),
        }
    }
}

fn of_numbers((summary, deviance): scoring::NumberFigures) -> Evaluation {
    Evaluation::Regression { summary, deviance }
}
