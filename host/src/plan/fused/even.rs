//! Predicted time of products over even shares of the entries: see [`gpu_kernels::fused::even`].
//!
//! Costs are counted, and how far they overlap is fitted. On an H100 with 1,024 threads a block, 80 million entries of f32, fused and
//! `Xᵀ·p`, µs, beside the fastest kernel of a vector for each row: n = 1,000,000 by Zipf's law with an exponent of 1.1 572 and 430
//! (11,666 and 11,581), 1.4 427 and 352 (14,319 and 14,298), n = 100,000 458 and 352 (12,437 and 12,409); n = 10,000 and log-normal rows,
//! all sums in shared memory, 419 and 319 (655 and 539), even rows 392 and 294 (445 and 296); n = 1,000,000 uniform 1,658 and 1,062 (1,643
//! and 1,058). The first is bound by L2, which is busy for 85 % of the time with the gathers and additions of other columns.

mod issue;
mod windows;

use gpu_kernels::describe::Number;
use gpu_kernels::fused::Place;
use gpu_kernels::fused::even::{PER_LANE, TILE, sums};

use issue::issue;
pub(super) use windows::windows;

use super::candidate::Candidate;
use super::cost::{FLUSH_BYTES, FLUSH_COALESCING, beyond_l2, precision};
use super::launch::Blocks;
use super::prediction::soft_max;
use super::sparse_cost::{L2_SECTOR, hits, wanted_bytes};
use crate::plan::limits::DeviceLimits;
use crate::plan::problem::{Precision, Problem, Product};

/// What the accesses of entries on an SM take of what they take by themselves, one after the other: of sums of floats in f32 and in f64, then
/// of fixed-point ones. Fitted.
const HERE: [f64; 4] = [1.05, 1.3, 0.87, 0.79];
/// What is left of it in `Xᵀ·p`, which reads no y and exchanges less: of floats, and of fixed-point sums.
const HERE_OF_TRANSPOSED: [f64; 2] = [0.76, 0.7];
/// Nanoseconds of an addition to the sum of the most frequent column of a table where one follows the other, as [`HERE`]: fitted.
const QUEUE_OF_FREQUENT_NS: [f64; 4] = [0.49, 3.1, 1.15, 2.2];
/// Dependent round trips to memory of a tile: its entries, then elements of y, some of which L2 has. Fitted.
pub(super) const ROUND_TRIPS: f64 = 1.6;
/// The same of a row that is longer than a tile: both of its walks, the second of which finds entries in L2.
const ROUND_TRIPS_OF_LONG: f64 = 1.74;
/// Those to find a share.
const TRIPS_OF_START: f64 = 3.3;
/// Accesses of each entry to shared memory in the order of lanes: a product and a factor are each written and read.
const EXCHANGES: [f64; 2] = [4.0, 2.0];
/// Nanoseconds of an addition to a sum in shared memory where one follows the other: a read, an addition, and the attempt to
/// replace. `Xᵀ·p` of the shape of rcv1, 617,000 entries of whose 49 million are in one column, takes 230 µs on an H100.
const QUEUE_OF_BLOCK_NS: [f64; 2] = [12.0, 24.0];
/// The share of the L1 cache that keeps y while entries stream past it.
const L1_SHARE_OF_Y: f64 = 0.51;
/// w in global memory is added to as if it were as many times as large, beside a stream of X, in f32 and f64: fitted.
const BESIDE_X: [f64; 2] = [1.7, 1.44];
/// What additions to shared memory by some lanes of a warp take of those by all, whose other lanes have columns of other windows: by
/// 60,000 to 300,000 columns of f32 and 40,000 to 150,000 of f64 in two to seven windows on an H200. In fixed point such lanes add to
/// sums that nobody reads.
const BY_SOME_LANES: f64 = 0.62;
/// How the entries of fewer frequent columns follow from those of more: fitted.
const EVENNESS: f64 = 0.07;
/// Of what y and w lack of L2 in one pass, the share that columns of unlike frequencies feel: what is wanted again and again stays. 4,000,000
/// rows of 20 with 20,000,000 columns by Zipf's law take an H200 0.83 ms in f32 and 1.05 in f64, 29,890,095 with the skew of kddb 1.37 and 1.74.
pub(super) const BEYOND_OF_SKEWED: f64 = 0.19;

