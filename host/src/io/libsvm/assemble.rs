//! From the chunks of a LIBSVM text to one matrix.

use rayon::prelude::*;

use super::super::error::Fault;
use super::super::options::{Columns, IndexBase};
use super::super::scan::Meter;
use super::row::Chunk;
use crate::matrix::{Dataset, Element, Features, csr_from_parts};

/// Joins the chunks, which are in file order; `end` is the length of the text, where what is
/// missing is reported.
pub(super) fn assemble<T: Element>(
    chunks: Vec<Chunk<T>>,
    end: usize,
    base: IndexBase,
    columns: Columns,
    meter: &Meter<'_>,
) -> Result<Dataset<T>, Fault> {
    let rows: usize = chunks.iter().map(|c| c.row_ends.len()).sum();
    let nnz: usize = chunks.iter().map(|c| c.indices.len()).sum();
    if rows == 0 {
        return Err(Fault::at(end, "at least one sample"));
    }
    let first = first_index(&chunks, base)?;
    let cols = count_columns(&chunks, first, columns, end)?;
    meter.check_columns(cols)?;
    meter.take((rows * (8 + size_of::<T>()) + nnz * (4 + size_of::<T>())) as u64)?;

    let mut joined = Joined {
        offsets: vec![0; rows + 1],
        targets: vec![T::default(); rows],
        indices: vec![0; nnz],
        values: vec![T::default(); nnz],
    };
    joined.fill(chunks, first);
    let features = csr_from_parts((rows, cols), joined.offsets, joined.indices, joined.values)
        .expect("rows are sorted and free of repeats, and indices below the columns");
    Ok(Dataset {
        features: Features::Sparse(features),
        targets: Some(joined.targets),
    })
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

struct Joined<T> {
    offsets: Vec<u64>,
    targets: Vec<T>,
    indices: Vec<u32>,
    values: Vec<T>,
}

/// The places of one chunk in the joined arrays.
struct Slot<'a, T> {
    entries_before: u64,
    offsets: &'a mut [u64],
    targets: &'a mut [T],
    indices: &'a mut [u32],
    values: &'a mut [T],
}

impl<T: Element> Joined<T> {
    /// Copies the chunks to their places in parallel, and drops each as soon as it is copied.
    fn fill(&mut self, chunks: Vec<Chunk<T>>, first: u32) {
        let mut slots = Vec::with_capacity(chunks.len());
        let mut offsets = &mut self.offsets[1..];
        let mut targets = &mut self.targets[..];
        let (mut indices, mut values) = (&mut self.indices[..], &mut self.values[..]);
        let mut entries_before = 0;
        for chunk in &chunks {
            let (rows, entries) = (chunk.row_ends.len(), chunk.indices.len());
            slots.push(Slot {
                entries_before,
                offsets: offsets
                    .split_off_mut(..rows)
                    .expect("summed over the chunks"),
                targets: targets
                    .split_off_mut(..rows)
                    .expect("summed over the chunks"),
                indices: indices
                    .split_off_mut(..entries)
                    .expect("summed over the chunks"),
                values: values
                    .split_off_mut(..entries)
                    .expect("summed over the chunks"),
            });
            entries_before += entries as u64;
        }
        slots
            .into_par_iter()
            .zip(chunks)
            .for_each(|(slot, chunk)| slot.fill(&chunk, first));
    }
}

impl<T: Element> Slot<'_, T> {
    fn fill(self, chunk: &Chunk<T>, first: u32) {
        for (offset, end) in self.offsets.iter_mut().zip(&chunk.row_ends) {
            *offset = self.entries_before + end;
        }
        for (index, written) in self.indices.iter_mut().zip(&chunk.indices) {
            *index = written - first;
        }
        self.targets.copy_from_slice(&chunk.targets);
        self.values.copy_from_slice(&chunk.values);
    }
}
