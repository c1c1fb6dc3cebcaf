//! NumPy's array files: dense features (two axes) and target vectors (one axis, or one column).
//!
//! Element types f2, f4, f8, signed and unsigned integers and booleans, either byte order, C or
//! Fortran order; everything is converted to the type requested. The shape is checked against the
//! length of the file before anything is allocated. Values that are not finite are refused.
//!
//! Source of the format: NumPy Enhancement Proposal 1, "A Simple File Format for NumPy Arrays".

mod decode;
mod header;
mod literal;
#[cfg(test)]
mod tests;
mod text;
mod write;

use std::io;
use std::path::Path;

use ndarray::Array2;

use super::error::{Fault, ReadError};
use super::options::MemoryLimit;
use super::source::{self, Content};
use crate::matrix::{Dataset, Element, Features, Storage};
use decode::{Order, Wrong};
use header::Header;

pub(super) use header::MAGIC;
pub use text::read_text_vector;
pub(super) use text::texts;
pub use write::{write_npy, write_text_vector, write_vector};

/// Parses the content of an npy file with two axes into dense features without targets.
pub(super) fn parse<T: Element>(
    path: &Path,
    content: Bytes<'_>,
    limit: u64,
) -> Result<Dataset<T>, ReadError> {
    let header = Header::parse(path, content.all)?;
    let &[rows, cols] = &header.shape[..] else {
        let expected = "an array with two axes (samples × features)";
        return Err(header.fault(path, expected));
    };
    let values = values(path, content, &header, limit)?;
    let features = Array2::from_shape_vec((rows, cols), values);
    let features = features.expect("the header's shape is checked against the number of values");
    Ok(Dataset {
        features: Features::Dense(features),
        targets: None,
    })
}

/// Reads a vector (targets, coefficients, weights) from the npy file `path`.
///
/// A matrix with a single row or column counts as a vector.
///
/// # Errors
///
/// [`ReadError`] when the file cannot be read, is no npy file of numbers, has more than one
/// column, is shorter than its header says, or has values that are not finite.
///
/// ```
/// # use warpfuse::io::{read_vector, write_vector};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("y.npy");
/// write_vector(&path, &[1.0_f64, 2.5])?;
/// assert_eq!(read_vector::<f32>(&path)?, [1.0, 2.5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_vector<T: Element>(path: impl AsRef<Path>) -> Result<Vec<T>, ReadError> {
    let (path, limit) = (path.as_ref(), MemoryLimit::Available.bytes());
    let content = source::open(path, limit)?;
    content.read(|content| parse_vector(path, Bytes::of_file(content), limit))
}

/// Whether a file is an array, or is called one: then it is told what is wrong with it as such.
pub(super) fn is_array(path: &Path, content: &[u8]) -> bool {
    content.starts_with(MAGIC) || path.extension().is_some_and(|extension| extension == "npy")
}

/// [`read_vector`] of a file's content.
pub(super) fn vector<T: Element>(
    path: &Path,
    content: &Content,
    limit: u64,
) -> Result<Vec<T>, ReadError> {
    parse_vector(path, Bytes::of_file(content), limit)
}

/// Columns of the array in the npy file `path`: 1 of a vector, also of one that lies in a single row.
///
/// # Errors
/// [`ReadError`] when the file cannot be read, or is no npy file of numbers with one axis or two.
///
/// ```
/// # use warpfuse::io::{npy_columns, write_vector};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("y.npy");
/// write_vector(&path, &[1.0_f64, 2.5])?;
/// assert_eq!(npy_columns(&path)?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn npy_columns(path: impl AsRef<Path>) -> Result<usize, ReadError> {
    let (path, limit) = (path.as_ref(), MemoryLimit::Available.bytes());
    let content = source::open(path, limit)?;
    content.read(|content| {
        let header = Header::parse(path, content)?;
        match header.shape[..] {
            [_] | [1, _] => Ok(1),
            [_, columns] => Ok(columns),
            _ => Err(header.fault(path, "an array with one axis or two (targets)")),
        }
    })
}

/// Reads the columns of an array with two axes from the npy file `path`: several targets.
///
/// # Errors
/// As [`read_vector`], and when the array has another number of axes.
///
/// ```
/// # use ndarray::array;
/// # use warpfuse::io::{read_columns, write_npy};
/// # use warpfuse::matrix::Features;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("y.npy");
/// write_npy(&path, &Features::Dense(array![[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))?;
/// assert_eq!(read_columns::<f64>(&path)?, [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_columns<T: Element>(path: impl AsRef<Path>) -> Result<Vec<Vec<T>>, ReadError> {
    let (path, limit) = (path.as_ref(), MemoryLimit::Available.bytes());
    let content = source::open(path, limit)?;
    let all = content.read(|content| parse::<T>(path, Bytes::of_file(content), limit))?;
    let Storage::Dense(all) = all.features.storage() else {
        unreachable!("an array is dense")
    };
    Ok(all
        .columns()
        .into_iter()
        .map(|column| column.to_vec())
        .collect())
}

/// Parses the content of an npy file that holds a vector.
pub(super) fn parse_vector<T: Element>(
    path: &Path,
    content: Bytes<'_>,
    limit: u64,
) -> Result<Vec<T>, ReadError> {
    let header = Header::parse(path, content.all)?;
    if !matches!(header.shape[..], [_] | [1, _] | [_, 1]) {
        return Err(header.fault(path, "an array with one axis (a vector)"));
    }
    values(path, content, &header, limit)
}

/// All values row by row.
fn values<T: Element>(
    path: &Path,
    content: Bytes<'_>,
    header: &Header,
    limit: u64,
) -> Result<Vec<T>, ReadError> {
    let data = header.data(path, content.all)?;
    let needed = (header.count as u64).saturating_mul(size_of::<T>() as u64);
    if needed > limit {
        let why = None;
        return Err(Fault::Memory { needed, limit, why }.locate(path, &[]));
    }
    let order = match header.shape[..] {
        [rows, cols] if header.fortran => Order::Columns { rows, cols },
        _ => Order::Rows,
    };
    let decoded = if header.kind.is(T::DTYPE) && order == Order::Rows {
        decode::copy(header.count, |start, to| {
            content.copy_to(header.data_at + start, to)
        })
    } else {
        decode::decode(data, header.kind, order)
    };
    decoded.map_err(|wrong| match wrong {
        Wrong::Value { entry, value } => {
            let offset = header.data_at + entry * header.kind.size();
            let expected = format!("finite values that fit {}", T::DTYPE);
            let found = format!("{value} at element {entry} in storage order");
            ReadError::binary(path, offset as u64, expected, found)
        }
        Wrong::File(error) => ReadError::io(path, error),
    })
}

/// The content of an npy file.
#[derive(Clone, Copy)]
pub(super) struct Bytes<'a> {
    all: &'a [u8],
    file: Option<&'a Content>,
}

impl<'a> Bytes<'a> {
    /// That is a whole file.
    pub(super) fn of_file(content: &'a Content) -> Self {
        Bytes {
            all: content,
            file: Some(content),
        }
    }

    /// That lies in memory.
    pub(super) fn of_memory(all: &'a [u8]) -> Self {
        Bytes { all, file: None }
    }

    fn copy_to(self, start: usize, to: &mut [u8]) -> io::Result<()> {
        match self.file {
            Some(file) => file.copy_to(start, to),
            None => {
                to.copy_from_slice(&self.all[start..start + to.len()]);
                Ok(())
            }
        }
    }
}
