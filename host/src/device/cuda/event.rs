//! Events: points in a stream whose distance in time the device measures.

use cust_raw::{CUevent, CUevent_flags, CUstream};

use super::CudaDevice;
use super::driver::check;
use crate::device::error::DeviceError;
use crate::device::loader::symbols::{
    cuEventCreate, cuEventDestroy_v2, cuEventElapsedTime, cuEventRecord, cuEventSynchronize,
    cuStreamWaitEvent,
};

/// A pair of events around work in one device's stream.
#[derive(Debug)]
pub(crate) struct EventPair {
    device: CudaDevice,
    start: Event,
    end: Event,
}

impl EventPair {
    /// Two events of a device.
    pub(crate) fn new(device: &CudaDevice) -> Result<EventPair, DeviceError> {
        device.enter()?;
        Ok(EventPair {
            device: device.clone(),
            start: Event::new()?,
            end: Event::new()?,
        })
    }

    /// Marks the beginning.
    pub(crate) fn start(&mut self) -> Result<(), DeviceError> {
        self.device.enter()?;
        self.start.record(self.device.raw_stream())
    }

    /// Marks the end, waits for it, and returns the microseconds between the two marks.
    pub(crate) fn stop(&mut self) -> Result<f64, DeviceError> {
        self.device.enter()?;
        self.end.record(self.device.raw_stream())?;
        self.end.wait()?;
        let mut milliseconds = 0.0_f32;
        // SAFETY: both events exist and were recorded; the pointer is writable.
        let result = unsafe { cuEventElapsedTime(&raw mut milliseconds, self.start.0, self.end.0) };
        check("cuEventElapsedTime", result)?;
        Ok(f64::from(milliseconds) * 1e3)
    }
}

/// One event.
#[derive(Debug)]
pub(super) struct Event(CUevent);

// SAFETY: the driver's events may be used from any thread.
unsafe impl Send for Event {}
// SAFETY: the driver serialises calls on one event.
unsafe impl Sync for Event {}

impl Event {
    pub(super) fn new() -> Result<Event, DeviceError> {
        Event::with(CUevent_flags::CU_EVENT_DEFAULT)
    }

    /// An event whose time is not taken, which costs the device less.
    pub(super) fn untimed() -> Result<Event, DeviceError> {
        Event::with(CUevent_flags::CU_EVENT_DISABLE_TIMING)
    }

    fn with(flags: CUevent_flags) -> Result<Event, DeviceError> {
        let mut event = std::ptr::null_mut();
        // SAFETY: the pointer is writable.
        check("cuEventCreate", unsafe {
            cuEventCreate(&raw mut event, flags as u32)
        })?;
        Ok(Event(event))
    }

    /// Marks what was submitted to a stream of the event's device so far.
    pub(super) fn record(&self, stream: CUstream) -> Result<(), DeviceError> {
        // SAFETY: event and stream exist and belong to the same context.
        check("cuEventRecord", unsafe { cuEventRecord(self.0, stream) })
    }

    /// Has a stream of the event's device wait for the mark before it does what is submitted later.
    pub(super) fn hold_back(&self, stream: CUstream) -> Result<(), DeviceError> {
        // SAFETY: as in `record`.
        check("cuStreamWaitEvent", unsafe {
            cuStreamWaitEvent(stream, self.0, 0)
        })
    }

    /// Waits until the work before the mark has ended.
    pub(super) fn wait(&self) -> Result<(), DeviceError> {
        // SAFETY: the event exists until it is dropped.
        check("cuEventSynchronize", unsafe { cuEventSynchronize(self.0) })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the event exists, and nobody can use it afterwards.
        let _ = unsafe { cuEventDestroy_v2(self.0) };
    }
}
