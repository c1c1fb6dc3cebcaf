//! What the emulator accuses a kernel of.

use std::fmt;
use std::panic::Location;

use gpu_kernels::Violation;
use gpu_kernels::cta::WARP;
use serde::{Deserialize, Serialize};

pub use super::cluster::Lifetime;

/// A line of a kernel body.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Site {
    /// Source file, as the compiler was given it.
    pub file: String,
    /// Line, counted from 1.
    pub line: u32,
    /// Column, counted from 1.
    pub column: u32,
}

impl From<&Location<'_>> for Site {
    fn from(location: &Location<'_>) -> Site {
        Site {
            file: location.file().to_owned(),
            line: location.line(),
            column: location.column(),
        }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// Which kernel ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// Its family.
    pub family: &'static str,
    /// Its entry.
    pub entry: &'static str,
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (family {})", self.entry, self.family)
    }
}

/// A lane and the line that it had reached.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Position {
    /// Block in the grid.
    pub block: u32,
    /// Thread in the block.
    pub thread: u32,
    /// The line.
    pub site: Site,
}

impl Position {
    /// Warp in the block.
    pub fn warp(&self) -> u32 {
        self.thread / WARP
    }

    /// Lane in the warp.
    pub fn lane(&self) -> u32 {
        self.thread % WARP
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (block, warp, lane) = (self.block, self.warp(), self.lane());
        write!(
            f,
            "block {block}, warp {warp}, lane {lane} at {}",
            self.site
        )
    }
}

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Action {
    /// A plain read.
    Read,
    /// A read through the read-only path ([`In`](gpu_kernels::In)).
    Load,
    /// A plain write.
    Write,
    /// An atomic addition.
    Add,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Action::Read => "read",
            Action::Load => "read-only load",
            Action::Write => "write",
            Action::Add => "atomic addition",
        })
    }
}

/// An address, as people name it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Place {
    /// An element of a buffer in global memory.
    Global {
        /// The buffer's name.
        buffer: String,
        /// Element, counted from the start of the argument that was used.
        index: u64,
        /// Elements of the buffer before the start of the argument.
        offset: u64,
        /// Type of the elements.
        element: &'static str,
    },
    /// An element of a shared array.
    Shared {
        /// First byte of the array in the block's dynamic shared memory.
        byte: u32,
        /// Element of the array.
        index: u64,
        /// Type of the elements.
        element: &'static str,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Global {
                buffer,
                index,
                offset: 0,
                element,
            } => write!(f, "{buffer}[{index}] ({element})"),
            Place::Global {
                buffer,
                index,
                offset,
                element,
            } => write!(f, "{buffer}[{offset} + {index}] ({element})"),
            Place::Shared {
                byte,
                index,
                element,
            } => write!(f, "shared+{byte}[{index}] ({element})"),
        }
    }
}

/// The other side of a conflict.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Party {
    /// Who and where.
    pub position: Position,
    /// What it did.
    pub action: Action,
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} by {}", self.action, self.position)
    }
}

/// Where a lane is that others wait for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Whereabouts {
    /// Its body has ended.
    Ended,
    /// It waits at a barrier.
    Barrier(Site),
    /// It waits at a shuffle or vote with other members, width or mode.
    Collective(Site),
    /// It is not among the members that the caller names.
    NotNamed,
    /// The warp has fewer lanes.
    NoSuchLane,
}

