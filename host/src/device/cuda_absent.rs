//! The CUDA device of a build without the feature `cuda`: a type without values, so that the other
//! rooms compile unchanged, and opening one says why there is none.

use std::convert::Infallible;

use gpu_kernels::Launch;

use super::buffer::ByteRows;
use super::error::DeviceError;
use super::group::Group;
use super::lent::Owner;
use super::memory::Ledger;
use super::staging::Fill;
use super::tuned::Tuned;
use super::usage::Usage;
use super::{Buffer, MemoryInfo};
use crate::plan::limits::DeviceLimits;

/// An NVIDIA GPU, which this build cannot use.
#[derive(Clone, Debug)]
pub struct CudaDevice(Infallible);

/// A compiled kernel's needs and bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Registers of a thread.
    pub registers: u32,
    /// Static shared memory of a block, in bytes.
    pub static_shared_bytes: u32,
    /// Local memory of a thread (spills and stack), in bytes.
    pub local_bytes: u32,
    /// Most threads that a block of this kernel may have.
    pub max_threads_per_block: u32,
}

fn no_feature() -> DeviceError {
    DeviceError::NoDriver {
        cause: "this program was built without the feature `cuda`".to_owned(),
        remedy: "build it with `--features cuda`, or use the device `cpu`",
    }
}

impl CudaDevice {
    /// Always fails.
    ///
    /// # Errors
    /// [`DeviceError::NoDriver`], because the feature `cuda` is off.
    pub fn open(_ordinal: u32) -> Result<CudaDevice, DeviceError> {
        Err(no_feature())
    }

    /// Always fails.
    ///
    /// # Errors
    /// [`DeviceError::NoDriver`], because the feature `cuda` is off.
    pub fn count() -> Result<u32, DeviceError> {
        Err(no_feature())
    }
}

/// Methods of types without values; their counterparts under the feature `cuda` document them.
macro_rules! never {
    ($( impl $type:ident { $( $vis:vis fn $name:ident($this:ty $(, $ty:ty)*) -> $out:ty; )* } )*) => { $(
        #[allow(missing_docs, reason = "documented where they can be called")]
        #[allow(clippy::missing_errors_doc, reason = "documented where they can be called")]
        impl $type { $(
            $vis fn $name(self: $this $(, _: $ty)*) -> $out {
                match self.0 {}
            }
        )* }
    )* };
}

/// Device memory of no device.
pub(crate) struct CudaMemory(Infallible);

/// A launch on no device.
#[derive(Debug, Clone)]
pub(crate) struct PreparedFunction(Infallible);

/// Events of no device.
#[derive(Debug)]
pub(crate) struct EventPair(Infallible);

/// Copies to no device.
pub(crate) struct CudaFeed(Infallible);

/// Page-locked memory of no device.
pub(crate) struct CudaPinned(Infallible);

impl CudaFeed {
    pub(crate) fn new(device: &CudaDevice, _count: usize) -> Result<CudaFeed, DeviceError> {
        match device.0 {}
    }
}

/// Copies of no device in both directions.
pub(crate) struct CudaExchange(Infallible);

impl CudaExchange {
    pub(crate) fn new(device: &CudaDevice, _parts: usize) -> Result<CudaExchange, DeviceError> {
        match device.0 {}
    }
}

/// Page-locked slots of no device.
pub(crate) struct Mailbox(Infallible);

impl Mailbox {
    pub(crate) fn new(device: &CudaDevice, _len: usize) -> Result<Mailbox, DeviceError> {
        match device.0 {}
    }
}

impl EventPair {
    pub(crate) fn new(device: &CudaDevice) -> Result<EventPair, DeviceError> {
        match device.0 {}
    }
}

impl CudaDevice {
    pub(crate) fn at_once<E: From<DeviceError>>(
        &self,
        _parts: usize,
        _work: impl FnMut(usize, CudaDevice) -> Result<(), E>,
    ) -> Result<(), E> {
        match self.0 {}
    }
}

impl PreparedFunction {
    /// # Safety
    /// Cannot be called.
    pub(crate) unsafe fn launch<A: Copy>(&self, _args: &A) -> Result<(), DeviceError> {
        match self.0 {}
    }
}

