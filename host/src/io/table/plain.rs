//! Tables of numbers alone, which have a reader of their own.

use super::super::csv::{self, Dialect};
use super::super::error::Fault;
use super::super::options::{CsvOptions, Format, Header, Target};
use super::super::scan::Meter;
use super::apply::of_numbers;
use super::head::{Head, nameless};
use super::{Missing, Table, TableOptions};
use crate::matrix::{ColumnKind, Element, Schema, TableColumn, TableEncoding};

/// A table that may have numbers alone, as their reader takes it.
pub(super) struct Plain {
    csv: CsvOptions,
    target: Option<Target>,
    schema: Schema,
}

impl Plain {
    /// `None` where the reader of numbers would not find the targets.
    pub(super) fn of(head: &Head, target: Option<usize>) -> Option<Plain> {
        let header = match head.body_at > head.line_at {
            true => Header::Present,
            false => Header::Absent,
        };
        let csv = CsvOptions {
            delimiter: Some(head.delimiter),
            header,
        };
        let named = target.map(|field| by_text(head, field));
        let features = (0..head.fields).filter(|field| target != Some(*field));
        let name = |field: usize| head.names.as_ref().map(|names| names[field].clone());
        let names = features.map(|field| (name(field), field as u32 + 1));
        Some(Plain {
            csv,
            target: match named {
                Some(named) => Some(named?),
                None => None,
            },
            schema: schema_of(head, target, plain(names)),
        })
    }

    /// The whole text, if it has nothing but numbers.
    pub(super) fn parse<T: Element>(self, text: &[u8], meter: &Meter<'_>) -> Option<Table<T>> {
        let data = csv::parse::<T>(text, &self.csv, self.target.as_ref(), meter).ok()?;
        Some(of_numbers(data, self.schema))
    }

    /// How the text is written, for those who read some of its lines.
    pub(super) fn dialect<T: Element>(&self, text: &[u8]) -> Result<Dialect, Fault> {
        csv::dialect::<T>(text, &self.csv, self.target.as_ref())
    }

    /// What the columns are.
    pub(super) fn into_schema(self) -> Schema {
        self.schema
    }
}

/// Whether nothing is to be done to the numbers of a table.
pub(super) fn is_wanted(table: &TableOptions) -> bool {
    table.missing == Missing::Refuse
        && table.categorical.is_empty()
        && table.drop.is_empty()
        && table.further.is_empty()
}

/// Numbers as they are, of columns with these names and numbers.
pub(super) fn plain(names: impl Iterator<Item = (Option<String>, u32)>) -> TableEncoding {
    let kind = ColumnKind::Number {
        fill: None,
        indicator: false,
    };
    TableEncoding {
        columns: names
            .map(|(name, number)| TableColumn {
                name,
                number,
                kind: kind.clone(),
            })
            .collect(),
        ..TableEncoding::default()
    }
}

/// A name or a number by which the reader of numbers finds a field; none where the header has the number as a name, which
/// goes before.
fn by_text(head: &Head, field: usize) -> Option<Target> {
    let number = (field + 1).to_string();
    let names = match &head.names {
        Some(names) if head.body_at > head.line_at => names,
        _ => return Some(Target::new(number)),
    };
    match names[field] == nameless(field) {
        false => Some(Target::new(names[field].clone())),
        true => (!names.contains(&number)).then(|| Target::new(number)),
    }
}

pub(super) fn schema_of(head: &Head, target: Option<usize>, table: TableEncoding) -> Schema {
    let name = |field: usize| head.names.as_ref().map(|names| names[field].clone());
    Schema {
        format: Some(Format::Csv.to_string()),
        target: target.and_then(name).filter(|name| !name.is_empty()),
        table: Some(table),
        ..Schema::default()
    }
}
