//! A running block: what all of its lanes, and the scheduler, see.

use std::cell::{Cell, OnceCell, RefCell};
use std::panic::Location;
use std::sync::{Mutex, PoisonError};

use gpu_kernels::Launch;
use gpu_kernels::cta::WARP;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::cluster::Cluster;
use super::collective::Collective;
use super::counting::Tally;
use super::fault::{Fault, FaultKind, Kernel, Position};
use super::heap::Table;
use super::matrix::Fragments;
use super::options::{Checks, EmulatorOptions, Preemption};
use super::shadow::{
    Conflict, ConflictKind, Contents, MAX_WARP_EPOCH, Mark, Races, Visit, Who, Word,
};
use super::tickets::{Draw, Tickets};

/// A launch that is under way: what all of its blocks share.
pub(super) struct Running<'l> {
    pub kernel: Kernel,
    pub shape: Launch,
    /// Blocks of a cluster.
    pub cluster: u32,
    pub table: &'l Table,
    pub options: &'l EmulatorOptions,
    /// Number of the launch on this device.
    pub generation: u32,
    /// The first read of memory that nobody had written. It is reported when the launch ends, unless an
    /// access that conflicts with another turns out to be the reason: without a barrier, whether the
    /// reader or the writer comes first is the schedule's choice, and the diagnosis must not be.
    pub poison_read: Mutex<Option<Fault>>,
    /// The tickets that its blocks drew.
    pub tickets: Tickets,
}

impl Running<'_> {
    pub fn note_poison_read(&self, fault: Fault) {
        let mut first = self
            .poison_read
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(fault);
    }

    /// What a lane accuses its kernel of.
    pub fn fault(
        &self,
        block: u32,
        thread: u32,
        site: super::fault::Site,
        kind: FaultKind,
    ) -> Fault {
        Fault {
            kernel: self.kernel,
            position: Some(Position {
                block,
                thread,
                site,
            }),
            kind,
        }
    }
}

/// Whose barrier it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Block,
    Cluster,
}

/// What a lane waits for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Waits {
    ForTurn,
    AtBarrier(&'static Location<'static>, Scope),
    AtMeeting(Collective),
    /// Its body has ended.
    ForNothing,
}

/// What a lane and the scheduler leave for each other. Written where it is kept: passed through the
/// switch, it would be copied twice, and a copy of what was just written in pieces is slow.
pub(super) struct Slot {
    pub waits: Cell<Waits>,
    /// What the last shuffle or vote gave the lane.
    pub reply: Cell<u64>,
}

/// The dynamic shared memory of the block that a worker runs, reused from block to block and from launch to launch: a new one
/// of 200 KB is 5 MB of shadow to write, more than many a launch takes. A launch may find more words than it has.
#[derive(Debug, Default)]
pub(super) struct SharedMemory {
    pub words: Vec<Word>,
    /// Of the block that has it now. What others left in the words counts as unwritten.
    pub generation: u32,
}

/// Memories that are kept when nobody uses them.
const KEPT: usize = 32;

/// Blocks that one memory serves, half of what its generations can number.
const MOST_GENERATIONS: u32 = 1 << 31;

static IDLE: Mutex<Vec<SharedMemory>> = Mutex::new(Vec::new());

impl SharedMemory {
    /// Room for this many bytes, used before if there is such.
    pub fn take(bytes: u32) -> SharedMemory {
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut memory = idle.unwrap_or_default();
        let words = bytes.div_ceil(4) as usize;
        if memory.words.len() < words {
            memory.words.resize(words, Word::POISON);
        }
        memory
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT && self.generation < MOST_GENERATIONS {
            idle.push(SharedMemory {
                words: std::mem::take(&mut self.words),
                generation: self.generation,
            });
        }
    }
}

/// The block that a worker runs.
pub(super) struct Block<'l> {
    pub launch: &'l Running<'l>,
    pub number: u32,
    pub cluster: &'l Cluster<'l>,
    pub shared: &'l RefCell<SharedMemory>,
    pub tally: Option<&'l RefCell<Tally>>,
    /// One per thread.
    pub slots: Vec<Slot>,
    /// What each thread brings to matrix instructions, which most kernels have none of.
    fragments: OnceCell<Box<[Fragments]>>,
    /// The fault of a lane that has just paused because of it.
    pub failure: Cell<Option<Box<Fault>>>,
    /// Barriers passed.
    pub epoch: Cell<u32>,
    /// Barriers that each warp has passed since the block's last.
    warp_epochs: Vec<Cell<u32>>,
    /// Accessor calls of all lanes.
    pub steps: Cell<u64>,
    /// The tickets that its threads drew.
    drawn: RefCell<Vec<Draw>>,
    until_preemption: Cell<u32>,
    random: RefCell<SplitMix64>,
}

