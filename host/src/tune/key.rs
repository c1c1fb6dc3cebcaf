//! The key of a problem on a device.

use crate::device::Device;
use crate::plan::tuned::{Key, code_version};

impl Key {
    /// The key of a class of problems on a device.
    pub fn of(device: &Device, class: &str) -> Key {
        Key {
            device: device.name().to_owned(),
            driver: device.driver_version().unwrap_or(0),
            code: code_version().to_owned(),
            class: class.to_owned(),
        }
    }
}
