//! Lines of a text that one of several readers parses.

use std::ops::Range;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::super::super::csv;
use super::super::super::error::{Fault, ReadError};
use super::super::super::libsvm::{self, Notes};
use super::super::super::options::{Format, ReadOptions};
use super::super::super::read::Told;
use super::super::super::scan::{self, Meter};
use super::super::apply::{encoded, head_of};
use super::super::head::Head;
use super::super::layout::Layout;
use super::super::learn::{self, Gathered};
use super::super::plain::{self, Plain, schema_of};
use super::super::{Table, TableOptions};
use super::Rows;
use crate::matrix::{Dataset, Element, Schema};

/// Where the lines stand in the text, and what they hold.
pub(super) enum Lines<T> {
    LibSvm(Range<usize>, Vec<libsvm::Chunk<T>>),
    Csv(Range<usize>, csv::Dialect, Schema, Vec<csv::Chunk<T>>),
    /// Texts and gaps: what the columns are is known when all lines have been read once.
    Table(Range<usize>, TableLines),
}

/// What lines say of the columns of a table.
pub(super) struct TableLines {
    head: Head,
    target: Option<usize>,
    fields: learn::Fields,
    found: learn::Told,
}

/// What the other readers have to know of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LineFacts {
    /// Of a table with texts or gaps.
    table: Option<learn::Told>,
    rows: usize,
    labels: usize,
    unlabelled_at: Option<usize>,
    zero_at: Option<usize>,
    largest: Option<(u32, usize)>,
}

impl LineFacts {
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    fn new(rows: usize, labels: usize, notes: Notes) -> LineFacts {
        LineFacts {
            table: None,
            rows,
            labels,
            unlabelled_at: notes.unlabelled_at,
            zero_at: notes.zero_at,
            largest: notes.largest,
        }
    }

    fn notes(&self) -> Notes {
        Notes {
            unlabelled_at: self.unlabelled_at,
            zero_at: self.zero_at,
            largest: self.largest,
        }
    }
}

impl<T: Element> Lines<T> {
    /// Those of reader `number` of `of`.
    pub(super) fn of_libsvm(
        (path, text): (&Path, &[u8]),
        options: &ReadOptions,
        portion: (usize, usize),
    ) -> Result<Lines<T>, ReadError> {
        let own = scan::own_lines(text, libsvm::body(text), portion);
        let meter = meter(options, own.len());
        let chunks = scan::parse_chunks(text, own.clone(), &meter, libsvm::parse_chunk);
        let chunks = chunks.map_err(|fault| fault.locate(path, text))?;
        Ok(Lines::LibSvm(own, chunks))
    }

    /// Those of reader `number` of `of`; `None` where the first lines have nothing but numbers and these have something else:
    /// what is wrong with a line is said by whoever reads the whole file.
    pub(super) fn of_csv(
        (path, text): (&Path, &[u8]),
        (options, table): (&ReadOptions, &TableOptions),
        portion: (usize, usize),
    ) -> Result<Option<Lines<T>>, ReadError> {
        let (head, target) = head_of(text, path, options, table)?;
        let located = |fault: Fault| fault.locate(path, text);
        let fields = learn::Fields::of(text, &head, (target, &[]), table).map_err(located)?;
        if !plain::is_wanted(table) || !fields.are_numbers {
            let own = scan::own_lines(text, head.body_at..text.len(), portion);
            let meter = meter(options, own.len());
            let found = fields.gather((text, own.clone()), &head, table, &meter);
            let lines = TableLines {
                found: found.map_err(located)?.told(),
                head,
                target,
                fields,
            };
            return Ok(Some(Lines::Table(own, lines)));
        }
        let plain = Plain::of(&head, target);
        let Some((plain, Ok(dialect))) = plain.map(|plain| {
            let dialect = plain.dialect::<T>(text);
            (plain, dialect)
        }) else {
            return Ok(None);
        };
        let own = scan::own_lines(text, dialect.body_at..text.len(), portion);
        let chunks = csv::parse_lines(text, own.clone(), &dialect, &meter(options, own.len()));
        let read = |chunks| Lines::Csv(own, dialect, plain.into_schema(), chunks);
        Ok(chunks.ok().map(read))
    }

