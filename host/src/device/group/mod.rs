#![doc = include_str!("README.md")]

mod alone;
#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "only GPUs have a link")
)]
mod between_devices;
mod communicator;
mod error;
#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "only GPUs have a link")
)]
mod joining;
mod launch;
#[cfg(all(feature = "cuda", target_os = "linux"))]
mod linked;
#[cfg_attr(
    not(all(feature = "cuda", target_os = "linux")),
    allow(dead_code, reason = "processes of GPUs alone have it")
)]
mod liveness;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(not(feature = "mpi"))]
#[path = "mpi_absent.rs"]
mod mpi;
#[cfg(all(feature = "cuda", target_os = "linux"))]
mod nccl;
#[cfg(not(all(feature = "cuda", target_os = "linux")))]
#[path = "nccl_absent.rs"]
mod nccl;
mod number;
#[cfg_attr(
    not(all(feature = "cuda", target_os = "linux")),
    allow(dead_code, reason = "members of GPUs alone are watched")
)]
mod peers;
mod pieces;
#[doc = include_str!("recipes.md")]
pub mod recipes {}
mod roll_call;
mod seat;
mod shares;
#[cfg(test)]
mod tests;
mod threads;
mod values;
#[cfg(all(feature = "cuda", target_os = "linux"))]
mod windows;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use bytemuck::Pod;

pub(crate) use between_devices::Summand;
pub use communicator::Communicator;
pub use error::GroupError;
pub use launch::{Launch, Launcher};
pub use number::GroupNumber;
pub use seat::Seat;
pub use shares::Shares;
pub use threads::run_threads;

use crate::parallel::locked;
use between_devices::DeviceCommunicator;
use pieces::{combined, gathered, slices_of};
use roll_call::{Call, Operation};

/// Whether a communicator was given up in this process.
#[cfg_attr(
    not(all(feature = "cuda", target_os = "linux")),
    allow(dead_code, reason = "only NCCL's are")
)]
static GIVEN_UP: AtomicBool = AtomicBool::new(false);

/// Whether a communicator was given up in this process: threads of its library may still be at it, and must not be met by what a
/// process does in good order at its end.
#[cfg_attr(not(feature = "cli"), allow(dead_code, reason = "programs end"))]
pub(crate) fn is_given_up() -> bool {
    GIVEN_UP.load(Ordering::Relaxed)
}

/// How long a member waits for the others unless told otherwise: as long as the slowest may take to read its data.
const LIMIT: Duration = Duration::from_secs(600);

/// Bytes of all members up to which a sum is one gathering, after which each member adds everything: one message less.
const GATHERED: usize = 64 << 10;

/// A member of a group, and its means to talk to the others. Clones are the same member.
#[derive(Clone, Debug)]
pub struct Group(Arc<Member>);

#[derive(Debug)]
struct Member {
    engine: Box<dyn Communicator>,
    state: Mutex<State>,
    /// Between the devices of members that have joined, if they have one.
    link: OnceLock<Option<Box<dyn DeviceCommunicator>>>,
}

#[derive(Debug)]
struct State {
    /// Collectives that were begun.
    calls: u64,
    limit: Duration,
    /// What ended the group.
    broken: Option<GroupError>,
}

impl Group {
    /// The only member of its group: all collectives return at once.
    pub fn alone() -> Group {
        Group::over(Box::new(alone::Alone))
    }

    /// The processes that `mpirun` or `srun` started, by the MPI library that is installed, opened at run time: the one
    /// that the variable `WARPFUSE_MPI` names, or Open MPI, or MPICH and what shares its binary interface (Intel's, Cray's).
    ///
    /// MPI is initialised unless somebody else in the process did, and ended with the last clone of the group.
    ///
    /// # Errors
    /// [`GroupError::Library`] without such a library, [`GroupError::Engine`] when MPI fails.
    pub fn mpi() -> Result<Group, GroupError> {
        Ok(Group::over(Box::new(mpi::Mpi::open()?)))
    }

