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

/// The blocks of a device, made when they are first used.
#[derive(Default)]
pub(super) struct Ring(Option<Blocks>);

/// Blocks of [`BLOCK_BYTES`] one after the other.
struct Blocks {
    memory: Pinned,
    /// For each block, when the copy submitted last has ended.
    done: Vec<Event>,
}

/// Which way blocks cross.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Up,
    Down,
}

/// A block on its way between host and `address`.
pub(super) struct Crossing<'a> {
    /// The block, which is nobody else's.
    block: *mut u8,
    done: &'a Event,
    device: &'a CudaDevice,
    stream: CUstream,
    address: CUdeviceptr,
    way: Way,
}

// SAFETY: the driver's streams may be used from any thread, and the block is this value's alone; everything else may go to
// another thread anyway.
unsafe impl Send for Crossing<'_> {}

impl Ring {
    /// Whether no block has been made.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The blocks, to cross to or from `address`, in a stream of `device`.
    ///
    /// # Errors
    /// When there is no memory to page-lock.
    ///
    /// # Safety
    /// Every range that is submitted lies inside memory of `device` at `address`, and that memory is freed only after
    /// the work submitted to the stream has ended.
    pub(super) unsafe fn crossings<'a>(
        &'a mut self,
        (device, stream): (&'a CudaDevice, CUstream),
        address: CUdeviceptr,
        way: Way,
    ) -> Result<Vec<Crossing<'a>>, DeviceError> {
        let blocks = match &mut self.0 {
            Some(blocks) => blocks,
            none => none.insert(Blocks::new(device)?),
        };
        let first = blocks.memory.pointer();
        let crossing = |(number, done)| Crossing {
            block: first.wrapping_add(number * BLOCK_BYTES),
            done,
            device,
            stream,
            address,
            way,
        };
        Ok(blocks.done.iter().enumerate().map(crossing).collect())
    }
}

impl Blocks {
    fn new(device: &CudaDevice) -> Result<Blocks, DeviceError> {
        let count = staging::blocks();
        Ok(Blocks {
            memory: Pinned::zeroed(device, count * BLOCK_BYTES)?,
            done: (0..count).map(|_| Event::new()).collect::<Result<_, _>>()?,
        })
    }
}

impl Slot for Crossing<'_> {
    fn block(&mut self) -> Result<&mut [u8], DeviceError> {
        self.device.enter()?;
        self.done.wait()?;
        // SAFETY: as many initialised bytes lie there, which are this value's alone; the only copy that may have been under
        // way has ended.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.block, BLOCK_BYTES) })
    }

    fn submit(&mut self, range: Range<usize>) -> Result<(), DeviceError> {
        let (way, stream) = (self.way, self.stream);
        let there = self.address + range.start as u64;
        self.device.enter()?;
        let here = self.block;
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
        self.done.record(stream)
    }
}
