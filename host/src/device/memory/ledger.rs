//! The account of a device's bytes: what is held, by how many buffers, and how much may be.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use super::evict::{Evictable, EvictionPolicy};
use super::{MemoryOptions, default_pinned_bytes};
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
    /// Sets what may be held from now on; what is held stays.
    pub(crate) fn limit(&self, options: MemoryOptions) {
        let limit = options.limit_bytes.unwrap_or(UNLIMITED);
        self.0.limit.store(limit, Ordering::Relaxed);
        let pinned = options.pinned_bytes.unwrap_or(UNLIMITED);
        self.0.pinned_limit.store(pinned, Ordering::Relaxed);
        *locked(&self.0.policy) = options.eviction;
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
            eviction: *locked(&self.0.policy),
        }
    }

    /// [`Ledger::hold`], which gives memory back where the bytes exceed the limit.
    pub(crate) fn hold_or_evict(&self, bytes: usize) -> Option<Held> {
        if self.fails() {
            self.refuse();
            return None;
        }
        loop {
            if let Some(held) = self.try_hold(bytes) {
                return Some(held);
            }
            let limit = self.0.limit.load(Ordering::Relaxed);
            let wanted = self.0.live.load(Ordering::Relaxed).saturating_add(bytes);
            // What could not be freed altogether is not freed in part.
            if bytes > limit || self.make_room(wanted.saturating_sub(limit)) == 0 {
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
        Some(limit.saturating_sub(self.0.live.load(Ordering::Relaxed)))
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

    /// Counts `bytes` as held until the returned value is dropped; `None` where they exceed the limit. To be called before
    /// the memory is requested: then no other thread can get between.
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
        let with = |live: usize| live.checked_add(bytes).filter(|sum| *sum <= limit);
        let before = self
            .0
            .live
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, with);
        let before = before.ok()?;
        self.0.peak.fetch_max(before + bytes, Ordering::Relaxed);
        self.0.allocations.fetch_add(1, Ordering::Relaxed);
        *self.sizes().entry(bytes).or_default() += 1;
        Some(Held {
            ledger: self.clone(),
            bytes,
        })
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
        Usage {
            live_bytes: self.0.live.load(Ordering::Relaxed),
            peak_bytes: self.0.peak.load(Ordering::Relaxed),
            sent_bytes: self.0.sent.load(Ordering::Relaxed),
            received_bytes: self.0.received.load(Ordering::Relaxed),
            allocations: self.0.allocations.load(Ordering::Relaxed),
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
}

impl Drop for Held {
    fn drop(&mut self) {
        self.ledger.release(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limited(bytes: usize) -> Ledger {
        let ledger = Ledger::default();
        ledger.limit(MemoryOptions::limited(bytes));
        ledger
    }

    #[test]
    fn the_peak_outlives_what_was_held() {
        let ledger = Ledger::default();
        let first = ledger.hold(100);
        drop(ledger.hold(50));
        let second = ledger.hold(20);
        let held = |usage: Usage| (usage.live_bytes, usage.peak_bytes, usage.allocations);
        assert_eq!(held(ledger.usage()), (120, 150, 3));
        drop((first, second));
        assert_eq!(held(ledger.usage()), (0, 150, 3));
    }

    #[test]
    fn copies_are_counted_each_way() {
        let ledger = Ledger::default();
        ledger.sent(7);
        ledger.sent(1);
        ledger.received(3);
        let usage = ledger.usage();
        assert_eq!((usage.sent_bytes, usage.received_bytes), (8, 3));
    }

    #[test]
    fn a_refusal_names_the_largest_holders_and_leaves_the_account_as_it_was() {
        let ledger = limited(100);
        let held: Vec<_> = [30, 10, 30, 5].map(|bytes| ledger.hold(bytes)).into();
        assert!(ledger.hold(26).is_none());
        assert!(ledger.hold(usize::MAX).is_none());
        let text = ledger.holding().to_string();
        assert_eq!(
            text,
            "75 of at most 100 bytes are held, by 2 of 30 bytes, 1 of 10 bytes and 1 of 5 bytes"
        );
        assert!(ledger.hold(25).is_some());
        drop(held);
        assert_eq!((ledger.usage().live_bytes, ledger.usage().refused), (0, 2));
        assert_eq!(
            ledger.holding().to_string(),
            "0 of at most 100 bytes are held"
        );
    }

    #[test]
    fn a_lower_limit_refuses_until_enough_is_freed() {
        let ledger = limited(100);
        let held = ledger.hold(80);
        ledger.limit(MemoryOptions::limited(50));
        assert!(ledger.hold(1).is_none());
        drop(held);
        assert!(ledger.hold(50).is_some());
        ledger.limit(MemoryOptions::default());
        assert!(ledger.hold(1 << 40).is_some());
    }

    #[test]
    fn threads_never_exceed_the_limit_together() {
        use rayon::prelude::*;
        let ledger = limited(1_000);
        (0..10_000_usize).into_par_iter().for_each(|at| {
            let held = ledger.hold(at % 400);
            assert!(ledger.usage().live_bytes <= 1_000);
            drop(held);
        });
        assert_eq!(ledger.usage().live_bytes, 0);
        assert!(ledger.usage().peak_bytes <= 1_000);
        assert!(ledger.holding().largest.is_empty());
    }

    proptest! {
        /// Beside a list of what is held.
        #[test]
        fn the_account_agrees_with_a_plain_list(
            limit in 0_usize..2_000,
            steps in prop::collection::vec((any::<bool>(), 0_usize..600), 0..200),
        ) {
            let ledger = limited(limit);
            let (mut held, mut bytes, mut peak) = (Vec::new(), 0, 0);
            for (allocates, size) in steps {
                if !allocates && !held.is_empty() {
                    let (_, freed): (Held, usize) = held.swap_remove(size % held.len());
                    bytes -= freed;
                } else if let Some(new) = ledger.hold(size) {
                    prop_assert!(bytes + size <= limit);
                    held.push((new, size));
                    bytes += size;
                } else {
                    prop_assert!(bytes + size > limit);
                }
                peak = peak.max(bytes);
                prop_assert_eq!(ledger.usage().live_bytes, bytes);
                prop_assert_eq!(ledger.usage().peak_bytes, peak);
            }
            drop(held);
            prop_assert_eq!(ledger.usage().live_bytes, 0);
        }
    }
}
