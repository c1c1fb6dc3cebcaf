//! The transpose of a sparse matrix, in rows of its own.

use crate::matrix::{CsrMatrix, Element, csr_from_parts};
use crate::parallel;

/// Entries that one task takes at least.
const PER_TASK: usize = 1 << 18;
/// Stretches of columns that are worked on apart, at most.
const STRETCHES: usize = 1_024;

/// Row, column in its stretch, value.
type Entry<T> = (u32, u32, T);

/// The rows of Xᵀ, which are the columns of `x`, each with its entries in the order of the rows of `x`; made in
/// parallel, with two more copies of the entries at the time.
///
/// ```
/// use warpfuse::layout::transpose::transposed;
/// use warpfuse::matrix::csr_from_parts;
/// let x = csr_from_parts((2, 3), vec![0, 2, 3], vec![0, 2, 2], vec![1.0, 2.0, 3.0])?;
/// let t = transposed(&x);
/// assert_eq!((t.shape(), t.indices(), t.data()), ((3, 2), &[0, 0, 1][..], &[1.0, 2.0, 3.0][..]));
/// # Ok::<(), warpfuse::matrix::CsrError>(())
/// ```
///
/// # Panics
/// When `x` has more rows than 32 bits count.
pub fn transposed<T: Element>(x: &CsrMatrix<T>) -> CsrMatrix<T> {
    let width = x.cols().div_ceil(STRETCHES).max(1);
    let tasks = scatter(x, width);
    let (mut offsets, mut indices) = (vec![0; x.cols() + 1], vec![0; x.nnz()]);
    let mut values = vec![T::from_f64(0.0); x.nnz()];
    let (mut rest, mut rest_values) = (&mut indices[..], &mut values[..]);
    let mut stretches = Vec::new();
    let mut first = 0;
    for (number, ends) in offsets[1..].chunks_mut(width).enumerate() {
        let count = tasks.iter().map(|task| task[number].len()).sum();
        let (own, after) = rest.split_at_mut(count);
        let (own_values, values_after) = rest_values.split_at_mut(count);
        (rest, rest_values) = (after, values_after);
        stretches.push((
            number,
            Stretch {
                first,
                ends,
                indices: own,
                values: own_values,
            },
        ));
        first += count as u64;
    }
    parallel::for_each_item(stretches, |_, (number, stretch)| {
        stretch.fill(|| tasks.iter().flat_map(|task| &task[number]));
    });
    csr_from_parts((x.cols(), x.rows()), offsets, indices, values)
        .expect("the entries of a valid matrix, sorted, and rows that 32 bits count")
}

/// The entries of each task's rows, by stretch of columns.
fn scatter<T: Element>(x: &CsrMatrix<T>, width: usize) -> Vec<Vec<Vec<Entry<T>>>> {
    let offsets = x.proper_indptr();
    let most = 4 * rayon::current_num_threads();
    let tasks = x.nnz().div_ceil(PER_TASK).clamp(1, most) as u64;
    let cut = |task| offsets.partition_point(|&offset| offset < x.nnz() as u64 * task / tasks);
    let cuts: Vec<usize> = (0..tasks).map(cut).chain([x.rows()]).collect();
    let of_task = |task: usize| {
        let mut stretches = vec![Vec::new(); x.cols().div_ceil(width)];
        for row in cuts[task]..cuts[task + 1] {
            for i in offsets[row] as usize..offsets[row + 1] as usize {
                let column = x.indices()[i] as usize;
                let entry = (row as u32, (column % width) as u32, x.data()[i]);
                stretches[column / width].push(entry);
            }
        }
        stretches
    };
    parallel::map(cuts.len() - 1, of_task)
}

/// Some columns of X.
struct Stretch<'a, T> {
    /// Entries of the columns before.
    first: u64,
    /// Where each of the columns ends.
    ends: &'a mut [u64],
    indices: &'a mut [u32],
    values: &'a mut [T],
}

impl<'e, T: Element + 'e> Stretch<'_, T> {
    /// Sorts entries by column, those of one column as they come.
    fn fill<E: Iterator<Item = &'e Entry<T>>>(self, entries: impl Fn() -> E) {
        let mut next = vec![0; self.ends.len() + 1];
        for (_, column, _) in entries() {
            next[*column as usize + 1] += 1;
        }
        for column in 0..self.ends.len() {
            next[column + 1] += next[column];
            self.ends[column] = self.first + next[column + 1] as u64;
        }
        for (row, column, value) in entries() {
            let at = &mut next[*column as usize];
            self.indices[*at] = *row;
            self.values[*at] = *value;
            *at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of 0 to 12 entries, now and then a full one.
    fn matrix(rows: usize, cols: usize) -> CsrMatrix<f64> {
        let (mut offsets, mut indices) = (vec![0], Vec::new());
        for row in 0..rows {
            let count = match row % 50 {
                49 => cols,
                _ => (row * 7 % 13).min(cols),
            };
            let step = cols / count.max(1);
            indices.extend((0..count).map(|i| (i * step + row % step.max(1)) as u32));
            offsets.push(indices.len() as u64);
        }
        let values = (1..=indices.len()).map(|i| i as f64).collect();
        csr_from_parts((rows, cols), offsets, indices, values).expect("columns ascend")
    }

    #[test]
    fn it_is_what_sprs_makes() {
        for (rows, cols) in [(1, 1), (0, 4), (4, 0), (100, 7), (60, 5_000), (200_000, 30)] {
            let x = matrix(rows, cols);
            let expected = x.transpose_view().to_csr();
            assert_eq!(transposed(&x).view(), expected.view(), "{rows} x {cols}");
        }
    }

    #[test]
    fn twice_is_never() {
        let x = matrix(300, 2_500);
        assert_eq!(transposed(&transposed(&x)), x);
    }
}
