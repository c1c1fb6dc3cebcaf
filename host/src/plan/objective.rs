//! The plan of Σ loss and gradient in one pass over X: that of the fused pattern, with kernels of its own.
//!
//! An objective reads X as the fused product does, with a loss where that has a product with v; so the same model
//! chooses among its kernels. Where the pattern takes two products (X too wide for registers, vectors beyond the L2
//! cache), so does an objective, with the losses of the rows in between.
//!
//! Three kernels of each kind are compiled: for squared loss, for logistic loss, and for any loss, by a branch that
//! all rows take alike. Registers decided (f32, sm_90): 96, 96 and 122 for rows of 28 in registers, 48, 56 and 64 for
//! sparse rows of about 20 entries with w in shared memory. The branch itself does not show on an H200: 11,000,000 × 28
//! take 391 µs with logistic loss by its own kernel and 311 µs with Poisson's, which is cheaper, by the kernel for
//! any; the pattern alone takes 279 µs.

mod over_form;

use gpu_kernels::fused::{FixedVariant, Product as KernelProduct, head};

pub use over_form::{
    Constant, OverForm, PRODUCTS_PER_POINT, by_products, row_losses_ns, runs_ahead,
};

use super::error::PlanError;
use super::fused::{Candidate, Model, Plan, Planner, Strategy};
use super::limits::DeviceLimits;
use super::occupancy::{Usage, occupancy};
use super::problem::{Precision, Problem, Product};

/// The plan of an objective.
///
/// `own` are the kernels of objectives, `pattern` those of the fused pattern, of which the halves are taken.
///
/// # Errors
/// As [`Planner::plan`].
pub fn plan(
    limits: &DeviceLimits,
    own: Vec<Candidate>,
    pattern: Vec<Candidate>,
    model: Model,
    problem: &Problem,
) -> Result<Plan, PlanError> {
    let halves = pattern
        .into_iter()
        .filter(|kernel| kernel.product != Product::Fused);
    let kernels: Vec<Candidate> = own.into_iter().chain(halves).collect();
    Planner::new(limits, &kernels)
        .model(model)
        .plan(problem, Product::Fused)
}

/// Blocks that score m rows: no more than there are chunks, nor than are resident at once.
pub fn score_blocks(m: u64, limits: &DeviceLimits) -> u32 {
    let block = gpu_kernels::objective::score::BLOCK;
    let resident = u64::from(limits.max_threads_per_sm / block * limits.sms).max(1);
    let chunks = m.div_ceil(gpu_kernels::objective::score::CHUNK);
    // No larger than the blocks that are resident.
    u32::try_from(chunks.clamp(1, resident)).unwrap_or(1)
}

/// How long two additions to one address of global memory take one after the other: 2,396,130 rows with a column in
/// nearly all of them took 23.3 ms on an H200.
const QUEUE_NS: f64 = 10.0;
/// What an H200 reads in that time, about.
const BYTES_PER_NS: f64 = 4_000.0;
/// Share of the time of reading X that a queue may take.
const SHARE: f64 = 0.5;
/// What a row costs besides its products, elements: the product, target and weight are read, g and d are written.
const ROW_ELEMENTS: f64 = 5.0;
/// Columns from which on a matrix may have a head: narrower ones have sums of each block.
const FEWEST_COLUMNS: u64 = 8_192;
/// Elements of y and sums of a head, bytes.
const MOST_BYTES: u64 = 128 << 10;
/// Entries of X for each sum that all blocks add at the end.
const ENTRIES_PER_SUM: u64 = 8;

/// Whether a sparse X may have a head, by the sample of its columns: where its most frequent column is far from holding up the
/// others, columns need not be counted.
pub fn may_have_head(problem: &Problem) -> bool {
    problem.columns.is_none() || queues(problem, OF_SAMPLE * problem.busiest_column())
}

/// Entries of the most frequent column for each that its sample says, at most.
const OF_SAMPLE: f64 = 2.0;

