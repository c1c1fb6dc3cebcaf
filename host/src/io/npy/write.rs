//! npy files from vectors and dense features.

use std::io::{self, Write};
use std::path::Path;

use ndarray::{ArrayView, ArrayView1, Dimension};
use ndarray_npy::npy::header::{Header, Layout};
use ndarray_npy::{WritableElement, WriteNpyExt};

use super::super::error::WriteError;
use super::super::options::Format;
use crate::matrix::{Dtype, Element, Features, Storage};
use crate::whole::fill_whole;

/// Writes `vector` to `path` as an npy file with one axis, f4 or f8 as the type is.
///
/// # Errors
///
/// [`WriteError::Io`] when the file cannot be written.
pub fn write_vector<T: Element>(path: impl AsRef<Path>, vector: &[T]) -> Result<(), WriteError> {
    write(path.as_ref(), ArrayView1::from(vector))
}

/// Writes dense `features` to `path` as an npy file with two axes, in C order, f4 or f8 as the type
/// is.
///
/// # Errors
///
/// [`WriteError::Unsupported`] for sparse features, [`WriteError::Io`] when the file cannot be
/// written.
pub fn write_npy<T: Element>(path: &Path, features: &Features<T>) -> Result<(), WriteError> {
    match features.storage() {
        Storage::Dense(x) => write(path, x.as_standard_layout().view()),
        Storage::Sparse(x) => Err(WriteError::Unsupported {
            format: Format::Npy,
            expected: "dense features",
            found: format!("sparse features with {} entries", x.nnz()),
        }),
    }
}

/// Writes `texts` to `path` as an npy file with one axis of NumPy's type `U`, four bytes a letter, as long as the longest text.
///
/// # Errors
///
/// [`WriteError::Io`] when the file cannot be written.
///
/// ```
/// # use warpfuse::io::{read_text_vector, write_text_vector};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("labels.npy");
/// let labels = ["Köln".to_owned(), "Ulm".to_owned()];
/// write_text_vector(&path, &labels)?;
/// assert_eq!(read_text_vector(&path)?.as_deref(), Some(&labels[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_text_vector(path: impl AsRef<Path>, texts: &[String]) -> Result<(), WriteError> {
    let path = path.as_ref();
    let lengths = texts.iter().map(|text| text.chars().count());
    // NumPy has no texts without room for a letter.
    let room = lengths.max().unwrap_or(0).max(1);
    let head = Header {
        type_descriptor: format!("'<U{room}'").parse().expect("a text in quotes"),
        layout: Layout::Standard,
        shape: vec![texts.len()],
    };
    let fill = &mut |out: &mut dyn Write| {
        head.write(&mut *out).map_err(io::Error::other)?;
        texts.iter().try_for_each(|text| {
            let mut letters: Vec<u8> = text
                .chars()
                .flat_map(|letter| u32::from(letter).to_le_bytes())
                .collect();
            letters.resize(4 * room, 0);
            out.write_all(&letters)
        })
    };
    fill_whole(path, fill).map_err(|source| WriteError::Io {
        path: path.to_owned(),
        source,
    })
}

fn write<T: Element, D: Dimension>(
    path: &Path,
    array: ArrayView<'_, T, D>,
) -> Result<(), WriteError> {
    let fail = |source| WriteError::Io {
        path: path.to_owned(),
        source,
    };
    let flat = array.as_slice().expect("callers give standard layout");
    let shape = || array.raw_dim();
    fill_whole(path, &mut |out| match T::DTYPE {
        Dtype::F32 => write_as::<f32, D>(out, shape(), bytemuck::cast_slice(flat)),
        Dtype::F64 => write_as::<f64, D>(out, shape(), bytemuck::cast_slice(flat)),
    })
    .map_err(fail)
}

fn write_as<A: WritableElement, D: Dimension>(
    out: &mut dyn Write,
    shape: D,
    flat: &[A],
) -> io::Result<()> {
    let array = ArrayView::from_shape(shape, flat).expect("the shape of the same array");
    array.write_npy(out).map_err(|error| match error {
        ndarray_npy::WriteNpyError::Io(source) => source,
        other => io::Error::other(other),
    })
}
