//! Passes over whole arrays of NumPy by all cores, where NumPy takes one: checks before a fit, and what comes after it.

use ndarray::Array2;
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods,
    PyReadonlyArrayDyn, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use rayon::prelude::*;
use warpfuse::learning::{self, Codes, Label};

use crate::arrays::Scalar;
use crate::watch;

/// Elements that one task takes.
const CHUNK: usize = 1 << 16;
/// Whether the rows of a CSR matrix have ascending columns, each once, by 32- or 64-bit offsets and indices.
#[pyfunction]
pub fn is_canonical(
    offsets: &Bound<'_, PyAny>,
    indices: &Bound<'_, PyAny>,
) -> PyResult<Option<bool>> {
    macro_rules! of_types {
        ($($offset:ty, $index:ty);*) => { $(
            if let (Ok(offsets), Ok(indices)) = (
                offsets.cast::<PyArray1<$offset>>(),
                indices.cast::<PyArray1<$index>>(),
            ) {
                return ascend(offsets, indices);
            }
        )* };
    }
    of_types!(i32, i32; i64, i64; i64, i32; i32, i64);
    Ok(None)
}

/// None of arrays that are not contiguous, and of offsets that reach beyond the indices, which others complain about.
fn ascend<O, I>(
    offsets: &Bound<'_, PyArray1<O>>,
    indices: &Bound<'_, PyArray1<I>>,
) -> PyResult<Option<bool>>
where
    O: numpy::Element + Copy + Sync + TryInto<usize>,
    I: numpy::Element + Ord + Sync,
{
    let py = offsets.py();
    let (offsets, indices) = (offsets.try_readonly()?, indices.try_readonly()?);
    let (Ok(offsets), Ok(indices)) = (offsets.as_slice(), indices.as_slice()) else {
        return Ok(None);
    };
    let row = |ends: &[O]| {
        let end = |at: usize| ends[at].try_into().ok();
        let of_row = indices.get(end(0)?..end(1)?)?;
        Some(of_row.is_sorted_by(|a, b| a < b))
    };
    let of_part = |number: usize| {
        let part = &offsets[number * CHUNK..offsets.len().min((number + 1) * CHUNK + 1)];
        part.windows(2)
            .try_fold(true, |all, ends| Some(all & row(ends)?))
    };
    let parts = offsets.len().saturating_sub(1).div_ceil(CHUNK);
    let both = |a: bool, b: bool| Some(a & b);
    if parts <= 1 && indices.len() <= CHUNK {
        // Another thread would take longer to wake.
        return Ok((0..parts)
            .map(of_part)
            .try_fold(true, |all, part| both(all, part?)));
    }
    let found = || {
        (0..parts)
            .into_par_iter()
            .map(of_part)
            .try_reduce(|| true, both)
    };
    Ok(py.detach(found))
}

/// Whether all elements of a contiguous array of floats are finite; none of other arrays.
#[pyfunction]
pub fn is_finite(array: &Bound<'_, PyAny>) -> PyResult<Option<bool>> {
    let py = array.py();
    if let Ok(array) = array.cast::<PyArrayDyn<f32>>() {
        return all(py, array, |x: &f32| {
            x.to_bits() & 0x7f80_0000 != 0x7f80_0000
        });
    }
    match array.cast::<PyArrayDyn<f64>>() {
        Ok(array) => all(py, array, |x: &f64| {
            x.to_bits() & 0x7ff0_0000_0000_0000 != 0x7ff0_0000_0000_0000
        }),
        Err(_) => Ok(None),
    }
}

/// Whether X and y are arrays of NumPy that its owner's checks would give back as they are: X of floats in contiguous rows or
/// columns, y a vector of as many numbers, and all of them finite. Arrays of more than `many` elements are not looked into: a
/// fit does. False says nothing but that it is not so plain.
#[pyfunction]
pub fn are_plain(x: &Bound<'_, PyAny>, y: &Bound<'_, PyAny>, many: usize) -> PyResult<bool> {
    let Some(rows) = plain_rows(x, many)? else {
        return Ok(false);
    };
    let Some(vector) = plain_targets(y, rows) else {
        return Ok(false);
    };
    let is_looked_at = vector.dtype().kind() == b'f' && vector.len() <= many;
    Ok(!is_looked_at || is_finite(y)? == Some(true))
}

/// y, if it is a vector of NumPy of this many numbers; whether they are finite is not looked at.
pub fn plain_targets<'a, 'py>(
    y: &'a Bound<'py, PyAny>,
    rows: usize,
) -> Option<&'a Bound<'py, PyUntypedArray>> {
    let y = y.cast_exact::<PyUntypedArray>().ok()?;
    let is_of_numbers = matches!(y.dtype().kind(), b'f' | b'i' | b'u' | b'b');
    (is_of_numbers && y.shape() == [rows]).then_some(y)
}

/// The rows of X, if it is a matrix of NumPy as [`are_plain`] says.
///
/// # Errors
/// Of the interpreter.
pub fn plain_rows(x: &Bound<'_, PyAny>, many: usize) -> PyResult<Option<usize>> {
    if x.cast_exact::<PyUntypedArray>().is_err() {
        return Ok(None);
    }
    match (x.cast::<PyArray2<f32>>(), x.cast::<PyArray2<f64>>()) {
        (Ok(x), _) => plain_rows_of(x, many),
        (_, Ok(x)) => plain_rows_of(x, many),
        _ => Ok(None),
    }
}

