//! Compressed sparse rows, as they came: on the host until a product needs them on the device.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use gpu_kernels::fused::sparse::MAX_NONZEROS;

use super::site::{Call, OnDevice, Site};
use crate::device::{Device, Prepared, SharedBuffer};
use crate::matrix::{
    CsrArrays, CsrMatrix, Features, Storage, Values, csr_from_parts, with_offsets,
};
use crate::ops::blocks::{Part, Place, SparseBlock, SparseStream};
use crate::ops::launch::prepare;
use crate::ops::{Number, OpError, Residency};
use crate::parallel::locked;
use crate::plan::fused::Plan;
use crate::plan::streaming::{Footprint, Residence};

/// Parts start at multiples of this many rows, so that slices of m-vectors stay aligned to 16 bytes.
const PART_ROWS: usize = 32;

/// The rows of a sparse X: on the host until a product needs them on the device.
pub(in crate::ops) struct SparseRows<T: Number> {
    device: Device,
    shape: (usize, usize),
    on_host: Mutex<OnHost<T>>,
    /// Where they are to lie, decided when the matrix was made.
    place: Place,
    rounding: Values,
    placed: OnceLock<Result<Placed<T>, OpError>>,
}

/// Rows that a device has.
enum Placed<T: Number> {
    /// All of them, cut where 32-bit offsets end.
    Parts(Vec<SparsePart<T>>),
    /// In blocks that stay or stream.
    Streamed(Box<SparseStream<T>>),
}

/// The host's copy of X.
enum OnHost<T> {
    /// Kept: the device has not got it yet.
    Kept(Arc<Features<T>>),
    /// Somebody else's, as long as they keep it.
    Borrowed(Weak<Features<T>>),
}

/// Rows `first_row .. first_row + rows` in CSR with offsets of their own.
pub(in crate::ops) struct SparsePart<T> {
    first_row: usize,
    rows: usize,
    offsets: SharedBuffer<u32>,
    indices: SharedBuffer<u32>,
    values: SharedBuffer<T>,
}

/// Offsets, indices and values.
pub(in crate::ops) type PartArrays<'a, T> = (
    &'a SharedBuffer<u32>,
    &'a SharedBuffer<u32>,
    &'a SharedBuffer<T>,
);

impl<T: Number> SparsePart<T> {
    /// All rows of a matrix, on its device already.
    pub(in crate::ops) fn whole(
        rows: usize,
        (offsets, indices): (SharedBuffer<u32>, SharedBuffer<u32>),
        values: SharedBuffer<T>,
    ) -> Self {
        SparsePart {
            first_row: 0,
            rows,
            offsets,
            indices,
            values,
        }
    }

    /// Its number of rows and its arrays: offsets, indices and values.
    pub(in crate::ops) fn arrays(&self) -> (usize, PartArrays<'_, T>) {
        (self.rows, (&self.offsets, &self.indices, &self.values))
    }

    /// As kernels take it.
    pub(in crate::ops) fn block(&self) -> SparseBlock<'_, T> {
        SparseBlock {
            first_row: self.first_row,
            rows: self.rows,
            offsets: self.offsets.input(),
            indices: self.indices.input(),
            values: self.values.input(),
        }
    }
}

/// One kernel over the rows, block after block.
pub(in crate::ops) struct RowKernel<T: Number> {
    kernel: Prepared<T::Sparse>,
    rows: Arc<SparseRows<T>>,
}

impl<T: Number> RowKernel<T> {
    /// The kernel that a plan names.
    pub(in crate::ops) fn prepare(
        site: &Site<T>,
        rows: &Arc<SparseRows<T>>,
        plan: &Plan,
    ) -> Result<Self, OpError> {
        Ok(RowKernel {
            kernel: prepare::<T::Sparse>(&site.device, plan)?,
            rows: rows.clone(),
        })
    }
}

impl<T: Number> OnDevice<T> for RowKernel<T> {
    fn writes_all(&self) -> bool {
        false
    }

    fn run(&self, site: &Site<T>, call: Call<'_, '_, T>) -> Result<(), OpError> {
        self.rows.each(call.part, |_, block| {
            let of_block = Call {
                output: &mut *call.output,
                ..call
            };
            Ok(self.kernel.launch(block.args(site.cols, of_block))?)
        })
    }
}

