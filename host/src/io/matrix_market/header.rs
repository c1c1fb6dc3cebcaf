//! The banner, the comments and the line of sizes.

use super::super::cursor::Cursor;
use super::super::error::Fault;
use super::super::scan::lines;
use super::BANNER;

/// Rows that any file may promise, however short it is.
const FREE_ROWS: u64 = 1 << 24;
/// Rows that each byte of the file may promise beyond that: empty rows cost the file nothing, but
/// a row offset each in memory.
const ROWS_PER_BYTE: u64 = 64;

/// How entries are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// `row column value` for this many entries.
    Coordinate { entries: u64 },
    /// All values, column by column.
    Array,
}

/// What a value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Real,
    Integer,
    Pattern,
}

/// Which entries stand for others too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Symmetry {
    General,
    Symmetric,
    SkewSymmetric,
}

/// What a file says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) layout: Layout,
    pub(super) field: Field,
    pub(super) symmetry: Symmetry,
    pub(super) rows: usize,
    pub(super) cols: usize,
    /// Where the line of sizes starts, in bytes.
    pub(super) sizes_at: usize,
    /// Where the entries start, in bytes.
    pub(super) body_at: usize,
}

/// Reads everything before the entries.
pub(super) fn parse(text: &[u8]) -> Result<Header, Fault> {
    let mut lines = lines(text);
    let (_, banner) = lines
        .next()
        .ok_or_else(|| Fault::at(0, "a line that starts with `%%MatrixMarket`"))?;
    let (is_array, field, symmetry) = parse_banner(banner)?;
    let is_comment = |line: &[u8]| matches!(Cursor::new(line).next_word(), None | Some(b'%'));
    let (sizes_at, sizes) = lines.find(|(_, line)| !is_comment(line)).ok_or_else(|| {
        let sizes = if is_array {
            "rows, columns"
        } else {
            "rows, columns, entries"
        };
        Fault::at(text.len(), format!("a line of sizes ({sizes})"))
    })?;
    let body_at = text.len().min(sizes_at + sizes.len() + 1);
    let mut header = Header {
        layout: Layout::Array,
        field,
        symmetry,
        rows: 0,
        cols: 0,
        sizes_at,
        body_at,
    };
    header
        .parse_sizes(sizes, is_array)
        .map_err(|fault| fault.shifted(sizes_at))?;
    header.check(text.len())?;
    Ok(header)
}

fn parse_banner(line: &[u8]) -> Result<(bool, Field, Symmetry), Fault> {
    let mut cursor = Cursor::new(line);
    choose(&mut cursor, &[(BANNER, ())], "`%%MatrixMarket`")?;
    choose(&mut cursor, &[(b"matrix", ())], "the object `matrix`")?;
    let layouts: [(&[u8], _); 2] = [(b"coordinate", false), (b"array", true)];
    let is_array = choose(&mut cursor, &layouts, "the layout `coordinate` or `array`")?;
    let fields: [(&[u8], _); 4] = [
        (b"real", Field::Real),
        (b"double", Field::Real),
        (b"integer", Field::Integer),
        (b"pattern", Field::Pattern),
    ];
    let field_at = cursor.at();
    let expected = "the field `real`, `integer` or `pattern` (complex matrices are not supported)";
    let field = choose(&mut cursor, &fields, expected)?;
    let symmetries: [(&[u8], _); 3] = [
        (b"general", Symmetry::General),
        (b"symmetric", Symmetry::Symmetric),
        (b"skew-symmetric", Symmetry::SkewSymmetric),
    ];
    let symmetry_at = cursor.at();
    let expected = "the symmetry `general`, `symmetric` or `skew-symmetric`";
    let symmetry = choose(&mut cursor, &symmetries, expected)?;
    if is_array && field == Field::Pattern {
        return Err(Fault::at(
            field_at + 1,
            "a field other than `pattern` for an array",
        ));
    }
    if field == Field::Pattern && symmetry == Symmetry::SkewSymmetric {
        return Err(Fault::at(
            symmetry_at + 1,
            "the symmetry `general` or `symmetric` for a pattern",
        ));
    }
    Ok((is_array, field, symmetry))
}

/// Takes a word that is one of `choices`, upper or lower case.
fn choose<V: Copy>(
    cursor: &mut Cursor<'_>,
    choices: &[(&[u8], V)],
    expected: &'static str,
) -> Result<V, Fault> {
    cursor.next_word();
    let start = cursor.at();
    let word = cursor.word();
    choices
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(word))
        .map(|&(_, value)| value)
        .ok_or_else(|| Fault::at(start, expected))
}

impl Header {
    fn parse_sizes(&mut self, line: &[u8], is_array: bool) -> Result<(), Fault> {
        let mut cursor = Cursor::new(line);
        let most = u64::from(u32::MAX);
        self.rows = size(&mut cursor, most, "a number of rows (at most 4294967295)")? as usize;
        self.cols = size(
            &mut cursor,
            most,
            "a number of columns (at most 4294967295)",
        )? as usize;
        if !is_array {
            let entries = size(&mut cursor, u64::MAX - 1, "a number of entries")?;
            self.layout = Layout::Coordinate { entries };
        }
        match cursor.next_word() {
            None => Ok(()),
            Some(_) => Err(Fault::at(cursor.at(), "the end of the line of sizes")),
        }
    }

    /// Checks what the sizes mean together, for a file of `length` bytes.
    fn check(&self, length: usize) -> Result<(), Fault> {
        let at = |expected: String| Err(Fault::at(self.sizes_at, expected));
        if self.rows == 0 || self.cols == 0 {
            return at("at least one row and one column".to_owned());
        }
        if self.symmetry != Symmetry::General && self.rows != self.cols {
            return at("as many rows as columns in a symmetric matrix".to_owned());
        }
        let most = FREE_ROWS + ROWS_PER_BYTE.saturating_mul(length as u64);
        if self.rows as u64 > most {
            return at(format!("at most {most} rows in a file of {length} bytes"));
        }
        Ok(())
    }
}

fn size(cursor: &mut Cursor<'_>, max: u64, expected: &'static str) -> Result<u64, Fault> {
    let next = cursor.next_word();
    let start = cursor.at();
    let fault = || Fault::at(start, expected);
    let number = next.and_then(|_| cursor.unsigned(max)).ok_or_else(fault)?;
    let number = number.map_err(|_| fault())?;
    match cursor.peek() {
        Some(byte) if !super::super::scan::is_blank(byte) => Err(fault()),
        _ => Ok(number),
    }
}
