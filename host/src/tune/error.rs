//! What can go wrong while tuning.

use std::path::PathBuf;

use gpu_kernels_builder::BuildError;
use thiserror::Error;

use crate::device::DeviceError;
use crate::ops::OpError;
use crate::ops::sparse_conv::SparseConvError;

/// Why nothing could be tuned. A launch that fails is an [`Outcome`](super::Outcome), no error.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TuneError {
    /// The log cannot be read or written.
    #[error("the log {} cannot be {action}: {source}", path.display())]
    Log {
        /// Where it is.
        path: PathBuf,
        /// Read or written.
        action: &'static str,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A device that launches nothing has nothing to choose.
    #[error(
        "{device} launches no kernels: only a CUDA device has launches to choose from; name one, such as `cuda:0`"
    )]
    NoLaunches {
        /// The device.
        device: String,
    },
    /// A log without a trial of this problem.
    #[error(
        "the log has no trial of {class} with this version; tune it first, or name another log"
    )]
    NothingToReplay {
        /// The problem.
        class: String,
    },
    /// The planner's own choice is wrong, fails or cannot be timed.
    #[error(
        "the planner's own choice {point} is refused: {reason}; this is a bug, please report it"
    )]
    Incumbent {
        /// Its name.
        point: String,
        /// Why.
        reason: String,
    },
    /// A launch has broken the device's context: nothing runs there any more before the process is started again.
    #[error(
        "{point} left the device unusable ({reason}); it is remembered where there is a log: run again to go on, or let processes be watched with --launch-limit"
    )]
    DeviceLost {
        /// Its name.
        point: String,
        /// What it said.
        reason: String,
    },
    /// The problem cannot be set up.
    #[error(transparent)]
    Op(#[from] OpError),
    /// No instance can be generated.
    #[error("no kernel can be generated: {0}")]
    Generator(#[from] BuildError),
    /// There is no place for what is generated.
    #[error("no folder for generated kernels: {0}")]
    Folder(String),
    /// The convolutional layer cannot be.
    #[error(transparent)]
    SparseConv(#[from] SparseConvError),
}

impl From<DeviceError> for TuneError {
    fn from(error: DeviceError) -> TuneError {
        TuneError::Op(error.into())
    }
}
