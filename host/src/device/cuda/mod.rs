//! CUDA devices.
//!
//! A device is opened once in a process, however often it is requested: everything but launches at once (`at_once`)
//! runs in order in one stream of its **primary** context, which other libraries (cuBLAS, cuSPARSE …) share. That one
//! stream is what makes launches safe: whatever a later call does to a buffer happens after it.

mod attributes;
#[cfg(target_os = "linux")]
mod beside;
mod block;
mod driver;
mod event;
mod exchange;
mod feed;
mod launch;
mod lent;
mod limits;
mod mailbox;
#[cfg(target_os = "linux")]
mod mark;
mod memory;
mod module;
mod open;
mod pinned;
#[cfg(target_os = "linux")]
mod reach;
mod ring;
mod sides;
mod stream;

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use cust::context::{Context, CurrentContext};
use cust_raw::CUstream;

#[cfg(target_os = "linux")]
pub(crate) use beside::Beside;
pub(crate) use event::EventPair;
pub(crate) use exchange::CudaExchange;
pub(crate) use feed::{CudaFeed, CudaPinned};
pub(crate) use launch::PreparedFunction;
pub(crate) use mailbox::Mailbox;
#[cfg(target_os = "linux")]
pub(crate) use mark::Mark;
pub(crate) use memory::CudaMemory;
#[cfg(target_os = "linux")]
pub(crate) use reach::Foreign;

pub use attributes::Attributes;

use self::driver::{check, from_cust};
use self::mailbox::Letters;
use self::module::Kernels;
use self::pinned::Pinned;
use self::ring::Ring;
use self::sides::Sides;
use self::stream::Stream;
use super::MemoryInfo;
use super::embedded::{self, Image};
use super::error::DeviceError;
use super::group::Group;
use super::loader::symbols::{cuMemGetInfo_v2, cuMemsetD32Async};
use super::memory::Ledger;
use super::tuned::Tuned;
use super::usage::Usage;
use crate::plan::limits::{ComputeCapability, DeviceLimits};

/// An NVIDIA GPU. Clones, and every opening of the same number, are the same device. The last number is that of the stream beside
/// its own to which launches go, if they do.
#[derive(Clone)]
pub struct CudaDevice(Arc<Inner>, Option<Group>, Option<u8>);

/// What one opened device holds. Fields are dropped in this order, the context last.
struct Inner {
    ordinal: u32,
    limits: DeviceLimits,
    driver_version: u32,
    tuned: Tuned,
    ledger: Ledger,
    kernels: OnceLock<Result<Kernels, DeviceError>>,
    staging: Mutex<Pinned>,
    ring: Mutex<Ring>,
    /// Bytes of long copies that took the driver's way.
    rented: Mutex<usize>,
    /// Of copies beside kernels, made when it is first wanted.
    copies: OnceLock<Result<Stream, DeviceError>>,
    /// Of launches that need nothing of each other.
    sides: Sides,
    letters: Letters,
    stream: Stream,
    context: Context,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The driver frees in the current context. Where that fails the context is gone, and with it
        // everything below.
        let _ = CurrentContext::set_current(&self.context);
        let _ = self.stream.synchronize();
        if let Some(Ok(copies)) = self.copies.get() {
            let _ = copies.synchronize();
        }
        self.letters.synchronize();
        self.ledger.trim(usize::MAX);
    }
}

impl CudaDevice {
    /// The device's number.
    pub fn ordinal(&self) -> u32 {
        self.0.ordinal
    }

    /// The device's name as the driver gives it.
    pub fn name(&self) -> &str {
        &self.0.limits.name
    }

    /// What a launch model has to know, read from the driver.
    pub fn limits(&self) -> &DeviceLimits {
        &self.0.limits
    }

    /// The CUDA version that the driver supports, such as 13000 for 13.0.
    pub fn driver_version(&self) -> u32 {
        self.0.driver_version
    }

    /// Where its planners find measured launches.
    pub(super) fn tuned(&self) -> &Tuned {
        &self.0.tuned
    }

    /// Whether the kernels for this device may be launched in clusters of blocks.
    pub fn has_clusters(&self) -> bool {
        let ComputeCapability { major, minor } = self.limits().compute_capability;
        embedded::image_for((major, minor)).is_some_and(Image::has_clusters)
    }

    /// The same device as a member of a group, or of none.
    pub(super) fn member(&self, group: Option<Group>) -> CudaDevice {
        CudaDevice(self.0.clone(), group, self.2)
    }

    /// Fails where sums of the group have failed, whose results are none.
    pub(super) fn check_group(&self) -> Result<(), DeviceError> {
        match &self.1 {
            Some(group) => Ok(group.check_link()?),
            None => Ok(()),
        }
    }

    /// Who shares the rows of matrices.
    pub(super) fn group(&self) -> Option<&Group> {
        self.1.as_ref()
    }

    /// Bytes that buffers hold, and that were copied.
    pub fn usage(&self) -> Usage {
        self.0.ledger.usage()
    }

