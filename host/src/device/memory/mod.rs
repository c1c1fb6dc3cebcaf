//! How much memory of a device may be held, and by whom it is.
//!
//! Every buffer's memory, on every kind of device, passes through one account for each device: it is counted, held
//! below a limit, and named where there is too little. Blocks that are freed are kept for the next buffers. Nothing
//! here knows what the bytes mean.
//!
//! What may be evicted is a copy of something that the host has and nobody changes: blocks of X. Such a copy is never dirty,
//! so there are no versions and nothing is written back; a block that is wanted again is sent again. Buffers that
//! operations write have one home, their device, and stay there as long as they live.

mod evict;
mod ledger;
mod lent;
mod pool;
#[cfg(test)]
mod soak;

use std::str::FromStr;
use std::sync::OnceLock;

pub(crate) use evict::Evictable;
pub use evict::{Candidate, EvictionPolicy, NextUse};
pub(crate) use ledger::{Held, Ledger, PinnedHeld};
pub(crate) use lent::Counted;
#[cfg(feature = "cuda")]
pub(crate) use lent::LentHeld;
pub(crate) use pool::{Fit, Token};

use super::error::DeviceError;
use super::system;

/// The variable with the limit for GPUs, such as `8GiB`.
pub const LIMIT_VARIABLE: &str = "WARPFUSE_GPU_MEMORY";

/// The variable with the limit for page-locked host memory, such as `32GiB`.
pub const PINNED_VARIABLE: &str = "WARPFUSE_PINNED_MEMORY";

/// Bytes of freed blocks that are kept where no part of a device's memory is known to be little: on the CPU.
const KEPT_BYTES: usize = 64 << 20;

/// How much memory buffers of a device may take.
///
/// A GPU that is opened takes the limit from [`LIMIT_VARIABLE`]; [`Device::limit_memory`](super::Device::limit_memory)
/// sets it afterwards.
///
/// ```
/// use warpfuse::device::{Device, MemoryOptions};
/// let device = Device::cpu();
/// device.limit_memory("1KiB".parse()?);
/// assert!(device.zeros::<f32>(257).is_err());
/// assert!(device.zeros::<f32>(256).is_ok());
/// # Ok::<(), warpfuse::device::DeviceError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryOptions {
    /// Most bytes that buffers may hold at once, those included that are kept for the next ones; `None` for as many
    /// as the device has.
    pub limit_bytes: Option<usize>,
    /// Most bytes of host memory that may be page-locked for what streams to the device; `None` for a quarter of the
    /// host's memory.
    pub pinned_bytes: Option<usize>,
    /// Most bytes of freed memory that are kept for the next buffers, 0 for none; `None` for a sixteenth of a GPU's
    /// memory, and 64 MiB on the CPU.
    pub kept_bytes: Option<usize>,
    /// Which blocks of X leave the device first when something else needs the memory.
    pub eviction: EvictionPolicy,
}

impl MemoryOptions {
    /// At most this many bytes.
    pub fn limited(bytes: usize) -> MemoryOptions {
        MemoryOptions {
            limit_bytes: Some(bytes),
            ..MemoryOptions::default()
        }
    }

    /// Makes these the options of every GPU that is opened from now on, whatever the environment says; the first caller
    /// decides.
    pub fn apply_to_gpus(self) {
        // A second caller finds it decided.
        let _ = OF_GPUS.set(self);
    }

    /// What [`MemoryOptions::apply_to_gpus`] was told, or else what [`LIMIT_VARIABLE`] and [`PINNED_VARIABLE`] say;
    /// no limit where they are not set.
    ///
    /// # Errors
    /// [`DeviceError::Setting`] when one is no number of bytes.
    pub fn from_environment() -> Result<MemoryOptions, DeviceError> {
        if let Some(options) = OF_GPUS.get() {
            return Ok(*options);
        }
        let bytes = |what| {
            let text = std::env::var_os(what)?;
            let text = text.to_string_lossy();
            Some(bytes_of(&text).ok_or_else(|| no_bytes(what, &text)))
        };
        Ok(MemoryOptions {
            limit_bytes: bytes(LIMIT_VARIABLE).transpose()?,
            pinned_bytes: bytes(PINNED_VARIABLE).transpose()?,
            ..MemoryOptions::default()
        })
    }
}

