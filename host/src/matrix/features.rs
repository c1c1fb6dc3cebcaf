//! Features and data sets.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use ndarray::{Array2, ArrayView2, CowArray, Ix2, s};

use super::{
    CsrArrays, CsrMatrix, Dtype, Element, FileChanged, NarrowCsr, Order, SharedDense, SharedSlice,
    csr_from_parts,
};
use crate::mapped::MappedFile;
use crate::parallel;

/// The feature matrix of a data set, m samples × n features.
#[derive(Debug, Clone, PartialEq)]
pub enum Features<T> {
    /// Compressed sparse rows; stored as CSR, never as the CSC that sprs's type would allow too.
    Sparse(CsrMatrix<T>),
    /// Compressed sparse rows with 32-bit row offsets, in memory that somebody else owns.
    Narrow(NarrowCsr<T>),
    /// Row-major dense.
    Dense(Array2<T>),
    /// Dense, in memory that somebody else owns.
    Shared(SharedDense<T>),
}

/// What [`Features`] store.
#[derive(Debug)]
pub enum Storage<'a, T> {
    /// Compressed sparse rows.
    Sparse(&'a CsrMatrix<T>),
    /// All elements, in rows or columns that lie one after the other.
    Dense(ArrayView2<'a, T>),
}

impl<T> Storage<'_, T> {
    /// Number of samples, m.
    pub fn rows(&self) -> usize {
        match self {
            Self::Sparse(x) => x.rows(),
            Self::Dense(x) => x.nrows(),
        }
    }

    /// Number of features, n.
    pub fn cols(&self) -> usize {
        match self {
            Self::Sparse(x) => x.cols(),
            Self::Dense(x) => x.ncols(),
        }
    }
}

/// Features and, when the source has them, one target per sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset<T> {
    /// m × n features.
    pub features: Features<T>,
    /// m targets (labels), or `None` when the file has none.
    pub targets: Option<Vec<T>>,
}

/// A conversion that would lose more than rounding.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("expected values that fit {to}, found {value:e} (entry {entry}); use f64 or rescale")]
pub struct CastError {
    /// Position in storage order, from 0.
    pub entry: usize,
    /// The value that would become infinite.
    pub value: f64,
    /// The type requested.
    pub to: Dtype,
}

/// A number of columns that the features cannot be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WidthError {
    /// Fewer columns than there are.
    #[error("expected at most {wanted} columns, found data of {cols}")]
    TooFew {
        /// Columns of the data.
        cols: usize,
        /// Columns requested.
        wanted: usize,
    },
    /// Dense features are as wide as they are: a missing column is a mistake, not a zero.
    #[error("expected dense features with exactly {wanted} columns, found {cols}")]
    Dense {
        /// Columns of the data.
        cols: usize,
        /// Columns requested.
        wanted: usize,
    },
    /// More columns than a 32-bit index can name.
    #[error("expected at most {max} columns, found {wanted}", max = u32::MAX)]
    TooMany {
        /// Columns requested.
        wanted: usize,
    },
}

/// Sparse features that no memory holds once they are dense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected memory for {rows} x {cols} dense features, found too little; use fewer samples or features"
)]
pub struct TooLargeError {
    /// m.
    pub rows: usize,
    /// n.
    pub cols: usize,
}

impl<T: Element> Features<T> {
    /// These rows in the same memory, as far as that is possible: sparse ones get offsets of their own, and those of a dense
    /// matrix that is stored by columns are copied.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use ndarray::array;
    /// use warpfuse::matrix::Features;
    /// let x = Arc::new(Features::Dense(array![[1.0], [2.0], [3.0]]));
    /// assert_eq!(x.share_rows(1..3).to_dense()?, array![[2.0], [3.0]]);
    /// # Ok::<(), warpfuse::matrix::TooLargeError>(())
    /// ```
    ///
    /// # Panics
    /// When there are no such rows.
    pub fn share_rows(self: &Arc<Self>, rows: Range<usize>) -> Features<T> {
        match &**self {
            Features::Sparse(x) => Features::Sparse(share_csr(x, rows)),
            Features::Narrow(x) => Features::Sparse(share_csr(x.widened(), rows)),
            Features::Dense(x) if x.is_standard_layout() => {
                let cols = x.ncols();
                let all = SharedSlice::of_owner(self.clone(), |features| match features {
                    Features::Dense(x) => x.as_slice().expect("rows that lie one after the other"),
                    _ => unreachable!("they are dense"),
                });
                let own = all.part(rows.start * cols..rows.end * cols);
                let own = SharedDense::new((rows.len(), cols), Order::Rows, own);
                Features::Shared(own.expect("as many elements"))
            }
            Features::Dense(_) => self.select_rows(rows),
            Features::Shared(x) => match x.share_rows(rows.clone()) {
                Some(own) => Features::Shared(own),
                None => self.select_rows(rows),
            },
        }
    }