fn plain_rows_of<T: numpy::Element + Sync>(
    x: &Bound<'_, PyArray2<T>>,
    many: usize,
) -> PyResult<Option<usize>> {
    let is_laid_out = x.is_contiguous() && x.data().is_aligned();
    if x.is_empty() || !is_laid_out {
        return Ok(None);
    }
    // An array by columns has no slice in NumPy's order: the other way decides.
    let is_plain = x.len() > many || x.is_c_contiguous() && is_finite(x.as_any())? == Some(true);
    Ok(is_plain.then(|| x.shape()[0]))
}

fn all<T: numpy::Element + Sync>(
    py: Python<'_>,
    array: &Bound<'_, PyArrayDyn<T>>,
    is_good: impl Fn(&T) -> bool + Sync,
) -> PyResult<Option<bool>> {
    let array: PyReadonlyArrayDyn<'_, T> = array.try_readonly()?;
    let Ok(values) = array.as_slice() else {
        return Ok(None);
    };
    // Chunks are looked at to their ends, by loops that vectorise.
    let chunk = |part: &[T]| part.iter().fold(true, |all, value| all & is_good(value));
    if values.len() <= CHUNK {
        // Another thread would take longer to wake.
        return Ok(Some(chunk(values)));
    }
    Ok(Some(py.detach(|| values.par_chunks(CHUNK).all(chunk))))
}

/// Classes in ascending order, and the number of each label's class.
type Encoded<'py> = (Bound<'py, PyAny>, Codes<'static>);

/// Classes, and the number of each label's class as an array of 8 or 32 bits.
type EncodedArray<'py> = Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>;

/// Classes and codes of a contiguous vector of numbers or truths that are labels, by the library; none of others.
#[pyfunction]
pub fn encode<'py>(labels: &Bound<'py, PyAny>) -> PyResult<EncodedArray<'py>> {
    let py = labels.py();
    Ok(encoded(labels)?.map(|(classes, codes)| (classes, array(py, codes))))
}

/// [`encode`], with the codes as a fit takes them.
///
/// # Errors
/// Of the interpreter.
pub fn encoded<'py>(labels: &Bound<'py, PyAny>) -> PyResult<Option<Encoded<'py>>> {
    macro_rules! of_types {
        ($($type:ty),*) => { $(
            if let Ok(labels) = labels.cast::<PyArray1<$type>>() {
                return numbered(labels);
            }
        )* };
    }
    of_types!(i64, i32, bool, f64, u8, f32, i8, i16, u16, u32, u64);
    Ok(None)
}

fn numbered<'py, T: numpy::Element + Label>(
    labels: &Bound<'py, PyArray1<T>>,
) -> PyResult<Option<Encoded<'py>>> {
    let py = labels.py();
    let labels = labels.try_readonly()?;
    let Ok(labels) = labels.as_slice() else {
        return Ok(None);
    };
    // What is no label is for scikit-learn's checks to say.
    let found = py.detach(|| watch::timed(|| Codes::of(labels))).ok();
    Ok(found.map(|(classes, codes)| (classes.into_pyarray(py).into_any(), codes)))
}

fn array<'py>(py: Python<'py>, codes: Codes<'static>) -> Bound<'py, PyAny> {
    match codes {
        Codes::Bytes(codes) => codes.into_owned().into_pyarray(py).into_any(),
        Codes::Words(codes) => codes.into_owned().into_pyarray(py).into_any(),
    }
}

/// The same of text: each row holds the characters of a label, and so does each row of the classes.
#[pyfunction]
pub fn encode_text<'py>(labels: &Bound<'py, PyArray2<u32>>) -> PyResult<EncodedArray<'py>> {
    let (py, width) = (labels.py(), labels.shape()[1].max(1));
    let labels = labels.try_readonly()?;
    let Ok(labels) = labels.as_slice() else {
        return Ok(None);
    };
    let label = |row: usize| &labels[row * width..(row + 1) * width];
    let number = || Codes::of_each(labels.len() / width, label);
    let Ok((classes, codes)) = py.detach(|| watch::timed(number)) else {
        return Ok(None);
    };
    let classes = Array2::from_shape_vec((classes.len(), width), classes.concat());
    let classes = classes.expect("rows of one width").into_pyarray(py);
    Ok(Some((classes.into_any(), array(py, codes))))
}

/// `1 − p` and `p = 1 / (1 + exp(−score))` of each score of a contiguous vector of floats, one pair after the other; none of
/// other arrays.
#[pyfunction]
pub fn sigmoids<'py>(scores: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    match (scores.cast(), scores.cast()) {
        (Ok(scores), _) => pairs::<f32>(scores),
        (_, Ok(scores)) => pairs::<f64>(scores),
        _ => Ok(None),
    }
}

fn pairs<'py, T: Scalar + Default>(
    scores: &Bound<'py, PyArray1<T>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = scores.py();
    let scores = scores.try_readonly()?;
    let Ok(scores) = scores.as_slice() else {
        return Ok(None);
    };
    let found = py.detach(|| learning::sigmoids(scores));
    Ok(Some(found.into_pyarray(py).into_any()))
}
