//! Predicted time of products with hot columns: see [`gpu_kernels::fused::hot`].
//!
//! One pass over the rows, bound like one with all sums in shared memory, with a gather from global memory for every
//! entry of a cold column; then a pass over panels of the cold columns. A hot entry has 16 bits for its place and a value
//! in as few as hold it.

use gpu_kernels::fused::hot::{HELD, LANES, places_within};

use super::geometry::Blocks;
use super::panels::Pass;
use super::problem::{ColumnUse, Precision, Problem, Product};
use crate::plan::limits::DeviceLimits;

/// Shared memory of a block: what is left of 228 KiB is the L1 cache, which rows on their way need. With 10,000 columns
/// and 20 a row on an H200 0.23 ms, with 18,000 0.34 ms.
pub(crate) const SHARED_BYTES: u32 = 128 * 1024;
/// The same where that is enough for all columns: then no row needs the cache.
const SHARED_BYTES_OF_ALL: u32 = 163 * 1024;
/// Bytes of a place, and of the rank of a cold entry.
const PLACE_BYTES: f64 = 2.0;
const RANK_BYTES: f64 = 4.0;
/// Instructions of a lane for an entry, read off the compiled kernel.
const PER_ENTRY: f64 = 30.0;
/// Dependent round trips to memory: rows, whose offsets come before, and gathers of what is cold.
pub(super) const ROUND_TRIPS: f64 = 1.5;
/// Those of a step that registers do not hold: entries and gathers, then entries again.
const TRIPS_PER_STEP: f64 = 2.5;
/// A warp adds neighbouring sums to global memory at once.
const FLUSH_COALESCING: f64 = 4.0;

/// The most places that the planner gives to hot columns of elements of `size` bytes, of `cols` columns.
pub(crate) const fn places(size: u32, cols: u64) -> u32 {
    let all = places_within(SHARED_BYTES_OF_ALL, size);
    if cols <= all as u64 {
        return all;
    }
    places_within(SHARED_BYTES, size)
}

/// What a product costs, seconds.
pub(super) struct HotCost {
    pub stream: f64,
    pub access: f64,
    pub issue: f64,
    pub longest_row: f64,
    /// Before and after the pass over the rows.
    pub ends: f64,
    pub launch: f64,
}

/// The cost of a product, whatever its launch.
pub(super) fn cost(limits: &DeviceLimits, problem: &Problem, product: Product) -> HotCost {
    let (rates, element) = (&limits.rates, f64::from(problem.dtype.bytes()));
    let (rows, cols) = (problem.rows as f64, problem.cols as f64);
    let nnz = problem.nnz.unwrap_or(0) as f64;
    let use_ = problem.columns.unwrap_or(ALL_COLD);
    let hot = (use_.hot_entries as f64).min(nnz);
    let cold = nnz - hot;
    let (add, scatter) = match problem.dtype {
        Precision::F32 => (rates.shared_fixed_f32, &rates.scatter_f32),
        Precision::F64 => (rates.shared_fixed_f64, &rates.scatter_f64),
    };
    let gathers = match product {
        Product::Transposed => 0.0,
        _ => hot / rates.shared_gather + cold / rates.gather.at(element * cols),
    };
    let value = f64::from(problem.values.bytes(problem.dtype));
    let of_cold = if value > 0.0 { element } else { 0.0 };
    let bytes =
        hot * (PLACE_BYTES + value) + cold * (RANK_BYTES + of_cold) + rows * (element + 4.0);
    let places = f64::from(use_.hot_columns);
    let flushed =
        places * f64::from(limits.sms) / (FLUSH_COALESCING * scatter.at(element * places));
    // y and its exponents are read, w is written.
    let begun = cols * (2.0 * element + 4.0) / rates.stream_gbs;
    HotCost {
        stream: bytes / (rates.stream_gbs * 1e9),
        access: (gathers + hot / add) / 1e9,
        issue: nnz * PER_ENTRY / f64::from(limits.warp_size.max(1)) / (rates.issue * 1e9),
        longest_row: beyond_held(problem) * TRIPS_PER_STEP * rates.latency_us * 1e-6,
        ends: (flushed + begun) / 1e9 + cold_pass(limits, problem, (cold, use_)),
        launch: 4.0 * rates.launch_us * 1e-6,
    }
}

/// Steps of the longest row that registers do not hold.
fn beyond_held(problem: &Problem) -> f64 {
    let lanes = f64::from(LANES[0]);
    (problem.longest() / lanes - f64::from(HELD))
        .max(0.0)
        .ceil()
}

/// Nothing is known to be hot.
const ALL_COLD: ColumnUse = ColumnUse {
    busiest: 0,
    hot_columns: 0,
    hot_entries: 0,
    cold_columns: u32::MAX,
};

/// The pass over the panels of the cold columns.
fn cold_pass(limits: &DeviceLimits, problem: &Problem, (entries, use_): (f64, ColumnUse)) -> f64 {
    if entries <= 0.0 {
        return 0.0;
    }
    let pass = Pass {
        inputs: problem.rows as f64,
        outputs: f64::from(use_.cold_columns).min(problem.cols as f64),
        entries,
        busiest: 0.0,
        longest: 0.0,
    };
    let cost = pass.cost(limits, problem);
    cost.stream.max(cost.access + cost.queue).max(cost.issue) + cost.flush
}

/// Bytes of X that the resident blocks of an SM have asked for at once, of so many for an entry.
pub(super) fn bytes_in_flight(blocks: &Blocks, problem: &Problem, entry: f64) -> f64 {
    let threads = f64::from(blocks.bs) * f64::from(blocks.occupancy.blocks_per_sm);
    let held = f64::from(HELD).min((problem.mean_row() / 4.0).max(1.0));
    threads * held * entry
}
