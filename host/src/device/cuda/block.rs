//! Device memory as the driver hands it out.

use std::mem::ManuallyDrop;
use std::sync::{Arc, Weak};

use cust::context::CurrentContext;
use cust::error::CudaError;
use cust::memory::DeviceBuffer;
use cust_raw::CUdeviceptr;

use super::{CudaDevice, Inner};

/// A block of device memory of this library's own, freed when dropped, after everything that was submitted to the
/// device.
///
/// It does not keep the device, because the device keeps blocks.
pub(crate) struct OwnBlock {
    device: Weak<Inner>,
    allocation: ManuallyDrop<DeviceBuffer<u8>>,
}

impl OwnBlock {
    /// `bytes` uninitialised bytes, more than none, in the current context, which is the device's.
    pub(super) fn new(device: &CudaDevice, bytes: usize) -> Result<OwnBlock, CudaError> {
        // SAFETY: nobody reads the bytes before they are written: see `Buffer`.
        let allocation = unsafe { DeviceBuffer::<u8>::uninitialized(bytes) }?;
        Ok(OwnBlock {
            device: Arc::downgrade(&device.0),
            allocation: ManuallyDrop::new(allocation),
        })
    }

    /// The device address of the first byte.
    pub(super) fn address(&self) -> CUdeviceptr {
        self.allocation.as_device_ptr().as_raw()
    }
}

impl Drop for OwnBlock {
    fn drop(&mut self) {
        // A device that is being closed has made its context current and waited already.
        let device = self.device.upgrade();
        if let Some(device) = &device {
            // Kernels that use the memory may still be running; where waiting fails the context is lost, and the
            // driver has already reclaimed everything.
            let _ = CurrentContext::set_current(&device.context);
            let _ = device.stream.synchronize();
        }
        // SAFETY: taken once, here.
        let allocation = unsafe { ManuallyDrop::take(&mut self.allocation) };
        if let Err((error, allocation)) = DeviceBuffer::drop(allocation) {
            let bytes = allocation.len();
            tracing::warn!(?error, bytes, "device memory could not be freed");
            std::mem::forget(allocation);
        }
    }
}
