//! Reductions of whole arrays.

use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use warpfuse::device::Buffer;
use warpfuse::learning::FitError;
use warpfuse::matrix::Element;
use warpfuse::ops::OpError;
use warpfuse::ops::reduce::{Reducer, Reducible};

use crate::arrays::Scalar;
use crate::device::Device;
use crate::watch;

/// What a reduction gives.
#[derive(IntoPyObject)]
pub enum Reduced {
    /// A value.
    Number(f64),
    /// A count, or an index from 0.
    Count(u64),
}

/// One of the library's reductions of a vector of f32 or f64, computed on `device`; none of an empty vector's extremes.
#[pyfunction]
pub fn reduce(
    values: &Bound<'_, PyAny>,
    operation: &str,
    device: &Device,
) -> PyResult<Option<Reduced>> {
    let py = values.py();
    let wrong = |_| PyTypeError::new_err("a contiguous vector of float32 or float64 is needed");
    if let Ok(values) = values.cast::<PyArray1<f32>>() {
        return reduced(py, values.try_readonly()?, operation, device);
    }
    let values = values.cast::<PyArray1<f64>>().map_err(wrong)?;
    reduced(py, values.try_readonly()?, operation, device)
}

fn reduced<T: Scalar + Reducible>(
    py: Python<'_>,
    values: PyReadonlyArray1<'_, T>,
    operation: &str,
    device: &Device,
) -> PyResult<Option<Reduced>>
where
    T::Sum: Into<f64>,
{
    let (values, device) = (values.as_slice()?, &device.0);
    let found = watch::watched(py, None, |_| {
        let x = device.upload(values)?;
        let reducer = Reducer::new(device)?;
        of(reducer, &x, operation).map_err(FitError::Op)
    })?;
    found.ok_or_else(|| PyValueError::new_err(format!("there is no reduction {operation}")))
}

/// `None` for an operation that there is not, inside it for an extreme of nothing.
fn of<T: Scalar + Reducible>(
    mut reducer: Reducer,
    x: &Buffer<T>,
    operation: &str,
) -> Result<Option<Option<Reduced>>, OpError>
where
    T::Sum: Into<f64>,
{
    let number = |value: f64| Some(Reduced::Number(value));
    let index = |index: Option<usize>| index.map(|index| Reduced::Count(index as u64));
    let value = |value: Option<T>| value.map(|value| Reduced::Number(Element::to_f64(value)));
    Ok(Some(match operation {
        "sum" => number(reducer.sum(x)?.into()),
        "norm1" => number(reducer.norm1(x)?.into()),
        "norm2" => number(reducer.norm2(x)?),
        "mean" => number(reducer.moments(x)?.mean),
        "var" => number(reducer.moments(x)?.variance()),
        "min" => value(reducer.min(x)?),
        "max" => value(reducer.max(x)?),
        "argmin" => index(reducer.arg_min(x)?),
        "argmax" => index(reducer.arg_max(x)?),
        "count_nonzero" => Some(Reduced::Count(reducer.count(x)?)),
        _ => return Ok(None),
    }))
}