/// Nanoseconds between two additions to one element of global memory: 4,000,000 rows with a column in nearly all of them take
/// 11.7 ms on an H100.
const QUEUE_NS: f64 = 3.0;
/// What a large GPU reads in that time, about.
const BYTES_PER_NS: f64 = 4_000.0;
/// The share of the time of reading X from which on a queue counts.
const SHARE: f64 = 0.25;

/// Whether a table of frequent columns is made of X: where its most frequent column would hold up the others.
pub(crate) fn tells_frequent(problem: &Problem) -> bool {
    let entry = f64::from(4 + problem.dtype.bytes());
    let reading = problem.nnz.unwrap_or(0) as f64 * entry / BYTES_PER_NS;
    let queue = QUEUE_NS * problem.busiest_column();
    problem.columns.is_some() && queue > SHARE * reading
}

/// Frequent columns that a table is made of, and their entries.
fn told_frequent(problem: &Problem) -> Option<(f64, f64)> {
    problem
        .frequent_columns()
        .filter(|_| tells_frequent(problem))
}

/// What a product costs, seconds.
pub(super) struct EvenCost {
    /// How often X is walked.
    pub windows: u32,
    pub access: f64,
    pub issue: f64,
    /// What the longest row adds.
    pub longest_row: f64,
    pub launch: f64,
}

/// Where entries go.
struct Spread {
    /// To sums in shared memory, and to w itself.
    here: f64,
    there: f64,
    /// Columns whose sums a block adds to w.
    flushed: f64,
}

/// The cost of a kernel, in a block on each SM.
pub(super) fn cost(
    limits: &DeviceLimits,
    kernel: &Candidate,
    problem: &Problem,
    product: Product,
) -> EvenCost {
    let rates = &limits.rates;
    let spread = spread(kernel, problem);
    let windows = windows(limits, kernel, problem);
    let walks = f64::from(windows);
    let latency = rates.latency_us * 1e-6;
    let longest = problem.longest() / f64::from(TILE);
    EvenCost {
        windows,
        access: access(limits, kernel, (problem, product), (&spread, walks)) * 1e-9,
        issue: issue(limits, kernel, (problem, product), walks),
        longest_row: match product {
            Product::Fused if longest > 1.0 => longest.ceil() * ROUND_TRIPS_OF_LONG * latency,
            _ => 0.0,
        },
        launch: walks * TRIPS_OF_START * latency + launch(limits, kernel, problem, walks),
    }
}

/// Seconds of all its launches, one for each walk.
fn launch(limits: &DeviceLimits, kernel: &Candidate, problem: &Problem, walks: f64) -> f64 {
    let each = limits.rates.launch_us * 1e-6;
    match kernel.sums.number {
        Number::Float => walks * each,
        Number::Fixed => (walks + 2.0) * each + fixed_ends(limits, problem),
    }
}

/// Seconds in which all blocks add their sums to w: one column after the other where they are those of all columns.
pub(super) fn flush(limits: &DeviceLimits, kernel: &Candidate, problem: &Problem) -> f64 {
    let spread = spread(kernel, problem);
    let rate = match kernel.sums.place {
        Place::Shared => {
            let bytes = spread.flushed * f64::from(problem.dtype.bytes());
            FLUSH_COALESCING * scatter(limits, problem.dtype, bytes.max(FLUSH_BYTES))
        }
        _ => scatter_to(limits, problem, spread.flushed),
    };
    f64::from(limits.sms) * spread.flushed / (rate * 1e9)
}

