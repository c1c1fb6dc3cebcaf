//! Copies to blocks that kernels read, in a stream of their own.

use super::CudaDevice;
use super::driver::check;
use super::event::Event;
use super::memory::CudaMemory;
use super::pinned::Pinned;
use crate::device::error::DeviceError;
use crate::device::loader::symbols::cuMemcpyHtoDAsync_v2;
use crate::device::staging::{self, Fill};

/// The events of each block: when the copy to it has ended, and when the kernels that read it have.
pub(crate) struct CudaFeed {
    // Before the device, in whose context they are.
    blocks: Vec<Events>,
    device: CudaDevice,
}

struct Events {
    arrived: Event,
    released: Event,
}

/// Page-locked host memory.
pub(crate) struct CudaPinned {
    // Before the device, in whose context it is registered.
    memory: Pinned,
    bytes: usize,
    device: CudaDevice,
}

impl CudaDevice {
    /// `bytes` page-locked bytes.
    pub(crate) fn pinned(&self, bytes: usize) -> Result<CudaPinned, DeviceError> {
        Ok(CudaPinned {
            memory: Pinned::zeroed(self, bytes.max(1))?,
            bytes,
            device: self.clone(),
        })
    }
}

impl CudaPinned {
    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: copies only read the block; it is written through `bytes_mut` alone, which nobody can borrow now.
        let all = unsafe { self.memory.bytes() };
        &all[..self.bytes]
    }

    /// The bytes, to be written: before the block is first copied from.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: a block that is shared, as one is that is copied from, cannot be borrowed mutably.
        let all = unsafe { self.memory.bytes_mut() };
        &mut all[..self.bytes]
    }
}

impl Drop for CudaPinned {
    fn drop(&mut self) {
        // A copy from it may be under way; where waiting fails, the context is lost and so is the copy.
        let _ = self.device.wait_for_copies();
    }
}

impl CudaFeed {
    /// Events for this many blocks, whose memory was last used by work in the device's stream.
    pub(crate) fn new(device: &CudaDevice, count: usize) -> Result<CudaFeed, DeviceError> {
        device.enter()?;
        let events = |_| -> Result<Events, DeviceError> {
            let events = Events {
                arrived: Event::new()?,
                released: Event::new()?,
            };
            events.released.record(device.raw_stream())?;
            Ok(events)
        };
        Ok(CudaFeed {
            device: device.clone(),
            blocks: (0..count).map(events).collect::<Result<_, _>>()?,
        })
    }

    /// Fills the first `bytes` bytes of a block's memory with what `fill` makes.
    pub(crate) fn fill(
        &mut self,
        (block, memory): (usize, &mut CudaMemory),
        bytes: usize,
        fill: &Fill<'_>,
    ) -> Result<(), DeviceError> {
        let copies = self.begin(block)?;
        let step = staging::even_step(bytes);
        memory.write_in(copies, (bytes, step), fill)?;
        self.blocks[block].arrived.record(copies)
    }

    /// Copies the first `bytes` bytes of page-locked memory to a block's; `from` stays until the copy has ended, as it
    /// waits for copies when it is dropped.
    pub(crate) fn copy(
        &mut self,
        (block, memory): (usize, &mut CudaMemory),
        bytes: usize,
        from: &CudaPinned,
    ) -> Result<(), DeviceError> {
        let copies = self.begin(block)?;
        let to = memory.range("copy to the device", 0, bytes)?;
        let from = &from.bytes()[..bytes];
        if bytes > 0 {
            // SAFETY: the range lies inside the memory, the source is as long. Both stay: whoever drops the source, or the
            // feed that has the memory, waits for the copies first.
            let result = unsafe { cuMemcpyHtoDAsync_v2(to, from.as_ptr().cast(), bytes, copies) };
            check("cuMemcpyHtoDAsync", result)?;
        }
        self.blocks[block].arrived.record(copies)
    }

    /// Has the stream of copies wait until a block may be written.
    fn begin(&self, block: usize) -> Result<cust_raw::CUstream, DeviceError> {
        self.device.enter()?;
        let copies = self.device.copies()?;
        self.blocks[block].released.hold_back(copies)?;
        Ok(copies)
    }

    /// Has the device's stream wait until a block is filled.
    pub(crate) fn arrive(&self, block: usize) -> Result<(), DeviceError> {
        self.device.enter()?;
        let stream = self.device.raw_stream();
        self.blocks[block].arrived.hold_back(stream)
    }

    /// Marks that everything has been launched that reads a block.
    pub(crate) fn release(&self, block: usize) -> Result<(), DeviceError> {
        self.device.enter()?;
        let stream = self.device.raw_stream();
        self.blocks[block].released.record(stream)
    }
}

impl Drop for CudaFeed {
    fn drop(&mut self) {
        // As for `CudaPinned`.
        let _ = self.device.wait_for_copies();
    }
}
