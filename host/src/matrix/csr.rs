//! Building a CSR matrix from its three arrays, checked in parallel.

use rayon::prelude::*;
use sprs::CompressedStorage;

use super::{CsrMatrix, Element, SharedSlice};

/// Rows that one task checks: long enough to hide what a task costs, short enough to spread.
const ROWS_PER_TASK: usize = 16 * 1024;

/// Why three arrays are no CSR matrix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CsrError {
    /// The number of columns is beyond what a 32-bit index can name.
    #[error("expected at most {max} columns, found {found}", max = u32::MAX)]
    TooManyColumns {
        /// Columns requested.
        found: usize,
    },
    /// The row offsets are not one more than the rows.
    #[error("expected one row offset more than {rows} rows, found {found} offsets")]
    OffsetCount {
        /// Rows of the matrix.
        rows: usize,
        /// Offsets given.
        found: usize,
    },
    /// The offsets do not start at zero or do not end at the number of indices and values.
    #[error(
        "expected offsets from 0 to the number of entries, found {first} to {last} \
         with {indices} indices and {values} values"
    )]
    Ends {
        /// First offset.
        first: u64,
        /// Last offset.
        last: u64,
        /// Number of column indices.
        indices: usize,
        /// Number of values.
        values: usize,
    },
    /// A row ends before it starts, or beyond the entries.
    #[error(
        "expected row offsets that ascend to the number of entries, but those of row {row} do not"
    )]
    OffsetOrder {
        /// The first such row, from 0.
        row: usize,
    },
    /// The indices of a row do not strictly ascend.
    #[error("expected strictly ascending column indices, but those of row {row} are not")]
    IndexOrder {
        /// The first such row, from 0.
        row: usize,
    },
    /// A column index is not below the number of columns.
    #[error("expected column indices below {cols}, but row {row} has {index}")]
    IndexRange {
        /// The first such row, from 0.
        row: usize,
        /// The offending index, from 0.
        index: u32,
        /// Columns of the matrix.
        cols: usize,
    },
}

/// Builds a `rows` × `cols` CSR matrix after a full check of its structure, in parallel.
///
/// `offsets` has `rows + 1` entries; row i takes `offsets[i]..offsets[i + 1]` of `indices` and
/// `values`. Values are not looked at.
///
/// # Errors
///
/// [`CsrError`] names the first row that breaks a rule.
///
/// ```
/// use warpfuse::matrix::{csr_from_parts, CsrError};
/// let x = csr_from_parts((2, 3), vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0])?;
/// assert_eq!(x.nnz(), 3);
/// let bad = csr_from_parts((1, 3), vec![0, 2], vec![2, 2], vec![1.0, 2.0]);
/// assert_eq!(bad.unwrap_err(), CsrError::IndexOrder { row: 0 });
/// # Ok::<(), CsrError>(())
/// ```
pub fn csr_from_parts<T: Element>(
    shape: (usize, usize),
    offsets: Vec<u64>,
    indices: Vec<u32>,
    values: Vec<T>,
) -> Result<CsrMatrix<T>, CsrError> {
    csr_from_shared(shape, offsets.into(), indices.into(), values.into())
}

/// [`csr_from_parts`] of arrays that are shared: nothing is copied.
///
/// # Errors
///
/// As [`csr_from_parts`].
pub fn csr_from_shared<T: Element>(
    shape: (usize, usize),
    offsets: SharedSlice<u64>,
    indices: SharedSlice<u32>,
    values: SharedSlice<T>,
) -> Result<CsrMatrix<T>, CsrError> {
    check(shape, &offsets, &indices, values.len())?;
    // SAFETY: the check above establishes every invariant that sprs documents: rows + 1 offsets
    // that ascend from 0 to nnz, as many values as indices, and in each row strictly ascending
    // indices below the number of columns, which fits the index type.
    Ok(
        unsafe {
            CsrMatrix::new_unchecked(CompressedStorage::CSR, shape, offsets, indices, values)
        },
    )
}

/// `x` with other values in its entries: `value` of the row and of what is there.
///
/// ```
/// use warpfuse::matrix::{csr_from_parts, with_entries};
/// let x = csr_from_parts((2, 3), vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0])?;
/// assert_eq!(with_entries(&x, |row, value| value + row as f64).data(), [1.0, 2.0, 4.0]);
/// # Ok::<(), warpfuse::matrix::CsrError>(())
/// ```
pub fn with_entries<T: Element>(
    x: &CsrMatrix<T>,
    mut value: impl FnMut(usize, T) -> T,
) -> CsrMatrix<T> {
    let mut values = Vec::with_capacity(x.nnz());
    for (row, entries) in x.outer_iterator().enumerate() {
        values.extend(entries.data().iter().map(|entry| value(row, *entry)));
    }
    let (shape, storage) = (x.shape(), x.storage());
    let (offsets, indices, _) = x.clone().into_raw_storage();
    // SAFETY: shape, offsets and indices are those of a valid matrix, and each entry has given a value.
    unsafe { CsrMatrix::new_unchecked(storage, shape, offsets, indices, values.into()) }
}

/// All rules of a matrix, of offsets in either width.
pub(super) fn check<O: Copy + Into<u64> + Sync>(
    shape: (usize, usize),
    offsets: &[O],
    indices: &[u32],
    values: usize,
) -> Result<(), CsrError> {
    check_ends(shape, offsets, indices.len(), values)?;
    check_rows(shape.1, offsets, indices)
}

fn check_ends<O: Copy + Into<u64>>(
    (rows, cols): (usize, usize),
    offsets: &[O],
    indices: usize,
    values: usize,
) -> Result<(), CsrError> {
    if u32::try_from(cols).is_err() {
        return Err(CsrError::TooManyColumns { found: cols });
    }
    let (&[first, ..], &[.., last]) = (offsets, offsets) else {
        return Err(CsrError::OffsetCount { rows, found: 0 });
    };
    if offsets.len() - 1 != rows {
        return Err(CsrError::OffsetCount {
            rows,
            found: offsets.len(),
        });
    }
    let (first, last) = (first.into(), last.into());
    if first != 0 || last != indices as u64 || indices != values {
        return Err(CsrError::Ends {
            first,
            last,
            indices,
            values,
        });
    }
    Ok(())
}

/// Checks all rows; of several faults the one in the first row is reported.
fn check_rows<O: Copy + Into<u64> + Sync>(
    cols: usize,
    offsets: &[O],
    indices: &[u32],
) -> Result<(), CsrError> {
    let rows = offsets.len() - 1;
    let fault = (0..rows.div_ceil(ROWS_PER_TASK))
        .into_par_iter()
        .find_map_first(|task| {
            let start = task * ROWS_PER_TASK;
            (start..rows.min(start + ROWS_PER_TASK)).find_map(|row| {
                let ends = [offsets[row].into(), offsets[row + 1].into()];
                check_row(row, cols, ends, indices).err()
            })
        });
    fault.map_or(Ok(()), Err)
}

#[inline]
fn check_row(row: usize, cols: usize, ends: [u64; 2], indices: &[u32]) -> Result<(), CsrError> {
    // No slice: the row ends before it starts, or beyond the entries (then a later row descends,
    // since the last offset is known to be the number of entries).
    let of_row = indices
        .get(ends[0] as usize..ends[1] as usize)
        .ok_or(CsrError::OffsetOrder { row })?;
    if !of_row.is_sorted_by(|a, b| a < b) {
        return Err(CsrError::IndexOrder { row });
    }
    match of_row.last() {
        Some(&index) if index as usize >= cols => Err(CsrError::IndexRange { row, index, cols }),
        _ => Ok(()),
    }
}
