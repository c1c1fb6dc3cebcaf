//! NumPy and SciPy arrays to features and back.

use std::slice;
use std::sync::Arc;

use bytemuck::Pod;
use ndarray::Array2;
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods,
    ToPyArray,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use rayon::prelude::*;
use warpfuse::matrix::{
    CsrError, Dtype, Element, Features, NarrowCsr, Order, SharedDense, SharedSlice, csr_from_shared,
};
use warpfuse::ops::Number;

use crate::errors;
use crate::lent::Typed;

/// Something in either precision.
pub enum Either<A, B> {
    /// Of f32.
    F32(A),
    /// Of f64.
    F64(B),
}

impl<A, B> Either<A, B> {
    /// The precision.
    pub fn dtype(&self) -> Dtype {
        match self {
            Either::F32(_) => Dtype::F32,
            Either::F64(_) => Dtype::F64,
        }
    }
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

/// The values, the column indices, the row offsets and the shape of a CSR matrix.
pub type Parts<'py> = (
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    (usize, usize),
);

/// A number that NumPy, the library and its kernels know.
pub trait Scalar: Number + numpy::Element + Typed {}
impl Scalar for f32 {}
impl Scalar for f64 {}

/// X: a contiguous array of two dimensions in either order, or the tuple `(data, indices, indptr, shape)` of a CSR matrix,
/// its indices sorted and without duplicates.
///
/// Nothing is copied but column indices of 64 bits, which are narrowed: the features keep NumPy's arrays alive. Row offsets of
/// 32 bits are widened where a product on the CPU needs them.
pub fn features(x: &Bound<'_, PyAny>) -> PyResult<AnyFeatures> {
    if let Ok(x) = x.cast::<PyArray2<f64>>() {
        return dense(x).map(Either::F64);
    }
    if let Ok(x) = x.cast::<PyArray2<f32>>() {
        return dense(x).map(Either::F32);
    }
    let (data, indices, indptr, shape) = x.extract::<Parts<'_>>().map_err(|_| {
        PyTypeError::new_err(
            "X must be a contiguous array of float32 or float64, or (data, indices, indptr, shape)",
        )
    })?;
    let structure = (indices, indptr);
    if let Ok(data) = data.cast::<PyArray1<f64>>() {
        return sparse(shape, &structure, data).map(Either::F64);
    }
    let data = data.cast::<PyArray1<f32>>().map_err(|_| {
        PyTypeError::new_err("the values of X must be an array of float32 or float64")
    })?;
    sparse(shape, &structure, data).map(Either::F32)
}

fn dense<T: Scalar>(x: &Bound<'_, PyArray2<T>>) -> PyResult<Features<T>> {
    let order = match (x.is_c_contiguous(), x.is_fortran_contiguous()) {
        (true, _) => Order::Rows,
        (false, true) => Order::Columns,
        (false, false) => return Err(PyTypeError::new_err("X must be contiguous")),
    };
    let (shape, elements) = (x.dims(), lent(x.as_untyped(), x.data())?);
    let x = SharedDense::new((shape[0], shape[1]), order, elements);
    Ok(Features::Shared(x.expect("an array holds its elements")))
}

fn sparse<T: Scalar>(
    shape: (usize, usize),
    (indices, indptr): &(Bound<'_, PyAny>, Bound<'_, PyAny>),
    data: &Bound<'_, PyArray1<T>>,
) -> PyResult<Features<T>> {
    let (indices, offsets) = (
        Integers::of("indices", indices)?,
        Integers::of("row offsets", indptr)?,
    );
    let values = vector_lent(data)?;
    data.py().detach(|| {
        let indices = indices.columns(shape.1)?;
        // A negative offset becomes larger than any number of entries.
        let x: Result<Features<T>, CsrError> = match offsets {
            Integers::Narrow(offsets) => {
                NarrowCsr::new(shape, same_size(offsets), indices, values).map(Features::Narrow)
            }
            Integers::Wide(offsets) => {
                csr_from_shared(shape, same_size(offsets), indices, values).map(Features::Sparse)
            }
        };
        x.map_err(errors::of_csr)
    })
}

