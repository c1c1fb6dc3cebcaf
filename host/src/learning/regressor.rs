//! A fitted regressor.

use std::sync::Arc;

use super::FitError;
use super::checks::expect_len;
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

    /// [`Regressor::predict`] with an offset of each row added to its linear predictor: what counts of these exposures are
    /// expected to be, for offsets that are their logarithms.
    ///
    /// ```
    /// use ndarray::array;
    /// use warpfuse::device::Device;
    /// use warpfuse::learning::{Family, FitOptions, Glm};
    /// use warpfuse::matrix::Features;
    ///
    /// let (device, x) = (Device::cpu(), Features::Dense(array![[0.0], [0.0], [1.0], [1.0]]));
    /// // Claims of policies that ran for 1, 3, 1 and 2 years: 2 a year in the first group, 5 in the other.
    /// let years = [1.0, 3.0, 1.0, 2.0].map(f64::ln);
    /// let options = FitOptions { offset: Some(&years), ..FitOptions::default() };
    /// let glm = Glm::params().family(Family::Poisson).alpha(0.0);
    /// let model = glm.fit_with(&device, x.clone(), &[2.0, 6.0, 5.0, 10.0], options)?;
    /// let claims: Vec<f64> = model.predict_with_offset(&device, x.clone(), &years)?;
    /// let a_year: Vec<f64> = model.predict(&device, x)?;
    /// assert!((claims[1] - 6.0).abs() < 1e-6 && (a_year[1] - 2.0).abs() < 1e-6);
    /// # Ok::<(), warpfuse::learning::FitError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Regressor::predict`], and [`FitError::Length`] when there is not one offset for each row.
    pub fn predict_with_offset<T: Number>(
        &self,
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
        offset: &[f64],
    ) -> Result<Vec<T>, FitError> {
        let mut predictors = self.decision_function(device, features)?;
        add_offset(&mut predictors, offset)?;
        Ok(self.means(predictors))
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

/// Adds one offset to each linear predictor.
///
/// # Errors
/// [`FitError::Length`] when there are not as many.
pub(super) fn add_offset<T: Number>(predictors: &mut [T], offset: &[f64]) -> Result<(), FitError> {
    expect_len("offsets", Some(offset.len()), predictors.len())?;
    for (t, offset) in predictors.iter_mut().zip(offset) {
        *t = <T as Element>::from_f64(Element::to_f64(*t) + offset);
    }
    Ok(())
}
