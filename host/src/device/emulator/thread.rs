//! A lane as a kernel body sees it: the [`Cta`] of the emulator.

use std::panic::Location;

use corosensei::Yielder;
use gpu_kernels::cta::{Shared, WARP};
use gpu_kernels::{Cache, Cta, In, Out, Real, Shuffle, Word as Element, Words};

use super::address::{GlobalTarget, SharedTarget, Target};
use super::block::{Block, Slot, Waits};
use super::collective::Collective;
use super::fault::{Action, FaultKind, Party, Position, Whereabouts};
use super::heap::{LINE, WORD};
use super::shadow::{Conflict, ConflictKind, Verdict, Visit, Word};

/// Why a lane gives up its turn. It fits a register; the particulars are in the lane's [`Slot`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pause {
    /// It was interrupted and can go on.
    Interrupted,
    /// It waits for the whole block.
    AtBarrier,
    /// It waits for lanes of its warp.
    AtMeeting,
    /// It did something wrong and is not to be resumed.
    Failed,
}

/// A source line of a body.
type Line = &'static Location<'static>;

/// One thread of an emulated launch.
///
/// It exists only while its kernel runs; bodies are generic over [`Cta`] and do not name it.
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

    fn lane(&self) -> u32 {
        self.number % WARP
    }

    /// Reports a fault. The scheduler never resumes a lane that did.
    #[cold]
    fn fail(&self, site: Line, kind: FaultKind) -> ! {
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
        access: impl FnOnce(&mut [Word], &Visit) -> (R, Verdict),
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

    /// Makes one access to shared memory.
    #[inline(always)]
    fn shared<R>(
        &self,
        target: &SharedTarget,
        action: Action,
        site: Line,
        access: impl FnOnce(&mut [Word], &Visit) -> (R, Verdict),
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
            let mut memory = self.block.shared.borrow_mut();
            let visit = self
                .block
                .shared_visit(self.number, site, memory.generation);
            let first = byte / WORD;
            access(&mut memory.words[first..first + target.words()], &visit)
        };
        self.judge(verdict, target, action, site);
        result
    }

    fn load_words(&self, target: &GlobalTarget, action: Action, site: Line) -> [u32; 4] {
        self.global(target, action, site, |words, visit| {
            read(words, visit, action)
        })
    }

    fn store_words(&self, target: &GlobalTarget, bits: u64, site: Line) {
        self.global(target, Action::Write, site, |words, visit| {
            ((), write(words, visit, bits))
        });
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
    #[inline(always)]
    fn meet(&self, collective: Collective) -> u64 {
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

#[inline(always)]
fn read(words: &mut [Word], visit: &Visit, action: Action) -> ([u32; 4], Verdict) {
    let mut bits = [0; 4];
    let mut verdict = Verdict::Clean;
    for (word, bits) in words.iter_mut().zip(&mut bits) {
        verdict = verdict.and(word.read(visit, action));
        *bits = word.bits;
    }
    (bits, verdict)
}

#[inline(always)]
fn write(words: &mut [Word], visit: &Visit, bits: u64) -> Verdict {
    let halves = [bits as u32, (bits >> 32) as u32];
    words
        .iter_mut()
        .zip(halves)
        .fold(Verdict::Clean, |verdict, (word, half)| {
            verdict.and(word.write(visit, half))
        })
}

/// An atomic update of a number in the words of an access; gives what was there.
#[inline(always)]
fn combine(words: &mut [Word], visit: &Visit, update: impl FnOnce(u64) -> u64) -> (u64, Verdict) {
    let verdict = words
        .iter_mut()
        .fold(Verdict::Clean, |verdict, word| verdict.and(word.add(visit)));
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

#[inline(always)]
fn add<T: Real>(words: &mut [Word], visit: &Visit, value: T) -> (u64, Verdict) {
    combine(words, visit, |old| (T::from_bits(old) + value).to_bits())
}

/// The element in the first words of an access.
#[inline(always)]
fn element<T: Element>(words: [u32; 4]) -> T {
    T::from_bits(u64::from(words[1]) << 32 | u64::from(words[0]))
}

// What pauses a lane is inlined: a processor predicts that a function returns to where the last call was
// made, and the last call before a lane goes on is the scheduler's.
impl Cta for Thread<'_> {
    fn thread(&self) -> u32 {
        self.number
    }

    fn threads(&self) -> u32 {
        self.block.launch.shape.block
    }

    fn block(&self) -> u32 {
        self.block.number
    }

    fn blocks(&self) -> u32 {
        self.block.launch.shape.grid
    }

    #[inline(always)]
    fn sync(&self) {
        let site = Location::caller();
        self.step();
        self.slot().waits.set(Waits::AtBarrier(site));
        self.yielder.suspend(Pause::AtBarrier);
    }

    #[inline(always)]
    fn shuffle<T: Element>(&self, value: T, from: Shuffle, width: u32, members: u32) -> T {
        let site = Location::caller();
        if !width.is_power_of_two() || width > WARP {
            self.fail(site, FaultKind::ShuffleWidth { width });
        }
        let bits = value.to_bits();
        T::from_bits(self.meet(Collective::shuffle(
            self.lane(),
            bits,
            from,
            width,
            members,
            site,
        )))
    }

    #[inline(always)]
    fn ballot(&self, holds: bool, members: u32) -> u32 {
        let site = Location::caller();
        self.meet(Collective::ballot(self.lane(), holds, members, site)) as u32
    }

    fn load<T: Element>(&self, from: In<'_, T>, i: usize, _: Cache) -> T {
        let target = GlobalTarget::input(from, i, 1);
        element(self.load_words(&target, Action::Load, Location::caller()))
    }

    fn load_pack<T: Element, P: Words<T>>(&self, from: In<'_, T>, i: usize, _: Cache) -> P {
        let target = GlobalTarget::input(from, i, P::LANES as u32);
        let words = self.load_words(&target, Action::Load, Location::caller());
        let [a, b, c, d] = words.map(u64::from);
        P::from_words(if T::SIZE == 4 {
            [a, b, c, d]
        } else {
            [b << 32 | a, d << 32 | c, 0, 0]
        })
    }

    fn read<T: Element>(&self, from: Out<'_, T>, i: usize) -> T {
        let target = GlobalTarget::output(from, i);
        element(self.load_words(&target, Action::Read, Location::caller()))
    }

    fn write<T: Element>(&self, to: Out<'_, T>, i: usize, value: T) {
        let target = GlobalTarget::output(to, i);
        self.store_words(&target, value.to_bits(), Location::caller());
    }

    fn add<T: Real>(&self, to: Out<'_, T>, i: usize, value: T) {
        let (target, site) = (GlobalTarget::output(to, i), Location::caller());
        self.global(&target, Action::Add, site, |words, visit| {
            add(words, visit, value)
        });
    }

    fn ticket(&self, counter: Out<'_, u32>, i: usize, last: u32) -> u32 {
        let (target, site) = (GlobalTarget::output(counter, i), Location::caller());
        self.global(&target, Action::Add, site, |words, visit| {
            let (drawn, verdict) = (words[0].bits, words[0].add(visit));
            words[0].bits = if drawn >= last { 0 } else { drawn + 1 };
            self.block.draw(target.byte(), visit.mark.who);
            (drawn, verdict)
        })
    }

    fn add_wrapping(&self, to: Out<'_, u64>, i: usize, value: u64) {
        let (target, site) = (GlobalTarget::output(to, i), Location::caller());
        self.global(&target, Action::Add, site, |words, visit| {
            combine(words, visit, |old| old.wrapping_add(value))
        });
    }

    fn raise(&self, to: Out<'_, u32>, i: usize, value: u32) {
        let (target, site) = (GlobalTarget::output(to, i), Location::caller());
        self.global(&target, Action::Add, site, |words, visit| {
            combine(words, visit, |old| old.max(u64::from(value)))
        });
    }

    fn shared_read<T: Element>(&self, array: Shared<T>, i: usize) -> T {
        let (target, site) = (SharedTarget::new(array, i), Location::caller());
        element(self.shared(&target, Action::Read, site, |words, visit| {
            read(words, visit, Action::Read)
        }))
    }

    fn shared_write<T: Element>(&self, array: Shared<T>, i: usize, value: T) {
        let (target, site) = (SharedTarget::new(array, i), Location::caller());
        self.shared(&target, Action::Write, site, |words, visit| {
            ((), write(words, visit, value.to_bits()))
        });
    }

    fn shared_add<T: Real>(&self, array: Shared<T>, i: usize, value: T) {
        let (target, site) = (SharedTarget::new(array, i), Location::caller());
        self.shared(&target, Action::Add, site, |words, visit| {
            add(words, visit, value)
        });
    }

    fn shared_fetch_add(&self, array: Shared<u32>, i: usize, value: u32) -> u32 {
        let (target, site) = (SharedTarget::new(array, i), Location::caller());
        self.shared(&target, Action::Add, site, |words, visit| {
            combine(words, visit, |old| old.wrapping_add(u64::from(value)))
        }) as u32
    }
}