impl<T: Number> SparseRows<T> {
    pub(in crate::ops) fn new(
        device: &Device,
        features: Arc<Features<T>>,
        place: Place,
        rounding: Values,
    ) -> Self {
        let shape = (features.rows(), features.cols());
        SparseRows {
            device: device.clone(),
            shape,
            on_host: Mutex::new(OnHost::Kept(features)),
            place,
            rounding,
            placed: OnceLock::new(),
        }
    }

    /// Rows that lie on the device already, all in one part. No host has them.
    pub(in crate::ops) fn placed_already(
        device: &Device,
        shape: (usize, usize),
        part: SparsePart<T>,
    ) -> Self {
        let nothing = Footprint {
            bytes: 0,
            rows: shape.0 as u64,
            cols: shape.1 as u64,
            element: size_of::<T>() as u64,
        };
        SparseRows {
            device: device.clone(),
            shape,
            on_host: Mutex::new(OnHost::Borrowed(Weak::new())),
            place: Place::of(device, nothing, None),
            rounding: Values::Exact,
            placed: OnceLock::from(Ok(Placed::Parts(vec![part]))),
        }
    }

    /// Whether they stream, or will when a product needs them.
    pub(in crate::ops) fn stream(&self) -> bool {
        match self.placed.get() {
            Some(Ok(placed)) => matches!(placed, Placed::Streamed(_)),
            _ => self.place.residence != Residence::Whole,
        }
    }

    /// Whether kernels read the values that the host has: none were rounded on their way.
    pub(in crate::ops) fn are_exact(&self) -> bool {
        self.rounding == Values::Exact
    }

    /// Whether the CPU may have a share of them.
    pub(in crate::ops) fn is_shared(&self) -> bool {
        self.place.host_share() > 0.0 && self.stream()
    }

    /// What of them the device has.
    pub(in crate::ops) fn residency(&self) -> Residency {
        match self.placed.get() {
            Some(Ok(Placed::Streamed(stream))) => stream.blocks().residency(),
            _ => Residency {
                streams: self.stream(),
                ..Residency::default()
            },
        }
    }

    /// Blocks into which they are to be cut.
    pub(in crate::ops) fn planned_blocks(&self) -> u64 {
        self.place.footprint.blocks(self.place.residence)
    }

    /// The blocks, where they stay or stream and the device has them.
    pub(in crate::ops) fn streamed(&self) -> Result<Option<&SparseStream<T>>, OpError> {
        Ok(match self.placed()? {
            Placed::Parts(_) => None,
            Placed::Streamed(stream) => Some(stream),
        })
    }

    /// Walks over the blocks of rows of a part, each with its number.
    pub(in crate::ops) fn each(
        &self,
        part: Part,
        mut walk: impl FnMut(usize, SparseBlock<'_, T>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        match self.placed()? {
            Placed::Parts(parts) => {
                let mut parts = parts.iter().enumerate();
                parts.try_for_each(|(number, part)| walk(number, part.block()))
            }
            Placed::Streamed(stream) => stream.each(part, walk),
        }
    }

    /// Puts the rows on the device, if they are not there: as a whole where they fit, and then they are no longer kept on
    /// the host; else in blocks.
    pub(in crate::ops) fn place(&self) -> Result<(), OpError> {
        self.placed().map(drop)
    }

    fn placed(&self) -> Result<&Placed<T>, OpError> {
        let placed = self.placed.get_or_init(|| self.upload());
        placed.as_ref().map_err(OpError::clone)
    }

    /// Whether the device has the rows.
    pub(in crate::ops) fn are_uploaded(&self) -> bool {
        matches!(self.placed.get(), Some(Ok(_)))
    }

