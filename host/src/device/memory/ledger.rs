//! The account of a device's bytes: what is held, by how many buffers, and how much may be.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::MemoryOptions;
use crate::device::{DeviceError, Holder, Holding, MemoryInfo, Usage};

/// Sizes that [`Holding`] lists.
const LISTED: usize = 4;
/// No limit: more than any device has.
const UNLIMITED: usize = usize::MAX;

/// What every allocation of one device passes through. Clones are the same account.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger(Arc<Account>);

#[derive(Debug)]
struct Account {
    limit: AtomicUsize,
    live: AtomicUsize,
    peak: AtomicUsize,
    allocations: AtomicU64,
    refused: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    /// Allocations that are held, by their bytes.
    sizes: Mutex<BTreeMap<usize, usize>>,
}

impl Default for Account {
    fn default() -> Account {
        Account {
            limit: AtomicUsize::new(UNLIMITED),
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
    }

    /// What may be held.
    pub(crate) fn options(&self) -> MemoryOptions {
        let limit = self.0.limit.load(Ordering::Relaxed);
        MemoryOptions {
            limit_bytes: (limit != UNLIMITED).then_some(limit),
        }
    }

    /// Counts `bytes` as held until the returned value is dropped; `None` where they exceed the limit. To be called before
    /// the memory is asked for: then no other thread can get between.
    pub(crate) fn hold(&self, bytes: usize) -> Option<Held> {
        let limit = self.0.limit.load(Ordering::Relaxed);
        let with = |live: usize| live.checked_add(bytes).filter(|sum| *sum <= limit);
        let before = self
            .0
            .live
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, with);
        let Ok(before) = before else {
            self.refuse();
            return None;
        };
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
        self.0.sizes.lock().unwrap_or_else(PoisonError::into_inner)
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