impl fmt::Display for Whereabouts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Whereabouts::Ended => f.write_str("has ended"),
            Whereabouts::Barrier(site) => write!(f, "waits at the barrier {site}"),
            Whereabouts::Collective(site) => {
                write!(f, "waits at another shuffle or vote, {site}")
            }
            Whereabouts::NotNamed => f.write_str("is not among the named members"),
            Whereabouts::NoSuchLane => f.write_str("does not exist in this warp"),
        }
    }
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultKind {
    /// An access beyond its array.
    #[error("out-of-bounds {action} of {place}: expected an index below {len}")]
    OutOfBounds {
        /// What was done.
        action: Action,
        /// Where.
        place: Place,
        /// Elements of the array.
        len: u64,
    },
    /// A pointer that no allocation of this emulator has.
    #[error("{action} through the stray address {address:#x}: it lies in no buffer of this device")]
    Stray {
        /// What was done.
        action: Action,
        /// The address.
        address: u64,
    },
    /// A read of memory that nobody has written.
    #[error("{action} of {place}, which nobody has written: initialise it first")]
    Uninitialised {
        /// What was done.
        action: Action,
        /// Where.
        place: Place,
    },
    /// Two accesses that no barrier orders, at least one a write.
    #[error("data race: {action} of {place} and {other} are ordered by no barrier")]
    Race {
        /// What was done.
        action: Action,
        /// Where.
        place: Place,
        /// The earlier access.
        other: Party,
    },
    /// Memory passed as read-only is written during the launch.
    #[error(
        "{action} of {place} conflicts with {other}: a read-only argument must not be written in the same launch"
    )]
    ReadOnlyWritten {
        /// What was done.
        action: Action,
        /// Where.
        place: Place,
        /// The earlier access.
        other: Party,
    },
    /// A barrier that some lanes never reach.
    #[error(
        "divergent barrier: warp {}, lane {} {whereabouts}; all threads of the block must reach the same barrier",
        absent / WARP,
        absent % WARP
    )]
    DivergentBarrier {
        /// A thread that does not arrive.
        absent: u32,
        /// Where it is instead.
        whereabouts: Whereabouts,
    },
    /// A barrier of a cluster that some of its blocks never reach.
    #[error(
        "divergent barrier: block {absent} {whereabouts}; all threads of the cluster must reach the same barrier"
    )]
    DivergentCluster {
        /// A block that does not arrive.
        absent: u32,
        /// Where its first thread is instead.
        whereabouts: Whereabouts,
    },
    /// An access to the shared memory of another block that may not run.
    #[error("{action} of {place} of block {rank} of the cluster, which may {lifetime}")]
    PeerMayNotRun {
        /// What was done.
        action: Action,
        /// Where.
        place: Place,
        /// The block's number in its cluster.
        rank: u32,
        /// Why it may not run.
        lifetime: Lifetime,
    },
    /// An access to the shared memory of a block that a cluster does not have.
    #[error("{action} of {place} of block {rank} of a cluster of {blocks}")]
    NoSuchPeer {
        /// What was done.
        action: Action,
        /// Where.
        place: Place,
        /// The number of the block that is not there.
        rank: u32,
        /// Blocks of the cluster.
        blocks: u32,
    },
    /// A shuffle or vote with a lane that does not take part.
    #[error(
        "shuffle or vote among {members:#010x}: lane {absent} {whereabouts}; all named lanes must take part in the same one"
    )]
    AbsentLane {
        /// The lane.
        absent: u32,
        /// Where it is instead.
        whereabouts: Whereabouts,
        /// The members that the caller names.
        members: u32,
    },
    /// A shuffle whose groups have a width that is not a power of two up to 32.
    #[error("shuffle in groups of {width} lanes: expected a power of two up to 32")]
    ShuffleWidth {
        /// The width.
        width: u32,
    },
    /// An address that is not a multiple of the access's size.
    #[error(
        "misaligned {action} of {place}: expected a multiple of {required} bytes, found an address {excess} bytes past one"
    )]
    Misaligned {
        /// What was done.
        action: Action,
        /// Where.
        place: Place,
        /// Required alignment in bytes.
        required: u32,
        /// Bytes past the last such multiple.
        excess: u32,
    },
    /// Integer arithmetic that wrapped, or an index that shows it.
    #[error("integer overflow: {message}")]
    Overflow {
        /// What the arithmetic said.
        message: String,
    },
    /// An access to a buffer that has been freed.
    #[error("{action} of {place} after the buffer was freed")]
    UseAfterFree {
        /// What was done.
        action: Action,
        /// Where.
        place: Place,
    },
    /// A body that panicked for another reason.
    #[error("panic: {message}; device code has no way to report it")]
    Panicked {
        /// The message.
        message: String,
    },
    /// The launch breaks the kernel's contract.
    #[error("contract violated: {0}")]
    Contract(#[from] Violation),
    /// The launch exceeds the device.
    #[error("{what} of {given} on {device}: at least 1 and at most {limit}")]
    Limit {
        /// The quantity.
        what: &'static str,
        /// The device.
        device: String,
        /// What it allows.
        limit: u64,
        /// What was asked.
        given: u64,
    },
}

