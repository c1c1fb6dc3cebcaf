//! The first line of a table: its delimiter and its names.

use super::super::csv::dialect::{delimiter_of, is_skipped, names, resolve};
use super::super::csv::{BYTE_ORDER_MARK, field};
use super::super::cursor::Cursor;
use super::super::error::Fault;
use super::super::options::{CsvOptions, Header, Target};
use super::super::scan::lines;
use super::TableProblem;
use super::cells::{is_missing, number};

/// What the first line says about the others.
#[derive(Debug, Clone)]
pub(super) struct Head {
    pub(super) delimiter: u8,
    /// Names of the fields, if there is a header.
    pub(super) names: Option<Vec<String>>,
    pub(super) fields: usize,
    /// Where the first line stands.
    pub(super) line_at: usize,
    /// Where the samples start.
    pub(super) body_at: usize,
}

impl Head {
    /// From the first line of `text` that is neither blank nor a comment.
    pub(super) fn detect(text: &[u8], options: &CsvOptions) -> Result<Head, Fault> {
        let start = if text.starts_with(BYTE_ORDER_MARK) {
            BYTE_ORDER_MARK.len()
        } else {
            0
        };
        let mut kept = lines(&text[start..]).filter(|(_, line)| !is_skipped(line));
        let (offset, line) = kept
            .next()
            .ok_or_else(|| Fault::at(text.len(), "at least one line of values"))?;
        let line_at = start + offset;
        let delimiter = options.delimiter.unwrap_or_else(|| delimiter_of(line));
        let first = names(line, delimiter).map_err(|fault| fault.shifted(line_at))?;
        let second = kept
            .next()
            .and_then(|(_, line)| names(line, delimiter).ok());
        let has_header = match options.header {
            Header::Present => true,
            Header::Absent => false,
            Header::Auto => is_header(&first, second.as_deref()),
        };
        let fields = first.len();
        let names = has_header.then(|| strings(first, line_at)).transpose()?;
        let body_at = if has_header {
            text.len().min(line_at + line.len() + 1)
        } else {
            line_at
        };
        Ok(Head {
            delimiter,
            names,
            fields,
            line_at,
            body_at,
        })
    }

    /// What a field is called in messages.
    pub(super) fn label(&self, field: usize) -> String {
        match &self.names {
            Some(names) => names[field].clone(),
            None => (field + 1).to_string(),
        }
    }

    /// The field that a name or number means.
    pub(super) fn field(&self, wanted: &str) -> Result<usize, Fault> {
        let known: Vec<Vec<u8>> = self
            .names
            .iter()
            .flatten()
            .map(|name| name.clone().into_bytes())
            .collect();
        resolve(&Target::new(wanted), &known, self.fields).map_err(|_| {
            let found = match &self.names {
                Some(names) => super::problem::listed(names),
                None => format!("{} columns without names", self.fields),
            };
            let wanted = wanted.to_owned();
            self.problem(TableProblem::NoSuchColumn { wanted, found })
        })
    }

    /// A fault of the first line.
    pub(super) fn problem(&self, problem: TableProblem) -> Fault {
        Fault::of_table(self.line_at, problem)
    }

    /// Hands the fields of a line to `visit`, with their numbers and where they start; there must be as many as in the
    /// first line.
    pub(super) fn each_field(
        &self,
        line: &[u8],
        mut visit: impl FnMut(usize, usize, &[u8]) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut cursor = Cursor::new(line);
        for at in 0..self.fields {
            let start = cursor.at();
            let text = field::text(&mut cursor, self.delimiter)?;
            visit(at, start, text.trim_ascii())?;
            field::end(&mut cursor, self.delimiter, at + 1, self.fields)?;
        }
        Ok(())
    }
}

/// Whether the first line names the columns: some field of it is text where the second line has a number, or all are text.
fn is_header(first: &[Vec<u8>], second: Option<&[Vec<u8>]>) -> bool {
    let is_text = |field: &[u8]| {
        let field = field.trim_ascii();
        !is_missing(field) && number(field).is_none()
    };
    let is_number = |field: &[u8]| number(field.trim_ascii()).is_some();
    if first.iter().all(|field| is_text(field)) {
        return true;
    }
    let below = second.unwrap_or(&[]);
    first
        .iter()
        .zip(below)
        .any(|(name, value)| is_text(name) && is_number(value))
}

/// What a column is called of which the header has no name, such as the row numbers that pandas writes.
pub(super) fn nameless(field: usize) -> String {
    format!("column {}", field + 1)
}

fn strings(names: Vec<Vec<u8>>, line_at: usize) -> Result<Vec<String>, Fault> {
    let names: Result<Vec<String>, _> = names.into_iter().map(String::from_utf8).collect();
    let names = names.map_err(|_| Fault::at(line_at, "names of columns in UTF-8"))?;
    let mut seen = std::collections::HashSet::new();
    let names: Vec<String> = names
        .into_iter()
        .enumerate()
        .map(|(field, name)| match name.is_empty() {
            true => nameless(field),
            false => name,
        })
        .collect();
    let twice = names.iter().find(|name| !seen.insert(name.as_str()));
    match twice.cloned() {
        Some(name) => Err(Fault::of_table(line_at, TableProblem::TwiceNamed { name })),
        None => Ok(names),
    }
}
