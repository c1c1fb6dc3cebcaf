//! What outputs take that gather every input by itself, of which there may be tens of millions.

use rayon::prelude::*;

use crate::plan::rates::panels::{ENTRY_FS, SECTOR_FS};

/// Outputs whose cost is kept as one number.
const BLOCK: usize = 1 << 14;

/// A number of entries.
pub(super) trait Count: Copy + Into<u64> + Sync {}

impl Count for u32 {}
impl Count for u64 {}

/// Outputs in the order of their panels, and what they are expected to take, femtoseconds.
pub(super) struct Gathers<'c, C> {
    counts: &'c [C],
    /// What an output takes beside its entries.
    output_fs: u64,
    /// What all blocks before each take, and all together.
    before: Vec<u64>,
    /// The most that one output takes.
    pub(super) heaviest_fs: u64,
}

impl<'c, C: Count> Gathers<'c, C> {
    /// Outputs with this many entries each.
    pub(super) fn of(counts: &'c [C], output_fs: u64) -> Self {
        let blocks = counts.par_chunks(BLOCK);
        let blocks: Vec<(u64, u64)> = blocks
            .map(|block| {
                let each = || block.iter().map(|count| cost_fs(*count, output_fs));
                (each().sum(), each().max().unwrap_or(0))
            })
            .collect();
        let mut before = vec![0];
        for (block_fs, _) in &blocks {
            before.push(before[before.len() - 1] + block_fs);
        }
        Gathers {
            counts,
            output_fs,
            before,
            heaviest_fs: blocks.iter().map(|(_, most)| *most).max().unwrap_or(0),
        }
    }

    /// What all of them take.
    pub(super) fn all_fs(&self) -> u64 {
        self.before.last().copied().unwrap_or(0)
    }

    /// The fewest outputs, from the first on, that take this long.
    pub(super) fn reaching(&self, quota_fs: u64) -> usize {
        let blocks = self.before.partition_point(|before| *before < quota_fs);
        let Some(whole) = blocks.checked_sub(1) else {
            return 0;
        };
        let first = whole * BLOCK;
        let mut taken_fs = self.before[whole];
        let short = self.counts[first.min(self.counts.len())..]
            .iter()
            .take_while(|count| {
                taken_fs += cost_fs(**count, self.output_fs);
                taken_fs < quota_fs
            });
        (first + short.count() + 1).min(self.counts.len())
    }
}

fn cost_fs<C: Count>(entries: C, output_fs: u64) -> u64 {
    entries.into() * (ENTRY_FS + SECTOR_FS) + output_fs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many outputs as a running sum over all of them says, at the ends of blocks and outputs and between them.
    #[test]
    fn quotas_are_reached_where_running_sums_reach_them() {
        for len in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7] {
            let counts: Vec<u32> = (0..len as u32).map(|i| i * 7 % 13).collect();
            let gathers = Gathers::of(&counts, 500);
            let mut sums = vec![0];
            for count in &counts {
                sums.push(sums[sums.len() - 1] + cost_fs(*count, 500));
            }
            let all = sums[len];
            assert_eq!(gathers.all_fs(), all);
            for i in 0..=40 {
                let quota = all * i / 40;
                let expected = sums.partition_point(|before| *before < quota);
                assert_eq!(gathers.reaching(quota), expected, "{quota} of {all}");
            }
            for at in [1, BLOCK, 2 * BLOCK, len] {
                let quota = sums[at.min(len)];
                let expected = sums.partition_point(|before| *before < quota);
                assert_eq!(
                    gathers.reaching(quota),
                    expected,
                    "the sum of {at} of {len}"
                );
            }
        }
    }
}
