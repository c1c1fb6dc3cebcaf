//! What gathers, additions and the loads of rows cost on the one path that they share.

use super::super::candidate::{Candidate, Strategy};
use super::super::problem::{Precision, Product};
use super::super::rows::queue_of;
use super::super::sparse_cost::{L2_SECTOR, hits, l1_left, lines_per_entry};
use super::{CostModel, KernelCost, seconds, walks};

/// The share of the L1 cache that keeps y while X streams past: with 0.3 the model is within 10 % of
/// the times measured for n = 1,000 to 28,000 and a quarter below that for n = 40,000.
const L1_SHARE_OF_Y: f64 = 0.3;

/// An addition to a private copy of w, in gathers from shared memory, in f32 and in f64.
const PRIVATE_ADD: [f64; 2] = [0.7, 4.0];

/// Entries added to sums in the shared memory of a cluster's two blocks, for each instruction that the SMs issue, in f32 and
/// in f64: of 80 million entries on an H200, with what else they wait for, 0.75 and 0.85 ms with n = 28,000 and 40,000
/// (alone in a block's memory 0.80, in global memory 1.08), f64 1.44 ms with n = 28,000 (in global memory 2.10). The
/// network between the blocks of a cluster runs at the SMs' clock.
const CLUSTER_ADDS: [f64; 2] = [220.0 / 927.0, 90.0 / 927.0];
/// The share of that rate that is left where nothing is between them: 49 million entries in rows of 73 over 47,236 columns
/// by Zipf's law take 0.57 ms with X·y, 0.61 without.
const CLUSTER_ADDS_ALONE: f64 = 0.45;

/// The share of half-used sectors that leave a crowded L1 cache before their other half is asked for,
/// times the square of the share of gathers that miss (for X·y alone, that share): fitted.
/// From n = 40,000 on an H200, w in shared memory: 0.81 ms with VS = 4, 0.76 ms with VS = 8, whose loads
/// use whole sectors.
const REFETCHED: f64 = 0.65;