/// Nanoseconds of the path that gathers, additions and the loads of entries share, in this number of walks.
fn access(
    limits: &DeviceLimits,
    kernel: &Candidate,
    (problem, product): (&Problem, Product),
    (spread, walks): (&Spread, f64),
) -> f64 {
    let of_product = match product {
        Product::Transposed => HERE_OF_TRANSPOSED[usize::from(is_fixed(kernel))],
        _ => 1.0,
    };
    let here = walks * of_walk(limits, kernel, (problem, product))
        + from_here(limits, kernel, product, spread)
        + added_here(limits, kernel, problem, (spread, walks));
    of_product * HERE[of_sums(kernel, problem)] * here
        + gathered(limits, kernel, (problem, product), spread)
        + behind(limits, kernel, problem)
        + added_there(limits, kernel, (problem, product), (spread, walks))
}

/// Nanoseconds of the loads and exchanges of a walk, and of finding columns in a table.
fn of_walk(
    limits: &DeviceLimits,
    kernel: &Candidate,
    (problem, product): (&Problem, Product),
) -> f64 {
    let (rates, nnz) = (&limits.rates, problem.nnz.unwrap_or(0) as f64);
    let of = usize::from(product == Product::Transposed);
    let words = f64::from(problem.dtype.bytes()) / 4.0;
    // A line of indices, and one or two of values and of what is exchanged, for each 32 entries.
    let in_order = nnz * (1.0 + words + EXCHANGES[of] * words) / 32.0 / rates.lines;
    let found = match kernel.sums.place {
        Place::Shared => 0.0,
        _ => nnz / rates.shared_gather,
    };
    in_order + found
}

/// Nanoseconds of gathers of frequent columns' elements of y, which the table has.
fn from_here(limits: &DeviceLimits, kernel: &Candidate, product: Product, spread: &Spread) -> f64 {
    match (product, kernel.sums.place) {
        (Product::Transposed, _) | (_, Place::Shared) => 0.0,
        _ => spread.here / limits.rates.shared_gather,
    }
}

/// Nanoseconds of the other gathers from y.
fn gathered(
    limits: &DeviceLimits,
    kernel: &Candidate,
    (problem, product): (&Problem, Product),
    spread: &Spread,
) -> f64 {
    let nnz = problem.nnz.unwrap_or(0) as f64;
    match (product, kernel.sums.place) {
        (Product::Transposed, _) => 0.0,
        (_, Place::Shared) => gathers(limits, kernel, (problem, nnz), 0.0),
        _ => {
            let beyond = beyond(limits, problem, product);
            gathers(limits, kernel, (problem, spread.there), beyond)
        }
    }
}

/// Nanoseconds of additions to sums in shared memory.
fn added_here(
    limits: &DeviceLimits,
    kernel: &Candidate,
    problem: &Problem,
    (spread, walks): (&Spread, f64),
) -> f64 {
    let rates = &limits.rates;
    let add = match (kernel.sums.number, problem.dtype) {
        (Number::Fixed, Precision::F32) => rates.shared_fixed_f32,
        (Number::Fixed, Precision::F64) => rates.shared_fixed_f64,
        (Number::Float, Precision::F32) => rates.shared_add_f32,
        (Number::Float, Precision::F64) => rates.shared_add_f64,
    };
    if kernel.sums.place != Place::Shared {
        return spread.here / add;
    }
    let (again, queue) = match kernel.sums.number {
        Number::Float => (BY_SOME_LANES, queue_of_block(limits, problem) * 1e9),
        Number::Fixed => (1.0, 0.0),
    };
    let rounds = 1.0 + again * (walks - 1.0);
    (rounds * spread.here / add).max(queue)
}

/// Nanoseconds that additions to the most frequent column of a table wait for each other.
fn behind(limits: &DeviceLimits, kernel: &Candidate, problem: &Problem) -> f64 {
    match told_frequent(problem) {
        Some(_) if kernel.sums.place != Place::Shared => {
            let of_block = problem.busiest_column() / f64::from(limits.sms.max(1));
            QUEUE_OF_FREQUENT_NS[of_sums(kernel, problem)] * of_block
        }
        _ => 0.0,
    }
}

