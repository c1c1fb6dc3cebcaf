//! Kernel ridge regression, and sums over kernels.

use std::time::Instant;

use ndarray::ArrayView2;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, ToPyArray};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use warpfuse::learning::KernelRidge;
use warpfuse::ops::{Kernel, KernelFunction, KernelSum};

use crate::again::{self, Count, Known};
use crate::arrays::Scalar;
use crate::device::Device;
use crate::{arrays, checkpoint, errors, watch};

fn function(name: &str) -> PyResult<KernelFunction> {
    Ok(match name {
        "rbf" => KernelFunction::Gaussian,
        "laplacian" => KernelFunction::Laplace,
        "matern12" => KernelFunction::Matern12,
        "matern32" => KernelFunction::Matern32,
        "matern52" => KernelFunction::Matern52,
        "cauchy" => KernelFunction::Cauchy,
        "inverse_multiquadric" => KernelFunction::InverseMultiquadric,
        _ => {
            return Err(PyValueError::new_err(format!(
                "there is no kernel {name}: expected rbf, laplacian, matern12, matern32, matern52, cauchy or inverse_multiquadric"
            )));
        }
    })
}

/// The dual coefficients of kernel ridge regression.
#[pyfunction]
#[pyo3(signature = (x, y, device, *, kernel, length_scale, alpha, tol, max_iter, watch = None))]
#[allow(
    clippy::too_many_arguments,
    reason = "they are Python's, with names there"
)]
pub fn kernel_ridge<'py>(
    x: PyReadonlyArray2<'py, f64>,
    y: PyReadonlyArray1<'py, f64>,
    device: &Device,
    kernel: &str,
    length_scale: f64,
    alpha: f64,
    tol: f64,
    max_iter: usize,
    watch: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let params = KernelRidge::params()
        .kernel(function(kernel)?, length_scale)
        .alpha(alpha)
        .tolerance(tol)
        .max_iter(max_iter);
    solve(x.py(), params, x.as_array(), y.as_slice()?, device, watch)
}

fn solve<'py>(
    py: Python<'py>,
    params: KernelRidge,
    x: ArrayView2<'_, f64>,
    y: &[f64],
    device: &Device,
    watch: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let device = &device.0;
    let (model, seconds) = watch::watched(py, watch, |watcher| {
        let tell = |progress| watcher.step(progress);
        let begun = Instant::now();
        let model = match &checkpoint::next() {
            None => params.fit_watched(device, x, y, tell),
            Some(checkpoint) => params.fit_with_checkpoint(device, x, y, checkpoint, tell),
        };
        Ok((model?, begun.elapsed().as_secs_f64()))
    })?;
    let (dict, report) = (PyDict::new(py), model.report());
    dict.set_item("dual_coef", arrays::vector(py, model.dual_coef()))?;
    dict.set_item("n_iter", report.n_iter)?;
    dict.set_item("converged", model.converged())?;
    dict.set_item("advice", report.convergence.advice())?;
    dict.set_item("residual_ratio", report.residual_ratio)?;
    dict.set_item("seconds", report.seconds)?;
    dict.set_item("call_seconds", seconds)?;
    Ok(dict)
}

/// Kernel ridge regression with parameters that have been fitted before; see `again`.
#[pyclass(frozen, module = "warpfuse._native")]
pub struct PreparedKernelRidge {
    known: Known,
    params: KernelRidge,
}

