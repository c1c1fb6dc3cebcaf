//! Stacks of lanes, kept for reuse.

use std::io;
use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use corosensei::stack::{DefaultStack, Stack, StackPointer};

/// Room for a body compiled without optimisation, when every copy of every array of its row has a place
/// of its own (128 KB were too few for dense f64 rows), and for a panic. Only touched pages cost memory.
const BYTES: usize = 512 * 1024;

/// Stacks that are kept when nobody uses them.
const KEPT: usize = 4096;

/// Bytes of a cache line, and lines after which addresses fall into the same set of the first-level
/// cache again: a page's worth.
const CACHE_LINE: usize = 64;
const COLOURS: usize = 64;

static IDLE: Mutex<Vec<LaneStack>> = Mutex::new(Vec::new());

/// The stack of one lane.
///
/// Stacks begin at page boundaries, so the same variable of all lanes would compete for the same few
/// places of the cache; each stack therefore starts a different number of lines further down.
struct LaneStack {
    pages: DefaultStack,
    skipped: usize,
}

impl LaneStack {
    fn new(number: usize) -> io::Result<LaneStack> {
        Ok(LaneStack {
            pages: DefaultStack::new(BYTES)?,
            skipped: number % COLOURS * CACHE_LINE,
        })
    }
}

/// A stack lent to a lane: its bounds, at hand for every switch.
pub(super) struct Room<'s> {
    base: StackPointer,
    limit: StackPointer,
    stack: PhantomData<&'s mut LaneStack>,
}

impl LaneStack {
    fn lend(&mut self) -> Room<'_> {
        let base = self.pages.base().get() - self.skipped;
        Room {
            base: StackPointer::new(base).expect("a stack does not end at address zero"),
            limit: self.pages.limit(),
            stack: PhantomData,
        }
    }
}

// SAFETY: the memory is that of a default stack, guard page included, less the lines skipped at its start:
// under 4 KB of 512. The start stays aligned, as a page and a line are multiples of 16. The
// stack is borrowed mutably for as long as the room exists.
unsafe impl Stack for Room<'_> {
    fn base(&self) -> StackPointer {
        self.base
    }

    fn limit(&self) -> StackPointer {
        self.limit
    }
}

/// Stacks for the lanes of one block at a time; given back when dropped.
pub(super) struct Stacks(Vec<LaneStack>);

impl Stacks {
    /// `lanes` stacks, used ones first.
    pub fn take(lanes: usize) -> io::Result<Stacks> {
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle.len().saturating_sub(lanes);
        let mut stacks = Stacks(idle.split_off(kept));
        drop(idle);
        while stacks.0.len() < lanes {
            stacks.0.push(LaneStack::new(stacks.0.len())?);
        }
        Ok(stacks)
    }

    /// All of them.
    pub fn lend(&mut self) -> impl Iterator<Item = Room<'_>> {
        self.0.iter_mut().map(LaneStack::lend)
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        idle.append(&mut self.0);
        let kept = idle.len().min(KEPT);
        let surplus = idle.split_off(kept);
        drop(idle);
        drop(surplus);
    }
}
