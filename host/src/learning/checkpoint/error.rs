//! Why a fit does not go on from a checkpoint.

use std::path::PathBuf;

use thiserror::Error;

/// Why a checkpoint was not read, written or gone on from.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The file system refused.
    #[error("cannot {action} the checkpoint {}: {reason}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// Which file.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// The file is not what a fit wrote.
    #[error(
        "{} is not a whole checkpoint: {reason}; name another file, or delete this one to begin anew",
        path.display()
    )]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file is of another fit.
    #[error(
        "the checkpoint {} is of another fit: expected {what} {expected}, found {found}; give the options and the data that \
         it was made with, name another file, or delete this one to begin anew",
        path.display()
    )]
    Foreign {
        /// Which file.
        path: PathBuf,
        /// What differs.
        what: String,
        /// What this fit has.
        expected: String,
        /// What the file has.
        found: String,
    },
}
