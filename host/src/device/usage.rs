//! Counting of the bytes that a device holds, and that are copied to and from it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Bytes that buffers of a device hold, and that crossed between them and the host.
///
/// Padding is held but does not cross; memory that the driver takes for itself is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Bytes held now.
    pub live_bytes: usize,
    /// Most bytes ever held at once.
    pub peak_bytes: usize,
    /// Bytes copied from the host so far.
    pub sent_bytes: u64,
    /// Bytes copied to the host so far.
    pub received_bytes: u64,
}

/// The shared counter behind [`Usage`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Counter(Arc<Cells>);

#[derive(Debug, Default)]
struct Cells {
    live: AtomicUsize,
    peak: AtomicUsize,
    sent: AtomicU64,
    received: AtomicU64,
}

impl Counter {
    /// Counts `bytes` until the returned value is dropped.
    pub(crate) fn hold(&self, bytes: usize) -> Held {
        let live = self.0.live.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.0.peak.fetch_max(live, Ordering::Relaxed);
        Held {
            counter: self.clone(),
            bytes,
        }
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
        }
    }
}

/// Bytes counted as live for as long as this value exists.
#[derive(Debug)]
pub(crate) struct Held {
    counter: Counter,
    bytes: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.counter.0.live.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_outlives_what_was_held() {
        let counter = Counter::default();
        let first = counter.hold(100);
        drop(counter.hold(50));
        let second = counter.hold(20);
        let held = |usage: Usage| (usage.live_bytes, usage.peak_bytes);
        assert_eq!(held(counter.usage()), (120, 150));
        drop((first, second));
        assert_eq!(held(counter.usage()), (0, 150));
    }

    #[test]
    fn copies_are_counted_each_way() {
        let counter = Counter::default();
        counter.sent(7);
        counter.sent(1);
        counter.received(3);
        let usage = counter.usage();
        assert_eq!((usage.sent_bytes, usage.received_bytes), (8, 3));
    }
}