    /// The group that the environment tells of: alone, or the processes of `mpirun` or `srun`. The limit is that of the
    /// variable `WARPFUSE_GROUP_LIMIT`, in seconds, if there is one. With `WARPFUSE_GROUP=alone` a process is alone whoever
    /// started it, such as one that each of several processes starts for itself.
    ///
    /// # Errors
    /// As [`Group::mpi`]; [`GroupError::Environment`], [`GroupError::Launcher`] and [`GroupError::Size`] when the
    /// environment is not what such a launcher makes.
    pub fn from_environment() -> Result<Group, GroupError> {
        let limit = launch::limit(|name| std::env::var(name).ok())?;
        let group = match Launch::from_environment()? {
            Some(launch) if launch.size > 1 => Group::of(&launch)?,
            _ => Group::alone(),
        };
        if let Some(limit) = limit {
            group.set_limit(limit);
        }
        Ok(group)
    }

    fn of(launch: &Launch) -> Result<Group, GroupError> {
        if launch.launcher == Launcher::Torchrun {
            return joining::of_torchrun(launch);
        }
        let launcher = launch.launcher.name();
        let group = Group::mpi()?;
        if group.size() == launch.size {
            return Ok(group);
        }
        Err(GroupError::Size {
            launcher,
            library: group.engine(),
            expected: launch.size,
            found: group.size(),
        })
    }

    /// A group over an engine of one's own.
    pub fn over(engine: Box<dyn Communicator>) -> Group {
        let state = State {
            calls: 0,
            limit: LIMIT,
            broken: None,
        };
        Group(Arc::new(Member {
            engine,
            state: Mutex::new(state),
            link: OnceLock::new(),
        }))
    }

    /// The engine's name.
    pub fn engine(&self) -> String {
        self.0.engine.name()
    }

    /// What joins the devices of the members; `None` where numbers on them go by way of the host.
    pub fn link_name(&self) -> Option<String> {
        self.0.link.get()?.as_ref().map(|link| link.name())
    }

    /// This member's number, below [`Group::size`].
    pub fn rank(&self) -> usize {
        self.0.engine.rank()
    }

    /// How many members there are.
    pub fn size(&self) -> usize {
        self.0.engine.size()
    }

    /// Whether there is no other member.
    pub fn is_alone(&self) -> bool {
        self.size() == 1
    }

    /// Whether this is rank 0, which prints and writes files.
    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// How long this member waits for the others in one collective; 10 minutes at first.
    pub fn set_limit(&self, limit: Duration) {
        locked(&self.0.state).limit = limit;
        if let Some(Some(link)) = self.0.link.get() {
            link.set_limit(limit);
        }
    }

    /// Waits for all members.
    ///
    /// # Errors
    /// [`GroupError`], as every collective: see the [module](self).
    pub fn barrier(&self) -> Result<(), GroupError> {
        self.collective::<u8, ()>(Operation::Barrier, (0, 0), |_, _| Ok(()))
    }

    /// Replaces each number by its sum over the members, floats in the order of the ranks. Integers wrap.
    ///
    /// # Errors
    /// [`GroupError::Differs`] unless all members have as many numbers of one type; see the [module](self).
    pub fn sum<T: GroupNumber>(&self, values: &mut [T]) -> Result<(), GroupError> {
        self.reduce(Operation::Sum, values, T::plus)
    }

    /// Replaces each number by the greatest of the members'; NaN where a float is NaN anywhere.
    ///
    /// # Errors
    /// As [`Group::sum`].
    pub fn max<T: GroupNumber>(&self, values: &mut [T]) -> Result<(), GroupError> {
        self.reduce(Operation::Max, values, T::greater)
    }

    /// Replaces the values by those of rank `from`.
    ///
    /// # Errors
    /// As [`Group::sum`].
    ///
    /// # Panics
    /// When there is no such rank.
    pub fn broadcast<T: Pod>(&self, from: usize, values: &mut [T]) -> Result<(), GroupError> {
        assert!(from < self.size(), "a broadcast is of one of the members");
        let len = values.len();
        self.collective::<T, ()>(
            Operation::Broadcast,
            (len, from as u64),
            |engine, (_, until)| {
                let mut lengths = vec![0; engine.size()];
                lengths[from] = size_of_val(values);
                let own = match engine.rank() == from {
                    true => values.to_vec(),
                    false => Vec::new(),
                };
                let all = bytemuck::cast_slice_mut(values);
                engine.all_gather(bytemuck::cast_slice(&own), &lengths, all, until)
            },
        )
    }

