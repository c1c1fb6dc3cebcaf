//! From the chunks of a LIBSVM text to one matrix.

use super::super::error::Fault;
use super::super::options::{Columns, IndexBase};
use super::super::scan::Meter;
use super::row::{Chunk, NO_LABEL, Notes};
use crate::matrix::{Dataset, Element, Features, csr_from_blocks};
use crate::parallel;

/// Joins the chunks, which are in file order, with the index of the first column; `end` is the length of the text, where what is
/// missing is reported.
pub(super) fn assemble<T: Element>(
    chunks: Vec<Chunk<T>>,
    end: usize,
    base: IndexBase,
    columns: Columns,
    meter: &Meter<'_>,
) -> Result<(Dataset<T>, u8), Fault> {
    let sum = |of: fn(&Chunk<T>) -> usize| chunks.iter().map(of).sum::<usize>();
    let (rows, labels) = (sum(|c| c.rows()), sum(|c| c.targets.len()));
    let notes: Vec<Notes> = chunks.iter().map(|chunk| chunk.notes).collect();
    let shape = shape(&notes, (rows, end), base, columns)?;
    let has_targets = has_targets(&notes, labels)?;
    let data = joined(chunks, &shape, has_targets, meter)?;
    Ok((data, shape.first as u8))
}

/// Chunks of a text of this shape, which are in file order, as one matrix.
pub(in super::super) fn joined<T: Element>(
    chunks: Vec<Chunk<T>>,
    &Shape { first, cols }: &Shape,
    has_targets: bool,
    meter: &Meter<'_>,
) -> Result<Dataset<T>, Fault> {
    let rows: usize = chunks.iter().map(Chunk::rows).sum();
    let nnz: usize = chunks.iter().map(|c| c.block.indices.len()).sum();
    meter.check_columns(cols)?;
    meter.take((rows * (8 + size_of::<T>()) + nnz * (4 + size_of::<T>())) as u64)?;
    let targets: Vec<T> = chunks.iter().flat_map(|c| &c.targets).copied().collect();
    let blocks = parallel::map_items(chunks, |_, chunk| chunk.into_block(first));
    let features = csr_from_blocks(cols, blocks)
        .expect("rows are sorted and free of repeats, and indices below the columns");
    Ok(Dataset {
        features: Features::Sparse(features),
        targets: has_targets.then_some(targets),
    })
}

/// What a whole text says about its columns.
pub(in super::super) struct Shape {
    /// What the first column is called.
    pub(in super::super) first: u32,
    /// How many there are.
    pub(super) cols: usize,
}

/// The columns of a text with these notes on its parts, in their order, and this many samples; `end` is its length.
pub(in super::super) fn shape(
    notes: &[Notes],
    (rows, end): (usize, usize),
    base: IndexBase,
    columns: Columns,
) -> Result<Shape, Fault> {
    if rows == 0 {
        return Err(Fault::at(end, "at least one sample"));
    }
    let first = first_index(notes, base)?;
    let cols = count_columns(notes, first, columns, end)?;
    Ok(Shape { first, cols })
}

/// Whether samples have labels, all of them or none; `labels` is how many do.
pub(in super::super) fn has_targets(notes: &[Notes], labels: usize) -> Result<bool, Fault> {
    let unlabelled = notes.iter().find_map(|notes| notes.unlabelled_at);
    match unlabelled {
        Some(at) if labels > 0 => Err(Fault::at(at, NO_LABEL)),
        Some(_) => Ok(false),
        None => Ok(true),
    }
}

/// What the first column is called in this file.
fn first_index(notes: &[Notes], base: IndexBase) -> Result<u32, Fault> {
    let zero_at = notes.iter().find_map(|notes| notes.zero_at);
    match (base, zero_at) {
        (IndexBase::One, Some(at)) => Err(Fault::at(
            at,
            "a feature index of at least 1 (the file is read with indices from 1)",
        )),
        (IndexBase::One, None) | (IndexBase::Auto, None) => Ok(1),
        (IndexBase::Zero, _) | (IndexBase::Auto, Some(_)) => Ok(0),
    }
}

fn count_columns(
    notes: &[Notes],
    first: u32,
    columns: Columns,
    end: usize,
) -> Result<usize, Fault> {
    let all = notes.iter().copied().reduce(Notes::and);
    let Some((largest, at)) = all.and_then(|all| all.largest) else {
        return columns
            .wanted()
            .filter(|&cols| cols > 0)
            .ok_or_else(|| Fault::at(end, "an index:value pair in at least one sample"));
    };
    let found = (largest - first) as usize + 1;
    columns.resolve(found).map_err(|wanted| {
        let end = wanted as u64 + u64::from(first);
        Fault::at(
            at,
            format!("feature indices below {end}, for {wanted} columns"),
        )
    })
}
