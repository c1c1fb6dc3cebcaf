//! One field of a line.

use std::borrow::Cow;

use super::super::cursor::Cursor;
use super::super::error::Fault;
use super::super::scan::is_blank;
use crate::matrix::Element;

const NUMBER: &str = "a number";
const QUOTE: &str = "a closing quote on the same line";
const DELIMITER: &str = "a delimiter or the end of the line after the field";

/// Moves past blanks, of which the delimiter is none.
fn skip_blanks(cursor: &mut Cursor<'_>, delimiter: u8) {
    while cursor
        .peek()
        .is_some_and(|byte| byte != delimiter && is_blank(byte))
    {
        cursor.advance(1);
    }
}

/// Takes the delimiter; `false` at the end of the line.
pub(in crate::io) fn next(cursor: &mut Cursor<'_>, delimiter: u8) -> Result<bool, Fault> {
    skip_blanks(cursor, delimiter);
    match cursor.peek() {
        None => Ok(false),
        Some(byte) if byte == delimiter => {
            cursor.advance(1);
            Ok(true)
        }
        Some(_) => Err(Fault::at(cursor.at(), DELIMITER)),
    }
}

/// Takes what follows field number `found` (from 1) of a line that has to have `wanted`.
pub(in crate::io) fn end(
    cursor: &mut Cursor<'_>,
    delimiter: u8,
    found: usize,
    wanted: usize,
) -> Result<(), Fault> {
    let more = next(cursor, delimiter)?;
    let expected = if more && found == wanted {
        format!("the end of the line after {wanted} fields, as in the first line")
    } else if !more && found < wanted {
        format!("{wanted} fields as in the first line (there are {found})")
    } else {
        return Ok(());
    };
    Err(Fault::at(cursor.at(), expected))
}

/// Takes a field that has to be a finite number.
pub(super) fn number<T: Element>(cursor: &mut Cursor<'_>, delimiter: u8) -> Result<T, Fault> {
    skip_blanks(cursor, delimiter);
    let start = cursor.at();
    let quoted = cursor.take(b'"');
    if quoted {
        skip_blanks(cursor, b'"');
    }
    let value = cursor.finite(NUMBER).map_err(|fault| match fault {
        Fault::Syntax { expected, .. } => Fault::at(start, expected),
        memory => memory,
    })?;
    if quoted {
        skip_blanks(cursor, b'"');
        if !cursor.take(b'"') {
            return Err(Fault::at(start, NUMBER));
        }
    }
    match cursor.peek() {
        Some(byte) if byte != delimiter && !is_blank(byte) => Err(Fault::at(start, NUMBER)),
        _ => Ok(value),
    }
}

/// Takes a field of any text, without its quotes and the blanks around it.
pub(in crate::io) fn text<'a>(
    cursor: &mut Cursor<'a>,
    delimiter: u8,
) -> Result<Cow<'a, [u8]>, Fault> {
    skip_blanks(cursor, delimiter);
    let start = cursor.at();
    if cursor.take(b'"') {
        return quoted(cursor, start);
    }
    let rest = cursor.rest();
    let end = memchr::memchr(delimiter, rest).unwrap_or(rest.len());
    cursor.advance(end);
    Ok(Cow::Borrowed(rest[..end].trim_ascii_end()))
}

/// The rest of a quoted field that starts at `start`; two quotes stand for one.
fn quoted<'a>(cursor: &mut Cursor<'a>, start: usize) -> Result<Cow<'a, [u8]>, Fault> {
    let mut text = Cow::Borrowed(&[][..]);
    loop {
        let rest = cursor.rest();
        let end = memchr::memchr(b'"', rest).ok_or_else(|| Fault::at(start, QUOTE))?;
        cursor.advance(end + 1);
        if text.is_empty() {
            text = Cow::Borrowed(&rest[..end]);
        } else {
            text.to_mut().extend_from_slice(&rest[..end]);
        }
        if !cursor.take(b'"') {
            return Ok(text);
        }
        text.to_mut().push(b'"');
    }
}
