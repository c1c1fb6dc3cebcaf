//! Passes over whole arrays of NumPy by all cores, where NumPy takes one: checks before a fit, and what comes after it.

use ndarray::Array2;
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods,
    PyReadonlyArrayDyn, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::PyTypeInfo;
use pyo3::prelude::*;
use rayon::prelude::*;

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

/// Classes that are distinguished.
const MOST_CLASSES: usize = 256;

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
    let of_numpy = PyUntypedArray::type_object(x.py());
    if !x.get_type().is(&of_numpy) || !y.get_type().is(&of_numpy) {
        return Ok(false);
    }
    let rows = match (x.cast::<PyArray2<f32>>(), x.cast::<PyArray2<f64>>()) {
        (Ok(x), _) => plain_rows(x, many)?,
        (_, Ok(x)) => plain_rows(x, many)?,
        _ => None,
    };
    let vector = y.cast::<PyUntypedArray>()?;
    if rows.is_none_or(|rows| vector.shape() != [rows]) {
        return Ok(false);
    }
    Ok(match vector.dtype().kind() {
        b'f' if vector.len() > many => true,
        b'f' => is_finite(y)? == Some(true),
        kind => matches!(kind, b'i' | b'u' | b'b'),
    })
}

/// Whether y is a vector of NumPy of this many numbers, one after the other; whether they are finite is not looked at.
pub fn are_plain_targets(y: &Bound<'_, PyAny>, rows: usize) -> PyResult<bool> {
    if !y.get_type().is(PyUntypedArray::type_object(y.py())) {
        return Ok(false);
    }
    let y = y.cast::<PyUntypedArray>()?;
    let is_of_numbers = matches!(y.dtype().kind(), b'f' | b'i' | b'u' | b'b');
    Ok(is_of_numbers && y.shape() == [rows] && y.is_c_contiguous())
}

/// The rows of a plain matrix.
fn plain_rows<T: numpy::Element + Sync>(
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
type Encoded<'py> = (Bound<'py, PyAny>, Bound<'py, PyArray1<u8>>);

/// The classes of a contiguous vector of whole numbers or of truths, as far as 256 of them, and the number of each label's
/// class; none of others.
#[pyfunction]
pub fn encode<'py>(labels: &Bound<'py, PyAny>) -> PyResult<Option<Encoded<'py>>> {
    macro_rules! of_types {
        ($($type:ty),*) => { $(
            if let Ok(labels) = labels.cast::<PyArray1<$type>>() {
                return encoded(labels);
            }
        )* };
    }
    of_types!(i64, i32, i8, u8, bool);
    Ok(None)
}

fn encoded<'py, T: numpy::Element + Copy + Ord + Send + Sync>(
    labels: &Bound<'py, PyArray1<T>>,
) -> PyResult<Option<Encoded<'py>>> {
    let py = labels.py();
    let labels = labels.try_readonly()?;
    let Ok(labels) = labels.as_slice() else {
        return Ok(None);
    };
    let found = py.detach(|| numbered(labels));
    Ok(found.map(|(classes, codes)| (classes.into_pyarray(py).into_any(), codes.into_pyarray(py))))
}

/// The same of text: each row holds the characters of a label, and so does each row of the classes.
#[pyfunction]
pub fn encode_text<'py>(labels: &Bound<'py, PyArray2<u32>>) -> PyResult<Option<Encoded<'py>>> {
    let (py, width) = (labels.py(), labels.shape()[1].max(1));
    let labels = labels.try_readonly()?;
    let Ok(labels) = labels.as_slice() else {
        return Ok(None);
    };
    let found = py.detach(|| {
        let rows: Vec<&[u32]> = labels.chunks_exact(width).collect();
        let (classes, codes) = numbered(&rows)?;
        Some((classes.concat(), codes))
    });
    let Some((classes, codes)) = found else {
        return Ok(None);
    };
    let classes = Array2::from_shape_vec((classes.len() / width, width), classes);
    let classes = classes.expect("rows of one width");
    Ok(Some((
        classes.into_pyarray(py).into_any(),
        codes.into_pyarray(py),
    )))
}

/// Up to 256 classes in ascending order, and the number of each label's class.
fn numbered<T: Copy + Ord + Send + Sync>(labels: &[T]) -> Option<(Vec<T>, Vec<u8>)> {
    // Mostly each class has a label among the first: then all are read once.
    let mut classes = seen(Vec::new(), &labels[..CHUNK.min(labels.len())])?;
    classes.sort_unstable();
    let mut codes = vec![0_u8; labels.len()];
    if !number(&classes, labels, &mut codes) {
        classes = classes_of(labels)?;
        classes.sort_unstable();
        number(&classes, labels, &mut codes);
    }
    Some((classes, codes))
}

