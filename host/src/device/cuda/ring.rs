//! The page-locked blocks through which long copies go; see [`staging`].

use std::ops::Range;

use cust_raw::{CUdeviceptr, CUstream};

use super::CudaDevice;
use super::driver::check;
use super::event::Event;
use super::pinned::Pinned;
use crate::device::error::DeviceError;
use crate::device::loader::symbols::{cuMemcpyDtoHAsync_v2, cuMemcpyHtoDAsync_v2};
use crate::device::staging::{self, BLOCK_BYTES, Slot};

/// The blocks of a device, each made when it is first used.
#[derive(Default)]
pub(super) struct Ring(Vec<Option<Block>>);

/// A block, and the event that says when the copy submitted last has ended.
struct Block {
    memory: Pinned,
    done: Event,
}

/// Which way blocks cross.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Up,
    Down,
}

/// A block on its way between host and `address`.
pub(super) struct Crossing<'a> {
    block: &'a mut Option<Block>,
    device: &'a CudaDevice,
    stream: CUstream,
    address: CUdeviceptr,
    way: Way,
}

// SAFETY: the driver's streams may be used from any thread; everything else may go to another thread anyway.
unsafe impl Send for Crossing<'_> {}

impl Ring {
    /// Whether no block has been made.
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// The blocks, to cross to or from `address`, in a stream of `device`.
    ///
    /// # Safety
    /// Every range that is submitted lies inside memory of `device` at `address`, and that memory is freed only after
    /// the work submitted to the stream has ended.
    pub(super) unsafe fn crossings<'a>(
        &'a mut self,
        (device, stream): (&'a CudaDevice, CUstream),
        address: CUdeviceptr,
        way: Way,
    ) -> Vec<Crossing<'a>> {
        if self.0.is_empty() {
            self.0.resize_with(staging::blocks(), || None);
        }
        let crossing = |block| Crossing {
            block,
            device,
            stream,
            address,
            way,
        };
        self.0.iter_mut().map(crossing).collect()
    }
}

impl Crossing<'_> {
    fn ready(&mut self) -> Result<&mut Block, DeviceError> {
        self.device.enter()?;
        if self.block.is_none() {
            *self.block = Some(Block {
                memory: Pinned::zeroed(BLOCK_BYTES)?,
                done: Event::new()?,
            });
        }
        Ok(self.block.as_mut().expect("made above"))
    }
}

impl Slot for Crossing<'_> {
    fn block(&mut self) -> Result<&mut [u8], DeviceError> {
        let block = self.ready()?;
        block.done.wait()?;
        // SAFETY: the only copy that may have been under way has ended.
        Ok(unsafe { block.memory.bytes_mut() })
    }

    fn submit(&mut self, range: Range<usize>) -> Result<(), DeviceError> {
        let (way, stream) = (self.way, self.stream);
        let there = self.address + range.start as u64;
        let block = self.ready()?;
        let here = block.memory.pointer();
        assert!(range.len() <= BLOCK_BYTES, "a block holds what crosses");
        // SAFETY: the device's range lies inside its memory, by the promise made to `Ring::crossings`, and the block
        // is as long; it is handed out again only when the event below has passed.
        let (call, result) = unsafe {
            match way {
                Way::Up => (
                    "cuMemcpyHtoDAsync",
                    cuMemcpyHtoDAsync_v2(there, here.cast(), range.len(), stream),
                ),
                Way::Down => (
                    "cuMemcpyDtoHAsync",
                    cuMemcpyDtoHAsync_v2(here.cast(), there, range.len(), stream),
                ),
            }
        };
        check(call, result)?;
        block.done.record(stream)
    }
}
