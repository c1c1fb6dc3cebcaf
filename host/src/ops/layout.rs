//! How a matrix lies on a device.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use gpu_kernels::fused::dense::MAX_COLUMNS;
use gpu_kernels::fused::dense_order::leading_dimension;
use gpu_kernels::fused::sparse::MAX_NONZEROS;

use super::{Number, OpError};
use crate::device::buffer::RowLayout;
use crate::device::{Buffer, Device};
use crate::matrix::{CsrMatrix, Features, csr_from_parts};

/// Rows of a CUDA launch; each kernel adds up to a warp of rows before it looks.
const MAX_ROWS: u64 = u32::MAX as u64 - 64;
/// Parts start at multiples of this many rows, so that slices of m-vectors stay aligned to 16 bytes.
const PART_ROWS: usize = 32;

/// A matrix on a device.
pub(super) enum Layout<T> {
    /// The CPU's: sprs and ndarray as they came.
    Host(Arc<Features<T>>),
    /// CSR, for a GPU.
    Sparse(SparseRows<T>),
    /// Row-major on a GPU.
    Dense(DensePart<T>),
}

/// The rows of a sparse X: on the host until a product needs them on the device.
pub(super) struct SparseRows<T> {
    device: Device,
    shape: (usize, usize),
    on_host: Mutex<OnHost<T>>,
    /// Cut where 32-bit offsets end.
    parts: OnceLock<Result<Vec<SparsePart<T>>, OpError>>,
}

/// The host's copy of X.
enum OnHost<T> {
    /// Kept: the device has not got it yet.
    Kept(Arc<Features<T>>),
    /// Somebody else's, as long as they keep it.
    Borrowed(Weak<Features<T>>),
}

/// When the device gets X.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Upload {
    /// At once, and the host's copy is let go.
    Now,
    /// A dense X at once, the rows of a sparse one when they are first used: further forms may do without.
    WhenUsed,
}

/// Rows `first_row .. first_row + rows` in CSR with offsets of their own.
pub(super) struct SparsePart<T> {
    pub(super) first_row: usize,
    pub(super) rows: usize,
    pub(super) offsets: Buffer<u32>,
    pub(super) indices: Buffer<u32>,
    pub(super) values: Buffer<T>,
}

/// m rows, `ld` elements apart.
pub(super) struct DensePart<T> {
    pub(super) ld: usize,
    pub(super) values: Buffer<T>,
}

impl<T: Number> Layout<T> {
    /// Puts `features` on `device`; the CPU keeps them as they are.
    pub(super) fn new(
        device: &Device,
        features: Arc<Features<T>>,
        upload: Upload,
    ) -> Result<Self, OpError> {
        at_most("columns", MAX_COLUMNS as u64, features.cols() as u64)?;
        match device {
            Device::Cpu(_) => Ok(Layout::Host(features)),
            _ => {
                at_most("rows", MAX_ROWS, features.rows() as u64)?;
                match &*features {
                    Features::Dense(x) => Ok(Layout::Dense(upload_dense(device, x)?)),
                    Features::Sparse(_) => {
                        let rows = SparseRows::new(device, features);
                        if upload == Upload::Now {
                            rows.parts()?;
                        }
                        Ok(Layout::Sparse(rows))
                    }
                }
            }
        }
    }

    /// Elements from one row to the next of a dense matrix on a GPU.
    pub(super) fn ld(&self) -> Option<usize> {
        match self {
            Layout::Dense(part) => Some(part.ld),
            _ => None,
        }
    }
}

impl<T: Number> SparseRows<T> {
    fn new(device: &Device, features: Arc<Features<T>>) -> Self {
        SparseRows {
            device: device.clone(),
            shape: (features.rows(), features.cols()),
            on_host: Mutex::new(OnHost::Kept(features)),
            parts: OnceLock::new(),
        }
    }

    /// The rows on the device: uploaded now, if they have not been, and then no longer kept on the host.
    pub(super) fn parts(&self) -> Result<&[SparsePart<T>], OpError> {
        let parts = self.parts.get_or_init(|| self.upload());
        parts.as_deref().map_err(OpError::clone)
    }

    /// Whether the device has the rows.
    pub(super) fn are_uploaded(&self) -> bool {
        matches!(self.parts.get(), Some(Ok(_)))
    }

    fn upload(&self) -> Result<Vec<SparsePart<T>>, OpError> {
        let features = self.features()?;
        let parts = upload_sparse(&self.device, csr(&features))?;
        let mut on_host = self.on_host.lock().unwrap_or_else(PoisonError::into_inner);
        *on_host = OnHost::Borrowed(Arc::downgrade(&features));
        Ok(parts)
    }

