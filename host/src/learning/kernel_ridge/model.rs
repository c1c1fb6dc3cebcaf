//! A fitted kernel model.

use ndarray::{Array2, ArrayView2};

use super::KernelSolver;
use crate::device::Device;
use crate::learning::metrics::RegressionSummary;
use crate::learning::{Convergence, FitError};
use crate::matrix::{Dtype, Element, Schema};
use crate::ops::{Kernel, KernelSum, Number};

/// How a fit went.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct KernelFitReport {
    /// Iterations: sums over all pairs in the working type; with a Cholesky factor solves with it.
    pub n_iter: usize,
    /// What solved it.
    #[serde(default)]
    pub solver: KernelSolver,
    /// Why that.
    #[serde(default)]
    pub solver_reason: String,
    /// How the solve ended.
    pub convergence: Convergence,
    /// ‖t − (K + λI)·a‖ / ‖t‖, computed in f64.
    pub residual_ratio: f64,
    /// The device's name.
    pub device: String,
    /// Transfer, and preconditioner or factor.
    pub setup_seconds: f64,
    /// Everything.
    pub seconds: f64,
    /// The most that was held on the device, bytes.
    pub peak_device_bytes: u64,
}

/// `f(x) = Σᵢ aᵢ·k(x, xᵢ)`, from [`KernelRidge`](super::KernelRidge).
#[derive(Debug, Clone, PartialEq)]
pub struct KernelModel {
    pub(super) dtype: Dtype,
    pub(super) kernel: Kernel,
    pub(super) alpha: f64,
    pub(super) points: Array2<f64>,
    pub(super) dual: Vec<f64>,
    pub(super) report: KernelFitReport,
    pub(super) schema: Schema,
}

impl KernelModel {
    pub(super) fn new(
        dtype: Dtype,
        kernel: Kernel,
        alpha: f64,
        points: Array2<f64>,
        dual: Vec<f64>,
        report: KernelFitReport,
    ) -> KernelModel {
        KernelModel {
            dtype,
            kernel,
            alpha,
            points,
            dual,
            report,
            schema: Schema::default(),
        }
    }

    /// The element type that was fitted in.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// k with its length scale.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// λ.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// a, one coefficient per sample: scikit-learn's `dual_coef_`.
    pub fn dual_coef(&self) -> &[f64] {
        &self.dual
    }

    /// The samples, N × D: scikit-learn's `X_fit_`.
    pub fn points(&self) -> ArrayView2<'_, f64> {
        self.points.view()
    }

    /// What is known about the columns of the samples.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The model with what is known about its columns, which [`KernelModel::save`] keeps.
    #[must_use]
    pub fn with_schema(mut self, schema: Schema) -> Self {
        self.schema = schema;
        self
    }

    /// How the fit went.
    pub fn report(&self) -> &KernelFitReport {
        &self.report
    }

    /// Whether the residual became as small as was requested.
    pub fn converged(&self) -> bool {
        self.report.convergence == Convergence::Converged
    }

    /// f at the rows of `features` (M × D), on any device. Members of a group bring rows of their own, and all of them get f at
    /// the rows of all.
    ///
    /// # Errors
    /// [`FitError::Features`] for another number of columns, [`FitError::Op`] when the device fails.
    pub fn predict<T: Number>(
        &self,
        device: &Device,
        features: ArrayView2<'_, T>,
    ) -> Result<Vec<T>, FitError> {
        let (expected, found) = (self.points.ncols(), features.ncols());
        if found != expected {
            return Err(FitError::Features { expected, found });
        }
        let points = self.points.mapv(<T as Element>::from_f64);
        let sums = KernelSum::new(device, self.kernel, features, points.view())?;
        let dual: Vec<T> = self
            .dual
            .iter()
            .map(|a| <T as Element>::from_f64(*a))
            .collect();
        let mut f = device.zeros(sums.targets())?;
        sums.sum(&device.upload(&dual)?, &mut f)?;
        Ok(f.to_vec()?)
    }

    /// The figures of f on rows of `features` (M × D) with known `targets` (M).
    ///
    /// # Errors
    /// As [`KernelModel::predict`]; [`FitError::Metric`] for targets or weights that do not fit the rows.
    pub fn evaluate<T: Number>(
        &self,
        device: &Device,
        features: ArrayView2<'_, T>,
        targets: &[T],
        weights: Option<&[f64]>,
    ) -> Result<RegressionSummary, FitError> {
        let wide =
            |values: &[T]| -> Vec<f64> { values.iter().map(|v| Element::to_f64(*v)).collect() };
        let found = self.predict(device, features)?;
        Ok(RegressionSummary::of(
            &wide(targets),
            &wide(&found),
            weights,
        )?)
    }
}