    /// The values of all members, one after the other in the order of the ranks. Each may have as many as it likes.
    ///
    /// # Errors
    /// See the [module](self).
    pub fn all_gather<T: Pod>(&self, own: &[T]) -> Result<Vec<T>, GroupError> {
        let len = own.len();
        self.collective::<T, _>(
            Operation::AllGather,
            (len, 0),
            |engine, (lengths, until)| {
                let mut all = vec![T::zeroed(); lengths.iter().sum()];
                let bytes: Vec<usize> = lengths.iter().map(|len| len * size_of::<T>()).collect();
                let to = bytemuck::cast_slice_mut(&mut all);
                engine.all_gather(bytemuck::cast_slice(own), &bytes, to, until)?;
                Ok(all)
            },
        )
    }

    /// Has every member in turn change `values`, of which there are `parts` slices of one length: rank 0 those that it
    /// has, each other one what the member before it left. At the end the last member has the result, which it may
    /// [broadcast](Group::broadcast), and the others have what they passed on. Members work at the same time, on different
    /// slices.
    ///
    /// For sums whose order is that of the rows.
    ///
    /// # Errors
    /// As [`Group::sum`].
    ///
    /// # Panics
    /// When the values are not as many slices of one length.
    pub fn carry<T: Pod>(
        &self,
        (values, parts): (&mut [T], usize),
        mut work: impl FnMut(usize, &mut [T]),
    ) -> Result<(), GroupError> {
        let whole = parts > 0 && values.len().is_multiple_of(parts);
        assert!(whole, "values are slices of one length");
        let (len, own) = (values.len(), (values.len() / parts).max(1));
        let call = (len, parts as u64);
        self.collective::<T, ()>(Operation::Carry, call, |engine, (_, until)| {
            let (rank, last) = (engine.rank(), engine.size() - 1);
            for (part, values) in values.chunks_mut(own).enumerate() {
                if rank > 0 {
                    engine.receive(rank - 1, bytemuck::cast_slice_mut(values), until)?;
                }
                work(part, values);
                if rank < last {
                    engine.send(rank + 1, bytemuck::cast_slice(values), until)?;
                }
            }
            Ok(())
        })
    }

    /// Tells the others, in their next collective, why this member cannot go on: they get [`GroupError::Failed`] with its
    /// rank and this text. Nothing can be done with the group afterwards. Returns what has ended the group: this, or what
    /// another member said at the same time or before; `None` of one that is alone.
    pub fn fail(&self, message: &str) -> Option<GroupError> {
        let mut state = locked(&self.0.state);
        if self.is_alone() || state.broken.is_some() {
            return state.broken.clone();
        }
        if let Some(Some(link)) = self.0.link.get() {
            // The others may wait for their devices, where a roll call does not reach them.
            let first = link.check().err().or(self.0.engine.departed());
            let error = first.unwrap_or_else(|| {
                self.0.engine.report(message);
                let (rank, message) = (self.rank(), message.to_owned());
                GroupError::Failed { rank, message }
            });
            link.end(error.clone());
            state.broken = Some(error);
            return state.broken.clone();
        }
        state.calls += 1;
        let call = Call {
            number: state.calls,
            operation: Operation::Barrier,
            len: 0,
            size: 0,
            detail: 0,
            failure: Some(message),
        };
        let told = roll_call::call_roll(&*self.0.engine, &call, state.limit);
        if told.as_ref().is_err_and(|error| !error.is_known_to_all()) {
            self.0.engine.abandon();
        }
        state.broken = told.err();
        state.broken.clone()
    }

