//! Predicted time of one launch.
//!
//! `t = max(stream, access, issue, longest row, rows in turn) + uneven rows + flush + launch`, in the terms of
//! [`Rates`](crate::plan::rates::Rates). The maximum is a soft one, the fourth root of the sum of fourth
//! powers: parts that are nearly equal do not overlap perfectly, and of two launches with the same
//! greatest part the one with more to spare wins.
//!
//! | part | what it counts |
//! |---|---|
//! | stream | bytes of X and the vectors over the memory's rate, less what too few bytes in flight leave unused (Little's law: rate = bytes in flight ÷ latency, up to the memory's own) |
//! | access | gathers of y, additions to w and the cache lines of the loads, which share one pipe |
//! | issue | instructions over the schedulers' rate; lanes beyond the end of a row count too |
//! | longest row | the loads of the longest row one after the other |
//! | uneven rows | steps beyond those of registers and of the mean row, each a round trip of a warp: the warps' share of them, and those of the longest row, see [`rows`](super::rows) |
//! | rows in turn | what blocks that share a row do one row after the other, where few of them are resident |
//! | flush | the blocks' partial results added to w in global memory |

mod access;
mod prepared;

use gpu_kernels::fused::DenseOrder;
use gpu_kernels::fused::fixed::CLUSTER;

use super::candidate::{Candidate, Strategy};
use super::dense_cost::{self, crowding, row_of_block, rows_in_flight};
use super::geometry::{Blocks, Launch, Surplus};
use super::prediction::Parts;
use super::problem::{Precision, Problem, Product};
use super::rows::Uneven;
use super::sparse_cost::{
    L1_PER_BYTE_ALONE, L1_PER_BYTE_IN_FLIGHT, L1_PER_BYTE_WITH_Y, l1_left, wanted_bytes,
};
use crate::plan::limits::DeviceLimits;

/// A warp adds its 32 neighbouring columns at once, which a random scatter cannot, and blocks seldom add to the same ones
/// at the same time: as quick as four times a scatter to so many bytes. From the dense kernel on 1,000,000 × 1,024, where
/// 528 blocks × 1,024 additions cost at most 0.01 ms, and sparse ones with n = 1,000, of which 658 blocks take 0.205 ms and
/// 132 take 0.226.
const FLUSH_COALESCING: f64 = 4.0;
const FLUSH_BYTES: f64 = 4e6;

/// Dependent round trips to memory of a step over CSR rows: offsets, then entries. Gathers that miss
/// the L1 cache are a third.
const CSR_ROUND_TRIPS: f64 = 2.0;

/// The same where offsets come a row ahead.
const FIXED_ROUND_TRIPS: f64 = 1.5;

/// The same of blocks that walk the same rows, by themselves and for each entry that a lane adds, in f32 and in f64: with 32
/// warps of an SM on an H200 Xᵀ·p of 4,000,000 rows of 20 takes 384, 567 and 1,236 µs with 5, 3 and 1 of them. In f64 some
/// 760 µs with n = 28,000, which were 0.54: but then X·y and it, 1,105 µs, came before a sum of floats that takes 1,047 and
/// is predicted to take 1,230; sums over a cluster's network take 1,444.
const HALVES_ROUND_TRIPS: f64 = 0.7;
const HALVES_TRIPS_OF_ENTRY: [f64; 2] = [0.32, 0.85];
/// How much longer uneven rows take there: 4,000,000 × 10,000 in the log-normal mean 20 takes 1.12 ms with VS = 8 in place
/// of 0.54, X·y and Xᵀ·p of 677,399 × 47,236 in the mean 73 0.85 (0.58 over a cluster's network).
const HALVES_UNEVEN: f64 = 4.0;

/// What additions of floats to shared memory, each a loop of compare-and-swap, add to them: Xᵀ·p with n = 10,000 takes
/// 0.25 ms on an H200 with two blocks of 1,024 threads, 0.34 with one. In the whole pattern gathers hide half of it.
const ADD_ROUND_TRIPS: f64 = 1.5;

/// Strategies that keep y in shared memory.
const SHARED_Y: [Strategy; 2] = [Strategy::FixedWithY, Strategy::PrivateW];

/// Instructions of a lane per element and row of a tile.
const PER_TILE_ELEMENT: f64 = 8.0;
const PER_TILE_ROW: f64 = 40.0;

