//! NumPy and SciPy arrays to features and back.

use ndarray::Array2;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, ToPyArray};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use warpfuse::matrix::{Element, Features, csr_from_parts};
use warpfuse::ops::Number;

use crate::errors;

/// Something in either precision.
pub enum Either<A, B> {
    /// Of f32.
    F32(A),
    /// Of f64.
    F64(B),
}

/// Runs the same code on either.
macro_rules! either {
    ($value:expr, $name:ident => $body:expr) => {
        match $value {
            $crate::arrays::Either::F32($name) => $body,
            $crate::arrays::Either::F64($name) => $body,
        }
    };
}
pub(crate) use either;

/// Features in either precision.
pub type AnyFeatures = Either<Features<f32>, Features<f64>>;

/// A number that NumPy, the library and its kernels know.
pub trait Scalar: Number + numpy::Element {}
impl Scalar for f32 {}
impl Scalar for f64 {}

/// X: a C-contiguous array of two dimensions, or the tuple `(data, indices, indptr, shape)` of a CSR matrix, its indices
/// sorted and without duplicates.
pub fn features(x: &Bound<'_, PyAny>) -> PyResult<AnyFeatures> {
    if let Ok(x) = x.cast::<PyArray2<f64>>() {
        return dense(x).map(Either::F64);
    }
    if let Ok(x) = x.cast::<PyArray2<f32>>() {
        return dense(x).map(Either::F32);
    }
    type Parts<'py> = (
        Bound<'py, PyAny>,
        Bound<'py, PyAny>,
        Bound<'py, PyAny>,
        (usize, usize),
    );
    let (data, indices, indptr, shape) = x.extract::<Parts<'_>>().map_err(|_| {
        PyTypeError::new_err(
            "X must be a C-contiguous array of float32 or float64, or (data, indices, indptr, shape)",
        )
    })?;
    let (indices, offsets) = (column_indices(&indices, shape.1)?, offsets(&indptr)?);
    if let Ok(data) = data.extract::<PyReadonlyArray1<'_, f64>>() {
        return sparse(shape, offsets, indices, &data).map(Either::F64);
    }
    let data = data.extract::<PyReadonlyArray1<'_, f32>>().map_err(|_| {
        PyTypeError::new_err("the values of X must be a contiguous array of float32 or float64")
    })?;
    sparse(shape, offsets, indices, &data).map(Either::F32)
}

fn dense<T: Scalar>(x: &Bound<'_, PyArray2<T>>) -> PyResult<Features<T>> {
    let x: PyReadonlyArray2<'_, T> = x.try_readonly()?;
    Ok(Features::Dense(
        x.as_array().as_standard_layout().into_owned(),
    ))
}

fn sparse<T: Scalar>(
    shape: (usize, usize),
    offsets: Vec<u64>,
    indices: Vec<u32>,
    data: &PyReadonlyArray1<'_, T>,
) -> PyResult<Features<T>> {
    let values = data.as_slice()?.to_vec();
    csr_from_parts(shape, offsets, indices, values)
        .map(Features::Sparse)
        .map_err(errors::of_csr)
}

/// Column indices of 32 or 64 bits as the library's.
fn column_indices(indices: &Bound<'_, PyAny>, cols: usize) -> PyResult<Vec<u32>> {
    let outside = |index: i64| {
        PyValueError::new_err(format!(
            "X is no valid CSR matrix: column index {index} where there are {cols} columns"
        ))
    };
    if let Ok(indices) = indices.extract::<PyReadonlyArray1<'_, i32>>() {
        let found = indices.as_slice()?;
        return match found.iter().find(|index| **index < 0) {
            Some(negative) => Err(outside(i64::from(*negative))),
            None => Ok(found.iter().map(|index| *index as u32).collect()),
        };
    }
    let indices = indices
        .extract::<PyReadonlyArray1<'_, i64>>()
        .map_err(|_| PyTypeError::new_err("the indices of X must be of int32 or int64"))?;
    let narrow = |index: &i64| u32::try_from(*index).map_err(|_| outside(*index));
    indices.as_slice()?.iter().map(narrow).collect()
}

/// Row offsets of 32 or 64 bits as the library's.
fn offsets(indptr: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    let negative = || PyValueError::new_err("X is no valid CSR matrix: a row offset is negative");
    if let Ok(indptr) = indptr.extract::<PyReadonlyArray1<'_, i32>>() {
        let widen = |offset: &i32| u64::try_from(*offset).map_err(|_| negative());
        return indptr.as_slice()?.iter().map(widen).collect();
    }
    let indptr = indptr
        .extract::<PyReadonlyArray1<'_, i64>>()
        .map_err(|_| PyTypeError::new_err("the row offsets of X must be of int32 or int64"))?;
    let widen = |offset: &i64| u64::try_from(*offset).map_err(|_| negative());
    indptr.as_slice()?.iter().map(widen).collect()
}

/// Lists of equal length as the rows of an array.
pub fn rows<'py>(py: Python<'py>, rows: &[&[f64]]) -> Bound<'py, PyArray2<f64>> {
    let cols = rows.first().map_or(0, |row| row.len());
    let flat = rows.iter().flat_map(|row| row.iter().copied()).collect();
    let array = Array2::from_shape_vec((rows.len(), cols), flat).expect("rows of equal length");
    array.to_pyarray(py)
}

/// A list as an array.
pub fn vector<'py, T: numpy::Element + Copy>(
    py: Python<'py>,
    values: &[T],
) -> Bound<'py, PyArray1<T>> {
    values.to_pyarray(py)
}

/// One number per row or column, in the precision of X.
pub fn narrow<T: Number>(values: &[f64]) -> Vec<T> {
    values
        .iter()
        .map(|value| <T as Element>::from_f64(*value))
        .collect()
}
