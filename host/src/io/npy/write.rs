//! npy files from vectors and dense features.

use std::io::Write;
use std::path::Path;

use super::super::error::WriteError;
use super::super::options::Format;
use super::header::bytes_of;
use super::literal::Literal;
use crate::matrix::{Element, Features, Storage};
use crate::whole::fill_whole;

/// Writes `vector` to `path` as an npy file with one axis, f4 or f8 as the type is.
///
/// # Errors
///
/// [`WriteError::Io`] when the file cannot be written.
pub fn write_vector<T: Element>(path: impl AsRef<Path>, vector: &[T]) -> Result<(), WriteError> {
    write(path.as_ref(), &[vector.len()], vector)
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
        Storage::Dense(x) => {
            let rows = x.as_standard_layout();
            let flat = rows.as_slice().expect("standard layout");
            write(path, rows.shape(), flat)
        }
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
    let head = bytes_of(&in_c_order(&format!("<U{room}"), &[texts.len()]));
    let fill = &mut |out: &mut dyn Write| {
        out.write_all(&head)?;
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

fn write<T: Element>(path: &Path, shape: &[usize], flat: &[T]) -> Result<(), WriteError> {
    let order = if cfg!(target_endian = "big") {
        '>'
    } else {
        '<'
    };
    let head = bytes_of(&in_c_order(&format!("{order}f{}", size_of::<T>()), shape));
    let fill = &mut |out: &mut dyn Write| {
        out.write_all(&head)?;
        out.write_all(bytemuck::cast_slice(flat))
    };
    fill_whole(path, fill).map_err(|source| WriteError::Io {
        path: path.to_owned(),
        source,
    })
}

fn in_c_order(name: &str, shape: &[usize]) -> Literal {
    Literal {
        descriptor: format!("'{name}'"),
        fortran: false,
        shape: shape.to_vec(),
    }
}