/// Nanoseconds of additions to w itself.
fn added_there(
    limits: &DeviceLimits,
    kernel: &Candidate,
    (problem, product): (&Problem, Product),
    (spread, walks): (&Spread, f64),
) -> f64 {
    if is_fixed(kernel) {
        let rate = fixed_scatter(limits, problem, walks);
        return fixed_words(problem) * spread.there / rate;
    }
    let wanted = match product {
        Product::Fused if is_wider_than_l2(limits, problem) => wanted_bytes(problem),
        _ => wanted_of_cold(problem),
    };
    let beside = BESIDE_X[precision(problem.dtype)];
    let bytes = beside * wanted / walks + beyond(limits, problem, product);
    spread.there / scatter(limits, problem.dtype, bytes)
}

fn is_fixed(kernel: &Candidate) -> bool {
    kernel.sums.number == Number::Fixed
}

/// The place of figures of sums: of floats, then of fixed-point ones, each in f32 and in f64.
fn of_sums(kernel: &Candidate, problem: &Problem) -> usize {
    precision(problem.dtype) + 2 * usize::from(is_fixed(kernel))
}

/// Bytes of y and w that are wanted and L2 has no room for, in one pass.
fn beyond(limits: &DeviceLimits, problem: &Problem, product: Product) -> f64 {
    let felt = match told_frequent(problem) {
        Some(_) => BEYOND_OF_SKEWED,
        None => 1.0,
    };
    felt * beyond_l2(limits, wanted_bytes(problem), product)
}

/// Whether L2 has no room for a vector of all columns: then it keeps what is wanted most often.
fn is_wider_than_l2(limits: &DeviceLimits, problem: &Problem) -> bool {
    problem
        .cols
        .saturating_mul(u64::from(problem.dtype.bytes()))
        > limits.l2_bytes
}

/// Bytes of w that entries of columns which are not frequent want again and again: between all of it and what
/// [all entries](wanted_bytes) want. On an H100 34 million entries in 29,890,095 columns with the skew of kddb, 12 million of them in
/// such columns, take `Xᵀ·p` 0.41 ms: this says 0.75, and 0.85 if they wanted all of w.
fn wanted_of_cold(problem: &Problem) -> f64 {
    let all = problem.cols as f64 * f64::from(problem.dtype.bytes());
    (all * wanted_bytes(problem)).sqrt()
}

/// Seconds of additions to the busiest sum of a block one after the other.
pub(super) fn queue_of_block(limits: &DeviceLimits, problem: &Problem) -> f64 {
    let each = match problem.dtype {
        Precision::F32 => QUEUE_OF_BLOCK_NS[0],
        Precision::F64 => QUEUE_OF_BLOCK_NS[1],
    };
    each * 1e-9 * problem.busiest_column() / f64::from(limits.sms.max(1))
}

/// Nanoseconds for gathers from y, of columns as they come, of which L2 lacks room for this many bytes.
fn gathers(
    limits: &DeviceLimits,
    kernel: &Candidate,
    (problem, count): (&Problem, f64),
    beyond: f64,
) -> f64 {
    let rates = &limits.rates;
    let block = kernel.max_block;
    let taken = kernel.shared.bytes(problem.cols, block, limits.warp_size);
    let left = (f64::from(limits.unified_cache_bytes) - taken as f64).max(0.0);
    let room = L1_SHARE_OF_Y * left;
    let hits = hits(problem, room, 0.0);
    let bytes = match is_wider_than_l2(limits, problem) {
        true => wanted_bytes(problem),
        false => problem.cols as f64 * f64::from(problem.dtype.bytes()),
    };
    // The sectors of X take the same way from L2.
    let missed = (count + problem.matrix_bytes() / L2_SECTOR) * (1.0 - hits);
    count * hits / rates.gather_l1 + missed / rates.gather.at(bytes + beyond)
}

