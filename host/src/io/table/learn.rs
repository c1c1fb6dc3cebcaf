//! What the columns of a table are, from the table itself.

use std::collections::HashMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::super::csv::dialect::is_skipped;
use super::super::error::Fault;
use super::super::scan::{self, Meter, Parsed, lines};
use super::cells::{is_date, is_missing, number};
use super::encode::{no_number, shown};
use super::head::Head;
use super::{Missing, TableOptions, TableProblem};
use crate::matrix::{ColumnKind, MissingCategory, TableColumn, TableEncoding};

/// Lines by which text columns are told from numbers.
const SAMPLE: usize = 1000;
/// Rows up to which texts that are all different may be categories.
const FEW_ROWS: usize = 20;

/// Whether a field is text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Is {
    Skipped,
    Number,
    Text { forced: bool },
}

/// What is known about a column.
#[derive(Debug, Clone, Default)]
struct Found {
    values: u64,
    missing: u64,
    /// The sum of the numbers in twice the precision, so that the mean does not depend on how the text was cut.
    sum: [f64; 2],
    levels: HashMap<Vec<u8>, u64>,
}

/// What some lines say of the columns.
pub(super) struct Gathered {
    columns: Vec<Found>,
    pub(super) rows: usize,
}

impl Parsed for Gathered {
    fn bytes(&self) -> u64 {
        let level = |(text, _): (&Vec<u8>, &u64)| (text.capacity() + 48) as u64;
        let columns = self.columns.iter();
        columns
            .map(|found| found.levels.iter().map(level).sum::<u64>())
            .sum()
    }
}

/// The fields that these names or numbers mean.
pub(super) fn fields(head: &Head, names: &[String]) -> Result<Vec<usize>, Fault> {
    names.iter().map(|name| head.field(name)).collect()
}

/// The encoding of a table; its features are all fields but `target`, further targets and those to be dropped. With it the
/// column that each field is.
pub(super) fn encoding(
    text: &[u8],
    head: &Head,
    targets: (Option<usize>, &[usize]),
    options: &TableOptions,
    meter: &Meter<'_>,
) -> Result<(TableEncoding, Vec<Option<usize>>), Fault> {
    let fields = Fields::of(text, head, targets, options)?;
    let body = head.body_at..text.len();
    let found = fields.gather((text, body), head, options, meter)?;
    fields.encoding(text, head, found, options)
}

/// What the fields of a table are, by its first lines.
pub(super) struct Fields {
    kinds: Vec<Is>,
    target: Option<usize>,
    dropped: Vec<usize>,
    text_targets: bool,
    /// Whether the first lines have nothing but numbers.
    pub(super) are_numbers: bool,
}

impl Fields {
    /// By the first lines of `text`.
    pub(super) fn of(
        text: &[u8],
        head: &Head,
        (target, further): (Option<usize>, &[usize]),
        options: &TableOptions,
    ) -> Result<Fields, Fault> {
        let mut dropped = fields(head, &options.drop)?;
        dropped.extend_from_slice(further);
        let forced = fields(head, &options.categorical)?;
        let sampled = sample(text, head)?;
        let mut kinds = Vec::with_capacity(head.fields);
        for (field, seen) in sampled.iter().enumerate() {
            kinds.push(match seen {
                _ if target == Some(field) || dropped.contains(&field) => Is::Skipped,
                _ if forced.contains(&field) => Is::Text { forced: true },
                seen => seen.kind(head, field)?,
            });
        }
        Ok(Fields {
            kinds,
            target,
            dropped,
            text_targets: target.is_some_and(|field| sampled[field].texts > 0),
            are_numbers: sampled.iter().all(|seen| seen.texts + seen.missing == 0),
        })
    }

    /// What some whole lines of `text` say of the columns.
    pub(super) fn gather(
        &self,
        (text, lines): (&[u8], Range<usize>),
        head: &Head,
        options: &TableOptions,
        meter: &Meter<'_>,
    ) -> Result<Gathered, Fault> {
        let chunks = scan::parse_chunks(text, lines, meter, |bytes, start| {
            gather(bytes, start, head, &self.kinds, options.missing)
        })?;
        Ok(joined(chunks, head.fields))
    }

