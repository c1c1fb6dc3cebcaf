//! What becomes of each field of a line.

use std::collections::{HashMap, HashSet};

use super::super::error::Fault;
use super::head::Head;
use super::{TableOptions, TableProblem, Unseen};
use crate::matrix::{ColumnKind, MissingCategory, TableEncoding};

/// What becomes of a field.
#[derive(Debug, Clone)]
pub(super) enum Role {
    Skip,
    Target,
    /// One of [`TableOptions::further`], by its number.
    Further(usize),
    Number {
        start: usize,
        fill: Option<f64>,
        indicator: bool,
    },
    Category {
        start: usize,
        levels: HashMap<Vec<u8>, u32>,
        missing: MissingCategory,
    },
    Hashed {
        missing: MissingCategory,
    },
}

/// What becomes of a line.
#[derive(Debug)]
pub(super) struct Layout<'a> {
    pub(super) head: &'a Head,
    pub(super) roles: Vec<Role>,
    /// n.
    pub(super) cols: usize,
    pub(super) buckets: u32,
    pub(super) sparse: bool,
    pub(super) text_targets: bool,
    /// How many fields are further targets.
    pub(super) further: usize,
    /// Whether a model says so.
    pub(super) by_model: bool,
    pub(super) unseen: Unseen,
}

impl<'a> Layout<'a> {
    /// By `encoding`, with the column of the encoding that each field is.
    pub(super) fn new(
        head: &'a Head,
        encoding: &TableEncoding,
        columns: &[Option<usize>],
        target: Option<usize>,
        (by_model, unseen): (bool, Unseen),
    ) -> Layout<'a> {
        let mut starts = Vec::with_capacity(encoding.columns.len());
        let mut end = 0;
        for column in &encoding.columns {
            starts.push(end);
            end += column.width();
        }
        let role = |(field, column): (usize, &Option<usize>)| match column {
            _ if target == Some(field) => Role::Target,
            None => Role::Skip,
            Some(column) => role_of(&encoding.columns[*column].kind, starts[*column]),
        };
        Layout {
            head,
            roles: columns.iter().enumerate().map(role).collect(),
            cols: encoding.width(),
            buckets: encoding.buckets,
            sparse: encoding.is_sparse(),
            text_targets: encoding.text_targets,
            further: 0,
            by_model,
            unseen,
        }
    }

    /// Takes these fields for further targets.
    pub(super) fn with_further(mut self, fields: &[usize]) -> Self {
        for (number, field) in fields.iter().enumerate() {
            self.roles[*field] = Role::Further(number);
        }
        self.further = fields.len();
        self
    }

    /// The first of the columns that hashed texts share.
    pub(super) fn hashed_from(&self) -> usize {
        self.cols - self.buckets as usize
    }
}

fn role_of(kind: &ColumnKind, start: usize) -> Role {
    match kind {
        ColumnKind::Number { fill, indicator } => Role::Number {
            start,
            fill: *fill,
            indicator: *indicator,
        },
        ColumnKind::Category { levels, missing } => {
            let numbered = levels.iter().zip(0..);
            Role::Category {
                start,
                levels: numbered
                    .map(|(level, code)| (level.clone().into_bytes(), code))
                    .collect(),
                missing: *missing,
            }
        }
        ColumnKind::Hashed { missing } => Role::Hashed { missing: *missing },
    }
}

/// The column of the encoding that each field of a table is: by name, or by order where there are no names.
pub(super) fn matched(
    head: &Head,
    encoding: &TableEncoding,
    target: Option<usize>,
    options: &TableOptions,
    take_by_order: bool,
) -> Result<Vec<Option<usize>>, Fault> {
    let names: Option<HashMap<&str, usize>> = encoding
        .columns
        .iter()
        .enumerate()
        .map(|(at, column)| Some((column.name.as_deref()?, at)))
        .collect();
    match (names, &head.names) {
        (Some(known), Some(names)) => by_name(head, names, &known, encoding, target, options),
        (Some(_), None) if !take_by_order => Err(head.problem(TableProblem::NoHeader)),
        _ => by_order(head, encoding, target),
    }
}

fn by_name(
    head: &Head,
    names: &[String],
    known: &HashMap<&str, usize>,
    encoding: &TableEncoding,
    target: Option<usize>,
    options: &TableOptions,
) -> Result<Vec<Option<usize>>, Fault> {
    let columns: Vec<Option<usize>> = names
        .iter()
        .enumerate()
        .map(|(field, name)| {
            known
                .get(name.as_str())
                .copied()
                .filter(|_| target != Some(field))
        })
        .collect();
    let there: HashSet<usize> = columns.iter().copied().flatten().collect();
    let lacking: Vec<String> = encoding
        .columns
        .iter()
        .enumerate()
        .filter(|(at, _)| !there.contains(at))
        .filter_map(|(_, column)| column.name.clone())
        .collect();
    if !lacking.is_empty() {
        return Err(head.problem(TableProblem::LacksColumns { names: lacking }));
    }
    let extra = |(field, name): &(usize, &String)| {
        columns[*field].is_none() && target != Some(*field) && !encoding.dropped.contains(name)
    };
    let extra: Vec<String> = names
        .iter()
        .enumerate()
        .filter(extra)
        .map(|(_, name)| name.clone())
        .collect();
    if !extra.is_empty() && !options.ignore_extra {
        return Err(head.problem(TableProblem::ExtraColumns { names: extra }));
    }
    Ok(columns)
}

fn by_order(
    head: &Head,
    encoding: &TableEncoding,
    target: Option<usize>,
) -> Result<Vec<Option<usize>>, Fault> {
    let features: Vec<usize> = (0..head.fields).filter(|f| target != Some(*f)).collect();
    let (expected, found) = (encoding.columns.len(), features.len());
    // Those that training left out may be there or not; by their names, which are missing here, they cannot be told.
    let is_dropped = |number: usize| encoding.dropped.contains(&(number + 1).to_string());
    let kept = features.iter().enumerate();
    let kept = kept.filter(|(number, _)| found == expected || !is_dropped(*number));
    let kept: Vec<usize> = kept.map(|(_, field)| *field).collect();
    if kept.len() != expected {
        return Err(head.problem(TableProblem::Count { expected, found }));
    }
    let mut columns = vec![None; head.fields];
    for (column, field) in kept.into_iter().enumerate() {
        columns[field] = Some(column);
    }
    Ok(columns)
}
