//! Predicted time of products whose work is cut by nonzeros: see [`gpu_kernels::fused::balanced`].
//!
//! A pass over the rows of X gives `X·y`, one over those of its stored transpose `Xᵀ·p`; the fused product is both. How
//! long rows are does not matter.

use gpu_kernels::fused::balanced::{PER_THREAD, tiles};

use super::geometry::Blocks;
use super::problem::{Problem, Product};
use crate::plan::limits::DeviceLimits;

/// Instructions of a lane for an entry and for a row, read off the compiled kernel.
const PER_ENTRY: f64 = 22.0;
const PER_ROW: f64 = 60.0;
/// Dependent round trips to memory: the entries of the next tile are on the way while one is worked on.
pub(super) const ROUND_TRIPS: f64 = 1.5;
/// The share of the L1 cache that keeps the input while entries stream past it.
const L1_SHARE_OF_INPUT: f64 = 0.3;
/// What products take to be written to shared memory and read, in gathers from there of as many words: fitted. 4,000,000
/// rows on an H200: 268 µs (f64: 455) with 20 a row and n = 10,000, 627 with n = 1,000,000, 642 with n = 100,000 and
/// giants, where a vector per row takes 182 (272), 625 and 797.
const EXCHANGE: f64 = 2.7;
/// Kernels of a pass.
const KERNELS: f64 = 2.0;

/// What a product costs, seconds.
#[derive(Default)]
pub(super) struct BalancedCost {
    pub stream: f64,
    pub access: f64,
    pub issue: f64,
    pub launch: f64,
}

/// The cost of a product, whatever its launch.
pub(super) fn cost(limits: &DeviceLimits, problem: &Problem, product: Product) -> BalancedCost {
    let (rows, cols) = (problem.rows as f64, problem.cols as f64);
    let passes = match product {
        Product::Fused => &[(rows, cols), (cols, rows)][..],
        Product::Forward => &[(rows, cols)],
        Product::Transposed => &[(cols, rows)],
    };
    let mut sum = BalancedCost::default();
    for &(outputs, inputs) in passes {
        let one = pass(limits, problem, (outputs, inputs));
        sum.stream += one.stream;
        sum.access += one.access;
        sum.issue += one.issue;
        sum.launch += one.launch;
    }
    sum
}

fn pass(limits: &DeviceLimits, problem: &Problem, (outputs, inputs): (f64, f64)) -> BalancedCost {
    let (rates, element) = (&limits.rates, f64::from(problem.dtype.bytes()));
    let nnz = problem.nnz.unwrap_or(0) as f64;
    let input_bytes = inputs * element;
    let l1 = L1_SHARE_OF_INPUT * f64::from(limits.unified_cache_bytes);
    let hits = (l1 / input_bytes.max(1.0)).min(1.0);
    let gathers = nnz * (hits / rates.gather_l1 + (1.0 - hits) / rates.gather.at(input_bytes));
    let exchanged = EXCHANGE * nnz * (element / 4.0) / rates.shared_gather;
    let bytes = nnz * (element + 4.0) + outputs * (element + 4.0) + input_bytes;
    let instructions = nnz * PER_ENTRY + outputs * PER_ROW;
    BalancedCost {
        stream: bytes / (rates.stream_gbs * 1e9),
        access: (gathers + exchanged) / 1e9,
        issue: instructions / f64::from(limits.warp_size.max(1)) / (rates.issue * 1e9),
        launch: KERNELS * rates.launch_us * 1e-6,
    }
}

/// Bytes of X that the resident blocks of an SM have asked for at once, of so many for an entry.
pub(super) fn bytes_in_flight(blocks: &Blocks, entry: f64) -> f64 {
    let threads = f64::from(blocks.bs) * f64::from(blocks.occupancy.blocks_per_sm);
    threads * f64::from(PER_THREAD) * entry
}

/// Tiles of the pass that has most.
pub(super) fn most_tiles(problem: &Problem) -> u32 {
    tiles(problem.rows.max(problem.cols), problem.nnz.unwrap_or(0))
}
