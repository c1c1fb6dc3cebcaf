//! What a lane can do: accesses to memory, each checked, and waiting for others.
//!
//! Nothing here is generic, and nothing that an access needs is inlined into the bodies of kernels: this crate may be
//! optimised while the kernels, which whoever uses them compiles, are not.
//!
//! What pauses a lane is inlined where the kernels are optimised too: a processor predicts that a function returns to where
//! the last call was made, and the last call before a lane goes on is the scheduler's. A switch takes 14 ns so, and 40
//! otherwise.

use std::cell::RefCell;
use std::panic::Location;

use corosensei::Yielder;
use gpu_kernels::cta::WARP;

use super::address::{GlobalTarget, SharedTarget, Target};
use super::block::{Block, Scope, SharedMemory, Slot, Waits};
use super::collective::Collective;
use super::fault::{Action, FaultKind, Lifetime, Party, Position, Whereabouts};
use super::heap::{LINE, WORD};
use super::shadow::{Conflict, ConflictKind, Verdict, Visit, Word};

/// Why a lane gives up its turn. It fits a register; the particulars are in the lane's [`Slot`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pause {
    /// It was interrupted and can go on.
    Interrupted,
    /// It waits for the whole block, or the whole cluster.
    AtBarrier,
    /// It waits for lanes of its warp.
    AtMeeting,
    /// It did something wrong and is not to be resumed.
    Failed,
}

/// A source line of a body.
pub(super) type Line = &'static Location<'static>;

/// What an atomic operation makes of the bits that are there.
pub(super) type Update<'u> = &'u dyn Fn(u64) -> u64;

/// One thread of an emulated launch.
///
/// It exists only while its kernel runs; bodies are generic over [`Cta`](gpu_kernels::Cta) and do not name it.
pub struct Thread<'b> {
    pub(super) block: &'b Block<'b>,
    pub(super) yielder: &'b Yielder<(), Pause>,
    pub(super) number: u32,
}

