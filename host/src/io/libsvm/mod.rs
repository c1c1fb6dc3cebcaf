//! LIBSVM (SVMlight) text: one sample a line, `label index:value index:value … # comment`.
//!
//! Accepted beyond the letter of the format: indices from 0 or from 1, unsorted indices, `qid:n`
//! (skipped), samples without labels (all or none of a file's, as for predictions), comments, blank lines, any blanks, CRLF, a last line without newline, a byte-order
//! mark. Rejected with their place: repeated indices in a sample, values that are not finite,
//! several labels per sample, and a file without samples or without features.
//!
//! Source of the format: Chang and Lin, "LIBSVM: a library for support vector machines", ACM
//! TIST 2(3), 2011, and Joachims' SVMlight for comments and `qid`.

mod assemble;
mod parts;
mod row;
#[cfg(test)]
mod tests;
mod write;

use std::ops::Range;

use super::error::Fault;
use super::options::{Columns, IndexBase};
use super::scan::{self, Meter};
use crate::matrix::{Dataset, Element};

pub(super) use assemble::{has_targets, joined, shape};
pub(super) use parts::{Parts, Placed};
pub(super) use row::{Chunk, Notes, is_sample, parse_chunk};
pub use write::write_libsvm;

/// What Windows editors put at the start of a UTF-8 file.
const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];

/// Parses a whole LIBSVM text into sparse features and targets, with the index of its first column.
pub(super) fn parse<T: Element>(
    text: &[u8],
    base: IndexBase,
    columns: Columns,
    meter: &Meter<'_>,
) -> Result<(Dataset<T>, u8), Fault> {
    let chunks = scan::parse_chunks(text, body(text), meter, row::parse_chunk::<T>)?;
    assemble::assemble(chunks, text.len(), base, columns, meter)
}

/// Where the samples of a text stand.
pub(super) fn body(text: &[u8]) -> Range<usize> {
    match text.starts_with(BYTE_ORDER_MARK) {
        true => BYTE_ORDER_MARK.len()..text.len(),
        false => 0..text.len(),
    }
}
