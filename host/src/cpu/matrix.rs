//! Borrowed matrices: what the passes run over.

use thiserror::Error;

/// Why slices do not form a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// A CSR matrix has one more offset than rows, hence at least one.
    #[error("no row offsets: a matrix of m rows needs m + 1, starting with 0")]
    NoOffsets,
    /// The first offset is the start of the values.
    #[error("the first row offset is {found} instead of 0")]
    FirstOffset {
        /// What the first offset is.
        found: u64,
    },
    /// Offsets have to ascend.
    #[error("row {row} ends at {end}, before its start at {start}")]
    Descending {
        /// The row, counted from 0.
        row: usize,
        /// Its first offset.
        start: u64,
        /// Its last offset.
        end: u64,
    },
    /// Indices and values are pairs, and the last offset counts them.
    #[error(
        "the last row offset is {last}, but there are {indices} column indices and {values} values"
    )]
    Entries {
        /// The last offset.
        last: u64,
        /// Number of column indices.
        indices: usize,
        /// Number of values.
        values: usize,
    },
    /// A column index beyond the matrix.
    #[error("column index {index} at entry {entry} is not below the number of columns, {cols}")]
    ColumnOutOfRange {
        /// Position among the stored entries.
        entry: usize,
        /// The index found there.
        index: u32,
        /// Number of columns.
        cols: usize,
    },
    /// Rows of a dense matrix may not overlap.
    #[error("the stride of {stride} elements is less than the {cols} columns of a row")]
    Stride {
        /// Elements from one row's start to the next one's.
        stride: usize,
        /// Number of columns.
        cols: usize,
    },
    /// A dense matrix needs (rows − 1)·stride + cols values.
    #[error(
        "{rows} rows of {cols} columns, {stride} elements apart, do not fit in {values} values"
    )]
    TooFewValues {
        /// Number of rows.
        rows: usize,
        /// Number of columns.
        cols: usize,
        /// Elements from one row's start to the next one's.
        stride: usize,
        /// Number of values given.
        values: usize,
    },
}

/// Compressed sparse rows: row r has the entries `offsets[r]..offsets[r + 1]`.
///
/// Columns of a row may come in any order; a column that comes twice counts twice.
#[derive(Debug, Clone, Copy)]
pub struct Csr<'a, T> {
    cols: usize,
    // Invariant of the four, relied upon by unchecked accesses: at least one offset, the first 0,
    // ascending, the last `indices.len() == values.len()`; every index below `cols`.
    offsets: &'a [u64],
    indices: &'a [u32],
    values: &'a [T],
}

impl<'a, T> Csr<'a, T> {
    /// A matrix of `offsets.len() - 1` rows and `cols` columns, checked in one pass over the indices.
    ///
    /// # Errors
    /// When offsets do not ascend from 0 to the number of entries, or an index is out of range.
    ///
    /// ```
    /// use warpfuse::cpu::{Csr, LayoutError};
    /// let x = Csr::new(3, &[0, 2, 2], &[0, 2], &[1.0f32, 5.0])?;
    /// assert_eq!((x.rows(), x.cols()), (2, 3));
    /// assert!(Csr::new(2, &[0, 2, 2], &[0, 2], &[1.0f32, 5.0]).is_err());
    /// # Ok::<(), LayoutError>(())
    /// ```
    pub fn new(
        cols: usize,
        offsets: &'a [u64],
        indices: &'a [u32],
        values: &'a [T],
    ) -> Result<Self, LayoutError> {
        check_offsets(offsets, indices.len(), values.len())?;
        // The maximum first: a search for the culprit would not vectorise.
        let largest = indices.iter().copied().max();
        if largest.is_some_and(|index| index as usize >= cols) {
            let found = indices
                .iter()
                .enumerate()
                .find(|&(_, &index)| index as usize >= cols);
            let (entry, &index) = found.expect("the largest index is out of range");
            return Err(LayoutError::ColumnOutOfRange { entry, index, cols });
        }
        Ok(Csr {
            cols,
            offsets,
            indices,
            values,
        })
    }

