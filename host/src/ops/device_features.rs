//! X that lies on a GPU already, in memory of this library or of another.

use gpu_kernels::In;
use gpu_kernels::fused::dense_order::leading_dimension;
use gpu_kernels::fused::sparse::MAX_NONZEROS;
use gpu_kernels::fused::{UnpackArgs, UnpackVariant};

use super::blocks::{Unpacking, no_arrays};
use super::reduce::Reducer;
use super::vector::{fill, multiply};
use super::{Matrix, MatrixOptions, Number, OpError, Terms};
use crate::device::buffer::RowLayout;
use crate::device::{Buffer, Device, DeviceError, SharedBuffer};
use crate::matrix::{ColumnMoments, CsrError};

/// X on a GPU: what [`Matrix::over`] reads where it lies.
///
/// ```
/// use warpfuse::device::buffer::RowLayout;
/// use warpfuse::device::{Device, EmulatorOptions};
/// use warpfuse::ops::{DeviceDense, DeviceFeatures, Matrix, MatrixOptions, Terms};
/// # fn main() -> Result<(), warpfuse::ops::OpError> {
/// # #[cfg(feature = "emulator")] {
/// let device = Device::emulator(EmulatorOptions::default());
/// let values = device.upload(&[1.0_f32, 2.0, 0.0, 3.0])?;
/// let x = DeviceDense::new(RowLayout { rows: 2, cols: 2, pitch: 2 }, values.into())?;
/// let x = Matrix::over(DeviceFeatures::Dense(x), MatrixOptions::default())?;
/// let (y, mut w) = (device.upload(&[1.0, 1.0])?, device.zeros(2)?);
/// x.fused(&y, &Terms::default(), &mut w)?; // Xᵀ(X·y)
/// assert_eq!(w.to_vec()?, [3.0, 15.0]);
/// # } Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub enum DeviceFeatures<T> {
    /// All elements, row after row.
    Dense(DeviceDense<T>),
    /// Compressed sparse rows.
    Sparse(DeviceCsr<T>),
}

/// Dense rows on a GPU.
#[derive(Debug, Clone)]
pub struct DeviceDense<T> {
    pub(super) rows: usize,
    pub(super) cols: usize,
    /// Elements from one row to the next, of which those beyond the columns are zero.
    pub(super) pitch: usize,
    pub(super) values: SharedBuffer<T>,
}

/// Compressed sparse rows on a GPU.
#[derive(Debug, Clone)]
pub struct DeviceCsr<T> {
    pub(super) shape: (usize, usize),
    pub(super) offsets: SharedBuffer<u32>,
    pub(super) indices: SharedBuffer<u32>,
    pub(super) values: SharedBuffer<T>,
    /// Entries of the longest row.
    pub(super) longest: u64,
}

/// Indices or offsets as other libraries have them.
#[derive(Debug, Clone)]
pub enum DeviceIntegers {
    /// Of 32 bits.
    Narrow(SharedBuffer<i32>),
    /// Of 64 bits.
    Wide(SharedBuffer<i64>),
}

impl<T: Number> DeviceFeatures<T> {
    /// The device that X lies on.
    pub fn device(&self) -> Device {
        match self {
            DeviceFeatures::Dense(x) => x.values.device(),
            DeviceFeatures::Sparse(x) => x.values.device(),
        }
    }

    /// m and n.
    pub fn shape(&self) -> (usize, usize) {
        match self {
            DeviceFeatures::Dense(x) => (x.rows, x.cols),
            DeviceFeatures::Sparse(x) => x.shape,
        }
    }

    /// Sums over each column, added in f64 on the device: 16 bytes a column, or 24, come back. A sparse X of f32 takes
    /// 16 bytes an entry, f64 8, while they are added.
    ///
    /// # Errors
    /// [`OpError::Device`] when the device has too little memory, or fails.
    pub fn column_moments(&self) -> Result<ColumnMoments, OpError> {
        match self {
            DeviceFeatures::Dense(x) => x.column_moments(),
            DeviceFeatures::Sparse(x) => x.column_moments(),
        }
    }
}

