//! Entries as `row column value` lines.

use super::super::cursor::Cursor;
use super::super::error::Fault;
use super::super::scan::{self, Meter, Parsed, is_blank, lines};
use super::header::{Field, Header, Symmetry};
use crate::matrix::Element;

/// The entries of some whole lines, indices from 0.
pub(super) struct Chunk<T> {
    pub(super) rows: Vec<u32>,
    pub(super) cols: Vec<u32>,
    pub(super) values: Vec<T>,
    /// Where the lines start in the text.
    start: usize,
}

impl<T: Element> Parsed for Chunk<T> {
    fn bytes(&self) -> u64 {
        let indices = 4 * (self.rows.capacity() + self.cols.capacity());
        (indices + self.values.capacity() * size_of::<T>()) as u64
    }
}

/// Parses all entries and checks that there are as many as the header promises.
pub(super) fn parse<T: Element>(
    text: &[u8],
    header: &Header,
    promised: u64,
    meter: &Meter<'_>,
) -> Result<Vec<Chunk<T>>, Fault> {
    let body = header.body_at..text.len();
    let chunks = scan::parse_chunks(text, body, meter, |bytes, start| {
        parse_chunk(bytes, start, header)
    })?;
    check_count(text, &chunks, promised)?;
    Ok(chunks)
}

fn parse_chunk<T: Element>(bytes: &[u8], start: usize, header: &Header) -> Result<Chunk<T>, Fault> {
    let mut chunk = Chunk {
        rows: Vec::new(),
        cols: Vec::new(),
        values: Vec::new(),
        start,
    };
    for (offset, line) in lines(bytes) {
        let entry = parse_entry(line, header).map_err(|fault| fault.shifted(start + offset))?;
        if let Some((row, col, value)) = entry {
            chunk.rows.push(row);
            chunk.cols.push(col);
            chunk.values.push(value);
        }
    }
    Ok(chunk)
}

/// The entry of one line; `None` for a blank line.
#[inline]
fn parse_entry<T: Element>(line: &[u8], header: &Header) -> Result<Option<(u32, u32, T)>, Fault> {
    let mut cursor = Cursor::new(line);
    if cursor.next_word().is_none() {
        return Ok(None);
    }
    let row = index(&mut cursor, header.rows, "row")?;
    cursor.next_word();
    let col_at = cursor.at();
    let col = index(&mut cursor, header.cols, "column")?;
    match header.symmetry {
        Symmetry::Symmetric if col > row => {
            return Err(Fault::at(col_at, "an entry on or below the diagonal"));
        }
        Symmetry::SkewSymmetric if col >= row => {
            return Err(Fault::at(col_at, "an entry below the diagonal"));
        }
        _ => {}
    }
    let value = value(&mut cursor, header.field)?;
    match cursor.next_word() {
        None => Ok(Some((row, col, value))),
        Some(_) => Err(Fault::at(
            cursor.at(),
            "the end of the line after the entry",
        )),
    }
}

/// Takes an index from 1 to `count` and returns it from 0.
#[inline]
fn index(cursor: &mut Cursor<'_>, count: usize, what: &str) -> Result<u32, Fault> {
    let start = cursor.at();
    let index = cursor.unsigned(count as u64);
    match (index, cursor.peek()) {
        (Some(Ok(index @ 1..)), None) => Ok(index as u32 - 1),
        (Some(Ok(index @ 1..)), Some(byte)) if is_blank(byte) => Ok(index as u32 - 1),
        _ => Err(Fault::at(
            start,
            format!("a {what} index from 1 to {count}"),
        )),
    }
}

/// Takes the value that `field` asks for: 1 for a pattern.
#[inline]
pub(super) fn value<T: Element>(cursor: &mut Cursor<'_>, field: Field) -> Result<T, Fault> {
    if field == Field::Pattern {
        return Ok(T::one());
    }
    cursor.next_word();
    let start = cursor.at();
    let value: T = cursor.finite("a number")?;
    if cursor.peek().is_some_and(|byte| !is_blank(byte)) {
        return Err(Fault::at(start, "a number"));
    }
    if field == Field::Integer && value.to_f64().fract() != 0.0 {
        return Err(Fault::at(
            start,
            "a whole number (the header says `integer`)",
        ));
    }
    Ok(value)
}

fn check_count<T>(text: &[u8], chunks: &[Chunk<T>], promised: u64) -> Result<(), Fault> {
    let mut found = 0;
    for chunk in chunks {
        let of_chunk = chunk.rows.len() as u64;
        if found + of_chunk > promised {
            let extra_at = entry_start(&text[chunk.start..], promised - found);
            let expected = format!("the end of the file after the {promised} entries promised");
            return Err(Fault::at(chunk.start + extra_at, expected));
        }
        found += of_chunk;
    }
    if found < promised {
        let expected = format!("{promised} entries as the header promises (there are {found})");
        return Err(Fault::at(text.len(), expected));
    }
    Ok(())
}

/// Where entry `number` of `text` starts, counted from 0.
fn entry_start(text: &[u8], number: u64) -> usize {
    lines(text)
        .filter(|(_, line)| Cursor::new(line).next_word().is_some())
        .nth(number as usize)
        .map_or(text.len(), |(offset, _)| offset)
}
