//! One line of LIBSVM text into one sample.

use super::super::cursor::Cursor;
use super::super::error::Fault;
use super::super::scan::{Parsed, is_blank, lines};
use crate::matrix::{Element, RowBlock};

/// The largest index as written: one more column must still be a 32-bit number.
const MAX_INDEX: u64 = u32::MAX as u64 - 1;

const LABEL: &str = "a label (a number) at the start of the sample";
const SEVERAL_LABELS: &str = "one label (samples with several labels are not supported)";
pub(super) const NO_LABEL: &str =
    "a label before the first index:value pair, as other samples have one";
const INDEX: &str = "a feature index (a whole number, 0 or more)";
const LARGE_INDEX: &str = "a feature index of at most 4294967294";
const COLON: &str = "a colon and a value after the feature index";
const VALUE: &str = "a number after the colon";
const QUERY: &str = "a whole number after `qid:`";

/// The samples of some whole lines, with indices as written.
pub(in super::super) struct Chunk<T> {
    pub(super) block: RowBlock<T>,
    pub(in super::super) targets: Vec<T>,
    pub(in super::super) notes: Notes,
    scratch: Vec<(u32, T)>,
}

/// What some samples say about a whole text. Places are bytes from its start.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct Notes {
    /// Where the first sample without a label stands.
    pub(in super::super) unlabelled_at: Option<usize>,
    /// Where the first index 0 stands.
    pub(in super::super) zero_at: Option<usize>,
    /// The largest index, and where it stands first.
    pub(in super::super) largest: Option<(u32, usize)>,
}

impl Notes {
    /// What samples and those that stand after them say.
    pub(in super::super) fn and(self, later: Notes) -> Notes {
        // The first of equals, so that the place does not depend on how the text was cut.
        let largest = match (self.largest, later.largest) {
            (Some(a), Some(b)) if b.0 > a.0 => Some(b),
            (a, b) => a.or(b),
        };
        Notes {
            unlabelled_at: self.unlabelled_at.or(later.unlabelled_at),
            zero_at: self.zero_at.or(later.zero_at),
            largest,
        }
    }
}

impl<T: Element> Parsed for Chunk<T> {
    fn bytes(&self) -> u64 {
        let block = &self.block;
        let per_row = block.row_ends.capacity() * 8 + self.targets.capacity() * size_of::<T>();
        let per_entry = block.indices.capacity() * 4 + block.values.capacity() * size_of::<T>();
        (per_row + per_entry) as u64
    }
}

/// Parses whole lines that start `start` bytes into the text.
pub(in super::super) fn parse_chunk<T: Element>(
    bytes: &[u8],
    start: usize,
) -> Result<Chunk<T>, Fault> {
    let mut chunk = Chunk {
        block: RowBlock::default(),
        targets: Vec::new(),
        notes: Notes::default(),
        scratch: Vec::new(),
    };
    for (offset, line) in lines(bytes) {
        let line_start = start + offset;
        chunk
            .parse_line(line, line_start)
            .map_err(|fault| fault.shifted(line_start))?;
    }
    chunk.scratch = Vec::new();
    Ok(chunk)
}

/// Whether a line holds a sample.
pub(in super::super) fn is_sample(line: &[u8]) -> bool {
    !matches!(Cursor::new(line).next_word(), None | Some(b'#'))
}

impl<T: Element> Chunk<T> {
    /// Leaves out the first `rows` samples, or all where there are fewer; how many it left out.
    pub(in super::super) fn skip(&mut self, rows: usize) -> usize {
        let block = &mut self.block;
        let rows = rows.min(block.row_ends.len());
        if rows == 0 {
            return 0;
        }
        let entries = block.row_ends[rows - 1];
        block.row_ends.drain(..rows);
        block.row_ends.iter_mut().for_each(|end| *end -= entries);
        block.indices.drain(..entries as usize);
        block.values.drain(..entries as usize);
        self.targets.drain(..rows.min(self.targets.len()));
        rows
    }

    /// Samples.
    pub(in super::super) fn rows(&self) -> usize {
        self.block.row_ends.len()
    }

    /// Adds the sample of one line, if it has one.
    fn parse_line(&mut self, line: &[u8], line_start: usize) -> Result<(), Fault> {
        let mut cursor = Cursor::new(line);
        if !is_sample(line) {
            return Ok(());
        }
        cursor.next_word();
        let label_at = cursor.at();
        match label(&mut cursor)? {
            Some(label) => self.targets.push(label),
            None => {
                cursor = Cursor::new(line);
                self.notes
                    .unlabelled_at
                    .get_or_insert(line_start + label_at);
            }
        }
        let first = self.block.indices.len();
        let mut sorted = true;
        loop {
            match cursor.next_word() {
                None | Some(b'#') => break,
                Some(b'q') => query(&mut cursor)?,
                Some(_) => {
                    let at = cursor.at();
                    let index = index(&mut cursor)?;
                    let value = value(&mut cursor)?;
                    sorted &= self.block.indices.len() == first
                        || self.block.indices.last() < Some(&index);
                    self.note(index, line_start + at);
                    self.block.indices.push(index);
                    self.block.values.push(value);
                }
            }
        }
        if !sorted {
            self.sort_row(first, line)?;
        }
        self.block.row_ends.push(self.block.indices.len() as u64);
        Ok(())
    }

