//! Memory that somebody else owns: counted apart, under no limit, and never freed here.

use std::sync::atomic::Ordering;

use super::{Ledger, Token};

/// Lent bytes counted for as long as this value exists.
#[derive(Debug)]
pub(crate) struct LentHeld {
    ledger: Ledger,
    bytes: usize,
}

/// How an account counts memory, for as long as this value exists.
#[derive(Debug)]
pub(crate) enum Counted {
    /// As the device's own.
    Own(#[expect(dead_code, reason = "counts until it is dropped")] Token),
    /// As somebody else's.
    Lent(#[expect(dead_code, reason = "counts until it is dropped")] LentHeld),
}

impl Ledger {
    /// Counts bytes of others' memory until the returned value is dropped. No limit holds for them: they are there already.
    pub(crate) fn lend(&self, bytes: usize) -> LentHeld {
        self.lent().fetch_add(bytes, Ordering::Relaxed);
        LentHeld {
            ledger: self.clone(),
            bytes,
        }
    }
}

impl Drop for LentHeld {
    fn drop(&mut self) {
        self.ledger.lent().fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::MemoryOptions;

    #[test]
    fn lent_bytes_are_counted_apart_and_know_no_limit() {
        let ledger = Ledger::default();
        ledger.limit(MemoryOptions::limited(10));
        let (first, second) = (ledger.lend(1_000), ledger.lend(1));
        let counts = || (ledger.usage().lent_bytes, ledger.usage().live_bytes);
        assert_eq!(counts(), (1_001, 0));
        drop(first);
        assert_eq!(counts(), (1, 0));
        drop(second);
        assert_eq!(counts(), (0, 0));
    }
}
