//! What comes before the data.

use std::path::Path;

use super::super::error::{ReadError, excerpt};
use super::decode::Kind;
use super::literal::Literal;

/// How every npy file starts.
pub(in super::super) const MAGIC: &[u8] = b"\x93NUMPY";
/// The longest header that is parsed, in bytes; NumPy's own limit is the same.
const MAX_HEADER: usize = 10_000;
/// Where data may begin, in bytes.
const ALIGNMENT: usize = 64;

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
pub(super) fn parsed(path: &Path, content: &[u8]) -> Result<(Literal, usize), ReadError> {
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
    if length > MAX_HEADER {
        let expected = format!("a header of at most {MAX_HEADER} bytes");
        let found = format!("one of {length}");
        return Err(bad(path, length_at + start, &expected, &found));
    }
    let parsed = Literal::parse(&String::from_utf8_lossy(text)).map_err(|error| {
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

    fn new(path: &Path, parsed: Literal, data_at: usize) -> Result<Self, ReadError> {
        let kind = parsed.name().and_then(Kind::from_descriptor);
        let kind = kind.ok_or_else(|| {
            let expected = "real numbers (f2, f4, f8, integers, booleans)";
            bad(path, MAGIC.len(), expected, &parsed.descriptor)
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
            fortran: parsed.fortran,
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

/// The bytes of a header before the data: version 1.0, as short as it goes, and data that begin at a multiple of 64 bytes, as
/// NumPy writes it.
///
/// # Panics
/// If the dictionary is longer than 64 KiB, as those of plain arrays never are.
pub(super) fn bytes_of(literal: &Literal) -> Vec<u8> {
    let text = literal.to_string();
    let start = MAGIC.len() + 4;
    let whole = (start + text.len() + 1).next_multiple_of(ALIGNMENT);
    let length = u16::try_from(whole - start).expect("a plain array's header is short");
    let mut bytes = [MAGIC, &[1, 0], &length.to_le_bytes(), text.as_bytes()].concat();
    bytes.resize(whole - 1, b' ');
    bytes.push(b'\n');
    bytes
}
