//! Any estimator of a linear model, chosen at run time.

use std::sync::Arc;

use super::fit::Controls;
use super::fit_methods::NumberEstimator;
use super::task::{AnyAnswer, Task};
use super::{
    Classifier, ElasticNet, FitError, FitOptions, Glm, Labels, Lasso, LinearSvc, LinearSvr,
    LogisticRegression, Model, Regressor, ResidentDataset, Ridge,
};
use crate::device::Device;
use crate::matrix::Features;
use crate::ops::{MatrixOptions, Number};

/// An estimator with its parameters.
#[derive(Debug, Clone, PartialEq)]
pub enum Estimator {
    /// [`Ridge`].
    Ridge(Ridge),
    /// [`Lasso`].
    Lasso(Lasso),
    /// [`ElasticNet`].
    ElasticNet(ElasticNet),
    /// [`Glm`].
    Glm(Glm),
    /// [`LinearSvr`].
    LinearSvr(LinearSvr),
    /// [`LogisticRegression`].
    LogisticRegression(LogisticRegression),
    /// [`LinearSvc`].
    LinearSvc(LinearSvc),
}

/// What an estimator learns to predict, one for each row.
#[derive(Debug, Clone, Copy)]
pub enum Targets<'a, T> {
    /// Of a regression.
    Numbers(&'a [T]),
    /// Of a classification.
    Labels(&'a Labels),
}

impl Estimator {
    /// Whether it learns labels.
    pub fn is_classifier(&self) -> bool {
        matches!(
            self,
            Estimator::LogisticRegression(_) | Estimator::LinearSvc(_)
        )
    }

    /// Fits to `features` (m × n) and `targets` (m) on `device`.
    ///
    /// # Errors
    /// As the estimator's own; [`FitError::Combination`] for labels in a regression and the reverse.
    pub fn fit_with<T: Number>(
        &self,
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
        targets: Targets<'_, T>,
        options: FitOptions<'_>,
    ) -> Result<Model, FitError> {
        let (matrix, evaluations) = (self.matrix_options(), self.evaluations(targets));
        let data = ResidentDataset::for_evaluations(device, features, matrix, evaluations)?;
        self.fit_on(&data, targets, options)
    }

    /// [`Estimator::fit_with`] on features that are on a device already.
    ///
    /// # Errors
    /// As [`Estimator::fit_with`].
    pub fn fit_on<T: Number>(
        &self,
        data: &ResidentDataset<T>,
        targets: Targets<'_, T>,
        options: FitOptions<'_>,
    ) -> Result<Model, FitError> {
        match targets {
            Targets::Numbers(targets) => self
                .fit_numbers(data, targets, options)
                .map(Model::Regressor),
            Targets::Labels(labels) => self
                .fit_labels(data, labels, options)
                .map(Model::Classifier),
        }
    }

    fn fit_numbers<T: Number>(
        &self,
        data: &ResidentDataset<T>,
        targets: &[T],
        options: FitOptions<'_>,
    ) -> Result<Regressor, FitError> {
        match self {
            Estimator::Ridge(params) => params.fit_on(data, targets, options),
            Estimator::Lasso(params) => params.fit_on(data, targets, options),
            Estimator::ElasticNet(params) => params.fit_on(data, targets, options),
            Estimator::Glm(params) => params.fit_on(data, targets, options),
            Estimator::LinearSvr(params) => params.fit_on(data, targets, options),
            Estimator::LogisticRegression(_) | Estimator::LinearSvc(_) => {
                Err(mismatch("numbers", "a classifier", "give labels"))
            }
        }
    }

    fn fit_labels<T: Number>(
        &self,
        data: &ResidentDataset<T>,
        labels: &Labels,
        options: FitOptions<'_>,
    ) -> Result<Classifier, FitError> {
        match self {
            Estimator::LogisticRegression(params) => params.fit_on(data, labels, options),
            Estimator::LinearSvc(params) => params.fit_on(data, labels, options),
            _ => Err(mismatch("labels", "a regression", "give numbers")),
        }
    }

    /// What is to be solved; `None` where that are several problems.
    pub(super) fn task<T: Number>(
        &self,
        data: &ResidentDataset<T>,
        targets: Targets<'_, T>,
        options: &FitOptions<'_>,
    ) -> Result<Option<Task<T, AnyAnswer>>, FitError> {
        Ok(Some(match (self, targets) {
            (Estimator::Ridge(params), Targets::Numbers(b)) => params.task(data, b, options)?.any(),
            (Estimator::Lasso(params), Targets::Numbers(b)) => params.task(data, b, options)?.any(),
            (Estimator::ElasticNet(params), Targets::Numbers(b)) => {
                params.task(data, b, options)?.any()
            }
            (Estimator::Glm(params), Targets::Numbers(b)) => params.task(data, b, options)?.any(),
            (Estimator::LinearSvr(params), Targets::Numbers(b)) => {
                params.task(data, b, options)?.any()
            }
            (Estimator::LogisticRegression(params), Targets::Labels(labels)) => {
                params.task(data, labels, options)?.any()
            }
            (Estimator::LinearSvc(params), Targets::Labels(labels)) => {
                let mut tasks = params.tasks(data, labels, options)?;
                match tasks.len() {
                    1 => tasks.swap_remove(0).any(),
                    _ => return Ok(None),
                }
            }
            _ => return Ok(None),
        }))
    }

    /// Expected reads of X.
    fn evaluations<T>(&self, targets: Targets<'_, T>) -> u64 {
        match (self, targets) {
            (Estimator::LogisticRegression(params), Targets::Labels(labels)) => {
                params.evaluations(labels)
            }
            (Estimator::LinearSvc(params), Targets::Labels(labels)) => params.evaluations(labels),
            _ => self.controls().evaluations(),
        }
    }

    /// How its products are planned on a GPU.
    fn matrix_options(&self) -> MatrixOptions {
        self.controls().matrix
    }

    /// Whether columns are divided by their deviations.
    pub fn standardizes(&self) -> bool {
        self.controls().standardize
    }

    fn controls(&self) -> &Controls {
        match self {
            Estimator::Ridge(params) => params.controls(),
            Estimator::Lasso(params) => params.controls(),
            Estimator::ElasticNet(params) => params.controls(),
            Estimator::Glm(params) => params.controls(),
            Estimator::LinearSvr(params) => params.controls(),
            Estimator::LogisticRegression(params) => params.controls(),
            Estimator::LinearSvc(params) => params.controls(),
        }
    }
}

pub(super) fn mismatch(
    first: &'static str,
    second: &'static str,
    remedy: &'static str,
) -> FitError {
    FitError::Combination {
        first,
        second,
        remedy,
    }
}