impl Thread<'_> {
    #[inline(always)]
    fn step(&self) {
        if self.block.step() {
            self.interrupt();
        }
    }

    #[cold]
    fn interrupt(&self) {
        self.yielder.suspend(Pause::Interrupted);
    }

    fn slot(&self) -> &Slot {
        &self.block.slots[self.number as usize]
    }

    pub(super) fn lane(&self) -> u32 {
        self.number % WARP
    }

    /// Lanes of this thread's warp: fewer in the last one of a block.
    pub(super) fn lanes_of_warp(&self) -> u32 {
        let first = self.number - self.lane();
        (self.block.launch.shape.block - first).min(WARP)
    }

    /// Reports a fault. The scheduler never resumes a lane that did.
    #[cold]
    pub(super) fn fail(&self, site: Line, kind: FaultKind) -> ! {
        let fault = self.block.fault(self.number, site, kind);
        self.block.failure.set(Some(Box::new(fault)));
        self.yielder.suspend(Pause::Failed);
        unreachable!("a lane that failed is not resumed")
    }

    /// Reports what an access found, if anything.
    #[inline(always)]
    fn judge<T: Target>(&self, verdict: Verdict, target: &T, action: Action, site: Line) {
        match verdict {
            Verdict::Clean => {}
            Verdict::Uninitialised => {
                let place = target.place(self.block);
                let kind = FaultKind::Uninitialised { action, place };
                let fault = self.block.fault(self.number, site, kind);
                self.block.launch.note_poison_read(fault);
            }
            Verdict::Conflict(conflict) if self.block.is_ordered_by_tickets(&conflict) => {}
            Verdict::Conflict(conflict) => {
                let kind = self.conflict(&conflict, target, action);
                self.fail(site, kind)
            }
        }
    }

    #[cold]
    fn conflict<T: Target>(&self, conflict: &Conflict, target: &T, action: Action) -> FaultKind {
        let place = target.place(self.block);
        let other = Party {
            position: Position {
                block: conflict.other.who.block(),
                thread: conflict.other.who.thread(),
                site: conflict.other.site.into(),
            },
            action: conflict.action,
        };
        match conflict.kind {
            ConflictKind::Race => FaultKind::Race {
                action,
                place,
                other,
            },
            ConflictKind::ReadOnlyWritten => FaultKind::ReadOnlyWritten {
                action,
                place,
                other,
            },
        }
    }

    /// Makes one access to global memory: `access` gets its words.
    #[inline(always)]
    fn global<R>(
        &self,
        target: &GlobalTarget,
        action: Action,
        site: Line,
        access: impl FnOnce(&mut [Word], &Visit<'_>) -> (R, Verdict),
    ) -> R {
        self.step();
        let (allocation, byte) = match target.locate(self.block.launch.table, action) {
            Ok(found) => found,
            Err(kind) => self.fail(site, kind),
        };
        if let Some(tally) = self.block.tally {
            tally.borrow_mut().global(self.number, action, site, target);
        }
        let visit = self.block.global_visit(self.number, site);
        let word = byte / WORD;
        let first = word % LINE;
        let (result, verdict) = {
            let mut line = allocation.line(word);
            access(&mut line[first..first + target.words()], &visit)
        };
        self.judge(verdict, target, action, site);
        result
    }

    /// Makes one access to the block's shared memory.
    #[inline(always)]
    fn shared<R>(
        &self,
        target: &SharedTarget,
        action: Action,
        site: Line,
        access: impl FnOnce(&mut [Word], &Visit<'_>) -> (R, Verdict),
    ) -> R {
        self.shared_of(self.block.shared, target, action, site, access)
    }

    /// Makes one access to shared memory, of this block or of another of its cluster.
    #[inline(always)]
    fn shared_of<R>(
        &self,
        memory: &RefCell<SharedMemory>,
        target: &SharedTarget,
        action: Action,
        site: Line,
        access: impl FnOnce(&mut [Word], &Visit<'_>) -> (R, Verdict),
    ) -> R {
        self.step();
        let shared_bytes = self.block.launch.shape.shared_bytes;
        let byte = match target.locate(shared_bytes, action) {
            Ok(byte) => byte,
            Err(kind) => self.fail(site, kind),
        };
        if let Some(tally) = self.block.tally {
            tally.borrow_mut().shared(self.number, action, site, target);
        }
        let (result, verdict) = {
            let mut memory = memory.borrow_mut();
            let visit = self
                .block
                .shared_visit(self.number, site, memory.generation);
            let first = byte / WORD;
            access(&mut memory.words[first..first + target.words()], &visit)
        };
        self.judge(verdict, target, action, site);
        result
    }

    /// The bits of an element in global memory: in a register, as most accesses are of one, and words that are written one by
    /// one and read together take twice as long.
    pub(super) fn load_element(&self, target: &GlobalTarget, action: Action, site: Line) -> u64 {
        self.global(target, action, site, |words, visit| {
            element(words, visit, action)
        })
    }

    /// The words of a pack in global memory.
    pub(super) fn load_words(&self, target: &GlobalTarget, action: Action, site: Line) -> [u32; 4] {
        self.global(target, action, site, |words, visit| {
            read(words, visit, action)
        })
    }

    /// Writes an element in global memory.
    pub(super) fn store_word(&self, target: &GlobalTarget, bits: u64, site: Line) {
        self.global(target, Action::Write, site, |words, visit| {
            ((), write(words, visit, bits))
        });
    }

    /// Updates an element in global memory atomically; gives what was there.
    pub(super) fn update_word(&self, target: &GlobalTarget, site: Line, update: Update<'_>) -> u64 {
        self.global(target, Action::Add, site, |words, visit| {
            combine(words, visit, update)
        })
    }

    /// Counts up to `last` and begins again; gives the count before.
    pub(super) fn draw_ticket(&self, target: &GlobalTarget, site: Line, last: u32) -> u32 {
        self.global(target, Action::Add, site, |words, visit| {
            let (drawn, verdict) = (words[0].bits, words[0].add(visit));
            words[0].bits = if drawn >= last { 0 } else { drawn + 1 };
            self.block.draw(target.byte(), visit.mark.who);
            (drawn, verdict)
        })
    }

    /// The bits of an element in shared memory.
    pub(super) fn shared_element(&self, target: &SharedTarget, site: Line) -> u64 {
        self.shared(target, Action::Read, site, |words, visit| {
            element(words, visit, Action::Read)
        })
    }

    /// Writes an element in shared memory.
    pub(super) fn store_shared(&self, target: &SharedTarget, bits: u64, site: Line) {
        self.shared(target, Action::Write, site, |words, visit| {
            ((), write(words, visit, bits))
        });
    }

    /// Writes an element in the shared memory of block `rank` of the cluster.
    pub(super) fn store_to_peer(&self, rank: u32, target: &SharedTarget, bits: u64, site: Line) {
        let action = Action::Write;
        let memory = self.peer(rank, target, action, site);
        self.shared_of(memory, target, action, site, |words, visit| {
            ((), write(words, visit, bits))
        });
    }

    /// Updates an element in the shared memory of block `rank` of the cluster atomically; gives what was there.
    pub(super) fn update_of_peer(
        &self,
        rank: u32,
        target: &SharedTarget,
        site: Line,
        update: Update<'_>,
    ) -> u64 {
        let action = Action::Add;
        let memory = self.peer(rank, target, action, site);
        self.shared_of(memory, target, action, site, |words, visit| {
            combine(words, visit, update)
        })
    }

    /// The shared memory of block `rank` of the cluster, which has to run.
    fn peer(
        &self,
        rank: u32,
        target: &SharedTarget,
        action: Action,
        site: Line,
    ) -> &RefCell<SharedMemory> {
        let (cluster, place) = (self.block.cluster, target.place(self.block));
        let blocks = cluster.memories.len() as u32;
        if rank >= blocks {
            let kind = FaultKind::NoSuchPeer {
                action,
                place,
                rank,
                blocks,
            };
            self.fail(site, kind)
        }
        let not_running = |lifetime| FaultKind::PeerMayNotRun {
            action,
            place,
            rank,
            lifetime,
        };
        if cluster.first + rank != self.block.number {
            if !cluster.has_begun() {
                self.fail(site, not_running(Lifetime::Begins))
            }
            cluster.expect_barrier(|| {
                let kind = not_running(Lifetime::Ends);
                self.block.fault(self.number, site, kind)
            });
        }
        &cluster.memories[rank as usize]
    }

    /// Updates an element in shared memory atomically; gives what was there.
    pub(super) fn update_shared(
        &self,
        target: &SharedTarget,
        site: Line,
        update: Update<'_>,
    ) -> u64 {
        self.shared(target, Action::Add, site, |words, visit| {
            combine(words, visit, update)
        })
    }

    /// Waits for all lanes of the block, or of all blocks of the cluster.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn wait_for_all(&self, scope: Scope, site: Line) {
        self.step();
        self.slot().waits.set(Waits::AtBarrier(site, scope));
        self.yielder.suspend(Pause::AtBarrier);
    }

    #[cold]
    fn fail_unnamed(&self, collective: &Collective) -> ! {
        let members = collective.members;
        let own = self.lane();
        let is_named = members >> own & 1 == 1;
        let kind = FaultKind::AbsentLane {
            absent: if is_named { collective.source } else { own },
            whereabouts: Whereabouts::NotNamed,
            members,
        };
        self.fail(collective.site, kind)
    }

    /// Waits for the other members and returns what the exchange gives this lane.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn meet(&self, collective: Collective) -> u64 {
        self.step();
        let both = 1 << self.lane() | 1 << collective.source;
        if both & !collective.members != 0 {
            self.fail_unnamed(&collective);
        }
        let slot = self.slot();
        slot.waits.set(Waits::AtMeeting(collective));
        self.yielder.suspend(Pause::AtMeeting);
        slot.reply.get()
    }
}

