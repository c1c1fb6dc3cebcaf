//! How a file is written: its delimiter, whether it has a header, and which column is which.

use super::super::cursor::Cursor;
use super::super::error::Fault;
use super::super::options::{CsvOptions, Header, Target};
use super::super::scan::{is_blank, lines};
use super::field;
use crate::matrix::Element;

/// Delimiters that are recognised; of equally frequent ones the first.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// The names of columns that an error lists at most.
const NAMES: usize = 10;

/// What the first line says about the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::io) struct Dialect {
    pub(super) delimiter: u8,
    /// Fields of every line.
    pub(super) fields: usize,
    /// The field that is the target, from 0.
    pub(super) target: Option<usize>,
    /// Where the first line of numbers may start, in bytes.
    pub(in crate::io) body_at: usize,
}

impl Dialect {
    /// From the first line of `text[start..]` that is neither blank nor a comment.
    pub(super) fn detect<T: Element>(
        text: &[u8],
        start: usize,
        options: &CsvOptions,
        target: Option<&Target>,
    ) -> Result<Dialect, Fault> {
        let (offset, line) = lines(&text[start..])
            .find(|(_, line)| !is_skipped(line))
            .ok_or_else(|| Fault::at(text.len(), "at least one line of numbers"))?;
        let line_at = start + offset;
        let delimiter = options.delimiter.unwrap_or_else(|| delimiter_of(line));
        let names = names(line, delimiter).map_err(|fault| fault.shifted(line_at))?;
        let has_header = match options.header {
            Header::Present => true,
            Header::Absent => false,
            Header::Auto => names.iter().any(|name| is_name::<T>(name)),
        };
        let known = if has_header { &names[..] } else { &[] };
        let target = target
            .map(|target| resolve(target, known, names.len()))
            .transpose()
            .map_err(|expected| Fault::at(line_at, expected))?;
        if names.len() == usize::from(target.is_some()) {
            return Err(Fault::at(line_at, "at least one column of features"));
        }
        Ok(Dialect {
            delimiter,
            fields: names.len(),
            target,
            body_at: if has_header {
                text.len().min(line_at + line.len() + 1)
            } else {
                line_at
            },
        })
    }

    /// Columns of the features.
    pub(super) fn features(&self) -> usize {
        self.fields - usize::from(self.target.is_some())
    }
}

/// Whether a line holds nothing: blanks only, or a comment.
pub(in crate::io) fn is_skipped(line: &[u8]) -> bool {
    // A tab may be a delimiter, but a line of nothing but tabs has no numbers either.
    matches!(
        line.iter().find(|&&byte| !is_blank(byte)),
        None | Some(b'#')
    )
}

/// The delimiter that occurs most outside quotes; a comma where there is none.
pub(in crate::io) fn delimiter_of(line: &[u8]) -> u8 {
    let mut counts = [0_usize; DELIMITERS.len()];
    let mut in_quotes = false;
    for &byte in line {
        in_quotes ^= byte == b'"';
        let delimiter = DELIMITERS.iter().position(|&delimiter| delimiter == byte);
        if let Some(i) = delimiter.filter(|_| !in_quotes) {
            counts[i] += 1;
        }
    }
    let best = (0..DELIMITERS.len()).rev().max_by_key(|&i| counts[i]);
    DELIMITERS[best.unwrap_or(0)]
}

/// The fields of the first line, as text.
pub(in crate::io) fn names(line: &[u8], delimiter: u8) -> Result<Vec<Vec<u8>>, Fault> {
    let mut cursor = Cursor::new(line);
    let mut names = Vec::new();
    loop {
        names.push(field::text(&mut cursor, delimiter)?.into_owned());
        if !field::next(&mut cursor, delimiter)? {
            return Ok(names);
        }
    }
}

/// Whether a field of the first line makes it a header: text that is no number at all.
fn is_name<T: Element>(field: &[u8]) -> bool {
    let field = field.trim_ascii();
    !field.is_empty() && T::parse_decimal(field).is_none_or(|(_, length)| length < field.len())
}

/// The column of the target among `fields`, of which the header, if any, has the names `names`; or what
/// would have been right.
pub(in crate::io) fn resolve(
    target: &Target,
    names: &[Vec<u8>],
    fields: usize,
) -> Result<usize, String> {
    let name = target.name();
    if let Some(column) = names.iter().position(|found| found == name.as_bytes()) {
        return Ok(column);
    }
    let number = name.parse::<i64>().ok().and_then(|number| {
        let from_left = usize::try_from(number).ok().and_then(|n| n.checked_sub(1));
        let from_right = || fields.checked_sub(usize::try_from(number.checked_neg()?).ok()?);
        let column = if number < 0 { from_right() } else { from_left };
        column.filter(|&column| column < fields)
    });
    number.ok_or_else(|| {
        let columns = if names.is_empty() {
            format!("a number from 1 to {fields}, as there is no header")
        } else {
            listed(names)
        };
        format!("a target column called `{name}` (the columns are {columns})")
    })
}

/// The first names, for an error.
pub(in crate::io) fn listed(names: &[Vec<u8>]) -> String {
    let mut list: Vec<String> = names
        .iter()
        .take(NAMES)
        .map(|name| {
            let short = &name[..name.len().min(40)];
            format!("`{}`", short.escape_ascii())
        })
        .collect();
    if names.len() > NAMES {
        list.push(format!("{} more", names.len() - NAMES));
    }
    list.join(", ")
}
