//! Rows with a gap after each, so that every row begins at an aligned address.

use bytemuck::Pod;

use super::{Buffer, Storage};
use crate::device::cuda::PitchedRows;
use crate::device::{Device, DeviceError};

/// A row-major array whose rows lie `pitch` elements apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowLayout {
    /// Number of rows.
    pub rows: usize,
    /// Elements of a row.
    pub cols: usize,
    /// Elements from the beginning of one row to the next, at least `cols`.
    pub pitch: usize,
}

impl Device {
    /// A copy of packed row-major `values` in which rows lie `layout.pitch` elements apart; the gaps
    /// are zero. The buffer's length is `rows × pitch`.
    ///
    /// # Errors
    /// [`DeviceError::LengthMismatch`] when `values` are not `rows × cols`, or `pitch < cols`;
    /// [`DeviceError::OutOfMemory`] and [`DeviceError::SizeOverflow`] when it does not fit.
    pub fn upload_rows<T: Pod>(
        &self,
        values: &[T],
        layout: RowLayout,
    ) -> Result<Buffer<T>, DeviceError> {
        let RowLayout { rows, cols, pitch } = layout;
        let overflow = DeviceError::SizeOverflow {
            count: rows,
            element_bytes: pitch,
        };
        let len = rows.checked_mul(pitch).ok_or(overflow)?;
        if pitch < cols {
            let what = "upload rows: elements from row to row";
            return Err(DeviceError::LengthMismatch {
                what,
                expected: cols,
                found: pitch,
            });
        }
        if values.len() != rows * cols {
            let (what, expected) = ("upload rows", rows * cols);
            return Err(DeviceError::LengthMismatch {
                what,
                expected,
                found: values.len(),
            });
        }
        if pitch == cols {
            return self.upload(values);
        }
        let mut buffer = self.zeros(len)?;
        buffer.write_rows(values, layout)?;
        Ok(buffer)
    }
}

impl<T: Pod> Buffer<T> {
    fn write_rows(&mut self, values: &[T], layout: RowLayout) -> Result<(), DeviceError> {
        let RowLayout { rows, cols, pitch } = layout;
        if rows == 0 || cols == 0 {
            return Ok(());
        }
        match &mut self.storage {
            Storage::Cuda(memory) => {
                let (row_bytes, pitch_bytes) = (cols * size_of::<T>(), pitch * size_of::<T>());
                let shape = PitchedRows {
                    rows,
                    row_bytes,
                    pitch_bytes,
                };
                memory.write_rows(bytemuck::cast_slice(values), shape)
            }
            Storage::Emulator(memory) => {
                let starts = (0..).step_by(pitch * size_of::<T>());
                for (start, row) in starts.zip(values.chunks_exact(cols)) {
                    memory.write_bytes(start, bytemuck::cast_slice(row))?;
                }
                Ok(())
            }
            Storage::Cpu(memory) => {
                let all: &mut [T] = bytemuck::cast_slice_mut(memory.memory.as_bytes_mut());
                let targets = all.chunks_exact_mut(pitch);
                for (to, from) in targets.zip(values.chunks_exact(cols)) {
                    to[..cols].copy_from_slice(from);
                }
                Ok(())
            }
        }
    }
}
