//! Predicted time of products whose work is cut by nonzeros: see [`gpu_kernels::fused::balanced`].
//!
//! A pass over the rows of X gives `X·y`, one over those of its stored transpose `Xᵀ·p`; the fused product is both. How
//! long rows are does not matter.

use gpu_kernels::describe::Input;
use gpu_kernels::fused::balanced::{HELD, tiles};

use super::candidate::Candidate;
use super::launch::Blocks;
use super::prediction::soft_max;
use super::sparse_cost::{L2_SECTOR, gathers_in_order, hits, wanted_bytes};
use crate::plan::limits::DeviceLimits;
use crate::plan::problem::{Precision, Problem, Product};

/// Instructions of a lane for an entry and for a row, read off the compiled kernel.
const PER_ENTRY: f64 = 26.0;
const PER_ROW: f64 = 60.0;
/// The same for a row of the transpose, most of which have one entry or none where there are many: fitted. `Xᵀ·p` of 34 million
/// entries in 29,890,095 columns takes 0.43 ms on an H100, of 42 million in 3,231,961 columns 0.27.
const PER_COLUMN: f64 = 376.0;
/// Dependent round trips to memory: the entries of the next tile are on the way while one is worked on.
pub(super) const ROUND_TRIPS: f64 = 1.5;
/// The share of the L1 cache that keeps the input while entries are on their way past it, in f32 and f64: 4,000,000 rows of 20 take 205,
/// 209, 233 and 441 µs on an H200 with 1,000, 4,000, 10,000 and 40,000 columns of f32, 305, 383, 517 and 671 with f64.
const L1_SHARE_OF_INPUT: [f64; 2] = [0.18, 0.06];
/// Smaller inputs than this are in L1 in part when gathers from them are measured alone.
const BEYOND_L1: f64 = 4e5;
/// What products take to be written to shared memory, read and summed, in gathers from there of as many words, in f32 and f64: from
/// the rows of 20 above with 1,000 columns.
const EXCHANGE: [f64; 2] = [1.0, 2.8];
/// What a block takes to copy its input to shared memory before it begins, nanoseconds a byte: 40,000 columns of f32 take 12 µs more
/// than 10,000 do.
const COPY_NS: f64 = 0.1;
/// The share of gathers from p that a column in every row saves: by Zipf's law with exponents of 0.8, 1.1 and 1.4 over
/// 10,000 columns Xᵀ·p takes 0.52, 0.43 and 0.36 ms, and 0.61 with uniform ones.
const SHARED_SECTORS: f64 = 0.5;
/// Kernels of a pass.
const KERNELS: f64 = 2.0;

/// What a pass takes to begin and to end besides, microseconds.
const BEGIN_US: f64 = 3.0;

/// A pass over rows, of X or of its transpose.
struct Pass {
    outputs: f64,
    inputs: f64,
    /// What its gathers take.
    gathers: Gathered,
    /// What is copied first, bytes.
    copied: f64,
    /// Instructions of a lane for each output.
    per_output: f64,
}

/// What a product costs, seconds.
#[derive(Default)]
pub(super) struct BalancedCost {
    pub stream: f64,
    pub access: f64,
    pub issue: f64,
    pub launch: f64,
}

/// The cost of a product, whatever its launch.
pub(super) fn cost(
    limits: &DeviceLimits,
    kernel: &Candidate,
    (problem, product): (&Problem, Product),
) -> BalancedCost {
    let (rows, cols) = (problem.rows as f64, problem.cols as f64);
    let is_copied = kernel.input == Input::Shared;
    let over_rows = || Pass {
        outputs: rows,
        inputs: cols,
        gathers: match is_copied {
            true => Gathered::from_shared(limits, problem),
            false => gathers_from_y(limits, problem),
        },
        copied: f64::from(u8::from(is_copied)) * cols * f64::from(problem.dtype.bytes()),
        per_output: PER_ROW,
    };
    let over_columns = || Pass {
        outputs: cols,
        inputs: rows,
        gathers: gathers_from_p(limits, problem),
        copied: 0.0,
        per_output: PER_COLUMN,
    };
    let passes = match product {
        Product::Fused => [Some(over_rows()), Some(over_columns())],
        Product::Forward => [Some(over_rows()), None],
        Product::Transposed => [None, Some(over_columns())],
    };
    let mut sum = BalancedCost::default();
    for pass in passes.iter().flatten() {
        let one = pass.cost(limits, problem);
        sum.stream += one.stream;
        sum.access += one.access;
        sum.issue += one.issue;
        sum.launch += one.launch;
    }
    sum
}

