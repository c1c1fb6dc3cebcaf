//! Atomic additions by address: where lanes queue up.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

/// Addresses that a printout or a serialised profile names.
const NAMED: usize = 8;

/// Atomic additions to words of global memory.
///
/// Serialised are the sums and the addresses with most additions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Atomics(BTreeMap<(String, u64), u64>);

/// An address and its additions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AtomicCount {
    /// The buffer's name.
    pub buffer: String,
    /// Element of the buffer, counted from its start.
    pub index: u64,
    /// Additions.
    pub count: u64,
}

impl Atomics {
    pub(in super::super) fn add(&mut self, buffer: &str, index: u64, count: u64) {
        *self.0.entry((buffer.to_owned(), index)).or_default() += count;
    }

    pub(super) fn merge(&mut self, other: Atomics) {
        for (address, count) in other.0 {
            *self.0.entry(address).or_default() += count;
        }
    }

    /// All additions.
    pub fn additions(&self) -> u64 {
        self.0.values().sum()
    }

    /// Different addresses.
    pub fn addresses(&self) -> usize {
        self.0.len()
    }

    /// The `limit` addresses with most additions, most first.
    pub fn hottest(&self, limit: usize) -> Vec<AtomicCount> {
        let mut all: Vec<_> = self.0.iter().collect();
        // Stable: equal counts stay in the order of their addresses.
        all.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let named = all.into_iter().take(limit);
        named
            .map(|((buffer, index), count)| AtomicCount {
                buffer: buffer.clone(),
                index: *index,
                count: *count,
            })
            .collect()
    }

    /// Those that a printout names.
    pub(super) fn named(&self) -> Vec<AtomicCount> {
        self.hottest(NAMED)
    }
}

impl Serialize for Atomics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Summary {
            additions: u64,
            addresses: usize,
            hottest: Vec<AtomicCount>,
        }
        let summary = Summary {
            additions: self.additions(),
            addresses: self.addresses(),
            hottest: self.named(),
        };
        summary.serialize(serializer)
    }
}
