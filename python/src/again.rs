//! Fits of small plain arrays with parameters that have been found valid before: one call does what the Python files do one
//! after the other, which takes longer than a small fit where caches are cold.

use std::sync::atomic::{AtomicU64, Ordering};

use numpy::{PyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use warpfuse::learning::Estimator;

use crate::arrays::{self, Either, either};
use crate::device::Device;
use crate::fit::{Given, Place};
use crate::solution::Solution;
use crate::{estimators, targets, whole};

/// Fits that all threads add to.
#[pyclass(frozen, module = "warpfuse._native")]
pub struct Count(AtomicU64);

#[pymethods]
impl Count {
    #[new]
    fn new() -> Self {
        Count(AtomicU64::new(0))
    }

    fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// How many there are.
    #[getter]
    fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// What has been found of a Python object before: its parameters by name, each of a type whose values are equal when they are
/// the same, and how large X may be.
pub struct Known {
    parameters: Vec<(Py<PyString>, Py<PyAny>)>,
    elements: usize,
    columns: usize,
    served: Py<Count>,
}

impl Known {
    /// Of parameters by name, and the most elements and columns of X; fits are added to `served`.
    ///
    /// # Errors
    /// Where a name is none.
    pub fn new(
        values: &Bound<'_, PyDict>,
        (elements, columns): (usize, usize),
        served: Py<Count>,
    ) -> PyResult<Self> {
        let parameters = values
            .iter()
            .map(|(name, value)| Ok((name.cast_into::<PyString>()?.unbind(), value.unbind())));
        Ok(Self {
            parameters: parameters.collect::<PyResult<_>>()?,
            elements,
            columns,
            served,
        })
    }

    /// Whether an object with these attributes has the same parameters, and X and y are plain.
    ///
    /// # Errors
    /// Of the interpreter.
    pub fn takes(
        &self,
        attributes: &Bound<'_, PyDict>,
        x: &Bound<'_, PyAny>,
        y: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let is_small = x.cast::<PyUntypedArray>().is_ok_and(|x| {
            x.len() <= self.elements && x.shape().get(1).is_some_and(|&n| n <= self.columns)
        });
        Ok(is_small && self.are_same(attributes)? && whole::are_plain(x, y, usize::MAX)?)
    }

    /// Counts a fit, and sets what it remembers of an X without names.
    ///
    /// # Errors
    /// Of the interpreter.
    pub fn seen(&self, attributes: &Bound<'_, PyDict>, x: &Bound<'_, PyAny>) -> PyResult<()> {
        self.served.get().add(1);
        let py = attributes.py();
        let columns = x.cast::<PyUntypedArray>()?.shape()[1];
        attributes.set_item(pyo3::intern!(py, "n_features_in_"), columns)?;
        let names = pyo3::intern!(py, "feature_names_in_");
        if attributes.contains(names)? {
            attributes.del_item(names)?;
        }
        Ok(())
    }

    /// Whether X has as many columns as it may have.
    pub fn has_all_columns(&self, x: &Bound<'_, PyAny>) -> bool {
        x.cast::<PyUntypedArray>()
            .is_ok_and(|x| x.shape().get(1) == Some(&self.columns))
    }

    fn are_same(&self, attributes: &Bound<'_, PyDict>) -> PyResult<bool> {
        let py = attributes.py();
        for (name, value) in &self.parameters {
            let Some(found) = attributes.get_item(name)? else {
                return Ok(false);
            };
            let value = value.bind(py);
            let is_same =
                found.is(value) || (found.get_type().is(value.get_type()) && found.eq(value)?);
            if !is_same {
                return Ok(false);
            }
        }
        // scikit-learn's callbacks want the coefficients of each iteration.
        Ok(!attributes.contains(pyo3::intern!(py, "_skl_callbacks"))?)
    }
}

/// An estimator of the library with parameters that have been fitted before.
#[pyclass(frozen, module = "warpfuse._native")]
pub struct Prepared {
    known: Known,
    /// Tolerances differ by the precision of X.
    of_f32: Estimator,
    of_f64: Estimator,
}

/// A solution, and the classes of a classifier.
type Found<'py> = (Solution, Option<Bound<'py, PyAny>>);

#[pymethods]
impl Prepared {
    /// Of an object's parameters, and those of the library's estimator for X in f32 and in f64.
    #[new]
    fn new(
        values: &Bound<'_, PyDict>,
        largest: (usize, usize),
        estimator: &str,
        params: (Bound<'_, PyDict>, Bound<'_, PyDict>),
        served: Py<Count>,
    ) -> PyResult<Self> {
        Ok(Self {
            known: Known::new(values, largest, served)?,
            of_f32: estimators::estimator(estimator, &params.0)?,
            of_f64: estimators::estimator(estimator, &params.1)?,
        })
    }

    /// Fits to X and y, and sets `n_features_in_`; none where parameters are others, or arrays not so plain.
    fn fit<'py>(
        &self,
        attributes: &Bound<'py, PyDict>,
        x: &Bound<'py, PyAny>,
        y: &Bound<'py, PyAny>,
        device: &Device,
    ) -> PyResult<Option<Found<'py>>> {
        if !self.known.takes(attributes, x, y)? {
            return Ok(None);
        }
        let (py, is_classifier) = (x.py(), self.of_f64.is_classifier());
        let (classes, y) = match is_classifier.then(|| coded(y)) {
            None => (None, numbers(y)?),
            Some(found) => match found? {
                None => return Ok(None),
                Some((classes, codes)) => (Some(classes), codes),
            },
        };
        let features = arrays::features(x)?;
        let y = targets::Given::of(&y)?;
        let given = Given::new(y.elements()?, &None, &None, &None)?;
        let estimator = match features {
            Either::F32(_) => &self.of_f32,
            Either::F64(_) => &self.of_f64,
        };
        let found = either!(features, x => given.solve(py, estimator, Place::Host(&device.0, x.into()), None))?;
        self.known.seen(attributes, x)?;
        Ok(Some((found, classes)))
    }
}

/// Classes, and the code of each row.
type Encoded<'py> = Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>;

/// Classes that there is nothing to say of: two at least, and far fewer than rows.
fn coded<'py>(y: &Bound<'py, PyAny>) -> PyResult<Encoded<'py>> {
    let Some((classes, codes)) = whole::encode(y)? else {
        return Ok(None);
    };
    let count = classes.len()?;
    let is_plain = count >= 2 && 2 * count <= codes.len();
    Ok(is_plain.then(|| (classes, codes.into_any())))
}

/// Plain targets as floats: others become float64.
///
/// # Errors
/// Of the interpreter.
pub fn numbers<'py>(y: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if y.cast::<PyArray1<f64>>().is_ok() || y.cast::<PyArray1<f32>>().is_ok() {
        return Ok(y.clone());
    }
    y.call_method1(pyo3::intern!(y.py(), "astype"), ("float64",))
}
