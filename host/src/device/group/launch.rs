//! What launchers tell the processes that they start: the only place where their variables are read.

use std::time::Duration;

use super::GroupError;

/// Who starts processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launcher {
    /// Open MPI's `mpirun`.
    OpenMpi,
    /// `mpirun` of MPICH, Intel MPI and others with a process manager of the PMI kind.
    Pmi,
    /// Slurm's `srun`.
    Slurm,
    /// PyTorch's `torchrun`.
    Torchrun,
}

impl Launcher {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Launcher::OpenMpi => "Open MPI's mpirun",
            Launcher::Pmi => "mpirun",
            Launcher::Slurm => "srun",
            Launcher::Torchrun => "torchrun",
        }
    }
}

/// Which process of how many this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// Who started it.
    pub launcher: Launcher,
    /// Its number.
    pub rank: usize,
    /// How many there are.
    pub size: usize,
    /// Its number among those of its machine, such as to choose a GPU by.
    pub local_rank: Option<usize>,
}

/// The variables of a launcher: rank, number of processes, number on this machine.
struct Variables {
    launcher: Launcher,
    rank: &'static str,
    size: &'static str,
    local_rank: &'static str,
    /// One more that has to be there.
    also: Option<&'static str>,
}

/// In the order in which they are asked: who started the process itself first. `torchrun` may be started by `srun`, and
/// `mpirun` within an allocation of Slurm. Of Slurm, the number of tasks of a step tells `srun` from a batch script.
const KNOWN: [Variables; 4] = [
    Variables {
        launcher: Launcher::Torchrun,
        rank: "RANK",
        size: "WORLD_SIZE",
        local_rank: "LOCAL_RANK",
        also: Some("MASTER_ADDR"),
    },
    Variables {
        launcher: Launcher::OpenMpi,
        rank: "OMPI_COMM_WORLD_RANK",
        size: "OMPI_COMM_WORLD_SIZE",
        local_rank: "OMPI_COMM_WORLD_LOCAL_RANK",
        also: None,
    },
    Variables {
        launcher: Launcher::Pmi,
        rank: "PMI_RANK",
        size: "PMI_SIZE",
        local_rank: "MPI_LOCALRANKID",
        also: None,
    },
    Variables {
        launcher: Launcher::Slurm,
        rank: "SLURM_PROCID",
        size: "SLURM_STEP_NUM_TASKS",
        local_rank: "SLURM_LOCALID",
        also: None,
    },
];

const RANK: &str = "it must be a number below the number of processes";
const SIZE: &str = "it must be a number of processes, at least 1";

impl Launch {
    /// What the environment says; `None` where no launcher has started this process, or it is to be alone
    /// (`WARPFUSE_GROUP=alone`).
    ///
    /// # Errors
    /// As [`Launch::read`]; and for a `WARPFUSE_GROUP` that means nothing.
    pub fn from_environment() -> Result<Option<Launch>, GroupError> {
        let read = |name: &str| std::env::var(name).ok();
        match is_alone(read)? {
            true => Ok(None),
            false => Launch::read(read),
        }
    }

    /// What `read` says of the variables of launchers; `None` where none has started this process.
    ///
    /// ```
    /// use warpfuse::device::group::{Launch, Launcher};
    /// let launch = Launch::read(|name| match name {
    ///     "OMPI_COMM_WORLD_RANK" => Some("2".to_owned()),
    ///     "OMPI_COMM_WORLD_SIZE" => Some("4".to_owned()),
    ///     _ => None,
    /// })?;
    /// let launch = launch.expect("mpirun did it");
    /// assert_eq!((launch.launcher, launch.rank, launch.size), (Launcher::OpenMpi, 2, 4));
    /// # Ok::<(), warpfuse::device::group::GroupError>(())
    /// ```
    ///
    /// # Errors
    /// [`GroupError::Environment`] for a variable that is no such number.
    pub fn read(read: impl Fn(&str) -> Option<String>) -> Result<Option<Launch>, GroupError> {
        for known in &KNOWN {
            let also = known.also.is_none_or(|name| read(name).is_some());
            if let (Some(rank), Some(size), true) = (read(known.rank), read(known.size), also) {
                return known.launch(rank, size, read(known.local_rank)).map(Some);
            }
        }
        Ok(None)
    }
}

