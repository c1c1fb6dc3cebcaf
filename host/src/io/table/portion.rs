//! A file that several readers share: each parses its own lines, and hears from the others what it has to know of theirs.
//!
//! Lines are dealt out by bytes, so that nobody has to read a line that is another's; [`ReadPortion::complete`] then moves
//! the few rows that keep the beginnings of readers' rows at multiples of a step.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::super::cache;
use super::super::error::{Fault, ReadError};
use super::super::options::{CachePolicy, Format, ReadOptions};
use super::super::read::{self as whole, Opened, Told};
use super::super::source::{Content, is_stdin};
use super::apply::{of_numbers, of_told, options_of_numbers};
use super::{Table, TableOptions};
use crate::matrix::Element;
use lines::{LineFacts, Lines};

mod lines;

/// Which of several readers this one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Portion {
    number: usize,
    of: usize,
}

impl Portion {
    /// Reader `number` of `of`, counted from 0.
    ///
    /// # Panics
    /// When there is no such reader.
    pub fn new(number: usize, of: usize) -> Portion {
        assert!(
            number < of,
            "expected a reader below {of}, found number {number}"
        );
        Portion { number, of }
    }

    /// Its rows where they are dealt out evenly, in steps of `step`: one more for the first readers where steps do not divide.
    ///
    /// ```
    /// use warpfuse::io::Portion;
    /// let rows = [0, 1, 2].map(|number| Portion::new(number, 3).rows(7, 1));
    /// assert_eq!(rows, [0..3, 3..5, 5..7]);
    /// ```
    pub fn rows(self, rows: usize, step: usize) -> Range<usize> {
        let steps = rows.div_ceil(step);
        let (each, more) = (steps / self.of, steps % self.of);
        let first = |number: usize| rows.min(step * (number * each + number.min(more)));
        first(self.number)..first(self.number + 1)
    }
}

/// What a reader tells the others of what it has read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortionFacts {
    /// Bytes of the whole file.
    bytes: u64,
    found: Found,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Found {
    Lines(LineFacts),
    /// Lines that have something else than numbers.
    Mixed,
    Cache(cache::Found),
}

/// What one reader has read of a file.
pub struct ReadPortion<T> {
    opened: Opened,
    path: PathBuf,
    options: ReadOptions,
    table: TableOptions,
    portion: Portion,
    part: Part<T>,
}

enum Part<T> {
    /// Its lines of a text.
    Lines(Lines<T>),
    /// Lines that have something else than numbers, after first lines that do not.
    Mixed,
    Cache(cache::Part),
}

/// A reader's rows of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableRows<T> {
    /// Its rows, with the columns of the whole file.
    pub table: Table<T>,
    /// The first of them among all.
    pub first: usize,
    /// Rows of the file.
    pub all: usize,
}

/// Reads what belongs to `portion` of a file: lines of LIBSVM and CSV text, blocks of a cache. `None` where a file has to be read
/// as a whole: standard input, compressed text, other formats, several targets, and what a `schema` or a cache beside it is to be
/// applied to.
///
/// ```
/// use warpfuse::io::{read_portion, Portion, ReadOptions, TableOptions};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("four.svm");
/// std::fs::write(&path, "1 1:1\n0 9:2\n1 3:3\n0 2:4\n")?;
/// let (options, table) = (ReadOptions::default(), TableOptions::default());
/// let read = |number| read_portion::<f32>(&path, &options, &table, Portion::new(number, 2));
/// let (a, b) = (read(0)?.expect("text"), read(1)?.expect("text"));
/// let facts = [a.facts(), b.facts()];
/// let b = b.complete(&facts, 1)?.expect("numbers");
/// assert_eq!((b.first, b.all, b.table.features.cols()), (2, 4, 9));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`read_table`](super::read_table), for this part.
pub fn read_portion<T: Element>(
    path: impl AsRef<Path>,
    options: &ReadOptions,
    table: &TableOptions,
    portion: Portion,
) -> Result<Option<ReadPortion<T>>, ReadError> {
    let path = path.as_ref();
    let is_for_one = table.schema.is_some() || !table.further.is_empty();
    if options.cache != CachePolicy::Off || is_for_one || is_stdin(path) {
        return Ok(None);
    }
    let opened = whole::open(path, options)?;
    if !matches!(opened.content, Content::Mapped(_)) {
        return Ok(None);
    }
    let number = (portion.number, portion.of);
    let part = opened.content.read(|content| match opened.format {
        Format::LibSvm => Lines::of_libsvm((path, content), options, number).map(Part::Lines),
        Format::Csv => {
            let lines = Lines::of_csv((path, content), (options, table), number)?;
            Ok(lines.map_or(Part::Mixed, Part::Lines))
        }
        Format::Cache => {
            let part = cache::Part::read::<T>(path, content, options.memory.bytes(), number)?;
            Ok(part.map_or(Part::Mixed, Part::Cache))
        }
        _ => Ok(Part::Mixed),
    })?;
    if matches!(part, Part::Mixed) && opened.format != Format::Csv {
        return Ok(None);
    }
    Ok(Some(ReadPortion {
        path: path.to_owned(),
        options: options.clone(),
        table: table.clone(),
        opened,
        portion,
        part,
    }))
}