    /// The encoding of a table of which all lines say this, and the column that each field is.
    pub(super) fn encoding(
        &self,
        text: &[u8],
        head: &Head,
        found: Gathered,
        options: &TableOptions,
    ) -> Result<(TableEncoding, Vec<Option<usize>>), Fault> {
        let rows = found.rows;
        if rows == 0 {
            return Err(Fault::at(text.len(), "at least one line of values"));
        }
        let mut encoding = TableEncoding {
            text_targets: self.text_targets,
            dropped: dropped_labels(head, self.target, &self.dropped),
            ..TableEncoding::default()
        };
        let mut columns = Vec::with_capacity(head.fields);
        for (field, (kind, found)) in self.kinds.iter().zip(found.columns).enumerate() {
            let kind = match column_kind(*kind, found, rows, options) {
                Ok(kind) => kind,
                Err(count) => {
                    let column = head.label(field);
                    return Err(head.problem(TableProblem::AllDifferent { column, count }));
                }
            };
            columns.push(kind.as_ref().map(|_| encoding.columns.len()));
            let name = head.names.as_ref().map(|names| names[field].clone());
            encoding.columns.extend(kind.map(|kind| TableColumn {
                name,
                number: field as u32 + 1,
                kind,
            }));
        }
        let hashed = |column: &TableColumn| matches!(column.kind, ColumnKind::Hashed { .. });
        if encoding.columns.iter().any(hashed) {
            encoding.buckets = options.buckets.unwrap_or(0);
        }
        if encoding.columns.is_empty() {
            return Err(Fault::at(head.line_at, "at least one column of features"));
        }
        Ok((encoding, columns))
    }
}

/// What some lines say of the columns, for readers of the other lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Told {
    rows: usize,
    columns: Vec<ToldColumn>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ToldColumn {
    values: u64,
    missing: u64,
    /// As bits: text rounds.
    sum: [u64; 2],
    levels: Vec<(String, u64)>,
}

impl Gathered {
    pub(super) fn told(&self) -> Told {
        let level = |(text, count): (&Vec<u8>, &u64)| {
            let text = String::from_utf8(text.clone());
            (text.expect("checked when it was gathered"), *count)
        };
        let column = |found: &Found| ToldColumn {
            values: found.values,
            missing: found.missing,
            sum: found.sum.map(f64::to_bits),
            levels: found.levels.iter().map(level).collect(),
        };
        Told {
            rows: self.rows,
            columns: self.columns.iter().map(column).collect(),
        }
    }

    /// What the lines of all readers say together.
    pub(super) fn of_all<'t>(all: impl Iterator<Item = &'t Told>, fields: usize) -> Gathered {
        let level = |(text, count): &(String, u64)| (text.clone().into_bytes(), *count);
        let found = |column: &ToldColumn| Found {
            values: column.values,
            missing: column.missing,
            sum: column.sum.map(f64::from_bits),
            levels: column.levels.iter().map(level).collect(),
        };
        let gathered = |told: &Told| Gathered {
            columns: told.columns.iter().map(found).collect(),
            rows: told.rows,
        };
        joined(all.map(gathered).collect(), fields)
    }
}

impl Told {
    pub(super) fn rows(&self) -> usize {
        self.rows
    }
}

/// [`dropped_label`] of each of these fields.
pub(super) fn dropped_labels(head: &Head, target: Option<usize>, fields: &[usize]) -> Vec<String> {
    let labels = fields.iter();
    let labels = labels.map(|field| dropped_label(head, target, *field));
    labels.collect()
}

/// How a column that was left out is found again: by its name, or by its number among the fields that are not the target.
fn dropped_label(head: &Head, target: Option<usize>, field: usize) -> String {
    match (&head.names, target) {
        (None, Some(target)) if target < field => field.to_string(),
        _ => head.label(field),
    }
}

/// What the first lines have in a field.
#[derive(Debug, Clone, Default)]
struct Sampled {
    numbers: usize,
    missing: usize,
    texts: usize,
    dates: usize,
    /// The first date, and its line.
    date: Option<(usize, String)>,
}

impl Sampled {
    fn kind(&self, head: &Head, field: usize) -> Result<Is, Fault> {
        if self.texts <= self.numbers {
            return Ok(Is::Number);
        }
        match &self.date {
            Some((at, found)) if 2 * self.dates > self.texts => {
                let (column, found) = (head.label(field), found.clone());
                let by_model = false;
                let problem = TableProblem::Date {
                    column,
                    found,
                    by_model,
                };
                Err(Fault::of_table(*at, problem))
            }
            _ => Ok(Is::Text { forced: false }),
        }
    }
}

