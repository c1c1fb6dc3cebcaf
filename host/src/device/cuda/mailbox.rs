//! Page-locked slots through which small results come back while the stream goes on.
//!
//! A copy in the device's own stream is a stop between two kernels: the unit for copies takes over and gives back, 8 to 10 us
//! after each iteration of conjugate gradients on an H100 (`inner_outside_us` in `benches/results/h100/learning.jsonl`). So a
//! copy of what does not change for a while is made in a stream of its own, which no kernel waits for.

use std::sync::{Mutex, OnceLock};

use cust_raw::CUstream;

use super::CudaDevice;
use super::event::Event;
use super::pinned::{PINNED_BYTES, Pinned};
use super::stream::Stream;
use crate::device::readback::nothing_pending;
use crate::device::{Buffer, DeviceError};
use crate::parallel::locked;

/// Copies that may be under way at once.
const SLOTS: usize = 2;

/// What mailboxes of a device have in common.
#[derive(Default)]
pub(super) struct Letters {
    /// Slots that nobody has: a solve of some microseconds would wait for the driver to make new ones.
    free: Mutex<Vec<Slot>>,
    /// Of copies that no kernel waits for.
    stream: OnceLock<Result<Stream, DeviceError>>,
}

impl Letters {
    /// A slot, in the device's context, which is the current one.
    fn take(&self) -> Result<Slot, DeviceError> {
        let free = locked(&self.free).pop();
        free.map_or_else(Slot::new, Ok)
    }

    /// The stream, in the same context.
    fn stream(&self) -> Result<CUstream, DeviceError> {
        let stream = self.stream.get_or_init(Stream::new);
        stream.as_ref().map(Stream::raw).map_err(Clone::clone)
    }

    /// Waits for copies that are under way, as far as that is possible.
    pub(super) fn synchronize(&self) {
        if let Some(Ok(stream)) = self.stream.get() {
            let _ = stream.synchronize();
        }
    }
}

/// A ring of slots of `len` elements, each with the event that says when it is full.
pub(crate) struct Mailbox {
    device: CudaDevice,
    slots: Vec<Slot>,
    len: usize,
    oldest: usize,
    pending: usize,
    /// Of a copy beside kernels: the slot of the last one.
    beside: Option<usize>,
}

struct Slot {
    block: Pinned,
    /// The device's stream has come to what is to be copied.
    ready: Event,
    full: Event,
}

impl Slot {
    fn new() -> Result<Slot, DeviceError> {
        Ok(Slot {
            block: Pinned::new()?,
            ready: Event::untimed()?,
            full: Event::untimed()?,
        })
    }

    /// Copies a buffer of this device in a stream, after what was submitted to that.
    fn fill(&mut self, buffer: &Buffer<f64>, stream: CUstream) -> Result<(), DeviceError> {
        let bytes = buffer.len() * size_of::<f64>();
        // SAFETY: the buffer holds `bytes` initialised bytes on this device; the slot has room and is not
        // read before its event has passed.
        unsafe {
            let from = buffer.input().pointer() as u64;
            self.block.submit(from, bytes, stream)?;
        }
        self.full.record(stream)
    }
}

impl Mailbox {
    pub(crate) fn new(device: &CudaDevice, len: usize) -> Result<Mailbox, DeviceError> {
        let most = PINNED_BYTES / size_of::<f64>();
        if len > most {
            return Err(DeviceError::LengthMismatch {
                what: "read back",
                expected: most,
                found: len,
            });
        }
        device.enter()?;
        let letters = &device.0.letters;
        let slots = (0..SLOTS).map(|_| letters.take());
        Ok(Mailbox {
            device: device.clone(),
            slots: slots.collect::<Result<_, _>>()?,
            len,
            oldest: 0,
            pending: 0,
            beside: None,
        })
    }

    pub(crate) fn submit(&mut self, buffer: &Buffer<f64>) -> Result<(), DeviceError> {
        let next = self.next(buffer)?;
        let stream = self.device.raw_stream();
        self.slots[next].fill(buffer, stream)?;
        self.submitted();
        Ok(())
    }

    /// In a stream of its own; what is submitted to the device from now on waits for the copy before this one.
    pub(crate) fn submit_beside(&mut self, buffer: &Buffer<f64>) -> Result<(), DeviceError> {
        let next = self.next(buffer)?;
        let (main, letters) = (self.device.raw_stream(), self.device.0.letters.stream()?);
        if let Some(last) = self.beside {
            self.slots[last].full.hold_back(main)?;
        }
        let slot = &mut self.slots[next];
        slot.ready.record(main)?;
        slot.ready.hold_back(letters)?;
        slot.fill(buffer, letters)?;
        self.beside = Some(next);
        self.submitted();
        Ok(())
    }

    /// The slot for another copy, in the device's context.
    fn next(&self, buffer: &Buffer<f64>) -> Result<usize, DeviceError> {
        if buffer.len() != self.len {
            let (expected, found) = (self.len, buffer.len());
            return Err(DeviceError::LengthMismatch {
                what: "read back",
                expected,
                found,
            });
        }
        if self.pending == SLOTS {
            return Err(DeviceError::Unsupported {
                what: "read back",
                device: self.device.name().to_owned(),
                why: "two copies are pending already; wait for one",
            });
        }
        self.device.enter()?;
        Ok((self.oldest + self.pending) % SLOTS)
    }

    fn submitted(&mut self) {
        let bytes = self.len * size_of::<f64>();
        self.device.ledger().received(bytes);
        self.pending += 1;
    }

    pub(crate) fn wait(&mut self) -> Result<&[f64], DeviceError> {
        if self.pending == 0 {
            return Err(nothing_pending());
        }
        self.device.enter()?;
        let slot = &self.slots[self.oldest];
        slot.full.wait()?;
        self.device.check_group()?;
        self.oldest = (self.oldest + 1) % SLOTS;
        self.pending -= 1;
        // SAFETY: the copy of `len` elements into the slot has ended.
        Ok(unsafe { slot.block.values(self.len) })
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.pending > 0
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        if self.pending > 0 {
            // A copy under way must not land in a slot of somebody else. Where waiting fails the context is gone.
            let _ = self.device.synchronize();
            self.device.0.letters.synchronize();
        }
        locked(&self.device.0.letters.free).append(&mut self.slots);
    }
}