impl CostModel<'_> {
    pub(super) fn access_of_kernel(&self, kernel: &Candidate, vs: u32) -> f64 {
        if self.problem.is_dense() {
            return 0.0;
        }
        let rates = &self.limits.rates;
        let walked = self.nnz * walks(kernel.strategy);
        let mut time = seconds(walked * lines_per_entry(self.mean, vs), rates.lines);
        if self.product == Product::Fused && self.shares_y(kernel.strategy) {
            time += seconds(walked, rates.shared_gather);
        }
        if self.product != Product::Forward {
            let additions = seconds(
                self.added(kernel.strategy, vs),
                self.scatter_rate(kernel.strategy),
            );
            time += additions.max(self.queue(kernel.strategy, vs));
        }
        if self.product == Product::Transposed && is_global(kernel.strategy) {
            time += seconds(self.bytes / L2_SECTOR, self.gather_miss);
        }
        if self.product == Product::Fused {
            // What registers did not keep is loaded again, index and value, from a cache.
            let kept = self.entries_in_flight(kernel, vs);
            let again = (self.mean - kept).max(0.0) * self.rows;
            time += seconds(2.0 * again, rates.gather_l1);
        }
        time
    }

    // Entries that are added, those that idle lanes would have added included: fixed-point sums in f64 with n = 1,000 take
    // 0.26 ms with VS = 4 on an H200, 0.35 with VS = 8 and 0.70 with VS = 32.
    fn added(&self, strategy: Strategy, vs: u32) -> f64 {
        let lanes = f64::from(vs.max(1));
        match is_in_block(strategy) {
            true => self.rows * lanes * (self.mean / lanes).ceil(),
            false => self.nnz,
        }
    }

    // Gathers, and what L1 did not keep for lack of room.
    pub(super) fn access_of_blocks(&self, kernel: &KernelCost, hits: f64) -> f64 {
        if self.problem.is_dense() {
            return 0.0;
        }
        let misses = 1.0 - hits;
        let crowded = match self.product {
            Product::Forward => misses,
            _ => misses * misses,
        };
        let again = self.nnz * crowded * REFETCHED * kernel.half_sectors;
        let time = seconds(again, self.gather_miss);
        if self.shares_y(kernel.strategy) || self.product == Product::Transposed {
            return time;
        }
        let gathers = seconds(self.nnz * hits, self.limits.rates.gather_l1);
        // The sectors of X take the same way from L2: 4,000,000 rows of 20 with n = 1,000,000 take X·y 0.64 ms on an H200,
        // where gathers by themselves would take 0.50.
        let missed = (self.nnz + self.bytes / L2_SECTOR) * misses;
        time + gathers + seconds(missed, self.gather_miss)
    }

    // Sectors of indices and values per entry that a vector touches more than once.
    pub(super) fn half_sectors(&self, vs: u32) -> f64 {
        const SECTOR: f64 = 32.0;
        let piece = 1.0 / f64::from(vs.max(1));
        let more = |bytes: u32| (piece - f64::from(bytes) / SECTOR).max(0.0);
        more(4) + more(self.problem.dtype.bytes())
    }

    // Additions to one element of w in global memory one after the other.
    fn queue(&self, strategy: Strategy, vs: u32) -> f64 {
        if is_global(strategy) {
            queue_of(vs) * self.problem.busiest_column()
        } else {
            0.0
        }
    }

    fn scatter_rate(&self, strategy: Strategy) -> f64 {
        match (strategy, self.problem.dtype) {
            (Strategy::PrivateW, Precision::F32) => {
                self.limits.rates.shared_gather / PRIVATE_ADD[0]
            }
            (Strategy::PrivateW, Precision::F64) => {
                self.limits.rates.shared_gather / PRIVATE_ADD[1]
            }
            (Strategy::SharedW, Precision::F32) => self.limits.rates.shared_add_f32,
            (Strategy::SharedW, Precision::F64) => self.limits.rates.shared_add_f64,
            (strategy, Precision::F32) if is_in_block(strategy) => {
                self.limits.rates.shared_fixed_f32
            }
            (strategy, Precision::F64) if is_in_block(strategy) => {
                self.limits.rates.shared_fixed_f64
            }
            (Strategy::FixedCluster, dtype) => {
                let alone = match self.product {
                    Product::Transposed => CLUSTER_ADDS_ALONE,
                    _ => 1.0,
                };
                let share = match dtype {
                    Precision::F32 => CLUSTER_ADDS[0],
                    Precision::F64 => CLUSTER_ADDS[1],
                };
                alone * share * self.limits.rates.issue
            }
            // Two words of eight bytes for one of f64's.
            (Strategy::FixedGlobal, Precision::F64) => self.scatter / 2.0,
            _ => self.scatter,
        }
    }

    // Shared memory is taken from the L1 cache: what is left decides how many gathers hit.
    // Kernels with fixed-point sums have a row more on its way, for which y makes room.
    pub(super) fn l1_hits(&self, strategy: Strategy, taken: f64) -> f64 {
        let unified_bytes = self.limits.unified_cache_bytes;
        let room = L1_SHARE_OF_Y * (f64::from(unified_bytes) - taken).max(0.0);
        let left = match strategy.is_fixed() {
            true => room,
            false => l1_left(unified_bytes, taken),
        };
        hits(self.problem, (left, room))
    }
}

// Whether blocks add fixed-point sums to their own shared memory alone.
const fn is_in_block(strategy: Strategy) -> bool {
    matches!(
        strategy,
        Strategy::FixedWithY | Strategy::FixedShared | Strategy::FixedHalves
    )
}

// Whether every entry is added to w in global memory.
const fn is_global(strategy: Strategy) -> bool {
    matches!(strategy, Strategy::GlobalW | Strategy::FixedGlobal)
}
