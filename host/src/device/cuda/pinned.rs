//! Page-locked host memory: a small block through which short results come back, larger ones for long copies.
//!
//! What the driver allocates it page-locks at 1.3 to 2.7 GB/s, page after page of 4 KiB in one thread. Large blocks are
//! ordinary memory in pages of 2 MiB, first touched by all threads, which the driver then registers: 18 to 20 GB/s in all
//! (an H100's host with 16 threads), and 7 to 8 where the system gives no large pages.

use cust_raw::CUstream;

use super::CudaDevice;
use super::driver::check;
use crate::device::error::DeviceError;
use crate::device::host_pages::HostPages;
use crate::device::loader::symbols::{
    cuMemAllocHost_v2, cuMemFreeHost, cuMemHostRegister_v2, cuMemHostUnregister,
    cuMemcpyDtoHAsync_v2, cuStreamSynchronize,
};
use crate::process::LARGE_PAGE;

/// Bytes of the block: a handful of scalars is what solvers read in every iteration.
pub(super) const PINNED_BYTES: usize = 4096;

/// A block.
pub(super) struct Pinned {
    first: *mut u8,
    bytes: usize,
    /// What was registered; the driver's own memory otherwise.
    registered: Option<HostPages>,
}

// SAFETY: the block is plain host memory, owned by this value.
unsafe impl Send for Pinned {}
// SAFETY: it is written only through a mutable borrow.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// A block of [`PINNED_BYTES`] in the current context.
    pub(super) fn new() -> Result<Pinned, DeviceError> {
        Pinned::allocated(PINNED_BYTES)
    }

    /// A block of `bytes` zero bytes in the device's context, which is the current one afterwards, at the beginning of a page.
    pub(super) fn zeroed(device: &CudaDevice, bytes: usize) -> Result<Pinned, DeviceError> {
        let is_large = bytes >= LARGE_PAGE;
        let pages = is_large.then(|| HostPages::touched(bytes)).flatten();
        // While others touched them, this thread may have worked for another device.
        device.enter()?;
        match pages.and_then(|pages| Pinned::registered(pages, bytes)) {
            Some(pinned) => Ok(pinned),
            None => Pinned::allocated(bytes),
        }
    }

    /// Pages that the driver has registered in the current context; `None` where it does not.
    fn registered(mut memory: HostPages, bytes: usize) -> Option<Pinned> {
        let first = memory.pointer();
        // SAFETY: as many bytes lie there, and are freed only after they have been unregistered.
        let result = unsafe { cuMemHostRegister_v2(first.cast(), bytes, 0) };
        if let Err(error) = check("cuMemHostRegister", result) {
            tracing::debug!("{bytes} bytes are page-locked the slow way: {error}");
            return None;
        }
        Some(Pinned {
            first,
            bytes,
            registered: Some(memory),
        })
    }

    /// The driver's own memory.
    fn allocated(bytes: usize) -> Result<Pinned, DeviceError> {
        let mut block = std::ptr::null_mut();
        // SAFETY: the pointer is writable.
        let result = unsafe { cuMemAllocHost_v2(&raw mut block, bytes) };
        check("cuMemAllocHost", result)?;
        let first = block.cast::<u8>();
        // SAFETY: the driver has just allocated as many bytes, and nobody else knows them.
        unsafe { first.write_bytes(0, bytes) };
        Ok(Pinned {
            first,
            bytes,
            registered: None,
        })
    }

    /// The first byte.
    pub(super) fn pointer(&self) -> *mut u8 {
        self.first
    }

    /// All bytes.
    ///
    /// # Safety
    /// No copy from or to the block is under way.
    pub(super) unsafe fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the block holds as many bytes, which were initialised when it was made, and is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.first, self.bytes) }
    }

    /// All bytes, to be read.
    ///
    /// # Safety
    /// No copy to the block is under way.
    pub(super) unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: the block holds as many bytes, which were initialised when it was made, and is borrowed.
        unsafe { std::slice::from_raw_parts(self.first, self.bytes) }
    }

    /// Copies device memory to `to` by way of the block, and waits for it.
    ///
    /// # Safety
    /// `to.len()` initialised bytes at `from` lie on the current context's device, and `stream` is one
    /// of its streams. `to` is no longer than [`PINNED_BYTES`].
    pub(super) unsafe fn read(
        &mut self,
        from: u64,
        to: &mut [u8],
        stream: CUstream,
    ) -> Result<(), DeviceError> {
        // SAFETY: the block has room, by the caller's promise; so does the source.
        let result = unsafe { cuMemcpyDtoHAsync_v2(self.first.cast(), from, to.len(), stream) };
        check("cuMemcpyDtoHAsync", result)?;
        // SAFETY: the stream exists, by the caller's promise.
        check("cuStreamSynchronize", unsafe {
            cuStreamSynchronize(stream)
        })?;
        // SAFETY: the copy has ended and wrote this many bytes; nobody else reads or writes the block,
        // because `self` is borrowed mutably.
        let block = unsafe { std::slice::from_raw_parts(self.first, to.len()) };
        to.copy_from_slice(block);
        Ok(())
    }

    /// Submits a copy of device memory to the block.
    ///
    /// # Safety
    /// `bytes` initialised bytes at `from` lie on the current context's device, `stream` is one of its streams,
    /// `bytes` is at most [`PINNED_BYTES`], and the block is neither read nor dropped before the copy has ended.
    pub(super) unsafe fn submit(
        &mut self,
        from: u64,
        bytes: usize,
        stream: CUstream,
    ) -> Result<(), DeviceError> {
        // SAFETY: the block has room, by the caller's promise; so does the source.
        let result = unsafe { cuMemcpyDtoHAsync_v2(self.first.cast(), from, bytes, stream) };
        check("cuMemcpyDtoHAsync", result)
    }

    /// The first `len` numbers of the block.
    ///
    /// # Safety
    /// They have been written, and no copy to the block is under way.
    pub(super) unsafe fn values(&self, len: usize) -> &[f64] {
        // SAFETY: the block is aligned to a page, holds `len` numbers by the caller's promise, and is borrowed.
        unsafe { std::slice::from_raw_parts(self.first.cast(), len) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let Some(memory) = self.registered.take() else {
            // SAFETY: the block was allocated by cuMemAllocHost and is freed once.
            let _ = unsafe { cuMemFreeHost(self.first.cast()) };
            return;
        };
        // SAFETY: it was registered, is unregistered once, and freed afterwards.
        let result = unsafe { cuMemHostUnregister(self.first.cast()) };
        if check("cuMemHostUnregister", result).is_err() {
            // What lies at this address later would be taken for it.
            std::mem::forget(memory);
        }
    }
}

impl std::fmt::Debug for Pinned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} page-locked bytes", self.bytes)
    }
}