/// Additions to this number of elements of w, 10⁹ a second.
fn scatter_to(limits: &DeviceLimits, problem: &Problem, elements: f64) -> f64 {
    let bytes = elements * f64::from(problem.dtype.bytes());
    scatter(limits, problem.dtype, bytes)
}

/// The same to this many bytes.
fn scatter(limits: &DeviceLimits, dtype: Precision, bytes: f64) -> f64 {
    let rates = &limits.rates;
    match dtype {
        Precision::F32 => rates.scatter_f32.at(bytes),
        Precision::F64 => rates.scatter_f64.at(bytes),
    }
}

/// Words of eight bytes of a fixed-point sum.
fn fixed_words(problem: &Problem) -> f64 {
    f64::from(problem.dtype.bytes()) / 4.0
}

/// Additions of words of eight bytes to the fixed-point sums of columns in this number of windows, 10⁹ a second. The shape of kddb adds 41
/// G/s on an H200, as if its sums had 62 MB: those of the columns that entries want again, not of all 29,890,095.
fn fixed_scatter(limits: &DeviceLimits, problem: &Problem, windows: f64) -> f64 {
    let elements = wanted_bytes(problem) / f64::from(problem.dtype.bytes());
    // What columns of unlike frequencies want again is not spread over windows evenly.
    let parts = match told_frequent(problem) {
        Some(_) => 1.0 + BEYOND_OF_SKEWED * (windows - 1.0),
        None => windows,
    };
    let bytes = 8.0 * fixed_words(problem) * elements / parts;
    limits.rates.scatter_f64.at(bytes)
}

/// Seconds in which kernels of their own set fixed-point sums of all columns to zero, and read and finish them.
pub(super) fn fixed_ends(limits: &DeviceLimits, problem: &Problem) -> f64 {
    let element = f64::from(problem.dtype.bytes());
    let bytes = problem.cols as f64 * (3.0 * 8.0 * fixed_words(problem) + 2.0 * element);
    bytes / (limits.rates.stream_gbs * 1e9)
}

fn spread(kernel: &Candidate, problem: &Problem) -> Spread {
    let nnz = problem.nnz.unwrap_or(0) as f64;
    if kernel.sums.place == Place::Shared {
        return Spread {
            here: nnz,
            there: 0.0,
            flushed: problem.cols as f64,
        };
    }
    let slots = f64::from(sums::slots(problem.dtype.bytes()));
    let Some((columns, entries)) = told_frequent(problem) else {
        return Spread {
            here: 0.0,
            there: nnz,
            flushed: 0.0,
        };
    };
    let kept = (slots / columns.max(1.0)).min(1.0);
    let here = entries * kept.powf(EVENNESS);
    Spread {
        here,
        there: nnz - here,
        flushed: columns.min(slots),
    }
}

/// What parts take beyond what they take side by side: an SM has one block, whose warps wait at the same barriers, so that nothing hides
/// accesses and instructions from each other, and the stream half. Fixed-point sums in f64 of 655,000 rows of 15 take 110 µs, of 381,000 of
/// 58 157.
pub(super) fn apart([stream, access, issue]: [f64; 3]) -> f64 {
    together([stream, access, issue]) - soft_max([stream, access, issue, 0.0, 0.0])
}

fn together([stream, access, issue]: [f64; 3]) -> f64 {
    stream.hypot(access + issue)
}

/// Bytes of X that an SM has requested at once, of this many for an entry.
pub(super) fn bytes_in_flight(blocks: &Blocks, entry: f64) -> f64 {
    let threads = f64::from(blocks.bs) * f64::from(blocks.occupancy.blocks_per_sm);
    threads * f64::from(PER_LANE) * entry
}

/// Blocks of `bs` threads that have a tile for each warp.
pub(super) fn most_blocks(problem: &Problem, bs: u32) -> u32 {
    let items = problem.rows + problem.nnz.unwrap_or(0);
    let of_block = u64::from(bs / 32).max(1) * u64::from(TILE);
    u32::try_from(items.div_ceil(of_block).max(1)).unwrap_or(u32::MAX)
}
