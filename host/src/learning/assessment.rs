//! A model beside known targets: its linear predictors are kept, so that figures and curves read X once together.

use std::cell::OnceCell;

use super::classifier::by_rows;
use super::diagnostics::Shown;
use super::metrics::{Deviance, check_samples};
use super::model::of_numbers;
use super::{
    ClassificationDiagnostics, Classifier, Diagnostics, Evaluation, FitError, Labels, Model,
    RegressionDiagnostics, Targets, scoring,
};
use crate::device::Buffer;
use crate::matrix::{Element, RowSample};
use crate::ops::{Matrix, Number};
use crate::parallel;

/// A model on data with known targets.
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
/// let x = Matrix::<f64>::new(&device, x)?;
/// let assessment = model.assess(&x, Targets::Labels(&labels), None, None)?;
/// assert_eq!(assessment.evaluate()?.score(), 1.0);
/// let found = assessment.diagnose()?;
/// let Diagnostics::Classification(found) = found else { panic!("labels") };
/// assert_eq!(found.curves[0].auc, Some(1.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Assessment<'a, T: Number> {
    model: &'a Model,
    targets: Targets<'a, T>,
    weights: Option<&'a [f64]>,
    predictors: Place<T>,
    /// The area under the ROC curve, once it is known: it takes a sort of all rows.
    area: OnceCell<Option<f64>>,
}

/// Linear predictors, m × k by rows.
#[derive(Debug)]
enum Place<T: Number> {
    /// Where X is.
    Device(Buffer<T>),
    /// On the host, where offsets were added.
    Host(Vec<T>),
}

impl Model {
    /// Applies the model to `x`, which is read once, and keeps its linear predictors. `weights` has one weight for each row,
    /// and `offset` one summand of its linear predictor.
    ///
    /// # Errors
    /// [`FitError::Features`] for X of other columns, [`FitError::Length`] when there is not one offset for each row,
    /// [`FitError::Combination`] for offsets and a model of several linear predictors, [`FitError::Op`] when the device
    /// fails.
    pub fn assess<'a, T: Number>(
        &'a self,
        x: &Matrix<T>,
        targets: Targets<'a, T>,
        weights: Option<&'a [f64]>,
        offset: Option<&[f64]>,
    ) -> Result<Assessment<'a, T>, FitError> {
        let predictors = match offset {
            None => Place::Device(self.predictors_on(x)?),
            Some(offset) => Place::Host(self.predictors_with_offset(x, offset)?),
        };
        Ok(Assessment {
            model: self,
            targets,
            weights,
            predictors,
            area: OnceCell::new(),
        })
    }
}

impl<T: Number> Assessment<'_, T> {
    /// The figures of the model's task: see [`Model::evaluate`].
    ///
    /// # Errors
    /// [`FitError::Metric`] and [`FitError::Labels`] for targets that do not fit the rows or the model,
    /// [`FitError::Combination`] for labels in a regression and the reverse.
    pub fn evaluate(&self) -> Result<Evaluation, FitError> {
        let (targets, weights) = (self.targets, self.weights);
        let found = match &self.predictors {
            Place::Host(predictors) => self.model.evaluate_predictors(predictors, targets, weights),
            Place::Device(predictors) => self.evaluated(predictors),
        }?;
        if let Evaluation::Classification(summary) = &found {
            self.area.get_or_init(|| summary.auc);
        }
        Ok(found)
    }

    fn evaluated(&self, predictors: &Buffer<T>) -> Result<Evaluation, FitError> {
        let weights = self.weights;
        match (self.model, self.targets) {
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
    /// As [`Assessment::evaluate`].
    pub fn diagnose(&self) -> Result<Diagnostics, FitError> {
        match &self.predictors {
            Place::Host(predictors) => self.diagnosed(predictors),
            Place::Device(predictors) => match predictors.as_host_slice() {
                Some(predictors) => self.diagnosed(predictors),
                None => self.diagnosed(&predictors.to_vec()?),
            },
        }
    }

    fn diagnosed(&self, predictors: &[T]) -> Result<Diagnostics, FitError> {
        let weights = self.weights;
        match (self.model, self.targets) {
            (Model::Classifier(model), Targets::Labels(labels)) => {
                let found = self.classified(model, predictors, labels)?;
                Ok(Diagnostics::Classification(Box::new(found)))
            }
            (Model::Regressor(model), Targets::Numbers(targets)) => {
                check_samples(targets.len(), predictors.len(), weights)?;
                let sample = RowSample::of(targets.len());
                let (family, link) = model.params().family_and_link();
                let mean = |t: &T| link.mean(Element::to_f64(*t));
                let means = parallel::convert(&sample.pick(predictors, 1), mean);
                let wide = |b: &T| Element::to_f64(*b);
                let targets = parallel::convert(&sample.pick(targets, 1), wide);
                let weights = weights.map(|weights| sample.pick(weights, 1));
                let (deviance, weights) = (Deviance::from(family), weights.as_deref());
                let found = RegressionDiagnostics::of(&targets, &means, deviance, weights)?;
                Ok(Diagnostics::Regression(Box::new(RegressionDiagnostics {
                    sampled_from: sample.all_rows(),
                    ..found
                })))
            }
            (_, targets) => Err(targets.mismatch()),
        }
    }

    fn classified(
        &self,
        model: &Classifier,
        predictors: &[T],
        labels: &Labels,
    ) -> Result<ClassificationDiagnostics, FitError> {
        let weights = self.weights;
        let width = model.coef().len();
        check_samples(labels.len(), predictors.len() / width, weights)?;
        let codes = model.classes().codes(labels)?;
        let sample = RowSample::of(codes.len());
        let decisions = model.rows_of(&sample.pick(predictors, width));
        let probabilities = model
            .is_probabilistic()
            .then(|| model.probabilities_of(&decisions));
        let shown_weights = weights.map(|weights| sample.pick(weights, 1));
        let shown = Shown {
            codes: &sample.pick(&codes, 1),
            decisions: &decisions,
            probabilities: probabilities.as_ref(),
            weights: shown_weights.as_deref(),
        };
        let mut found = ClassificationDiagnostics::of(model.classes(), (&codes, weights), &shown)?;
        if let (Some(_), [one]) = (sample.all_rows(), found.curves.as_mut_slice()) {
            // Exact whatever the number of rows.
            one.auc = match self.area.get() {
                Some(area) => *area,
                None => scoring::area(model, &model.rows_of(predictors), &codes, weights)?,
            };
        }
        Ok(found)
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