    /// As [`new`](Self::new) without looking at the slices, for a caller that has checked them before.
    ///
    /// # Safety
    /// `offsets` has at least one element, starts with 0, ascends and ends with `indices.len()`, which
    /// is `values.len()`; every element of `indices` is less than `cols`.
    pub unsafe fn new_unchecked(
        cols: usize,
        offsets: &'a [u64],
        indices: &'a [u32],
        values: &'a [T],
    ) -> Self {
        debug_assert_eq!(check_offsets(offsets, indices.len(), values.len()), Ok(()));
        Csr {
            cols,
            offsets,
            indices,
            values,
        }
    }

    /// Number of rows, m.
    pub fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of columns, n.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of stored entries.
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    /// The m + 1 row offsets.
    pub fn offsets(&self) -> &'a [u64] {
        self.offsets
    }

    /// The column of every entry.
    pub fn indices(&self) -> &'a [u32] {
        self.indices
    }

    /// The value of every entry.
    pub fn values(&self) -> &'a [T] {
        self.values
    }
}

fn check_offsets(offsets: &[u64], indices: usize, values: usize) -> Result<(), LayoutError> {
    let (&first, &last) = offsets
        .first()
        .zip(offsets.last())
        .ok_or(LayoutError::NoOffsets)?;
    if first != 0 {
        return Err(LayoutError::FirstOffset { found: first });
    }
    if let Some(row) = offsets.windows(2).position(|pair| pair[1] < pair[0]) {
        return Err(LayoutError::Descending {
            row,
            start: offsets[row],
            end: offsets[row + 1],
        });
    }
    if indices != values || last != values as u64 {
        return Err(LayoutError::Entries {
            last,
            indices,
            values,
        });
    }
    Ok(())
}

/// A dense matrix in row-major order; row r starts at `r · stride`.
#[derive(Debug, Clone, Copy)]
pub struct Dense<'a, T> {
    rows: usize,
    cols: usize,
    // Invariant: stride ≥ cols, and values hold (rows − 1)·stride + cols elements or more.
    stride: usize,
    values: &'a [T],
}

impl<'a, T> Dense<'a, T> {
    /// A matrix of `rows` × `cols` whose rows start `stride` elements apart.
    ///
    /// # Errors
    /// When rows would overlap, or reach beyond `values`.
    ///
    /// ```
    /// use warpfuse::cpu::{Dense, LayoutError};
    /// let x = Dense::new(2, 2, 3, &[1.0, 2.0, 0.0, 3.0, 4.0])?;
    /// assert_eq!(x.row(1), [3.0, 4.0]);
    /// assert!(Dense::new(2, 2, 1, &[1.0, 2.0, 3.0]).is_err());
    /// # Ok::<(), LayoutError>(())
    /// ```
    pub fn new(
        rows: usize,
        cols: usize,
        stride: usize,
        values: &'a [T],
    ) -> Result<Self, LayoutError> {
        if stride < cols {
            return Err(LayoutError::Stride { stride, cols });
        }
        let needed = match rows {
            0 => Some(0),
            _ => (rows - 1)
                .checked_mul(stride)
                .and_then(|start| start.checked_add(cols)),
        };
        if needed.is_none_or(|needed| needed > values.len()) {
            return Err(LayoutError::TooFewValues {
                rows,
                cols,
                stride,
                values: values.len(),
            });
        }
        Ok(Dense {
            rows,
            cols,
            stride,
            values,
        })
    }

    /// Number of rows, m.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns, n.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Elements from one row's start to the next one's.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// The values, row after row.
    pub fn values(&self) -> &'a [T] {
        self.values
    }

    /// Row `row`, n elements.
    ///
    /// # Panics
    /// When `row` is not below [`rows`](Self::rows).
    pub fn row(&self, row: usize) -> &'a [T] {
        assert!(
            row < self.rows,
            "row {row} of a matrix of {} rows",
            self.rows
        );
        &self.values[row * self.stride..][..self.cols]
    }

    /// The columns `start..start + cols`, cut short at the last column.
    pub(super) fn columns(&self, start: usize, cols: usize) -> Self {
        let start = start.min(self.cols);
        let values = self.values.get(start..).unwrap_or(&[]);
        Dense {
            cols: cols.min(self.cols - start),
            values,
            ..*self
        }
    }
}
