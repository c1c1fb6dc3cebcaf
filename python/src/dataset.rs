//! X on a device, and fits on it.

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::prelude::*;
use warpfuse::learning::{
    Estimator, Evaluation, FitError, FoldOptions, Folds, Labels, PathPoint, ResidentDataset,
    Targets, cross_validate_with,
};
use warpfuse::matrix::Element;
use warpfuse::ops::{MatrixOptions, Terms};

use crate::arrays::{self, Either, Scalar, either};
use crate::device::Device;
use crate::fit::{self, Place};
use crate::lent::{self, AnyDeviceFeatures};
use crate::solution::Solution;
use crate::{checkpoint, errors, estimators, predict, targets, watch};

/// X on a device: uploaded once, fitted as often as one likes.
#[pyclass(frozen, module = "warpfuse._native")]
pub struct Dataset(pub(crate) Either<ResidentDataset<f32>, ResidentDataset<f64>>);

#[pymethods]
impl Dataset {
    /// Puts `x` (see `arrays::features`) on `device`, prepared for this many reads; what lies on a GPU already
    /// (`lent::features`) stays where it lies.
    #[new]
    #[pyo3(signature = (x, device, evaluations = 0))]
    fn new(x: &Bound<'_, PyAny>, device: &Device, evaluations: u64) -> PyResult<Self> {
        let (py, device) = (x.py(), &device.0);
        let options = MatrixOptions::default();
        if let Some(features) = lent::features(x)? {
            return Dataset::over(py, features, options);
        }
        let features = arrays::features(x)?;
        py.detach(|| match features {
            Either::F32(x) => {
                ResidentDataset::for_evaluations(device, x, options, evaluations).map(Either::F32)
            }
            Either::F64(x) => {
                ResidentDataset::for_evaluations(device, x, options, evaluations).map(Either::F64)
            }
        })
        .map(Dataset)
        .map_err(errors::of_fit)
    }

