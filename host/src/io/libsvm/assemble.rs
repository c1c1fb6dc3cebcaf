//! From the chunks of a LIBSVM text to one matrix.

use super::super::error::Fault;
use super::super::options::{Columns, IndexBase};
use super::super::scan::Meter;
use super::row::{Chunk, NO_LABEL};
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
    let rows: usize = chunks.iter().map(|c| c.block.row_ends.len()).sum();
    let nnz: usize = chunks.iter().map(|c| c.block.indices.len()).sum();
    if rows == 0 {
        return Err(Fault::at(end, "at least one sample"));
    }
    let first = first_index(&chunks, base)?;
    let cols = count_columns(&chunks, first, columns, end)?;
    meter.check_columns(cols)?;
    meter.take((rows * (8 + size_of::<T>()) + nnz * (4 + size_of::<T>())) as u64)?;

    let targets: Vec<T> = chunks.iter().flat_map(|c| &c.targets).copied().collect();
    let unlabelled = chunks.iter().find_map(|chunk| chunk.unlabelled_at);
    if let (Some(at), false) = (unlabelled, targets.is_empty()) {
        return Err(Fault::at(at, NO_LABEL));
    }
    let blocks = parallel::map_items(chunks, |_, chunk| chunk.into_block(first));
    let features = csr_from_blocks(cols, blocks)
        .expect("rows are sorted and free of repeats, and indices below the columns");
    let data = Dataset {
        features: Features::Sparse(features),
        targets: unlabelled.is_none().then_some(targets),
    };
    Ok((data, first as u8))
}

/// What the first column is called in this file.
fn first_index<T>(chunks: &[Chunk<T>], base: IndexBase) -> Result<u32, Fault> {
    let zero_at = chunks.iter().find_map(|chunk| chunk.zero_at);
    match (base, zero_at) {
        (IndexBase::One, Some(at)) => Err(Fault::at(
            at,
            "a feature index of at least 1 (the file is read with indices from 1)",
        )),
        (IndexBase::One, None) | (IndexBase::Auto, None) => Ok(1),
        (IndexBase::Zero, _) | (IndexBase::Auto, Some(_)) => Ok(0),
    }
}

fn count_columns<T>(
    chunks: &[Chunk<T>],
    first: u32,
    columns: Columns,
    end: usize,
) -> Result<usize, Fault> {
    let largest = chunks.iter().filter_map(|chunk| chunk.largest);
    // The first of equals, so that the place does not depend on how the text was cut.
    let largest = largest.reduce(|a, b| if b.0 > a.0 { b } else { a });
    let Some((largest, at)) = largest else {
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