/// The kind of a fault, without its particulars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // one for one the variants of FaultKind, but that divergence is divergence
pub enum Diagnosis {
    OutOfBounds,
    Stray,
    Uninitialised,
    Race,
    ReadOnlyWritten,
    DivergentBarrier,
    PeerMayNotRun,
    NoSuchPeer,
    AbsentLane,
    ShuffleWidth,
    Misaligned,
    Overflow,
    UseAfterFree,
    Panicked,
    Contract,
    Limit,
}

impl FaultKind {
    /// The kind alone.
    pub fn diagnosis(&self) -> Diagnosis {
        match self {
            FaultKind::OutOfBounds { .. } => Diagnosis::OutOfBounds,
            FaultKind::Stray { .. } => Diagnosis::Stray,
            FaultKind::Uninitialised { .. } => Diagnosis::Uninitialised,
            FaultKind::Race { .. } => Diagnosis::Race,
            FaultKind::ReadOnlyWritten { .. } => Diagnosis::ReadOnlyWritten,
            FaultKind::DivergentBarrier { .. } | FaultKind::DivergentCluster { .. } => {
                Diagnosis::DivergentBarrier
            }
            FaultKind::PeerMayNotRun { .. } => Diagnosis::PeerMayNotRun,
            FaultKind::NoSuchPeer { .. } => Diagnosis::NoSuchPeer,
            FaultKind::AbsentLane { .. } => Diagnosis::AbsentLane,
            FaultKind::ShuffleWidth { .. } => Diagnosis::ShuffleWidth,
            FaultKind::Misaligned { .. } => Diagnosis::Misaligned,
            FaultKind::Overflow { .. } => Diagnosis::Overflow,
            FaultKind::UseAfterFree { .. } => Diagnosis::UseAfterFree,
            FaultKind::Panicked { .. } => Diagnosis::Panicked,
            FaultKind::Contract(_) => Diagnosis::Contract,
            FaultKind::Limit { .. } => Diagnosis::Limit,
        }
    }

    /// Whether it may be the reason why memory was read before it was written.
    pub(super) fn explains_poison(&self) -> bool {
        self.other().is_some()
    }

    /// The other side, where there is one.
    pub fn other(&self) -> Option<&Party> {
        match self {
            FaultKind::Race { other, .. } | FaultKind::ReadOnlyWritten { other, .. } => Some(other),
            _ => None,
        }
    }
}

/// A fault of a kernel: what, and by whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The kernel.
    pub kernel: Kernel,
    /// The lane and its line; none for a launch that never started.
    pub position: Option<Position>,
    /// What is wrong.
    pub kind: FaultKind,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.position {
            Some(position) => write!(f, "run {}: {position}: {}", self.kernel, self.kind),
            None => write!(f, "launch {}: {}", self.kernel, self.kind),
        }
    }
}

impl std::error::Error for Fault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.kind)
    }
}

impl Fault {
    /// The lines that it names: of the access, and of the other side where there is one.
    pub fn sites(&self) -> impl Iterator<Item = &Site> {
        let own = self.position.iter().map(|position| &position.site);
        own.chain(self.kind.other().map(|party| &party.position.site))
    }
}
