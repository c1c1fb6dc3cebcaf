//! What a measurement is worth something for.

use std::sync::OnceLock;

use gpu_kernels::families::all;
use serde::{Deserialize, Serialize};

/// A device, its driver, the code, and a class of problems: measurements of other keys say nothing about this one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The device's name.
    pub device: String,
    /// The driver's version; 0 where there is none.
    pub driver: u32,
    /// This library's version, and a digest of the names of its kernels.
    pub code: String,
    /// The problem; see [`class`](super::class).
    pub class: String,
}

/// Where plans are made: the part of a [`Key`] that all problems share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Site<'a> {
    /// The device's name.
    pub device: &'a str,
    /// The driver's version; `None` to plan for a device that is not there, whatever its driver.
    pub driver: Option<u32>,
}

impl Key {
    /// A digest of all parts.
    pub fn digest(&self) -> u64 {
        let driver = self.driver.to_string();
        let parts = [&self.device, &driver, &self.code, &self.class];
        parts
            .into_iter()
            .fold(START, |hash, part| fnv(fnv(hash, part.as_bytes()), &[0]))
    }

    /// Whether it was measured there, with this version of the code.
    pub fn is_of(&self, site: &Site<'_>) -> bool {
        self.device == site.device
            && site.driver.is_none_or(|driver| driver == self.driver)
            && self.code == code_version()
    }
}

/// This library's version, and a digest of the names of its kernels: one that is added or renamed makes another version.
pub fn code_version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let digest = all().fold(START, |hash, kernel| {
            fnv(fnv(hash, kernel.kernel.as_bytes()), b";")
        });
        format!("{} {digest:016x}", env!("CARGO_PKG_VERSION"))
    })
}

/// The first state of [`fnv`].
pub(crate) const START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, 64 bits.
pub(crate) fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(hash, mix)
}
