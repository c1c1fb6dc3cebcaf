//! What is known of every 4-byte word: its bits, whether they mean anything, and who touched it.
//!
//! Only barriers order accesses, and only within their block or warp, so *happens before* is a comparison of
//! four numbers: an access is ordered before another of the same block if it is of an earlier epoch (the
//! number of barriers that the block has passed), of the same warp and an earlier epoch of that (the number
//! of barriers that the warp has passed since the block's last), or of the same thread; accesses of different
//! blocks are never ordered.
//! What is reported therefore does not depend on the schedule. Tickets order blocks too: a conflict between
//! blocks is looked up among those drawn before it counts (see `tickets`). Blocks of a cluster write to each other's
//! shared memory, which the barriers of the cluster order: see [`ClusterEpochs`].
//!
//! Of the plain writes of a word that did not race the last one stands for all. Of its reads, and of its
//! atomic additions, two witnesses do: see [`note`].

use std::cell::Cell;
use std::panic::Location;

use gpu_kernels::cta::WARP;

use super::fault::Action;

/// Bits of a thread's number in a block.
const THREAD_BITS: u32 = 10;
/// Bits of a thread's number that say which warp it belongs to.
const WARP_BITS: u64 = (1 << THREAD_BITS) - WARP as u64;
/// Bits of the number of barriers that a warp has passed since its block's last.
const WARP_EPOCH_BITS: u32 = 14;
/// Bits of the number of barriers that a block has passed.
const EPOCH_BITS: u32 = 20;
/// Bits below the number of a block's barriers, and below the number of a block.
const BELOW_EPOCH: u32 = WARP_EPOCH_BITS + THREAD_BITS;
const BELOW_BLOCK: u32 = EPOCH_BITS + BELOW_EPOCH;
/// The most barriers of a block.
pub(super) const MAX_EPOCH: u32 = (1 << EPOCH_BITS) - 1;
/// The most barriers of a warp between two of its block.
pub(super) const MAX_WARP_EPOCH: u32 = (1 << WARP_EPOCH_BITS) - 1;
/// The most blocks of a launch: a device allows 2³¹ − 1, but these are told apart.
pub(super) const MAX_BLOCKS: u32 = 1 << (64 - BELOW_BLOCK);

/// Block, epoch, epoch of the warp, and thread of an access in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Who(u64);

impl Who {
    #[inline(always)]
    pub fn new(block: u32, (epoch, of_warp): (u32, u32), thread: u32) -> Who {
        let (block, epoch, of_warp) = (u64::from(block), u64::from(epoch), u64::from(of_warp));
        let places = block << BELOW_BLOCK | epoch << BELOW_EPOCH | of_warp << THREAD_BITS;
        Who(places | u64::from(thread))
    }

    pub fn block(self) -> u32 {
        (self.0 >> BELOW_BLOCK) as u32
    }

    fn epoch(self) -> u32 {
        (self.0 >> BELOW_EPOCH) as u32 & MAX_EPOCH
    }

    fn warp_epoch(self) -> u32 {
        (self.0 >> THREAD_BITS) as u32 & MAX_WARP_EPOCH
    }

    fn warp(self) -> u32 {
        self.thread() / WARP
    }

    /// Whether a barrier, or being of the same thread, puts this access before what `later` of the same block
    /// does.
    pub fn precedes(self, later: Who) -> bool {
        let of_warp = self.warp() == later.warp() && self.warp_epoch() < later.warp_epoch();
        self.epoch() < later.epoch()
            || (self.epoch() == later.epoch() && (of_warp || self.thread() == later.thread()))
    }

    /// Whether the other is of the same warp of the same block.
    fn is_beside(self, other: Who) -> bool {
        (self.block(), self.warp()) == (other.block(), other.warp())
    }

    pub fn thread(self) -> u32 {
        self.0 as u32 & ((1 << THREAD_BITS) - 1)
    }

    /// Whether no barrier orders an earlier access by `self` before one by `later`: another block, or in the same
    /// epoch another warp, or in the same epoch of the warp another thread.
    #[inline(always)]
    fn is_unordered_with(self, later: Who) -> bool {
        let differ = self.0 ^ later.0;
        let is_same_epoch = differ < 1 << BELOW_EPOCH;
        let is_unordered_in_it = if differ < 1 << THREAD_BITS {
            differ != 0
        } else {
            differ & WARP_BITS != 0
        };
        differ >= 1 << BELOW_BLOCK || (is_same_epoch && is_unordered_in_it)
    }
}

/// What the barriers of a cluster order: by block, its epoch that began with the last of them.
#[derive(Debug)]
pub(super) struct ClusterEpochs {
    /// Number of the cluster's first block in the grid.
    first: u32,
    begun: Vec<Cell<u32>>,
}

