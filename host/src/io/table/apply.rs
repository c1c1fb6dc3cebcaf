//! From a path to a table.

use std::ops::Range;
use std::path::Path;

use ndarray::Array2;

use super::super::error::{Fault, ReadError};
use super::super::options::{Columns, Format, Header, IndexBase, ReadOptions, Target};
use super::super::read::{self as whole, Opened, Told};
use super::super::scan::{self, Meter};
use super::encode::{Chunk, parse_chunk};
use super::head::Head;
use super::layout::{Layout, Role, matched};
use super::plain::{self, Plain, plain, schema_of};
use super::{
    FurtherTarget, Missing, Table, TableOptions, TableProblem, TableTargets, UnseenCount, further,
    learn,
};
use crate::matrix::{Dataset, Element, Features, Schema, TableEncoding, csr_from_blocks};

/// Reads any format.
pub(super) fn read<T: Element>(
    path: &Path,
    options: &ReadOptions,
    table: &TableOptions,
) -> Result<Table<T>, ReadError> {
    if whole::is_called_csv(path, options) {
        let opened = whole::open(path, options)?;
        if opened.format == Format::Csv {
            return opened
                .content
                .read(|_| of_csv(&opened, path, options, table));
        }
    }
    of_other(path, options, table)
}

/// Reads a format that has numbers alone.
fn of_other<T: Element>(
    path: &Path,
    options: &ReadOptions,
    table: &TableOptions,
) -> Result<Table<T>, ReadError> {
    if let Some(known) = table
        .schema
        .as_ref()
        .and_then(|schema| schema.table.as_ref())
        && !known.is_plain()
    {
        let format = whole::open(path, options)?.format.to_string();
        return Err(problem(path, TableProblem::NoTable { format }));
    }
    let told = whole::read_told::<T>(path, &options_of_numbers(options, table))?;
    of_told(path, told, options, table)
}

/// How a format that has numbers alone is read.
pub(super) fn options_of_numbers(options: &ReadOptions, table: &TableOptions) -> ReadOptions {
    let mut options = options.clone();
    if let Some(schema) = &table.schema
        && options.index_base == IndexBase::Auto
    {
        options.index_base = match schema.index_base {
            Some(0) => IndexBase::Zero,
            Some(_) => IndexBase::One,
            None => IndexBase::Auto,
        };
    }
    if let (Some(names), Columns::Infer) = (&table.names, options.columns) {
        options.columns = Columns::Exactly(names.len());
    }
    options
}

/// The table of what was read with [`options_of_numbers`].
pub(super) fn of_told<T: Element>(
    path: &Path,
    told: Told<T>,
    options: &ReadOptions,
    table: &TableOptions,
) -> Result<Table<T>, ReadError> {
    let Told {
        data,
        format,
        base,
        texts,
    } = told;
    if let Some(format) = format
        && let Some((option, of)) = idle(format, options, table)
    {
        let format = format.to_string();
        return Err(problem(path, TableProblem::Idle { option, of, format }));
    }
    let names = table.names.clone();
    check_names(
        path,
        names.as_deref(),
        table.schema.as_ref(),
        data.features.cols(),
    )?;
    let schema = match &table.schema {
        Some(schema) => schema.clone(),
        None => Schema {
            format: format.map(|format| format.to_string()),
            // Matrix Market files count from 1.
            index_base: base.or((format == Some(Format::MatrixMarket)).then_some(1)),
            names,
            ..Schema::default()
        },
    };
    let table = of_numbers(data, schema);
    Ok(match texts {
        Some(texts) => Table {
            targets: Some(TableTargets::Text(texts)),
            ..table
        },
        None => table,
    })
}

/// An option that has no meaning for a format, and the formats that it is for.
fn idle(
    format: Format,
    options: &ReadOptions,
    table: &TableOptions,
) -> Option<(&'static str, &'static str)> {
    let of_csv = [
        ("--hash", table.buckets.is_some()),
        ("--missing", table.missing != Missing::Refuse),
        ("--categorical", !table.categorical.is_empty()),
        ("--drop", !table.drop.is_empty()),
        ("--target-columns", !table.further.is_empty()),
        ("--delimiter", options.csv.delimiter.is_some()),
        ("--header", options.csv.header != Header::Auto),
    ];
    let given = of_csv.iter().find(|(_, given)| *given);
    if let (Some((option, _)), true) = (given, format != Format::Csv) {
        return Some((option, "CSV"));
    }
    let has_target = matches!(format, Format::Csv | Format::Npz);
    if options.target.is_some() && !has_target {
        return Some(("--target-column", "CSV or npz"));
    }
    let has_base = options.index_base != IndexBase::Auto;
    (has_base && format != Format::LibSvm).then_some(("--index-base", "LIBSVM"))
}