/// Reads one or two words.
#[inline(always)]
fn element(words: &mut [Word], visit: &Visit<'_>, action: Action) -> (u64, Verdict) {
    let (mut bits, mut verdict) = (0, Verdict::Clean);
    for (word, shift) in words.iter_mut().zip([0, 32]) {
        verdict.join(word.read(visit, action));
        bits |= u64::from(word.bits) << shift;
    }
    (bits, verdict)
}

#[inline(always)]
fn read(words: &mut [Word], visit: &Visit<'_>, action: Action) -> ([u32; 4], Verdict) {
    let mut bits = [0; 4];
    let mut verdict = Verdict::Clean;
    for (word, bits) in words.iter_mut().zip(&mut bits) {
        verdict.join(word.read(visit, action));
        *bits = word.bits;
    }
    (bits, verdict)
}

#[inline(always)]
fn write(words: &mut [Word], visit: &Visit<'_>, bits: u64) -> Verdict {
    let mut verdict = Verdict::Clean;
    for (word, half) in words.iter_mut().zip(&[bits as u32, (bits >> 32) as u32]) {
        verdict.join(word.write(visit, *half));
    }
    verdict
}

/// An atomic update of a number in the words of an access; gives what was there.
#[inline(always)]
fn combine(words: &mut [Word], visit: &Visit<'_>, update: Update<'_>) -> (u64, Verdict) {
    let mut verdict = Verdict::Clean;
    for word in words.iter_mut() {
        verdict.join(word.add(visit));
    }
    let old = words
        .iter()
        .rev()
        .fold(0, |bits, word| bits << 32 | u64::from(word.bits));
    let new = update(old);
    for (word, half) in words.iter_mut().zip([new as u32, (new >> 32) as u32]) {
        word.bits = half;
    }
    (old, verdict)
}