impl ClusterEpochs {
    pub fn new(first: u32, blocks: u32) -> ClusterEpochs {
        let begun = (0..blocks).map(|_| Cell::new(0)).collect();
        ClusterEpochs { first, begun }
    }

    /// Notes that an epoch of a block begins with a barrier of the cluster.
    pub fn begin(&self, block: u32, epoch: u32) {
        self.begun[(block - self.first) as usize].set(epoch);
    }

    /// Whether the last barrier puts an access by a block of the cluster before all that any of them does now.
    #[cold]
    fn precede(&self, earlier: Who) -> bool {
        let rank = earlier.block().checked_sub(self.first);
        let begun = rank.and_then(|rank| self.begun.get(rank as usize));
        begun.is_some_and(|begun| earlier.epoch() < begun.get())
    }
}

/// An access that was made: by whom, and on which line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    pub who: Who,
    pub site: &'static Location<'static>,
}

/// Up to two witnesses of a set of accesses that do not conflict with each other.
type Witnesses = [Option<Mark>; 2];

/// What an access found.
#[derive(Debug, Clone, Copy)]
pub(super) enum Verdict {
    /// Nothing wrong.
    Clean,
    /// Nobody has written the word.
    Uninitialised,
    /// An earlier access that this one must not meet.
    Conflict(Conflict),
}

/// Two accesses to one word, at least one of them a write.
#[derive(Debug, Clone, Copy)]
pub(super) struct Conflict {
    pub kind: ConflictKind,
    /// The earlier access.
    pub other: Mark,
    /// Who made the later one.
    pub later: Who,
    /// What it did.
    pub action: Action,
}

/// Why two accesses conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConflictKind {
    /// Nothing orders them.
    Race,
    /// One of them goes through a read-only argument.
    ReadOnlyWritten,
}

impl Verdict {
    /// Becomes the graver of both. Almost always there is nothing to do, and nothing is copied then.
    #[inline(always)]
    pub fn join(&mut self, other: Verdict) {
        if !matches!(other, Verdict::Clean) {
            *self = self.and(other);
        }
    }

    /// The graver of two.
    #[inline(always)]
    pub fn and(self, other: Verdict) -> Verdict {
        match self {
            Verdict::Clean => other,
            Verdict::Uninitialised if !matches!(other, Verdict::Clean) => other,
            _ => self,
        }
    }
}

/// How long the contents of a memory live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contents {
    /// Global memory: from launch to launch.
    Lasting,
    /// Shared memory: for one block.
    OfGeneration,
}

/// Whether conflicts are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Races {
    Checked,
    Ignored,
}

/// One access, as its word sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Visit<'c> {
    pub mark: Mark,
    /// For shared memory that blocks of a cluster share.
    pub cluster: Option<&'c ClusterEpochs>,
    /// The launch (for global memory) or block (for shared memory) whose accesses can conflict.
    pub generation: u32,
    pub contents: Contents,
    pub races: Races,
}

impl Visit<'_> {
    /// Whether no barrier puts an earlier access before this one.
    #[inline(always)]
    fn is_unordered_with(&self, earlier: &Mark) -> bool {
        let by_cluster = || {
            self.cluster
                .is_some_and(|epochs| epochs.precede(earlier.who))
        };
        earlier.who.is_unordered_with(self.mark.who) && !by_cluster()
    }
}

/// A 4-byte word and its shadow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word {
    pub bits: u32,
    generation: u32,
    write: Option<Mark>,
    reads: Witnesses,
    adds: Witnesses,
    initialised: bool,
    /// Loaded in this generation through a read-only argument.
    read_only: bool,
}

impl Word {
    /// Memory that nobody has written.
    pub const POISON: Word = Word {
        bits: 0,
        generation: 0,
        write: None,
        reads: [None; 2],
        adds: [None; 2],
        initialised: false,
        read_only: false,
    };

    /// Sets the bits from outside any launch.
    pub fn set(&mut self, bits: u32) {
        self.bits = bits;
        self.initialised = true;
    }

    pub fn is_initialised(&self) -> bool {
        self.initialised
    }

    /// Forgets what other generations did.
    #[inline(always)]
    fn enter(&mut self, visit: &Visit<'_>) {
        if self.generation != visit.generation {
            // Field by field: a whole word is made elsewhere and copied, which takes longer than the rest of an access.
            if visit.contents == Contents::OfGeneration {
                (self.bits, self.initialised) = (0, false);
            }
            self.generation = visit.generation;
            self.write = None;
            self.reads = [None; 2];
            self.adds = [None; 2];
            self.read_only = false;
        }
    }

    /// A plain or read-only read; the caller takes the bits.
    #[inline(always)]
    pub fn read(&mut self, visit: &Visit<'_>, action: Action) -> Verdict {
        self.enter(visit);
        let verdict = match visit.races {
            Races::Checked => self.check_read(visit, action),
            Races::Ignored => Verdict::Clean,
        };
        if self.initialised {
            return verdict;
        }
        verdict.and(Verdict::Uninitialised)
    }

