//! Predicted time of products with hot columns: see [`gpu_kernels::fused::hot`].
//!
//! One pass over the rows, bound like one with all sums in shared memory, with a gather from global memory for every
//! entry of a cold column; then a pass over panels of the cold columns. A hot entry has 16 bits for its place and a value
//! in as few as hold it.

use gpu_kernels::fused::hot::{HELD, HELD_COLD, places_within};
use gpu_kernels::fused::{HOT_BYTES, HotVariant};

use super::even::BEYOND_OF_SKEWED;
use super::launch::Blocks;
use super::panels::Pass;
use super::prediction::soft_max;
use super::sparse_cost::{L2_SECTOR, l1_left};
use crate::plan::limits::DeviceLimits;
use crate::plan::problem::{ColumnUse, Precision, Problem, Product};

/// Shared memory of a block instead of [`HOT_BYTES`] where that is enough for all columns: then no row needs the cache, but for what
/// is on its way. The table of [`HOT_BYTES`] says what less of it costs.
const SHARED_BYTES_OF_ALL: u32 = 200 * 1024;
/// Bytes of a place, and of the rank of a cold entry.
const PLACE_BYTES: f64 = 2.0;
const RANK_BYTES: f64 = 4.0;
/// Instructions of a lane for an entry, read off the compiled kernel.
const PER_ENTRY: f64 = 28.0;
/// Dependent round trips to memory: rows, whose offsets come before, and gathers of what is cold.
pub(super) const ROUND_TRIPS: f64 = 1.5;
/// A warp adds neighbouring sums to global memory at once.
const FLUSH_COALESCING: f64 = 3.22;
/// What fixed-point sums take of the time that they take in rows as they came: places are 16 bits, two to a word, and
/// values are scaled already. They overlap with gathers from shared memory: 80 million entries of 10,000 columns take
/// 0.144 ms on an H200, with equal values, which are not read, 0.118.
const SHARE_OF_FIXED: f64 = 0.79;
/// What a warp takes for a slice, or for as many steps of a long one as registers hold, microseconds, and how much more
/// for a byte of an element: loads, gathers, a sum over lanes and additions, one after the other. 80 million entries in
/// blocks of 512 threads on an H200: 0.23 ms for 250,000 slices, all columns hot, 1.28 for 1,000,000, all cold (f64: 0.34
/// and 1.64).
const SLICE_US: f64 = 0.81;
const SLICE_BYTE_US: f64 = 0.15;
/// What is left of it for cold entries where nothing is gathered: `Xᵀ·p` with 40,000 columns takes 0.32 ms on an H200, the
/// fused product 0.44; with 1,000,000 in f64 0.71 and 1.09. Of rows of 20,000 entries among those of 20 more is left: 0.54 ms
/// of 0.93 in f32, 0.74 of 1.16 in f64.
const COLD_WITHOUT_GATHERS: f64 = 0.55;
const COLD_OF_UNEVEN_WITHOUT_GATHERS: f64 = 0.6;
/// The same for a slice that one warp is left with: rows of 20,000 entries among those of 20 add 0.2 ms in f32.
const ALONE_US: f64 = 1.3;
/// How many lanes a row takes beyond those that its entries fill: lanes are powers of two, and how many entries of a row
/// are cold varies.
const UNEVEN_LANES: f64 = 1.08;
const COLD_LANES: f64 = 1.5;
/// The share of the memory's rate that a pass over panels reaches in blocks of 1,024 threads.
const COLD_STREAM_SHARE: f64 = 0.77;

/// The most places that the planner gives to hot columns of elements of `size` bytes, of `cols` columns, where a block may have
/// `shared_per_block` bytes.
pub(crate) fn places(shared_per_block: u32, size: u32, cols: u64) -> u32 {
    let all = places_within(shared_per_block.min(SHARED_BYTES_OF_ALL), size);
    if cols <= u64::from(all) {
        return all;
    }
    places_within(HOT_BYTES, size)
}

/// Threads of a block over panels of cold columns, beside a walk in blocks of `bs` threads: the most that there are, where the walk has
/// as many as its registers allow. With 1,024 instead of 768 in f64 cold columns take 290 instead of 311 µs of an H200 (66 million
/// entries, three panels), and `Xᵀ·p` with 40,000 columns 564 instead of 589.
pub(crate) fn threads_of_cold(walk: &HotVariant, bs: u32, size: u32) -> u32 {
    match bs == walk.most_threads(size) {
        true => MOST_OF_PANELS,
        false => bs,
    }
}

/// Threads of a block over panels, at most.
pub(crate) const MOST_OF_PANELS: u32 = 1_024;

/// How much longer the flush of the pass over panels takes here: fitted.
const FLUSH_OF_COLD: f64 = 1.11;

/// What a product costs, seconds.
pub(super) struct HotCost {
    pub stream: f64,
    pub access: f64,
    pub issue: f64,
    /// Slices of the longest row beyond the first.
    pub longest_row: f64,
    /// Before and after the pass over the rows.
    pub ends: f64,
    pub launch: f64,
}

