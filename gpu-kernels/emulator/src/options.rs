//! How the emulator schedules, what it checks and what it counts.

use serde::{Deserialize, Serialize};

/// In which order blocks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BlockOrder {
    /// Block 0, 1, 2, …
    InOrder,
    /// One after the other, in an order drawn from the seed.
    Shuffled,
    /// Over the threads of rayon's pool. All checks hold; which of several faults is reported, and the
    /// order of atomic additions, may differ between runs.
    Parallel,
}

/// In which order the lanes of a warp, and the warps of a block, get their turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LaneOrder {
    /// Ascending.
    InOrder,
    /// Drawn from the seed, anew for every turn.
    Permuted,
}

/// Where a lane may be interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Preemption {
    /// Only where it waits for others: barriers, shuffles, votes.
    Collectives,
    /// Also before an access, on average once in this many accesses of its block.
    Accesses(u32),
}

/// What is checked at every access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Checks {
    /// Everything.
    All,
    /// Bounds, lifetime, alignment and initialisation, but no data races.
    Memory,
}

/// Whether accesses are counted for the [`Profile`](super::Profile).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Counting {
    /// Only lane steps and barriers.
    Off,
    /// Sectors, bank conflicts, atomics and divergence by access site; a few times slower.
    Sites,
}

/// Everything that distinguishes one emulator from another. A plain value: the same options give the
/// same run, except for [`BlockOrder::Parallel`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmulatorOptions {
    /// Seed of all orders.
    pub seed: u64,
    /// Order of blocks.
    pub blocks: BlockOrder,
    /// Order of lanes and warps.
    pub lanes: LaneOrder,
    /// Where lanes are interrupted.
    pub preemption: Preemption,
    /// What is checked.
    pub checks: Checks,
    /// What is counted.
    pub counting: Counting,
}

impl Default for EmulatorOptions {
    /// Everything in order, everything checked, nothing counted.
    fn default() -> EmulatorOptions {
        EmulatorOptions {
            seed: 0,
            blocks: BlockOrder::InOrder,
            lanes: LaneOrder::InOrder,
            preemption: Preemption::Collectives,
            checks: Checks::All,
            counting: Counting::Off,
        }
    }
}

impl EmulatorOptions {
    /// Schedule number `seed` of an unbounded list that varies everything that may vary: 0 runs in order,
    /// every eighth one in parallel, the others shuffled, two in three of them with interruptions.
    ///
    /// ```
    /// use gpu_kernels_emulator::{BlockOrder, EmulatorOptions};
    /// assert_eq!(EmulatorOptions::schedule(0), EmulatorOptions::default());
    /// assert_eq!(EmulatorOptions::schedule(1).blocks, BlockOrder::Shuffled);
    /// assert_eq!(EmulatorOptions::schedule(7).blocks, BlockOrder::Parallel);
    /// ```
    pub fn schedule(seed: u64) -> EmulatorOptions {
        if seed == 0 {
            return EmulatorOptions::default();
        }
        EmulatorOptions {
            seed,
            blocks: match seed % 8 {
                7 => BlockOrder::Parallel,
                _ => BlockOrder::Shuffled,
            },
            lanes: LaneOrder::Permuted,
            preemption: match seed % 3 {
                1 => Preemption::Collectives,
                2 => Preemption::Accesses(2),
                _ => Preemption::Accesses(17),
            },
            ..EmulatorOptions::default()
        }
    }
}
