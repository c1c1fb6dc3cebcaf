//! What comes before the data.

use std::path::Path;

use ndarray_npy::npy::header::Header as Parsed;

use super::super::error::{ReadError, excerpt};
use super::decode::Kind;

/// How every npy file starts.
pub(in super::super) const MAGIC: &[u8] = b"\x93NUMPY";
/// The longest header that is parsed, in bytes; NumPy's own limit is the same.
const MAX_HEADER: usize = 10_000;
/// The deepest nesting of brackets in a header of plain numbers is a tuple in a dictionary; the
/// parser recurses over brackets, so deeper ones are not given to it.
const MAX_NESTING: usize = 4;

/// A header that has been checked against the length of the file.
#[derive(Debug, Clone)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) fortran: bool,
    pub(super) shape: Vec<usize>,
    /// Number of elements: the product of the shape.
    pub(super) count: usize,
    /// Where the data start, in bytes.
    pub(super) data_at: usize,
}

/// Parses the header, and says where the data start.
pub(super) fn parsed(path: &Path, content: &[u8]) -> Result<(Parsed, usize), ReadError> {
    let length_at = MAGIC.len() + 2;
    if !content.starts_with(MAGIC) {
        let expected = "the magic bytes of an npy file";
        return Err(ReadError::binary(path, 0, expected, excerpt(content)));
    }
    let (start, length) = header_length(&content[MAGIC.len()..])
        .ok_or_else(|| bad(path, length_at, "a version and a header length", "neither"))?;
    let data_at = length_at + start + length;
    let Some(text) = content.get(length_at + start..data_at) else {
        let found = format!("a file of {} bytes", content.len());
        let expected = format!("a header of {length} bytes");
        return Err(ReadError::binary(path, length_at as u64, expected, found));
    };
    if length > MAX_HEADER || nesting(text) > MAX_NESTING {
        let expected = "a header that describes one array of plain numbers";
        return Err(bad(
            path,
            length_at + start,
            expected,
            "a longer or nested one",
        ));
    }
    let parsed = Parsed::from_reader(&mut &content[..data_at]).map_err(|error| {
        let found = format!("{}: {error}", excerpt(text));
        bad(path, length_at + start, "an npy header", &found)
    })?;
    Ok((parsed, data_at))
}

impl Header {
    pub(super) fn parse(path: &Path, content: &[u8]) -> Result<Self, ReadError> {
        let (parsed, data_at) = parsed(path, content)?;
        Self::new(path, parsed, data_at)
    }

    fn new(path: &Path, parsed: Parsed, data_at: usize) -> Result<Self, ReadError> {
        let descriptor = parsed.type_descriptor.as_string();
        let kind = descriptor.and_then(|name| Kind::from_descriptor(name));
        let kind = kind.ok_or_else(|| {
            let found = parsed.type_descriptor.to_string();
            bad(
                path,
                MAGIC.len(),
                "real numbers (f2, f4, f8, integers, booleans)",
                &found,
            )
        })?;
        let count = parsed
            .shape
            .iter()
            .try_fold(1_usize, |n, &d| n.checked_mul(d));
        // A zero hides factors that overflow when multiplied in another order.
        let count = if parsed.shape.contains(&0) {
            Some(0)
        } else {
            count
        };
        let bytes = count.and_then(|count| count.checked_mul(kind.size().max(8)));
        let (Some(count), Some(_)) = (count, bytes.filter(|&b| isize::try_from(b).is_ok())) else {
            let found = format!("the shape {:?}", parsed.shape);
            return Err(bad(path, MAGIC.len(), "a shape that fits memory", &found));
        };
        let header = Self {
            kind,
            fortran: parsed.layout.is_fortran(),
            shape: parsed.shape,
            count,
            data_at,
        };
        if count == 0 {
            return Err(header.fault(path, "at least one element"));
        }
        Ok(header)
    }

    /// The bytes of the elements, all of them and nothing more.
    pub(super) fn data<'a>(&self, path: &Path, content: &'a [u8]) -> Result<&'a [u8], ReadError> {
        let data = &content[self.data_at..];
        let needed = self.count * self.kind.size();
        if data.len() != needed {
            let expected = format!("{needed} bytes of data for the shape {:?}", self.shape);
            let found = format!("{} bytes", data.len());
            return Err(bad(path, self.data_at, &expected, &found));
        }
        Ok(data)
    }

    /// The error of a shape that does not suit.
    pub(super) fn fault(&self, path: &Path, expected: &str) -> ReadError {
        let found = format!("the shape {:?}", self.shape);
        bad(path, MAGIC.len(), expected, &found)
    }
}

pub(super) fn bad(path: &Path, offset: usize, expected: &str, found: &str) -> ReadError {
    ReadError::binary(path, offset as u64, expected, found)
}

/// From the version on: bytes that the length takes, and the length.
fn header_length(rest: &[u8]) -> Option<(usize, usize)> {
    match *rest {
        [1, 0, a, b, ..] => Some((2, usize::from(u16::from_le_bytes([a, b])))),
        [2 | 3, 0, a, b, c, d, ..] => Some((4, u32::from_le_bytes([a, b, c, d]) as usize)),
        _ => None,
    }
}

/// The deepest nesting of brackets, wherever they stand.
fn nesting(text: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in text {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}