/// Entries, and how they are spread.
struct Spread {
    use_: ColumnUse,
    hot: f64,
    cold: f64,
}

/// Where nothing is known of columns, they are all hot if there are places for them, else all cold.
fn spread(limits: &DeviceLimits, problem: &Problem) -> Spread {
    let nnz = problem.nnz.unwrap_or(0);
    let size = problem.dtype.bytes();
    let all = places(limits.shared_per_block, size, problem.cols);
    let hot_columns = match u32::try_from(problem.cols) {
        Ok(cols) if cols <= all => cols,
        _ => 0,
    };
    let unknown = ColumnUse {
        busiest: 0,
        hot_columns,
        hot_entries: if hot_columns > 0 { nnz } else { 0 },
        cold_columns: if hot_columns > 0 { 0 } else { u32::MAX },
        lines: [0; 3],
    };
    let use_ = problem.columns.unwrap_or(unknown);
    let hot = use_.hot_entries.min(nnz) as f64;
    Spread {
        use_,
        hot,
        cold: nnz as f64 - hot,
    }
}

/// The cost of a product, whatever its launch.
pub(super) fn cost(limits: &DeviceLimits, problem: &Problem, product: Product) -> HotCost {
    let (rates, element) = (&limits.rates, f64::from(problem.dtype.bytes()));
    let (rows, cols) = (problem.rows as f64, problem.cols as f64);
    let spread = spread(limits, problem);
    let Spread { use_, hot, cold } = &spread;
    let (hot, cold) = (*hot, *cold);
    let (add, scatter) = match problem.dtype {
        Precision::F32 => (rates.shared_fixed_f32, &rates.scatter_f32),
        Precision::F64 => (rates.shared_fixed_f64, &rates.scatter_f64),
    };
    let value = f64::from(problem.values.bytes(problem.dtype));
    let of_cold = if value > 0.0 { element } else { 0.0 };
    let bytes =
        hot * (PLACE_BYTES + value) + cold * (RANK_BYTES + of_cold) + rows * (element + 4.0);
    let (from_shared, gathers) = match product {
        Product::Transposed => (0.0, 0.0),
        _ => {
            let sectors = bytes / L2_SECTOR * cold / (hot + cold).max(1.0);
            (
                hot / rates.shared_gather,
                cold_gathers(limits, problem, &spread, sectors),
            )
        }
    };
    let places = f64::from(use_.hot_columns);
    let flushed =
        places * f64::from(limits.sms) / (FLUSH_COALESCING * scatter.at(element * places));
    // y and its exponents are read, w is written.
    let begun = cols * (2.0 * element + 4.0) / rates.stream_gbs;
    let instructions = (hot + cold) * PER_ENTRY;
    HotCost {
        stream: bytes / (rates.stream_gbs * 1e9),
        access: (gathers + from_shared.hypot(SHARE_OF_FIXED * hot / add)) / 1e9,
        issue: instructions / f64::from(limits.warp_size.max(1)) / (rates.issue * 1e9),
        longest_row: beyond_first(problem, product, &spread) * ALONE_US * 1e-6,
        ends: (flushed + begun) / 1e9 + cold_pass(limits, problem, &spread),
        launch: 4.0 * rates.launch_us * 1e-6,
    }
}

/// Nanoseconds for gathers of cold columns' elements, beside this many sectors of X that take the same way. L1 keeps them
/// as long as they are few: 28,000 columns take 0.45 ms on an H200, 100,000 take 0.81.
fn cold_gathers(limits: &DeviceLimits, problem: &Problem, spread: &Spread, sectors: f64) -> f64 {
    let (rates, element) = (&limits.rates, problem.dtype.bytes());
    let taken = f64::from(HOT_BYTES + limits.shared_reserved_per_block);
    let bytes = cold_columns(problem, spread) * f64::from(element);
    let kept = (l1_left(limits.unified_cache_bytes, taken) / bytes.max(1.0)).min(1.0);
    let hits = kept * kept;
    let wanted = wanted_of_cold(limits, problem, spread, bytes);
    let missed = (spread.cold + sectors) * (1.0 - hits) / rates.gather.at(wanted);
    missed + spread.cold * hits / rates.gather_l1
}

/// What cold columns of this many bytes take of L2, as if they were alike: of columns of unlike frequencies it keeps those that are wanted
/// again. The shape of kddb takes 3.47 ms on an H200, of which its 80 MB of cold columns would take 2.6 if they were alike.
fn wanted_of_cold(limits: &DeviceLimits, problem: &Problem, spread: &Spread, bytes: f64) -> f64 {
    let nnz = problem.nnz.unwrap_or(0).max(1) as f64;
    let share_if_alike = f64::from(spread.use_.hot_columns) / problem.cols.max(1) as f64;
    let are_alike = spread.hot / nnz < 2.0 * share_if_alike;
    let beyond = (bytes - limits.l2_bytes as f64 / 2.0).max(0.0);
    match are_alike {
        true => bytes,
        false => bytes - (1.0 - BEYOND_OF_SKEWED) * beyond,
    }
}

