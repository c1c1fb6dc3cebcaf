//! What can go wrong between the members of a group.

use thiserror::Error;

/// Why the members of a group do not go on together.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GroupError {
    /// A member reported that it failed.
    #[error("rank {rank} failed: {message}")]
    Failed {
        /// Who.
        rank: usize,
        /// What it said.
        message: String,
    },
    /// A member ended without a word.
    #[error("rank {rank} left the group ({how}); its own output says why")]
    Left {
        /// Who.
        rank: usize,
        /// By returning, or by a panic.
        how: &'static str,
    },
    /// Members did not come within the limit.
    #[error(
        "{} did not come to {operation} within {seconds} s: dead, stuck, or slower than the limit \
         (WARPFUSE_GROUP_LIMIT, in seconds)",
        named(.ranks)
    )]
    Missing {
        /// Who, in ascending order.
        ranks: Vec<usize>,
        /// Where the others waited.
        operation: &'static str,
        /// The limit.
        seconds: u64,
    },
    /// A member does something else than rank 0.
    #[error("rank {rank} came to {found}, rank 0 to {expected}; all members have to do the same")]
    Differs {
        /// Who.
        rank: usize,
        /// What rank 0 does.
        expected: String,
        /// What that member does.
        found: String,
    },
    /// The engine that moves bytes failed.
    #[error("{operation} failed: {message}")]
    Engine {
        /// The engine's function.
        operation: &'static str,
        /// What it said.
        message: String,
    },
    /// The engine's library is missing, or is none that is known.
    #[error(
        "cannot open an MPI library ({message}); install Open MPI or MPICH, or name the file in WARPFUSE_MPI"
    )]
    Library {
        /// What was tried.
        message: String,
    },
    /// NCCL is missing, or is none that is known.
    #[error(
        "cannot open NCCL, by which GPUs add up what they compute ({message}); install it (pip install nvidia-nccl-cu13), \
         or name the file in WARPFUSE_NCCL; one GPU needs none"
    )]
    Nccl {
        /// What was tried.
        message: String,
    },
    /// Members whose devices are of different kinds.
    #[error("rank {rank} has {found}, rank 0 {expected}; all members need devices of one kind")]
    Devices {
        /// Who.
        rank: usize,
        /// What rank 0 has.
        expected: &'static str,
        /// What that member has.
        found: &'static str,
    },
    /// The environment of a launcher that makes no sense.
    #[error(
        "{variable} is {found:?}, but {expected}; start the processes by torchrun, mpirun or srun"
    )]
    Environment {
        /// The variable.
        variable: &'static str,
        /// What it must be.
        expected: &'static str,
        /// What it is.
        found: String,
    },
    /// Processes that were started by what no engine for the CPU can use.
    #[error(
        "{launcher} started {size} processes, which talk through NCCL and need a GPU each, but {found}; \
         processes on CPUs talk through MPI: start them by mpirun or srun"
    )]
    Launcher {
        /// Who started them.
        launcher: &'static str,
        /// How many.
        size: usize,
        /// What is wrong with the GPUs.
        found: String,
    },
    /// MPI does not see the processes that the launcher started.
    #[error(
        "{launcher} started {expected} processes, but {library} sees {found}: use the launcher of that library \
         (with Slurm srun --mpi=pmix), or name another library in WARPFUSE_MPI"
    )]
    Size {
        /// Who started them.
        launcher: &'static str,
        /// The library.
        library: String,
        /// How many were started.
        expected: usize,
        /// How many MPI sees.
        found: usize,
    },
}

impl GroupError {
    /// Whether every member has it or will, so that none waits for another one.
    pub(super) fn is_known_to_all(&self) -> bool {
        matches!(self, GroupError::Failed { .. } | GroupError::Differs { .. })
    }
}

fn named(ranks: &[usize]) -> String {
    let numbers: Vec<String> = ranks.iter().map(ToString::to_string).collect();
    match numbers.len() {
        1 => format!("rank {}", numbers[0]),
        _ => format!("ranks {}", numbers.join(", ")),
    }
}
