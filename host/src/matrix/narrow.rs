//! Compressed sparse rows whose offsets have 32 bits, as SciPy has them, and the arrays of rows of either width.

use std::ops::Range;
use std::sync::OnceLock;

use sprs::CompressedStorage;

use super::csr::check;
use super::{CsrError, CsrMatrix, SharedSlice};

/// A compressed-sparse-row matrix with 32-bit row offsets: other libraries' arrays, which are not copied. What a GPU takes of
/// it is read where it lies; whoever needs 64-bit offsets ([`Features::storage`](super::Features::storage)) has them
/// made once, 8 bytes a row, which are kept.
///
/// ```
/// use warpfuse::matrix::{Features, NarrowCsr};
/// let (offsets, indices) = (vec![0, 2, 3].into(), vec![0, 2, 1].into());
/// let x = NarrowCsr::new((2, 3), offsets, indices, vec![1.0, 2.0, 3.0].into())?;
/// assert_eq!(Features::Narrow(x).nnz(), 3);
/// # Ok::<(), warpfuse::matrix::CsrError>(())
/// ```
#[derive(Debug, Clone)]
pub struct NarrowCsr<T> {
    shape: (usize, usize),
    offsets: SharedSlice<u32>,
    indices: SharedSlice<u32>,
    values: SharedSlice<T>,
    wide: OnceLock<CsrMatrix<T>>,
}

impl<T> NarrowCsr<T> {
    /// m × n after a full check of the structure, in parallel, as [`csr_from_shared`](super::csr_from_shared).
    ///
    /// # Errors
    /// [`CsrError`] names the first row that breaks a rule.
    pub fn new(
        shape: (usize, usize),
        offsets: SharedSlice<u32>,
        indices: SharedSlice<u32>,
        values: SharedSlice<T>,
    ) -> Result<Self, CsrError> {
        check(shape, &offsets, &indices, values.len())?;
        Ok(NarrowCsr {
            shape,
            offsets,
            indices,
            values,
            wide: OnceLock::new(),
        })
    }

    /// m and n.
    pub fn shape(&self) -> (usize, usize) {
        self.shape
    }

    /// Stored entries.
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    /// The same matrix with 64-bit offsets, which are made when they are first needed.
    pub fn widened(&self) -> &CsrMatrix<T> {
        self.wide.get_or_init(|| {
            let offsets = self.offsets.iter().map(|offset| u64::from(*offset));
            let (indices, values) = (self.indices.clone(), self.values.clone());
            // SAFETY: `new` has checked every invariant that sprs documents, of the same numbers.
            unsafe {
                let storage = CompressedStorage::CSR;
                CsrMatrix::new_unchecked(storage, self.shape, offsets.collect(), indices, values)
            }
        })
    }

    /// Whether somebody has needed 64-bit offsets.
    #[cfg(test)]
    pub(crate) fn is_widened(&self) -> bool {
        self.wide.get().is_some()
    }

    pub(super) fn arrays(&self) -> CsrArrays<'_, T> {
        CsrArrays {
            shape: self.shape,
            offsets: RowOffsets::Narrow(&self.offsets),
            indices: &self.indices,
            values: &self.values,
        }
    }
}

impl<T: PartialEq> PartialEq for NarrowCsr<T> {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape
            && self.offsets == other.offsets
            && self.indices == other.indices
            && self.values == other.values
    }
}

/// Row offsets, in the bits that they have.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RowOffsets<'a> {
    Narrow(&'a [u32]),
    Wide(&'a [u64]),
}

impl RowOffsets<'_> {
    /// Some of them.
    fn of(&self, range: Range<usize>) -> Self {
        match self {
            RowOffsets::Narrow(offsets) => RowOffsets::Narrow(&offsets[range]),
            RowOffsets::Wide(offsets) => RowOffsets::Wide(&offsets[range]),
        }
    }
}

/// Runs the same code on offsets of either width.
macro_rules! with_offsets {
    ($offsets:expr, $name:ident => $body:expr) => {
        match $offsets {
            $crate::matrix::RowOffsets::Narrow($name) => $body,
            $crate::matrix::RowOffsets::Wide($name) => $body,
        }
    };
}
pub(crate) use with_offsets;

/// The arrays of compressed sparse rows, whatever the width of their offsets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CsrArrays<'a, T> {
    pub(crate) shape: (usize, usize),
    pub(crate) offsets: RowOffsets<'a>,
    pub(crate) indices: &'a [u32],
    pub(crate) values: &'a [T],
}

impl<'a, T> CsrArrays<'a, T> {
    pub(crate) fn of(x: &'a CsrMatrix<T>) -> Self {
        CsrArrays {
            shape: x.shape(),
            offsets: RowOffsets::Wide(x.indptr().into_raw_storage()),
            indices: x.indices(),
            values: x.data(),
        }
    }

    /// Some of the rows; the offsets of the first of them are not 0.
    pub(crate) fn of_rows(&self, rows: Range<usize>) -> Self {
        let (offsets, end) = (rows.start..rows.end + 1, rows.len());
        CsrArrays {
            shape: (end, self.shape.1),
            offsets: self.offsets.of(offsets),
            ..*self
        }
    }

    /// Places of a row's entries.
    pub(crate) fn row(&self, row: usize) -> Range<usize> {
        with_offsets!(self.offsets, offsets => {
            offsets[row] as usize..offsets[row + 1] as usize
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::csr_from_parts;

    #[test]
    fn widened_offsets_are_those_of_the_matrix_and_made_once() {
        let (offsets, indices) = (vec![0_u32, 2, 2, 3], vec![0, 2, 1]);
        let values = vec![1.0, 2.0, 3.0];
        let narrow = NarrowCsr::new(
            (3, 3),
            offsets.into(),
            indices.clone().into(),
            values.clone().into(),
        )
        .expect("a matrix");
        let wide = csr_from_parts((3, 3), vec![0, 2, 2, 3], indices, values).expect("a matrix");
        assert_eq!(*narrow.widened(), wide);
        assert!(std::ptr::eq(narrow.widened(), narrow.widened()));
        assert_eq!(narrow.arrays().row(2), CsrArrays::of(&wide).row(2));
    }

    #[test]
    fn what_is_no_matrix_is_refused_with_its_row() {
        let of = |offsets: Vec<u32>, indices: Vec<u32>| {
            let values = vec![1.0; indices.len()].into();
            NarrowCsr::new((2, 3), offsets.into(), indices.into(), values).map(|x| x.nnz())
        };
        assert_eq!(of(vec![0, 1, 3], vec![2, 0, 1]), Ok(3));
        // −1 of SciPy's signed offsets.
        let negative = of(vec![0, u32::MAX, 3], vec![2, 0, 1]);
        assert_eq!(negative, Err(CsrError::OffsetOrder { row: 0 }));
        let repeated = of(vec![0, 1, 3], vec![2, 1, 1]);
        assert_eq!(repeated, Err(CsrError::IndexOrder { row: 1 }));
        let outside = of(vec![0, 1, 3], vec![3, 0, 1]);
        let expected = CsrError::IndexRange {
            row: 0,
            index: 3,
            cols: 3,
        };
        assert_eq!(outside, Err(expected));
        assert!(matches!(
            of(vec![0, 1], vec![0]),
            Err(CsrError::OffsetCount { .. })
        ));
    }
}