impl Variables {
    fn launch(
        &self,
        rank: String,
        size: String,
        local: Option<String>,
    ) -> Result<Launch, GroupError> {
        let size = number(self.size, SIZE, size, |size| size > 0)?;
        let rank = number(self.rank, RANK, rank, |rank| rank < size)?;
        let local_rank = local
            .map(|local| number(self.local_rank, RANK, local, |local| local < size))
            .transpose()?;
        Ok(Launch {
            launcher: self.launcher,
            rank,
            size,
            local_rank,
        })
    }
}

fn number(
    variable: &'static str,
    expected: &'static str,
    found: String,
    fits: impl Fn(usize) -> bool,
) -> Result<usize, GroupError> {
    match found.trim().parse() {
        Ok(number) if fits(number) => Ok(number),
        _ => Err(GroupError::Environment {
            variable,
            expected,
            found,
        }),
    }
}

/// Whether the process is to be alone, whoever started it.
pub(super) fn is_alone(read: impl Fn(&str) -> Option<String>) -> Result<bool, GroupError> {
    let variable = "WARPFUSE_GROUP";
    match read(variable).as_deref() {
        None | Some("") => Ok(false),
        Some("alone") => Ok(true),
        Some(found) => Err(GroupError::Environment {
            variable,
            expected: "it must be `alone`, or not be set",
            found: found.to_owned(),
        }),
    }
}

/// How long members wait for each other, where the environment says.
pub(super) fn limit(read: impl Fn(&str) -> Option<String>) -> Result<Option<Duration>, GroupError> {
    let variable = "WARPFUSE_GROUP_LIMIT";
    let expected = "it must be a number of seconds, at least 1";
    let limit = read(variable).map(|text| number(variable, expected, text, |limit| limit > 0));
    Ok(limit
        .transpose()?
        .map(|limit| Duration::from_secs(limit as u64)))
}

/// Has NCCL meet where the launcher says: at the port after its own, which the launcher itself may hold. Rank 0 listens there.
/// What the user has set stays.
#[cfg(all(feature = "cuda", target_os = "linux"))]
pub(super) fn name_meeting_point(read: impl Fn(&str) -> Option<String>) -> Result<(), GroupError> {
    const NCCL: &str = "NCCL_COMM_ID";
    if read(NCCL).is_some() {
        return Ok(());
    }
    let place = meeting_point(read, NCCL_PORT)?;
    // SAFETY: processes join their group before they start threads that could look at the environment.
    unsafe { std::env::set_var(NCCL, place) };
    Ok(())
}

/// By how much ports are above that of the launcher: where NCCL meets, and where processes hear of each other's end.
#[cfg_attr(not(all(feature = "cuda", target_os = "linux")), allow(dead_code))]
pub(super) const NCCL_PORT: usize = 1;
#[cfg_attr(not(all(feature = "cuda", target_os = "linux")), allow(dead_code))]
pub(super) const LIVENESS_PORT: usize = 2;

/// The address, and the port `above` that of the launcher.
#[cfg_attr(not(all(feature = "cuda", target_os = "linux")), allow(dead_code))]
pub(super) fn meeting_point(
    read: impl Fn(&str) -> Option<String>,
    above: usize,
) -> Result<String, GroupError> {
    let (address, port) = ("MASTER_ADDR", "MASTER_PORT");
    let host = read(address).filter(|host| !host.is_empty());
    let host = host.ok_or(GroupError::Environment {
        variable: address,
        expected: "it must be the name of the first process's machine",
        found: String::new(),
    })?;
    let most = usize::from(u16::MAX) - LIVENESS_PORT;
    let number = number(
        port,
        "it must be a port with two more above it, 65533 at most",
        read(port).unwrap_or_default(),
        |port| port > 0 && port <= most,
    )?;
    // An address of version 6 has colons of its own.
    Ok(match host.contains(':') {
        true => format!("[{host}]:{}", number + above),
        false => format!("{host}:{}", number + above),
    })
}
