//! Sums over the columns of X, added where it lies.

use super::device_features::{DeviceCsr, DeviceDense, DeviceFeatures};
use super::forms::Rows;
use super::forms::rows::SparsePart;
use super::{Matrix, Number, OpError};
use crate::device::SharedBuffer;
use crate::matrix::ColumnMoments;

/// What is free on a device over what sums over the columns of a sparse X may take of it.
const MOMENTS_SHARE: u64 = 4;

impl<T: Number> Matrix<T> {
    /// Sums over each column, added in f64 where X lies, of which 16 or 24 bytes a column come back. `None` where the host has
    /// to add them: on the CPU, of an X that streams, and of a sparse X where 16 bytes an entry are more than a quarter of
    /// what is free. Sparse rows that are not on the device cross the link for it.
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
                Some(values) => self.of_dense(rows.ld, values).map(Some),
                None => Ok(None),
            },
            Rows::Sparse(_) if !self.has_room_for_moments() => Ok(None),
            Rows::Sparse(rows) => match rows.on_device(|parts| self.of_parts(parts)) {
                Err(error) if error.is_out_of_memory() => Ok(None),
                found => found,
            },
            _ => Ok(None),
        }
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
