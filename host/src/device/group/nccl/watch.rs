//! What has become of work that was submitted.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use super::library::{Comm, Library};
use super::{Waiting, failed};
use crate::device::DeviceError;
use crate::device::cuda::{CudaDevice, Mark};
use crate::device::group::GroupError;
use crate::device::group::peers::{Departed, End};
use crate::parallel::locked;
use crate::process::Process;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(20);
/// How long what a member that has ended submitted may take to arrive, or the word that it has ended.
const GRACE: Duration = Duration::from_millis(200);
/// Tries before a thread gives its processor to others.
const SPINS: u32 = 1_000;

/// A communicator and the work that was submitted to it.
pub(super) struct Watched {
    library: &'static Library,
    rank: usize,
    size: usize,
    /// None once it has ended.
    comm: Mutex<Option<Handle>>,
    mark: Mark,
    device: CudaDevice,
    state: Mutex<State>,
    departed: Departed,
    /// What frees kernels of others than NCCL.
    at_the_end: OnceLock<End>,
    over: (Mutex<bool>, Condvar),
}

pub(super) struct Handle(pub(super) Comm);

// SAFETY: NCCL's communicators may be used from any thread, one at a time, which the mutex around them sees to.
unsafe impl Send for Handle {}

struct State {
    limit: Duration,
    /// Until when what was submitted last has to end, while it has not.
    pending: Option<Instant>,
    /// Whether NCCL has yet to hand that to the stream: it connects members on their first way to each other, and tries for ever
    /// where one is no more.
    is_under_way: bool,
    /// Whether something was begun in another stream than the device's, which is yet to wait for it.
    is_beside: bool,
    /// Whether kernels of NCCL may wait for others on the device. Those of others have an end of their own.
    has_kernels: bool,
    /// Whether the mark is behind all of it.
    is_marked: bool,
    /// Since when a member is known to have ended, while something is pending.
    departed: Option<(Instant, GroupError)>,
    broken: Option<GroupError>,
    /// Members that are processes of this machine.
    others: Vec<(usize, Process)>,
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Watched({} of {})", self.rank, self.size)
    }
}

impl Watched {
    pub(super) fn new(
        library: &'static Library,
        comm: Comm,
        device: &CudaDevice,
        (rank, size): (usize, usize),
        departed: Departed,
    ) -> Result<Watched, GroupError> {
        let state = State {
            limit: super::super::LIMIT,
            pending: None,
            is_under_way: false,
            is_beside: false,
            has_kernels: false,
            is_marked: true,
            departed: None,
            broken: None,
            others: Vec::new(),
        };
        Ok(Watched {
            library,
            rank,
            size,
            comm: Mutex::new(Some(Handle(comm))),
            mark: Mark::new(device).map_err(failed)?,
            device: device.clone(),
            state: Mutex::new(state),
            departed,
            at_the_end: OnceLock::new(),
            over: (Mutex::new(false), Condvar::new()),
        })
    }

    pub(super) fn set_limit(&self, limit: Duration) {
        locked(&self.state).limit = limit;
    }

    pub(super) fn know(&self, others: Vec<(usize, Process)>) {
        locked(&self.state).others = others;
    }

    /// Has `end` be called when the communicator is ended before its time.
    pub(super) fn at_the_end(&self, end: End) {
        // There is one at most.
        let _ = self.at_the_end.set(end);
    }