/// How many columns of a sparse X its objectives tell apart: those that are in more rows than there are blocks to add
/// their sums, as far as shared memory goes; none where the most frequent one does not hold up the others.
///
/// `frequencies` are entries per column, the most first.
///
/// ```
/// use warpfuse::plan::{Precision, Problem};
/// use warpfuse::plan::limits::DeviceLimits;
/// use warpfuse::plan::objective::head_places;
/// let h200 = DeviceLimits::known("h200").expect("a listed device");
/// let problem = Problem::sparse(1_000_000, 50_000, 20_000_000, Precision::F32);
/// assert_eq!(head_places(&h200, &problem, &[400; 50_000]), 0);
/// assert_eq!(head_places(&h200, &problem, &[1_000_000, 500_000, 40]), 2);
/// ```
pub fn head_places(limits: &DeviceLimits, problem: &Problem, frequencies: &[u64]) -> usize {
    let (nnz, size) = (problem.nnz.unwrap_or(0), problem.dtype.bytes());
    if !queues(problem, frequencies.first().copied().unwrap_or(0) as f64) {
        return 0;
    }
    let sms = u64::from(limits.sms).max(1);
    let most = (MOST_BYTES / (2 * u64::from(size))).min(nnz / (ENTRIES_PER_SUM * sms));
    let frequent = frequencies.partition_point(|count| *count >= least_frequent(limits));
    frequent.min(usize::try_from(most).unwrap_or(usize::MAX))
}

/// Entries of a column that is worth a place in a head, at least: its sum is flushed by a block on each SM.
pub fn least_frequent(limits: &DeviceLimits) -> u64 {
    2 * u64::from(limits.sms).max(1) + 1
}

/// Entries that are counted for a head, at most.
const COUNTED: f64 = 4e6;
/// Nanoseconds of the host to count one, a random addition. Computed, not measured, like the next.
const COUNT_NS: f64 = 5.0;
/// Nanoseconds of the host for each column: to clear its count, to note its place, and to send that to the device.
const PLACE_NS: f64 = 3.0;

/// Nanoseconds to make a head: the columns' frequencies and places on the host, and marks on the device, which reads and writes
/// an index for each entry.
pub fn head_cost_ns(problem: &Problem) -> u64 {
    let entries = problem.nnz.unwrap_or(0) as f64;
    let counting = COUNT_NS * entries.min(COUNTED);
    (counting + PLACE_NS * problem.cols as f64 + 8.0 * entries / BYTES_PER_NS) as u64
}

/// Whether a column with this many entries holds up the others.
fn queues(problem: &Problem, busiest: f64) -> bool {
    let entry = f64::from(4 + problem.dtype.bytes());
    let reading = problem.nnz.unwrap_or(0) as f64 * entry / BYTES_PER_NS;
    let is_wide = (FEWEST_COLUMNS..1 << 31).contains(&problem.cols);
    is_wide && busiest * QUEUE_NS > SHARE * reading
}

/// What an objective over the rows of X takes without a head, nanoseconds: by `plan`, or as long as additions to the most
/// frequent column wait for each other in global memory.
pub fn without_head_ns(problem: &Problem, plan: &Plan) -> u64 {
    let planned = plan.predicted_ns().unwrap_or(0);
    let busiest = problem.busiest_column();
    match plan.strategy {
        Strategy::GlobalW if queues(problem, busiest) => planned.max((busiest * QUEUE_NS) as u64),
        _ => planned,
    }
}

/// Nanoseconds in which a head is read, cleared and added up. On an H100 a product of the Hessian over the 20,242 rows of rcv1
/// takes 45 µs with one and 38 without, where entries by themselves would take 20 with one.
const HEAD_NS: f64 = 12e3;

