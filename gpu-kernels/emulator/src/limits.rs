//! What the emulated device allows a launch.

use serde::{Deserialize, Serialize};

/// The limits that a launch has to keep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Whose they are, for people.
    pub device: String,
    /// Threads of one block.
    pub max_threads_per_block: u32,
    /// Bytes of shared memory that one block may use once its kernel has opted in.
    pub shared_per_block: u32,
}

impl Default for Limits {
    /// Those of an H200.
    fn default() -> Limits {
        Limits {
            device: "NVIDIA H200".to_owned(),
            max_threads_per_block: 1024,
            shared_per_block: 232_448,
        }
    }
}