    /// The account of this device's bytes.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.0.ledger
    }

    /// Waits until everything submitted so far has ended.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when an earlier launch or copy failed.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        self.enter()?;
        self.0.stream.synchronize()
    }

    /// Free and total device memory.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the driver does not say.
    pub fn memory_info(&self) -> Result<MemoryInfo, DeviceError> {
        self.enter()?;
        let mut info = MemoryInfo::default();
        // SAFETY: both pointers are writable.
        let result =
            unsafe { cuMemGetInfo_v2(&raw mut info.free_bytes, &raw mut info.total_bytes) };
        check("cuMemGetInfo", result)?;
        Ok(info)
    }

    /// Looks for the kernels that run here and loads the smallest, if that has not happened yet. The others are loaded when they
    /// are first used.
    ///
    /// # Errors
    /// [`DeviceError::NoKernels`] when none are embedded, [`DeviceError::UnsupportedArch`] when none
    /// run here, [`DeviceError::Driver`] (with the compiler's log) when the driver refuses them.
    pub fn check_kernels(&self) -> Result<(), DeviceError> {
        self.loader().map(drop)
    }

    /// Whether the driver compiles each kernel when it is first used, because this program has no machine code for the device. It
    /// keeps what it compiled for the next program.
    ///
    /// # Errors
    /// As [`CudaDevice::check_kernels`].
    pub fn compiles_kernels(&self) -> Result<bool, DeviceError> {
        self.loader().map(Kernels::are_compiled_by_driver)
    }

    /// Registers of a thread of a kernel: what its assembler counted, without loading it, or else what the driver counts. `None` if
    /// there is no such kernel.
    pub fn registers(&self, kernel: &'static str) -> Option<u32> {
        let known = self.loader().ok()?.registers(kernel);
        known.or_else(|| self.attributes(kernel).ok().map(|known| known.registers))
    }

    /// Whether this program has a kernel for this device. It need not: see [`DeviceError::NoEntry`].
    pub(crate) fn has_kernel(&self, kernel: &str) -> bool {
        self.loader().is_ok_and(|kernels| kernels.has(kernel))
    }

    /// Loads a kernel that this program does not have, for launches of an entry of this name.
    ///
    /// # Errors
    /// As [`CudaDevice::check_kernels`], and with the driver's words where it refuses the PTX.
    pub(crate) fn load_ptx(&self, entry: &'static str, ptx: String) -> Result<(), DeviceError> {
        self.loader()?.add(entry, ptx)
    }

    /// The architecture of the kernels and whether the driver compiles them.
    ///
    /// # Errors
    /// As [`CudaDevice::check_kernels`].
    pub fn kernels(&self) -> Result<&str, DeviceError> {
        self.loader().map(Kernels::origin)
    }

    /// The driver's handle of the stream in which this device's work runs (a `CUstream`), for libraries
    /// that are to join it. It lives as long as this device.
    pub fn raw_stream(&self) -> CUstream {
        let side = self.2.and_then(|side| self.0.sides.raw(side));
        side.unwrap_or_else(|| self.0.stream.raw())
    }

    /// [`CudaDevice::raw_stream`] as a number.
    pub(super) fn stream_address(&self) -> u64 {
        self.raw_stream().addr() as u64
    }

    /// The stream of copies beside kernels.
    fn copies(&self) -> Result<CUstream, DeviceError> {
        self.enter()?;
        let copies = self.0.copies.get_or_init(Stream::new);
        copies.as_ref().map(Stream::raw).map_err(Clone::clone)
    }

    /// Writes a word beside the kernels of the device, some of which may wait for it.
    #[cfg(target_os = "linux")]
    pub(crate) fn write_beside(&self, address: u64, word: u32) -> Result<(), DeviceError> {
        let copies = self.copies()?;
        // SAFETY: the caller's word of device memory; it is set by the device's own unit for copies.
        let result = unsafe { cuMemsetD32Async(address, word, 1, copies) };
        check("cuMemsetD32Async", result)
    }

    /// Waits for copies beside kernels.
    fn wait_for_copies(&self) -> Result<(), DeviceError> {
        self.enter()?;
        match self.0.copies.get() {
            Some(Ok(copies)) => copies.synchronize(),
            _ => Ok(()),
        }
    }

    /// Makes the device's context the calling thread's. Every driver call below does this first,
    /// because a thread may use several devices.
    pub(crate) fn enter(&self) -> Result<(), DeviceError> {
        CurrentContext::set_current(&self.0.context).map_err(from_cust("cuCtxSetCurrent"))
    }

    pub(crate) fn loader(&self) -> Result<&Kernels, DeviceError> {
        self.enter()?;
        self.0
            .kernels
            .get_or_init(|| Kernels::find(&self.0.limits))
            .as_ref()
            .map_err(Clone::clone)
    }
}

impl fmt::Debug for CudaDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaDevice({}, {})", self.ordinal(), self.name())
    }
}