    /// What the others have to know.
    pub(super) fn facts(&self) -> LineFacts {
        match self {
            Lines::LibSvm(_, chunks) => {
                let sum = |of: fn(&libsvm::Chunk<T>) -> usize| chunks.iter().map(of).sum();
                let notes = chunks.iter().map(|chunk| chunk.notes).reduce(Notes::and);
                LineFacts::new(
                    sum(|chunk| chunk.rows()),
                    sum(|chunk| chunk.targets.len()),
                    notes.unwrap_or_default(),
                )
            }
            Lines::Csv(.., chunks) => {
                let rows = chunks.iter().map(|chunk| chunk.rows).sum();
                LineFacts::new(rows, 0, Notes::default())
            }
            Lines::Table(_, lines) => LineFacts {
                table: Some(lines.found.clone()),
                ..LineFacts::new(lines.found.rows(), 0, Notes::default())
            },
        }
    }

    /// Bytes of the lines.
    pub(super) fn bytes(&self) -> u64 {
        let (Lines::LibSvm(own, ..) | Lines::Csv(own, ..) | Lines::Table(own, ..)) = self;
        own.len() as u64
    }
}

fn meter(options: &ReadOptions, bytes: usize) -> Meter<'_> {
    Meter::new(options.progress.as_ref(), bytes, options.memory.bytes())
}

/// A meter of memory alone: the bytes have been reported.
fn silent(options: &ReadOptions) -> Meter<'static> {
    Meter::new(None, 0, options.memory.bytes())
}

/// The rows of one reader, of whose lines and of all readers' this is known.
pub(super) fn libsvm_rows<T: Element>(
    text: &[u8],
    (own, mut chunks): (Range<usize>, Vec<libsvm::Chunk<T>>),
    (all, rows): (&[LineFacts], &Rows),
    options: &ReadOptions,
) -> Result<Told<T>, Fault> {
    let notes: Vec<Notes> = all.iter().map(LineFacts::notes).collect();
    let (base, columns) = (options.index_base, options.columns);
    let shape = libsvm::shape(&notes, (rows.all, text.len()), base, columns)?;
    let labels = all.iter().map(|facts| facts.labels).sum();
    let has_targets = libsvm::has_targets(&notes, labels)?;
    let more = scan::next_samples(text, own.end, rows.missing(), libsvm::is_sample);
    chunks.push(libsvm::parse_chunk(&text[more.clone()], more.start)?);
    skip(&mut chunks, rows.skipped(), libsvm::Chunk::skip);
    let data = libsvm::joined(chunks, &shape, has_targets, &silent(options))?;
    Ok(Told {
        data,
        format: Some(Format::LibSvm),
        base: Some(shape.first as u8),
        texts: None,
    })
}

/// As [`libsvm_rows`].
pub(super) fn csv_rows<T: Element>(
    text: &[u8],
    (own, mut chunks): (Range<usize>, Vec<csv::Chunk<T>>),
    (dialect, rows): (&csv::Dialect, &Rows),
    options: &ReadOptions,
) -> Result<Dataset<T>, Fault> {
    if rows.all == 0 {
        return Err(Fault::at(text.len(), csv::NO_LINES));
    }
    let is_sample = |line: &[u8]| !csv::dialect::is_skipped(line);
    let more = scan::next_samples(text, own.end, rows.missing(), is_sample);
    let meter = silent(options);
    chunks.extend(csv::parse_lines(text, more, dialect, &meter)?);
    skip(&mut chunks, rows.skipped(), csv::Chunk::skip);
    csv::joined(chunks, dialect, &meter)
}

/// As [`libsvm_rows`], of a table with texts or gaps.
pub(super) fn table_rows<T: Element>(
    text: &[u8],
    (own, lines): (Range<usize>, TableLines),
    (all, rows): (&[LineFacts], &Rows),
    (options, table): (&ReadOptions, &TableOptions),
) -> Result<Table<T>, Fault> {
    let TableLines {
        head,
        target,
        fields,
        ..
    } = lines;
    let told = all.iter().filter_map(|facts| facts.table.as_ref());
    let found = Gathered::of_all(told, head.fields);
    let (encoding, columns) = fields.encoding(text, &head, found, table)?;
    let layout = Layout::new(&head, &encoding, &columns, target, (false, table.unseen));
    let is_sample = |line: &[u8]| !csv::dialect::is_skipped(line);
    let skipped = scan::next_samples(text, own.start, rows.skipped(), is_sample);
    let missing = scan::next_samples(text, own.end, rows.missing(), is_sample);
    let kept = skipped.end..missing.end.max(skipped.end);
    let read = encoded((text, kept), &layout, &silent(options))?;
    let schema = schema_of(&head, target, encoding);
    Ok(Table { schema, ..read })
}

/// Leaves out the first `rows` rows.
fn skip<C>(chunks: &mut [C], mut rows: usize, one: impl Fn(&mut C, usize) -> usize) {
    for chunk in chunks {
        rows -= one(chunk, rows);
    }
}
