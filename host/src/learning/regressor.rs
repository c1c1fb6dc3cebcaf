//! A fitted regressor.

use std::sync::Arc;

use super::FitError;
use super::estimators::RegressorParams;
use super::family::Link;
use super::fitted::{Fitted, Predicts};
use crate::device::{Buffer, Device};
use crate::matrix::{Element, Features};
use crate::ops::{Matrix, Number};

/// A linear model of the mean of a target: `g(mean) = x·coef + intercept`, g the link.
pub type Regressor = Fitted<RegressorParams>;

impl Predicts for RegressorParams {
    type Meaning = ();
}

impl Regressor {
    /// The n coefficients; those of an f32 fit are f32 values, widened.
    pub fn coef(&self) -> &[f64] {
        &self.weights.coef[0]
    }

    /// The intercept, 0 when none was fitted.
    pub fn intercept(&self) -> f64 {
        self.weights.intercept[0]
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
}
