//! Lines of a table into rows of X.

use super::super::csv::dialect::is_skipped;
use super::super::error::Fault;
use super::super::scan::{Parsed, lines};
use super::cells::{hash, is_date, is_missing, number};
use super::layout::{Layout, Role};
use super::{TableProblem, Unseen};
use crate::matrix::{Element, MissingCategory, RowBlock};

/// The samples of some whole lines.
pub(super) struct Chunk<T> {
    pub(super) rows: usize,
    /// Row after row, of dense features.
    pub(super) dense: Vec<T>,
    /// Of sparse ones.
    pub(super) block: RowBlock<T>,
    pub(super) numbers: Vec<T>,
    /// Further targets, a list for each.
    pub(super) further: Vec<Vec<T>>,
    pub(super) texts: Vec<String>,
    /// Rows with an unknown category, of each field, and an example.
    pub(super) unseen: Vec<(u64, Option<String>)>,
    /// The entries of a row.
    row: Vec<(u32, f64)>,
}

impl<T: Element> Parsed for Chunk<T> {
    fn bytes(&self) -> u64 {
        let further: usize = self.further.iter().map(Vec::capacity).sum();
        let values = self.dense.capacity() + self.numbers.capacity() + self.block.values.capacity();
        let values = values + further;
        let texts: usize = self
            .texts
            .iter()
            .map(|text| text.capacity() + size_of::<String>())
            .sum();
        let indices = self.block.row_ends.capacity() * 8 + self.block.indices.capacity() * 4;
        (values * size_of::<T>() + indices + texts) as u64
    }
}

/// Parses whole lines that start `start` bytes into the text.
pub(super) fn parse_chunk<T: Element>(
    bytes: &[u8],
    start: usize,
    layout: &Layout<'_>,
) -> Result<Chunk<T>, Fault> {
    let mut chunk = Chunk {
        rows: 0,
        dense: Vec::new(),
        block: RowBlock::default(),
        numbers: Vec::new(),
        further: vec![Vec::new(); layout.further],
        texts: Vec::new(),
        unseen: vec![(0, None); layout.roles.len()],
        row: Vec::new(),
    };
    for (offset, line) in lines(bytes).filter(|(_, line)| !is_skipped(line)) {
        chunk
            .parse_line(line, layout)
            .map_err(|fault| fault.shifted(start + offset))?;
    }
    Ok(chunk)
}

impl<T: Element> Chunk<T> {
    fn parse_line(&mut self, line: &[u8], layout: &Layout<'_>) -> Result<(), Fault> {
        self.row.clear();
        layout
            .head
            .each_field(line, |field, at, text| self.take(field, at, text, layout))?;
        match layout.sparse {
            true => self.push_sparse()?,
            false => self.push_dense(layout.cols)?,
        }
        self.rows += 1;
        Ok(())
    }

    fn take(
        &mut self,
        field: usize,
        at: usize,
        text: &[u8],
        layout: &Layout<'_>,
    ) -> Result<(), Fault> {
        let missing = is_missing(text);
        match &layout.roles[field] {
            Role::Skip => {}
            Role::Target => self.take_target(field, at, text, layout)?,
            Role::Further(number) => {
                let value = target_number::<T>((field, at), text, layout)?;
                self.further[*number].push(value);
            }
            Role::Number {
                start,
                fill,
                indicator,
            } => {
                let value = match (missing, fill) {
                    (false, _) => {
                        number(text).ok_or_else(|| not_a_number(layout, field, at, text))?
                    }
                    (true, Some(fill)) => *fill,
                    (true, None) => return Err(refused(layout, field, at)),
                };
                self.row.push((*start as u32, value));
                if missing && *indicator {
                    self.row.push((*start as u32 + 1, 1.0));
                }
            }
            Role::Category {
                start,
                missing: rule,
                levels,
            } if missing => match rule {
                MissingCategory::Refused => return Err(refused(layout, field, at)),
                MissingCategory::Zeros => {}
                MissingCategory::OwnColumn => self.row.push(((*start + levels.len()) as u32, 1.0)),
            },
            Role::Category { start, levels, .. } => match levels.get(text) {
                Some(code) => self.row.push((*start as u32 + code, 1.0)),
                None => self.take_unseen(field, at, text, layout)?,
            },
            Role::Hashed {
                missing: MissingCategory::Refused,
            } if missing => return Err(refused(layout, field, at)),
            Role::Hashed {
                missing: MissingCategory::Zeros,
            } if missing => {}
            Role::Hashed { .. } => {
                let text = if missing { b"" } else { text };
                let bucket =
                    hash(layout.head.label(field).as_bytes(), text) % u64::from(layout.buckets);
                self.row
                    .push((layout.hashed_from() as u32 + bucket as u32, 1.0));
            }
        }
        Ok(())
    }

