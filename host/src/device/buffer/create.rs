//! Making buffers.

use std::marker::PhantomData;

use bytemuck::Pod;

use super::{Buffer, Storage};
use crate::device::{Device, DeviceError, host_memory};

/// Types that a buffer can hold; a violation is an error of the compiler.
struct Check<T>(PhantomData<T>);

impl<T> Check<T> {
    const FITS: () = assert!(
        size_of::<T>() > 0 && align_of::<T>() <= host_memory::ALIGNMENT,
        "a buffer's elements have a size, and an alignment of at most 64 bytes"
    );
}

impl Device {
    /// A copy of `values` on this device.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] when it does not fit.
    pub fn upload<T: Pod>(&self, values: &[T]) -> Result<Buffer<T>, DeviceError> {
        let mut buffer = self.allocate(values.len())?;
        buffer.write(0, values)?;
        Ok(buffer)
    }

    /// `len` zeros on this device.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] when they do not fit, [`DeviceError::SizeOverflow`] when their
    /// bytes exceed the address space.
    pub fn zeros<T: Pod>(&self, len: usize) -> Result<Buffer<T>, DeviceError> {
        let mut buffer = self.allocate(len)?;
        match &mut buffer.storage {
            Storage::Cuda(memory) => memory.fill_zero(0, len * size_of::<T>())?,
            Storage::Emulator(memory) => memory.write_zeros(),
            Storage::Cpu(_) => {} // its allocations are zero
        }
        Ok(buffer)
    }

    /// A buffer whose values are yet to be written: zero on the CPU, anything on a CUDA device, poison on an
    /// emulator. Private
    /// to this room, which writes all of them before it hands the buffer out.
    pub(super) fn allocate<T: Pod>(&self, len: usize) -> Result<Buffer<T>, DeviceError> {
        let () = Check::<T>::FITS;
        let element_bytes = size_of::<T>();
        let bytes = len
            .checked_mul(element_bytes)
            .filter(|&bytes| isize::try_from(bytes).is_ok())
            .ok_or(DeviceError::SizeOverflow {
                count: len,
                element_bytes,
            })?;
        let storage = match self {
            Device::Cuda(device) => Storage::Cuda(device.allocate(bytes)?),
            Device::Cpu(device) => Storage::Cpu(device.allocate(bytes)?),
            Device::Emulator(device) => Storage::Emulator(device.storage(bytes)?),
        };
        Ok(Buffer {
            storage,
            len,
            element: PhantomData,
        })
    }
}
