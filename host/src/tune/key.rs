//! What a measurement is worth something for.

use gpu_kernels::families::all;
use serde::{Deserialize, Serialize};

use crate::device::Device;

/// A device, its driver, the code, and a class of problems: measurements of other keys say nothing about this one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The device's name.
    pub device: String,
    /// The driver's version; 0 where there is none.
    pub driver: u32,
    /// This library's version, and a digest of the names of its kernels.
    pub code: String,
    /// The problem, as [`Subject::class`](super::Subject::class) says.
    pub class: String,
}

impl Key {
    /// The key of a problem on a device.
    pub fn of(device: &Device, class: &str) -> Key {
        Key {
            device: device.name().to_owned(),
            driver: device.driver_version().unwrap_or(0),
            code: format!("{} {:016x}", env!("CARGO_PKG_VERSION"), digest_of_kernels()),
            class: class.to_owned(),
        }
    }

    /// A digest of all parts.
    pub fn digest(&self) -> u64 {
        let driver = self.driver.to_string();
        let parts = [&self.device, &driver, &self.code, &self.class];
        parts
            .into_iter()
            .fold(START, |hash, part| fnv(fnv(hash, part.as_bytes()), &[0]))
    }
}

/// Names and order of all kernels: a kernel that is added or renamed makes another version.
fn digest_of_kernels() -> u64 {
    all().fold(START, |hash, kernel| {
        fnv(fnv(hash, kernel.kernel.as_bytes()), b";")
    })
}

/// The first state of [`fnv`].
pub(super) const START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, 64 bits.
pub(super) fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(hash, mix)
}
