//! Counting of a device's live and peak bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that buffers of a device hold.
///
/// Padding is counted; memory that the driver takes for itself is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Bytes held now.
    pub live_bytes: usize,
    /// Most bytes ever held at once.
    pub peak_bytes: usize,
}

/// The shared counter behind [`Usage`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Counter(Arc<Cells>);

#[derive(Debug, Default)]
struct Cells {
    live: AtomicUsize,
    peak: AtomicUsize,
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

    /// The figures at this moment.
    pub(crate) fn usage(&self) -> Usage {
        Usage {
            live_bytes: self.0.live.load(Ordering::Relaxed),
            peak_bytes: self.0.peak.load(Ordering::Relaxed),
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
        assert_eq!(
            counter.usage(),
            Usage {
                live_bytes: 120,
                peak_bytes: 150
            }
        );
        drop((first, second));
        assert_eq!(
            counter.usage(),
            Usage {
                live_bytes: 0,
                peak_bytes: 150
            }
        );
    }
}