impl Pass {
    fn cost(&self, limits: &DeviceLimits, problem: &Problem) -> BalancedCost {
        let (rates, element) = (&limits.rates, f64::from(problem.dtype.bytes()));
        let nnz = problem.nnz.unwrap_or(0) as f64;
        let exchanged = EXCHANGE[of(problem)] * nnz / rates.shared_gather;
        let bytes = nnz * (element + 4.0) + self.outputs * (element + 4.0) + self.inputs * element;
        let instructions = nnz * PER_ENTRY + self.outputs * self.per_output;
        BalancedCost {
            stream: bytes / (rates.stream_gbs * 1e9),
            // What stays on the SM takes one pipe.
            access: soft_max([
                self.gathers.here + exchanged,
                self.gathers.there,
                0.0,
                0.0,
                0.0,
            ]) / 1e9,
            issue: instructions / f64::from(limits.warp_size.max(1)) / (rates.issue * 1e9),
            launch: (KERNELS * rates.launch_us + BEGIN_US) * 1e-6 + COPY_NS * self.copied * 1e-9,
        }
    }
}

/// Nanoseconds for the gathers from y of a pass over rows.
fn gathers_from_y(limits: &DeviceLimits, problem: &Problem) -> Gathered {
    let hits = hits(problem, l1_of_input(limits, problem), 0.0);
    let gathers = Gathers {
        bytes: wanted_bytes(problem),
        hits,
        left: 1.0,
    };
    gathers.ns(limits, problem)
}

/// The same from p of a pass over the rows of the transpose: entries of a column come in the order of its rows, and those
/// of a frequent one share sectors.
fn gathers_from_p(limits: &DeviceLimits, problem: &Problem) -> Gathered {
    let rows = (problem.rows as f64).max(1.0);
    let bytes = rows * f64::from(problem.dtype.bytes());
    let hits = (l1_of_input(limits, problem) / bytes).min(1.0);
    let each = problem.nnz.unwrap_or(0) as f64 / (problem.cols as f64).max(1.0);
    let alike = gathers_in_order(bytes, each.max(1.0)) / each.max(1.0);
    let in_nearly_every_row = match problem.frequent_columns() {
        Some((_, entries)) => {
            problem.busiest_column() / rows * entries / problem.nnz.unwrap_or(0).max(1) as f64
        }
        None => 0.0,
    };
    let left = alike * (1.0 - SHARED_SECTORS * in_nearly_every_row.min(1.0));
    Gathers { bytes, hits, left }.ns(limits, problem)
}

/// L1 that keeps the input.
fn l1_of_input(limits: &DeviceLimits, problem: &Problem) -> f64 {
    L1_SHARE_OF_INPUT[of(problem)] * f64::from(limits.unified_cache_bytes)
}

/// The place of figures of a type in a pair.
fn of(problem: &Problem) -> usize {
    usize::from(problem.dtype == Precision::F64)
}

/// Nanoseconds of gathers: on the SM, and from L2.
struct Gathered {
    here: f64,
    there: f64,
}

impl Gathered {
    /// All of them from shared memory.
    fn from_shared(limits: &DeviceLimits, problem: &Problem) -> Self {
        Gathered {
            here: problem.nnz.unwrap_or(0) as f64 / limits.rates.shared_gather,
            there: 0.0,
        }
    }
}

/// A gather of each entry.
struct Gathers {
    /// From this many on.
    bytes: f64,
    /// The share that hits L1.
    hits: f64,
    /// The share of the rest that goes to L2.
    left: f64,
}

impl Gathers {
    fn ns(&self, limits: &DeviceLimits, problem: &Problem) -> Gathered {
        let rates = &limits.rates;
        let nnz = problem.nnz.unwrap_or(0) as f64;
        // The sectors of X take the same way from L2.
        let sectors = problem.matrix_bytes() / L2_SECTOR;
        let missed = (self.left * nnz + sectors) * (1.0 - self.hits);
        Gathered {
            here: nnz * self.hits / rates.gather_l1,
            there: missed / rates.gather.at(self.bytes.max(BEYOND_L1)),
        }
    }
}

/// Bytes of X that the resident blocks of an SM have requested at once, of this many for an entry: L1 has to have room for them.
pub(super) fn bytes_in_flight(limits: &DeviceLimits, blocks: &Blocks, entry: f64) -> f64 {
    let together = f64::from(blocks.occupancy.blocks_per_sm);
    let left = f64::from(limits.unified_cache_bytes) - together * blocks.shared_bytes as f64;
    let threads = f64::from(blocks.bs) * together;
    (threads * HELD as f64 * entry).min(left)
}

/// The most blocks of `bs` threads that have work: a tile for each warp, in the pass that has most.
pub(super) fn most_blocks(limits: &DeviceLimits, problem: &Problem, bs: u32) -> u32 {
    let warps = (bs / limits.warp_size.max(1)).max(1);
    tiles(problem.rows.max(problem.cols), problem.nnz.unwrap_or(0)).div_ceil(warps)
}
