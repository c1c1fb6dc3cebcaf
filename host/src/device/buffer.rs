//! Typed arrays on a device.

mod arguments;
mod create;
mod fill;
mod rows;
mod shared;
mod window;

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use bytemuck::Pod;

pub(crate) use rows::ByteRows;
pub use rows::RowLayout;
pub use shared::SharedBuffer;
pub(crate) use window::Window;

use super::cpu::CpuMemory;
use super::cuda::CudaMemory;
use super::emulator::EmulatorMemory;
use super::memory::Ledger;
use super::{Device, DeviceError, host_memory};

/// `len` values of type `T` on one device, always initialised.
///
/// On the CPU the storage is aligned to 64 bytes and open to the program
/// ([`Buffer::as_host_slice`]); on a CUDA device it is aligned to 256 bytes and padded with zeros to a
/// multiple of 16. Buffers may be empty.
///
/// Copies to and from a buffer happen after everything submitted to its device before, and before everything
/// submitted later. A copy to the host waits; a copy from the host returns when the host's values may be reused.
pub struct Buffer<T> {
    storage: Storage,
    len: usize,
    element: PhantomData<T>,
}

enum Storage {
    Cuda(CudaMemory),
    Cpu(CpuMemory),
    Emulator(EmulatorMemory),
}

impl<T: Pod> Buffer<T> {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device that the values lie on.
    pub fn device(&self) -> Device {
        match &self.storage {
            Storage::Cuda(memory) => Device::Cuda(memory.device().clone()),
            Storage::Cpu(memory) => Device::Cpu(memory.device.clone()),
            Storage::Emulator(memory) => Device::Emulator(memory.emulator().clone()),
        }
    }

    /// The values, copied to the host.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the copy or work before it fails.
    pub fn to_vec(&self) -> Result<Vec<T>, DeviceError> {
        let mut values = vec![T::zeroed(); self.len];
        self.read(0, &mut values)?;
        Ok(values)
    }

    /// Copies all values to `values`.
    ///
    /// # Errors
    /// [`DeviceError::LengthMismatch`] when the lengths differ.
    pub fn copy_to_slice(&self, values: &mut [T]) -> Result<(), DeviceError> {
        self.expect_len("copy a buffer to a slice", values.len())?;
        self.read(0, values)
    }

    /// Replaces all values by `values`.
    ///
    /// # Errors
    /// [`DeviceError::LengthMismatch`] when the lengths differ.
    pub fn copy_from_slice(&mut self, values: &[T]) -> Result<(), DeviceError> {
        self.expect_len("copy a slice to a buffer", values.len())?;
        self.write(0, values)
    }

    /// Replaces all values by those of `other`: on the device itself where both lie on one, else by way
    /// of the host.
    ///
    /// # Errors
    /// [`DeviceError::LengthMismatch`] when the lengths differ.
    pub fn copy_from(&mut self, other: &Buffer<T>) -> Result<(), DeviceError> {
        self.expect_len("copy a buffer", other.len)?;
        if !self.device().shares_memory_with(&other.device()) {
            return self.copy_from_slice(&other.to_vec()?);
        }
        match (&mut self.storage, &other.storage) {
            (Storage::Cuda(to), Storage::Cuda(from)) => to.copy_from(from),
            (Storage::Cpu(to), Storage::Cpu(from)) => {
                host_memory::copy(to.memory.as_bytes_mut(), from.memory.as_bytes());
                Ok(())
            }
            _ => self.copy_from_slice(&other.to_vec()?),
        }
    }

    /// A second buffer with the same values on the same device.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] when it does not fit.
    pub fn try_clone(&self) -> Result<Buffer<T>, DeviceError> {
        let mut copy = self.device().allocate(self.len)?;
        copy.copy_from(self)?;
        Ok(copy)
    }

    /// Copies the values from `start` on to `values`. Up to 4 KiB come back fastest.
    ///
    /// # Errors
    /// [`DeviceError::OutOfBounds`] when the range reaches beyond the buffer.
    pub fn read(&self, start: usize, values: &mut [T]) -> Result<(), DeviceError> {
        let bytes = self.byte_range("read from a buffer", start, values.len())?;
        self.ledger().check("read from a buffer")?;
        self.ledger().received(bytes.len());
        match &self.storage {
            Storage::Cuda(memory) => {
                memory.read(bytes.start, bytemuck::cast_slice_mut(values))?;
                memory.device().check_group()
            }
            Storage::Cpu(memory) => {
                let from = &memory.memory.as_bytes()[bytes];
                host_memory::copy(bytemuck::cast_slice_mut(values), from);
                Ok(())
            }
            Storage::Emulator(memory) => {
                Ok(memory.read_bytes(bytes.start as u64, bytemuck::cast_slice_mut(values))?)
            }
        }
    }

