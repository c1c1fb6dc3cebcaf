//! A text that is parsed twice, part by part: to find out how large it is, and to put every part where it belongs. Neither
//! keeps more than the threads have at hand.

use std::ops::Range;

use super::super::error::Fault;
use super::super::options::{Columns, IndexBase};
use super::super::scan::{self, Meter, Parsed};
use super::assemble::{Shape, has_targets, shape};
use super::row::{self, Notes};
use crate::matrix::{Element, RowBlock};
use crate::parallel;

/// A text that has been parsed once.
pub(in super::super) struct Parts {
    parts: Vec<Part>,
    first: u32,
    pub(in super::super) rows: usize,
    pub(in super::super) cols: usize,
    pub(in super::super) nnz: usize,
    pub(in super::super) has_targets: bool,
}

/// Some whole lines.
struct Part {
    text: Range<usize>,
    rows: usize,
    entries: usize,
    labels: usize,
    notes: Notes,
}

/// Samples with what stands before them.
pub(in super::super) struct Placed<T> {
    pub(in super::super) rows_before: usize,
    pub(in super::super) entries_before: usize,
    pub(in super::super) block: RowBlock<T>,
    pub(in super::super) targets: Vec<T>,
}

impl Parsed for Part {
    fn bytes(&self) -> u64 {
        size_of::<Part>() as u64
    }
}

impl Parts {
    /// Parses `text`, and keeps no more than its measures.
    pub(in super::super) fn of<T: Element>(
        text: &[u8],
        base: IndexBase,
        columns: Columns,
        meter: &Meter<'_>,
    ) -> Result<Parts, Fault> {
        let measure = |bytes: &[u8], start: usize| {
            let chunk = row::parse_chunk::<T>(bytes, start)?;
            Ok(Part {
                text: start..start + bytes.len(),
                rows: chunk.block.row_ends.len(),
                entries: chunk.block.indices.len(),
                labels: chunk.targets.len(),
                notes: chunk.notes,
            })
        };
        let parts = scan::parse_chunks(text, super::body(text), meter, measure)?;
        let sum = |of: fn(&Part) -> usize| parts.iter().map(of).sum::<usize>();
        let (rows, nnz) = (sum(|part| part.rows), sum(|part| part.entries));
        let notes: Vec<Notes> = parts.iter().map(|part| part.notes).collect();
        let Shape { first, cols } = shape(&notes, (rows, text.len()), base, columns)?;
        meter.check_columns(cols)?;
        let has_targets = has_targets(&notes, sum(|part| part.labels))?;
        Ok(Parts {
            parts,
            first,
            rows,
            cols,
            nnz,
            has_targets,
        })
    }

    /// Parses `text` again, and has `place` put away each of its parts; the first error of a part is what comes back.
    pub(in super::super) fn each<T: Element, E: From<Fault> + Send>(
        &self,
        text: &[u8],
        place: impl Fn(Placed<T>) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        let (mut rows, mut entries) = (0, 0);
        let before = |part: &Part| {
            let before = (rows, entries);
            rows += part.rows;
            entries += part.entries;
            before
        };
        let befores: Vec<(usize, usize)> = self.parts.iter().map(before).collect();
        let one = |number: usize| -> Result<(), E> {
            let (part, (rows_before, entries_before)) = (&self.parts[number], befores[number]);
            let mut chunk = row::parse_chunk::<T>(&text[part.text.clone()], part.text.start)?;
            let found = (chunk.block.row_ends.len(), chunk.block.indices.len());
            if found != (part.rows, part.entries) {
                let expected = format!("{} samples with {} entries", part.rows, part.entries);
                return Err(Fault::at(part.text.start, expected).into());
            }
            place(Placed {
                rows_before,
                entries_before,
                targets: std::mem::take(&mut chunk.targets),
                block: chunk.into_block(self.first),
            })
        };
        let done = parallel::map(self.parts.len(), one);
        done.into_iter().collect()
    }
}