    /// X on the host: as it came, as long as anybody keeps it, else copied back from the device.
    pub(super) fn features(&self) -> Result<Arc<Features<T>>, OpError> {
        let kept = match &*self.on_host.lock().unwrap_or_else(PoisonError::into_inner) {
            OnHost::Kept(features) => Some(features.clone()),
            OnHost::Borrowed(features) => features.upgrade(),
        };
        match kept {
            Some(features) => Ok(features),
            None => Ok(Arc::new(Features::Sparse(self.download()?))),
        }
    }

    fn download(&self) -> Result<CsrMatrix<T>, OpError> {
        let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for part in self.parts()? {
            let base = indices.len() as u64;
            let own = part.offsets.to_vec()?;
            offsets.extend(own[1..].iter().map(|offset| base + u64::from(*offset)));
            indices.extend(part.indices.to_vec()?);
            values.extend(part.values.to_vec()?);
        }
        let x = csr_from_parts(self.shape, offsets, indices, values);
        Ok(x.expect("it was one when it was uploaded"))
    }
}

/// The rows of features that are sparse.
pub(super) fn csr<T>(features: &Features<T>) -> &CsrMatrix<T> {
    match features {
        Features::Sparse(x) => x,
        Features::Dense(_) => unreachable!("rows are made of sparse features alone"),
    }
}

fn at_most(what: &'static str, limit: u64, found: u64) -> Result<(), OpError> {
    if found <= limit {
        Ok(())
    } else {
        Err(OpError::TooLarge { what, limit, found })
    }
}

/// X as parts on a device: one, but where 32 bits do not count its entries.
pub(super) fn upload_sparse<T: Number>(
    device: &Device,
    x: &CsrMatrix<T>,
) -> Result<Vec<SparsePart<T>>, OpError> {
    let offsets = x.proper_indptr();
    cut_rows(&offsets, MAX_NONZEROS as u64)
        .windows(2)
        .map(|cut| {
            let (first_row, end) = (cut[0], cut[1]);
            let range = offsets[first_row] as usize..offsets[end] as usize;
            let base = offsets[first_row];
            // A part holds at most MAX_NONZEROS entries, so that its offsets fit 32 bits.
            let own: Vec<u32> = offsets[first_row..=end]
                .iter()
                .map(|o| (o - base) as u32)
                .collect();
            Ok(SparsePart {
                first_row,
                rows: end - first_row,
                offsets: device.upload(&own)?,
                indices: device.upload(&x.indices()[range.clone()])?,
                values: device.upload(&x.data()[range])?,
            })
        })
        .collect()
}

/// Rows at which to cut, so that each part has at most `limit` nonzeros and starts at a multiple of
/// [`PART_ROWS`]; the first is 0, the last m. A group of rows above the limit stays whole.
fn cut_rows(offsets: &[u64], limit: u64) -> Vec<usize> {
    let rows = offsets.len() - 1;
    let mut cuts = vec![0];
    let mut start = 0;
    while start < rows {
        let fits = offsets[start..].partition_point(|&o| o - offsets[start] <= limit) - 1;
        let whole = if start + fits >= rows {
            rows - start
        } else {
            fits / PART_ROWS * PART_ROWS
        };
        start = (start + whole.max(PART_ROWS)).min(rows);
        cuts.push(start);
    }
    if rows == 0 {
        cuts.push(0);
    }
    cuts
}

fn upload_dense<T: Number>(
    device: &Device,
    x: &ndarray::Array2<T>,
) -> Result<DensePart<T>, OpError> {
    let x = x.as_standard_layout();
    let values = x.as_slice().expect("standard layout is contiguous");
    let (rows, cols) = x.dim();
    let pack = 16 / size_of::<T>();
    let ld = leading_dimension(cols as u64, pack as u64) as usize;
    let values = device.upload_rows(
        values,
        RowLayout {
            rows,
            cols,
            pitch: ld,
        },
    )?;
    Ok(DensePart { ld, values })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_aligned_cover_all_rows_and_stay_below_the_limit() {
        let offsets: Vec<u64> = (0..=1000).map(|row| row * 7).collect();
        let cuts = cut_rows(&offsets, 700);
        assert_eq!((cuts[0], *cuts.last().unwrap()), (0, 1000));
        for cut in cuts.windows(2) {
            assert!(cut[0] < cut[1] && cut[0].is_multiple_of(PART_ROWS));
            assert!(offsets[cut[1]] - offsets[cut[0]] <= 700);
        }
    }

    #[test]
    fn a_small_matrix_is_one_part_and_an_empty_one_too() {
        assert_eq!(cut_rows(&[0, 3, 3, 9], 100), [0, 3]);
        assert_eq!(cut_rows(&[0], 100), [0, 0]);
    }
}