    /// m and n.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        either!(&self.0, x => (x.matrix().rows(), x.matrix().cols()))
    }

    /// `float32` or `float64`.
    #[getter]
    fn dtype(&self) -> &'static str {
        match self.0 {
            Either::F32(_) => "float32",
            Either::F64(_) => "float64",
        }
    }

    /// Stored entries.
    #[getter]
    fn nnz(&self) -> u64 {
        let (rows, cols) = self.shape();
        either!(&self.0, x => x.matrix().problem().nnz).unwrap_or(rows as u64 * cols as u64)
    }

    /// The device's name as one asks for it.
    #[getter]
    fn device(&self) -> String {
        either!(&self.0, x => x.matrix().device().to_string())
    }

    /// Fits `estimator` with `params` to `y`: numbers of either precision, or class codes (uint32) of a classifier.
    #[pyo3(signature = (estimator, params, y, sample_weight = None, start = None, watch = None, offset = None))]
    #[allow(
        clippy::too_many_arguments,
        reason = "they are Python's, with names there"
    )]
    fn fit(
        &self,
        py: Python<'_>,
        estimator: &str,
        params: &Bound<'_, PyDict>,
        y: &Bound<'_, PyAny>,
        sample_weight: Option<PyReadonlyArray1<'_, f64>>,
        start: Option<(PyReadonlyArray2<'_, f64>, PyReadonlyArray1<'_, f64>)>,
        watch: Option<Py<PyAny>>,
        offset: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Solution> {
        let estimator = estimators::estimator(estimator, params, self.0.dtype())?;
        let y = targets::Given::of(y)?;
        let given = fit::Given::new(y.elements()?, &sample_weight, &start, &offset)?;
        either!(&self.0, x => given.solve(py, &estimator, Place::Resident(x), watch))
    }

    /// Scores of `estimator` with each of `path` on the rows that each fold holds out, points × folds; `fold_of` says for
    /// each row which that is. X is read once for up to eight fits.
    #[pyo3(signature = (estimator, path, y, fold_of, folds, watch = None))]
    #[allow(
        clippy::too_many_arguments,
        reason = "they are Python's, with names there"
    )]
    fn cross_validate<'py>(
        &self,
        py: Python<'py>,
        estimator: &str,
        path: Vec<Bound<'py, PyDict>>,
        y: PyReadonlyArray1<'_, f64>,
        fold_of: Vec<u32>,
        folds: usize,
        watch: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let folds = Folds::of_rows(fold_of, folds)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let path = path
            .iter()
            .map(|params| estimators::estimator(estimator, params, self.0.dtype()));
        let path = path.collect::<PyResult<Vec<Estimator>>>()?;
        let y = y.as_slice()?;
        let points = either!(&self.0, x => watch::watched(py, watch, |watcher| {
            let mut done = 0;
            with_targets(&path[0], y, |targets| {
                let checkpoint = checkpoint::next();
                let given = FoldOptions {
                    checkpoint: checkpoint.as_ref(),
                    ..FoldOptions::default()
                };
                cross_validate_with(x, targets, given, &folds, &path, |fit| {
                    done += 1;
                    watcher.tell(done, None, fit.score);
                })
            })
        }))?;
        let scores = |point: &PathPoint| point.folds.iter().map(Evaluation::score).collect();
        let scores: Vec<Vec<f64>> = points.iter().map(scores).collect();
        let scores: Vec<&[f64]> = scores.iter().map(Vec::as_slice).collect();
        let dict = PyDict::new(py);
        dict.set_item("scores", arrays::rows::<f64>(py, &scores))?;
        let converged: Vec<bool> = points.iter().map(|point| point.converged).collect();
        dict.set_item("converged", converged)?;
        Ok(dict)
    }

    /// `X·coefᵀ + intercept`, m × k, for k × n coefficients.
    fn decision<'py>(
        &self,
        py: Python<'py>,
        coef: PyReadonlyArray2<'_, f64>,
        intercept: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let given = predict::Given::new(self.shape().1, &coef, &intercept)?;
        match &self.0 {
            Either::F32(x) => given.decision(py, x.matrix()),
            Either::F64(x) => given.decision(py, x.matrix()),
        }
    }

    /// `Xᵀ·p`, n numbers, for m.
    fn transposed<'py>(
        &self,
        py: Python<'py>,
        p: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let p = p.as_slice()?;
        if p.len() != self.shape().0 {
            return Err(PyValueError::new_err("a vector that does not fit X"));
        }
        let found = either!(&self.0, x => watch::watched(py, None, |_| transposed(x, p)))?;
        Ok(arrays::vector(py, &found))
    }

    fn __repr__(&self) -> String {
        let (rows, cols) = self.shape();
        let (dtype, nnz, device) = (self.dtype(), self.nnz(), self.device());
        format!("<warpfuse dataset of {rows} x {cols} {dtype}, {nnz} entries, on {device}>")
    }
}

impl Dataset {
    fn over(py: Python<'_>, x: AnyDeviceFeatures, options: MatrixOptions) -> PyResult<Self> {
        Ok(Dataset(match x {
            Either::F32(x) => Either::F32(watch::watched(py, None, |_| {
                ResidentDataset::over(x, options)
            })?),
            Either::F64(x) => Either::F64(watch::watched(py, None, |_| {
                ResidentDataset::over(x, options)
            })?),
        }))
    }
}

/// What `work` makes of targets: class codes of a classifier, else numbers in the precision of X.
fn with_targets<T: Scalar, R>(
    estimator: &Estimator,
    y: &[f64],
    work: impl FnOnce(Targets<'_, T>) -> R,
) -> R {
    if estimator.is_classifier() {
        work(Targets::Labels(&Labels::Numbers(
            y.par_iter().copied().collect(),
        )))
    } else {
        work(Targets::Numbers(&arrays::narrow(y)))
    }
}

fn transposed<T: Scalar>(x: &ResidentDataset<T>, p: &[f64]) -> Result<Vec<f64>, FitError> {
    let device = x.matrix().device();
    let p = device.upload(&arrays::narrow::<T>(p))?;
    let mut found = device.zeros(x.matrix().cols())?;
    x.matrix().transposed(&p, &Terms::default(), &mut found)?;
    let found: Vec<T> = found.to_vec()?;
    Ok(found.iter().map(|value| Element::to_f64(*value)).collect())
}