    /// Replaces the values from `start` on by `values`.
    ///
    /// # Errors
    /// [`DeviceError::OutOfBounds`] when the range reaches beyond the buffer.
    pub fn write(&mut self, start: usize, values: &[T]) -> Result<(), DeviceError> {
        let bytes = self.byte_range("write to a buffer", start, values.len())?;
        self.ledger().check("write to a buffer")?;
        self.ledger().sent(bytes.len());
        match &mut self.storage {
            Storage::Cuda(memory) => memory.write(bytes.start, bytemuck::cast_slice(values)),
            Storage::Cpu(memory) => {
                let to = &mut memory.memory.as_bytes_mut()[bytes];
                host_memory::copy(to, bytemuck::cast_slice(values));
                Ok(())
            }
            Storage::Emulator(memory) => {
                Ok(memory.write_bytes(bytes.start as u64, bytemuck::cast_slice(values))?)
            }
        }
    }

    /// Value number `index`.
    ///
    /// # Errors
    /// [`DeviceError::OutOfBounds`] when there is no such value.
    pub fn read_scalar(&self, index: usize) -> Result<T, DeviceError> {
        let mut value = [T::zeroed()];
        self.read(index, &mut value)?;
        Ok(value[0])
    }

    /// Sets all values to zero.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when earlier work failed.
    pub fn fill_zero(&mut self) -> Result<(), DeviceError> {
        match &mut self.storage {
            Storage::Cuda(memory) => memory.fill_zero(0, self.len * size_of::<T>()),
            Storage::Cpu(memory) => {
                host_memory::fill_zero(memory.memory.as_bytes_mut());
                Ok(())
            }
            Storage::Emulator(memory) => {
                memory.write_zeros();
                Ok(())
            }
        }
    }

    /// The values themselves, where they lie in host memory.
    pub fn as_host_slice(&self) -> Option<&[T]> {
        match &self.storage {
            Storage::Cuda(_) | Storage::Emulator(_) => None,
            Storage::Cpu(memory) => Some(bytemuck::cast_slice(memory.memory.as_bytes())),
        }
    }

    /// The values themselves, to be changed, where they lie in host memory.
    pub fn as_host_slice_mut(&mut self) -> Option<&mut [T]> {
        match &mut self.storage {
            Storage::Cuda(_) | Storage::Emulator(_) => None,
            Storage::Cpu(memory) => Some(bytemuck::cast_slice_mut(memory.memory.as_bytes_mut())),
        }
    }

    /// Fails unless the buffer lies where `device`'s do.
    ///
    /// # Errors
    /// [`DeviceError::WrongDevice`], naming `what` was to be done and both devices.
    pub fn expect_on(&self, device: &Device, what: &'static str) -> Result<(), DeviceError> {
        let own = self.device();
        if own.shares_memory_with(device) {
            return Ok(());
        }
        Err(DeviceError::WrongDevice {
            what,
            expected: device.to_string(),
            found: own.to_string(),
        })
    }

    /// Has `fill` write the first `words` elements of memory on a CUDA device, which are counted as sent.
    pub(super) fn feed(
        &mut self,
        words: usize,
        fill: impl FnOnce(&mut CudaMemory, usize) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let bytes = self.byte_range("fill a buffer", 0, words)?.len();
        self.ledger().check("fill a buffer")?;
        self.ledger().sent(bytes);
        match &mut self.storage {
            Storage::Cuda(memory) => fill(memory, bytes),
            Storage::Cpu(_) | Storage::Emulator(_) => unreachable!("a feed of a CUDA device"),
        }
    }

    /// Has `send` write the first `bytes` bytes of memory on a CUDA device, which are counted as sent.
    pub(super) fn exchange(
        &mut self,
        bytes: usize,
        send: impl FnOnce(&mut CudaMemory) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        self.ledger().check("fill a buffer")?;
        self.ledger().sent(bytes);
        match &mut self.storage {
            Storage::Cuda(memory) => send(memory),
            Storage::Cpu(_) | Storage::Emulator(_) => unreachable!("an exchange of a CUDA device"),
        }
    }

    /// Has `fetch` read all of memory on a CUDA device, which is counted as received.
    pub(super) fn exchanged(
        &self,
        fetch: impl FnOnce(&CudaMemory) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        self.ledger().check("read from a buffer")?;
        self.ledger().received(self.len * size_of::<T>());
        match &self.storage {
            Storage::Cuda(memory) => fetch(memory),
            Storage::Cpu(_) | Storage::Emulator(_) => unreachable!("an exchange of a CUDA device"),
        }
    }

    fn ledger(&self) -> &Ledger {
        match &self.storage {
            Storage::Cuda(memory) => memory.device().ledger(),
            Storage::Cpu(memory) => memory.device.ledger(),
            Storage::Emulator(memory) => memory.emulator().ledger(),
        }
    }

    fn expect_len(&self, what: &'static str, found: usize) -> Result<(), DeviceError> {
        if found == self.len {
            return Ok(());
        }
        Err(DeviceError::LengthMismatch {
            what,
            expected: self.len,
            found,
        })
    }

    fn byte_range(
        &self,
        what: &'static str,
        start: usize,
        count: usize,
    ) -> Result<Range<usize>, DeviceError> {
        let end = start.saturating_add(count);
        if end > self.len {
            return Err(DeviceError::OutOfBounds {
                what,
                start,
                end,
                len: self.len,
            });
        }
        Ok(start * size_of::<T>()..end * size_of::<T>())
    }
}

impl<T: Pod> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Buffer<{}>({} on {})",
            std::any::type_name::<T>(),
            self.len,
            self.device()
        )
    }
}

#[cfg(test)]
mod tests;