    /// A copy of these rows.
    ///
    /// ```
    /// use ndarray::array;
    /// use warpfuse::matrix::Features;
    /// let x = Features::Dense(array![[1.0], [2.0], [3.0]]);
    /// assert_eq!(x.select_rows(1..3), Features::Dense(array![[2.0], [3.0]]));
    /// ```
    ///
    /// # Panics
    /// When there are no such rows.
    pub fn select_rows(&self, rows: Range<usize>) -> Features<T> {
        match self.storage() {
            Storage::Dense(x) => Features::Dense(x.slice(s![rows, ..]).to_owned()),
            Storage::Sparse(x) => {
                let offsets = x.indptr();
                let offsets = &offsets.raw_storage()[rows.start..=rows.end];
                let entries = offsets[0] as usize..offsets[rows.len()] as usize;
                let own = offsets.iter().map(|offset| offset - offsets[0]).collect();
                let (indices, values) = (&x.indices()[entries.clone()], &x.data()[entries]);
                let shape = (rows.len(), x.cols());
                let rows = csr_from_parts(shape, own, indices.to_vec(), values.to_vec());
                Features::Sparse(rows.expect("rows of a matrix are one"))
            }
        }
    }
}

impl<T> Features<T> {
    /// Number of samples, m.
    pub fn rows(&self) -> usize {
        match self {
            Self::Sparse(x) => x.rows(),
            Self::Narrow(x) => x.shape().0,
            Self::Dense(x) => x.nrows(),
            Self::Shared(x) => x.dim().0,
        }
    }

    /// Number of features, n.
    pub fn cols(&self) -> usize {
        match self {
            Self::Sparse(x) => x.cols(),
            Self::Narrow(x) => x.shape().1,
            Self::Dense(x) => x.ncols(),
            Self::Shared(x) => x.dim().1,
        }
    }

    /// Number of stored entries; m·n when dense.
    pub fn nnz(&self) -> usize {
        match self {
            Self::Sparse(x) => x.nnz(),
            Self::Narrow(x) => x.nnz(),
            Self::Dense(x) => x.len(),
            Self::Shared(x) => x.view().len(),
        }
    }

    /// Whether only nonzeros are stored.
    pub fn is_sparse(&self) -> bool {
        matches!(self, Self::Sparse(_) | Self::Narrow(_))
    }

    /// What is stored, whoever owns it.
    ///
    /// ```
    /// use ndarray::array;
    /// use warpfuse::matrix::{Features, Storage};
    /// let x = Features::Dense(array![[1.0, 2.0]]);
    /// assert!(matches!(x.storage(), Storage::Dense(view) if view == array![[1.0, 2.0]]));
    /// ```
    pub fn storage(&self) -> Storage<'_, T> {
        match self {
            Self::Sparse(x) => Storage::Sparse(x),
            Self::Narrow(x) => Storage::Sparse(x.widened()),
            Self::Dense(x) => Storage::Dense(x.view()),
            Self::Shared(x) => Storage::Dense(x.view()),
        }
    }

    /// The arrays of sparse features, whose offsets are not widened for it.
    pub(crate) fn csr_arrays(&self) -> Option<CsrArrays<'_, T>> {
        match self {
            Self::Sparse(x) => Some(CsrArrays::of(x)),
            Self::Narrow(x) => Some(x.arrays()),
            Self::Dense(_) | Self::Shared(_) => None,
        }
    }
}

