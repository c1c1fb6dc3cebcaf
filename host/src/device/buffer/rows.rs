//! Rows with a gap after each, so that every row begins at an aligned address.

use bytemuck::Pod;

use super::{Buffer, Storage};
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
        let size = size_of::<T>();
        let rows = PackedRows {
            bytes: bytemuck::cast_slice(values),
            row_bytes: cols * size,
            pitch_bytes: pitch * size,
        };
        let mut buffer = self.allocate(len)?;
        buffer.write_bytes_with(0, len, &|range, to| rows.spread(range.start, to))?;
        Ok(buffer)
    }
}

impl<T: Pod> Buffer<T> {
    /// These rows, `layout.pitch` elements apart, on the same device with `pitch` elements from one to the next; gaps are
    /// zero.
    ///
    /// # Errors
    /// [`DeviceError::OutOfBounds`] when the rows reach beyond the buffer, [`DeviceError::LengthMismatch`] for a pitch below
    /// the columns, [`DeviceError::OutOfMemory`] when the result does not fit.
    ///
    /// ```
    /// use warpfuse::device::{Device, buffer::RowLayout};
    /// let x = Device::cpu().upload(&[1.0, 2.0, 9.0, 3.0, 4.0, 9.0])?;
    /// let layout = RowLayout { rows: 2, cols: 2, pitch: 3 };
    /// assert_eq!(x.rows_apart(layout, 4)?.to_vec()?, [1.0, 2.0, 0.0, 0.0, 3.0, 4.0, 0.0, 0.0]);
    /// # Ok::<(), warpfuse::device::DeviceError>(())
    /// ```
    pub fn rows_apart(&self, layout: RowLayout, pitch: usize) -> Result<Buffer<T>, DeviceError> {
        let RowLayout { rows, cols, .. } = layout;
        let size = size_of::<T>();
        if pitch.min(layout.pitch) < cols {
            let what = "rows: elements from row to row";
            return Err(DeviceError::LengthMismatch {
                what,
                expected: cols,
                found: pitch.min(layout.pitch),
            });
        }
        let moved = ByteRows {
            count: rows,
            bytes: cols * size,
            from_pitch: layout.pitch * size,
            to_pitch: pitch * size,
        };
        self.byte_range("rows", 0, moved.end(moved.from_pitch) / size)?;
        let overflow = DeviceError::SizeOverflow {
            count: rows,
            element_bytes: pitch,
        };
        let mut to: Buffer<T> = self
            .device()
            .zeros(rows.checked_mul(pitch).ok_or(overflow)?)?;
        match (&mut to.storage, &self.storage) {
            (Storage::Cuda(to), Storage::Cuda(from)) => to.copy_rows_from(from, &moved)?,
            (Storage::Cpu(to), Storage::Cpu(from)) => {
                let (to, from) = (to.memory.as_bytes_mut(), from.memory.as_bytes());
                for row in 0..rows {
                    let values = &from[row * moved.from_pitch..][..moved.bytes];
                    to[row * moved.to_pitch..][..moved.bytes].copy_from_slice(values);
                }
            }
            (Storage::Emulator(to), Storage::Emulator(from)) => {
                let mut values = vec![0; moved.bytes];
                for row in 0..rows {
                    from.read_bytes((row * moved.from_pitch) as u64, &mut values)?;
                    to.write_bytes((row * moved.to_pitch) as u64, &values)?;
                }
            }
            _ => unreachable!("both lie on one device"),
        }
        Ok(to)
    }
}

/// Rows that are copied from one array to another, in bytes.
pub(crate) struct ByteRows {
    pub(crate) count: usize,
    /// Of a row.
    pub(crate) bytes: usize,
    pub(crate) from_pitch: usize,
    pub(crate) to_pitch: usize,
}

impl ByteRows {
    /// The byte after the last row, of rows so far apart.
    pub(crate) fn end(&self, pitch: usize) -> usize {
        match self.count {
            0 => 0,
            rows => ((rows - 1) * pitch).saturating_add(self.bytes),
        }
    }
}

/// Rows without gaps.
struct PackedRows<'a> {
    bytes: &'a [u8],
    row_bytes: usize,
    pitch_bytes: usize,
}

impl PackedRows<'_> {
    /// Writes `to`, which begins at byte `start` of the rows with gaps.
    fn spread(&self, start: usize, to: &mut [u8]) {
        let (mut row, mut col) = (start / self.pitch_bytes, start % self.pitch_bytes);
        let mut rest = to;
        while !rest.is_empty() {
            let here = rest.len().min(self.pitch_bytes - col);
            let (part, tail) = rest.split_at_mut(here);
            let values = self.row_bytes.saturating_sub(col).min(here);
            let (values, gap) = part.split_at_mut(values);
            if !values.is_empty() {
                let from = &self.bytes[row * self.row_bytes + col..];
                values.copy_from_slice(&from[..values.len()]);
            }
            gap.fill(0);
            (row, col, rest) = (row + 1, 0, tail);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_spread_wherever_a_range_begins_and_ends() {
        let bytes: Vec<u8> = (1..=12).collect();
        let rows = PackedRows {
            bytes: &bytes,
            row_bytes: 3,
            pitch_bytes: 5,
        };
        let all = [
            1, 2, 3, 0, 0, 4, 5, 6, 0, 0, 7, 8, 9, 0, 0, 10, 11, 12, 0, 0,
        ];
        for start in 0..all.len() {
            for end in start..=all.len() {
                let mut to = vec![0xff; end - start];
                rows.spread(start, &mut to);
                assert_eq!(to, all[start..end], "{start}..{end}");
            }
        }
    }
}
