//! A warp of lanes: turns, shuffles, votes, barriers.

use std::panic::{AssertUnwindSafe, Location, catch_unwind};

use corosensei::{Coroutine, CoroutineResult, Yielder};
use gpu_kernels::cta::WARP;

use super::block::{Block, Scope, Slot, Waits};
use super::collective::{Collective, Mode};
use super::fault::{Fault, FaultKind, Site};
use super::options::LaneOrder;
use super::panics::Raised;
use super::stack::Room;
use super::thread::{Pause, Thread};

/// What every thread of a launch executes.
pub(super) type Body<'l> = &'l (dyn Fn(&Thread<'_>) + Sync);

/// How a body came to its end.
enum End {
    Returned,
    Panicked,
}

/// What a body runs in.
type Lane<'b> = Coroutine<(), Pause, End, Room<'b>>;

fn lane<'b>(block: &'b Block<'b>, number: u32, room: Room<'b>, body: Body<'b>) -> Lane<'b> {
    let run = move |yielder: &Yielder<(), Pause>, ()| {
        let thread = Thread {
            block,
            yielder,
            number,
        };
        match catch_unwind(AssertUnwindSafe(|| body(&thread))) {
            Ok(()) => End::Returned,
            Err(_) => End::Panicked,
        }
    };
    // SAFETY: the closure borrows the block and the body for 'b, the room is lent for 'b. The lane is not
    // forgotten, and being dropped it ends the coroutine; it cannot outlive 'b.
    unsafe { Coroutine::with_stack_unchecked(room, run) }
}

/// Up to 32 lanes of a block, and sets of them, one bit each.
pub(super) struct Warp<'b> {
    block: &'b Block<'b>,
    /// Number of its first thread in the block.
    first: u32,
    lanes: Vec<Lane<'b>>,
    /// Lanes that can go on.
    ready: u32,
    /// Lanes at a shuffle, vote or barrier of the warp.
    meeting: u32,
    /// Lanes whose body has ended.
    ended: u32,
    /// Lanes at a barrier that is the same for all of them.
    at_barrier: u32,
    /// That barrier, if any lane is at one.
    barrier: Option<(&'static Location<'static>, Scope)>,
}

/// Where all lanes of a warp, of a block, or of a cluster are.
#[derive(Debug, Clone, Copy)]
pub(super) enum Gathered {
    /// At the end.
    AtEnd,
    /// At the same barrier.
    AtBarrier(&'static Location<'static>, Scope),
    /// Not all in one place.
    Nowhere,
}

impl Gathered {
    /// Whether both are the same place. Lines are compared by address, which is faster: all lanes of a
    /// launch run the same code, in which a call has one.
    pub fn is(self, other: Gathered) -> bool {
        match (self, other) {
            (Gathered::AtEnd, Gathered::AtEnd) => true,
            (Gathered::AtBarrier(a, _), Gathered::AtBarrier(b, _)) => std::ptr::eq(a, b),
            _ => false,
        }
    }
}

impl<'b> Warp<'b> {
    pub fn new(
        block: &'b Block<'b>,
        first: u32,
        rooms: impl Iterator<Item = Room<'b>>,
        body: Body<'b>,
    ) -> Warp<'b> {
        let lanes: Vec<_> = (first..)
            .zip(rooms)
            .map(|(thread, room)| lane(block, thread, room, body))
            .collect();
        Warp {
            block,
            first,
            ready: u32::MAX >> (WARP as usize - lanes.len()),
            meeting: 0,
            ended: 0,
            at_barrier: 0,
            barrier: None,
            lanes,
        }
    }

    /// Whether a lane can go on.
    pub fn is_ready(&self) -> bool {
        self.ready != 0
    }

    /// Where all lanes are.
    pub fn gathered(&self) -> Gathered {
        let all = u32::MAX >> (WARP as usize - self.lanes.len());
        match self.barrier {
            Some((site, scope)) if self.at_barrier == all => Gathered::AtBarrier(site, scope),
            _ if self.ended == all => Gathered::AtEnd,
            _ => Gathered::Nowhere,
        }
    }

    fn slot(&self, lane: u32) -> &'b Slot {
        &self.block.slots[(self.first + lane) as usize]
    }

    /// Lets every lane that can go on do so once, then lets meetings take place.
    pub fn turn(&mut self) -> Result<(), Box<Fault>> {
        let order = match self.block.launch.options.lanes {
            LaneOrder::InOrder => 0,
            LaneOrder::Permuted => self.block.random(),
        };
        // An odd factor and any offset permute the numbers modulo 32; a drawn 0 is the natural order.
        let (factor, offset) = (order as u32 | 1, (order >> 32) as u32);
        let ready = self.ready;
        for i in 0..WARP {
            let lane = i.wrapping_mul(factor).wrapping_add(offset) % WARP;
            if ready >> lane & 1 != 0 {
                self.resume(lane)?;
            }
        }
        if self.ready == 0 {
            self.hold_meetings()?;
            if let Some(tally) = self.block.tally {
                tally.borrow_mut().close(self.first / WARP);
            }
        }
        Ok(())
    }

    /// Runs a lane up to where it waits.
    fn resume(&mut self, lane: u32) -> Result<(), Box<Fault>> {
        let bit = 1 << lane;
        match self.lanes[lane as usize].resume(()) {
            CoroutineResult::Yield(Pause::Interrupted) => return Ok(()),
            CoroutineResult::Yield(Pause::AtBarrier) => self.arrive(lane),
            CoroutineResult::Yield(Pause::AtMeeting) => self.meeting |= bit,
            CoroutineResult::Yield(Pause::Failed) => {
                let fault = self.block.failure.take();
                return Err(fault.expect("a lane leaves its fault before it pauses"));
            }
            CoroutineResult::Return(End::Returned) => {
                self.ended |= bit;
                self.slot(lane).waits.set(Waits::ForNothing);
            }
            CoroutineResult::Return(End::Panicked) => {
                return Err(self.panicked(self.first + lane));
            }
        }
        self.ready &= !bit;
        Ok(())
    }

    /// Notes that a lane is at a barrier.
    fn arrive(&mut self, lane: u32) {
        if let Waits::AtBarrier(site, scope) = self.slot(lane).waits.get()
            && std::ptr::eq(self.barrier.get_or_insert((site, scope)).0, site)
        {
            self.at_barrier |= 1 << lane;
        }
    }

    fn panicked(&self, thread: u32) -> Box<Fault> {
        let raised = Raised::take().unwrap_or_else(|| Raised {
            message: "a payload that is not text".to_owned(),
            site: Site {
                file: "unknown".to_owned(),
                line: 0,
                column: 0,
            },
        });
        let site = raised.site.clone();
        let kind: FaultKind = raised.into_kind();
        let launch = self.block.launch;
        Box::new(launch.fault(self.block.number, thread, site, kind))
    }

    /// Completes the shuffles, votes and barriers whose members are all there.
    fn hold_meetings(&mut self) -> Result<(), Box<Fault>> {
        let mut candidates = self.meeting;
        while candidates != 0 {
            let first = candidates.trailing_zeros();
            match self.complete(first) {
                Some(members) => {
                    self.meeting &= !members;
                    self.ready |= members;
                    candidates &= !members;
                    self.count_barrier(first)?;
                }
                None => candidates &= candidates - 1,
            }
        }
        Ok(())
    }

    /// Counts a barrier of the warp, if that is where lane `first` waited.
    fn count_barrier(&self, first: u32) -> Result<(), Box<Fault>> {
        match self.meeting_of(first) {
            Some(meeting) if meeting.mode == Mode::Barrier => {
                let thread = self.first + first;
                self.block.count_warp_barrier(thread, meeting.site)
            }
            _ => Ok(()),
        }
    }

    /// The members of the meeting that lane `first` waits for, if they are all there; each has its reply.
    fn complete(&mut self, first: u32) -> Option<u32> {
        let meeting = self.meeting_of(first)?;
        if meeting.members & !self.meeting != 0 {
            return None;
        }
        let mut bits = [0; WARP as usize];
        let mut votes = 0;
        for lane in lanes_of(meeting.members) {
            let part = self
                .meeting_of(lane)
                .filter(|part| part.matches(&meeting))?;
            bits[lane as usize] = part.bits;
            votes |= (part.bits as u32 & 1) << lane;
        }
        for lane in lanes_of(meeting.members) {
            let part = self.meeting_of(lane)?;
            self.slot(lane).reply.set(match part.mode {
                Mode::Ballot => u64::from(votes),
                _ => bits[part.source as usize],
            });
        }
        Some(meeting.members)
    }

    fn meeting_of(&self, lane: u32) -> Option<Collective> {
        match self.slot(lane).waits.get() {
            Waits::AtMeeting(collective) => Some(collective),
            _ => None,
        }
    }

    /// Lets all lanes pass the barrier at which they wait.
    pub fn pass_barrier(&mut self) {
        self.ready = std::mem::take(&mut self.at_barrier);
        self.barrier = None;
    }
}

/// The lanes of a set, ascending.
fn lanes_of(mut set: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lane = (set != 0).then(|| set.trailing_zeros())?;
        set &= set - 1;
        Some(lane)
    })
}
