//! Rows with a gap after each, so that every row begins at an aligned address.

use bytemuck::Pod;

use super::Buffer;
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