/// Instructions that an entry takes more when it is added to a fixed-point sum.
const PER_FIXED_ADD: f64 = 14.0;

/// What each block of an SM with fixed-point sums takes to begin, microseconds: in f64 with n = 1,000 nine blocks of 128
/// threads take 0.283 ms on an H200, one of 1,024 takes 0.261.
const FIXED_BLOCK_US: f64 = 0.5;

/// Instructions of a lane per sparse entry, per row, and per halving of a shuffle reduction; read off
/// the compiled kernels, to the nearest few.
const PER_ENTRY: f64 = 14.0;
const PER_ROW: f64 = 25.0;
const PER_HALVING: f64 = 2.0;

/// The same for a private copy of w. From n = 100 on an H200, f32, with an addition there in gathers from shared memory
/// (f64: 4): 163, 180, 296 and 525 µs for VS = 4, 8, 16 and 32; f64: 316 µs.
const PER_PRIVATE_ROW: f64 = 90.0;

/// What depends on the problem, the product and the device only, computed once for all candidates.
pub(super) struct CostModel<'a> {
    limits: &'a DeviceLimits,
    problem: &'a Problem,
    product: Product,
    rows: f64,
    mean: f64,
    nnz: f64,
    bytes: f64,
    vector_bytes: f64,
    gather_miss: f64,
    scatter: f64,
    order: Option<DenseOrder>,
    /// Additions at random to as much as a flush is compared with.
    flush_rate: f64,
}

/// What a kernel costs with vectors of one size, whatever its blocks; times in seconds.
#[derive(Clone, Copy)]
pub(super) struct KernelCost {
    strategy: Strategy,
    /// The stream at full bandwidth.
    full: f64,
    /// Cache lines of the loads, additions to w, and what registers did not keep.
    access: f64,
    issue: f64,
    longest_row: f64,
    /// Steps beyond those of the mean row.
    uneven: Uneven,
    /// What a block takes for a row, or a step of rows, when it waits for nothing.
    row: f64,
    launch: f64,
    /// Bytes of X that one vector has asked for at once.
    row_in_flight: f64,
    rows_in_flight: f64,
    /// Entries of a row that a lane adds from its registers.
    entries_of_lane: f64,
    /// Sectors per entry that are touched more than once.
    half_sectors: f64,
}

impl KernelCost {
    /// No launch of the kernel takes less: the greatest of the parts that blocks do not change, seconds.
    pub fn least(&self) -> f64 {
        let parts = [self.full, self.access, self.issue, self.longest_row];
        parts.into_iter().fold(0.0, f64::max) + self.launch
    }
}

impl<'a> CostModel<'a> {
    pub fn new(limits: &'a DeviceLimits, problem: &'a Problem, product: Product) -> Self {
        let element = f64::from(problem.dtype.bytes());
        let vector_bytes = problem.cols as f64 * element;
        let wanted = wanted_bytes(problem);
        let random_bytes = wanted + beyond_l2(limits, wanted, product);
        let scatter = match problem.dtype {
            Precision::F32 => &limits.rates.scatter_f32,
            Precision::F64 => &limits.rates.scatter_f64,
        };
        let row_vector = if product == Product::Fused {
            0.0
        } else {
            problem.rows as f64 * element
        };
        Self {
            limits,
            problem,
            product,
            rows: problem.rows as f64,
            mean: problem.mean_row(),
            nnz: problem.nnz.unwrap_or(0) as f64,
            bytes: problem.matrix_bytes() + row_vector + 2.0 * vector_bytes,
            vector_bytes,
            gather_miss: limits.rates.gather.at(random_bytes),
            scatter: scatter.at(random_bytes),
            order: None,
            flush_rate: scatter.at(vector_bytes.max(FLUSH_BYTES)),
        }
    }

    /// The same for sums over a dense X that have an order.
    pub fn in_order(self, order: Option<DenseOrder>) -> Self {
        Self { order, ..self }
    }

    /// Threads of a block, where an order of sums decides.
    pub fn block_size(&self) -> Option<u32> {
        self.order.and_then(|order| order.threads)
    }

