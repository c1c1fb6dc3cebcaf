//! Any estimator of a linear model, chosen at run time.

use std::sync::Arc;

use super::fit::Controls;
use super::fit_methods::NumberEstimator;
use super::task::{AnyAnswer, Task};
use super::{
    Classifier, ElasticNet, Extras, FitError, Glm, Labels, Lasso, LinearSvc, LinearSvr,
    LogisticRegression, Model, Placed, Regressor, Ridge,
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
        extras: Extras<'_>,
    ) -> Result<Model, FitError> {
        let (options, evaluations) = (self.matrix_options(), self.evaluations(targets));
        let data = Placed::for_evaluations(device, features, options, evaluations)?;
        self.fit_on(&data, targets, extras)
    }

    /// [`Estimator::fit_with`] on features that are on a device already.
    ///
    /// # Errors
    /// As [`Estimator::fit_with`].
    pub fn fit_on<T: Number>(
        &self,
        data: &Placed<T>,
        targets: Targets<'_, T>,
        extras: Extras<'_>,
    ) -> Result<Model, FitError> {
        match targets {
            Targets::Numbers(targets) => self
                .fit_numbers(data, targets, extras)
                .map(Model::Regressor),
            Targets::Labels(labels) => self.fit_labels(data, labels, extras).map(Model::Classifier),
        }
    }

    fn fit_numbers<T: Number>(
        &self,
        data: &Placed<T>,
        targets: &[T],
        extras: Extras<'_>,
    ) -> Result<Regressor, FitError> {
        match self {
            Estimator::Ridge(params) => params.fit_on(data, targets, extras),
            Estimator::Lasso(params) => params.fit_on(data, targets, extras),
            Estimator::ElasticNet(params) => params.fit_on(data, targets, extras),
            Estimator::Glm(params) => params.fit_on(data, targets, extras),
            Estimator::LinearSvr(params) => params.fit_on(data, targets, extras),
            Estimator::LogisticRegression(_) | Estimator::LinearSvc(_) => {
                Err(mismatch("numbers", "a classifier", "give labels"))
            }
        }
    }

    fn fit_labels<T: Number>(
        &self,
        data: &Placed<T>,
        labels: &Labels,
        extras: Extras<'_>,
    ) -> Result<Classifier, FitError> {
        match self {
            Estimator::LogisticRegression(params) => params.fit_on(data, labels, extras),
            Estimator::LinearSvc(params) => params.fit_on(data, labels, extras),
            _ => Err(mismatch("labels", "a regression", "give numbers")),
        }
    }

    /// What is to be solved; `None` where that are several problems.
    pub(super) fn task<T: Number>(
        &self,
        data: &Placed<T>,
        targets: Targets<'_, T>,
        extras: &Extras<'_>,
    ) -> Result<Option<Task<T, AnyAnswer>>, FitError> {
        Ok(Some(match (self, targets) {
            (Estimator::Ridge(params), Targets::Numbers(b)) => params.task(data, b, extras)?.any(),
            (Estimator::Lasso(params), Targets::Numbers(b)) => params.task(data, b, extras)?.any(),
            (Estimator::ElasticNet(params), Targets::Numbers(b)) => {
                params.task(data, b, extras)?.any()
            }
            (Estimator::Glm(params), Targets::Numbers(b)) => params.task(data, b, extras)?.any(),
            (Estimator::LinearSvr(params), Targets::Numbers(b)) => {
                params.task(data, b, extras)?.any()
            }
            (Estimator::LogisticRegression(params), Targets::Labels(labels)) => {
                params.task(data, labels, extras)?.any()
            }
            (Estimator::LinearSvc(params), Targets::Labels(labels)) => {
                let mut tasks = params.tasks(data, labels, extras)?;
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
