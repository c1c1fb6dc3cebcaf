//! A fitted linear model of any kind, as files hold them.

use std::sync::Arc;

use super::classifier::Classifier;
use super::error::mismatch;
use super::estimators::Params;
use super::evaluation::Evaluation;
use super::fitted::Fitted;
use super::regressor::{Regressor, add_offset};
use super::report::FitReport;
use super::weights::Weights;
use super::{Classes, FitError, Targets, scoring};
use crate::device::{Buffer, Device};
use crate::matrix::{Dtype, Features, Schema};
use crate::ops::{Matrix, Number};

/// A fitted linear model.
///
/// [`Model::save`] and [`Model::load`] keep it in a safetensors file.
#[derive(Debug, Clone, PartialEq)]
pub enum Model {
    /// Of an estimator of numbers.
    Regressor(Regressor),
    /// Of a classifier.
    Classifier(Classifier),
}

impl Model {
    /// Of a fit, with the classes of labels.
    pub(super) fn new(
        dtype: Dtype,
        (params, classes): (Params, Option<Classes>),
        weights: Weights,
        report: FitReport,
    ) -> Model {
        match params {
            Params::Regressor(params) => {
                Model::Regressor(Fitted::new(dtype, weights, (), params, report))
            }
            Params::Classifier(params) => {
                let classes = classes.expect("a classifier has classes");
                Model::Classifier(Fitted::new(dtype, weights, classes, params, report))
            }
        }
    }

    /// n.
    pub fn cols(&self) -> usize {
        match self {
            Model::Regressor(model) => model.cols(),
            Model::Classifier(model) => model.cols(),
        }
    }

    /// What is known about the columns that it was trained on.
    pub fn schema(&self) -> &Schema {
        match self {
            Model::Regressor(model) => model.schema(),
            Model::Classifier(model) => model.schema(),
        }
    }

    /// The model with what is known about its columns, which [`Model::save`] keeps.
    #[must_use]
    pub fn with_schema(self, schema: Schema) -> Model {
        match self {
            Model::Regressor(model) => Model::Regressor(model.with_schema(schema)),
            Model::Classifier(model) => Model::Classifier(model.with_schema(schema)),
        }
    }

    /// Names of the columns, if all have one.
    pub fn feature_names(&self) -> Option<Vec<String>> {
        self.schema().feature_names(self.cols())
    }

    /// What files call its kind.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Model::Regressor(_) => "regressor",
            Model::Classifier(_) => "classifier",
        }
    }

    /// The type that the model was fitted in.
    pub fn dtype(&self) -> Dtype {
        match self {
            Model::Regressor(model) => model.dtype(),
            Model::Classifier(model) => model.dtype(),
        }
    }

    /// Coefficients, one list per linear predictor.
    pub fn coef(&self) -> Vec<&[f64]> {
        match self {
            Model::Regressor(model) => vec![model.coef()],
            Model::Classifier(model) => model.coef().iter().map(Vec::as_slice).collect(),
        }
    }

    /// Intercepts, one per linear predictor.
    pub fn intercept(&self) -> Vec<f64> {
        match self {
            Model::Regressor(model) => vec![model.intercept()],
            Model::Classifier(model) => model.intercept().to_vec(),
        }
    }

    /// Outer iterations of the fit.
    pub fn n_iter(&self) -> usize {
        match self {
            Model::Regressor(model) => model.n_iter(),
            Model::Classifier(model) => model.n_iter(),
        }
    }

    /// Whether the fit reached its tolerance.
    pub fn converged(&self) -> bool {
        match self {
            Model::Regressor(model) => model.converged(),
            Model::Classifier(model) => model.converged(),
        }
    }

    /// How the fit went.
    pub fn report(&self) -> &FitReport {
        match self {
            Model::Regressor(model) => model.report(),
            Model::Classifier(model) => model.report(),
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
        self.assess(x, targets, weights, None)?.evaluate()
    }

    /// Linear predictors, m × k by rows, on the device of `x`.
    pub(super) fn predictors_on<T: Number>(&self, x: &Matrix<T>) -> Result<Buffer<T>, FitError> {
        match self {
            Model::Regressor(model) => model.predictors_on(x),
            Model::Classifier(model) => model.predictors_on(x),
        }
    }

    /// [`Model::evaluate_on`] with an offset of each row added to its linear predictor, of models with one.
    ///
    /// # Errors
    /// As [`Model::evaluate`]; [`FitError::Length`] when there is not one offset for each row, [`FitError::Combination`] for
    /// a model of several linear predictors.
    pub fn evaluate_with_offset<T: Number>(
        &self,
        x: &Matrix<T>,
        targets: Targets<'_, T>,
        weights: Option<&[f64]>,
        offset: &[f64],
    ) -> Result<Evaluation, FitError> {
        self.assess(x, targets, weights, Some(offset))?.evaluate()
    }

    /// One linear predictor per row with its offset.
    pub(super) fn predictors_with_offset<T: Number>(
        &self,
        x: &Matrix<T>,
        offset: &[f64],
    ) -> Result<Vec<T>, FitError> {
        if let Model::Classifier(model) = self
            && model.coef().len() != 1
        {
            return Err(mismatch("an offset", "several classes", "leave it out"));
        }
        let mut predictors = self.predictors_on(x)?.to_vec()?;
        add_offset(&mut predictors, offset)?;
        Ok(predictors)
    }
}

pub(super) fn of_numbers((summary, deviance): scoring::NumberFigures) -> Evaluation {
    Evaluation::Regression { summary, deviance }
}
