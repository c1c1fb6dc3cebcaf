//! From a list of entries to CSR: counting sort by row, then each row sorted by column.

use std::ops::Range;

use super::super::error::Fault;
use super::super::scan::Meter;
use super::coordinate::Chunk;
use super::header::{Header, Symmetry};
use crate::matrix::{CsrMatrix, Element, csr_from_parts};
use crate::parallel;

/// Rows that one task sorts.
const ROWS_PER_TASK: usize = 4096;

/// Joins the chunks, which are in file order, into a matrix; entries given twice are added up in
/// the order of the file.
pub(super) fn assemble<T: Element>(
    chunks: Vec<Chunk<T>>,
    header: &Header,
    meter: &Meter<'_>,
) -> Result<CsrMatrix<T>, Fault> {
    meter.take(16 * header.rows as u64)?;
    let mut offsets = count(&chunks, header);
    let nnz = offsets[header.rows] as usize;
    meter.take((nnz * (4 + size_of::<T>())) as u64)?;
    let (mut indices, mut values) = scatter(chunks, header, &offsets);
    sort_rows(&mut offsets, &mut indices, &mut values);
    if parallel::position(&values, |value| !value.is_finite()).is_some() {
        let expected = "entries of the same place whose sum is finite";
        return Err(Fault::at(header.body_at, expected));
    }
    let shape = (header.rows, header.cols);
    Ok(csr_from_parts(shape, offsets, indices, values)
        .expect("indices are checked against the header, rows sorted and free of repeats"))
}

/// Visits every entry of the full matrix, in file order, mirror images after their originals.
fn for_each_entry<T: Element>(
    chunk: &Chunk<T>,
    symmetry: Symmetry,
    mut visit: impl FnMut(u32, u32, T),
) {
    for ((&row, &col), &value) in chunk.rows.iter().zip(&chunk.cols).zip(&chunk.values) {
        visit(row, col, value);
        match symmetry {
            Symmetry::Symmetric if row != col => visit(col, row, value),
            Symmetry::SkewSymmetric => visit(col, row, -value),
            _ => {}
        }
    }
}

/// Row offsets of the full matrix.
fn count<T: Element>(chunks: &[Chunk<T>], header: &Header) -> Vec<u64> {
    let mut offsets = vec![0_u64; header.rows + 1];
    for chunk in chunks {
        for_each_entry(chunk, header.symmetry, |row, _, _| {
            offsets[row as usize + 1] += 1
        });
    }
    for row in 0..header.rows {
        offsets[row + 1] += offsets[row];
    }
    offsets
}

/// Puts every entry into its row, in file order.
fn scatter<T: Element>(
    chunks: Vec<Chunk<T>>,
    header: &Header,
    offsets: &[u64],
) -> (Vec<u32>, Vec<T>) {
    let nnz = offsets[header.rows] as usize;
    let (mut indices, mut values) = (vec![0; nnz], vec![T::default(); nnz]);
    let mut next = offsets[..header.rows].to_vec();
    for chunk in chunks {
        for_each_entry(&chunk, header.symmetry, |row, col, value| {
            let place = next[row as usize] as usize;
            (indices[place], values[place]) = (col, value);
            next[row as usize] += 1;
        });
    }
    (indices, values)
}

/// Some consecutive rows and what they hold.
struct Task<'a, T> {
    rows: Range<usize>,
    indices: &'a mut [u32],
    values: &'a mut [T],
}

/// Sorts the rows by column and adds up repeated places; offsets and arrays shrink to match.
fn sort_rows<T: Element>(offsets: &mut [u64], indices: &mut Vec<u32>, values: &mut Vec<T>) {
    let tasks = split(offsets, indices, values);
    let lengths = parallel::map_items(tasks, |_, task| task.sort(offsets));
    if lengths.iter().flatten().map(|&l| l as u64).sum::<u64>() < indices.len() as u64 {
        compact(offsets, indices, values, lengths.into_iter().flatten());
    }
}

fn split<'a, T>(
    offsets: &[u64],
    mut indices: &'a mut [u32],
    mut values: &'a mut [T],
) -> Vec<Task<'a, T>> {
    let rows = offsets.len() - 1;
    let mut tasks = Vec::new();
    for start in (0..rows).step_by(ROWS_PER_TASK) {
        let end = rows.min(start + ROWS_PER_TASK);
        let entries = (offsets[end] - offsets[start]) as usize;
        tasks.push(Task {
            rows: start..end,
            indices: indices
                .split_off_mut(..entries)
                .expect("offsets end at nnz"),
            values: values.split_off_mut(..entries).expect("offsets end at nnz"),
        });
    }
    tasks
}

impl<T: Element> Task<'_, T> {
    /// Sorts each row; returns how many entries of each are left at its front.
    fn sort(self, offsets: &[u64]) -> Vec<usize> {
        let base = offsets[self.rows.start];
        let mut scratch = Vec::new();
        self.rows
            .map(|row| {
                let of_row = (offsets[row] - base) as usize..(offsets[row + 1] - base) as usize;
                let (indices, values) =
                    (&mut self.indices[of_row.clone()], &mut self.values[of_row]);
                if indices.is_sorted_by(|a, b| a < b) {
                    return indices.len();
                }
                sort_row(indices, values, &mut scratch)
            })
            .collect()
    }
}

/// Sorts one row, adds up repeated columns, and returns how many are left.
fn sort_row<T: Element>(
    indices: &mut [u32],
    values: &mut [T],
    scratch: &mut Vec<(u32, T)>,
) -> usize {
    scratch.clear();
    scratch.extend(indices.iter().copied().zip(values.iter().copied()));
    // Stable: repeated places are added up in the order of the file.
    scratch.sort_by_key(|&(col, _)| col);
    let mut left = 0;
    for &(col, value) in scratch.iter() {
        if left > 0 && indices[left - 1] == col {
            values[left - 1] += value;
        } else {
            (indices[left], values[left]) = (col, value);
            left += 1;
        }
    }
    left
}

/// Closes the gaps that added-up entries have left at the ends of rows.
fn compact<T: Element>(
    offsets: &mut [u64],
    indices: &mut Vec<u32>,
    values: &mut Vec<T>,
    lengths: impl Iterator<Item = usize>,
) {
    let mut end = 0;
    for (row, length) in lengths.enumerate() {
        let start = offsets[row] as usize;
        indices.copy_within(start..start + length, end);
        values.copy_within(start..start + length, end);
        offsets[row] = end as u64;
        end += length;
    }
    if let Some(last) = offsets.last_mut() {
        *last = end as u64;
    }
    indices.truncate(end);
    values.truncate(end);
}
