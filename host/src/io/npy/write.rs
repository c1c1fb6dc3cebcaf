//! npy files from vectors and dense features.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use ndarray::{ArrayView, ArrayView1, Dimension};
use ndarray_npy::{WritableElement, WriteNpyExt};

use super::super::error::WriteError;
use super::super::options::Format;
use crate::matrix::{Dtype, Element, Features, Storage};

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

fn write<T: Element, D: Dimension>(
    path: &Path,
    array: ArrayView<'_, T, D>,
) -> Result<(), WriteError> {
    let fail = |source| WriteError::Io {
        path: path.to_owned(),
        source,
    };
    let mut out = BufWriter::new(File::create(path).map_err(fail)?);
    let flat = array.as_slice().expect("callers give standard layout");
    match T::DTYPE {
        Dtype::F32 => write_as::<f32, D>(&mut out, array.raw_dim(), bytemuck::cast_slice(flat)),
        Dtype::F64 => write_as::<f64, D>(&mut out, array.raw_dim(), bytemuck::cast_slice(flat)),
    }
    .map_err(fail)?;
    out.flush().map_err(fail)
}

fn write_as<A: WritableElement, D: Dimension>(
    out: &mut impl Write,
    shape: D,
    flat: &[A],
) -> io::Result<()> {
    let array = ArrayView::from_shape(shape, flat).expect("the shape of the same array");
    array.write_npy(out).map_err(|error| match error {
        ndarray_npy::WriteNpyError::Io(source) => source,
        other => io::Error::other(other),
    })
}