    /// What `kernel` costs with vectors of `vs` threads, on a grid divided into `column_tiles`.
    pub fn of_kernel(&self, kernel: &Candidate, vs: u32, column_tiles: u32) -> KernelCost {
        if let Some(cost) = self.of_form(kernel.strategy) {
            return cost;
        }
        let rates = &self.limits.rates;
        KernelCost {
            strategy: kernel.strategy,
            full: seconds(
                self.stream_bytes(kernel, vs, column_tiles),
                rates.stream_gbs,
            ),
            access: self.access_of_kernel(kernel, vs),
            issue: self.issue(kernel, vs, column_tiles),
            longest_row: self.longest_row(kernel, vs),
            uneven: Uneven::of(self.problem, self.product, (vs, kernel.tl)),
            row: row_of_block(kernel),
            launch: self.launches(kernel) * rates.launch_us * 1e-6,
            row_in_flight: self.entries_in_flight(kernel, vs) * self.entry_bytes(),
            rows_in_flight: rows_in_flight(kernel),
            entries_of_lane: (self.entries_in_flight(kernel, vs) / f64::from(vs.max(1))).ceil(),
            half_sectors: self.half_sectors(vs),
        }
    }

    /// The parts of the predicted time of a launch of a kernel.
    pub fn parts(&self, kernel: &KernelCost, launch: &Launch) -> Parts {
        if let Some(parts) = self.parts_of_form(kernel, &launch.blocks) {
            return parts;
        }
        let blocks = &launch.blocks;
        let taken = self.shared_taken(blocks);
        let in_flight = self.within_l1(kernel, blocks, taken);
        let hits = self.l1_hits(kernel.strategy, taken);
        let slower = match kernel.strategy {
            Strategy::FixedHalves => HALVES_UNEVEN,
            _ => 1.0,
        };
        let uneven = slower * kernel.uneven.seconds(self.limits, blocks);
        // Warps of X·y wait for nothing but their rows.
        let (beside, uneven_rows) = match self.product {
            Product::Forward => (uneven, 0.0),
            _ => (0.0, uneven),
        };
        Parts {
            full: kernel.full
                * crowding(kernel.strategy, blocks.occupancy.blocks_per_sm, in_flight)
                * dense_cost::unevenness(self.order, launch),
            fill: self.fill(kernel, in_flight, hits),
            access: kernel.access + self.access_of_blocks(kernel, hits),
            issue: kernel.issue,
            longest_row: kernel.longest_row.max(beside),
            uneven_rows,
            apart: 0.0,
            rows_in_turn: self.rows_in_turn(kernel, launch),
            flush: self.flush(kernel.strategy, launch),
            launch: kernel.launch,
            in_flight,
        }
    }

    // Bytes of X and the vectors. A vector whose loads take a dense row in pieces shorter than a cache line is
    // charged whole lines (8,000,000 × 128 in f64 with VS = 4 on an H200: pieces of 64 bytes, 2.8 ms in place of
    // 1.8); each further tile of columns reads p again.
    fn stream_bytes(&self, kernel: &Candidate, vs: u32, column_tiles: u32) -> f64 {
        const LINE: f64 = 128.0;
        if !self.problem.is_dense() {
            return self.bytes;
        }
        let element = f64::from(self.problem.dtype.bytes());
        let piece = f64::from(vs) * f64::from(kernel.width.max(1)) * element;
        let waste = match kernel.strategy {
            Strategy::DenseTiles => 1.0,
            // The other pieces of a line are asked for next, while it is in the cache; those of other panels by another SM.
            _ if self.vector_bytes <= LINE / 4.0 && column_tiles <= 1 => 1.0,
            _ => (LINE.min(self.vector_bytes) / piece).max(1.0),
        };
        let again = f64::from(column_tiles.saturating_sub(1)) * self.rows * element;
        self.bytes * waste + again
    }

    // Entries of a row that a vector has loaded or asked for at once: of blocks that share it, each its share of them.
    fn entries_in_flight(&self, kernel: &Candidate, vs: u32) -> f64 {
        let held = f64::from(vs) * f64::from(kernel.tl.max(1));
        (self.mean / self.blocks_of_columns(kernel)).min(held)
    }

    // Blocks that each load their part of a row.
    fn blocks_of_columns(&self, kernel: &Candidate) -> f64 {
        match kernel.strategy {
            Strategy::FixedHalves => 1.0,
            _ => f64::from(kernel.blocks_per_row()),
        }
    }

    fn entry_bytes(&self) -> f64 {
        let index = if self.problem.is_dense() { 0.0 } else { 4.0 };
        f64::from(self.problem.dtype.bytes()) + index
    }

