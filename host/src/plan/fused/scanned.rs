//! Predicted time of `X·y` whose rows are summed by scans: see *scan* at [`gpu_kernels::fused::balanced`].

use gpu_kernels::describe::Input;
use gpu_kernels::fused::balanced::{HELD, tiles};

use super::balanced::BalancedCost;
use super::candidate::Candidate;
use super::launch::Blocks;
use super::prediction::soft_max;
use super::sparse_cost::{L2_SECTOR, hits, wanted_bytes};
use crate::plan::limits::DeviceLimits;
use crate::plan::problem::{Precision, Problem};

/// Instructions of a lane for an entry and for a row, read off the compiled kernel.
const PER_ENTRY: f64 = 26.0;
const PER_ROW: f64 = 60.0;
/// The share of the L1 cache that keeps the input while entries are on their way past it: 4,000,000 rows of 20 take 223, 235, 246 and
/// 436 µs on an H200 with 1,000, 4,000, 10,000 and 40,000 columns of f32.
const L1_SHARE_OF_INPUT: f64 = 0.15;
/// The most gathers from columns of unlike frequencies that hit it: 4,000,000 rows of 20 by Zipf's law with an exponent of 1.1 take 291 µs
/// with 100,000 columns and 308 with 1,000,000, with 1.4 270, where a vector for each row takes 210, 266 and 197.
const MOST_HITS: f64 = 0.55;
/// Smaller inputs than this are in L1 in part when gathers from them are measured alone.
const BEYOND_L1: f64 = 4e5;
/// What products take to be written to shared memory, read and summed, in gathers from there of as many words, in f32 and f64: 1,000
/// columns in shared memory take 191 and 272 µs.
const EXCHANGE: [f64; 2] = [1.5, 2.8];
/// What a block takes to copy its input to shared memory before it begins, nanoseconds a byte: 40,000 columns of f32 take 10 µs more
/// than 10,000 do.
const COPY_NS: f64 = 0.1;
/// Kernels of a product, and what it takes to begin and to end besides, microseconds.
const KERNELS: f64 = 2.0;
const BEGIN_US: f64 = 3.0;
/// Dependent round trips to memory: the entries of the next piece are on the way while one is worked on.
pub(super) const ROUND_TRIPS: f64 = 1.5;
/// Fewer tiles than this leave warps without one, or some with twice as many as others: *walk* shares them among blocks.
const FEWEST_TILES: u32 = 16_384;

/// How much longer the longest of 32 rows is than the mean one, at least: lanes of vectors with rows of one length end together, and
/// scans from memory gain nothing by it. 4,000,000 rows of 20 take 241 µs on an H200 by scans and 210 by a vector each with 100,000
/// columns by Zipf's law with an exponent of 1.1, 295 and 266 with 1,000,000, 371 and 344 with 20,000,000; log-normal ones 312 and
/// 367 with 1,000,000.
const UNEVEN: f64 = 1.25;

/// Whether a matrix is large enough, and its rows are uneven where that has to pay for the scans.
pub(super) fn suits(kernel: &Candidate, problem: &Problem) -> bool {
    let is_large = tiles(problem.rows, problem.nnz.unwrap_or(0)) >= FEWEST_TILES;
    is_large && (kernel.input == Input::Shared || longest_of_32(problem) >= UNEVEN)
}

/// In rows of the mean length.
fn longest_of_32(problem: &Problem) -> f64 {
    let mean = problem.rows as f64 / 32.0 * problem.mean_row();
    problem.steps(1) / mean.max(1.0)
}

/// The most blocks of `bs` threads that have work: a tile for each warp.
pub(super) fn most_blocks(limits: &DeviceLimits, problem: &Problem, bs: u32) -> u32 {
    let warps = (bs / limits.warp_size.max(1)).max(1);
    tiles(problem.rows, problem.nnz.unwrap_or(0)).div_ceil(warps)
}