/// What every GPU that is opened is to take.
static OF_GPUS: OnceLock<MemoryOptions> = OnceLock::new();

/// A quarter of the host's memory.
fn default_pinned_bytes() -> usize {
    system::memory_info().map_or(0, |info| info.total_bytes / 4)
}

fn no_bytes(what: &'static str, found: &str) -> DeviceError {
    DeviceError::Setting {
        what,
        expected: "a number of bytes such as `8GiB`, `500MB` or `4096`",
        found: found.to_owned(),
    }
}

/// Reads a number of bytes with or without a unit: `8GiB`, `1.5 GB`, `4096`.
impl FromStr for MemoryOptions {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<MemoryOptions, DeviceError> {
        let bytes = bytes_of(text).map(MemoryOptions::limited);
        bytes.ok_or_else(|| no_bytes(LIMIT_VARIABLE, text))
    }
}

/// The bytes that a text names.
fn bytes_of(text: &str) -> Option<usize> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = (text[..digits].parse::<f64>().ok()?, text[digits..].trim());
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        "kib" | "k" => 1024.0,
        "mib" | "m" => 1024.0 * 1024.0,
        "gib" | "g" => 1024.0 * 1024.0 * 1024.0,
        "tib" | "t" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let bytes = number * factor;
    // A float cast saturates; more than the address space is no number of bytes.
    (bytes < isize::MAX as f64).then_some(bytes as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Device, EmulatorOptions};

    #[test]
    fn sizes_are_read_with_and_without_units() {
        for (text, bytes) in [
            ("4096", 4096),
            ("8GiB", 8 << 30),
            (" 1.5 gib ", 3 << 29),
            ("500MB", 500_000_000),
            ("2k", 2048),
            ("0", 0),
        ] {
            assert_eq!(
                text.parse::<MemoryOptions>().ok(),
                Some(MemoryOptions::limited(bytes)),
                "{text}"
            );
        }
        for wrong in [
            "",
            "GiB",
            "-1",
            "8 apples",
            "1e3",
            "nan",
            "99999999TiB",
            "1.2.3",
        ] {
            let error = wrong.parse::<MemoryOptions>().expect_err(wrong).to_string();
            assert!(
                error.contains("WARPFUSE_GPU_MEMORY") && error.contains("8GiB"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_device_without_room_says_who_holds_it_and_works_afterwards() {
        for device in [Device::cpu(), Device::emulator(EmulatorOptions::default())] {
            device.limit_memory(MemoryOptions::limited(1_000));
            assert_eq!(device.memory_options().limit_bytes, Some(1_000));
            let held = device.upload(&[1.0_f64; 100]).unwrap();
            let error = device.upload(&[1.0_f64; 26]).unwrap_err();
            let DeviceError::OutOfMemory {
                requested,
                free,
                total,
                ..
            } = &error
            else {
                panic!("{error}");
            };
            assert_eq!((*requested, *free, *total), (208, 200, 1_000));
            assert!(error.to_string().contains("by 1 of 800 bytes"), "{error}");
            assert_eq!(held.read_scalar(99).unwrap(), 1.0);
            assert_eq!(
                device
                    .upload(&[2.0_f64; 25])
                    .unwrap()
                    .read_scalar(24)
                    .unwrap(),
                2.0
            );
            drop(held);
            assert!(device.zeros::<f64>(125).is_ok());
            let usage = device.usage();
            assert_eq!((usage.live_bytes, usage.refused), (0, 1));
            assert!(usage.peak_bytes <= 1_000);
        }
    }
}