never! {
    impl CudaDevice {
        pub fn ordinal(&Self) -> u32;
        pub fn name(&Self) -> &str;
        pub fn limits(&Self) -> &DeviceLimits;
        pub fn driver_version(&Self) -> u32;
        pub(super) fn tuned(&Self) -> &Tuned;
        pub fn has_clusters(&Self) -> bool;
        pub fn usage(&Self) -> Usage;
        pub(super) fn member(&Self, Option<Group>) -> CudaDevice;
        pub(super) fn group(&Self) -> Option<&Group>;
        pub(super) fn check_group(&Self) -> Result<(), DeviceError>;
        pub(crate) fn ledger(&Self) -> &Ledger;
        pub fn synchronize(&Self) -> Result<(), DeviceError>;
        pub fn memory_info(&Self) -> Result<MemoryInfo, DeviceError>;
        pub(crate) fn load_ptx(&Self, &'static str, String) -> Result<(), DeviceError>;
        pub fn check_kernels(&Self) -> Result<(), DeviceError>;
        pub fn compiles_kernels(&Self) -> Result<bool, DeviceError>;
        pub fn registers(&Self, &'static str) -> Option<u32>;
        pub(crate) fn has_kernel(&Self, &str) -> bool;
        pub fn kernels(&Self) -> Result<&str, DeviceError>;
        pub fn attributes(&Self, &'static str) -> Result<Attributes, DeviceError>;
        pub(crate) fn allocate(&Self, usize) -> Result<CudaMemory, DeviceError>;
        pub(crate) fn borrow(&Self, u64, usize, Owner) -> Result<CudaMemory, DeviceError>;
        pub(crate) fn wait_for(&Self, u64) -> Result<(), DeviceError>;
        pub(super) fn stream_address(&Self) -> u64;
        pub(crate) fn pinned(&Self, usize) -> Result<CudaPinned, DeviceError>;
        pub(crate) fn prepare(&Self, &'static str, (Launch, u32), usize) -> Result<PreparedFunction, DeviceError>;
    }
    impl CudaMemory {
        pub(crate) fn device(&Self) -> &CudaDevice;
        pub(crate) fn alias(&Self, Owner) -> CudaMemory;
        pub(crate) fn window(&Self, std::ops::Range<usize>) -> CudaMemory;
        pub(crate) fn address(&Self) -> u64;
        pub(crate) fn address_for_others(&Self) -> u64;
        pub(crate) fn write(&mut Self, usize, &[u8]) -> Result<(), DeviceError>;
        pub(crate) fn write_with(&mut Self, usize, (usize, usize), &Fill<'_>) -> Result<(), DeviceError>;
        pub(crate) fn read(&Self, usize, &mut [u8]) -> Result<(), DeviceError>;
        pub(crate) fn copy_from(&mut Self, &CudaMemory) -> Result<(), DeviceError>;
        pub(crate) fn copy_rows_from(&mut Self, &CudaMemory, &ByteRows) -> Result<(), DeviceError>;
        pub(crate) fn fill_zero(&mut Self, usize, usize) -> Result<(), DeviceError>;
    }
    impl CudaFeed {
        pub(crate) fn fill(&mut Self, (usize, &mut CudaMemory), usize, &Fill<'_>) -> Result<(), DeviceError>;
        pub(crate) fn copy(&mut Self, (usize, &mut CudaMemory), usize, &CudaPinned) -> Result<(), DeviceError>;
        pub(crate) fn arrive(&Self, usize) -> Result<(), DeviceError>;
        pub(crate) fn release(&Self, usize) -> Result<(), DeviceError>;
    }
    impl CudaExchange {
        pub(crate) fn send(&Self, usize, &[u8], &mut CudaMemory) -> Result<(), DeviceError>;
        pub(crate) fn arrive(&Self, usize) -> Result<(), DeviceError>;
        pub(crate) fn computed(&Self, usize) -> Result<(), DeviceError>;
        pub(crate) fn fetch(&Self, usize, &CudaMemory, &mut [u8]) -> Result<(), DeviceError>;
        pub(crate) fn wait(&Self) -> Result<(), DeviceError>;
    }
    impl CudaPinned {
        pub(crate) fn bytes(&Self) -> &[u8];
        pub(crate) fn bytes_mut(&mut Self) -> &mut [u8];
    }
    impl PreparedFunction {
        pub(crate) fn shape(&Self) -> Launch;
        pub(crate) fn attributes(&Self) -> Attributes;
        pub(crate) fn blocks_per_sm(&Self) -> Result<u32, DeviceError>;
    }
    impl Mailbox {
        pub(crate) fn submit(&mut Self, &Buffer<f64>) -> Result<(), DeviceError>;
        pub(crate) fn submit_beside(&mut Self, &Buffer<f64>) -> Result<(), DeviceError>;
        pub(crate) fn wait(&mut Self) -> Result<&[f64], DeviceError>;
        pub(crate) fn is_pending(&Self) -> bool;
    }
    impl EventPair {
        pub(crate) fn start(&mut Self) -> Result<(), DeviceError>;
        pub(crate) fn stop(&mut Self) -> Result<f64, DeviceError>;
    }
}
