//! What an npy header says of its array: a dictionary in Python's notation, with three known keys.
//!
//! Source: NumPy Enhancement Proposal 1, "A simple file format for NumPy arrays".

use std::fmt;

/// The dictionary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Description {
    /// The type of the elements.
    pub(super) descr: Descr,
    /// Whether columns come one after the other.
    pub(super) fortran: bool,
    pub(super) shape: Vec<usize>,
}

/// A type as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Descr {
    /// The name of one, such as `<f8`.
    Name(String),
    /// Fields with names and types of their own.
    Fields(String),
}

impl Descr {
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Descr::Name(name) => Some(name),
            Descr::Fields(_) => None,
        }
    }
}

impl fmt::Display for Descr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Descr::Name(text) => write!(f, "'{text}'"),
            Descr::Fields(text) => f.write_str(text),
        }
    }
}

impl Description {
    /// Reads the text of a header; what is wrong with it otherwise.
    pub(super) fn parse(text: &[u8]) -> Result<Self, &'static str> {
        let text = std::str::from_utf8(text).map_err(|_| "it is no text")?;
        let inside = text.trim().strip_prefix('{');
        let inside = inside.and_then(|text| text.strip_suffix('}'));
        let mut rest = inside.ok_or("it is no dictionary")?.trim();
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        while !rest.is_empty() {
            let (key, after) = value(rest, ':')?;
            let (value, after) = value(after, ',')?;
            match unquoted(key) {
                Some("descr") => descr = Some(descr_of(value)),
                Some("fortran_order") => fortran = Some(truth(value)?),
                Some("shape") => shape = Some(lengths(value)?),
                _ => return Err("it has a key that no array has"),
            }
            rest = after;
        }
        Ok(Description {
            descr: descr.ok_or("it has no descr")?,
            fortran: fortran.ok_or("it has no fortran_order")?,
            shape: shape.ok_or("it has no shape")?,
        })
    }
}

/// The text up to a separator that is in no quotes and no brackets, and what comes behind the separator.
fn value(text: &str, separator: char) -> Result<(&str, &str), &'static str> {
    let (mut quote, mut depth) = (None, 0_usize);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), '\\') => return Err("it has an escape in a text"),
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => {
                depth = depth.checked_sub(1).ok_or("a bracket closes nothing")?;
            }
            (None, _) if c == separator && depth == 0 => {
                return Ok((text[..at].trim(), text[at + 1..].trim_start()));
            }
            (None, _) => {}
        }
    }
    match (quote, depth, separator) {
        (None, 0, ',') => Ok((text.trim(), "")),
        _ => Err("it ends too early"),
    }
}

fn unquoted(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let inside = text[1..].strip_suffix(quote)?;
    (!inside.contains(quote)).then_some(inside)
}

fn descr_of(text: &str) -> Descr {
    match unquoted(text) {
        Some(name) => Descr::Name(name.to_owned()),
        None => Descr::Fields(text.to_owned()),
    }
}

fn truth(text: &str) -> Result<bool, &'static str> {
    match text {
        "True" => Ok(true),
        "False" => Ok(false),
        _ => Err("its fortran_order is neither True nor False"),
    }
}

/// A tuple of lengths; Python 2 wrote an L behind long ones.
fn lengths(text: &str) -> Result<Vec<usize>, &'static str> {
    let inside = text
        .strip_prefix('(')
        .and_then(|text| text.strip_suffix(')'));
    let inside = inside.ok_or("its shape is no tuple")?.trim();
    if inside.is_empty() {
        return Ok(Vec::new());
    }
    let is_tuple = inside.contains(',');
    let items = inside.strip_suffix(',').unwrap_or(inside).split(',');
    let length = |item: &str| {
        let digits = item.trim();
        let digits = digits.strip_suffix('L').unwrap_or(digits);
        let is_number = is_tuple && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse().ok().filter(|_| is_number)
    };
    let lengths: Option<Vec<usize>> = items.map(length).collect();
    lengths.ok_or("its shape is no tuple of lengths")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_numpy_are_read() {
        let parse = |text: &str| Description::parse(text.as_bytes()).expect(text);
        let plain = parse("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }   \n");
        assert_eq!(plain.descr.name(), Some("<f8"));
        assert_eq!((plain.fortran, &plain.shape[..]), (false, &[3, 4][..]));
        let other = parse("{\"shape\": (7L,), \"fortran_order\": True, \"descr\": \"|b1\"}");
        assert_eq!((other.fortran, &other.shape[..]), (true, &[7][..]));
        let fields =
            parse("{'descr': [('a,b', '<f4'), ('c', '<i4')], 'fortran_order': False, 'shape': ()}");
        assert_eq!(fields.descr.name(), None);
        assert_eq!(fields.descr.to_string(), "[('a,b', '<f4'), ('c', '<i4')]");
        assert!(fields.shape.is_empty());
    }

    #[test]
    fn damage_is_named() {
        for (text, expected) in [
            ("", "no dictionary"),
            ("{'descr': '<f8'", "no dictionary"),
            ("{'descr': '<f8'}", "no fortran_order"),
            (
                "{'descr': '<f8', 'fortran_order': 1, 'shape': (1,)}",
                "neither",
            ),
            (
                "{'descr': '<f8', 'fortran_order': True, 'shape': (1)}",
                "lengths",
            ),
            (
                "{'descr': '<f8', 'fortran_order': True, 'shape': [1]}",
                "no tuple",
            ),
            (
                "{'descr': '<f8', 'fortran_order': True, 'shape': (1,,2)}",
                "lengths",
            ),
            (
                "{'descr': '<f8', 'fortran_order': True, 'shape': (+1, 2)}",
                "lengths",
            ),
            ("{'descr': '<f8', 'more': 1}", "a key"),
            ("{'descr': '<f\\'8'}", "an escape"),
            ("{'descr': '<f8}", "too early"),
            ("{'descr': ((}", "too early"),
            ("{'descr': )}", "closes nothing"),
        ] {
            let found = Description::parse(text.as_bytes()).expect_err(text);
            assert!(found.contains(expected), "{text}: {found}");
        }
        assert!(Description::parse(b"\xff").is_err());
    }
}
