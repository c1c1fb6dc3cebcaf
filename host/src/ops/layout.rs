//! How a matrix lies on a device.

use std::sync::Arc;

use gpu_kernels::fused::dense::MAX_COLUMNS;
use gpu_kernels::fused::dense_order::leading_dimension;
use gpu_kernels::fused::sparse::MAX_NONZEROS;

use super::{Number, OpError};
use crate::device::buffer::RowLayout;
use crate::device::{Buffer, Device};
use crate::matrix::{CsrMatrix, Features};

/// Rows of a CUDA launch; each kernel adds up to a warp of rows before it looks.
const MAX_ROWS: u64 = u32::MAX as u64 - 64;
/// Parts start at multiples of this many rows, so that slices of m-vectors stay aligned to 16 bytes.
const PART_ROWS: usize = 32;

/// A matrix on a device.
pub(super) enum Layout<T> {
    /// The CPU's: sprs and ndarray as they came.
    Host(Arc<Features<T>>),
    /// CSR on a GPU, cut where 32-bit offsets end.
    Sparse(Vec<SparsePart<T>>),
    /// Row-major on a GPU.
    Dense(DensePart<T>),
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
    pub(super) fn new(device: &Device, features: Arc<Features<T>>) -> Result<Self, OpError> {
        at_most("columns", MAX_COLUMNS as u64, features.cols() as u64)?;
        match device {
            Device::Cpu(_) => Ok(Layout::Host(features)),
            _ => {
                at_most("rows", MAX_ROWS, features.rows() as u64)?;
                match &*features {
                    Features::Sparse(x) => Ok(Layout::Sparse(upload_sparse(device, x)?)),
                    Features::Dense(x) => Ok(Layout::Dense(upload_dense(device, x)?)),
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
    let cuts = cut_rows(&offsets, MAX_NONZEROS as u64);
    cuts.windows(2)
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
