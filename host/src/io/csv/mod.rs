//! Text with separated values: dense features, and targets in one of the columns.
//!
//! One sample a line. The delimiter is a comma, a semicolon, a tab or a bar, whichever the first line has
//! most of, or what [`CsvOptions`](super::CsvOptions) says. A first line in which a field is no number is a header.
//! Fields may be quoted; blanks around them, blank lines, lines that start with `#`, CRLF, a byte-order
//! mark and a last line without newline are accepted. Rejected with their place: fields that are no
//! finite numbers (empty ones too: missing values are not made up), and lines with more or fewer fields than
//! the first.
//!
//! Source of the format: RFC 4180, without line breaks inside quotes, as numbers have none.

pub(super) mod dialect;
pub(super) mod field;
mod rows;
#[cfg(test)]
mod tests;

use std::ops::Range;

use ndarray::Array2;

use super::error::Fault;
use super::options::{CsvOptions, Target};
use super::scan::{self, Meter};
use crate::matrix::{Dataset, Element, Features};
pub(super) use dialect::Dialect;
pub(super) use rows::Chunk;

/// What a text has to hold.
pub(super) const NO_LINES: &str = "at least one line of numbers";
/// What Windows editors put at the start of a UTF-8 file.
pub(super) const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];

/// Parses a whole text into dense features, and targets if a column of them is named.
pub(super) fn parse<T: Element>(
    text: &[u8],
    options: &CsvOptions,
    target: Option<&Target>,
    meter: &Meter<'_>,
) -> Result<Dataset<T>, Fault> {
    let dialect = dialect::<T>(text, options, target)?;
    let body = dialect.body_at..text.len();
    let chunks = parse_lines(text, body, &dialect, meter)?;
    if chunks.iter().all(|chunk| chunk.rows == 0) {
        return Err(Fault::at(text.len(), NO_LINES));
    }
    joined(chunks, &dialect, meter)
}

/// How a text is written.
pub(super) fn dialect<T: Element>(
    text: &[u8],
    options: &CsvOptions,
    target: Option<&Target>,
) -> Result<Dialect, Fault> {
    let start = if text.starts_with(BYTE_ORDER_MARK) {
        BYTE_ORDER_MARK.len()
    } else {
        0
    };
    Dialect::detect::<T>(text, start, options, target)
}

/// Parses some whole lines.
pub(super) fn parse_lines<T: Element>(
    text: &[u8],
    lines: Range<usize>,
    dialect: &Dialect,
    meter: &Meter<'_>,
) -> Result<Vec<Chunk<T>>, Fault> {
    scan::parse_chunks(text, lines, meter, |bytes, start| {
        rows::parse_chunk::<T>(bytes, start, dialect)
    })
}

/// Chunks of a text, which are in file order, as one matrix.
pub(super) fn joined<T: Element>(
    chunks: Vec<Chunk<T>>,
    dialect: &Dialect,
    meter: &Meter<'_>,
) -> Result<Dataset<T>, Fault> {
    let rows: usize = chunks.iter().map(|chunk| chunk.rows).sum();
    let values: usize = chunks.iter().map(|chunk| chunk.features.len()).sum();
    meter.take(((values + rows) * size_of::<T>()) as u64)?;
    let (mut features, mut targets) = (Vec::with_capacity(values), Vec::new());
    for chunk in chunks {
        features.extend_from_slice(&chunk.features);
        targets.extend_from_slice(&chunk.targets);
    }
    let features = Array2::from_shape_vec((rows, dialect.features()), features)
        .expect("every line has been checked for its number of fields");
    Ok(Dataset {
        features: Features::Dense(features),
        targets: dialect.target.is_some().then_some(targets),
    })
}
