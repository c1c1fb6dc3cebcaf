//! What Python gets of a model.

use pyo3::prelude::*;
use warpfuse::learning::{FitReport, Model, RegressorParams};

use crate::arrays::{self, Scalar};

/// Coefficients k × n and intercepts in the precision of X, and how the fit went.
#[pyclass(frozen, module = "warpfuse._native")]
pub struct Solution {
    #[pyo3(get)]
    coef: Py<PyAny>,
    #[pyo3(get)]
    intercept: Py<PyAny>,
    #[pyo3(get)]
    n_iter: usize,
    #[pyo3(get)]
    converged: bool,
    /// Of the residuals, which Huber's loss estimates.
    #[pyo3(get)]
    scale: Option<f64>,
    /// What the library's call took.
    #[pyo3(get)]
    call_seconds: f64,
    report: FitReport,
}

impl Solution {
    /// That of a model of X in the precision T, from a call of so many seconds. A fit from a start of its own may have found nothing to do; one that began
    /// at the minimum by chance has looked once.
    pub fn of<T: Scalar>(
        py: Python<'_>,
        model: &Model,
        has_start: bool,
        call_seconds: f64,
    ) -> Self {
        let scale = match model {
            Model::Regressor(model) => match model.params() {
                RegressorParams::Huber(huber) => huber.scale_of_residuals(),
                _ => None,
            },
            Model::Classifier(_) => None,
        };
        Self {
            coef: arrays::rows::<T>(py, &model.coef()).into_any().unbind(),
            intercept: arrays::numbers::<T>(py, &model.intercept())
                .into_any()
                .unbind(),
            n_iter: model.n_iter().max(usize::from(!has_start)),
            converged: model.converged(),
            scale,
            call_seconds,
            report: model.report().clone(),
        }
    }
}

#[pymethods]
impl Solution {
    /// What would help a fit that did not converge.
    #[getter]
    fn advice(&self) -> &'static str {
        self.report.convergence.advice()
    }

    /// The norm of the gradient over that at the start.
    #[getter]
    fn gradient_ratio(&self) -> f64 {
        self.report.gradient_ratio
    }

    #[getter]
    fn objective(&self) -> f64 {
        self.report.objective
    }

    /// The duality gap, of what has one.
    #[getter]
    fn gap(&self) -> Option<f64> {
        let gap = self.report.relative_gap? * self.report.objective.abs();
        gap.is_finite().then_some(gap)
    }

    #[getter]
    fn solver(&self) -> &'static str {
        self.report.solver.name()
    }

    #[getter]
    fn seconds(&self) -> f64 {
        self.report.seconds
    }

    #[getter]
    fn transfer_seconds(&self) -> f64 {
        self.report.transfer_seconds
    }

    #[getter]
    fn peak_device_bytes(&self) -> u64 {
        self.report.peak_device_bytes
    }
}