/// NumPy's memory, and the array that owns it.
struct Lent<T> {
    start: *const T,
    len: usize,
    _owner: Py<PyAny>,
}

// SAFETY: elements are only read through it, and its owner may be let go by any thread.
unsafe impl<T: Sync> Send for Lent<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Lent<T> {}

/// The elements of a contiguous array, without a copy.
fn lent<T: Send + Sync + 'static>(
    array: &Bound<'_, PyUntypedArray>,
    start: *const T,
) -> PyResult<SharedSlice<T>> {
    let len = array.len();
    if len > 0 && !start.is_aligned() {
        return Err(PyTypeError::new_err(
            "the elements of an array must be aligned",
        ));
    }
    let _owner = array.clone().into_any().unbind();
    let owner = Arc::new(Lent { start, len, _owner });
    // SAFETY: the array is contiguous and aligned, and holds this many elements of type T from `start` on for as long as it
    // lives, which `owner` makes sure of. Python code that writes into it during a fit gets what it gets from SciPy:
    // it is asked not to.
    Ok(SharedSlice::of_owner(owner, |lent| match lent.len {
        0 => &[],
        // SAFETY: as above.
        len => unsafe { slice::from_raw_parts(lent.start, len) },
    }))
}

fn vector_lent<T: numpy::Element + Send + Sync + 'static>(
    array: &Bound<'_, PyArray1<T>>,
) -> PyResult<SharedSlice<T>> {
    if !array.is_c_contiguous() {
        return Err(PyTypeError::new_err(
            "the arrays of a CSR matrix must be contiguous",
        ));
    }
    lent(array.as_untyped(), array.data())
}

/// Indices or offsets as SciPy has them.
enum Integers {
    Narrow(SharedSlice<i32>),
    Wide(SharedSlice<i64>),
}

impl Integers {
    fn of(what: &str, array: &Bound<'_, PyAny>) -> PyResult<Integers> {
        if let Ok(array) = array.cast::<PyArray1<i32>>() {
            return vector_lent(array).map(Integers::Narrow);
        }
        let array = array.cast::<PyArray1<i64>>().map_err(|_| {
            PyTypeError::new_err(format!("the {what} of X must be of int32 or int64"))
        })?;
        vector_lent(array).map(Integers::Wide)
    }

    /// As column indices; those that are no `u32` are refused here, and those beyond the columns by whoever makes the
    /// matrix.
    fn columns(self, cols: usize) -> PyResult<SharedSlice<u32>> {
        let wide = match self {
            Integers::Narrow(indices) => return Ok(same_size(indices)),
            Integers::Wide(wide) => wide,
        };
        let narrow = |index: &i64| u32::try_from(*index).map_err(|_| *index);
        let narrow: Result<Vec<u32>, i64> = wide.par_iter().map(narrow).collect();
        narrow.map(SharedSlice::from).map_err(|index| {
            PyValueError::new_err(format!(
                "X is no valid CSR matrix: column index {index} where there are {cols} columns"
            ))
        })
    }
}

/// Integers without their sign, in the same memory.
fn same_size<A: Pod + Send + Sync, B: Pod>(integers: SharedSlice<A>) -> SharedSlice<B> {
    SharedSlice::of_owner(Arc::new(integers), |integers| {
        bytemuck::cast_slice(integers)
    })
}

/// Lists of equal length as the rows of an array.
pub fn rows<'py, T: Scalar>(py: Python<'py>, rows: &[&[f64]]) -> Bound<'py, PyArray2<T>> {
    let cols = rows.first().map_or(0, |row| row.len());
    let elements = rows.iter().flat_map(|row| row.iter());
    let flat = elements.map(|x| <T as Element>::from_f64(*x)).collect();
    let array = Array2::from_shape_vec((rows.len(), cols), flat).expect("rows of equal length");
    array.into_pyarray(py)
}

/// A list as an array in the precision of X.
pub fn numbers<'py, T: Scalar>(py: Python<'py>, values: &[f64]) -> Bound<'py, PyArray1<T>> {
    let values = values.iter().map(|x| <T as Element>::from_f64(*x));
    PyArray1::from_iter(py, values)
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
        .par_iter()
        .map(|value| <T as Element>::from_f64(*value))
        .collect()
}