/// What an objective over the rows of X takes that `plan` computes in one pass, nanoseconds: its entries in turn, or what
/// a head makes of them where one pays, which does not make long rows shorter. On an H200 two skewed matrices of 278 and 558
/// million entries take 1.8 and 11.7 ms; this said 1.6 and 11.6 before long rows counted.
pub fn one_pass_ns(limits: &DeviceLimits, problem: &Problem, plan: &Plan) -> u64 {
    let planned = plan.predicted_ns().unwrap_or(0);
    let Some(columns) = problem
        .columns
        .filter(|_| queues(problem, problem.busiest_column()))
    else {
        return planned;
    };
    let (rates, bytes) = (
        &limits.rates,
        problem.cols as f64 * f64::from(problem.dtype.bytes()),
    );
    let (add, scatter) = match problem.dtype {
        Precision::F32 => (rates.shared_add_f32, &rates.scatter_f32),
        Precision::F64 => (rates.shared_add_f64, &rates.scatter_f64),
    };
    let nnz = problem.nnz.unwrap_or(0) as f64;
    let hot = (columns.hot_entries as f64).min(nnz);
    let gathers = hot / rates.gather_l1 + (nnz - hot) / rates.gather.at(bytes);
    let headed = gathers + hot / add + (nnz - hot) / scatter.at(bytes);
    let read = problem.matrix_bytes() / rates.stream_gbs;
    let ends = HEAD_NS + 1e3 * rates.launch_us;
    let longest = plan.prediction.map_or(0, |parts| parts.longest_row_ns);
    planned.min(longest + (headed.max(read) + ends) as u64)
}

/// Bytes that marking an entry of a block moves: its index, the place of its column, and the index with its mark.
const MARKING_BYTES: f64 = 12.0;

/// Nanoseconds that a head saves of a pass over the rows that `plan` computes. Of X that streams `crossing_ns` pass before all
/// of it has crossed, beside which kernels run, and each block is marked when it has come.
pub fn saved_by_head_ns(
    limits: &DeviceLimits,
    problem: &Problem,
    plan: &Plan,
    crossing_ns: Option<u64>,
) -> u64 {
    let (before, after) = (
        plan.predicted_ns().unwrap_or(0),
        one_pass_ns(limits, problem, plan),
    );
    let Some(crossing) = crossing_ns else {
        return before.saturating_sub(after);
    };
    let bytes = MARKING_BYTES * problem.nnz.unwrap_or(0) as f64;
    let marked = after.saturating_add((bytes / limits.rates.stream_gbs) as u64);
    before.max(crossing).saturating_sub(marked.max(crossing))
}

/// A kernel of an objective with a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadedKernel {
    /// Its entry.
    pub name: &'static str,
    /// Lanes per row.
    pub vs: u32,
    /// Of a thread.
    pub registers: u32,
}

/// `plan` with one of `kernels` and a head of this many places: the fewest lanes that a row of mean length gives three
/// entries each, in the block with which most warps are resident; `None` when none fits.
pub fn with_head(
    limits: &DeviceLimits,
    plan: &Plan,
    places: u32,
    (rows, nnz): (u64, u64),
    kernels: &[HeadedKernel],
) -> Option<Plan> {
    let mean = nnz / rows.max(1);
    let wide = |kernel: &&HeadedKernel| u64::from(3 * kernel.vs) >= mean;
    let narrowest = kernels.iter().filter(wide).min_by_key(|kernel| kernel.vs);
    let kernel = narrowest.or(kernels.iter().max_by_key(|kernel| kernel.vs))?;
    let shared_bytes = |bs: u32| {
        let own = head::shared_bytes(places, bs, plan.precision.bytes());
        own.max(gpu_kernels::objective::scratch_bytes(bs))
    };
    let plan = headed(limits, plan, shared_bytes, rows, *kernel)?;
    Some(Plan {
        strategy: Strategy::GlobalW,
        ..plan
    })
}

/// `walk`, which adds integers in global memory, with `kernel` and a head of this many places of a product.
pub fn with_fixed_head(
    limits: &DeviceLimits,
    walk: &Plan,
    (product, places): (KernelProduct, u32),
    rows: u64,
    kernel: HeadedKernel,
) -> Option<Plan> {
    let bytes = FixedVariant::head_bytes(product, places, walk.precision.bytes());
    headed(limits, walk, |_| bytes, rows, kernel)
}

/// Threads of a block: a large head leaves room for one block, and registers of 65 and more for fewer than 1,024 threads.
const HEADED_BLOCKS: [u32; 6] = [256, 512, 640, 768, 896, 1024];

