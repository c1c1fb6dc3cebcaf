//! npy files from vectors and dense features.

use std::io::{self, Write};
use std::path::Path;

use super::super::error::WriteError;
use super::super::options::Format;
use super::header::MAGIC;
use crate::matrix::{Dtype, Element, Features, Storage};
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
    let lengths = texts.iter().map(|text| text.chars().count());
    // NumPy has no texts without room for a letter.
    let room = lengths.max().unwrap_or(0).max(1);
    let head = header(&format!("<U{room}"), &[texts.len()]);
    write_both(path.as_ref(), &head, &mut |out| {
        texts.iter().try_for_each(|text| {
            let mut letters: Vec<u8> = text
                .chars()
                .flat_map(|letter| u32::from(letter).to_le_bytes())
                .collect();
            letters.resize(4 * room, 0);
            out.write_all(&letters)
        })
    })
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
    let head = header(&format!("{order}{letter}"), shape);
    write_both(path, &head, &mut |out| {
        out.write_all(bytemuck::cast_slice(flat))
    })
}

/// Writes a header and what is behind it, as a whole or not at all.
fn write_both(
    path: &Path,
    head: &[u8],
    data: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> Result<(), WriteError> {
    let fill = &mut |out: &mut dyn Write| {
        out.write_all(head)?;
        data(out)
    };
    fill_whole(path, fill).map_err(|source| WriteError::Io {
        path: path.to_owned(),
        source,
    })
}

/// The header of rows of elements of a type, as NumPy writes it: the data behind it start at a multiple of 64 bytes.
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
