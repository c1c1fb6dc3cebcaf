//! Scalars that come back while the device goes on.

use std::collections::VecDeque;

use super::cuda::Mailbox;
use super::{Buffer, Device, DeviceError};

/// Copies of a small f64 buffer, submitted in the device's order and looked at later, at most two at a time.
///
/// ```
/// use warpfuse::device::{Device, Readback};
///
/// let device = Device::cpu();
/// let state = device.upload(&[1.0, 2.0])?;
/// let mut readback = Readback::new(&device, 2)?;
/// readback.submit(&state)?;
/// assert_eq!(readback.wait()?, [1.0, 2.0]);
/// assert!(!readback.is_pending());
/// # Ok::<(), warpfuse::device::DeviceError>(())
/// ```
pub struct Readback(Kind);

enum Kind {
    Cuda(Mailbox),
    Host {
        waiting: VecDeque<Vec<f64>>,
        last: Vec<f64>,
    },
}

impl Readback {
    /// For buffers of `len` elements on `device`.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the driver has no page-locked memory or events left.
    pub fn new(device: &Device, len: usize) -> Result<Readback, DeviceError> {
        Ok(Readback(match device {
            Device::Cuda(device) => Kind::Cuda(Mailbox::new(device, len)?),
            Device::Cpu(_) | Device::Emulator(_) => Kind::Host {
                waiting: VecDeque::new(),
                last: Vec::new(),
            },
        }))
    }

    /// Submits a copy of `buffer` as it is after everything submitted so far.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] when two copies are pending already, [`DeviceError::LengthMismatch`] when
    /// the buffer has another length, [`DeviceError::Driver`] when the driver fails.
    pub fn submit(&mut self, buffer: &Buffer<f64>) -> Result<(), DeviceError> {
        match &mut self.0 {
            Kind::Cuda(mailbox) => mailbox.submit(buffer),
            Kind::Host { waiting, .. } => {
                waiting.push_back(buffer.to_vec()?);
                Ok(())
            }
        }
    }

    /// [`Readback::submit`] beside the device's kernels: what is submitted later does not wait for the copy, so `buffer` must
    /// not change before the next copy is submitted. Else what comes back is of any time.
    ///
    /// ```
    /// use warpfuse::device::{Device, Readback};
    ///
    /// let device = Device::cpu();
    /// let [mut one, mut other] = [device.upload(&[1.0])?, device.upload(&[2.0])?];
    /// let mut readback = Readback::new(&device, 1)?;
    /// readback.submit_beside(&one)?;
    /// other.copy_from_slice(&[3.0])?;
    /// readback.submit_beside(&other)?;
    /// one.copy_from_slice(&[4.0])?;
    /// assert_eq!(readback.wait()?, [1.0]);
    /// assert_eq!(readback.wait()?, [3.0]);
    /// # Ok::<(), warpfuse::device::DeviceError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Readback::submit`].
    pub fn submit_beside(&mut self, buffer: &Buffer<f64>) -> Result<(), DeviceError> {
        match &mut self.0 {
            Kind::Cuda(mailbox) => mailbox.submit_beside(buffer),
            Kind::Host { .. } => self.submit(buffer),
        }
    }

    /// Waits for the oldest pending copy.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] when nothing is pending, [`DeviceError::Driver`] when earlier work failed.
    pub fn wait(&mut self) -> Result<&[f64], DeviceError> {
        match &mut self.0 {
            Kind::Cuda(mailbox) => mailbox.wait(),
            Kind::Host { waiting, last } => {
                *last = waiting.pop_front().ok_or_else(nothing_pending)?;
                Ok(last)
            }
        }
    }

    /// Whether a copy was submitted and not waited for.
    pub fn is_pending(&self) -> bool {
        match &self.0 {
            Kind::Cuda(mailbox) => mailbox.is_pending(),
            Kind::Host { waiting, .. } => !waiting.is_empty(),
        }
    }
}

pub(super) fn nothing_pending() -> DeviceError {
    DeviceError::Unsupported {
        what: "wait for a copy",
        device: "any device".to_owned(),
        why: "none was submitted",
    }
}