    /// Lets all members go on where none of them has failed: a barrier that takes what each has done before it.
    ///
    /// ```
    /// use warpfuse::device::group::{GroupError, run_threads};
    /// let read = |rank| if rank == 1 { Err("no such file") } else { Ok(rank) };
    /// let agreed = run_threads(2, |group| group.agree(read(group.rank())));
    /// let failed = GroupError::Failed { rank: 1, message: "no such file".to_owned() };
    /// assert_eq!(agreed, [Err(None), Err(Some("no such file"))].map(|own| own.map_err(|own| own.ok_or(failed.clone()))));
    /// ```
    ///
    /// # Errors
    /// `Ok` of this member's own error, or `Err` of what happened to another one.
    pub fn agree<R, E: std::fmt::Display>(
        &self,
        own: Result<R, E>,
    ) -> Result<R, Result<E, GroupError>> {
        match own {
            Ok(result) => self.barrier().map(|()| result).map_err(Err),
            Err(error) => {
                self.fail(&error.to_string());
                Err(Ok(error))
            }
        }
    }

    fn reduce<T: GroupNumber>(
        &self,
        operation: Operation,
        values: &mut [T],
        combine: fn(T, T) -> T,
    ) -> Result<(), GroupError> {
        let detail = T::NAME
            .bytes()
            .fold(0, |all, byte| all << 8 | u64::from(byte));
        let len = values.len();
        self.collective::<T, ()>(operation, (len, detail), |engine, (_, until)| {
            let size = engine.size();
            if size == 1 || values.is_empty() {
                return Ok(());
            }
            if size_of_val(values) * size <= GATHERED {
                let all = gathered(engine, (values, &vec![len; size]), until)?;
                combined(&all, values, combine);
                return Ok(());
            }
            let shares: Vec<usize> = (0..size)
                .map(|rank| len * (rank + 1) / size - len * rank / size)
                .collect();
            let own = shares[engine.rank()];
            let mut parts = vec![T::zeroed(); own * size];
            let bytes = |lengths: &[usize]| -> Vec<usize> {
                lengths.iter().map(|len| len * size_of::<T>()).collect()
            };
            engine.exchange(
                (bytemuck::cast_slice(values), &bytes(&shares)),
                (
                    bytemuck::cast_slice_mut(&mut parts),
                    &bytes(&vec![own; size]),
                ),
                until,
            )?;
            let mut sums = vec![T::zeroed(); own];
            combined(&parts, &mut sums, combine);
            let all = gathered(engine, (&sums, &shares), until)?;
            values.copy_from_slice(&all);
            Ok(())
        })
    }

    /// Calls the roll, and has `run` do the rest. The first error ends the group.
    fn collective<T: Pod, R>(
        &self,
        operation: Operation,
        (len, detail): (usize, u64),
        run: impl FnOnce(&dyn Communicator, (Vec<usize>, Instant)) -> Result<R, GroupError>,
    ) -> Result<R, GroupError> {
        let engine = &*self.0.engine;
        let mut state = locked(&self.0.state);
        if let Some(error) = &state.broken {
            return Err(error.clone());
        }
        if engine.size() == 1 {
            return run(engine, (vec![len], Instant::now()));
        }
        if let Some(Some(link)) = self.0.link.get()
            && let Err(error) = link.check()
        {
            state.broken = Some(error.clone());
            return Err(error);
        }
        state.calls += 1;
        let call = Call {
            number: state.calls,
            operation,
            len,
            size: size_of::<T>(),
            detail,
            failure: None,
        };
        let done = roll_call::call_roll(engine, &call, state.limit)
            .and_then(|lengths| run(engine, (lengths, Instant::now() + state.limit)))
            .map_err(|error| timed(error, operation, state.limit));
        if let Err(error) = &done {
            state.broken = Some(error.clone());
            if !error.is_known_to_all() {
                engine.abandon();
            }
            if let Some(Some(link)) = self.0.link.get() {
                link.end(error.clone());
            }
        }
        done
    }
}

/// What an engine says that waited too long; [`timed`] adds where.
fn missing(rank: usize) -> GroupError {
    GroupError::Missing {
        ranks: vec![rank],
        operation: "",
        seconds: 0,
    }
}

fn timed(error: GroupError, operation: Operation, limit: Duration) -> GroupError {
    match error {
        GroupError::Missing {
            ranks,
            operation: "",
            ..
        } => GroupError::Missing {
            ranks,
            operation: operation.name(),
            seconds: limit.as_secs(),
        },
        other => other,
    }
}
