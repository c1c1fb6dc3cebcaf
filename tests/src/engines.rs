//! The devices under test.
//!
//! `WARPFUSE_DEVICES` lists them as [`Device`] reads them, such as `cpu,cuda:1`; each of those has to be
//! there. Without it they are `cpu`, an emulator that shuffles and interrupts, and `cuda:0`, of which the last
//! may be missing.

use warpfuse::device::Device;

/// A device under test.
#[derive(Debug, Clone)]
pub struct Engine {
    /// Its name, such as `cuda:0`.
    pub name: String,
    /// The device, or why there is none.
    pub device: Result<Device, Missing>,
}

/// Why a device cannot be tested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// Nobody asked for it: its cases are ignored.
    Optional(String),
    /// It was asked for: its cases fail.
    Required(String),
}

impl Engine {
    /// Opens the device of this name.
    fn open(name: &str, missing: fn(String) -> Missing) -> Engine {
        let opened = name.parse::<Device>().and_then(with_kernels);
        Engine {
            name: name.to_owned(),
            device: opened.map_err(|error| missing(error.to_string())),
        }
    }

    /// All engines of this run.
    pub fn from_environment() -> Vec<Engine> {
        match std::env::var("WARPFUSE_DEVICES") {
            Ok(list) => Self::required(&list),
            Err(_) => vec![
                Self::open("cpu", Missing::Required),
                Self::open("emulator:3", Missing::Required),
                Self::open("cuda:0", Missing::Optional),
            ],
        }
    }

    /// The engines of a list with commas.
    pub fn required(list: &str) -> Vec<Engine> {
        let names = list
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty());
        names
            .map(|name| Self::open(name, Missing::Required))
            .collect()
    }

    /// Whether compiled entries are launched here; the CPU has code of its own.
    pub fn launches_entries(&self) -> bool {
        !matches!(&self.device, Ok(device) if device.is_cpu())
    }
}

/// A GPU without kernels is of no use to a test.
fn with_kernels(device: Device) -> Result<Device, warpfuse::device::DeviceError> {
    if let Device::Cuda(cuda) = &device {
        cuda.check_kernels()?;
    }
    Ok(device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_was_asked_for_has_to_be_there() {
        let engines = Engine::required("cpu, nonsense,");
        assert_eq!(engines.len(), 2);
        assert!(engines[0].device.is_ok() && !engines[0].launches_entries());
        assert!(matches!(&engines[1].device, Err(Missing::Required(_))));
    }
}