fn sample(text: &[u8], head: &Head) -> Result<Vec<Sampled>, Fault> {
    let mut found = vec![Sampled::default(); head.fields];
    let all = lines(&text[head.body_at..]).filter(|(_, line)| !is_skipped(line));
    for (offset, line) in all.take(SAMPLE) {
        let line_at = head.body_at + offset;
        let visit = |field: usize, _: usize, text: &[u8]| {
            let seen = &mut found[field];
            if is_missing(text) {
                seen.missing += 1;
                return Ok(());
            }
            if number(text).is_some() {
                seen.numbers += 1;
                return Ok(());
            }
            seen.texts += 1;
            if is_date(text) {
                seen.dates += 1;
                seen.date.get_or_insert_with(|| (line_at, shown(text)));
            }
            Ok(())
        };
        head.each_field(line, visit)
            .map_err(|fault| fault.shifted(line_at))?;
    }
    Ok(found)
}

fn gather(
    bytes: &[u8],
    start: usize,
    head: &Head,
    kinds: &[Is],
    missing: Missing,
) -> Result<Gathered, Fault> {
    let mut chunk = Gathered {
        columns: vec![Found::default(); head.fields],
        rows: 0,
    };
    for (offset, line) in lines(bytes).filter(|(_, line)| !is_skipped(line)) {
        let columns = &mut chunk.columns;
        let visit = |field: usize, at: usize, text: &[u8]| {
            if kinds[field] == Is::Skipped {
                return Ok(());
            }
            let found = &mut columns[field];
            if is_missing(text) {
                found.missing += 1;
                let problem = TableProblem::Missing {
                    column: head.label(field),
                    by_model: false,
                };
                return match missing {
                    Missing::Refuse => Err(Fault::of_table(at, problem)),
                    _ => Ok(()),
                };
            }
            found.values += 1;
            if kinds[field] == Is::Number {
                let value = number(text).ok_or_else(|| {
                    Fault::of_table(at, no_number(head.label(field), text, false))
                })?;
                found.sum = plus(found.sum, [value, 0.0]);
            } else if let Some(count) = found.levels.get_mut(text) {
                *count += 1;
            } else {
                std::str::from_utf8(text).map_err(|_| Fault::at(at, "text in UTF-8"))?;
                found.levels.insert(text.to_vec(), 1);
            }
            Ok(())
        };
        head.each_field(line, visit)
            .map_err(|fault| fault.shifted(start + offset))?;
        chunk.rows += 1;
    }
    Ok(chunk)
}

fn joined(chunks: Vec<Gathered>, fields: usize) -> Gathered {
    let mut all = Gathered {
        columns: vec![Found::default(); fields],
        rows: 0,
    };
    for chunk in chunks {
        all.rows += chunk.rows;
        for (all, found) in all.columns.iter_mut().zip(chunk.columns) {
            all.values += found.values;
            all.missing += found.missing;
            all.sum = plus(all.sum, found.sum);
            for (level, count) in found.levels {
                *all.levels.entry(level).or_default() += count;
            }
        }
    }
    all
}

/// The sum of two numbers in twice the precision. Source: Dekker, "A floating-point technique for extending the available
/// precision", 1971, with Knuth's sum of two.
fn plus([a, low_a]: [f64; 2], [b, low_b]: [f64; 2]) -> [f64; 2] {
    let sum = a + b;
    let of_b = sum - a;
    let error = (a - (sum - of_b)) + (b - of_b) + low_a + low_b;
    let high = sum + error;
    [high, error - (high - sum)]
}

/// What a column becomes; the number of different texts where none occurs twice.
fn column_kind(
    is: Is,
    found: Found,
    rows: usize,
    options: &TableOptions,
) -> Result<Option<ColumnKind>, usize> {
    let some_missing = found.missing > 0;
    let forced = match is {
        Is::Skipped => return Ok(None),
        Is::Number => {
            let mean = found.sum[0] / found.values.max(1) as f64;
            return Ok(Some(ColumnKind::Number {
                fill: (options.missing != Missing::Refuse).then_some(mean),
                indicator: options.missing == Missing::Indicator && some_missing,
            }));
        }
        Is::Text { forced } => forced,
    };
    let missing = match options.missing {
        Missing::Refuse => MissingCategory::Refused,
        Missing::Indicator if some_missing => MissingCategory::OwnColumn,
        _ => MissingCategory::Zeros,
    };
    if options.buckets.is_some() {
        return Ok(Some(ColumnKind::Hashed { missing }));
    }
    if !forced && rows > FEW_ROWS && found.levels.len() == rows {
        return Err(rows);
    }
    let text = |level: Vec<u8>| String::from_utf8(level).expect("checked when it was gathered");
    let mut levels: Vec<String> = found.levels.into_keys().map(text).collect();
    levels.sort_unstable();
    Ok(Some(ColumnKind::Category { levels, missing }))
}