impl<T: Element> Features<T> {
    /// What `work` makes of the entries, unless the file that they lie in changes meanwhile: its results mean nothing then,
    /// nor does a panic over offsets that do not ascend.
    ///
    /// # Errors
    /// [`FileChanged`] in that case.
    ///
    /// # Panics
    /// If `work` panics over entries that are sound.
    pub(crate) fn reading<R>(&self, work: impl FnOnce() -> R) -> Result<R, FileChanged> {
        let Some(file) = self.file() else {
            return Ok(work());
        };
        // Whatever `work` has begun is given up with it.
        let done = catch_unwind(AssertUnwindSafe(work));
        file.check()?;
        Ok(done.unwrap_or_else(|panic| resume_unwind(panic)))
    }

    fn file(&self) -> Option<Arc<MappedFile>> {
        match self {
            // A clone shares the arrays, which sprs lends as plain slices.
            Self::Sparse(x) => x.clone().into_raw_storage().2.file().cloned(),
            Self::Narrow(_) | Self::Dense(_) | Self::Shared(_) => None,
        }
    }
}

impl<T: Element> From<Array2<T>> for Features<T> {
    fn from(x: Array2<T>) -> Self {
        Self::Dense(x)
    }
}

impl<T: Element> From<CsrMatrix<T>> for Features<T> {
    fn from(x: CsrMatrix<T>) -> Self {
        Self::Sparse(x)
    }
}

/// Of sprs's own matrices; one of compressed columns is written as rows first.
///
/// ```
/// use sprs::CsMatI;
/// use warpfuse::matrix::Features;
/// let x: CsMatI<f32, u32, u64> = CsMatI::eye(3);
/// assert_eq!(Features::from(x).nnz(), 3);
/// ```
impl<T: Element> From<sprs::CsMatI<T, u32, u64>> for Features<T> {
    fn from(x: sprs::CsMatI<T, u32, u64>) -> Self {
        let x = if x.is_csr() { x } else { x.to_csr() };
        let shape = x.shape();
        let offsets = x.proper_indptr().into_owned().into();
        let (_, indices, values) = x.into_raw_storage();
        // SAFETY: the parts are those of a valid matrix of compressed rows; its offsets begin with 0 now, which they
        // need not in sprs, and are as far apart as before.
        let x = unsafe {
            let storage = sprs::CompressedStorage::CSR;
            CsrMatrix::new_unchecked(storage, shape, offsets, indices.into(), values.into())
        };
        Self::Sparse(x)
    }
}

impl<T: Element> Features<T> {
    /// The same features with `wanted` columns; the new ones are zero.
    ///
    /// A sparse file shows only columns that occur in it, so a test set may be narrower than the
    /// training set: this widens it to what a model expects.
    ///
    /// # Errors
    ///
    /// [`WidthError`] when `wanted` is less than the data have, or differs for dense features.
    pub fn with_cols(self, wanted: usize) -> Result<Self, WidthError> {
        let cols = self.cols();
        match self {
            _ if cols == wanted => Ok(self),
            Self::Dense(_) | Self::Shared(_) => Err(WidthError::Dense { cols, wanted }),
            Self::Sparse(_) | Self::Narrow(_) if wanted < cols => {
                Err(WidthError::TooFew { cols, wanted })
            }
            Self::Sparse(_) | Self::Narrow(_) if u32::try_from(wanted).is_err() => {
                Err(WidthError::TooMany { wanted })
            }
            Self::Sparse(x) => Ok(Self::Sparse(widen(x, wanted))),
            Self::Narrow(x) => Ok(Self::Sparse(widen(x.widened().clone(), wanted))),
        }
    }