    /// The rows with indices from 0, in a file whose first index is `first`.
    pub(super) fn into_block(mut self, first: u32) -> RowBlock<T> {
        for index in &mut self.block.indices {
            *index -= first;
        }
        self.block
    }

    #[inline]
    fn note(&mut self, index: u32, at: usize) {
        let notes = &mut self.notes;
        if notes.largest.is_none_or(|(largest, _)| index > largest) {
            notes.largest = Some((index, at));
        }
        if index == 0 && notes.zero_at.is_none() {
            notes.zero_at = Some(at);
        }
    }

    /// Sorts the entries of the last row, and refuses an index that occurs twice.
    fn sort_row(&mut self, first: usize, line: &[u8]) -> Result<(), Fault> {
        let (indices, values) = (
            &mut self.block.indices[first..],
            &mut self.block.values[first..],
        );
        self.scratch.clear();
        self.scratch
            .extend(indices.iter().copied().zip(values.iter().copied()));
        self.scratch.sort_unstable_by_key(|&(index, _)| index);
        if let Some(pair) = self.scratch.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(second_place(line, pair[0].0));
        }
        for (i, &(index, value)) in self.scratch.iter().enumerate() {
            (indices[i], values[i]) = (index, value);
        }
        Ok(())
    }
}

/// The fault of `index` standing twice in `line`, which has been parsed before.
fn second_place(line: &[u8], index: u32) -> Fault {
    let mut cursor = Cursor::new(line);
    let (mut at, mut seen) = (0, 0);
    while seen < 2 && cursor.next_word().is_some() {
        at = cursor.at();
        let number = cursor.unsigned(MAX_INDEX);
        let is_pair = cursor.peek() == Some(b':');
        seen += u32::from(is_pair && matches!(number, Some(Ok(n)) if n == u64::from(index)));
        cursor.word();
    }
    Fault::at(at, "each feature index at most once in a sample")
}

/// The label; `None` where an index:value pair stands in its place.
fn label<T: Element>(cursor: &mut Cursor<'_>) -> Result<Option<T>, Fault> {
    let start = cursor.at();
    let label = cursor.finite(LABEL)?;
    match cursor.peek() {
        Some(b',') => Err(Fault::at(start, SEVERAL_LABELS)),
        Some(b':') => Ok(None),
        byte if ends_word(byte) => Ok(Some(label)),
        _ => Err(Fault::at(start, LABEL)),
    }
}

#[inline]
fn index(cursor: &mut Cursor<'_>) -> Result<u32, Fault> {
    let start = cursor.at();
    let index = match cursor.unsigned(MAX_INDEX) {
        None => return Err(Fault::at(start, INDEX)),
        Some(Err(_)) => return Err(Fault::at(start, LARGE_INDEX)),
        Some(Ok(index)) => index as u32,
    };
    match cursor.peek() {
        Some(b':') => Ok(index),
        byte if ends_word(byte) => Err(Fault::at(cursor.at(), COLON)),
        _ => Err(Fault::at(start, INDEX)),
    }
}

#[inline]
fn value<T: Element>(cursor: &mut Cursor<'_>) -> Result<T, Fault> {
    cursor.take(b':');
    let start = cursor.at();
    let value = cursor.finite(VALUE)?;
    if ends_word(cursor.peek()) {
        Ok(value)
    } else {
        Err(Fault::at(start, VALUE))
    }
}

/// Skips `qid:n`, which ranking tools use to group samples.
fn query(cursor: &mut Cursor<'_>) -> Result<(), Fault> {
    let start = cursor.at();
    if !cursor.rest().starts_with(b"qid:") {
        return Err(Fault::at(start, INDEX));
    }
    cursor.advance(b"qid:".len());
    match cursor.unsigned(u64::MAX) {
        Some(Ok(_)) if ends_word(cursor.peek()) => Ok(()),
        _ => Err(Fault::at(start, QUERY)),
    }
}

/// Whether a word may end before `byte`: a blank, a comment, or the end of the line.
#[inline]
fn ends_word(byte: Option<u8>) -> bool {
    byte.is_none_or(|byte| is_blank(byte) || byte == b'#')
}
