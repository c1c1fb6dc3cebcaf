//! Entries of each column.

use std::sync::atomic::{AtomicU32, Ordering};

use super::{CsrMatrix, Element, Features, Storage};
use crate::parallel;

/// Entries that one task looks at.
const CHUNK: usize = 1 << 18;
/// Entries for each column of a table of counts that pay for clearing and adding it.
const ENTRIES_PER_COUNT: usize = 2;
/// Columns whose counts one task adds.
const COLUMNS: usize = 1 << 14;

/// Stored entries of each column of `features`, n of them: those of a dense matrix are its rows.
///
/// ```
/// use ndarray::array;
/// use warpfuse::matrix::{Features, column_frequencies};
/// assert_eq!(column_frequencies(&Features::Dense(array![[1.0, 2.0], [0.0, 3.0]])), [2, 2]);
/// ```
pub fn column_frequencies<T: Element>(features: &Features<T>) -> Vec<u64> {
    match features.storage() {
        Storage::Sparse(x) => frequencies(x),
        Storage::Dense(x) => vec![x.nrows() as u64; x.ncols()],
    }
}

/// Entries of each column of `x`, counted by all cores: with a table for each of them, or, where columns have too few
/// entries to pay for that, in one table.
///
/// ```
/// use warpfuse::matrix::{csr_from_parts, frequencies};
/// let x = csr_from_parts((2, 3), vec![0, 2, 3], vec![0, 2, 2], vec![1.0, 2.0, 3.0])?;
/// assert_eq!(frequencies(&x), [1, 0, 2]);
/// # Ok::<(), warpfuse::matrix::CsrError>(())
/// ```
pub fn frequencies<T: Element>(x: &CsrMatrix<T>) -> Vec<u64> {
    counted(x.indices(), (x.rows(), x.cols()))
}

/// Entries of each column in these rows of `x`.
pub(crate) fn frequencies_in<T: Element>(x: &CsrMatrix<T>, rows: &[usize]) -> Vec<u64> {
    let offsets = x.indptr();
    let offsets = offsets.raw_storage();
    let row = |row: &usize| &x.indices()[offsets[*row] as usize..offsets[*row + 1] as usize];
    let indices: Vec<u32> = rows.iter().flat_map(row).copied().collect();
    counted(&indices, (rows.len(), x.cols()))
}

/// How often each column is among the indices of rows.
pub(super) fn counted(indices: &[u32], (rows, cols): (usize, usize)) -> Vec<u64> {
    let threads = rayon::current_num_threads();
    let paid = indices.len() / (ENTRIES_PER_COUNT * cols).max(1);
    // A column has at most one entry in a row.
    if paid < threads && u32::try_from(rows).is_ok() {
        return in_one_table(indices, cols);
    }
    let of_task = |indices: &[u32]| {
        let mut counts = vec![0_u32; cols];
        for column in indices {
            counts[*column as usize] += 1;
        }
        counts
    };
    // Counts of one table fit its numbers.
    let share = indices.len().div_ceil(threads).clamp(1, u32::MAX as usize);
    let of_task = |number| of_task(parallel::chunk(indices, share, number));
    let tables: Vec<Vec<u32>> = parallel::map(indices.len().div_ceil(share), of_task);
    let mut total = vec![0_u64; cols];
    parallel::for_each_item(total.chunks_mut(COLUMNS), |number, total| {
        for table in &tables {
            let counts = &table[number * COLUMNS..][..total.len()];
            let both = total.iter_mut().zip(counts);
            both.for_each(|(total, count)| *total += u64::from(*count));
        }
    });
    total
}

fn in_one_table(indices: &[u32], cols: usize) -> Vec<u64> {
    let chunks = indices.len().div_ceil(CHUNK);
    let chunk = |number| parallel::chunk(indices, CHUNK, number).iter();
    let counts = counted_together(cols, chunks, chunk);
    counts.into_iter().map(u64::from).collect()
}

/// How often each column is in `chunks` of indices, in one table for all threads.
pub(crate) fn counted_together<'a, I: Iterator<Item = &'a u32>>(
    cols: usize,
    chunks: usize,
    chunk: impl Fn(usize) -> I + Sync,
) -> Vec<u32> {
    let table: Vec<AtomicU32> = (0..cols).map(|_| AtomicU32::new(0)).collect();
    parallel::for_each(chunks, |number| {
        let mut counts = OwnCounts::beside(&table);
        chunk(number).for_each(|column| counts.add(*column));
        counts.flush();
    });
    table.into_iter().map(AtomicU32::into_inner).collect()
}

/// Counts of the columns that a thread has seen lately, each added to the table of all threads when another column takes its
/// place. Where many entries are in few columns, threads that add each of them to one table wait for each other: 16 of them
/// took 70 ms for 17 million entries whose columns follow Zipf's law.
struct OwnCounts<'a> {
    table: &'a [AtomicU32],
    /// A column and its count for each place.
    own: [(u32, u32); PLACES],
}

/// A power of two; they fit the L1 cache.
const PLACES: usize = 1 << 11;

impl<'a> OwnCounts<'a> {
    fn beside(table: &'a [AtomicU32]) -> Self {
        OwnCounts {
            table,
            own: [(0, 0); PLACES],
        }
    }

    fn add(&mut self, column: u32) {
        // Neighbours and columns at even distances have places of their own.
        let place = column.wrapping_mul(0x9e37_79b9) >> (u32::BITS - PLACES.ilog2());
        let own = &mut self.own[place as usize];
        if own.0 == column {
            own.1 += 1;
        } else {
            add(self.table, *own);
            *own = (column, 1);
        }
    }

    fn flush(&self) {
        self.own.iter().for_each(|own| add(self.table, *own));
    }
}

fn add(table: &[AtomicU32], (column, count): (u32, u32)) {
    if count > 0 {
        table[column as usize].fetch_add(count, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::csr_from_parts;

    #[test]
    fn both_ways_of_counting_agree() {
        for cols in [3, 50_000] {
            let indices: Vec<u32> = (0..60_000).map(|i| (i * i % cols) as u32).collect();
            let offsets = (0..=60_000).collect();
            let values = vec![1.0; indices.len()];
            let mut expected = vec![0; cols];
            indices.iter().for_each(|j| expected[*j as usize] += 1);
            let x = csr_from_parts((60_000, cols), offsets, indices, values).expect("a matrix");
            assert_eq!(frequencies(&x), expected);
            assert_eq!(in_one_table(x.indices(), cols), expected);
            let rows: Vec<usize> = (0..60_000).collect();
            assert_eq!(frequencies_in(&x, &rows), expected);
            assert_eq!(frequencies_in(&x, &rows[7..8])[49 % cols], 1);
        }
    }
}
