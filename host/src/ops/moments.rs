//! Sums over the columns of X, added where it lies.

use gpu_kernels::Real;
use gpu_kernels::fused::{UnpackArgs, UnpackVariant};

use super::blocks::{Part, SparseBlock, SparseStream, Unpacking, no_arrays};
use super::device_features::{DeviceCsr, DeviceDense, DeviceFeatures};
use super::forms::Rows;
use super::forms::rows::{SparsePart, SparseRows};
use super::{Matrix, Number, OpError};
use crate::device::{Buffer, Device, SharedBuffer};
use crate::matrix::ColumnMoments;
use crate::parallel;

/// What is free on a device over what sums over the columns of a sparse X may take of it.
const MOMENTS_SHARE: u64 = 4;

impl<T: Number> Matrix<T> {
    /// Sums over each column, added in f64 where X lies, of which 8 to 24 bytes a column come back. `None` where the host has
    /// to add them: on the CPU, of a dense X that streams or values that are rounded on their way, of a sparse X where 16
    /// bytes an entry are more than a quarter of what is free, unless all values are 1, and where the same bits are promised of
    /// every device, unless they are: sums of ones are counts, the same in any order.
    ///
    /// Sparse rows that are not on the device cross the link for it; those that stream do so once, and as often as a product.
    ///
    /// # Errors
    /// [`OpError::Device`] when the device has too little memory, or fails.
    pub fn column_moments(&self) -> Result<Option<ColumnMoments>, OpError> {
        if let Some(members) = &self.members {
            // In the order of the members: other bits than those of one.
            let own = match members.repeats {
                true => None,
                false => members.own.column_moments()?,
            };
            return members.moments(members.own.device(), own);
        }
        match &self.forms.rows {
            Rows::Dense(rows) => match rows.whole() {
                Some(values) if !self.is_reproducible() => self.of_dense(rows.ld, values).map(Some),
                _ => Ok(None),
            },
            Rows::Sparse(rows) => match self.of_sparse(rows) {
                Err(error) if error.is_out_of_memory() => Ok(None),
                found => found,
            },
            _ => Ok(None),
        }
    }

    fn of_sparse(&self, rows: &SparseRows<T>) -> Result<Option<ColumnMoments>, OpError> {
        if rows.stream() {
            return match rows.streamed()? {
                Some(stream) if rows.are_exact() => self.of_streamed(stream),
                _ => Ok(None),
            };
        }
        let may_be_copied = !self.is_reproducible() && self.has_room_for_moments();
        if !rows.are_uploaded() && !may_be_copied {
            return Ok(None);
        }
        let found = rows.on_device(|parts| match self.counted(parts)? {
            None if may_be_copied => self.of_parts(parts).map(Some),
            found => Ok(found),
        });
        Ok(found?.flatten())
    }

    /// Whether values and squares of a sparse X in f64 take little of what is free: where they took half of an H100, the host
    /// was faster (2.2·10⁹ entries: 0.86 s, and 0.44 by the host; 3·10⁸: 0.04 s and 0.1).
    fn has_room_for_moments(&self) -> bool {
        let needed = self
            .shape
            .nnz
            .unwrap_or(0)
            .saturating_mul(2 * size_of::<f64>() as u64);
        let room = self.device().room();
        room.is_none_or(|room| needed <= room as u64 / MOMENTS_SHARE)
    }

    fn of_dense(&self, pitch: usize, values: &SharedBuffer<T>) -> Result<ColumnMoments, OpError> {
        let x = DeviceDense {
            rows: self.rows(),
            cols: self.cols(),
            pitch,
            values: values.clone(),
        };
        DeviceFeatures::Dense(x).column_moments()
    }

