//! How quick this very device is: probed in a few seconds, kept per device and driver, used whenever the device is
//! opened.
//!
//! ```no_run
//! use warpfuse::device::{Calibration, Device};
//!
//! let calibration = Calibration::of(&Device::cuda(0)?)?;
//! let file = calibration.store()?;
//! println!("{} GB/s, kept in {}", calibration.probed.stream_gbs, file.display());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cache;
mod error;
mod probe;

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

pub use cache::directory;
pub use error::CalibrationError;

use super::{Device, DeviceError};
use crate::plan::limits::DeviceLimits;
use crate::plan::rates::{HostRates, ProbedRates, Rates};

/// What a calibration is true for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// The device's name as the driver gives it.
    pub device: String,
    /// Its SMs: parts of a device may be set aside for others.
    pub sms: u32,
    /// The CUDA version that the driver supports, such as 13000 for 13.0.
    pub driver_version: u32,
}

/// What probes of a device found, and when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Of which device, with which driver.
    pub subject: Subject,
    /// When, in seconds since 1970-01-01 UTC.
    pub at: u64,
    /// What was found.
    pub probed: ProbedRates,
}

impl Subject {
    /// The device with the driver that it has now; `None` where there is no driver.
    pub fn of(device: &Device) -> Option<Subject> {
        let limits = device.limits()?;
        Some(Subject::new(limits, device.driver_version()?))
    }

    pub(super) fn new(limits: &DeviceLimits, driver_version: u32) -> Subject {
        Subject {
            device: limits.name.clone(),
            sms: limits.sms,
            driver_version,
        }
    }
}

impl Calibration {
    /// Probes a GPU, which takes a second or two and an eighth of its free memory, 1 GiB at most. Nothing is kept
    /// before [`Calibration::store`].
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] for the CPU and the emulator, whose time says nothing about a GPU; whatever
    /// else makes the probes fail.
    pub fn of(device: &Device) -> Result<Calibration, DeviceError> {
        let subject = match (device, Subject::of(device)) {
            (Device::Cuda(_), Some(subject)) => subject,
            _ => {
                return Err(DeviceError::Unsupported {
                    what: "calibrate",
                    device: device.to_string(),
                    why: "rates are those of a CUDA device; name one, such as `cuda:0`",
                });
            }
        };
        let probed = probe::run(device)?;
        Ok(Calibration {
            subject,
            at: now(),
            probed,
        })
    }

    /// The same with what the host beside the device does.
    pub fn with_host(self, host: HostRates) -> Calibration {
        let probed = ProbedRates {
            host: Some(host),
            ..self.probed
        };
        Calibration { probed, ..self }
    }

    /// The rates that planners use; see [`Rates::calibrated`].
    pub fn rates(&self, uncalibrated: &Rates) -> Rates {
        Rates::calibrated(uncalibrated, &self.probed, self.at)
    }
}

/// The limits of a device as it is opened, with calibrated rates where there are any for this driver. A calibration
/// that cannot be read is as good as none, and logged.
#[cfg_attr(not(feature = "cuda"), allow(dead_code))]
pub(super) fn apply(limits: DeviceLimits, driver_version: u32) -> DeviceLimits {
    let subject = Subject::new(&limits, driver_version);
    let rates = match Calibration::load(&subject) {
        Ok(Some(calibration)) => calibration.rates(&limits.rates),
        Ok(None) => limits.rates,
        Err(error) => {
            tracing::warn!(%error, "the calibration is not used");
            limits.rates
        }
    };
    DeviceLimits { rates, ..limits }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests;
