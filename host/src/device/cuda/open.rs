//! Opening a device: driver, device, primary context, stream.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use cust::CudaApiVersion;
use cust::context::Context;
use cust::device::Device;
use cust_raw::CUresult;

use super::driver::{check, from_cust};
use super::mailbox::Letters;
use super::pinned::Pinned;
use super::sides::Sides;
use super::stream::Stream;
use super::{CudaDevice, Inner, limits};
use crate::device::calibration;
use crate::device::error::DeviceError;
use crate::device::loader::{self, symbols::cuInit};
use crate::device::memory::{Ledger, MemoryOptions};
use crate::device::tuned::Tuned;
use crate::parallel::locked;
use crate::plan::tuned::Site;

/// What to do where no driver is found.
const REMEDY_DRIVER: &str =
    "install NVIDIA's driver (it brings libcuda.so.1), or use the device `cpu`";

/// The open devices by number: two handles of one device must share its stream.
static OPEN: Mutex<Option<HashMap<u32, Weak<Inner>>>> = Mutex::new(None);

impl CudaDevice {
    /// CUDA device number `ordinal`; the one already open where there is one.
    ///
    /// # Errors
    /// [`DeviceError::NoDriver`] without a driver that starts, [`DeviceError::NoDevice`] without such a
    /// device.
    pub fn open(ordinal: u32) -> Result<CudaDevice, DeviceError> {
        let count = CudaDevice::count()?;
        if ordinal >= count {
            return Err(DeviceError::NoDevice { ordinal, count });
        }
        // A panic elsewhere cannot leave the table half-written: it is one insertion.
        let mut open = locked(&OPEN);
        let open = open.get_or_insert_default();
        if let Some(inner) = open.get(&ordinal).and_then(Weak::upgrade) {
            return Ok(CudaDevice(inner, None, None));
        }
        let inner = Arc::new(open_inner(ordinal)?);
        open.insert(ordinal, Arc::downgrade(&inner));
        Ok(CudaDevice(inner, None, None))
    }

    /// Number of CUDA devices; 0 where there is a driver but no GPU.
    ///
    /// # Errors
    /// [`DeviceError::NoDriver`] without a driver that starts.
    pub fn count() -> Result<u32, DeviceError> {
        static COUNT: OnceLock<Result<u32, DeviceError>> = OnceLock::new();
        COUNT.get_or_init(start_driver).clone()
    }
}

/// Opens the library, initialises the driver, and counts the devices.
fn start_driver() -> Result<u32, DeviceError> {
    let no_driver = |cause: String| DeviceError::NoDriver {
        cause,
        remedy: REMEDY_DRIVER,
    };
    loader::library().map_err(|cause| no_driver(cause.to_owned()))?;
    // SAFETY: any thread may initialise the driver, any number of times.
    let result = unsafe { cuInit(0) };
    if result == CUresult::CUDA_ERROR_NO_DEVICE {
        return Ok(0);
    }
    check("cuInit", result).map_err(|error| no_driver(error.to_string()))?;
    Device::num_devices().map_err(from_cust("cuDeviceGetCount"))
}

/// The part of a device's memory that freed blocks may take, unless the options say another.
const KEPT_PART: usize = 16;

fn open_inner(ordinal: u32) -> Result<Inner, DeviceError> {
    let device = Device::get_device(ordinal).map_err(from_cust("cuDeviceGet"))?;
    let memory = device
        .total_memory()
        .map_err(from_cust("cuDeviceTotalMem"))?;
    let ledger = Ledger::keeping(memory / KEPT_PART);
    ledger.limit(MemoryOptions::from_environment()?);
    let version = CudaApiVersion::get().map_err(from_cust("cuDriverGetVersion"))?;
    let driver_version = (version.major() * 1000 + version.minor() * 10).unsigned_abs();
    let limits = calibration::apply(limits::read(device)?, driver_version);
    let tuned = Tuned::of_environment(&Site {
        device: &limits.name,
        driver: Some(driver_version),
    })?;
    let context = Context::new(device).map_err(from_cust("cuDevicePrimaryCtxRetain"))?;
    let stream = Stream::new()?;
    Ok(Inner {
        ordinal,
        limits,
        driver_version,
        tuned,
        ledger,
        kernels: OnceLock::new(),
        staging: Mutex::new(Pinned::new()?),
        ring: Mutex::default(),
        rented: Mutex::default(),
        copies: OnceLock::new(),
        sides: Sides::new(),
        letters: Letters::default(),
        stream,
        context,
    })
}
