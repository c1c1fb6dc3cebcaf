//! What keeps an SM from holding more of a kernel.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The resource that keeps an SM from holding one more block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limiter {
    /// Registers of the SM, of a block, or of a thread.
    Registers,
    /// Shared memory of the SM or of a block.
    SharedMemory,
    /// Resident warps of the SM.
    Warps,
    /// Resident blocks of the SM.
    Blocks,
    /// The block is empty or larger than a block may be.
    BlockSize,
}

impl fmt::Display for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Registers => "registers",
            Self::SharedMemory => "shared memory",
            Self::Warps => "warps",
            Self::Blocks => "blocks",
            Self::BlockSize => "block size",
        })
    }
}
