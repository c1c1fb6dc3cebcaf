//! Arrays of texts: the labels of classes, as `numpy.save` writes them.

use std::path::Path;

use super::super::error::{Fault, ReadError};
use super::super::options::MemoryLimit;
use super::super::source;
use super::header::{bad, parsed};

/// How the letters of a text are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Letters {
    /// A byte each (`S`).
    Bytes,
    /// Four bytes each (`U`).
    Wide { big_endian: bool },
}

/// What a type is called: the letters and how many of them each text has room for.
fn kind(descriptor: &str) -> Option<(Letters, usize)> {
    let (order, rest) = descriptor.split_at_checked(1)?;
    let (letter, count) = rest.split_at_checked(1)?;
    let letters = match (order, letter) {
        (_, "S") => Letters::Bytes,
        (">", "U") => Letters::Wide { big_endian: true },
        (_, "U") => Letters::Wide { big_endian: false },
        _ => return None,
    };
    Some((letters, count.parse().ok().filter(|count| *count > 0)?))
}

/// Reads texts from an npy file; `None` where the array has no texts but numbers.
///
/// # Errors
/// [`ReadError`] when the file cannot be read, is no npy file, has more than one column, or is shorter than its header
/// says.
///
/// ```
/// # use warpfuse::io::{read_text_vector, write_vector};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("y.npy");
/// write_vector(&path, &[1.0_f64, 2.5])?;
/// assert_eq!(read_text_vector(&path)?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_text_vector(path: impl AsRef<Path>) -> Result<Option<Vec<String>>, ReadError> {
    let (path, limit) = (path.as_ref(), MemoryLimit::Available.bytes());
    let content = source::open(path, limit)?;
    texts(path, &content, limit)
}

/// [`read_text_vector`] of a file's content.
pub(in super::super) fn texts(
    path: &Path,
    content: &[u8],
    limit: u64,
) -> Result<Option<Vec<String>>, ReadError> {
    let (header, data_at) = parsed(path, content)?;
    let Some((letters, length)) = header.name().and_then(kind) else {
        return Ok(None);
    };
    let count = match header.shape[..] {
        [count] | [1, count] | [count, 1] => count,
        _ => {
            let found = format!("the shape {:?}", header.shape);
            return Err(bad(
                path,
                data_at,
                "an array with one axis (a vector)",
                &found,
            ));
        }
    };
    let width = match letters {
        Letters::Bytes => length,
        Letters::Wide { .. } => length.saturating_mul(4),
    };
    let data = &content[data_at..];
    if width.checked_mul(count) != Some(data.len()) {
        let expected = format!("{count} texts of {width} bytes");
        let found = format!("{} bytes", data.len());
        return Err(bad(path, data_at, &expected, &found));
    }
    let needed = (count * size_of::<String>() + data.len()) as u64;
    if needed > limit {
        return Err(Fault::Memory {
            needed,
            limit,
            why: None,
        }
        .locate(path, &[]));
    }
    let text = |(at, bytes): (usize, &[u8])| {
        text(bytes, letters).ok_or_else(|| {
            let place = data_at + at * width;
            bad(
                path,
                place,
                "text in Unicode",
                &format!("other bytes in text {at}"),
            )
        })
    };
    data.chunks_exact(width)
        .enumerate()
        .map(text)
        .collect::<Result<_, _>>()
        .map(Some)
}

/// One text, without the zeros after it.
fn text(bytes: &[u8], letters: Letters) -> Option<String> {
    let text = match letters {
        Letters::Bytes => String::from_utf8(bytes.to_vec()).ok()?,
        Letters::Wide { big_endian } => {
            let (letters, _) = bytes.as_chunks::<4>();
            let number = |letter: &[u8; 4]| match big_endian {
                true => u32::from_be_bytes(*letter),
                false => u32::from_le_bytes(*letter),
            };
            letters
                .iter()
                .map(|letter| char::from_u32(number(letter)))
                .collect::<Option<String>>()?
        }
    };
    Some(text.trim_end_matches('\0').to_owned())
}