/// Each label once, unless there are too many; of few labels without waking another thread, which takes longer.
fn classes_of<T: Copy + PartialEq + Send + Sync>(labels: &[T]) -> Option<Vec<T>> {
    if labels.len() <= CHUNK {
        return seen(Vec::new(), labels);
    }
    let parts = labels.par_chunks(CHUNK).map(|part| seen(Vec::new(), part));
    parts.try_reduce(Vec::new, |a, b| seen(a, &b))
}

/// Writes the number of each label's class; whether all labels are among the classes, which ascend.
fn number<T: Copy + Ord + Sync>(classes: &[T], labels: &[T], codes: &mut [u8]) -> bool {
    if labels.len() <= CHUNK {
        return number_part(classes, labels, codes);
    }
    let parts = codes.par_chunks_mut(CHUNK).zip(labels.par_chunks(CHUNK));
    parts.all(|(codes, labels)| number_part(classes, labels, codes))
}

fn number_part<T: Copy + Ord>(classes: &[T], labels: &[T], codes: &mut [u8]) -> bool {
    let pairs = codes.iter_mut().zip(labels);
    if classes.len() > FEW {
        return pairs.fold(true, |all, (code, label)| {
            let place = classes.partition_point(|class| class < label);
            // Beyond 256 classes there is none.
            *code = place as u8;
            all && classes.get(place) == Some(label)
        });
    }
    // Loops that vectorise.
    let mut found = 0;
    for (code, label) in pairs {
        *code = classes.iter().map(|class| u8::from(class < label)).sum();
        found += classes.iter().filter(|class| *class == label).count();
    }
    found == labels.len()
}

/// Labels that are compared with all classes at once.
const BLOCK: usize = 1 << 10;
/// Classes with each of which a label is compared, by loops that vectorise.
const FEW: usize = 8;

/// What has been seen and each further label once, unless there are too many.
fn seen<T: Copy + PartialEq>(mut seen: Vec<T>, labels: &[T]) -> Option<Vec<T>> {
    for block in labels.chunks(BLOCK) {
        let of_class = |class: &T| {
            block
                .iter()
                .map(|label| usize::from(label == class))
                .sum::<usize>()
        };
        if seen.len() <= FEW && seen.iter().map(of_class).sum::<usize>() == block.len() {
            continue;
        }
        for label in block {
            if seen.contains(label) {
                continue;
            }
            if seen.len() == MOST_CLASSES {
                return None;
            }
            seen.push(*label);
        }
    }
    Some(seen)
}

/// `1 − p` and `p = 1 / (1 + exp(−score))` of each score of a contiguous vector of floats, one pair after the other; none of
/// other arrays.
#[pyfunction]
pub fn sigmoids<'py>(scores: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = scores.py();
    if let Ok(scores) = scores.cast::<PyArray1<f32>>() {
        let scores = scores.try_readonly()?;
        let Ok(scores) = scores.as_slice() else {
            return Ok(None);
        };
        let found = py.detach(|| pairs(scores, |score| pair(f64::from(score)).map(|p| p as f32)));
        return Ok(Some(found.into_pyarray(py).into_any()));
    }
    let Ok(scores) = scores.cast::<PyArray1<f64>>() else {
        return Ok(None);
    };
    let scores = scores.try_readonly()?;
    let Ok(scores) = scores.as_slice() else {
        return Ok(None);
    };
    let found = py.detach(|| pairs(scores, pair));
    Ok(Some(found.into_pyarray(py).into_any()))
}

/// What `pair` makes of each score, one after the other.
fn pairs<T: Copy + Default + Send + Sync>(
    scores: &[T],
    pair: impl Fn(T) -> [T; 2] + Sync,
) -> Vec<T> {
    let mut found = vec![T::default(); 2 * scores.len()];
    let parts = found
        .par_chunks_mut(2 * CHUNK)
        .zip(scores.par_chunks(CHUNK));
    parts.for_each(|(found, scores)| {
        for (found, score) in found.chunks_exact_mut(2).zip(scores) {
            found.copy_from_slice(&pair(*score));
        }
    });
    found
}

/// Without overflow, and with all digits of the smaller.
fn pair(score: f64) -> [f64; 2] {
    let small = (-score.abs()).exp();
    let (of_small, of_large) = (small / (1.0 + small), 1.0 / (1.0 + small));
    match score >= 0.0 {
        true => [of_small, of_large],
        false => [of_large, of_small],
    }
}