impl<'l> Block<'l> {
    pub fn new(
        launch: &'l Running<'l>,
        cluster: &'l Cluster<'l>,
        rank: u32,
        tally: Option<&'l RefCell<Tally>>,
    ) -> Block<'l> {
        let number = cluster.first + rank;
        let shared = &cluster.memories[rank as usize];
        shared.borrow_mut().generation += 1;
        let seed = launch.options.seed ^ u64::from(number).wrapping_mul(0xd134_2543_de82_ef95);
        let slot = |_| Slot {
            waits: Cell::new(Waits::ForTurn),
            reply: Cell::new(0),
        };
        let block = Block {
            launch,
            number,
            cluster,
            shared,
            tally,
            slots: (0..launch.shape.block).map(slot).collect(),
            fragments: OnceCell::new(),
            failure: Cell::new(None),
            epoch: Cell::new(0),
            warp_epochs: (0..launch.shape.block.div_ceil(WARP))
                .map(|_| Cell::new(0))
                .collect(),
            steps: Cell::new(0),
            drawn: RefCell::default(),
            until_preemption: Cell::new(0),
            random: RefCell::new(SplitMix64::seed_from_u64(seed)),
        };
        block.until_preemption.set(block.draw_interval());
        block
    }

    /// What the threads of the block bring to matrix instructions.
    pub fn fragments(&self) -> &[Fragments] {
        let new = || self.slots.iter().map(|_| Fragments::default()).collect();
        self.fragments.get_or_init(new)
    }

    pub fn random(&self) -> u64 {
        self.random.borrow_mut().next_u64()
    }

    /// Accesses until the next interruption.
    fn draw_interval(&self) -> u32 {
        match self.launch.options.preemption {
            Preemption::Collectives => u32::MAX,
            Preemption::Accesses(mean) => (self.random() % (2 * u64::from(mean.max(1)))) as u32,
        }
    }

    /// Counts an accessor call; true when the lane is to be interrupted before it.
    #[inline(always)]
    pub fn step(&self) -> bool {
        self.steps.set(self.steps.get() + 1);
        let left = self.until_preemption.get();
        if left != 0 {
            self.until_preemption.set(left - 1);
            return false;
        }
        self.until_preemption.set(self.draw_interval());
        true
    }

    /// Notes a ticket that `who`, a thread of this block, draws from the counter at `address`.
    pub fn draw(&self, address: u64, who: Who) {
        self.drawn
            .borrow_mut()
            .push(self.launch.tickets.draw(address, who));
    }

    /// Whether tickets put the earlier of two accesses before the later, which is of this block.
    #[cold]
    pub fn is_ordered_by_tickets(&self, conflict: &Conflict) -> bool {
        let later = conflict.later;
        conflict.kind == ConflictKind::Race
            && self.drawn.borrow().iter().any(|draw| {
                draw.who.precedes(later) && self.launch.tickets.follows(draw, conflict.other.who)
            })
    }

    /// Counts a barrier of the block.
    pub fn begin_epoch(&self, epoch: u32) {
        self.epoch.set(epoch);
        self.warp_epochs.iter().for_each(|passed| passed.set(0));
    }

    /// Counts a barrier of the warp that `thread` belongs to.
    pub fn count_warp_barrier(&self, thread: u32, site: &Location<'_>) -> Result<(), Box<Fault>> {
        let passed = &self.warp_epochs[(thread / WARP) as usize];
        if passed.get() < MAX_WARP_EPOCH {
            passed.set(passed.get() + 1);
            return Ok(());
        }
        let kind = FaultKind::Limit {
            what: "number of barriers of a warp between two of its block",
            device: "the emulator".to_owned(),
            limit: u64::from(MAX_WARP_EPOCH),
            given: u64::from(MAX_WARP_EPOCH) + 1,
        };
        Err(Box::new(self.fault(thread, site, kind)))
    }

    /// A thread at its present place among the barriers.
    fn who(&self, thread: u32) -> Who {
        let of_warp = self.warp_epochs[(thread / WARP) as usize].get();
        Who::new(self.number, (self.epoch.get(), of_warp), thread)
    }

    #[inline(always)]
    fn visit(&self, thread: u32, site: &'static Location<'static>) -> Visit<'_> {
        Visit {
            mark: Mark {
                who: self.who(thread),
                site,
            },
            cluster: None,
            generation: self.launch.generation,
            contents: Contents::Lasting,
            races: match self.launch.options.checks {
                Checks::All => Races::Checked,
                Checks::Memory => Races::Ignored,
            },
        }
    }

    /// An access to global memory by a thread of this block.
    #[inline(always)]
    pub fn global_visit(&self, thread: u32, site: &'static Location<'static>) -> Visit<'_> {
        self.visit(thread, site)
    }

    /// An access to shared memory, of this block or of another of its cluster.
    #[inline(always)]
    pub fn shared_visit(
        &self,
        thread: u32,
        site: &'static Location<'static>,
        generation: u32,
    ) -> Visit<'_> {
        Visit {
            cluster: self.cluster.epochs(),
            generation,
            contents: Contents::OfGeneration,
            ..self.visit(thread, site)
        }
    }

    pub fn fault(&self, thread: u32, site: &Location<'_>, kind: FaultKind) -> Fault {
        self.launch.fault(self.number, thread, site.into(), kind)
    }
}
