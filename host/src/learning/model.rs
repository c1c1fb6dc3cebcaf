//! A fitted linear model.

use std::sync::Arc;

use super::cg::Convergence;
use super::{FitError, LinearRegression, RegressionMetrics};
use crate::device::{Buffer, Device};
use crate::matrix::{Dtype, Element, Features};
use crate::ops::{Matrix, Number, Terms};

/// What a fit found out besides the coefficients.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct FitReport {
    /// m.
    pub rows: usize,
    /// Stored entries of X.
    pub nnz: u64,
    /// Iterations.
    pub n_iter: usize,
    /// How the iteration ended.
    pub convergence: Convergence,
    /// ‖gradient‖ / ‖gradient at zero‖ at the end.
    pub residual_ratio: f64,
    /// R² and RMSE on the training data.
    pub metrics: RegressionMetrics,
    /// The device's name.
    pub device: String,
    /// Seconds until the data were on the device.
    pub transfer_seconds: f64,
    /// Seconds in all.
    pub seconds: f64,
    /// The most bytes that buffers held on the device.
    pub peak_device_bytes: u64,
}

/// A linear model: prediction = x·coef + intercept.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearModel {
    dtype: Dtype,
    coef: Vec<f64>,
    intercept: f64,
    params: LinearRegression,
    report: FitReport,
}

impl LinearModel {
    pub(super) fn new(
        dtype: Dtype,
        coef: Vec<f64>,
        intercept: f64,
        params: LinearRegression,
        report: FitReport,
    ) -> Self {
        LinearModel {
            dtype,
            coef,
            intercept,
            params,
            report,
        }
    }

    /// The n coefficients; those of an f32 fit are f32 values, widened.
    pub fn coef(&self) -> &[f64] {
        &self.coef
    }

    /// The intercept, 0 when none was fitted.
    pub fn intercept(&self) -> f64 {
        self.intercept
    }

    /// `Σ (tᵢ − xᵢ·w − b)² + λ·‖w‖²` on the training data.
    pub fn objective(&self) -> f64 {
        let squares: f64 = self.coef.iter().map(|w| w * w).sum();
        let rmse = self.report.metrics.rmse;
        self.report.rows as f64 * rmse * rmse + self.params.l2 * squares
    }

    /// The type that the model was fitted in.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The parameters of the fit.
    pub fn params(&self) -> &LinearRegression {
        &self.params
    }

    /// Iterations of the fit.
    pub fn n_iter(&self) -> usize {
        self.report.n_iter
    }

    /// Whether the fit reached its tolerance.
    pub fn converged(&self) -> bool {
        self.report.convergence == Convergence::Converged
    }

    /// How the fit went.
    pub fn report(&self) -> &FitReport {
        &self.report
    }

    /// Predictions for `features` (m × n), computed on `device`.
    ///
    /// # Errors
    /// [`FitError::Features`] when n differs (see [`Features::with_cols`] for sparse files that show fewer
    /// columns), [`FitError::Op`] when the device fails.
    pub fn predict<T: Number>(
        &self,
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
    ) -> Result<Vec<T>, FitError> {
        let features = features.into();
        let (expected, found) = (self.coef.len(), features.cols());
        if expected != found {
            return Err(FitError::Features { expected, found });
        }
        self.predict_on(&Matrix::new(device, features)?)
    }

    /// Predictions for a matrix of n columns that is on a device already.
    pub(super) fn predict_on<T: Number>(&self, matrix: &Matrix<T>) -> Result<Vec<T>, FitError> {
        Ok(self.predictions_on(matrix)?.to_vec()?)
    }

    /// [`LinearModel::predict_on`], left on the device.
    pub(super) fn predictions_on<T: Number>(
        &self,
        matrix: &Matrix<T>,
    ) -> Result<Buffer<T>, FitError> {
        let (expected, found) = (self.coef.len(), matrix.cols());
        if expected != found {
            return Err(FitError::Features { expected, found });
        }
        let device = matrix.device();
        let coef: Vec<T> = self
            .coef
            .iter()
            .map(|w| <T as Element>::from_f64(*w))
            .collect();
        let coef = device.upload(&coef)?;
        let shift = device.upload(&[<T as Element>::from_f64(-self.intercept)])?;
        let mut predictions = device.zeros(matrix.rows())?;
        let terms = Terms {
            shift: Some(&shift),
            ..Terms::default()
        };
        matrix.forward(&coef, &terms, &mut predictions)?;
        Ok(predictions)
    }
}
