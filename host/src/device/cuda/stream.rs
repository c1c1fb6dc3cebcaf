//! The device's stream.

use cust_raw::{CUstream, CUstream_flags};

use super::driver::check;
use crate::device::error::DeviceError;
use crate::device::loader::symbols::{
    cuStreamCreateWithPriority, cuStreamDestroy_v2, cuStreamSynchronize,
};

/// A stream that does not wait for the legacy default stream.
///
/// `cust::stream::Stream` drops the non-blocking flag, hence this one.
#[derive(Debug)]
pub(crate) struct Stream(CUstream);

// SAFETY: the driver's streams may be used from any thread.
unsafe impl Send for Stream {}
// SAFETY: the driver serialises calls on one stream.
unsafe impl Sync for Stream {}

impl Stream {
    /// A new stream in the current context.
    pub(crate) fn new() -> Result<Stream, DeviceError> {
        Stream::of_priority(0)
    }

    /// [`Stream::new`] whose blocks are placed before those of other streams.
    #[cfg(target_os = "linux")]
    pub(crate) fn first_served() -> Result<Stream, DeviceError> {
        // Lower numbers go first; the driver takes the lowest that it has.
        Stream::of_priority(i32::MIN)
    }

    fn of_priority(priority: i32) -> Result<Stream, DeviceError> {
        let mut stream = std::ptr::null_mut();
        let flags = CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the pointer is writable.
        let result = unsafe { cuStreamCreateWithPriority(&raw mut stream, flags, priority) };
        check("cuStreamCreateWithPriority", result)?;
        Ok(Stream(stream))
    }

    /// The driver's handle.
    pub(crate) fn raw(&self) -> CUstream {
        self.0
    }

    /// Waits for everything submitted so far.
    pub(crate) fn synchronize(&self) -> Result<(), DeviceError> {
        // SAFETY: the stream exists until it is dropped.
        check("cuStreamSynchronize", unsafe {
            cuStreamSynchronize(self.0)
        })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the stream exists, and nobody can use it afterwards.
        let _ = unsafe { cuStreamDestroy_v2(self.0) };
    }
}
