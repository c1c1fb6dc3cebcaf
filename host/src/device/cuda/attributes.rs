//! What a compiled kernel uses and allows, as the driver reports it.

use cust::function::{Function, FunctionAttribute};

use super::driver::from_cust;
use crate::device::error::DeviceError;

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

impl Attributes {
    /// Reads them from the driver.
    pub(super) fn read(function: &Function<'_>) -> Result<Attributes, DeviceError> {
        let read = |attribute| -> Result<u32, DeviceError> {
            let value = function
                .get_attribute(attribute)
                .map_err(from_cust("cuFuncGetAttribute"))?;
            Ok(value.unsigned_abs())
        };
        Ok(Attributes {
            registers: read(FunctionAttribute::NumRegisters)?,
            static_shared_bytes: read(FunctionAttribute::SharedMemorySizeBytes)?,
            local_bytes: read(FunctionAttribute::LocalSizeBytes)?,
            max_threads_per_block: read(FunctionAttribute::MaxThreadsPerBlock)?,
        })
    }
}