    // Whether a kernel has y in shared memory.
    fn shares_y(&self, strategy: Strategy) -> bool {
        match strategy {
            Strategy::FixedHalves => self.product == Product::Fused,
            _ => SHARED_Y.contains(&strategy),
        }
    }

    // Bytes of X that the resident vectors of one SM have asked for at once.
    fn bytes_in_flight(&self, kernel: &KernelCost, blocks: &Blocks) -> f64 {
        let vectors = blocks.bs / blocks.vs.max(1);
        let vectors = f64::from(blocks.occupancy.blocks_per_sm) * f64::from(vectors);
        let share = self.rows / f64::from(self.limits.sms.max(1));
        (vectors * kernel.rows_in_flight).min(share.max(1.0)) * kernel.row_in_flight
    }

    // As much of what is asked for as L1 has room for.
    fn within_l1(&self, kernel: &KernelCost, blocks: &Blocks, taken: f64) -> f64 {
        let in_flight = self.bytes_in_flight(kernel, blocks);
        let each = match self.product {
            _ if self.problem.is_dense() => return in_flight,
            _ if self.shares_y(kernel.strategy) => L1_PER_BYTE_WITH_Y,
            Product::Transposed => L1_PER_BYTE_ALONE,
            _ => L1_PER_BYTE_IN_FLIGHT,
        };
        in_flight.min(l1_left(self.limits.unified_cache_bytes, taken) / each)
    }

    // Shared memory of all blocks of an SM.
    fn shared_taken(&self, blocks: &Blocks) -> f64 {
        let reserved = f64::from(self.limits.shared_reserved_per_block);
        let block = blocks.shared_bytes as f64 + reserved;
        f64::from(blocks.occupancy.blocks_per_sm) * block
    }

    // Bytes in flight over those of the knee, for every round trip.
    fn fill(&self, kernel: &KernelCost, in_flight: f64, hits: f64) -> f64 {
        let strategy = kernel.strategy;
        let trips = match (self.problem.is_dense(), self.product) {
            (true, _) => 1.0,
            _ if strategy == Strategy::FixedHalves => {
                let of_entry = match self.problem.dtype {
                    Precision::F32 => HALVES_TRIPS_OF_ENTRY[0],
                    Precision::F64 => HALVES_TRIPS_OF_ENTRY[1],
                };
                HALVES_ROUND_TRIPS + of_entry * kernel.entries_of_lane
            }
            _ if self.shares_y(strategy) => FIXED_ROUND_TRIPS,
            _ if strategy.is_fixed() => FIXED_ROUND_TRIPS + 1.0 - hits,
            (false, Product::Transposed) => CSR_ROUND_TRIPS,
            (false, _) => CSR_ROUND_TRIPS + 1.0 - hits,
        };
        let adds = match (strategy, self.product) {
            (Strategy::SharedW, Product::Transposed) => ADD_ROUND_TRIPS,
            (Strategy::SharedW, _) => ADD_ROUND_TRIPS / 2.0,
            _ => 0.0,
        };
        let trips = (trips + adds) * walks(strategy);
        in_flight / (self.limits.rates.knee_bytes_per_sm * trips)
    }

    // Fixed-point sums are begun and finished by kernels of their own, those of chunks finished.
    fn launches(&self, kernel: &Candidate) -> f64 {
        match self.surplus() {
            _ if kernel.strategy.is_fixed() => 3.0,
            Surplus::Chunks(_) => 2.0,
            _ => 1.0,
        }
    }

    // Each panel of columns walks all rows; Xᵀ·p over rows of a dense X sums nothing over lanes.
    fn issue(&self, kernel: &Candidate, vs: u32, column_tiles: u32) -> f64 {
        let halvings = match kernel.strategy {
            Strategy::DenseColumns => 0.0,
            _ => f64::from(vs.max(1).ilog2().min(5)),
        };
        let lanes = f64::from(vs.max(1));
        // Lanes that wait for a longer row of their warp issue as well.
        let chunks = match self.problem.is_dense() {
            true => (self.mean / lanes).ceil(),
            false => {
                self.problem.steps(vs) * f64::from(self.limits.warp_size.max(1))
                    / (self.rows * lanes).max(1.0)
            }
        };
        let vs = lanes;
        let entries = if self.problem.is_dense() {
            // One load per `width` elements, and a multiply-add for each half of the product.
            chunks * (2.0 + 1.0 / f64::from(kernel.width.max(1)))
        } else {
            let add = if kernel.strategy.is_fixed() {
                PER_FIXED_ADD
            } else {
                0.0
            };
            chunks * (PER_ENTRY * walks(kernel.strategy) + add)
        };
        let lane = match kernel.strategy {
            Strategy::DenseTiles => chunks * PER_TILE_ELEMENT + PER_TILE_ROW,
            Strategy::PrivateW => entries + PER_PRIVATE_ROW + PER_HALVING * halvings,
            _ => entries + PER_ROW * f64::from(column_tiles) + PER_HALVING * halvings,
        };
        let warp = f64::from(self.limits.warp_size.max(1));
        seconds(self.rows * lane * vs / warp, self.limits.rates.issue)
    }