    /// Watches work that others than NCCL submit to the stream.
    pub(super) fn beside(
        &self,
        work: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<(), GroupError> {
        self.check()?;
        self.ended_by(work().map_err(failed))?;
        let mut state = locked(&self.state);
        state.pending = Some(Instant::now() + state.limit);
        // The next look marks it: a mark for each costs as much as a launch, and is in the way of the next kernel.
        state.is_marked = false;
        Ok(())
    }

    fn pend(&self) -> Result<(), GroupError> {
        self.mark.set().map_err(failed)?;
        let mut state = locked(&self.state);
        state.pending = Some(Instant::now() + state.limit);
        state.is_under_way = false;
        state.is_beside = false;
        state.departed = None;
        state.has_kernels = true;
        state.is_marked = true;
        Ok(())
    }

    /// Marks what others than NCCL have submitted since the last mark.
    fn mark(&self) -> Result<(), DeviceError> {
        match std::mem::replace(&mut locked(&self.state).is_marked, true) {
            true => Ok(()),
            false => self.mark.set(),
        }
    }

    /// What has gone wrong.
    pub(super) fn check(&self) -> Result<(), GroupError> {
        match &locked(&self.state).broken {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Submits work, and marks its end in the stream.
    pub(super) fn submit(
        &self,
        work: impl FnOnce(Comm) -> Result<(), GroupError>,
    ) -> Result<(), GroupError> {
        self.hand_over(work)?;
        self.pend()
    }

    /// Submits work to another stream than the device's, whose end is marked once that waits for it.
    pub(super) fn submit_beside(
        &self,
        work: impl FnOnce(Comm) -> Result<(), GroupError>,
    ) -> Result<(), GroupError> {
        self.hand_over(work)?;
        let mut state = locked(&self.state);
        state.pending = Some(Instant::now() + state.limit);
        state.is_under_way = false;
        state.is_beside = true;
        state.has_kernels = true;
        Ok(())
    }

    /// Marks that the device's stream waits for what was [submitted beside it](Watched::submit_beside).
    pub(super) fn joined(&self) -> Result<(), GroupError> {
        self.ended_by(self.pend())?;
        self.check()
    }

    /// Gives NCCL work, and waits until it is in its stream.
    fn hand_over(
        &self,
        work: impl FnOnce(Comm) -> Result<(), GroupError>,
    ) -> Result<(), GroupError> {
        self.check()?;
        let begun = match &*locked(&self.comm) {
            Some(comm) => work(comm.0),
            None => Ok(()),
        };
        self.ended_by(begun.map_err(|error| self.named(error)))?;
        let mut tries = 0_u32;
        while !self.is_submitted()? {
            tries += 1;
            if tries == SPINS {
                self.is_under_way();
            }
            if tries > SPINS {
                thread::yield_now();
            }
        }
        Ok(())
    }

    /// Has the watch see to what NCCL does not hand to the stream at once.
    fn is_under_way(&self) {
        let mut state = locked(&self.state);
        state.pending = Some(Instant::now() + state.limit);
        state.is_under_way = true;
    }

    /// Whether NCCL has handed everything to the stream.
    fn is_submitted(&self) -> Result<bool, GroupError> {
        let state = match &*locked(&self.comm) {
            Some(comm) => self.library.state(comm.0),
            None => Ok(true),
        };
        let submitted = self.ended_by(state.map_err(|error| self.named(error)))?;
        self.check().map(|()| submitted)
    }

    /// Whether everything that was submitted has ended.
    pub(super) fn has_passed(&self) -> Result<bool, GroupError> {
        self.check()?;
        let passed = self
            .mark()
            .and_then(|()| self.mark.has_passed())
            .map_err(failed);
        let passed = self.ended_by(passed)?;
        // It may have ended because it was ended.
        self.check().map(|()| passed)
    }

    fn ended_by<R>(&self, result: Result<R, GroupError>) -> Result<R, GroupError> {
        if let Err(error) = &result {
            self.end(error.clone());
        }
        result
    }

    /// Ends the communicator, for this reason unless there is one already.
    pub(super) fn end(&self, error: GroupError) {
        // Before anybody hears of it, who may end the process: what libraries do at its end waits for kernels that wait.
        super::super::GIVEN_UP.store(true, Ordering::Relaxed);
        // Known before the kernels end: whoever waits for them looks afterwards.
        locked(&self.state).broken.get_or_insert(error);
        if let Some(comm) = self.take_comm() {
            self.give_up(comm);
        }
    }

    /// Frees kernels that wait for others, and gives up a communicator that was [taken](Watched::take).
    pub(super) fn give_up(&self, comm: Comm) {
        if let Some(end) = self.at_the_end.get() {
            end();
        }
        super::give_up(self.library, &self.device, comm, self.waiting());
    }

    /// Whether kernels wait for others.
    fn waiting(&self) -> Waiting {
        let is_over = || self.mark().and_then(|()| self.mark.has_passed()) == Ok(true);
        let (has_kernels, is_beside) = {
            let state = locked(&self.state);
            (state.has_kernels, state.is_beside)
        };
        match is_beside || has_kernels && !is_over() {
            true => Waiting::Kernels,
            false => Waiting::Nothing,
        }
    }

    /// The communicator, for its orderly end.
    pub(super) fn take(&self) -> Option<Comm> {
        *locked(&self.over.0) = true;
        self.over.1.notify_all();
        self.take_comm()
    }

    fn take_comm(&self) -> Option<Comm> {
        locked(&self.comm).take().map(|comm| comm.0)
    }

    fn missing(&self, limit: Duration) -> GroupError {
        GroupError::Missing {
            ranks: (0..self.size).filter(|rank| *rank != self.rank).collect(),
            operation: "a sum on their devices",
            seconds: limit.as_secs(),
        }
    }

    /// Looks at everything once.
    fn look(&self) {
        let noticed = match &*locked(&self.comm) {
            Some(comm) => self.library.state(comm.0).err(),
            None => return,
        };
        if let Some(error) = noticed {
            return self.end(self.named(error));
        }
        let (until, is_under_way) = {
            let state = locked(&self.state);
            let Some(until) = state.pending else {
                return;
            };
            (until, state.is_under_way || state.is_beside)
        };
        if is_under_way {
            return self.expect_all(until);
        }
        match self.mark().and_then(|()| self.mark.has_passed()) {
            Ok(false) => {}
            Ok(true) => {
                let mut state = locked(&self.state);
                // Unless more was submitted meanwhile.
                if state.pending == Some(until) {
                    state.pending = None;
                    state.has_kernels = false;
                    state.departed = None;
                }
                return;
            }
            Err(error) => return self.end(failed(error)),
        }
        self.expect_all(until);
    }

    /// Ends the communicator where somebody has left for a while, or it is late.
    fn expect_all(&self, until: Instant) {
        if let Some(error) = self.who_left() {
            let since = locked(&self.state)
                .departed
                .get_or_insert((Instant::now(), error))
                .clone();
            if since.0.elapsed() > GRACE {
                self.end(since.1);
            }
        } else if Instant::now() > until {
            let limit = locked(&self.state).limit;
            self.end(self.missing(limit));
        }
    }

    /// What NCCL has noticed, or who is behind it.
    fn named(&self, error: GroupError) -> GroupError {
        named(error, &|| self.who_left())
    }

    /// A member that is known to have failed or ended.
    fn who_left(&self) -> Option<GroupError> {
        let gone = {
            let state = locked(&self.state);
            let mut others = state.others.iter();
            others
                .find(|(_, process)| process.has_ended())
                .map(|(rank, _)| *rank)
        };
        match gone {
            Some(rank) => Some(GroupError::Left {
                rank,
                how: crate::device::group::peers::PROCESS_ENDED,
            }),
            None => (self.departed)(),
        }
    }
}

/// An error of NCCL, which does not say whose end it is, or that end as soon as it is heard of.
pub(super) fn named(error: GroupError, departed: &dyn Fn() -> Option<GroupError>) -> GroupError {
    let until = Instant::now() + GRACE;
    loop {
        match departed() {
            Some(known) => return known,
            None if Instant::now() >= until => return error,
            None => thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// A thread that looks at a communicator's work until it is dropped.
#[derive(Debug)]
pub(super) struct Watch(Arc<Watched>);

impl Watch {
    pub(super) fn begin(watched: Arc<Watched>) -> Result<Watch, GroupError> {
        let looked_at = watched.clone();
        let thread = thread::Builder::new().name("warpfuse-nccl".to_owned());
        let begun = thread.spawn(move || {
            let (over, changed) = &looked_at.over;
            let mut ended = locked(over);
            while !*ended {
                let waited = changed.wait_timeout(ended, PAUSE);
                ended = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
                if *ended {
                    break;
                }
                drop(ended);
                looked_at.look();
                ended = locked(over);
            }
        });
        begun.map_err(|error| GroupError::Engine {
            operation: "a thread that watches NCCL",
            message: error.to_string(),
        })?;
        Ok(Watch(watched))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        *locked(&self.0.over.0) = true;
        self.0.over.1.notify_all();
    }
}
