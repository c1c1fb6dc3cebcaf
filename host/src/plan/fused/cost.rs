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
mod in_flight;
mod prepared;

use gpu_kernels::describe::{Input, Number, Walk};
use gpu_kernels::fused::{DenseOrder, Held, Place};

use super::candidate::Candidate;
use super::dense_cost::{self, crowding, row_of_block, rows_in_flight};
use super::even;
use super::launch::{Blocks, Launch, ONE_WINDOW, Surplus};
use super::place::{self, PlaceCost};
use super::prediction::Parts;
use super::rows::Uneven;
use super::sparse_cost::{LINE, round_trip, wanted_bytes};
use crate::plan::limits::DeviceLimits;
use crate::plan::problem::{Precision, Problem, Product};

/// A warp adds its 32 neighbouring columns at once, which a random scatter cannot, and blocks seldom add to the same ones
/// at the same time: as fast as four times a scatter to this many bytes. From the dense kernel on 1,000,000 × 1,024, where
/// 528 blocks × 1,024 additions cost at most 0.01 ms, and sparse ones with n = 1,000, of which 658 blocks take 0.205 ms and
/// 132 take 0.226.
pub(super) const FLUSH_COALESCING: f64 = 4.0;
pub(super) const FLUSH_BYTES: f64 = 4e6;

/// The same of words of eight bytes, a third as fast. Blocks that share an SM do not end together, so that all but the last
/// one's words are added while others walk. From an H100: `Xᵀ·p` with a block of an SM takes 25 µs more for n = 56,000 than for
/// 10,000, of which 66 clusters add 3 million words more; 19 further blocks of rows, n = 50,000, each take 27 µs more than
/// their launches.
const FIXED_COALESCING: f64 = FLUSH_COALESCING / 3.0;

/// Instructions of a lane per element and row of a tile.
const PER_TILE_ELEMENT: f64 = 8.0;
const PER_TILE_ROW: f64 = 40.0;

/// Instructions of a lane per sparse entry, and per halving of a shuffle reduction; read off the compiled kernels, to the
/// nearest few.
const PER_ENTRY: f64 = 14.0;
const PER_HALVING: f64 = 2.0;

/// What the blocks of an SM take to begin and to end, when fewer and fewer of them have requests under way, and how much longer
/// for each thread of a block over a dense X, which ends with its last row. On an H100 a dense X of 80 to 280 MB takes 4 to 7 µs more
/// than its reading and a launch, in blocks of 1,024 threads 4 to 7 more than in blocks of 128.
pub(super) const BEGIN_US: f64 = 2.4;
const BEGIN_THREAD_US: f64 = 0.006;

/// Seconds of two blocks' additions to one line of w at the end one after the other, for each element: they end together.
/// 284,000 rows of 33 over 170 columns in f64 take 79 µs in 1,545 blocks and 56 in 387.
const FLUSH_QUEUE: f64 = 0.10e-9;

/// The share of what uneven rows take X·y that nothing else hides: fitted.
const FORWARD_AFTER: f64 = 0.3;

/// Steps of `X·y` over CSR rows whose entries are under way at a time: nothing is kept of them.
const FORWARD_STEPS: f64 = 3.0;

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
    /// What round trips take, of those to memory.
    round_trip: f64,
}

/// What a kernel costs with vectors of one size, whatever its blocks; times in seconds.
#[derive(Clone, Copy)]
pub(super) struct KernelCost<'k> {
    kernel: &'k Candidate,
    /// Windows of columns that it adds to, one after the other.
    windows: u32,
    /// What is known of where its sums are.
    place: &'static PlaceCost,
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
    /// Bytes of X that one vector has requested at once.
    row_in_flight: f64,
    rows_in_flight: f64,
    /// Entries of a row that a lane adds from its registers.
    entries_of_lane: f64,
    /// Sectors per entry that are touched more than once.
    half_sectors: f64,
}

