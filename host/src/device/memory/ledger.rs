//! The account of a device's bytes: what is held, by how many buffers, and how much may be.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use super::evict::{Evictable, EvictionPolicy};
use super::pool::Pool;
use super::{KEPT_BYTES, MemoryOptions, default_pinned_bytes};
use crate::device::{DeviceError, Holder, Holding, MemoryInfo, Usage};
use crate::parallel::locked;

/// Sizes that [`Holding`] lists.
const LISTED: usize = 4;
/// No limit: more than any device has.
const UNLIMITED: usize = usize::MAX;

/// What every allocation of one device passes through. Clones are the same account.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger(Arc<Account>);

struct Account {
    limit: AtomicUsize,
    /// Page-locked host memory: what may be, and is, held.
    pinned_limit: AtomicUsize,
    pinned: AtomicUsize,
    /// Bytes of others' memory.
    lent: AtomicUsize,
    /// Who gives memory back where there is no room, and in which order.
    evictables: Mutex<Vec<Weak<dyn Evictable>>>,
    policy: Mutex<EvictionPolicy>,
    evictions: AtomicU64,
    evicted: AtomicU64,
    /// Uses of evictable blocks so far.
    clock: AtomicU64,
    /// The operation that is to fail, counted from now; 0 for none.
    fails_after: AtomicU64,
    live: AtomicUsize,
    /// Bytes of all blocks: those of buffers, and those that are kept for the next ones.
    reserved: AtomicUsize,
    /// Freed blocks, and how much of them is kept: as requested, and where nothing is.
    pool: Mutex<Pool>,
    kept_limit: AtomicUsize,
    usual_kept: AtomicUsize,
    reused: AtomicU64,
    peak: AtomicUsize,
    allocations: AtomicU64,
    refused: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    /// Allocations that are held, by their bytes.
    sizes: Mutex<BTreeMap<usize, usize>>,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Account({} bytes held)",
            self.live.load(Ordering::Relaxed)
        )
    }
}

impl Default for Account {
    fn default() -> Account {
        Account {
            limit: AtomicUsize::new(UNLIMITED),
            pinned_limit: AtomicUsize::new(UNLIMITED),
            pinned: AtomicUsize::default(),
            lent: AtomicUsize::default(),
            evictables: Mutex::default(),
            policy: Mutex::default(),
            evictions: AtomicU64::default(),
            evicted: AtomicU64::default(),
            clock: AtomicU64::default(),
            fails_after: AtomicU64::default(),
            live: AtomicUsize::default(),
            reserved: AtomicUsize::default(),
            pool: Mutex::default(),
            kept_limit: AtomicUsize::new(UNLIMITED),
            usual_kept: AtomicUsize::new(KEPT_BYTES),
            reused: AtomicU64::default(),
            peak: AtomicUsize::default(),
            allocations: AtomicU64::default(),
            refused: AtomicU64::default(),
            sent: AtomicU64::default(),
            received: AtomicU64::default(),
            sizes: Mutex::default(),
        }
    }
}

impl Ledger {
    /// An account that keeps this many bytes of freed blocks, where the options say nothing else.
    #[cfg(feature = "cuda")]
    pub(crate) fn keeping(bytes: usize) -> Ledger {
        let ledger = Ledger::default();
        ledger.0.usual_kept.store(bytes, Ordering::Relaxed);
        ledger
    }

    /// Sets what may be held from now on; what buffers hold stays, and kept blocks go as far as needed.
    pub(crate) fn limit(&self, options: MemoryOptions) {
        let limit = options.limit_bytes.unwrap_or(UNLIMITED);
        self.0.limit.store(limit, Ordering::Relaxed);
        let pinned = options.pinned_bytes.unwrap_or(UNLIMITED);
        self.0.pinned_limit.store(pinned, Ordering::Relaxed);
        *locked(&self.0.policy) = options.eviction;
        let kept = options.kept_bytes.unwrap_or(UNLIMITED);
        self.0.kept_limit.store(kept, Ordering::Relaxed);
        self.trim(self.reserved().saturating_sub(limit));
        self.trim_to(self.most_kept());
    }

