//! Predicted time of products whose work is cut by nonzeros: see [`gpu_kernels::fused::balanced`].
//!
//! A pass over the rows of X gives `X·y`, one over those of its stored transpose `Xᵀ·p`; the fused product is both. How
//! long rows are does not matter.

use gpu_kernels::fused::balanced::{PER_THREAD, blocks_at_once, tiles};

use super::launch::Blocks;
use super::prediction::soft_max;
use super::reason::Reason;
use super::sparse_cost::{L2_SECTOR, gathers_in_order, hits, wanted_bytes};
use super::value::Plan;
use crate::plan::limits::DeviceLimits;
use crate::plan::problem::{Precision, Problem, Product};

/// Instructions of a lane for an entry and for a row, read off the compiled kernel.
const PER_ENTRY: f64 = 22.0;
const PER_ROW: f64 = 60.0;
/// The same for a row of the transpose, most of which have one entry or none where there are many: fitted. `Xᵀ·p` of 34 million
/// entries in 29,890,095 columns takes 0.43 ms on an H100, of 42 million in 3,231,961 columns 0.27.
const PER_COLUMN: f64 = 376.0;
/// Dependent round trips to memory: the entries of the next tile are on the way while one is worked on.
pub(super) const ROUND_TRIPS: f64 = 1.5;
/// The share of the L1 cache that keeps the input while entries stream past it.
const L1_SHARE_OF_INPUT: f64 = 0.3;
/// How much less of it stays than beside rows: X·y with 1,000,000 columns by Zipf's law and log-normal rows takes 0.47 ms in
/// place of 0.36.
const KEPT: f64 = 0.7;
/// What products take to be written to shared memory and read, in gathers from there of as many words: fitted. 4,000,000
/// rows on an H200: 268 µs (f64: 455) with 20 a row and n = 10,000, 627 with n = 1,000,000, 642 with n = 100,000 and
/// giants, where a vector per row takes 182 (272), 625 and 797.
const EXCHANGE: f64 = 4.6;
/// How much longer it takes in f64: 4,000,000 rows with n = 1,000,000 and 100,000 take 1.45 and 1.48 ms in both passes.
const EXCHANGE_OF_F64: f64 = 1.4;
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
    /// What its gathers take, nanoseconds.
    gathers: f64,
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
pub(super) fn cost(limits: &DeviceLimits, problem: &Problem, product: Product) -> BalancedCost {
    let (rows, cols) = (problem.rows as f64, problem.cols as f64);
    let over_rows = || Pass {
        outputs: rows,
        inputs: cols,
        gathers: gathers_from_y(limits, problem),
        per_output: PER_ROW,
    };
    let over_columns = || Pass {
        outputs: cols,
        inputs: rows,
        gathers: gathers_from_p(limits, problem),
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
        let words = match problem.dtype {
            Precision::F32 => 1.0,
            Precision::F64 => EXCHANGE_OF_F64,
        };
        let exchanged = EXCHANGE * nnz * words / rates.shared_gather;
        let bytes = nnz * (element + 4.0) + self.outputs * (element + 4.0) + self.inputs * element;
        let instructions = nnz * PER_ENTRY + self.outputs * self.per_output;
        BalancedCost {
            stream: bytes / (rates.stream_gbs * 1e9),
            access: soft_max([self.gathers, exchanged, 0.0, 0.0, 0.0]) / 1e9,
            issue: instructions / f64::from(limits.warp_size.max(1)) / (rates.issue * 1e9),
            launch: (KERNELS * rates.launch_us + BEGIN_US) * 1e-6,
        }
    }
}

/// Nanoseconds for the gathers from y of a pass over rows.
fn gathers_from_y(limits: &DeviceLimits, problem: &Problem) -> f64 {
    let room = l1_of_input(limits);
    let hits = KEPT * hits(problem, room, 0.0);
    let gathers = Gathers {
        bytes: wanted_bytes(problem),
        hits,
        left: 1.0,
    };
    gathers.ns(limits, problem)
}

/// The same from p of a pass over the rows of the transpose: entries of a column come in the order of its rows, and those
/// of a frequent one share sectors.
fn gathers_from_p(limits: &DeviceLimits, problem: &Problem) -> f64 {
    let rows = (problem.rows as f64).max(1.0);
    let bytes = rows * f64::from(problem.dtype.bytes());
    let hits = (l1_of_input(limits) / bytes).min(1.0);
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
fn l1_of_input(limits: &DeviceLimits) -> f64 {
    L1_SHARE_OF_INPUT * f64::from(limits.unified_cache_bytes)
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
    fn ns(&self, limits: &DeviceLimits, problem: &Problem) -> f64 {
        let rates = &limits.rates;
        let nnz = problem.nnz.unwrap_or(0) as f64;
        // The sectors of X take the same way from L2.
        let sectors = problem.matrix_bytes() / L2_SECTOR;
        let missed = (self.left * nnz + sectors) * (1.0 - self.hits) / rates.gather.at(self.bytes);
        nnz * self.hits / rates.gather_l1 + missed
    }
}

/// Bytes of X that the resident blocks of an SM have requested at once, of this many for an entry.
pub(super) fn bytes_in_flight(blocks: &Blocks, entry: f64) -> f64 {
    let threads = f64::from(blocks.bs) * f64::from(blocks.occupancy.blocks_per_sm);
    threads * f64::from(PER_THREAD) * entry
}

/// Tiles of the pass that has most.
pub(super) fn most_tiles(problem: &Problem) -> u32 {
    tiles(problem.rows.max(problem.cols), problem.nnz.unwrap_or(0))
}

/// Whether this many tiles have a block each if more blocks than those of a plan share an SM, unless their number was fixed:
/// else some SMs work on a further tile while the others wait.
pub(crate) fn are_at_once(limits: &DeviceLimits, tiles: u32, plan: &Plan) -> bool {
    let is_fixed = |reason: &Reason| matches!(reason, Reason::Forced { field, .. } if field == "blocks_per_sm");
    let most = limits.sms * blocks_at_once(plan.precision.bytes());
    (plan.grid + 1..=most).contains(&tiles) && !plan.reasons.iter().any(is_fixed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::candidates_of;
    use crate::plan::fused::{Forced, Planner, Strategy};

    #[test]
    fn tiles_are_at_once_where_a_few_blocks_more_have_them_all() {
        let limits = DeviceLimits::known("h200").expect("it is known");
        let kernels = candidates_of(Precision::F32, "sm_90");
        let problem = Problem::sparse(20_242, 47_236, 1_497_908, Precision::F32);
        let plan = |blocks_per_sm| {
            let forced = Forced {
                strategy: Some(Strategy::BalancedDot),
                blocks_per_sm,
                ..Forced::default()
            };
            let planner = Planner::new(&limits, &kernels).forced(forced);
            let plan = planner.plan(&problem, Product::Forward).expect("a plan");
            Plan { grid: 660, ..plan }
        };
        let own = plan(None);
        assert_eq!(most_tiles(&problem), 755);
        assert!(are_at_once(&limits, 755, &own));
        assert!(are_at_once(&limits, 792, &own));
        assert!(!are_at_once(&limits, 793, &own));
        // Each has a block already.
        assert!(!are_at_once(&limits, 660, &own));
        assert!(!are_at_once(&limits, 755, &plan(Some(2))));
    }
}
