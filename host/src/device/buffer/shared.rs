//! Buffers that nobody changes.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use bytemuck::Pod;

use super::{Buffer, PhantomData, Storage};
use crate::device::DeviceError;

/// A buffer that nobody changes: the device's own, or memory that somebody lent ([`Device::borrow`](super::super::Device::borrow)).
/// Clones share the memory.
///
/// ```
/// use warpfuse::device::{Device, SharedBuffer};
/// let first = SharedBuffer::from(Device::cpu().upload(&[1.0, 2.0])?);
/// let second = first.clone();
/// assert_eq!(second.read_scalar(1)?, 2.0);
/// # Ok::<(), warpfuse::device::DeviceError>(())
/// ```
pub struct SharedBuffer<T>(Arc<Buffer<T>>);

impl<T: Pod> SharedBuffer<T> {
    /// The same bits in the same memory as values of another type of as many bytes; a copy on the CPU.
    pub(crate) fn cast<U: Pod>(&self) -> Result<SharedBuffer<U>, DeviceError>
    where
        T: Send + Sync,
    {
        const { assert!(size_of::<T>() == size_of::<U>(), "types of one size") };
        let storage = match &self.0.storage {
            Storage::Cuda(memory) => Storage::Cuda(memory.alias(self.0.clone())),
            Storage::Emulator(memory) => Storage::Emulator(memory.alias()),
            Storage::Cpu(_) => {
                let values = self.0.to_vec()?;
                let copy = self.0.device().upload::<U>(bytemuck::cast_slice(&values))?;
                return Ok(copy.into());
            }
        };
        Ok(SharedBuffer::from(Buffer {
            storage,
            len: self.0.len,
            element: PhantomData,
        }))
    }
}

impl<T> From<Buffer<T>> for SharedBuffer<T> {
    fn from(buffer: Buffer<T>) -> Self {
        SharedBuffer(Arc::new(buffer))
    }
}

impl<T> Deref for SharedBuffer<T> {
    type Target = Buffer<T>;

    fn deref(&self) -> &Buffer<T> {
        &self.0
    }
}

impl<T> Clone for SharedBuffer<T> {
    fn clone(&self) -> Self {
        SharedBuffer(self.0.clone())
    }
}

impl<T> fmt::Debug for SharedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (element, len) = (std::any::type_name::<T>(), self.0.len);
        write!(f, "SharedBuffer<{element}>({len})")
    }
}