    /// The features as a dense m × n array; sparse ones are written out, zeros and all.
    ///
    /// # Errors
    /// [`TooLargeError`] when there is no memory for m·n elements.
    ///
    /// ```
    /// use ndarray::array;
    /// use warpfuse::matrix::Features;
    /// let x = Features::Dense(array![[1.0, 0.0]]);
    /// assert_eq!(x.to_dense()?.dim(), (1, 2));
    /// # Ok::<(), warpfuse::matrix::TooLargeError>(())
    /// ```
    pub fn to_dense(&self) -> Result<CowArray<'_, T, Ix2>, TooLargeError> {
        let x = match self.storage() {
            Storage::Dense(x) => return Ok(x.into()),
            Storage::Sparse(x) => x,
        };
        let (rows, cols) = x.shape();
        let too_large = TooLargeError { rows, cols };
        let len = rows.checked_mul(cols).ok_or(too_large)?;
        let mut values = Vec::new();
        values.try_reserve_exact(len).map_err(|_| too_large)?;
        values.resize(len, T::from_f64(0.0));
        for (row, entries) in x.outer_iterator().enumerate() {
            for (col, value) in entries.iter() {
                values[row * cols + col] = *value;
            }
        }
        let dense = Array2::from_shape_vec((rows, cols), values);
        Ok(dense.expect("m·n elements").into())
    }

    /// The features in another element type, each value rounded to the nearest.
    ///
    /// # Errors
    ///
    /// [`CastError`] for the first finite value that the other type cannot hold.
    ///
    /// ```
    /// use ndarray::array;
    /// use warpfuse::matrix::Features;
    /// let x = Features::Dense(array![[0.5, 1e300]]);
    /// assert_eq!(x.cast::<f32>().unwrap_err().entry, 1);
    /// ```
    pub fn cast<U: Element>(&self) -> Result<Features<U>, CastError> {
        match self.storage() {
            Storage::Sparse(x) => {
                let (shape, values) = (x.shape(), cast_slice(x.data())?.into());
                // Clones share the structure.
                let (offsets, indices, _) = x.clone().into_raw_storage();
                // SAFETY: shape, offsets and indices are those of a matrix that is valid already,
                // and there are as many values as before.
                let cast = unsafe {
                    CsrMatrix::new_unchecked(x.storage(), shape, offsets, indices, values)
                };
                Ok(Features::Sparse(cast))
            }
            Storage::Dense(x) => {
                let x = x.as_standard_layout();
                let flat = x.as_slice().expect("standard layout is contiguous");
                let values = cast_slice(flat)?;
                let cast = Array2::from_shape_vec(x.raw_dim(), values);
                Ok(Features::Dense(cast.expect("as many values as before")))
            }
        }
    }
}

impl<T: Element> Dataset<T> {
    /// Features and targets in another element type; see [`Features::cast`].
    ///
    /// # Errors
    ///
    /// [`CastError`] for the first finite value that the other type cannot hold.
    pub fn cast<U: Element>(&self) -> Result<Dataset<U>, CastError> {
        Ok(Dataset {
            features: self.features.cast()?,
            targets: self.targets.as_deref().map(cast_slice).transpose()?,
        })
    }
}

/// Rows of a matrix, whose columns and values stay where they are.
fn share_csr<T: Element>(x: &CsrMatrix<T>, rows: Range<usize>) -> CsrMatrix<T> {
    let shape = (rows.len(), x.cols());
    let offsets = x.indptr();
    let offsets = &offsets.raw_storage()[rows.start..=rows.end];
    let first = offsets[0];
    let entries = first as usize..offsets[rows.len()] as usize;
    let own: Vec<u64> = offsets.iter().map(|offset| offset - first).collect();
    // A clone shares the arrays.
    let (_, indices, values) = x.clone().into_raw_storage();
    let (indices, values) = (indices.part(entries.clone()), values.part(entries));
    // SAFETY: the offsets are those of rows of a valid matrix of compressed rows less the first of them, and end at the
    // number of its indices and values; the indices are below the number of columns, which is the same.
    unsafe {
        let storage = sprs::CompressedStorage::CSR;
        CsrMatrix::new_unchecked(storage, shape, own.into(), indices, values)
    }
}

fn widen<T: Element>(x: CsrMatrix<T>, cols: usize) -> CsrMatrix<T> {
    let (rows, storage) = (x.rows(), x.storage());
    let (offsets, indices, values) = x.into_raw_storage();
    // SAFETY: the parts are those of a valid matrix, and indices below the old number of columns
    // are below the new one, which the caller has checked to fit u32.
    unsafe { CsrMatrix::new_unchecked(storage, (rows, cols), offsets, indices, values) }
}

fn cast_slice<T: Element, U: Element>(values: &[T]) -> Result<Vec<U>, CastError> {
    let lost = |v: &T| U::try_from_f64(v.to_f64()).is_none();
    if let Some(entry) = parallel::position(values, lost) {
        let value = values[entry].to_f64();
        let to = U::DTYPE;
        return Err(CastError { entry, value, to });
    }
    Ok(parallel::convert(values, |v| U::from_f64(v.to_f64())))
}