/// The launch of a kernel with a head over `rows` rows: as many warps as are resident.
fn headed(
    limits: &DeviceLimits,
    plan: &Plan,
    shared_bytes: impl Fn(u32) -> u64,
    rows: u64,
    kernel: HeadedKernel,
) -> Option<Plan> {
    let launch = |bs: u32| {
        let shared_bytes = shared_bytes(bs);
        let usage = Usage {
            block_size: bs,
            registers: kernel.registers,
            shared_bytes,
        };
        let resident = occupancy(limits, usage);
        let fits = shared_bytes <= u64::from(limits.shared_per_block);
        (fits && resident.blocks_per_sm > 0).then_some((resident, bs, shared_bytes))
    };
    let launches = HEADED_BLOCKS.into_iter().filter_map(launch);
    let (resident, bs, shared_bytes) =
        launches.max_by_key(|(resident, bs, _)| (resident.warps_per_sm, *bs))?;
    let vectors = u64::from(bs / kernel.vs);
    let most = u64::from(limits.sms) * u64::from(resident.blocks_per_sm);
    let grid = rows.div_ceil(vectors).clamp(1, most.max(1));
    Some(Plan {
        kernel: kernel.name.into(),
        vs: kernel.vs,
        bs,
        c: rows.div_ceil(grid * vectors),
        grid: u32::try_from(grid).unwrap_or(u32::MAX),
        shared_bytes: u32::try_from(shared_bytes).unwrap_or(u32::MAX),
        registers: kernel.registers,
        blocks_per_sm: resident.blocks_per_sm,
        warps_per_sm: resident.warps_per_sm,
        prediction: None,
        then: None,
        ..plan.clone()
    })
}

/// A kernel of a softmax objective, as far as its launch goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SoftmaxKernel {
    /// Of a thread.
    pub registers: u32,
    /// What the block needs besides one f64 per thread, the larger of which counts.
    pub shared_bytes: u64,
    /// Rows that a warp takes at a time.
    pub rows_per_warp: u32,
}

/// A launch of a softmax objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SoftmaxPlan {
    /// Blocks: as many as are resident, fewer for few rows.
    pub grid: u32,
    /// Threads per block.
    pub bs: u32,
    /// Dynamic shared memory.
    pub shared_bytes: u32,
}

/// The launch over m rows with most warps resident, small blocks first among equals; `None` when not one block fits.
///
/// ```
/// use warpfuse::plan::limits::DeviceLimits;
/// use warpfuse::plan::objective::{SoftmaxKernel, softmax};
/// let h200 = DeviceLimits::known("h200").expect("a listed device");
/// let kernel = SoftmaxKernel { registers: 64, shared_bytes: 4_000, rows_per_warp: 8 };
/// assert_eq!(softmax(1, kernel, &h200).expect("it fits").grid, 1);
/// assert_eq!(softmax(u64::MAX, SoftmaxKernel { shared_bytes: 1 << 20, ..kernel }, &h200), None);
/// ```
pub fn softmax(m: u64, kernel: SoftmaxKernel, limits: &DeviceLimits) -> Option<SoftmaxPlan> {
    let plan = |bs: u32| {
        let shared_bytes = kernel.shared_bytes.max(u64::from(bs) * 8);
        if shared_bytes > u64::from(limits.shared_per_block) {
            return None;
        }
        let usage = Usage {
            block_size: bs,
            registers: kernel.registers,
            shared_bytes,
        };
        let resident = occupancy(limits, usage);
        let rows = u64::from(bs / limits.warp_size.max(1) * kernel.rows_per_warp).max(1);
        let most = u64::from(limits.sms) * u64::from(resident.blocks_per_sm);
        let grid = m.div_ceil(rows).clamp(1, most.max(1));
        (most > 0).then_some((
            resident.warps_per_sm,
            SoftmaxPlan {
                grid: u32::try_from(grid).unwrap_or(u32::MAX),
                bs,
                shared_bytes: u32::try_from(shared_bytes).unwrap_or(u32::MAX),
            },
        ))
    };
    let plans = [1024, 512, 256, 128].into_iter().filter_map(plan);
    plans.max_by_key(|(warps, _)| *warps).map(|(_, plan)| plan)
}