    fn longest_row(&self, kernel: &Candidate, vs: u32) -> f64 {
        if self.problem.is_dense() {
            return 0.0;
        }
        let held = f64::from(vs) * f64::from(kernel.tl.max(1));
        (self.problem.longest() / held).ceil() * self.limits.rates.latency_us * 1e-6
    }

    // A ring is filled meanwhile; rows in registers arrive while no other block's are worked on.
    fn rows_in_turn(&self, kernel: &KernelCost, launch: &Launch) -> f64 {
        if kernel.row <= 0.0 {
            return 0.0;
        }
        let rows = self.rows / f64::from(launch.grid.max(1));
        match kernel.strategy {
            Strategy::DenseRing => rows * kernel.row,
            Strategy::DenseCluster => rows * f64::from(launch.column_tiles) * kernel.row,
            _ => {
                let blocks = f64::from(launch.blocks.occupancy.blocks_per_sm.max(1));
                kernel.full / blocks + (rows / kernel.rows_in_flight).ceil() * kernel.row
            }
        }
    }

    /// Which blocks a launch may have.
    pub fn surplus(&self) -> Surplus {
        dense_cost::surplus(self.order)
    }

    fn flush(&self, strategy: Strategy, launch: &Launch) -> f64 {
        if let Surplus::Chunks(chunks) = self.surplus() {
            // What chunks come to, written and read.
            let bytes = 2.0 * f64::from(chunks) * self.vector_bytes;
            return seconds(bytes, self.limits.rates.stream_gbs);
        }
        let flushes = match strategy {
            Strategy::SharedW
            | Strategy::PrivateW
            | Strategy::FixedShared
            | Strategy::FixedWithY
            | Strategy::DenseRegisters
            | Strategy::DenseRing
            | Strategy::DenseTiles => f64::from(launch.grid),
            // Each block adds its own columns.
            Strategy::FixedCluster | Strategy::FixedHalves => {
                f64::from(launch.grid) / f64::from(CLUSTER)
            }
            Strategy::DenseColumns | Strategy::DenseCluster => {
                f64::from(launch.grid / launch.column_tiles.max(1))
            }
            _ => return 0.0,
        };
        let begun = match strategy {
            Strategy::FixedShared
            | Strategy::FixedWithY
            | Strategy::FixedCluster
            | Strategy::FixedHalves => {
                FIXED_BLOCK_US * f64::from(launch.blocks.occupancy.blocks_per_sm)
            }
            _ => 0.0,
        };
        let flushed = seconds(
            flushes * self.problem.cols as f64,
            FLUSH_COALESCING * self.flush_rate,
        );
        flushed + begun * 1e-6
    }
}

// How often each row is walked.
fn walks(strategy: Strategy) -> f64 {
    match strategy {
        Strategy::FixedHalves => f64::from(CLUSTER),
        _ => 1.0,
    }
}

// What y and w of one pass do not have of the L2 cache, half of it each. On an H200, 8,000,000 × 20,000,000 with 224
// million entries: in one pass 14.4 ms in f32 and 17.6 ms in f64, in two 4.1 + 9.3 and 5.5 + 11.5 ms.
fn beyond_l2(limits: &DeviceLimits, vector_bytes: f64, product: Product) -> f64 {
    match product {
        Product::Fused => (2.0 * vector_bytes - limits.l2_bytes as f64).max(0.0) / 2.0,
        _ => 0.0,
    }
}

// Operations over a rate in 10⁹ per second; a rate of zero forbids the operation.
fn seconds(operations: f64, rate: f64) -> f64 {
    if operations <= 0.0 {
        0.0
    } else {
        operations / (rate.max(1e-9) * 1e9)
    }
}
