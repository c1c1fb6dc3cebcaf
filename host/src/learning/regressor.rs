//! A fitted regressor.

use std::sync::Arc;

use super::fit::SolveReport;
use super::glm::{Family, Link};
use super::liblinear::SolverType;
use super::scoring;
use super::weights::Weights;
use super::{ElasticNet, FitError, Glm, Iteration, Lasso, LinearSvr, Ridge};
use crate::device::{Buffer, Device};
use crate::matrix::{Dtype, Element, Features};
use crate::ops::{Matrix, Number};

/// Which estimator a regressor came from, with its parameters.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "estimator", rename_all = "snake_case")]
pub enum RegressorParams {
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
    /// Read from a file of LIBLINEAR.
    Liblinear {
        /// What LIBLINEAR minimised.
        solver: SolverType,
    },
}

impl RegressorParams {
    /// Distribution of the targets and link; gaussian and identity but for [`Glm`].
    pub fn family_and_link(&self) -> (Family, Link) {
        match self {
            RegressorParams::Glm(glm) => glm.family_and_link(),
            _ => (Family::Gaussian, Link::Identity),
        }
    }
}

/// A linear model of the mean of a target: `g(mean) = x·coef + intercept`, g the link.
#[derive(Debug, Clone, PartialEq)]
pub struct Regressor {
    dtype: Dtype,
    weights: Weights,
    params: RegressorParams,
    report: SolveReport,
}

impl Regressor {
    pub(super) fn new(
        dtype: Dtype,
        weights: Weights,
        params: RegressorParams,
        report: SolveReport,
    ) -> Self {
        Regressor {
            dtype,
            weights,
            params,
            report,
        }
    }

    /// The n coefficients; those of an f32 fit are f32 values, widened.
    pub fn coef(&self) -> &[f64] {
        &self.weights.coef[0]
    }

    /// The intercept, 0 when none was fitted.
    pub fn intercept(&self) -> f64 {
        self.weights.intercept[0]
    }

    /// The type that the model was fitted in.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The estimator and its parameters.
    pub fn params(&self) -> &RegressorParams {
        &self.params
    }

    /// Outer iterations of the fit.
    pub fn n_iter(&self) -> usize {
        self.report.n_iter
    }

    /// Whether the fit reached its tolerance, or what the precision allows.
    pub fn converged(&self) -> bool {
        self.report.convergence.is_success()
    }

    /// Objective and gradient of each outer iteration.
    pub fn history(&self) -> &[Iteration] {
        &self.report.history
    }

    /// How the fit went.
    pub fn report(&self) -> &SolveReport {
        &self.report
    }

    /// Linear predictors `x·coef + intercept`, computed on `device`.
    ///
    /// # Errors
    /// [`FitError::Features`] when n differs (see [`Features::with_cols`] for sparse files that show fewer
    /// columns), [`FitError::Op`] when the device fails.
    pub fn decision_function<T: Number>(
        &self,
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
    ) -> Result<Vec<T>, FitError> {
        let mut sides = self.weights.apply(device, features)?;
        Ok(sides.swap_remove(0))
    }

    /// Linear predictors for a matrix that is on a device already, left there.
    pub(super) fn predictors_on<T: Number>(&self, x: &Matrix<T>) -> Result<Buffer<T>, FitError> {
        self.weights.predictors_on(x)
    }

    /// Family and link of a generalised linear model.
    pub(super) fn glm(&self) -> Option<(Family, Link)> {
        match &self.params {
            RegressorParams::Glm(glm) => Some(glm.family_and_link()),
            _ => None,
        }
    }

    /// Linear predictors through the inverse of the link.
    fn means<T: Number>(&self, mut predictors: Vec<T>) -> Vec<T> {
        let (_, link) = self.params.family_and_link();
        if link != Link::Identity {
            let link = link.of_kernels();
            for mean in &mut predictors {
                *mean = <T as Element>::from_f64(link.mean(Element::to_f64(*mean)));
            }
        }
        predictors
    }

    /// Predicted means: the linear predictors through the inverse of the link.
    ///
    /// # Errors
    /// As [`Regressor::decision_function`].
    pub fn predict<T: Number>(
        &self,
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
    ) -> Result<Vec<T>, FitError> {
        Ok(self.means(self.decision_function(device, features)?))
    }

    /// R² of the predictions; of a [`Glm`] D², the share of the deviance that is explained.
    ///
    /// # Errors
    /// As [`Regressor::decision_function`]; [`FitError::Metric`] when there is not one target per row, or a
    /// target lies outside the distribution.
    pub fn score<T: Number>(
        &self,
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
        targets: &[T],
    ) -> Result<f64, FitError> {
        let predictors = self.predictors_on(&Matrix::new(device, features)?)?;
        let (summary, deviance) = scoring::numbers(&predictors, targets, None, self.glm())?;
        Ok(deviance.map_or(summary.r2, |deviance| deviance.explained_deviance))
    }
}
