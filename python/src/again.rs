//! Fits of plain arrays with parameters that have been found valid before, or whose numbers are others between the same bounds:
//! one call does what the Python files do one after the other, which takes longer than a small fit where caches are cold.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use numpy::{
    PyArray1, PyArrayDescrMethods, PyArrayDyn, PyReadonlyArray1, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyString};
use warpfuse::learning::Estimator;
use warpfuse::matrix::Dtype;

use crate::arrays::{self, Parts, either};
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

/// What is known of a Python object's parameters from a fit before, and how large X may be.
pub struct Known {
    parameters: Vec<Parameter>,
    largest: Largest,
    served: Py<Count>,
}

/// The most elements and columns of X, and whether it is a CSR matrix.
pub type Largest = (usize, usize, bool);

/// One parameter: its value in the fit before, of a type whose values are equal when they are the same, and which others a fit
/// goes the same way with.
struct Parameter {
    name: Py<PyString>,
    value: Py<PyAny>,
    others: Option<Between>,
}

/// Numbers between two, without the ends: they are valid, and none of them has a meaning of its own.
#[derive(Clone, Copy, FromPyObject)]
struct Between(f64, f64, bool);

impl Between {
    /// Whether this is such a number: a float of Python or NumPy or an `int`, of whole numbers an `int` alone.
    fn holds(self, value: &Bound<'_, PyAny>) -> bool {
        let Between(low, high, is_whole) = self;
        let py = value.py();
        let is_number = value.is_exact_instance_of::<PyInt>()
            || !is_whole
                && (value.is_exact_instance_of::<PyFloat>()
                    || value.get_type().is(numpy::dtype::<f64>(py).typeobj()));
        is_number && matches!(value.extract::<f64>(), Ok(value) if low < value && value < high)
    }
}

/// Parameters by name whose values are others than in the fit before.
pub type Changes<'py> = Vec<(Bound<'py, PyString>, Bound<'py, PyAny>)>;

impl Known {
    /// Of parameters by name, between which numbers a parameter may change, and the most elements and columns of X; fits are
    /// added to `served`.
    ///
    /// # Errors
    /// Where a name is none.
    pub fn new(
        values: &Bound<'_, PyDict>,
        between: &Bound<'_, PyDict>,
        largest: Largest,
        served: Py<Count>,
    ) -> PyResult<Self> {
        let parameters = values.iter().map(|(name, value)| {
            let others: Option<Between> = between
                .get_item(&name)?
                .map(|others| others.extract())
                .transpose()?;
            Ok(Parameter {
                others: others.filter(|others| others.holds(&value)),
                name: name.cast_into::<PyString>()?.unbind(),
                value: value.unbind(),
            })
        });
        Ok(Self {
            parameters: parameters.collect::<PyResult<_>>()?,
            largest,
            served,
        })
    }

