//! What can go wrong with a kept calibration.

use std::path::PathBuf;

use super::Subject;

/// Why a calibration could not be kept or read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrationError {
    /// Nowhere to keep it.
    #[error(
        "find the cache directory: expected XDG_CACHE_HOME or HOME to be an absolute path; set one"
    )]
    NoDirectory,
    /// The file system refuses.
    #[error("{action} {}: {cause}", path.display())]
    File {
        /// What was to be done.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the operating system said.
        cause: String,
    },
    /// The file is none of this version's.
    #[error("read {}: {cause}; run `warpfuse calibrate --force`", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// The file is another device's or driver's.
    #[error(
        "read {}: expected {} with {} SMs and a driver for CUDA {}, found {} with {} and {}; run `warpfuse calibrate --force`",
        path.display(), expected.device, expected.sms, expected.driver_version, found.device, found.sms, found.driver_version
    )]
    OtherSubject {
        /// The file.
        path: PathBuf,
        /// What is there.
        expected: Box<Subject>,
        /// What the file is about.
        found: Box<Subject>,
    },
    /// A rate that no device has.
    #[error("read {}: {rate} is {value}, which no device has; run `warpfuse calibrate --force`", path.display())]
    Implausible {
        /// The file.
        path: PathBuf,
        /// The rate's name.
        rate: &'static str,
        /// Its value.
        value: f64,
    },
}