impl<'k> KernelCost<'k> {
    pub fn kernel(&self) -> &'k Candidate {
        self.kernel
    }

    pub fn windows(&self) -> u32 {
        self.windows
    }

    /// Whether y is in shared memory.
    fn shares_y(&self) -> bool {
        self.kernel.input == Input::Shared
    }

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
        let bytes = problem.matrix_bytes() + row_vector + 2.0 * vector_bytes;
        Self {
            limits,
            problem,
            product,
            rows: problem.rows as f64,
            mean: problem.mean_row(),
            nnz: problem.nnz.unwrap_or(0) as f64,
            bytes,
            round_trip: round_trip(limits, bytes),
            vector_bytes,
            gather_miss: limits.rates.gather.at(random_bytes),
            scatter: scatter.at(beside_x(random_bytes)),
            order: None,
            flush_rate: scatter.at(vector_bytes.max(FLUSH_BYTES)),
        }
    }

    /// What is computed with.
    pub fn problem(&self) -> &'a Problem {
        self.problem
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
    pub fn of_kernel<'k>(
        &self,
        kernel: &'k Candidate,
        vs: u32,
        column_tiles: u32,
    ) -> KernelCost<'k> {
        if let Some(cost) = self.of_form(kernel) {
            return cost;
        }
        let rates = &self.limits.rates;
        KernelCost {
            kernel,
            windows: ONE_WINDOW,
            place: place::of(kernel.sums),
            full: seconds(
                self.stream_bytes(kernel, vs, column_tiles),
                rates.stream_gbs,
            ),
            access: self.access_of_kernel(kernel, vs),
            issue: self.issue(kernel, vs, column_tiles),
            longest_row: self.longest_row(kernel, vs),
            uneven: Uneven::of(self.problem, self.product, vs, kernel.tl),
            row: row_of_block(kernel),
            launch: self.launch(kernel),
            row_in_flight: self.entries_in_flight(kernel, vs) * self.entry_bytes(),
            rows_in_flight: rows_in_flight(kernel),
            entries_of_lane: (self.entries_in_flight(kernel, vs) / f64::from(vs.max(1))).ceil(),
            half_sectors: self.half_sectors(vs),
        }
    }

    /// The parts of the predicted time of a launch of a kernel.
    pub fn parts(&self, kernel: &KernelCost<'_>, launch: &Launch) -> Parts {
        if let Some(parts) = self.parts_of_form(kernel, &launch.blocks) {
            return parts;
        }
        let blocks = &launch.blocks;
        let taken = self.shared_taken(blocks);
        let in_flight = self.within_l1(kernel, blocks, taken);
        let hits = self.l1_hits(kernel.kernel.sums.number, taken);
        let uneven = kernel.uneven.seconds(self.limits, blocks);
        let uneven = self.round_trip * kernel.place.uneven * uneven;
        // Warps of X·y wait for little but their rows.
        let after = match self.product {
            Product::Forward => FORWARD_AFTER,
            _ => 1.0,
        };
        let (beside, uneven_rows) = ((1.0 - after) * uneven, after * uneven);
        Parts {
            full: kernel.full
                * crowding(kernel.kernel, blocks.occupancy.blocks_per_sm, in_flight)
                * dense_cost::unevenness(self.order, launch),
            fill: self.fill(kernel, in_flight, hits),
            access: kernel.access + self.access_of_blocks(kernel, hits),
            issue: kernel.issue,
            longest_row: kernel.longest_row.max(beside),
            uneven_rows,
            apart: 0.0,
            rows_in_turn: self.rows_in_turn(kernel, launch),
            flush: self.flush(kernel, launch),
            launch: kernel.launch + self.begin(blocks),
            in_flight,
        }
    }

    // Bytes of X and the vectors. A vector whose loads take a dense row in pieces shorter than a cache line is
    // charged whole lines (8,000,000 × 128 in f64 with VS = 4 on an H200: pieces of 64 bytes, 2.8 ms instead of
    // 1.8). The pieces of rows shorter than a sector are requested together where one step covers them; a step that
    // follows requests the line again, which L1 does not keep (125,000,000 × 8 in f32, X·y with VS = 1 in two steps of
    // 16 bytes: 2.02 ms for 4.5 GB). Each further tile of columns reads p again.
    fn stream_bytes(&self, kernel: &Candidate, vs: u32, column_tiles: u32) -> f64 {
        const SECTOR: f64 = 32.0;
        if !self.problem.is_dense() {
            return self.bytes;
        }
        let element = f64::from(self.problem.dtype.bytes());
        let piece = f64::from(vs) * f64::from(kernel.width.max(1)) * element;
        let waste = match kernel.held {
            Held::Tiles => 1.0,
            // Lines that are requested again are counted with its requests.
            _ if self.product == Product::Forward && self.vector_bytes > LINE => 1.0,
            _ if self.vector_bytes <= SECTOR && kernel.columns(vs) >= self.problem.cols => 1.0,
            _ => (LINE.min(self.vector_bytes) / piece).max(1.0),
        };
        let again = f64::from(column_tiles.saturating_sub(1)) * self.rows * element;
        self.bytes * waste + again
    }

    // Entries of a row that a vector has loaded or requested at once: of blocks that share it, each its share of them.
    fn entries_in_flight(&self, kernel: &Candidate, vs: u32) -> f64 {
        let ahead = match self.product {
            Product::Forward if !self.problem.is_dense() => FORWARD_STEPS,
            _ => 1.0,
        };
        let held = ahead * f64::from(vs) * f64::from(kernel.tl.max(1));
        (self.mean / self.blocks_of_columns(kernel)).min(held)
    }

    // Blocks that each load their part of a row.
    fn blocks_of_columns(&self, kernel: &Candidate) -> f64 {
        match kernel.sums.place {
            Place::Split => 1.0,
            _ => f64::from(kernel.blocks_per_row()),
        }
    }

    fn entry_bytes(&self) -> f64 {
        let index = if self.problem.is_dense() { 0.0 } else { 4.0 };
        f64::from(self.problem.dtype.bytes()) + index
    }

    // All kernels of a product, with what fixed-point sums in global memory take to be begun and finished.
    fn launch(&self, kernel: &Candidate) -> f64 {
        let launches = self.launches(kernel) * self.limits.rates.launch_us * 1e-6;
        match kernel.sums.number {
            Number::Fixed => launches + even::fixed_ends(self.limits, self.problem),
            Number::Float => launches,
        }
    }

    // What blocks take besides all else to begin and to end.
    fn begin(&self, blocks: &Blocks) -> f64 {
        let of_threads = match self.problem.is_dense() {
            true => BEGIN_THREAD_US * f64::from(blocks.bs),
            false => 0.0,
        };
        (BEGIN_US + of_threads) * 1e-6
    }

    // Fixed-point sums are begun and finished by kernels of their own, those of chunks finished.
    fn launches(&self, kernel: &Candidate) -> f64 {
        match self.surplus() {
            _ if kernel.sums.number == Number::Fixed => 3.0,
            Surplus::Chunks(_) => 2.0,
            _ => 1.0,
        }
    }

    // Each panel of columns walks all rows; Xᵀ·p over rows of a dense X sums nothing over lanes.
    fn issue(&self, kernel: &Candidate, vs: u32, column_tiles: u32) -> f64 {
        let halvings = match kernel.walk {
            Walk::ColumnTiles => 0.0,
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
        let place = place::of(kernel.sums);
        let entries = match self.problem.is_dense() {
            // One load per `width` elements, and a multiply-add for each half of the product.
            true => chunks * (2.0 + 1.0 / f64::from(kernel.width.max(1))),
            false => chunks * (PER_ENTRY * place.walks + place.per_add),
        };
        let lane = match kernel.held {
            Held::Tiles => chunks * PER_TILE_ELEMENT + PER_TILE_ROW,
            _ => entries + place.per_row * f64::from(column_tiles) + PER_HALVING * halvings,
        };
        let warp = f64::from(self.limits.warp_size.max(1));
        seconds(self.rows * lane * lanes / warp, self.limits.rates.issue)
    }

    fn longest_row(&self, kernel: &Candidate, vs: u32) -> f64 {
        if self.problem.is_dense() {
            return 0.0;
        }
        let held = f64::from(vs) * f64::from(kernel.tl.max(1));
        let latency = self.round_trip * self.limits.rates.latency_us * 1e-6;
        (self.problem.longest() / held).ceil() * latency
    }

    // A ring is filled meanwhile; rows in registers arrive while no other block's are worked on.
    fn rows_in_turn(&self, kernel: &KernelCost<'_>, launch: &Launch) -> f64 {
        if kernel.row <= 0.0 {
            return 0.0;
        }
        let rows = self.rows / f64::from(launch.grid.max(1));
        match kernel.kernel.held {
            Held::Ring => rows * f64::from(launch.column_tiles) * kernel.row,
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

    // Words of a column that wait for nothing but each other, and as fast as how many scatters they are added.
    fn flushed(&self, kernel: &KernelCost<'_>, launch: &Launch) -> (f64, f64) {
        match (kernel.kernel.sums.number, self.problem.dtype) {
            (Number::Float, _) => (1.0, FLUSH_COALESCING),
            (Number::Fixed, dtype) => {
                let words = 1.0 + precision(dtype) as f64;
                let together = launch.blocks.occupancy.blocks_per_sm.max(1);
                (words / f64::from(together), FIXED_COALESCING)
            }
        }
    }

    fn flush(&self, kernel: &KernelCost<'_>, launch: &Launch) -> f64 {
        if let Surplus::Chunks(chunks) = self.surplus() {
            // What chunks sum to, written and read.
            let bytes = 2.0 * f64::from(chunks) * self.vector_bytes;
            return seconds(bytes, self.limits.rates.stream_gbs);
        }
        if !kernel.kernel.has_own_sums() {
            return 0.0;
        }
        // Blocks that have a w together add their own columns.
        let together = kernel.kernel.cluster.max(launch.column_tiles).max(1);
        let flushes = f64::from(launch.grid / together);
        let begun = kernel.place.begin_us * f64::from(launch.blocks.occupancy.blocks_per_sm);
        let (words, coalescing) = self.flushed(kernel, launch);
        // Blocks that end together add to one line after the other.
        let of_line = flushes * words * (self.problem.cols as f64).min(32.0);
        let queue = FLUSH_QUEUE * of_line;
        let words = flushes * self.problem.cols as f64 * words;
        seconds(words, coalescing * self.flush_rate).max(queue) + begun * 1e-6
    }
}

// The place of figures of a precision in a pair.
const fn precision(dtype: Precision) -> usize {
    match dtype {
        Precision::F32 => 0,
        Precision::F64 => 1,
    }
}

// The share of L2 that vectors have beside X: fitted.
const L2_OF_VECTORS: f64 = 0.77;

// What y and w of one pass do not have of the L2 cache, half of it each. On an H200, 8,000,000 × 20,000,000 with 224
// million entries: in one pass 14.4 ms in f32 and 17.6 ms in f64, in two 4.1 + 9.3 and 5.5 + 11.5 ms.
pub(super) fn beyond_l2(limits: &DeviceLimits, vector_bytes: f64, product: Product) -> f64 {
    match product {
        Product::Fused => {
            (2.0 * vector_bytes - L2_OF_VECTORS * limits.l2_bytes as f64).max(0.0) / 2.0
        }
        _ => 0.0,
    }
}

// A vector that is added to beside a stream of X has as much of the L2 cache as one of twice its size alone: 14 million additions to
// 33 MB take 0.6 ms on an H100 in Xᵀ·p, alone 0.17. Small ones stay there all the same.
fn beside_x(vector_bytes: f64) -> f64 {
    const SMALL: f64 = 4e6;
    vector_bytes * (1.0 + (vector_bytes / SMALL).min(1.0))
}

// Operations over a rate in 10⁹ per second; a rate of zero forbids the operation.
fn seconds(operations: f64, rate: f64) -> f64 {
    if operations <= 0.0 {
        0.0
    } else {
        operations / (rate.max(1e-9) * 1e9)
    }
}
