//! Who gives memory back where there is no room, and in which order.

/// Something that holds device memory of which the host has the contents, block by block.
pub(crate) trait Evictable: Send + Sync {
    /// The blocks that could be given back now: none that submitted work still reads.
    fn candidates(&self) -> Vec<Candidate>;

    /// Gives a block back; returns its bytes, or 0 where it is in use by now.
    fn evict(&self, number: usize) -> usize;
}

/// A block that could be given back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Its number among those of its holder.
    pub number: usize,
    /// Its bytes.
    pub bytes: usize,
    /// When it was last used, in uses of the device's blocks.
    pub last_use: u64,
    /// Seconds to bring its contents back.
    pub restore_seconds: f64,
    /// When it is used next, as whoever reads it has announced.
    pub next_use: NextUse,
}

/// When a block is used next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum NextUse {
    /// After this many blocks of its holder.
    After(u64),
    /// Nobody has said.
    #[default]
    Unknown,
    /// Not again: all passes that were announced have read it.
    Never,
}

/// Which blocks are given back first.
///
/// Passes over X in a cycle would defeat [`EvictionPolicy::LeastRecentlyUsed`] if a block that was given back took the
/// place of another when it is next read. It does not: it streams from then on, and the others stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum EvictionPolicy {
    /// The one that was not used for longest.
    LeastRecentlyUsed,
    /// One that is not used again, if solvers have announced how often they read X and some have done. Else the one that
    /// takes fewest seconds to bring back for each byte that is freed; of those the one whose next use is farthest, and
    /// then the least recently used.
    #[default]
    CostAware,
}

impl EvictionPolicy {
    /// Places in `candidates` of those to give back, in order, until `needed` bytes are free; all of them where that is
    /// not enough.
    ///
    /// ```
    /// use warpfuse::device::{Candidate, EvictionPolicy, NextUse};
    /// let next_use = NextUse::Unknown;
    /// let block = |number, restore_seconds| Candidate { number, bytes: 100, last_use: 9 - number as u64, restore_seconds, next_use };
    /// let blocks = [block(0, 0.1), block(1, 0.3), block(2, 0.2)];
    /// assert_eq!(EvictionPolicy::LeastRecentlyUsed.choose(&blocks, 150), [2, 1]);
    /// assert_eq!(EvictionPolicy::CostAware.choose(&blocks, 150), [0, 2]);
    /// let done = Candidate { next_use: NextUse::Never, ..blocks[1] };
    /// assert_eq!(EvictionPolicy::CostAware.choose(&[blocks[0], done, blocks[2]], 100), [1]);
    /// ```
    pub fn choose(self, candidates: &[Candidate], needed: usize) -> Vec<usize> {
        let per_byte = |at: &usize| {
            let one = &candidates[*at];
            one.restore_seconds / one.bytes.max(1) as f64
        };
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        // The last blocks of a holder first among equals: what stays is the beginning of X.
        order.sort_by_key(|at| {
            let one = &candidates[*at];
            (one.last_use, std::cmp::Reverse(one.number))
        });
        if self == EvictionPolicy::CostAware {
            let next = |at: &usize| candidates[*at].next_use;
            let is_wanted = |at: &usize| next(at) != NextUse::Never;
            order.sort_by(|a, b| {
                let by_cost = per_byte(a).total_cmp(&per_byte(b));
                let farther = next(b).cmp(&next(a));
                is_wanted(a).cmp(&is_wanted(b)).then(by_cost).then(farther)
            });
        }
        let mut freed = 0;
        let enough = order.iter().position(|at| {
            freed += candidates[*at].bytes;
            freed >= needed
        });
        order.truncate(enough.map_or(candidates.len(), |last| last + 1));
        order
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn enough_is_freed_and_no_more(
            sizes in prop::collection::vec((1_usize..100, 0_u64..9, 0.0_f64..1.0, 0_u64..5), 0..20),
            needed in 0_usize..1_200,
        ) {
            let candidates: Vec<Candidate> = sizes
                .iter()
                .enumerate()
                .map(|(number, &(bytes, last_use, restore_seconds, next))| Candidate {
                    number,
                    bytes,
                    last_use,
                    restore_seconds,
                    next_use: match next {
                        3 => NextUse::Never,
                        4 => NextUse::Unknown,
                        blocks => NextUse::After(blocks),
                    },
                })
                .collect();
            for policy in [EvictionPolicy::LeastRecentlyUsed, EvictionPolicy::CostAware] {
                let chosen = policy.choose(&candidates, needed);
                let bytes = |of: &[usize]| of.iter().map(|at| candidates[*at].bytes).sum::<usize>();
                prop_assert!(bytes(&chosen) >= needed || chosen.len() == candidates.len());
                if let Some((_, before)) = chosen.split_last() {
                    prop_assert!(bytes(before) < needed || before.is_empty());
                }
            }
        }
    }
}
