//! Kernel ridge regression, and sums over kernels.

use ndarray::ArrayView2;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, ToPyArray};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use warpfuse::learning::KernelRidge;
use warpfuse::matrix::Features;
use warpfuse::ops::{Kernel, KernelFunction, KernelSum};

use crate::again::{self, Count, Known};
use crate::arrays::{Either, Scalar};
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

/// The length of a kernel of scikit-learn's, which knows it by `gamma`; 1 / columns where that is none.
///
/// # Errors
/// `ValueError` for a kernel that there is not.
#[pyfunction]
pub fn length_scale(kernel: &str, gamma: Option<f64>, columns: usize) -> PyResult<f64> {
    Ok(length(function(kernel)?, gamma, columns))
}

fn length(function: KernelFunction, gamma: Option<f64>, columns: usize) -> f64 {
    let gamma = gamma.unwrap_or(1.0 / columns as f64);
    match function {
        KernelFunction::Gaussian => (0.5 / gamma).sqrt(),
        _ => 1.0 / gamma,
    }
}

/// Parameters of kernel ridge regression as scikit-learn names them.
#[derive(Clone, Copy)]
struct Params {
    function: KernelFunction,
    gamma: Option<f64>,
    alpha: f64,
    tol: f64,
    max_iter: usize,
}

impl Params {
    fn new(
        kernel: &str,
        (gamma, alpha): (Option<f64>, f64),
        (tol, max_iter): (f64, usize),
    ) -> PyResult<Self> {
        Ok(Params {
            function: function(kernel)?,
            gamma,
            alpha,
            tol,
            max_iter,
        })
    }

    fn solve(
        self,
        py: Python<'_>,
        x: ArrayView2<'_, f64>,
        y: &[f64],
        device: &Device,
        watch: Option<Py<PyAny>>,
    ) -> PyResult<KernelSolution> {
        let scale = length(self.function, self.gamma, x.ncols());
        let params = KernelRidge::params()
            .kernel(self.function, scale)
            .alpha(self.alpha)
            .tolerance(self.tol)
            .max_iter(self.max_iter);
        let device = &device.0;
        let model = watch::watched(py, watch, |watcher| {
            let tell = |progress| watcher.step(progress);
            watch::timed(|| match &checkpoint::next() {
                None => params.fit_watched(device, x, y, tell),
                Some(checkpoint) => params.fit_with_checkpoint(device, x, y, checkpoint, tell),
            })
        })?;
        let report = model.report();
        Ok(KernelSolution {
            dual_coef: arrays::vector(py, model.dual_coef()).unbind(),
            n_iter: report.n_iter,
            converged: model.converged(),
            advice: report.convergence.advice(),
            residual_ratio: report.residual_ratio,
            seconds: report.seconds,
        })
    }
}

/// Dual coefficients, and how the fit went.
#[pyclass(frozen, get_all, module = "warpfuse._native")]
pub struct KernelSolution {
    dual_coef: Py<PyArray1<f64>>,
    n_iter: usize,
    converged: bool,
    /// What would help a fit that did not converge.
    advice: &'static str,
    residual_ratio: f64,
    seconds: f64,
}

/// The dual coefficients of kernel ridge regression.
#[pyfunction]
#[pyo3(signature = (x, y, device, *, kernel, gamma, alpha, tol, max_iter, watch = None))]
#[allow(
    clippy::too_many_arguments,
    reason = "they are Python's, with names there"
)]
pub fn kernel_ridge(
    x: PyReadonlyArray2<'_, f64>,
    y: PyReadonlyArray1<'_, f64>,
    device: &Device,
    kernel: &str,
    gamma: Option<f64>,
    alpha: f64,
    tol: f64,
    max_iter: usize,
    watch: Option<Py<PyAny>>,
) -> PyResult<KernelSolution> {
    let params = Params::new(kernel, (gamma, alpha), (tol, max_iter))?;
    params.solve(x.py(), x.as_array(), y.as_slice()?, device, watch)
}

/// Kernel ridge regression with parameters that have been fitted before; see `again`.
#[pyclass(frozen, module = "warpfuse._native")]
pub struct PreparedKernelRidge {
    known: Known,
    params: Params,
}

#[pymethods]
impl PreparedKernelRidge {
    /// As `Prepared`; `alpha` and `gamma` may change.
    #[new]
    #[pyo3(signature = (values, between, largest, served, *, kernel, gamma, alpha, tol, max_iter))]
    #[allow(
        clippy::too_many_arguments,
        reason = "they are Python's, with names there"
    )]
    fn new(
        values: &Bound<'_, PyDict>,
        between: &Bound<'_, PyDict>,
        largest: again::Largest,
        served: Py<Count>,
        kernel: &str,
        gamma: Option<f64>,
        alpha: f64,
        tol: f64,
        max_iter: usize,
    ) -> PyResult<Self> {
        let params = Params::new(kernel, (gamma, alpha), (tol, max_iter))?;
        let known = Known::new(values, between, largest, served)?;
        Ok(Self { known, params })
    }

    /// Whether a fit of plain arrays, or of a CSR matrix, by an object with these attributes would go the same way.
    fn knows(&self, attributes: &Bound<'_, PyDict>, is_sparse: bool) -> PyResult<bool> {
        self.known.knows(attributes, is_sparse)
    }

    /// Fits to X and y, and sets all attributes; none where the fit would go another way, or arrays are not so plain. The
    /// solution is for a warning, where it needs one.
    fn fit<'py>(
        &self,
        attributes: &Bound<'py, PyDict>,
        x: &Bound<'py, PyAny>,
        y: &Bound<'py, PyAny>,
        device: &Device,
    ) -> PyResult<Option<(Option<KernelSolution>, Option<bool>)>> {
        let py = x.py();
        let Some(changes) = self.known.changes(attributes, x, y)? else {
            return Ok(None);
        };
        let mut params = self.params;
        for (name, value) in changes {
            match name.to_str()? {
                "alpha" => params.alpha = value.extract()?,
                _ => params.gamma = Some(value.extract()?),
            }
        }
        let (points, y) = (again::doubles(x)?, again::doubles(y)?);
        let Either::F64(Features::Shared(points)) = arrays::features(&points)? else {
            return Ok(None);
        };
        let y: PyReadonlyArray1<'_, f64> = y.extract()?;
        let found = params.solve(py, points.view(), y.as_slice()?, device, None)?;
        self.known.seen(attributes, points.dim().1)?;
        attributes.set_item(pyo3::intern!(py, "dual_coef_"), &found.dual_coef)?;
        attributes.set_item(pyo3::intern!(py, "X_fit_"), x)?;
        Ok(Some(((!found.converged).then_some(found), None)))
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