impl<T: Number> DeviceDense<T> {
    /// Rows that lie in `values` as `layout` says. Kernels read them there if there are no gaps between rows and rows of
    /// more than 32 columns take whole packs of 16 bytes; others are copied on the device, with gaps of zeros.
    ///
    /// # Errors
    /// [`OpError::Device`] when the rows reach beyond the buffer, lie on the CPU, or have to be copied and do not fit.
    pub fn new(layout: RowLayout, values: SharedBuffer<T>) -> Result<Self, OpError> {
        on_gpu(&values.device())?;
        let RowLayout { rows, cols, .. } = layout;
        let pack = 16 / size_of::<T>();
        let own = leading_dimension(cols as u64, pack as u64) as usize;
        let has_gaps = layout.pitch != cols && rows > 1;
        let takes_packs = own == cols || cols.is_multiple_of(pack);
        let (pitch, values) = if has_gaps || !takes_packs {
            (own, values.rows_apart(layout, own)?.into())
        } else {
            (cols, values)
        };
        let needed = rows.saturating_mul(pitch);
        if values.len() < needed {
            return Err(OpError::Length {
                what: "X",
                expected: needed,
                found: values.len(),
            });
        }
        Ok(DeviceDense {
            rows,
            cols,
            pitch,
            values,
        })
    }

    fn column_moments(&self) -> Result<ColumnMoments, OpError> {
        let (rows, cols, pitch) = (self.rows, self.cols, self.pitch);
        let found = T::column_moments(&self.values, RowLayout { rows, cols, pitch })?;
        let count = rows as f64;
        Ok(ColumnMoments {
            sum: found.iter().map(|of| of.mean * count).collect(),
            sum_of_squares: found
                .iter()
                .map(|of| of.deviations + count * of.mean * of.mean)
                .collect(),
        })
    }
}

impl<T: Number> DeviceCsr<T> {
    /// m rows and n columns of the entries that `offsets` (m + 1) share out. Indices of a row need not ascend; those that
    /// are repeated add up. Integers of 64 bits are narrowed on the device; nothing else is copied.
    ///
    /// Offsets and the range of indices are checked on the device, from which a few numbers come back.
    ///
    /// # Errors
    /// [`OpError::Csr`] for arrays that are no such matrix, [`OpError::TooLarge`] for more entries than 32 bits count,
    /// [`OpError::OtherDevice`] for arrays that lie apart, [`OpError::Device`] on the CPU.
    pub fn new(
        shape: (usize, usize),
        offsets: DeviceIntegers,
        indices: DeviceIntegers,
        values: SharedBuffer<T>,
    ) -> Result<Self, OpError> {
        let device = values.device();
        on_gpu(&device)?;
        let entries = values.len();
        if entries > MAX_NONZEROS as usize {
            return Err(OpError::TooLarge {
                what: "entries of X on a device",
                limit: u64::from(MAX_NONZEROS),
                found: entries as u64,
            });
        }
        let (rows, cols) = shape;
        if offsets.len() != rows + 1 {
            let found = offsets.len();
            return Err(CsrError::OffsetCount { rows, found }.into());
        }
        offsets.expect_on(&device)?;
        indices.expect_on(&device)?;
        let offsets = offsets.words()?;
        let ends = (offsets.read_scalar(0)?, offsets.read_scalar(rows)?);
        if ends != (0, entries as u32) || indices.len() != entries {
            return Err(CsrError::Ends {
                first: u64::from(ends.0),
                last: u64::from(ends.1),
                indices: indices.len(),
                values: entries,
            }
            .into());
        }
        let mut reduce = Reducer::new(&device)?;
        let longest = longest_row(&mut reduce, &offsets, entries)?;
        let indices = indices.below(&mut reduce, cols, &offsets)?;
        Ok(DeviceCsr {
            shape,
            offsets,
            indices,
            values,
            longest,
        })
    }

    /// Stored entries.
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    /// Xᵀ·1 and (X ⊙ X)ᵀ·1 by products of f64: sums of f32 could not tell a constant column from one that hardly varies.
    fn column_moments(&self) -> Result<ColumnMoments, OpError> {
        let device = self.values.device();
        let values = T::widened(&self.values)?;
        let mut squares = device.zeros::<f64>(values.len())?;
        multiply(&values, &values, &mut squares)?;
        let mut ones = device.zeros::<f64>(self.shape.0)?;
        fill(1.0, &mut ones)?;
        Ok(ColumnMoments {
            sum: self.sums_of_columns(values, &ones)?,
            sum_of_squares: self.sums_of_columns(squares.into(), &ones)?,
        })
    }

    /// Sums over the columns of a matrix with these values at the same places.
    fn sums_of_columns(
        &self,
        values: SharedBuffer<f64>,
        ones: &Buffer<f64>,
    ) -> Result<Vec<f64>, OpError> {
        let x = DeviceCsr {
            shape: self.shape,
            offsets: self.offsets.clone(),
            indices: self.indices.clone(),
            values,
            longest: self.longest,
        };
        let x = Matrix::over(DeviceFeatures::Sparse(x), MatrixOptions::default())?;
        let mut sums = ones.device().zeros(self.shape.1)?;
        x.transposed(ones, &Terms::default(), &mut sums)?;
        Ok(sums.to_vec()?)
    }
}

