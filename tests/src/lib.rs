#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! | module | what it answers |
//! |---|---|
//! | [`cases`] | the one list of cases that every device runs |
//! | [`diabetes`] | the repository's data set, and scikit-learn's fits |
//! | [`generate`] | seeded numbers and matrices |
//! | [`sample`] | X with all vectors and scalars of the pattern, and the truth in f64 |
//! | [`tolerance`] | how far a result may be from the truth; NaN fails |
//! | [`launcher`] | how one compiled entry is launched by itself |
//! | [`engines`] | the devices under test, and why one is missing |
//! | [`ridge`] | linear regression by Cholesky, the truth for solvers |
//! | [`report`] | the worst errors that were seen |
//! | [`tape`] | what launches left, bit by bit, to compare devices |
//! | [`shard`] | which part of the cases a process runs |
//! | [`times`] | where the time of all cases goes |

pub mod cases;
pub mod diabetes;
pub mod engines;
pub mod estimators;
pub mod generate;
pub mod launcher;
pub mod report;
pub mod ridge;
pub mod sample;
pub mod shard;
pub mod tape;
pub mod times;
pub mod tolerance;

use warpfuse::device::Device;

/// How much is to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subset {
    /// Small matrices and few launches, for what slows a GPU down many times.
    Small,
    /// Everything.
    Full,
}

impl Subset {
    /// `WARPFUSE_TEST_SUBSET`: `small`, or everything.
    pub fn from_environment() -> Subset {
        match std::env::var("WARPFUSE_TEST_SUBSET").as_deref() {
            Ok("small") => Subset::Small,
            _ => Subset::Full,
        }
    }

    /// Whether the environment says `full`: everything on every device.
    pub fn is_everything_wanted() -> bool {
        std::env::var("WARPFUSE_TEST_SUBSET").as_deref() == Ok("full")
    }

    /// Which cases are run on `device`: what the environment says, but on an emulator all of them only if it
    /// says `full`.
    pub fn of_cases(device: &Device) -> Subset {
        match device {
            Device::Emulator(_) if Subset::is_everything_wanted() => Subset::Full,
            _ => Subset::of(device),
        }
    }

    /// What is run on `device`: an emulator gets the small subset, everything else what the environment says.
    pub fn of(device: &Device) -> Subset {
        match device {
            Device::Emulator(_) => Subset::Small,
            _ => Subset::from_environment(),
        }
    }
}
