//! One fit: what it is given, and where X is.

use std::sync::Arc;

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use warpfuse::learning::{
    Estimator, FitError, FitOptions, Iteration, Model, ResidentDataset, Targets,
};
use warpfuse::matrix::Features;

use crate::arrays::{self, Scalar, either};
use crate::device::Device;
use crate::solution::Solution;
use crate::targets::{self, FitTargets, Y};
use crate::{checkpoint, estimators, watch};

type Lists = (Vec<Vec<f64>>, Vec<f64>);
type Weights<'py> = Option<PyReadonlyArray1<'py, f64>>;
type Start<'py> = Option<(PyReadonlyArray2<'py, f64>, PyReadonlyArray1<'py, f64>)>;

/// Puts `x` on `device`, prepared as the estimator needs it, and fits once; see `Dataset::fit`.
#[pyfunction]
#[pyo3(signature = (x, device, estimator, params, y, sample_weight = None, start = None, watch = None, offset = None))]
#[allow(
    clippy::too_many_arguments,
    reason = "they are Python's, with names there"
)]
pub fn fit(
    x: &Bound<'_, PyAny>,
    device: &Device,
    estimator: &str,
    params: &Bound<'_, PyDict>,
    y: &Bound<'_, PyAny>,
    sample_weight: Weights<'_>,
    start: Start<'_>,
    watch: Option<Py<PyAny>>,
    offset: Weights<'_>,
) -> PyResult<Solution> {
    let (py, features, device) = (x.py(), arrays::features(x)?, &device.0);
    let y = targets::Given::of(y)?;
    let given = Given::new(y.elements()?, &sample_weight, &start, &offset)?;
    let estimator = estimators::estimator(estimator, params, features.dtype())?;
    either!(features, x => given.solve(py, &estimator, Place::Host(device, x.into()), watch))
}

/// Where X is.
pub enum Place<'a, T: Scalar> {
    /// On its device.
    Resident(&'a ResidentDataset<T>),
    /// On the host, and this device is to fit.
    Host(&'a warpfuse::device::Device, Arc<Features<T>>),
}

/// What a fit is given besides X and parameters.
pub struct Given<'a> {
    y: Y<'a>,
    weights: Option<&'a [f64]>,
    start: Option<Lists>,
    offset: Option<&'a [f64]>,
}

impl<'a> Given<'a> {
    /// Borrows what is contiguous.
    ///
    /// # Errors
    /// Of arrays that are not.
    pub fn new(
        y: Y<'a>,
        weights: &'a Weights<'_>,
        start: &Start<'_>,
        offset: &'a Weights<'_>,
    ) -> PyResult<Self> {
        let slice = |array: &'a Weights<'_>| array.as_ref().map(|array| array.as_slice());
        Ok(Self {
            y,
            weights: slice(weights).transpose()?,
            start: start.as_ref().map(lists).transpose()?,
            offset: slice(offset).transpose()?,
        })
    }

    /// The fit, which `watch` is told of.
    ///
    /// # Errors
    /// The library's as exceptions, and what was raised meanwhile.
    pub fn solve<T: Scalar>(
        &self,
        py: Python<'_>,
        estimator: &Estimator,
        place: Place<'_, T>,
        watch: Option<Py<PyAny>>,
    ) -> PyResult<Solution> {
        let model = watch::watched(py, watch, |watcher| {
            let mut tell = watch::counted(watcher);
            watch::timed(|| self.fit(estimator, place, &mut tell))
        })?;
        Ok(Solution::of::<T>(py, &model, self.start.is_some()))
    }

    fn fit<T: Scalar>(
        &self,
        estimator: &Estimator,
        place: Place<'_, T>,
        tell: &mut dyn FnMut(Iteration),
    ) -> Result<Model, FitError> {
        let start = self.start.as_ref();
        let checkpoint = checkpoint::next();
        let options = FitOptions {
            checkpoint: checkpoint.as_ref(),
            sample_weight: self.weights,
            offset: self.offset,
            start: start.map(|(coef, intercept)| (&coef[..], &intercept[..])),
            watch: Some(tell),
            ..FitOptions::default()
        };
        match (self.y.targets::<T>(), place) {
            (FitTargets::Numbers(y), Place::Resident(x)) => {
                estimator.fit_on(x, Targets::Numbers(&y), options)
            }
            (FitTargets::Numbers(y), Place::Host(device, x)) => {
                estimator.fit_with(device, x, Targets::Numbers(&y), options)
            }
            (FitTargets::Wide(y), Place::Resident(x)) => estimator.fit_wide_on(x, y, options),
            (FitTargets::Wide(y), Place::Host(device, x)) => {
                estimator.fit_wide(device, x, y, options)
            }
            (FitTargets::Codes(classes, codes), Place::Resident(x)) => {
                estimator.fit_encoded_on(x, (&classes, codes), options)
            }
            (FitTargets::Codes(classes, codes), Place::Host(device, x)) => {
                estimator.fit_encoded(device, x, (&classes, codes), options)
            }
        }
    }
}

fn lists(start: &(PyReadonlyArray2<'_, f64>, PyReadonlyArray1<'_, f64>)) -> PyResult<Lists> {
    let coef = start.0.as_array();
    let coef = coef.rows().into_iter().map(|row| row.to_vec()).collect();
    Ok((coef, start.1.as_slice()?.to_vec()))
}