#[pymethods]
impl PreparedKernelRidge {
    /// The kernel's length belongs to the number of columns in `largest`.
    #[new]
    #[pyo3(signature = (values, largest, served, *, kernel, length_scale, alpha, tol, max_iter))]
    #[allow(
        clippy::too_many_arguments,
        reason = "they are Python's, with names there"
    )]
    fn new(
        values: &Bound<'_, PyDict>,
        largest: (usize, usize),
        served: Py<Count>,
        kernel: &str,
        length_scale: f64,
        alpha: f64,
        tol: f64,
        max_iter: usize,
    ) -> PyResult<Self> {
        let params = KernelRidge::params()
            .kernel(function(kernel)?, length_scale)
            .alpha(alpha)
            .tolerance(tol)
            .max_iter(max_iter);
        let known = Known::new(values, largest, served)?;
        Ok(Self { known, params })
    }

    /// Fits to X and y, and sets `n_features_in_`; none where parameters or columns are others, or arrays not so plain.
    fn fit<'py>(
        &self,
        attributes: &Bound<'py, PyDict>,
        x: &Bound<'py, PyAny>,
        y: &Bound<'py, PyAny>,
        device: &Device,
    ) -> PyResult<Option<(Bound<'py, PyDict>, Option<bool>)>> {
        if !self.known.takes(attributes, x, y)? || !self.known.has_all_columns(x) {
            return Ok(None);
        }
        let (py, params) = (x.py(), self.params);
        let y = again::numbers(y)?;
        let (own, wide);
        let y: &[f64] = match y.extract::<PyReadonlyArray1<'_, f64>>() {
            Ok(y) => {
                own = y;
                own.as_slice()?
            }
            Err(_) => {
                let y: PyReadonlyArray1<'_, f32> = y.extract()?;
                wide = y
                    .as_slice()?
                    .iter()
                    .map(|y| f64::from(*y))
                    .collect::<Vec<_>>();
                &wide
            }
        };
        let found = match x.extract::<PyReadonlyArray2<'_, f64>>() {
            Ok(x) => solve(py, params, x.as_array(), y, device, None)?,
            Err(_) => {
                let x: PyReadonlyArray2<'_, f32> = x.extract()?;
                let wide = x.as_array().mapv(f64::from);
                solve(py, params, wide.view(), y, device, None)?
            }
        };
        self.known.seen(attributes, x)?;
        Ok(Some((found, None)))
    }
}

/// `f(xᵢ) = Σⱼ k(xᵢ, yⱼ)·wⱼ` in the precision of `targets`.
#[pyfunction]
#[pyo3(signature = (targets, sources, weights, device, *, kernel, length_scale))]
pub fn kernel_sum<'py>(
    targets: &Bound<'py, PyAny>,
    sources: &Bound<'py, PyAny>,
    weights: &Bound<'py, PyAny>,
    device: &Device,
    kernel: &str,
    length_scale: f64,
) -> PyResult<Bound<'py, PyAny>> {
    let kernel = Kernel::new(function(kernel)?, length_scale).map_err(errors::of_op)?;
    match targets.cast::<PyArray2<f32>>() {
        Ok(targets) => sum::<f32>(kernel, targets, sources, weights, device),
        Err(_) => sum::<f64>(kernel, targets.cast()?, sources, weights, device),
    }
}

fn sum<'py, T: Scalar>(
    kernel: Kernel,
    targets: &Bound<'py, PyArray2<T>>,
    sources: &Bound<'py, PyAny>,
    weights: &Bound<'py, PyAny>,
    device: &Device,
) -> PyResult<Bound<'py, PyAny>> {
    let other = |_| PyTypeError::new_err("targets, sources and weights must be of one type");
    let sources = sources
        .cast::<PyArray2<T>>()
        .map_err(other)?
        .try_readonly()?;
    let weights = weights
        .cast::<PyArray1<T>>()
        .map_err(|_| PyTypeError::new_err("targets, sources and weights must be of one type"))?
        .try_readonly()?;
    let (py, targets, device) = (targets.py(), targets.try_readonly()?, &device.0);
    let (rows, cols, w) = (targets.as_array(), sources.as_array(), weights.as_slice()?);
    if cols.nrows() != w.len() || rows.ncols() != cols.ncols() {
        let shapes = "targets of m x d, sources of n x d and n weights are needed";
        return Err(PyValueError::new_err(shapes));
    }
    let found = watch::watched(py, None, |_| {
        let sums = KernelSum::new(device, kernel, rows, cols)?;
        let mut found = device.zeros(rows.nrows())?;
        sums.sum(&device.upload(w)?, &mut found)?;
        Ok(found.to_vec()?)
    })?;
    Ok(found.to_pyarray(py).into_any())
}