fn problem(path: &Path, problem: TableProblem) -> ReadError {
    let path = path.to_owned();
    ReadError::Table {
        path,
        line: 1,
        problem,
    }
}

/// Names given for a file must be those of the model, in its order.
fn check_names(
    path: &Path,
    names: Option<&[String]>,
    schema: Option<&Schema>,
    cols: usize,
) -> Result<(), ReadError> {
    let (Some(names), Some(known)) = (names, schema.and_then(|schema| schema.feature_names(cols)))
    else {
        return Ok(());
    };
    match known
        .iter()
        .zip(names)
        .find(|(known, given)| known != given)
    {
        None => Ok(()),
        Some((wanted, found)) => {
            let (wanted, found) = (wanted.clone(), format!("`{found}` in its place"));
            Err(problem(path, TableProblem::NoSuchColumn { wanted, found }))
        }
    }
}

pub(super) fn of_numbers<T>(data: Dataset<T>, schema: Schema) -> Table<T> {
    Table {
        features: data.features,
        targets: data.targets.map(TableTargets::Numbers),
        further: Vec::new(),
        schema,
        unseen: Vec::new(),
    }
}

/// The first line of a CSV file, and which field the targets are.
pub(super) fn head_of(
    text: &[u8],
    path: &Path,
    options: &ReadOptions,
    table: &TableOptions,
) -> Result<(Head, Option<usize>), ReadError> {
    if let Some((option, of)) = idle(Format::Csv, options, table) {
        let format = Format::Csv.to_string();
        return Err(problem(path, TableProblem::Idle { option, of, format }));
    }
    let located = |fault: Fault| fault.locate(path, text);
    let mut head = Head::detect(text, &options.csv).map_err(located)?;
    if let (Some(names), None) = (&table.names, &head.names) {
        name_fields(&mut head, names, (options.target.as_ref(), &table.further))
            .map_err(located)?;
    }
    let target = target(&head, options, table.schema.as_ref()).map_err(located)?;
    Ok((head, target))
}

fn of_csv<T: Element>(
    opened: &Opened,
    path: &Path,
    options: &ReadOptions,
    table: &TableOptions,
) -> Result<Table<T>, ReadError> {
    let located = |fault: Fault| fault.locate(path, &opened.content);
    let text: &[u8] = &opened.content;
    let meter = opened.meter(options);
    let (head, target) = head_of(text, path, options, table)?;
    let further = further::fields(&head, target, table).map_err(located)?;
    let known = table
        .schema
        .as_ref()
        .map(|schema| encoding_of(schema, (&head, target), options));
    let by_model = table.schema.is_some();
    let (encoding, columns) = match known {
        Some(encoding) => {
            let by_order = options.csv.header == Header::Absent;
            let columns = matched(&head, &encoding, target, table, by_order).map_err(located)?;
            (encoding, columns)
        }
        None => {
            let plain = Plain::of(&head, target).filter(|_| plain::is_wanted(table));
            if let Some(found) = plain.and_then(|plain| plain.parse(text, &meter)) {
                return Ok(found);
            }
            let meter = opened.meter(options);
            learn::encoding(text, &head, (target, &further), table, &meter).map_err(located)?
        }
    };
    let in_order = columns
        .iter()
        .flatten()
        .copied()
        .eq(0..encoding.columns.len());
    let all_used = columns.iter().flatten().count() + usize::from(target.is_some()) == head.fields;
    if by_model
        && in_order
        && all_used
        && encoding.is_plain()
        && !encoding.text_targets
        && let Some(plain) = Plain::of(&head, target)
        && let Some(found) = plain.parse::<T>(text, &meter)
    {
        let schema = table.schema.clone().unwrap_or(found.schema);
        return Ok(Table { schema, ..found });
    }
    let layout = Layout::new(&head, &encoding, &columns, target, (by_model, table.unseen))
        .with_further(&further);
    let body = head.body_at..text.len();
    let mut read = encoded((text, body), &layout, &opened.meter(options)).map_err(located)?;
    if read.features.rows() == 0 {
        return Err(located(Fault::at(
            text.len(),
            "at least one line of values",
        )));
    }
    let of = (&head, target, &further[..]);
    further::name(&mut read.further, of, table, &encoding).map_err(located)?;
    let schema = table.schema.clone();
    let schema = schema.unwrap_or_else(|| schema_of(&head, target, encoding));
    Ok(Table { schema, ..read })
}

