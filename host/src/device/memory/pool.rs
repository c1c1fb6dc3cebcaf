//! Freed blocks, kept for the next buffers.
//!
//! A solver makes and drops buffers of the same few sizes again and again. A driver takes longer to free and
//! allocate one than many kernels run, and waits for all of them first. So a freed block stays reserved, and the
//! next buffer of about its size gets it. On a GPU nobody waits: whatever still runs on the block was submitted to
//! the device's one stream before, and whatever the next buffer is used for comes after it. Memory that other
//! streams may use is not kept, unless whoever submitted to them has waited: blocks of a
//! [`feed`](crate::device::feed) and of an [exchange](crate::device::exchange) are dropped after their copies
//! ended, and blocks whose address was given away are freed.
//!
//! Kept blocks count against the limit. They go, the one first that was freed first, where there are more of them than
//! [`MemoryOptions::kept_bytes`](super::MemoryOptions::kept_bytes), where a buffer would exceed the limit, and where the
//! driver has no more.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};

use super::ledger::{Held, Ledger};

/// Blocks up to this many bytes longer than requested serve: the driver hands memory out in such pieces.
const SLACK_BYTES: usize = 512;
/// Or by this part of the request.
const SLACK_PART: usize = 8;

/// Which kept blocks serve a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// Those of as many bytes, no others.
    Exact,
    /// Those of up to an eighth more, where there is no limit: with one, what fits must not depend on what was
    /// freed before.
    Near,
}

/// Freed blocks by their bytes, those of one size in the order in which they were freed.
#[derive(Default)]
pub(super) struct Pool {
    classes: BTreeMap<usize, VecDeque<Kept>>,
    bytes: usize,
    /// Blocks freed so far.
    clock: u64,
}

struct Kept {
    block: Box<dyn Any + Send>,
    freed: u64,
}

impl Pool {
    fn put(&mut self, block: Box<dyn Any + Send>, bytes: usize) {
        self.clock += 1;
        let freed = self.clock;
        let class = self.classes.entry(bytes).or_default();
        class.push_back(Kept { block, freed });
        self.bytes += bytes;
    }

    /// The smallest block of at least `bytes` and at most `most`, of several the one that was freed last.
    fn take(&mut self, bytes: usize, most: usize) -> Option<(Box<dyn Any + Send>, usize)> {
        let (&size, class) = self.classes.range_mut(bytes..=most).next()?;
        let kept = class.pop_back()?;
        self.forget(size);
        Some((kept.block, size))
    }

    /// The block that was freed first.
    fn oldest(&mut self) -> Option<(Box<dyn Any + Send>, usize)> {
        let freed = |class: &VecDeque<Kept>| class.front().map(|kept| kept.freed);
        let by_age = self.classes.iter().min_by_key(|(_, class)| freed(class));
        let size = *by_age?.0;
        let kept = self.classes.get_mut(&size)?.pop_front()?;
        self.forget(size);
        Some((kept.block, size))
    }

    fn forget(&mut self, size: usize) {
        self.bytes -= size;
        if self.classes.get(&size).is_some_and(VecDeque::is_empty) {
            self.classes.remove(&size);
        }
    }
}

impl Ledger {
    /// Counts `bytes` as held: in a kept block, which is returned with them, or else below the limit, with memory
    /// that is yet to be requested. `None` where there is no room. To be called before memory is requested: then no
    /// other thread can get between.
    pub(crate) fn claim<B: Send + 'static>(
        &self,
        bytes: usize,
        fit: Fit,
    ) -> Option<(Held, Option<B>)> {
        if self.fails() {
            self.refuse();
            return None;
        }
        if let Some((block, size)) = self.take(bytes, fit) {
            return Some((self.held(bytes, size), Some(block)));
        }
        Some((self.hold_or_evict(bytes)?, None))
    }

    fn take<B: Send + 'static>(&self, bytes: usize, fit: Fit) -> Option<(B, usize)> {
        let (fits, limited) = self.limits();
        if bytes == 0 || !fits {
            return None;
        }
        let slack = match (fit, limited) {
            (Fit::Near, false) => SLACK_BYTES.max(bytes / SLACK_PART),
            _ => 0,
        };
        let (block, size) = self.pool().take(bytes, bytes.saturating_add(slack))?;
        self.reused();
        let block = block.downcast().expect("blocks of one kind on a device");
        Some((*block, size))
    }

    /// Frees kept blocks, those first that were freed first, until there are so many bytes less, or none is left;
    /// returns how many there are less.
    pub(crate) fn trim(&self, needed: usize) -> usize {
        let mut freed = 0;
        while freed < needed {
            // The lock is not held while the driver waits.
            let Some((block, size)) = self.oldest() else {
                break;
            };
            drop(block);
            self.give_back(size);
            freed += size;
        }
        freed
    }

    /// Bytes of kept blocks.
    pub(crate) fn freeable(&self) -> usize {
        self.pool().bytes
    }

    /// Frees kept blocks down to so many bytes.
    pub(super) fn trim_to(&self, most: usize) {
        self.trim(self.freeable().saturating_sub(most));
    }

    /// Frees what can be freed for a request that the driver has no memory for; returns the bytes.
    #[cfg(any(feature = "cuda", test))]
    pub(crate) fn free_for(&self, requested: usize) -> usize {
        match self.trim(usize::MAX) {
            0 => {
                let freed = self.make_room(requested);
                self.trim(usize::MAX);
                freed
            }
            kept => kept,
        }
    }

    fn oldest(&self) -> Option<(Box<dyn Any + Send>, usize)> {
        self.pool().oldest()
    }
}

impl Held {
    /// Keeps the block that the bytes lay in for the next buffers, instead of freeing it; frees it where it is more
    /// than is kept.
    pub(crate) fn keep<B: Send + 'static>(self, block: B) {
        let most = self.most_kept();
        if self.block() == 0 || self.block() > most {
            // In this order: what is free is freed before it is counted so.
            drop(block);
            return;
        }
        let (ledger, bytes) = self.leave();
        ledger.pool().put(Box::new(block), bytes);
        ledger.trim_to(most);
    }
}

/// Bytes held whose block is worth nothing: only its account is kept. On an emulator, where every buffer is memory
/// of its own, so that what it finds (reads before writes, uses after frees) is found whatever was kept.
#[derive(Debug)]
pub(crate) struct Token(Option<Held>);

impl Token {
    pub(crate) fn of(held: Held) -> Token {
        Token(Some(held))
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        if let Some(held) = self.0.take() {
            held.keep(());
        }
    }
}

#[cfg(test)]
mod tests;
