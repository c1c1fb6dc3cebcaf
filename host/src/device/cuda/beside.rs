//! A second stream of a device, for work that goes on beside its kernels.

use cust_raw::CUstream;

use super::CudaDevice;
use super::event::Event;
use super::stream::Stream;
use crate::device::error::DeviceError;

/// A stream whose kernels get their place before those of the device's own stream, and what the two wait for.
#[derive(Debug)]
pub(crate) struct Beside {
    device: CudaDevice,
    /// The device's stream has come to what this one is to begin after.
    ready: Event,
    /// This stream has come to its work.
    begun: Event,
    /// Its work has ended.
    ended: Event,
    // Dropped last: the events are of no use without it.
    stream: Stream,
}

impl Beside {
    /// A stream in the device's context.
    pub(crate) fn new(device: &CudaDevice) -> Result<Beside, DeviceError> {
        device.enter()?;
        Ok(Beside {
            device: device.clone(),
            ready: Event::new()?,
            begun: Event::new()?,
            ended: Event::new()?,
            stream: Stream::first_served()?,
        })
    }

    /// The stream, for work that begins when everything has ended that was submitted to the device so far.
    pub(crate) fn begin(&self) -> Result<CUstream, DeviceError> {
        self.device.enter()?;
        self.ready.record(self.device.raw_stream())?;
        self.ready.hold_back(self.stream.raw())?;
        self.begun.record(self.stream.raw())?;
        Ok(self.stream.raw())
    }

    /// Has kernels that are submitted to the device from now on wait until the work may begin: they would take all places
    /// before it, and keep them to their end.
    pub(crate) fn give_way(&self) -> Result<(), DeviceError> {
        self.device.enter()?;
        self.begun.hold_back(self.device.raw_stream())
    }

    /// Has what is submitted to the device from now on wait until the work has ended.
    pub(crate) fn join(&self) -> Result<(), DeviceError> {
        self.device.enter()?;
        self.ended.record(self.stream.raw())?;
        self.ended.hold_back(self.device.raw_stream())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // Events and streams are destroyed in the current context.
        let _ = self.device.enter();
    }
}