/// Names from elsewhere become those of the features, in their order.
fn name_fields(
    head: &mut Head,
    names: &[String],
    (target, further): (Option<&Target>, &[String]),
) -> Result<(), Fault> {
    let mut targets = learn::fields(head, further)?;
    if let Some(target) = target {
        targets.push(head.field(target.name())?);
    }
    let is_feature = |field: &usize| !targets.contains(field);
    let features = (0..head.fields).filter(is_feature).count();
    if names.len() != features {
        let (expected, found) = (names.len(), features);
        return Err(head.problem(TableProblem::Count { expected, found }));
    }
    let mut names = names.iter().cloned();
    let own = |field: usize| match is_feature(&field) {
        true => names.next(),
        false => Some(String::new()),
    };
    head.names = Some((0..head.fields).filter_map(own).collect());
    Ok(())
}

/// The field of the targets: as requested, or as the model calls it.
fn target(
    head: &Head,
    options: &ReadOptions,
    schema: Option<&Schema>,
) -> Result<Option<usize>, Fault> {
    if let Some(target) = &options.target {
        return head.field(target.name()).map(Some);
    }
    let known = schema.and_then(|schema| schema.target.as_deref());
    let names = head.names.as_deref().unwrap_or(&[]);
    Ok(known.and_then(|known| names.iter().position(|name| name == known)))
}

/// How a model's columns are made from a table: as from that which it was trained on, or of its names.
fn encoding_of(
    schema: &Schema,
    (head, target): (&Head, Option<usize>),
    options: &ReadOptions,
) -> TableEncoding {
    if let Some(table) = &schema.table {
        return table.clone();
    }
    match (&schema.names, &head.names) {
        (Some(names), Some(_)) => plain(names.iter().cloned().map(|name| (Some(name), 0))),
        _ => {
            let there = head.fields - usize::from(target.is_some());
            let wanted = options.columns.wanted().unwrap_or(there);
            plain((0..wanted).map(|_| (None, 0)))
        }
    }
}

/// Some whole lines of a table.
pub(super) fn encoded<T: Element>(
    (text, lines): (&[u8], Range<usize>),
    layout: &Layout<'_>,
    meter: &Meter<'_>,
) -> Result<Table<T>, Fault> {
    meter.check_columns(layout.cols)?;
    let mut chunks = scan::parse_chunks(text, lines, meter, |bytes, start| {
        parse_chunk::<T>(bytes, start, layout)
    })?;
    let rows: usize = chunks.iter().map(|chunk| chunk.rows).sum();
    let has_target = layout.roles.iter().any(|role| matches!(role, Role::Target));
    let targets = has_target.then(|| match layout.text_targets {
        true => TableTargets::Text(
            chunks
                .iter_mut()
                .flat_map(|chunk| std::mem::take(&mut chunk.texts))
                .collect(),
        ),
        false => TableTargets::Numbers(
            chunks
                .iter()
                .flat_map(|chunk| &chunk.numbers)
                .copied()
                .collect(),
        ),
    });
    let unseen = unseen(&chunks, layout);
    let of_number = |number: usize| FurtherTarget {
        targets: chunks
            .iter()
            .flat_map(|chunk| &chunk.further[number])
            .copied()
            .collect(),
        schema: Schema::default(),
    };
    let further = (0..layout.further).map(of_number).collect();
    let features = match layout.sparse {
        true => {
            let entries: usize = chunks.iter().map(|chunk| chunk.block.indices.len()).sum();
            meter.take((rows * 8 + entries * (4 + size_of::<T>())) as u64)?;
            let blocks = chunks.into_iter().map(|chunk| chunk.block).collect();
            let csr = csr_from_blocks(layout.cols, blocks);
            Features::Sparse(
                csr.expect("rows are sorted and free of repeats, and indices below the columns"),
            )
        }
        false => {
            meter.take((rows * layout.cols * size_of::<T>()) as u64)?;
            let mut values = Vec::with_capacity(rows * layout.cols);
            chunks
                .iter()
                .for_each(|chunk| values.extend_from_slice(&chunk.dense));
            let dense = Array2::from_shape_vec((rows, layout.cols), values);
            Features::Dense(dense.expect("every line has a value for each column"))
        }
    };
    let schema = Schema::default();
    Ok(Table {
        features,
        targets,
        further,
        schema,
        unseen,
    })
}

fn unseen<T>(chunks: &[Chunk<T>], layout: &Layout<'_>) -> Vec<UnseenCount> {
    let of_field = |field: usize| {
        let rows: u64 = chunks.iter().map(|chunk| chunk.unseen[field].0).sum();
        let example = chunks
            .iter()
            .find_map(|chunk| chunk.unseen[field].1.clone())?;
        let column = layout.head.label(field);
        Some(UnseenCount {
            column,
            rows,
            example,
        })
    };
    (0..layout.roles.len()).filter_map(of_field).collect()
}
