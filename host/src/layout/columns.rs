//! Some columns of a sparse matrix, as a matrix of their own.

use std::ops::Range;

use crate::matrix::{CsrMatrix, Element, csr_from_parts};
use crate::parallel;

/// Entries that one task takes at least.
const PER_TASK: usize = 1 << 18;

/// The rows of `x` with the entries of these columns alone, which are numbered from 0; made in parallel.
///
/// ```
/// use warpfuse::layout::columns::columns_of;
/// use warpfuse::matrix::csr_from_parts;
/// let x = csr_from_parts((2, 3), vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0])?;
/// let part = columns_of(&x, 1..3);
/// assert_eq!((part.shape(), part.indices(), part.data()), ((2, 2), &[1, 0][..], &[2.0, 3.0][..]));
/// # Ok::<(), warpfuse::matrix::CsrError>(())
/// ```
///
/// # Panics
/// When `x` has no such columns.
pub fn columns_of<T: Element>(x: &CsrMatrix<T>, columns: Range<usize>) -> CsrMatrix<T> {
    assert!(
        columns.start <= columns.end && columns.end <= x.cols(),
        "columns are those of the matrix"
    );
    let offsets = x.proper_indptr();
    let tasks = x
        .nnz()
        .div_ceil(PER_TASK)
        .clamp(1, 4 * rayon::current_num_threads()) as u64;
    let cut = |task| offsets.partition_point(|&offset| offset < x.nnz() as u64 * task / tasks);
    let cuts: Vec<usize> = (0..tasks).map(cut).chain([x.rows()]).collect();
    let of_task = |task: usize| {
        let (mut lengths, mut indices, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for row in cuts[task]..cuts[task + 1] {
            let row = offsets[row] as usize..offsets[row + 1] as usize;
            let of_row = &x.indices()[row.clone()];
            let before = |column: usize| of_row.partition_point(|own| (*own as usize) < column);
            let own = before(columns.start)..before(columns.end);
            lengths.push(own.len() as u64);
            indices.extend(
                of_row[own.clone()]
                    .iter()
                    .map(|own| own - columns.start as u32),
            );
            values.extend_from_slice(&x.data()[row][own]);
        }
        (lengths, indices, values)
    };
    let (mut ends, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for (lengths, own, own_values) in parallel::map(cuts.len() - 1, of_task) {
        let mut end = indices.len() as u64;
        ends.extend(lengths.iter().map(|length| {
            end += length;
            end
        }));
        indices.extend(own);
        values.extend(own_values);
    }
    csr_from_parts((x.rows(), columns.len()), ends, indices, values)
        .expect("rows of a valid matrix, of which some entries are left out")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_side_by_side_are_the_matrix() {
        // Rows of 0 to 6 entries.
        let (rows, cols) = (100_000, 50);
        let (mut offsets, mut indices) = (vec![0], Vec::new());
        for row in 0..rows {
            indices.extend((0..row % 7).map(|i| (i * 7 + row % 5) as u32));
            offsets.push(indices.len() as u64);
        }
        let values: Vec<f64> = (0..indices.len()).map(|i| i as f64).collect();
        let x = csr_from_parts((rows, cols), offsets, indices, values).expect("columns ascend");
        for cuts in [&[0, 50][..], &[0, 0, 17, 50, 50], &[0, 1, 2, 40, 50]] {
            let parts: Vec<_> = cuts
                .windows(2)
                .map(|cut| columns_of(&x, cut[0]..cut[1]))
                .collect();
            let mut entries: Vec<(u32, u32, f64)> = Vec::new();
            for (part, first) in parts.iter().zip(cuts) {
                assert_eq!(part.rows(), rows);
                entries.extend(part.iter().map(|(v, (i, j))| (i, j + *first as u32, *v)));
            }
            entries.sort_unstable_by_key(|entry| (entry.0, entry.1));
            let expected: Vec<_> = x.iter().map(|(v, (i, j))| (i, j, *v)).collect();
            assert_eq!(entries, expected, "{cuts:?}");
        }
    }
}