    /// What `look` finds in the rows as a whole on the device; `None` where they stream. Rows that are not there yet cross the
    /// link for it, and are dropped.
    pub(in crate::ops) fn on_device<R>(
        &self,
        look: impl FnOnce(&[SparsePart<T>]) -> Result<R, OpError>,
    ) -> Result<Option<R>, OpError> {
        match self.placed.get() {
            Some(Ok(Placed::Parts(parts))) => look(parts).map(Some),
            None if self.place.residence == Residence::Whole => {
                let features = self.features()?;
                let parts =
                    features.reading(|| upload_sparse(&self.device, &arrays(&features)))??;
                look(&parts).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn upload(&self) -> Result<Placed<T>, OpError> {
        let features = self.features()?;
        if self.place.residence == Residence::Whole {
            match features.reading(|| upload_sparse(&self.device, &arrays(&features)))? {
                Ok(parts) => {
                    let mut on_host = locked(&self.on_host);
                    *on_host = OnHost::Borrowed(Arc::downgrade(&features));
                    return Ok(Placed::Parts(parts));
                }
                Err(error) if !error.is_out_of_memory() => return Err(error),
                Err(error) => tracing::info!(%error, "X has to stream"),
            }
        }
        let place = self.place.in_blocks(&self.device);
        let stream = SparseStream::new(&self.device, features, place, self.rounding)?;
        Ok(Placed::Streamed(Box::new(stream)))
    }

    /// X on the host: as it came, as long as anybody keeps it, else copied back from the device.
    pub(in crate::ops) fn features(&self) -> Result<Arc<Features<T>>, OpError> {
        let kept = match &*locked(&self.on_host) {
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
        let Placed::Parts(parts) = self.placed()? else {
            unreachable!("what streams is kept on the host");
        };
        for part in parts {
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
pub(in crate::ops) fn csr<T>(features: &Features<T>) -> &CsrMatrix<T> {
    match features.storage() {
        Storage::Sparse(x) => x,
        Storage::Dense(_) => unreachable!("rows are made of sparse features alone"),
    }
}

/// Their arrays, whatever the width of the offsets.
pub(in crate::ops) fn arrays<T>(features: &Features<T>) -> CsrArrays<'_, T> {
    let arrays = features.csr_arrays();
    arrays.expect("rows are made of sparse features alone")
}

/// X as parts on a device: one, but where 32 bits do not count its entries.
pub(in crate::ops) fn upload_sparse<T: Number>(
    device: &Device,
    x: &CsrArrays<'_, T>,
) -> Result<Vec<SparsePart<T>>, OpError> {
    with_offsets!(x.offsets, offsets => upload_parts(device, x, offsets))
}

fn upload_parts<T: Number, O: Copy + Into<u64> + Sync>(
    device: &Device,
    x: &CsrArrays<'_, T>,
    offsets: &[O],
) -> Result<Vec<SparsePart<T>>, OpError> {
    cut_rows(offsets, MAX_NONZEROS as u64)
        .windows(2)
        .map(|cut| {
            let (first_row, end) = (cut[0], cut[1]);
            let base: u64 = offsets[first_row].into();
            let range = base as usize..offsets[end].into() as usize;
            let of_part = &offsets[first_row..=end];
            // A part holds at most MAX_NONZEROS entries, so that its offsets fit 32 bits.
            let narrow = |range: Range<usize>, to: &mut [u32]| {
                let of_range = to.iter_mut().zip(&of_part[range]);
                of_range.for_each(|(to, offset)| *to = ((*offset).into() - base) as u32);
            };
            Ok(SparsePart {
                first_row,
                rows: end - first_row,
                offsets: device.upload_with(of_part.len(), narrow)?.into(),
                indices: device.upload(&x.indices[range.clone()])?.into(),
                values: device.upload(&x.values[range])?.into(),
            })
        })
        .collect()
}

/// Rows at which to cut, so that each part has at most `limit` nonzeros and starts at a multiple of
/// [`PART_ROWS`]; the first is 0, the last m. A group of rows above the limit stays whole.
fn cut_rows<O: Copy + Into<u64>>(offsets: &[O], limit: u64) -> Vec<usize> {
    let rows = offsets.len() - 1;
    let mut cuts = vec![0];
    let mut start = 0;
    while start < rows {
        let base = offsets[start].into();
        let fits = offsets[start..].partition_point(|&o| o.into() - base <= limit) - 1;
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
        assert_eq!(cut_rows(&[0_u32, 3, 3, 9], 100), [0, 3]);
        assert_eq!(cut_rows(&[0_u64], 100), [0, 0]);
    }
}