    /// What is different in an object with these attributes; none where the fit would go another way, or X and y are not plain.
    /// Whether they are finite is left to the fit.
    ///
    /// # Errors
    /// Of the interpreter.
    pub fn changes<'py>(
        &self,
        attributes: &Bound<'py, PyDict>,
        x: &Bound<'py, PyAny>,
        y: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Changes<'py>>> {
        let (elements, columns, is_sparse) = self.largest;
        let Some([m, n, count]) = size(x, is_sparse)? else {
            return Ok(None);
        };
        let is_small = m > 0 && (1..=columns).contains(&n) && count <= elements;
        let is_plain = whole::plain_targets(y, m).is_some_and(|y| y.is_c_contiguous());
        if !is_small || !is_plain || !is_sparse && whole::plain_rows(x, 0)?.is_none() {
            return Ok(None);
        }
        self.changed(attributes)
    }

    /// Counts a fit, and sets what it remembers of an X of this many columns without names.
    ///
    /// # Errors
    /// Of the interpreter.
    pub fn seen(&self, attributes: &Bound<'_, PyDict>, columns: usize) -> PyResult<()> {
        self.served.get().add(1);
        let py = attributes.py();
        attributes.set_item(pyo3::intern!(py, "n_features_in_"), columns)?;
        let names = pyo3::intern!(py, "feature_names_in_");
        if attributes.contains(names)? {
            attributes.del_item(names)?;
        }
        Ok(())
    }

    /// Whether a fit of plain arrays, or of a CSR matrix, by an object with these attributes would go the same way.
    ///
    /// # Errors
    /// Of the interpreter.
    pub fn knows(&self, attributes: &Bound<'_, PyDict>, is_sparse: bool) -> PyResult<bool> {
        Ok(self.largest.2 == is_sparse && self.changed(attributes)?.is_some())
    }

    /// What is different in an object with these attributes; none where the fit would go another way.
    ///
    /// # Errors
    /// Of the interpreter.
    fn changed<'py>(&self, attributes: &Bound<'py, PyDict>) -> PyResult<Option<Changes<'py>>> {
        let py = attributes.py();
        let mut changes = Changes::new();
        for parameter in &self.parameters {
            let (name, value) = (parameter.name.bind(py), parameter.value.bind(py));
            let Some(found) = attributes.get_item(name)? else {
                return Ok(None);
            };
            if found.is(value) || (found.get_type().is(value.get_type()) && found.eq(value)?) {
                continue;
            }
            if !parameter.others.is_some_and(|others| others.holds(&found)) {
                return Ok(None);
            }
            changes.push((name.clone(), found));
        }
        // scikit-learn's callbacks want the coefficients of each iteration.
        let is_watched = attributes.contains(pyo3::intern!(py, "_skl_callbacks"))?;
        Ok((!is_watched).then_some(changes))
    }
}

/// An estimator of the library with parameters that have been fitted before.
#[pyclass(frozen, module = "warpfuse._native")]
pub struct Prepared {
    known: Known,
    name: String,
    params: Py<PyDict>,
    /// Tolerances differ by the precision of X.
    of_f32: Estimator,
    of_f64: Estimator,
}

/// A solution, and the classes of a classifier.
type Found<'py> = (Solution, Option<Bound<'py, PyAny>>);

#[pymethods]
impl Prepared {
    /// Of an object's parameters, between which numbers some of them may change, and the name and the parameters of the
    /// library's estimator, where those that may change have the same names.
    #[new]
    fn new(
        values: &Bound<'_, PyDict>,
        between: &Bound<'_, PyDict>,
        largest: Largest,
        estimator: String,
        params: &Bound<'_, PyDict>,
        served: Py<Count>,
    ) -> PyResult<Self> {
        Ok(Self {
            known: Known::new(values, between, largest, served)?,
            of_f32: estimators::estimator(&estimator, params, Dtype::F32)?,
            of_f64: estimators::estimator(&estimator, params, Dtype::F64)?,
            name: estimator,
            params: params.copy()?.unbind(),
        })
    }

    /// Whether a fit of plain arrays, or of a CSR matrix, by an object with these attributes would go the same way.
    fn knows(&self, attributes: &Bound<'_, PyDict>, is_sparse: bool) -> PyResult<bool> {
        self.known.knows(attributes, is_sparse)
    }

    /// Fits to X and y, and sets `n_features_in_`; none where the fit would go another way, or arrays are not so plain.
    ///
    /// Of a classifier y is labels, or codes where the classes that they number are given.
    #[pyo3(signature = (attributes, x, y, device, sample_weight = None, classes = None))]
    fn fit<'py>(
        &self,
        attributes: &Bound<'py, PyDict>,
        x: &Bound<'py, PyAny>,
        y: &Bound<'py, PyAny>,
        device: &Device,
        sample_weight: Option<PyReadonlyArray1<'py, f64>>,
        classes: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Found<'py>>> {
        let Some(changes) = self.known.changes(attributes, x, y)? else {
            return Ok(None);
        };
        if !has_a_weight_for_each(&sample_weight, y.len()?) {
            return Ok(None);
        }
        let py = x.py();
        let Some((classes, y)) = self.targets(y, classes)? else {
            return Ok(None);
        };
        let given = Given::new(y.elements()?, &sample_weight, &None, &None)?;
        let features = arrays::features(x)?;
        let columns = either!(&features, x => x.cols());
        let estimator = self.estimator(&changes, features.dtype())?;
        let found = either!(features, x => given.solve(py, &estimator, Place::Host(&device.0, x.into()), None))?;
        self.known.seen(attributes, columns)?;
        Ok(Some((found, classes)))
    }
}