/// The cost of a product, whatever its launch.
pub(super) fn cost(limits: &DeviceLimits, kernel: &Candidate, problem: &Problem) -> BalancedCost {
    let (rates, element) = (&limits.rates, f64::from(problem.dtype.bytes()));
    let (rows, cols) = (problem.rows as f64, problem.cols as f64);
    let nnz = problem.nnz.unwrap_or(0) as f64;
    let (here, there, copied) = match kernel.input {
        Input::Shared => (nnz / rates.shared_gather, 0.0, cols * element),
        _ => {
            let (here, there) = gathers(limits, problem);
            (here, there, 0.0)
        }
    };
    let exchange = EXCHANGE[usize::from(problem.dtype == Precision::F64)];
    let here = here + exchange * nnz / rates.shared_gather;
    let bytes = nnz * (element + 4.0) + rows * (element + 4.0) + cols * element;
    let instructions = nnz * PER_ENTRY + rows * PER_ROW;
    BalancedCost {
        stream: bytes / (rates.stream_gbs * 1e9),
        // What stays on the SM takes one pipe.
        access: soft_max([here, there, 0.0, 0.0, 0.0]) / 1e9,
        issue: instructions / f64::from(limits.warp_size.max(1)) / (rates.issue * 1e9),
        launch: (KERNELS * rates.launch_us + BEGIN_US) * 1e-6 + COPY_NS * copied * 1e-9,
    }
}

/// Nanoseconds of gathers from y that hit L1, and of the others.
fn gathers(limits: &DeviceLimits, problem: &Problem) -> (f64, f64) {
    let (rates, nnz) = (&limits.rates, problem.nnz.unwrap_or(0) as f64);
    let room = L1_SHARE_OF_INPUT * f64::from(limits.unified_cache_bytes);
    let all_alike =
        (room / (problem.cols as f64 * f64::from(problem.dtype.bytes())).max(1.0)).min(1.0);
    let hits = hits(problem, room, 0.0).min(MOST_HITS.max(all_alike));
    // The sectors of X take the same way from L2.
    let missed = (nnz + problem.matrix_bytes() / L2_SECTOR) * (1.0 - hits);
    let rate = rates.gather.at(wanted_bytes(problem).max(BEYOND_L1));
    (nnz * hits / rates.gather_l1, missed / rate)
}

/// Bytes of X that the resident blocks of an SM have requested at once, of this many for an entry: L1 has to have room for them.
pub(super) fn bytes_in_flight(limits: &DeviceLimits, blocks: &Blocks, entry: f64) -> f64 {
    let together = f64::from(blocks.occupancy.blocks_per_sm);
    let left = f64::from(limits.unified_cache_bytes) - together * blocks.shared_bytes as f64;
    let threads = f64::from(blocks.bs) * together;
    (threads * HELD as f64 * entry).min(left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::RowSteps;
    use crate::ops::candidates_of;
    use crate::plan::fused::{Forced, Planner, Strategy};
    use crate::plan::problem::Product;

    /// The strategy of X·y, 80 million entries in a million columns, rows of that many steps.
    fn chosen(steps: RowSteps, forced: Option<Strategy>) -> Strategy {
        let limits = DeviceLimits::known("h200").expect("it is known");
        let kernels = candidates_of(Precision::F32, "sm_90");
        let problem = Problem::sparse(4_000_000, 1_000_000, 80_000_000, Precision::F32);
        let forced = Forced {
            strategy: forced,
            ..Forced::default()
        };
        let planner = Planner::new(&limits, &kernels).forced(forced);
        let plan = planner.plan(&problem.with_row_steps(steps), Product::Forward);
        plan.expect("a plan").strategy
    }

    #[test]
    fn rows_of_one_length_are_not_scanned_unless_told_to() {
        let equal = RowSteps::of_equal_rows(4_000_000, 20);
        assert_ne!(chosen(equal, None), Strategy::ScannedDot);
        assert_eq!(
            chosen(equal, Some(Strategy::ScannedDot)),
            Strategy::ScannedDot
        );
        // Log-normal lengths, whose logarithm deviates by 1.
        let steps = "[13707027, 10472836, 7890020, 5954587, 4728683, 5001306]";
        let uneven = serde_json::from_str(steps).expect("six sizes of vectors");
        assert_eq!(chosen(uneven, None), Strategy::ScannedDot);
    }
}
