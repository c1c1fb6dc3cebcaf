//! A point in a device's stream that somebody looks at from time to time.

use cust_raw::{CUevent, CUevent_flags, CUresult};

use super::CudaDevice;
use super::driver::check;
use crate::device::error::DeviceError;
use crate::device::loader::symbols::{
    cuEventCreate, cuEventDestroy_v2, cuEventQuery, cuEventRecord,
};

/// The latest mark in the stream of a device.
#[derive(Debug)]
pub(crate) struct Mark {
    device: CudaDevice,
    event: CUevent,
}

// SAFETY: the driver's events may be used from any thread.
unsafe impl Send for Mark {}
// SAFETY: the driver serialises calls on one event.
unsafe impl Sync for Mark {}

impl Mark {
    /// A mark at the beginning of the stream.
    pub(crate) fn new(device: &CudaDevice) -> Result<Mark, DeviceError> {
        device.enter()?;
        let mut event = std::ptr::null_mut();
        let flags = CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: the pointer is writable.
        check("cuEventCreate", unsafe {
            cuEventCreate(&raw mut event, flags)
        })?;
        Ok(Mark {
            device: device.clone(),
            event,
        })
    }

    /// Marks what was submitted so far.
    pub(crate) fn set(&self) -> Result<(), DeviceError> {
        self.device.enter()?;
        let stream = self.device.raw_stream();
        // SAFETY: event and stream exist and belong to the same context.
        check("cuEventRecord", unsafe {
            cuEventRecord(self.event, stream)
        })
    }

    /// Whether the work before the mark has ended.
    pub(crate) fn has_passed(&self) -> Result<bool, DeviceError> {
        self.device.enter()?;
        // SAFETY: the event exists until it is dropped.
        match unsafe { cuEventQuery(self.event) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            result => check("cuEventQuery", result).map(|()| true),
        }
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        if self.device.enter().is_ok() {
            // SAFETY: the event exists, and nobody can use it afterwards.
            let _ = unsafe { cuEventDestroy_v2(self.event) };
        }
    }
}
