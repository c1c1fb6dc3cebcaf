//! Making buffers.

use std::marker::PhantomData;

use bytemuck::Pod;

use super::{Buffer, Storage};
use crate::device::lent::Owner;
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
            Storage::Cpu(memory) => memory.begin_with_zeros(),
        }
        Ok(buffer)
    }

    /// [`Device::borrow`], of the bytes.
    pub(in crate::device) fn lent<T: Pod>(
        &self,
        address: u64,
        len: usize,
        owner: Owner,
    ) -> Result<Buffer<T>, DeviceError> {
        let () = Check::<T>::FITS;
        let bytes = bytes_of::<T>(len)?;
        let storage = match self {
            Device::Cuda(device) => Storage::Cuda(device.borrow(address, bytes, owner)?),
            Device::Emulator(device) => {
                Storage::Emulator(device.image(host_bytes(address, bytes), owner)?)
            }
            Device::Cpu(_) => {
                return Err(DeviceError::Unsupported {
                    what: "borrow device memory",
                    device: self.to_string(),
                    why: "arrays of the host are lent as slices (`SharedSlice`)",
                });
            }
        };
        Ok(Buffer {
            storage,
            len,
            element: PhantomData,
        })
    }

    /// A buffer whose values are yet to be written: anything on the CPU and a CUDA device, poison on an emulator.
    /// Private to this room, which writes all of them before it hands the buffer out.
    pub(super) fn allocate<T: Pod>(&self, len: usize) -> Result<Buffer<T>, DeviceError> {
        let () = Check::<T>::FITS;
        let bytes = bytes_of::<T>(len)?;
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

/// Bytes of `len` values.
fn bytes_of<T>(len: usize) -> Result<usize, DeviceError> {
    let element_bytes = size_of::<T>();
    let bytes = len.checked_mul(element_bytes);
    bytes
        .filter(|&bytes| isize::try_from(bytes).is_ok())
        .ok_or(DeviceError::SizeOverflow {
            count: len,
            element_bytes,
        })
}

/// Bytes of this process at an address that [`Device::borrow`]'s caller answers for.
fn host_bytes<'a>(address: u64, bytes: usize) -> &'a [u8] {
    if bytes == 0 {
        return &[];
    }
    let start = std::ptr::with_exposed_provenance::<u8>(address as usize);
    // SAFETY: whoever lends memory to an emulator promises that this many initialised bytes of this process are
    // there, and that nobody writes them while they are lent; they are read before the call returns.
    unsafe { std::slice::from_raw_parts(start, bytes) }
}