/// Classes of a classifier, and what it or a regression is fitted to.
type Targets<'py> = Option<(Option<Bound<'py, PyAny>>, targets::Given<'py>)>;

impl Prepared {
    /// None where there is something to say of the classes.
    fn targets<'py>(
        &self,
        y: &Bound<'py, PyAny>,
        classes: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Targets<'py>> {
        if !self.of_f64.is_classifier() {
            return Ok(Some((None, targets::Given::of(&numbers(y)?)?)));
        }
        let found = match classes {
            Some(classes) => Some((classes, targets::Given::of(y)?)),
            None => {
                whole::encoded(y)?.map(|(classes, codes)| (classes, targets::Given::Encoded(codes)))
            }
        };
        let Some((classes, codes)) = found else {
            return Ok(None);
        };
        let is_plain = (2..=y.len()? / 2).contains(&classes.len()?);
        Ok(is_plain.then_some((Some(classes), codes)))
    }

    fn estimator(&self, changes: &Changes<'_>, of: Dtype) -> PyResult<Cow<'_, Estimator>> {
        let Some((first, _)) = changes.first() else {
            return Ok(Cow::Borrowed(match of {
                Dtype::F32 => &self.of_f32,
                Dtype::F64 => &self.of_f64,
            }));
        };
        let params = self.params.bind(first.py()).copy()?;
        for (name, value) in changes {
            params.set_item(name, value)?;
        }
        estimators::estimator(&self.name, &params, of).map(Cow::Owned)
    }
}

/// The rows, the columns and the stored elements of an array, or of the parts of a CSR matrix whose columns ascend in each row;
/// none of others. Whether the parts fit each other is for who makes the matrix.
fn size(x: &Bound<'_, PyAny>, is_sparse: bool) -> PyResult<Option<[usize; 3]>> {
    if !is_sparse {
        let Ok(x) = x.cast::<PyUntypedArray>() else {
            return Ok(None);
        };
        return Ok(match x.shape() {
            &[m, n] => Some([m, n, x.len()]),
            _ => None,
        });
    }
    let Ok((_, indices, offsets, (m, n))) = x.extract::<Parts<'_>>() else {
        return Ok(None);
    };
    let is_sorted = whole::is_canonical(&offsets, &indices)? == Some(true);
    Ok(is_sorted.then_some([m, n, indices.len()?]))
}

/// Whether there are no weights, or one for each row. That they are weights is left to the fit.
fn has_a_weight_for_each(weights: &Option<PyReadonlyArray1<'_, f64>>, rows: usize) -> bool {
    let has_each =
        |weights: &PyReadonlyArray1<'_, f64>| weights.as_slice().is_ok_and(|w| w.len() == rows);
    weights.as_ref().is_none_or(has_each)
}

/// Plain targets as floats: others become float64.
///
/// # Errors
/// Of the interpreter.
fn numbers<'py>(y: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if y.cast::<PyArray1<f32>>().is_ok() {
        return Ok(y.clone());
    }
    doubles(y)
}

/// An array of numbers as float64, without a copy where it is.
///
/// # Errors
/// Of the interpreter.
pub fn doubles<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if array.cast::<PyArrayDyn<f64>>().is_ok() {
        return Ok(array.clone());
    }
    array.call_method1(pyo3::intern!(array.py(), "astype"), ("float64",))
}
