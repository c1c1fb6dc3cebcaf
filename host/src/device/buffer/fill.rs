//! Values that are made where they are copied from: in the blocks that cross the link, by all cores.

use std::ops::Range;

use bytemuck::Pod;

use super::{Buffer, Storage};
use crate::device::host_memory::HostMemory;
use crate::device::staging::{self, Fill};
use crate::device::{Device, DeviceError, host_memory};

impl Device {
    /// `len` values on this device, made by `fill`: it gets a range of them and writes every one, in any order and from
    /// several threads at once. So values are converted on their way to a device, without a converted copy on the host.
    ///
    /// ```
    /// use warpfuse::device::Device;
    ///
    /// let offsets: [u64; 4] = [5, 7, 7, 9];
    /// let narrow = Device::cpu().upload_with(4, |range, to: &mut [u32]| {
    ///     for (to, offset) in to.iter_mut().zip(&offsets[range]) {
    ///         *to = (offset - 5) as u32;
    ///     }
    /// })?;
    /// assert_eq!(narrow.to_vec()?, [0, 2, 2, 4]);
    /// # Ok::<(), warpfuse::device::DeviceError>(())
    /// ```
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] when they do not fit.
    pub fn upload_with<T: Pod>(
        &self,
        len: usize,
        fill: impl Fn(Range<usize>, &mut [T]) + Sync,
    ) -> Result<Buffer<T>, DeviceError> {
        let mut buffer = self.allocate(len)?;
        buffer.write_with(0, len, fill)?;
        Ok(buffer)
    }
}

impl<T: Pod> Buffer<T> {
    /// Replaces `count` values from `start` on by those that `fill` makes: it gets a range counted from `start`, and
    /// writes every value of it, in any order and from several threads at once.
    ///
    /// # Errors
    /// [`DeviceError::OutOfBounds`] when the values reach beyond the buffer.
    pub fn write_with(
        &mut self,
        start: usize,
        count: usize,
        fill: impl Fn(Range<usize>, &mut [T]) + Sync,
    ) -> Result<(), DeviceError> {
        let size = size_of::<T>();
        self.write_bytes_with(start, count, &|bytes, to| {
            fill(
                bytes.start / size..bytes.end / size,
                bytemuck::cast_slice_mut(to),
            );
        })
    }

    /// [`Buffer::write_with`] in bytes: ranges hold whole values.
    pub(in crate::device) fn write_bytes_with(
        &mut self,
        start: usize,
        count: usize,
        fill: &Fill<'_>,
    ) -> Result<(), DeviceError> {
        let bytes = self.byte_range("fill a buffer", start, count)?;
        let len = bytes.len();
        self.ledger().check("fill a buffer")?;
        self.ledger().sent(len);
        let step = staging::step(size_of::<T>()).unwrap_or(len.max(1));
        match &mut self.storage {
            Storage::Cuda(memory) if step <= len && len >= staging::STAGED_BYTES => {
                memory.write_with(bytes.start, (len, step), fill)
            }
            Storage::Cuda(memory) => {
                // Piece by piece: what many fits send is a million numbers, a hundredth of a large X.
                let mut piece = vec![T::zeroed(); step.min(len) / size_of::<T>().max(1)];
                for start in (0..len).step_by(step) {
                    let range = start..len.min(start + step);
                    let to: &mut [u8] = &mut bytemuck::cast_slice_mut(&mut piece)[..range.len()];
                    fill(range, to);
                    memory.write(bytes.start + start, to)?;
                }
                Ok(())
            }
            Storage::Cpu(memory) => {
                let to = &mut memory.memory.as_bytes_mut()[bytes];
                host_memory::fill(to, step, fill);
                Ok(())
            }
            Storage::Emulator(memory) => {
                let values = filled(len, fill);
                Ok(memory.write_bytes(bytes.start as u64, values.as_bytes())?)
            }
        }
    }
}

/// `len` bytes in memory of their own, aligned as any value is.
fn filled(len: usize, fill: &Fill<'_>) -> HostMemory {
    let mut values = HostMemory::zeroed(len).expect("memory of the host, as a vector takes it");
    if len > 0 {
        fill(0..len, values.as_bytes_mut());
    }
    values
}
