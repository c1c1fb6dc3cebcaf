//! npy files from vectors and dense features.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use super::super::error::WriteError;
use super::super::options::Format;
use super::header::MAGIC;
use crate::matrix::{Dtype, Element, Features, Storage};

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
            let flat = rows.as_slice().expect("rows lie one after the other");
            write(path, x.shape(), flat)
        }
        Storage::Sparse(x) => Err(WriteError::Unsupported {
            format: Format::Npy,
            expected: "dense features",
            found: format!("sparse features with {} entries", x.nnz()),
        }),
    }
}

fn write<T: Element>(path: &Path, shape: &[usize], flat: &[T]) -> Result<(), WriteError> {
    let order = if cfg!(target_endian = "big") {
        '>'
    } else {
        '<'
    };
    let letter = match T::DTYPE {
        Dtype::F32 => "f4",
        Dtype::F64 => "f8",
    };
    let write = || {
        let mut out = File::create(path)?;
        out.write_all(&header(&format!("{order}{letter}"), shape))?;
        out.write_all(bytemuck::cast_slice(flat))
    };
    write().map_err(|source| WriteError::Io {
        path: path.to_owned(),
        source,
    })
}

/// The header of rows of numbers of a type, as NumPy writes it: the data behind it start at a multiple of 64 bytes.
fn header(descr: &str, shape: &[usize]) -> Vec<u8> {
    let lengths: String = match shape {
        [one] => format!("{one},"),
        all => all
            .iter()
            .map(usize::to_string)
            .collect::<Vec<_>>()
            .join(", "),
    };
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({lengths}), }}");
    let start = MAGIC.len() + 4;
    let whole = (start + text.len() + 1).next_multiple_of(64);
    let mut header = [MAGIC, &[1, 0]].concat();
    // An array has few axes: 16 bits count the text.
    header.extend(((whole - start) as u16).to_le_bytes());
    header.extend(text.bytes());
    header.resize(whole - 1, b' ');
    header.push(b'\n');
    header
}

#[cfg(test)]
mod tests {
    use super::super::description::Description;
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for shape in [&[][..], &[5], &[3, 4], &[1, 2, 3], &[usize::MAX; 4]] {
            let bytes = header("<f4", shape);
            assert_eq!(bytes.len() % 64, 0);
            let found = Description::parse(&bytes[10..]).expect("a header");
            assert_eq!(found.shape, shape);
            assert_eq!(found.descr.name(), Some("<f4"));
        }
    }
}