    fn take_target(
        &mut self,
        field: usize,
        at: usize,
        text: &[u8],
        layout: &Layout<'_>,
    ) -> Result<(), Fault> {
        if !layout.text_targets {
            let value = target_number((field, at), text, layout)?;
            self.numbers.push(value);
            return Ok(());
        }
        refuse_missing((field, at), text, layout)?;
        let text = std::str::from_utf8(text).map_err(|_| Fault::at(at, "text in UTF-8"))?;
        self.texts.push(text.to_owned());
        Ok(())
    }

    fn take_unseen(
        &mut self,
        field: usize,
        at: usize,
        text: &[u8],
        layout: &Layout<'_>,
    ) -> Result<(), Fault> {
        let found = shown(text);
        if layout.unseen == Unseen::Refuse {
            let column = layout.head.label(field);
            return Err(Fault::of_table(at, TableProblem::Unseen { column, found }));
        }
        let (count, example) = &mut self.unseen[field];
        *count += 1;
        example.get_or_insert(found);
        Ok(())
    }

    fn push_sparse(&mut self) -> Result<(), Fault> {
        self.row.sort_unstable_by_key(|(column, _)| *column);
        let first = self.block.indices.len();
        for &(column, value) in &self.row {
            if value == 0.0 {
                continue;
            }
            let value: T = fitting(value, 0)?;
            match self.block.indices[first..].last() {
                Some(&last) if last == column => {
                    // Two texts of a row in one bucket.
                    let sum = self.block.values.last_mut().expect("as many as indices");
                    *sum += value;
                }
                _ => {
                    self.block.indices.push(column);
                    self.block.values.push(value);
                }
            }
        }
        self.block.row_ends.push(self.block.indices.len() as u64);
        Ok(())
    }

    fn push_dense(&mut self, cols: usize) -> Result<(), Fault> {
        let first = self.dense.len();
        self.dense.resize(first + cols, T::default());
        for &(column, value) in &self.row {
            self.dense[first + column as usize] = fitting(value, 0)?;
        }
        Ok(())
    }
}

/// The target of a sample, which is a number.
fn target_number<T: Element>(
    (field, at): (usize, usize),
    text: &[u8],
    layout: &Layout<'_>,
) -> Result<T, Fault> {
    refuse_missing((field, at), text, layout)?;
    let value = number(text).ok_or_else(|| not_a_number(layout, field, at, text))?;
    fitting(value, at)
}

fn refuse_missing(
    (field, at): (usize, usize),
    text: &[u8],
    layout: &Layout<'_>,
) -> Result<(), Fault> {
    if !is_missing(text) {
        return Ok(());
    }
    let column = layout.head.label(field);
    Err(Fault::of_table(at, TableProblem::MissingTarget { column }))
}

/// A number in the element type, if it has room for it.
fn fitting<T: Element>(value: f64, at: usize) -> Result<T, Fault> {
    T::try_from_f64(value)
        .ok_or_else(|| Fault::at(at, format!("finite numbers that fit {}", T::DTYPE)))
}

fn refused(layout: &Layout<'_>, field: usize, at: usize) -> Fault {
    let (column, by_model) = (layout.head.label(field), layout.by_model);
    Fault::of_table(at, TableProblem::Missing { column, by_model })
}

fn not_a_number(layout: &Layout<'_>, field: usize, at: usize, text: &[u8]) -> Fault {
    Fault::of_table(
        at,
        no_number(layout.head.label(field), text, layout.by_model),
    )
}

/// The problem of a text among numbers.
pub(super) fn no_number(column: String, text: &[u8], by_model: bool) -> TableProblem {
    let found = shown(text);
    match is_date(text) {
        true => TableProblem::Date {
            column,
            found,
            by_model,
        },
        false => TableProblem::NotANumber {
            column,
            found,
            by_model,
        },
    }
}

/// A text as messages quote it.
pub(super) fn shown(text: &[u8]) -> String {
    const MOST: usize = 40;
    let text = String::from_utf8_lossy(text);
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", text[..end].escape_debug()),
        None => text.escape_debug().to_string(),
    }
}
