//! Host memory that crosses the link by itself.

use std::ops::Range;

use super::cuda::CudaPinned;
use super::host_memory::{self, HostMemory};
use super::memory::PinnedHeld;
use super::staging::{self, Fill};
use super::{Device, DeviceError};

/// A block of host memory, page-locked on a CUDA device, from which a [`Feed`](super::feed::Feed) copies at the link's rate
/// without a thread of the host. Its contents do not change.
///
/// Page-locking a gigabyte takes 0.05 s with 16 threads and large pages, and up to 0.8 where the driver has to allocate it: for
/// what crosses the link several times. The bytes count against
/// [`MemoryOptions::pinned_bytes`](super::MemoryOptions::pinned_bytes).
pub(crate) struct PinnedBlock {
    memory: Memory,
    _held: PinnedHeld,
}

enum Memory {
    Cuda(CudaPinned),
    Host(HostMemory),
}

impl Device {
    /// A block of `bytes` bytes that `fill` writes, with all threads.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] beyond what may be page-locked, [`DeviceError::Driver`] when the driver refuses.
    pub(crate) fn pinned(&self, bytes: usize, fill: &Fill<'_>) -> Result<PinnedBlock, DeviceError> {
        let held = self.ledger().pin(bytes)?;
        let mut memory = match self {
            Device::Cuda(device) => Memory::Cuda(device.pinned(bytes)?),
            Device::Cpu(_) | Device::Emulator(_) => {
                let memory = HostMemory::zeroed(bytes);
                Memory::Host(memory.ok_or_else(|| self.ledger().no_pinned(bytes))?)
            }
        };
        let step = staging::even_step(bytes);
        let all = match &mut memory {
            Memory::Cuda(memory) => memory.bytes_mut(),
            Memory::Host(memory) => memory.as_bytes_mut(),
        };
        host_memory::fill(all, step, fill);
        Ok(PinnedBlock {
            memory,
            _held: held,
        })
    }
}

impl PinnedBlock {
    /// On a CUDA device.
    pub(super) fn cuda(&self) -> Option<&CudaPinned> {
        match &self.memory {
            Memory::Cuda(memory) => Some(memory),
            Memory::Host(_) => None,
        }
    }

    /// Copies a range of the bytes.
    pub(super) fn copy(&self, range: Range<usize>, to: &mut [u8]) {
        match &self.memory {
            Memory::Cuda(memory) => to.copy_from_slice(&memory.bytes()[range]),
            Memory::Host(memory) => to.copy_from_slice(&memory.as_bytes()[range]),
        }
    }

    /// The bytes; no copy to them is under way.
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.memory {
            Memory::Cuda(memory) => memory.bytes(),
            Memory::Host(memory) => memory.as_bytes(),
        }
    }

    /// The bytes, to be written: no copy from or to them is under way.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::Cuda(memory) => memory.bytes_mut(),
            Memory::Host(memory) => memory.as_bytes_mut(),
        }
    }

    /// Its bytes.
    pub(super) fn len(&self) -> usize {
        match &self.memory {
            Memory::Cuda(memory) => memory.bytes().len(),
            Memory::Host(memory) => memory.as_bytes().len(),
        }
    }
}