/// Entries of the longest of rows whose lengths add up to `entries`.
fn longest_row(
    reduce: &mut Reducer,
    offsets: &SharedBuffer<u32>,
    entries: usize,
) -> Result<u64, OpError> {
    let rows = offsets.len() - 1;
    if rows == 0 {
        return Ok(0);
    }
    let device = offsets.device();
    let mut lengths = device.zeros::<u32>(rows)?;
    let args = UnpackArgs {
        offsets: offsets.input(),
        indices: lengths.output(),
        ..no_arrays::<f32>(rows)
    };
    let variant = UnpackVariant::Lengths;
    Unpacking::<f32>::new(&device, &[variant])?.launch(variant, args)?;
    // A row that ends before it starts has a negative length, as one of 2³¹ entries has; so the sum is exact.
    let lengths = SharedBuffer::from(lengths).cast::<i32>()?;
    let shortest = reduce.min(&lengths)?.unwrap_or(0);
    if shortest < 0 || reduce.sum(&lengths)? != entries as i64 {
        let row = reduce.arg_min(&lengths)?.unwrap_or(0);
        return Err(CsrError::OffsetOrder { row }.into());
    }
    Ok(reduce.max(&lengths)?.unwrap_or(0).unsigned_abs().into())
}

impl DeviceIntegers {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            DeviceIntegers::Narrow(integers) => integers.len(),
            DeviceIntegers::Wide(integers) => integers.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn expect_on(&self, device: &Device) -> Result<(), OpError> {
        let what = "borrow a sparse matrix";
        match self {
            DeviceIntegers::Narrow(integers) => integers.expect_on(device, what)?,
            DeviceIntegers::Wide(integers) => integers.expect_on(device, what)?,
        }
        Ok(())
    }

    /// Their 32 bits; `u32::MAX` for one that has more.
    fn words(&self) -> Result<SharedBuffer<u32>, OpError> {
        let wide = match self {
            DeviceIntegers::Narrow(integers) => return Ok(integers.cast()?),
            DeviceIntegers::Wide(wide) => wide,
        };
        let device = wide.device();
        let mut narrow = device.zeros::<u32>(wide.len())?;
        let args = UnpackArgs {
            packed: halves(wide),
            indices: narrow.output(),
            ..no_arrays::<f32>(wide.len())
        };
        let variant = UnpackVariant::Narrow;
        Unpacking::<f32>::new(&device, &[variant])?.launch(variant, args)?;
        Ok(narrow.into())
    }

    /// Column indices, all of which must be below `cols`.
    fn below(
        &self,
        reduce: &mut Reducer,
        cols: usize,
        offsets: &Buffer<u32>,
    ) -> Result<SharedBuffer<u32>, OpError> {
        let indices = self.words()?.cast::<i32>()?;
        let least = reduce.min(&indices)?.unwrap_or(0);
        let most = reduce.max(&indices)?.unwrap_or(0);
        let limit = cols.max(1) as u64;
        if least < 0 || u64::from(most.unsigned_abs()) >= limit && !indices.is_empty() {
            let (at, index) = match least < 0 {
                true => (reduce.arg_min(&indices)?, least),
                false => (reduce.arg_max(&indices)?, most),
            };
            return Err(CsrError::IndexRange {
                row: row_of(at.unwrap_or(0), offsets)?,
                index: index as u32,
                cols,
            }
            .into());
        }
        Ok(indices.cast()?)
    }
}

/// The row that has this entry.
fn row_of(entry: usize, offsets: &Buffer<u32>) -> Result<usize, OpError> {
    let (mut from, mut to) = (0, offsets.len() - 1);
    while to - from > 1 {
        let middle = from + (to - from) / 2;
        match offsets.read_scalar(middle)? as usize <= entry {
            true => from = middle,
            false => to = middle,
        }
    }
    Ok(from)
}

/// Integers of 64 bits as twice as many words, the lower first.
fn halves(wide: &Buffer<i64>) -> In<'_, u32> {
    let all = wide.input();
    // SAFETY: the words are those of the buffer, for as long as it is borrowed, with its alignment; any bits are a word.
    unsafe { In::new(all.pointer().cast(), 2 * all.len()) }
}

fn on_gpu(device: &Device) -> Result<(), OpError> {
    match device.is_cpu() {
        false => Ok(()),
        true => Err(OpError::Device(DeviceError::Unsupported {
            what: "read X where it lies",
            device: device.to_string(),
            why: "an array of the host is `Features`, which the CPU reads where they lie",
        })),
    }
}

#[cfg(test)]
mod tests;