/// Cold columns that have entries, of this many that may have: fewer than chance would have it, as they are no more alike
/// than hot ones. 5.9 million of 20 million have one by Zipf's law with an exponent of 1.1, and 22 million entries.
fn cold_columns(problem: &Problem, spread: &Spread) -> f64 {
    const EVENNESS: f64 = 0.5;
    let most = u64::from(spread.use_.cold_columns).min(problem.cols).max(1) as f64;
    most * (1.0 - (-EVENNESS * spread.cold / most).exp())
}

/// Slices of a warp, those of long rows counted as often as their steps exceed the registers.
fn slices(problem: &Problem, spread: &Spread) -> f64 {
    let rows = (problem.rows as f64).max(1.0);
    let hot = spread.hot / rows / f64::from(2 * HELD);
    let cold = spread.cold / rows / f64::from(HELD_COLD);
    let lanes = match is_uneven(problem) {
        true => 1.0 + UNEVEN_LANES * hot.max(cold),
        // What an equal row has of hot entries fills lanes of a power of two.
        false => hot.log2().ceil().exp2().max(COLD_LANES * cold),
    };
    rows * lanes.max(2.0) / 32.0
}

fn is_uneven(problem: &Problem) -> bool {
    problem.longest() > 2.0 * problem.mean_row()
}

/// The most blocks of `bs` threads that slices keep busy.
pub(super) fn most_blocks(limits: &DeviceLimits, problem: &Problem, bs: u32) -> u32 {
    let warps = f64::from((bs / 32).max(1));
    (slices(problem, &spread(limits, problem)) / warps)
        .ceil()
        .max(1.0) as u32
}

/// Seconds for the slices of a warp one after the other.
pub(super) fn in_turn(
    limits: &DeviceLimits,
    problem: &Problem,
    product: Product,
    blocks: &Blocks,
) -> f64 {
    let warps = f64::from(limits.sms.max(1)) * f64::from(blocks.occupancy.warps_per_sm.max(1));
    let slice = SLICE_US + SLICE_BYTE_US * f64::from(problem.dtype.bytes());
    let spread = spread(limits, problem);
    let cold = match product {
        Product::Transposed if is_uneven(problem) => COLD_OF_UNEVEN_WITHOUT_GATHERS,
        Product::Transposed => COLD_WITHOUT_GATHERS,
        _ => 1.0,
    };
    let taken = (spread.hot + cold * spread.cold) / (spread.hot + spread.cold).max(1.0);
    slices(problem, &spread) * taken / warps * slice * 1e-6
}

/// How often the longest row's steps exceed the registers; cold ones are for gathers alone.
fn beyond_first(problem: &Problem, product: Product, spread: &Spread) -> f64 {
    let share = problem.longest() / (spread.hot + spread.cold).max(1.0) / 32.0;
    let hot = spread.hot * share / f64::from(2 * HELD);
    let cold = match product {
        Product::Transposed => 0.0,
        _ => spread.cold * share / f64::from(HELD_COLD),
    };
    (hot + cold - 1.0).max(0.0)
}

/// The pass over the panels of the cold columns.
fn cold_pass(limits: &DeviceLimits, problem: &Problem, spread: &Spread) -> f64 {
    if spread.cold <= 0.0 {
        return 0.0;
    }
    let pass = Pass {
        inputs: problem.rows as f64,
        outputs: cold_columns(problem, spread),
        entries: spread.cold,
        frequent: None,
        busiest: 0.0,
        longest: 0.0,
    };
    let cost = pass.cost(limits, problem);
    let stream = cost.stream / COLD_STREAM_SHARE;
    soft_max([stream, cost.access, cost.issue, 0.0, 0.0]) + FLUSH_OF_COLD * cost.flush
}

/// Bytes of X that the resident blocks of an SM have requested at once, of this many for an entry.
pub(super) fn bytes_in_flight(blocks: &Blocks, problem: &Problem, entry: f64) -> f64 {
    let threads = f64::from(blocks.bs) * f64::from(blocks.occupancy.blocks_per_sm);
    let held = f64::from(HELD).min((problem.mean_row() / 4.0).max(1.0));
    threads * held * entry
}

#[cfg(test)]
mod tests {
    use gpu_kernels::fused::{HotValues, Product as KernelProduct};

    use super::*;

    #[test]
    fn cold_columns_have_all_threads_unless_the_walk_has_fewer_than_it_could() {
        let walk = HotVariant::Walk(KernelProduct::Transposed, HotValues::Whole);
        for (bs, size, cold) in [
            (1_024, 4, 1_024),
            (768, 8, 1_024),
            (512, 4, 512),
            (512, 8, 512),
        ] {
            assert_eq!(
                threads_of_cold(&walk, bs, size),
                cold,
                "{bs} of {size} bytes"
            );
        }
    }
}
