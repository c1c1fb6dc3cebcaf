//! Lines of numbers into rows.

use super::super::cursor::Cursor;
use super::super::error::Fault;
use super::super::scan::{Parsed, lines};
use super::dialect::{Dialect, is_skipped};
use super::field;
use crate::matrix::Element;

/// The samples of some whole lines.
pub(in super::super) struct Chunk<T> {
    pub(in super::super) rows: usize,
    /// Row after row.
    pub(super) features: Vec<T>,
    pub(super) targets: Vec<T>,
}

impl<T: Send> Parsed for Chunk<T> {
    fn bytes(&self) -> u64 {
        ((self.features.capacity() + self.targets.capacity()) * size_of::<T>()) as u64
    }
}

/// Parses whole lines that start `start` bytes into the text.
pub(in super::super) fn parse_chunk<T: Element>(
    bytes: &[u8],
    start: usize,
    dialect: &Dialect,
) -> Result<Chunk<T>, Fault> {
    let mut chunk = Chunk {
        rows: 0,
        features: Vec::new(),
        targets: Vec::new(),
    };
    for (offset, line) in lines(bytes).filter(|(_, line)| !is_skipped(line)) {
        chunk
            .parse_line(line, dialect)
            .map_err(|fault| fault.shifted(start + offset))?;
    }
    Ok(chunk)
}

impl<T: Element> Chunk<T> {
    /// Leaves out the first `rows` samples, or all where there are fewer; how many it left out.
    pub(in super::super) fn skip(&mut self, rows: usize) -> usize {
        let rows = rows.min(self.rows);
        let each = |all: usize| all / self.rows.max(1) * rows;
        let (features, targets) = (each(self.features.len()), each(self.targets.len()));
        self.features.drain(..features);
        self.targets.drain(..targets);
        self.rows -= rows;
        rows
    }

    fn parse_line(&mut self, line: &[u8], dialect: &Dialect) -> Result<(), Fault> {
        let mut cursor = Cursor::new(line);
        for column in 0..dialect.fields {
            let value = field::number(&mut cursor, dialect.delimiter)?;
            if dialect.target == Some(column) {
                self.targets.push(value);
            } else {
                self.features.push(value);
            }
            field::end(&mut cursor, dialect.delimiter, column + 1, dialect.fields)?;
        }
        self.rows += 1;
        Ok(())
    }
}
