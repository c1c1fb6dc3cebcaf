//! What Python gets of a model.

use pyo3::prelude::*;
use warpfuse::learning::{Model, RegressorParams};

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
    /// What would help a fit that did not converge.
    #[pyo3(get)]
    advice: &'static str,
    /// The norm of the gradient over that at the start.
    #[pyo3(get)]
    gradient_ratio: f64,
    #[pyo3(get)]
    objective: f64,
    /// The duality gap, of what has one.
    #[pyo3(get)]
    gap: Option<f64>,
    #[pyo3(get)]
    solver: &'static str,
    #[pyo3(get)]
    seconds: f64,
    #[pyo3(get)]
    transfer_seconds: f64,
    #[pyo3(get)]
    peak_device_bytes: u64,
}

impl Solution {
    /// That of a model of X in the precision T. A fit from a start of its own may have found nothing to do; one that began at
    /// the minimum by chance has looked once.
    pub fn of<T: Scalar>(py: Python<'_>, model: &Model, has_start: bool) -> Self {
        let scale = match model {
            Model::Regressor(model) => match model.params() {
                RegressorParams::Huber(huber) => huber.scale_of_residuals(),
                _ => None,
            },
            Model::Classifier(_) => None,
        };
        let report = model.report();
        let gap = report.relative_gap.map(|gap| gap * report.objective.abs());
        Self {
            coef: arrays::rows::<T>(py, &model.coef()).into_any().unbind(),
            intercept: arrays::numbers::<T>(py, &model.intercept())
                .into_any()
                .unbind(),
            n_iter: model.n_iter().max(usize::from(!has_start)),
            converged: model.converged(),
            scale,
            advice: report.convergence.advice(),
            gradient_ratio: report.gradient_ratio,
            objective: report.objective,
            gap: gap.filter(|gap| gap.is_finite()),
            solver: report.solver.name(),
            seconds: report.seconds,
            transfer_seconds: report.transfer_seconds,
            peak_device_bytes: report.peak_device_bytes,
        }
    }
}