    /// The entries of each column; `None` unless all values are 1, of which the first one tells most.
    fn counted(&self, parts: &[SparsePart<T>]) -> Result<Option<ColumnMoments>, OpError> {
        let values = parts.iter().map(|part| part.arrays().1.2);
        let first = values.into_iter().find(|values| !values.is_empty());
        if !first.map_or(Ok(false), |values| values.read_scalar(0).map(is_one))? {
            return Ok(None);
        }
        let mut sums = Sums::counts(self.device(), self.cols())?;
        parts.iter().try_for_each(|part| sums.add(&part.block()))?;
        sums.counted()
    }

    /// Over blocks that are added while they pass.
    fn of_streamed(&self, stream: &SparseStream<T>) -> Result<Option<ColumnMoments>, OpError> {
        if stream.equal_value().is_some_and(is_one) {
            let mut sums = Sums::counts(self.device(), self.cols())?;
            stream.each(Part::All, |_, block| sums.add(&block))?;
            return sums.counted();
        }
        if self.is_reproducible() {
            return Ok(None);
        }
        let mut sums = Sums::pairs(self.device(), self.cols())?;
        stream.each(Part::All, |_, block| sums.add(&block))?;
        sums.added().map(Some)
    }

    fn of_parts(&self, parts: &[SparsePart<T>]) -> Result<ColumnMoments, OpError> {
        let mut sums = None;
        for part in parts.iter().filter(|part| !part.arrays().1.2.is_empty()) {
            let own = self.of_part(part)?;
            match &mut sums {
                None => sums = Some(own),
                Some(all) => ColumnMoments::add(all, &own),
            }
        }
        Ok(sums.unwrap_or_else(|| ColumnMoments::zeros(self.cols())))
    }

    fn of_part(&self, part: &SparsePart<T>) -> Result<ColumnMoments, OpError> {
        let (rows, (offsets, indices, values)) = part.arrays();
        let x = DeviceCsr {
            shape: (rows, self.cols()),
            offsets: offsets.clone(),
            indices: indices.clone(),
            values: values.clone(),
            longest: self.site.longest.into(),
        };
        DeviceFeatures::Sparse(x).column_moments()
    }
}

fn is_one<T: Number>(value: T) -> bool {
    value == <T as Real>::ONE
}

/// Sums over columns of which a launch for each block adds its own.
struct Sums<T: Number> {
    kernel: Unpacking<T>,
    variant: UnpackVariant,
    sums: Buffer<f64>,
}

impl<T: Number> Sums<T> {
    fn new(device: &Device, variant: UnpackVariant, len: usize) -> Result<Self, OpError> {
        Ok(Sums {
            kernel: Unpacking::new(device, &[variant])?,
            variant,
            sums: device.zeros(len)?,
        })
    }

    /// Of ones.
    fn counts(device: &Device, cols: usize) -> Result<Self, OpError> {
        Self::new(device, UnpackVariant::Counted, cols + 1)
    }

    /// Σx and Σx², side by side.
    fn pairs(device: &Device, cols: usize) -> Result<Self, OpError> {
        Self::new(device, UnpackVariant::Added, 2 * cols)
    }

    fn add(&mut self, block: &SparseBlock<'_, T>) -> Result<(), OpError> {
        if block.entries() == 0 {
            return Ok(());
        }
        let args = UnpackArgs {
            packed: block.indices,
            constants: block.values,
            sums: self.sums.output(),
            ..no_arrays(block.entries())
        };
        self.kernel.launch(self.variant, args)
    }

    /// `None` where some value was not 1.
    fn counted(self) -> Result<Option<ColumnMoments>, OpError> {
        let mut sum = self.sums.to_vec()?;
        let others = sum.pop();
        Ok((others == Some(0.0)).then(|| ColumnMoments {
            sum_of_squares: parallel::convert(&sum, |count| *count),
            sum,
        }))
    }

    fn added(self) -> Result<ColumnMoments, OpError> {
        let sums = self.sums.to_vec()?;
        let (pairs, _) = sums.as_chunks::<2>();
        Ok(ColumnMoments {
            sum: parallel::convert(pairs, |[sum, _]| *sum),
            sum_of_squares: parallel::convert(pairs, |[_, of_squares]| *of_squares),
        })
    }
}