    /// Whether a buffer of this size may stay while nobody needs it, since to make one takes as long as a short launch: not a
    /// large one, nor one that counts in what a limit leaves.
    pub(crate) fn keeps_idle(&self, bytes: usize) -> bool {
        const MOST: usize = 16 << 20;
        const OF_LIMIT: usize = 64;
        let limit = self.options().limit_bytes;
        bytes <= limit.map_or(MOST, |limit| MOST.min(limit / OF_LIMIT))
    }

    /// What may be held.
    pub(crate) fn options(&self) -> MemoryOptions {
        let known = |limit: &AtomicUsize| {
            let limit = limit.load(Ordering::Relaxed);
            (limit != UNLIMITED).then_some(limit)
        };
        MemoryOptions {
            limit_bytes: known(&self.0.limit),
            pinned_bytes: known(&self.0.pinned_limit),
            kept_bytes: known(&self.0.kept_limit),
            eviction: *locked(&self.0.policy),
        }
    }

    /// Most bytes of freed blocks that are kept.
    pub(super) fn most_kept(&self) -> usize {
        let usual = self.0.usual_kept.load(Ordering::Relaxed);
        self.options().kept_bytes.unwrap_or(usual)
    }

    /// The freed blocks; a panic elsewhere cannot leave them half-changed.
    pub(super) fn pool(&self) -> MutexGuard<'_, Pool> {
        locked(&self.0.pool)
    }

    /// Bytes of all blocks, the kept ones too.
    pub(super) fn reserved(&self) -> usize {
        self.0.reserved.load(Ordering::Relaxed)
    }

    /// Whether what is reserved is within the limit, and whether there is one.
    pub(super) fn limits(&self) -> (bool, bool) {
        let limit = self.0.limit.load(Ordering::Relaxed);
        (self.reserved() <= limit, limit != UNLIMITED)
    }

    /// [`Ledger::hold`], which frees kept blocks, and then has others give memory back, where the bytes exceed the
    /// limit.
    pub(super) fn hold_or_evict(&self, bytes: usize) -> Option<Held> {
        loop {
            if let Some(held) = self.try_hold(bytes) {
                return Some(held);
            }
            let limit = self.0.limit.load(Ordering::Relaxed);
            let over = self.reserved().saturating_add(bytes).saturating_sub(limit);
            // What could not be freed altogether is not freed in part.
            if bytes > limit || (self.trim(over) == 0 && self.make_room(over) == 0) {
                self.refuse();
                return None;
            }
        }
    }

    /// Frees this many bytes if they can be freed; returns how many were.
    pub(crate) fn make_room(&self, needed: usize) -> usize {
        let holders: Vec<Arc<dyn Evictable>> = {
            let mut all = locked(&self.0.evictables);
            all.retain(|one| one.strong_count() > 0);
            all.iter().filter_map(Weak::upgrade).collect()
        };
        let of = |(holder, one): (usize, &Arc<dyn Evictable>)| {
            let blocks = one.candidates().into_iter();
            blocks.map(move |block| (holder, block)).collect::<Vec<_>>()
        };
        let blocks: Vec<_> = holders.iter().enumerate().flat_map(of).collect();
        let candidates: Vec<_> = blocks.iter().map(|(_, block)| *block).collect();
        let policy = *locked(&self.0.policy);
        let mut freed = 0;
        for at in policy.choose(&candidates, needed) {
            let (holder, block) = blocks[at];
            let bytes = holders[holder].evict(block.number);
            self.0
                .evictions
                .fetch_add(u64::from(bytes > 0), Ordering::Relaxed);
            self.0.evicted.fetch_add(bytes as u64, Ordering::Relaxed);
            freed += bytes;
        }
        freed
    }

    /// Asks `holder` for memory when there is no room, for as long as it exists.
    pub(crate) fn register(&self, holder: Weak<dyn Evictable>) {
        locked(&self.0.evictables).push(holder);
    }

    /// Has one operation fail, or none; returns what was requested before and has not come.
    pub(crate) fn fail_after(&self, operations: Option<u64>) -> Option<u64> {
        let left = &self.0.fails_after;
        let before = left.swap(operations.unwrap_or(0), Ordering::Relaxed);
        (before > 0).then_some(before)
    }

    /// Whether this operation is the one that is to fail.
    pub(crate) fn fails(&self) -> bool {
        let left = &self.0.fails_after;
        left.load(Ordering::Relaxed) > 0 && left.fetch_sub(1, Ordering::Relaxed) == 1
    }

    /// The error of a copy or launch that is to fail.
    pub(crate) fn check(&self, what: &'static str) -> Result<(), DeviceError> {
        match self.fails() {
            true => Err(DeviceError::Injected { what }),
            false => Ok(()),
        }
    }

    /// The number of a use of an evictable block: later ones have larger numbers.
    pub(crate) fn tick(&self) -> u64 {
        self.0.clock.fetch_add(1, Ordering::Relaxed)
    }

    /// Bytes that could still be held; `None` without a limit.
    pub(crate) fn left(&self) -> Option<usize> {
        let limit = self.options().limit_bytes?;
        let taken = self.reserved().saturating_sub(self.freeable());
        Some(limit.saturating_sub(taken))
    }

    /// Counts page-locked bytes until the returned value is dropped.
    pub(crate) fn pin(&self, bytes: usize) -> Result<PinnedHeld, DeviceError> {
        if self.fails() {
            return Err(self.no_pinned(bytes));
        }
        let limit = match self.0.pinned_limit.load(Ordering::Relaxed) {
            UNLIMITED => default_pinned_bytes(),
            limit => limit,
        };
        let with = |live: usize| live.checked_add(bytes).filter(|sum| *sum <= limit);
        let pinned = &self.0.pinned;
        match pinned.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with) {
            Ok(_) => Ok(PinnedHeld {
                ledger: self.clone(),
                bytes,
            }),
            Err(_) => Err(self.no_pinned(bytes)),
        }
    }

    /// The count of bytes of others' memory.
    pub(super) fn lent(&self) -> &AtomicUsize {
        &self.0.lent
    }

    /// The error of page-locked memory that cannot be had.
    pub(crate) fn no_pinned(&self, requested: usize) -> DeviceError {
        let limit = self
            .options()
            .pinned_bytes
            .unwrap_or_else(default_pinned_bytes);
        let live = self.0.pinned.load(Ordering::Relaxed);
        DeviceError::OutOfMemory {
            device: "the host, page-locked".to_owned(),
            requested,
            free: limit.saturating_sub(live),
            total: limit,
            held: Box::new(Holding {
                live_bytes: live,
                limit_bytes: Some(limit),
                largest: Vec::new(),
            }),
        }
    }

    /// Counts `bytes` as held until the returned value is dropped; `None` where they exceed the limit. To be called
    /// before the memory is requested: then no other thread can get between.
    #[cfg(test)]
    pub(crate) fn hold(&self, bytes: usize) -> Option<Held> {
        let held = self.try_hold(bytes);
        if held.is_none() {
            self.refuse();
        }
        held
    }

    fn try_hold(&self, bytes: usize) -> Option<Held> {
        let limit = self.0.limit.load(Ordering::Relaxed);
        let with = |sum: usize| sum.checked_add(bytes).filter(|sum| *sum <= limit);
        let reserved = &self.0.reserved;
        let fits = reserved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with);
        fits.is_ok().then(|| self.held(bytes, bytes))
    }

    /// Counts `bytes` as held, in a block of `block` bytes that is reserved already.
    pub(super) fn held(&self, bytes: usize, block: usize) -> Held {
        let before = self.0.live.fetch_add(bytes, Ordering::Relaxed);
        self.0.peak.fetch_max(before + bytes, Ordering::Relaxed);
        self.0.allocations.fetch_add(1, Ordering::Relaxed);
        *self.sizes().entry(bytes).or_default() += 1;
        Held {
            ledger: self.clone(),
            bytes,
            block,
        }
    }

    /// Counts a buffer that got a kept block.
    pub(super) fn reused(&self) {
        self.0.reused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts bytes of blocks as freed.
    pub(super) fn give_back(&self, block: usize) {
        self.0.reserved.fetch_sub(block, Ordering::Relaxed);
    }

    /// Counts an allocation that there was no memory for.
    pub(crate) fn refuse(&self) {
        self.0.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts bytes copied from the host.
    pub(crate) fn sent(&self, bytes: usize) {
        self.0.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts bytes copied to the host.
    pub(crate) fn received(&self, bytes: usize) {
        self.0.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The figures at this moment.
    pub(crate) fn usage(&self) -> Usage {
        let live = self.0.live.load(Ordering::Relaxed);
        Usage {
            live_bytes: live,
            kept_bytes: self.reserved().saturating_sub(live),
            peak_bytes: self.0.peak.load(Ordering::Relaxed),
            sent_bytes: self.0.sent.load(Ordering::Relaxed),
            received_bytes: self.0.received.load(Ordering::Relaxed),
            allocations: self.0.allocations.load(Ordering::Relaxed),
            reused: self.0.reused.load(Ordering::Relaxed),
            refused: self.0.refused.load(Ordering::Relaxed),
            evictions: self.0.evictions.load(Ordering::Relaxed),
            evicted_bytes: self.0.evicted.load(Ordering::Relaxed),
            pinned_bytes: self.0.pinned.load(Ordering::Relaxed),
            lent_bytes: self.0.lent.load(Ordering::Relaxed),
        }
    }

    /// The error of an allocation that does not fit; `info` says what `device` has, where there is no limit.
    pub(crate) fn shortage(&self, device: &str, requested: usize, info: MemoryInfo) -> DeviceError {
        let held = self.holding();
        let (free, total) = match held.limit_bytes {
            Some(limit) => (limit.saturating_sub(held.live_bytes), limit),
            None => (info.free_bytes, info.total_bytes),
        };
        DeviceError::OutOfMemory {
            device: device.to_owned(),
            requested,
            free,
            total,
            held: Box::new(held),
        }
    }

    /// Who holds the bytes, for an error.
    pub(crate) fn holding(&self) -> Holding {
        let sizes = self.sizes();
        let mut largest: Vec<Holder> = sizes
            .iter()
            .map(|(bytes, count)| Holder {
                bytes: *bytes,
                count: *count,
            })
            .collect();
        largest.sort_by_key(|holder| std::cmp::Reverse(holder.bytes.saturating_mul(holder.count)));
        largest.truncate(LISTED);
        Holding {
            live_bytes: self.0.live.load(Ordering::Relaxed),
            limit_bytes: self.options().limit_bytes,
            largest,
        }
    }

    /// The counts of sizes; a panic elsewhere cannot leave a count half-written.
    fn sizes(&self) -> MutexGuard<'_, BTreeMap<usize, usize>> {
        locked(&self.0.sizes)
    }

    fn release(&self, bytes: usize) {
        self.0.live.fetch_sub(bytes, Ordering::Relaxed);
        let mut sizes = self.sizes();
        let count = sizes.entry(bytes).or_default();
        *count = count.saturating_sub(1);
        if *count == 0 {
            sizes.remove(&bytes);
        }
    }
}

/// Page-locked bytes counted for as long as this value exists.
#[derive(Debug)]
pub(crate) struct PinnedHeld {
    ledger: Ledger,
    bytes: usize,
}

impl Drop for PinnedHeld {
    fn drop(&mut self) {
        let pinned = &self.ledger.0.pinned;
        pinned.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Bytes counted as held for as long as this value exists.
#[derive(Debug)]
pub(crate) struct Held {
    ledger: Ledger,
    bytes: usize,
    /// Of the block that they lie in.
    block: usize,
}

impl Held {
    /// Bytes of the block.
    pub(super) fn block(&self) -> usize {
        self.block
    }

    /// [`Ledger::most_kept`].
    pub(super) fn most_kept(&self) -> usize {
        self.ledger.most_kept()
    }

    /// Counts the bytes as held no longer, but their block as reserved; returns its bytes.
    pub(super) fn leave(mut self) -> (Ledger, usize) {
        (self.ledger.clone(), std::mem::take(&mut self.block))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.ledger.release(self.bytes);
        self.ledger.give_back(self.block);
    }
}

#[cfg(test)]
mod tests;
