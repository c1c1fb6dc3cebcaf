//! Memory of a device that another library allocated, and that library's streams.

use std::ffi::{c_int, c_void};

use cust_raw::{CUresult, CUstream};

use super::CudaDevice;
use super::driver::check;
use super::event::Event;
use crate::device::error::DeviceError;
use crate::device::loader::newer::cuPointerGetAttribute;

/// Attributes of a pointer, by their numbers in `cuda.h`.
#[derive(Clone, Copy)]
enum Attribute {
    MemoryType = 2,
    Ordinal = 9,
    Start = 11,
    Size = 12,
}

/// `CU_MEMORYTYPE_DEVICE`.
const ON_DEVICE: u32 = 2;

impl CudaDevice {
    /// Fails unless `bytes` bytes from `address` on lie inside one allocation on this device.
    pub(super) fn check_range(&self, address: u64, bytes: usize) -> Result<(), DeviceError> {
        self.enter()?;
        if bytes == 0 {
            return Ok(());
        }
        let wrong = |found: String| DeviceError::WrongDevice {
            what: "borrow memory",
            expected: format!("cuda:{}", self.ordinal()),
            found,
        };
        let kind: u32 = attribute(address, Attribute::MemoryType)?
            .ok_or_else(|| wrong("memory that the driver does not know".to_owned()))?;
        if kind != ON_DEVICE {
            return Err(wrong("host memory".to_owned()));
        }
        let ordinal: c_int = attribute(address, Attribute::Ordinal)?.unwrap_or(-1);
        if u32::try_from(ordinal) != Ok(self.ordinal()) {
            return Err(wrong(format!("cuda:{ordinal}")));
        }
        let start: u64 = attribute(address, Attribute::Start)?.unwrap_or(address);
        let size: usize = attribute(address, Attribute::Size)?.unwrap_or(0);
        let end = (address - start) as usize + bytes;
        if end > size {
            return Err(DeviceError::OutOfBounds {
                what: "borrow memory, in bytes",
                start: (address - start) as usize,
                end,
                len: size,
            });
        }
        Ok(())
    }

    /// Has this device's stream wait for what was submitted to another stream of its context so far.
    ///
    /// The caller answers for `stream` being one: a handle, or 1 or 2 for the default streams.
    pub(crate) fn wait_for(&self, stream: u64) -> Result<(), DeviceError> {
        self.enter()?;
        let stream = std::ptr::without_provenance_mut::<c_void>(stream as usize) as CUstream;
        let event = Event::new()?;
        event.record(stream)?;
        // The driver keeps a destroyed event until nobody waits for it.
        event.hold_back(self.raw_stream())
    }
}

/// What the driver says of a pointer; `None` where it does not know it.
fn attribute<A: Copy + Default>(
    address: u64,
    attribute: Attribute,
) -> Result<Option<A>, DeviceError> {
    let mut value = A::default();
    // SAFETY: the value is writable, and of the type that the header gives to this attribute. The driver accepts any
    // address.
    let result =
        unsafe { cuPointerGetAttribute((&raw mut value).cast(), attribute as u32, address) };
    if result == CUresult::CUDA_ERROR_INVALID_VALUE {
        return Ok(None);
    }
    check("cuPointerGetAttribute", result)?;
    Ok(Some(value))
}