/// Nanoseconds of additions to the k elements of one column of W in global memory, one after the other, in f32 and f64: 1,000,000 rows
/// of 20, of which nearly all have the most frequent of 100,000 columns, take an H200 5.8 and 8.7 ms with 10 classes.
const ONE_AFTER_ANOTHER_NS: [f64; 2] = [6.2, 9.2];
/// Nanoseconds of an entry and lane where columns are added up in registers, both passes: the same rows over 40,000 columns as frequent
/// take 0.82 and 1.14 ms with 16 lanes for 10 classes, and 0.75 and 0.95 by additions to W.
const BY_COLUMNS_NS: [f64; 2] = [2.6e-3, 3.6e-3];
/// Lanes of a team, at least.
const LEAST_LANES: u64 = 4;

/// Microseconds that a softmax objective of k columns over a sparse X saves where the rows of Xᵀ add it up, an entry to k sums in
/// registers, instead of additions to W in global memory, which wait for each other where a column is frequent; `None` where they are
/// as fast.
///
/// ```
/// use warpfuse::plan::fused::{ColumnUse, Precision, Problem};
/// use warpfuse::plan::objective::saved_by_columns;
/// let even = Problem::sparse(1_000_000, 40_000, 20_000_000, Precision::F32);
/// assert_eq!(saved_by_columns(&even, 10), None);
/// let columns = ColumnUse {
///     busiest: 900_000,
///     hot_columns: 0,
///     hot_entries: 0,
///     cold_columns: 40_000,
///     lines: [0; 3],
/// };
/// assert!(saved_by_columns(&even.with_columns(columns), 10) > Some(1_000.0));
/// ```
pub fn saved_by_columns(problem: &Problem, k: u64) -> Option<f64> {
    let of = usize::from(problem.dtype == Precision::F64);
    let lanes = k.next_power_of_two().max(LEAST_LANES) as f64;
    let waiting = problem.busiest_column() * ONE_AFTER_ANOTHER_NS[of];
    let by_columns = problem.nnz.unwrap_or(0) as f64 * lanes * BY_COLUMNS_NS[of];
    (waiting > by_columns).then_some((waiting - by_columns) / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::fused::{Storage, Strategy, Team};

    /// What the sums over a block take of each warp.
    const SUM_BYTES: u32 = 8;

    fn kernels() -> (Vec<Candidate>, Vec<Candidate>) {
        let own = Candidate::new(
            "objective",
            Product::Fused,
            Storage::Sparse,
            Strategy::SharedW,
            Precision::F32,
            Team::Lanes(8),
        );
        let shared = own.shared.and_per_warp(SUM_BYTES);
        (
            vec![Candidate { shared, ..own }],
            Candidate::of_the_source(Precision::F32),
        )
    }

    #[test]
    fn the_kernel_is_the_objectives_and_has_room_for_the_sums() {
        let h200 = DeviceLimits::known("h200").expect("a listed device");
        let (own, pattern) = kernels();
        let problem = Problem::sparse(100_000, 1_000, 1_000_000, Precision::F32);
        let plan = plan(&h200, own, pattern, Model::Predicted, &problem).expect("it fits");
        assert_eq!(plan.kernel, "objective");
        assert!(plan.shared_bytes >= 4_000 + plan.bs / 32 * SUM_BYTES);
    }

    #[test]
    fn without_a_kernel_that_holds_a_row_there_are_two_products() {
        let h200 = DeviceLimits::known("h200").expect("a listed device");
        let (own, pattern) = kernels();
        let problem = Problem::dense(1_000, 100_000, Precision::F32);
        let plan = plan(&h200, own, pattern, Model::Predicted, &problem).expect("it fits");
        assert_eq!(plan.strategy, Strategy::DenseTwoProducts);
        assert!(plan.then.is_some());
    }
}
