//! Page-locked slots through which small results come back while the stream goes on.

use super::CudaDevice;
use super::event::Event;
use super::pinned::{PINNED_BYTES, Pinned};
use crate::device::readback::nothing_pending;
use crate::device::{Buffer, DeviceError};

/// Copies that may be under way at once.
const SLOTS: usize = 2;

/// A ring of slots of `len` elements, each with the event that says when it is full.
pub(crate) struct Mailbox {
    device: CudaDevice,
    slots: [Slot; SLOTS],
    len: usize,
    oldest: usize,
    pending: usize,
}

struct Slot {
    block: Pinned,
    full: Event,
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
        let slot = || {
            Ok::<_, DeviceError>(Slot {
                block: Pinned::new()?,
                full: Event::new()?,
            })
        };
        Ok(Mailbox {
            device: device.clone(),
            slots: [slot()?, slot()?],
            len,
            oldest: 0,
            pending: 0,
        })
    }

    pub(crate) fn submit(&mut self, buffer: &Buffer<f64>) -> Result<(), DeviceError> {
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
        let slot = &mut self.slots[(self.oldest + self.pending) % SLOTS];
        let bytes = self.len * size_of::<f64>();
        // SAFETY: the buffer holds `bytes` initialised bytes on this device; the slot has room and is not
        // read before its event has passed.
        unsafe {
            slot.block.submit(
                buffer.input().pointer() as u64,
                bytes,
                self.device.raw_stream(),
            )?
        };
        slot.full.record(self.device.raw_stream())?;
        self.device.ledger().received(bytes);
        self.pending += 1;
        Ok(())
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
        // A copy under way must not land in freed memory. Where waiting fails the context is gone.
        let _ = self.device.synchronize();
    }
}