impl<T: Element> ReadPortion<T> {
    /// What the others have to know.
    pub fn facts(&self) -> PortionFacts {
        PortionFacts {
            bytes: self.opened.content.len() as u64,
            found: match &self.part {
                Part::Lines(lines) => Found::Lines(lines.facts()),
                Part::Mixed => Found::Mixed,
                Part::Cache(part) => Found::Cache(part.found.clone()),
            },
        }
    }

    /// Bytes of what it has read, about.
    pub fn bytes(&self) -> u64 {
        match &self.part {
            Part::Lines(lines) => lines.bytes(),
            Part::Mixed => 0,
            Part::Cache(part) => part.bytes(part.rows().div_ceil(self.portion.of)),
        }
    }

    /// The reader's rows, with what `all` readers, itself included, have told, in the order of their numbers; `None` where
    /// some lines have something else than numbers, and the file has to be read as a whole.
    ///
    /// Where a reader's rows begin is a multiple of `step`.
    ///
    /// # Errors
    /// As [`read_table`](super::read_table), for what all readers have found together, the same for all; where they have files
    /// of different lengths.
    ///
    /// # Panics
    /// When there are not as many facts as readers, or the step is 0.
    pub fn complete(
        self,
        all: &[PortionFacts],
        step: usize,
    ) -> Result<Option<TableRows<T>>, ReadError> {
        let Portion { number, of } = self.portion;
        assert!(
            all.len() == of && step > 0,
            "facts of all readers, and a step"
        );
        check_length(&self.path, all)?;
        let (path, options, table) = (&self.path, &self.options, &self.table);
        self.opened.content.read(|content| match self.part {
            Part::Mixed => Ok(None),
            Part::Lines(lines) => {
                let facts: Option<Vec<LineFacts>> = all.iter().map(PortionFacts::lines).collect();
                let Some(facts) = facts else { return Ok(None) };
                let located = |fault: Fault| fault.locate(path, content);
                let rows = Rows::of(&facts, number, step);
                let table = match lines {
                    Lines::LibSvm(own, chunks) => {
                        let of_numbers = options_of_numbers(options, table);
                        let read = lines::libsvm_rows(
                            content,
                            (own, chunks),
                            (&facts, &rows),
                            &of_numbers,
                        );
                        of_told(path, read.map_err(located)?, options, table)?
                    }
                    Lines::Table(own, lines) => {
                        let read = (&facts[..], &rows);
                        lines::table_rows(content, (own, lines), read, (options, table))
                            .map_err(located)?
                    }
                    Lines::Csv(own, dialect, schema, chunks) => {
                        let read =
                            lines::csv_rows(content, (own, chunks), (&dialect, &rows), options);
                        of_numbers(read.map_err(located)?, schema)
                    }
                };
                Ok(Some(TableRows {
                    table,
                    first: rows.kept.start,
                    all: rows.all,
                }))
            }
            Part::Cache(part) => {
                let rows = self.portion.rows(part.rows(), step);
                let found = all.iter().filter_map(PortionFacts::cache);
                let of_numbers = options_of_numbers(options, table);
                let data = part.take::<T>((path, content), found, rows.clone())?;
                let told = Told {
                    data: whole::widened(data, path, &of_numbers)?,
                    format: Some(Format::Cache),
                    base: None,
                    texts: None,
                };
                Ok(Some(TableRows {
                    table: of_told(path, told, options, table)?,
                    first: rows.start,
                    all: part.rows(),
                }))
            }
        })
    }
}

impl PortionFacts {
    fn lines(&self) -> Option<LineFacts> {
        match &self.found {
            Found::Lines(lines) => Some(lines.clone()),
            _ => None,
        }
    }

    fn cache(&self) -> Option<&cache::Found> {
        match &self.found {
            Found::Cache(found) => Some(found),
            _ => None,
        }
    }
}

fn check_length(path: &Path, all: &[PortionFacts]) -> Result<(), ReadError> {
    match all.iter().find(|facts| facts.bytes != all[0].bytes) {
        None => Ok(()),
        Some(other) => {
            let expected = format!("a file of {} bytes, as reader 0 has it", all[0].bytes);
            let found = format!("{} bytes", other.bytes);
            Err(ReadError::binary(path, 0, expected, found))
        }
    }
}

/// Which rows of all a reader of lines parses, and which it keeps.
struct Rows {
    parsed: Range<usize>,
    kept: Range<usize>,
    all: usize,
}

impl Rows {
    fn of(all: &[LineFacts], number: usize, step: usize) -> Rows {
        let count = |facts: &[LineFacts]| facts.iter().map(LineFacts::rows).sum::<usize>();
        let (first, rows) = (count(&all[..number]), count(all));
        let end = first + all[number].rows();
        let kept = |row: usize| row.next_multiple_of(step).min(rows);
        Rows {
            parsed: first..end,
            kept: kept(first)..kept(end),
            all: rows,
        }
    }

    /// How many of the rows that were parsed are another's.
    fn skipped(&self) -> usize {
        self.kept.start - self.parsed.start
    }

    /// How many rows after those that were parsed belong to it too.
    fn missing(&self) -> usize {
        self.kept.end - self.parsed.end
    }
}

#[cfg(test)]
mod tests;