    #[inline(always)]
    fn check_read(&mut self, visit: &Visit<'_>, action: Action) -> Verdict {
        let mark = visit.mark;
        if action == Action::Load {
            self.read_only = true;
            if let Some(other) = self.write {
                return conflict(ConflictKind::ReadOnlyWritten, other, Action::Write, mark);
            }
            if let Some(other) = self.adds[0] {
                return conflict(ConflictKind::ReadOnlyWritten, other, Action::Add, mark);
            }
        }
        let met = match self.race_with_write(visit) {
            None => Self::race_with(&self.adds, visit, Action::Add),
            met => met,
        };
        note(&mut self.reads, visit);
        verdict(met, mark)
    }

    /// A plain write.
    #[inline(always)]
    pub fn write(&mut self, visit: &Visit<'_>, bits: u32) -> Verdict {
        self.enter(visit);
        self.bits = bits;
        self.initialised = true;
        if visit.races == Races::Ignored {
            return Verdict::Clean;
        }
        let mark = visit.mark;
        let mut met = self.met_by_change(visit);
        if met.is_none() {
            met = Self::race_with(&self.adds, visit, Action::Add);
        }
        self.write = Some(mark);
        self.reads = [None; 2];
        self.adds = [None; 2];
        verdict(met, mark)
    }

    /// The shadow of an atomic addition; the caller changes the bits.
    #[inline(always)]
    pub fn add(&mut self, visit: &Visit<'_>) -> Verdict {
        self.enter(visit);
        let mut met = None;
        if visit.races == Races::Checked {
            met = self.met_by_change(visit);
            note(&mut self.adds, visit);
        }
        let verdict = verdict(met, visit.mark);
        if self.initialised {
            return verdict;
        }
        // From here on the word has a value: one fault is reported once.
        self.initialised = true;
        verdict.and(Verdict::Uninitialised)
    }

    /// What a write and an addition conflict with.
    #[inline(always)]
    fn met_by_change(&self, visit: &Visit<'_>) -> Option<Met> {
        if let (Some(other), true) = (self.reads[0], self.read_only) {
            return Some((ConflictKind::ReadOnlyWritten, other, Action::Load));
        }
        match self.race_with_write(visit) {
            None => Self::race_with(&self.reads, visit, Action::Read),
            met => met,
        }
    }

    #[inline(always)]
    fn race_with_write(&self, visit: &Visit<'_>) -> Option<Met> {
        match self.write {
            Some(other) if visit.is_unordered_with(&other) => {
                Some((ConflictKind::Race, other, Action::Write))
            }
            _ => None,
        }
    }

    #[inline(always)]
    fn race_with(witnesses: &Witnesses, visit: &Visit<'_>, action: Action) -> Option<Met> {
        for other in witnesses.iter().flatten() {
            if visit.is_unordered_with(other) {
                return Some((ConflictKind::Race, *other, action));
            }
        }
        None
    }
}

/// An earlier access that conflicts with one under way, and what it did.
type Met = (ConflictKind, Mark, Action);

/// Small things decide and a large one is made at the end: almost every access is clean, and a verdict is many words.
#[inline(always)]
fn verdict(met: Option<Met>, later: Mark) -> Verdict {
    match met {
        None => Verdict::Clean,
        Some((kind, other, action)) => conflict(kind, other, action, later),
    }
}

#[cold]
fn conflict(kind: ConflictKind, other: Mark, action: Action, later: Mark) -> Verdict {
    Verdict::Conflict(Conflict {
        kind,
        other,
        later: later.who,
        action,
    })
}

/// Adds an access to a set of which at most two witnesses are kept, so that a later access conflicts with
/// a witness if and only if it conflicts with any member of the set.
///
/// A member that is ordered before the new one is covered by it: what follows the new one in its block
/// follows both, and another block conflicts with both. Two unordered witnesses of one warp conflict with
/// everybody in their epoch of the warp, two of different warps of a block with everybody in their epoch; two of
/// different blocks conflict with everybody, or, in the shared memory of a cluster, with everybody until its next barrier,
/// which puts them before everybody.
#[inline(always)]
fn note(witnesses: &mut Witnesses, visit: &Visit<'_>) {
    let (mark, [first, second]) = (visit.mark, witnesses);
    match *first {
        Some(a) if visit.is_unordered_with(&a) => match *second {
            Some(b) if visit.is_unordered_with(&b) => {
                let tells_blocks =
                    b.who.block() == a.who.block() && mark.who.block() != a.who.block();
                let tells_warps = b.who.is_beside(a.who) && !mark.who.is_beside(a.who);
                if tells_blocks || tells_warps {
                    *second = Some(mark);
                }
            }
            _ => *second = Some(mark),
        },
        _ => *first = Some(mark),
    }
}

#[cfg(test)]
mod tests;
