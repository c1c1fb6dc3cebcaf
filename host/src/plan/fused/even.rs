//! Predicted time of products over even shares of the entries: see [`gpu_kernels::fused::even`].
//!
//! Costs are counted, not fitted. On an H100 with 1,024 threads a block, 80 million entries of f32, fused and `Xᵀ·p`, µs, beside the
//! fastest kernel of a vector for each row: n = 1,000,000 by Zipf's law with an exponent of 1.1 572 and 430 (11,666 and 11,581),
//! 1.4 427 and 352 (14,319 and 14,298), n = 100,000 458 and 352 (12,437 and 12,409); n = 10,000 and log-normal rows, all sums in
//! shared memory, 419 and 319 (655 and 539), even rows 392 and 294 (445 and 296); n = 1,000,000 uniform 1,658 and 1,062 (1,643
//! and 1,058). The first is bound by L2, which is busy for 85 % of the time with the gathers and additions of other columns.

use gpu_kernels::describe::Number;
use gpu_kernels::fused::Place;
use gpu_kernels::fused::even::{PER_LANE, TILE, sums};

use super::candidate::{Candidate, Team};
use super::cost::{FLUSH_BYTES, FLUSH_COALESCING, beyond_l2};
use super::launch::Blocks;
use super::prediction::soft_max;
use super::sparse_cost::{L2_SECTOR, hits, wanted_bytes};
use crate::plan::limits::DeviceLimits;
use crate::plan::problem::{Precision, Problem, Product};

/// Instructions of a lane for an entry that others do not hide, of the fused product and of `Xᵀ·p`: fitted. The compiled kernels have
/// some 90 and 60.
const PER_ENTRY: [f64; 2] = [30.9, 20.6];
/// How many more they are in f64.
const PER_ENTRY_OF_F64: f64 = 1.26;
/// Instructions of a warp for the rows that it adds up at a time, and for each of their steps: 2,170,000 rows of 11 take 284 µs with
/// 32 lanes, and 52,500 of 395 in f64 184 with four, 154 with eight and 136 with 32.
const PER_GROUP: f64 = 39.8;
const PER_STEP: f64 = 6.3;
/// Dependent round trips to memory of a tile: its entries, then elements of y.
pub(super) const ROUND_TRIPS: f64 = 2.0;
/// The same of a row that is longer than a tile: both of its walks.
const ROUND_TRIPS_OF_LONG: f64 = 4.0;
/// Those to find a share.
const TRIPS_OF_START: f64 = 6.84;
/// Accesses of each entry to shared memory in the order of lanes: a product and a factor are each written and read.
const EXCHANGES: [f64; 2] = [4.0, 2.0];
/// Nanoseconds of an addition to a sum in shared memory where one follows the other: a read, an addition, and the attempt to
/// replace. `Xᵀ·p` of the shape of rcv1, 617,000 entries of whose 49 million are in one column, takes 230 µs on an H100.
const QUEUE_OF_BLOCK_NS: [f64; 2] = [29.9, 40.0];
/// The share of the L1 cache that keeps y while entries stream past it.
const L1_SHARE_OF_Y: f64 = 0.46;
/// w in global memory is added to as if it were as many times as large, beside a stream of X, in f32 and f64: fitted.
const BESIDE_X: [f64; 2] = [1.5, 1.2];
/// What an addition to w in global memory takes in `Xᵀ·p` of f64, of one at random: 80 million to 1,000,000 columns take 1.07 ms on an
/// H100, and a dozen drawn shapes 1.12 times their prediction without it.
const ADDS_ALONE_OF_F64: f64 = 1.12;
/// What additions to shared memory by some lanes of a warp take of those by all, whose other lanes have columns of other windows: by
/// 60,000 to 300,000 columns of f32 and 40,000 to 150,000 of f64 in two to seven windows on an H200. In fixed point such lanes add to
/// sums that nobody reads.
const BY_SOME_LANES: f64 = 0.6;
/// How the entries of fewer frequent columns follow from those of more: fitted.
const EVENNESS: f64 = 0.16;
/// Of what y and w lack of L2 in one pass, the share that columns of unlike frequencies feel: what is wanted again and again stays. 4,000,000
/// rows of 20 with 20,000,000 columns by Zipf's law take an H200 0.83 ms in f32 and 1.05 in f64, 29,890,095 with the skew of kddb 1.37 and 1.74.
pub(super) const BEYOND_OF_SKEWED: f64 = 0.5;

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

/// The most windows that are weighed: as many walks take longer than additions beyond L2.
const MOST_WINDOWS: u32 = 16;
/// The same of columns whose sums have room in shared memory: more walks take longer than additions to L2.
const MOST_SHARED_WINDOWS: u32 = 8;
/// Bytes of a column's sum, at most: of f64 in fixed point.
const MOST_BYTES: u64 = 16;

/// Windows of columns that `Xᵀ·p` adds to one after the other: as many as predict the least time. Measured on an H200, ms, with
/// one, two, … windows, a launch for each:
///
/// | | 1 | 2 | 3 | 4 | 6 | 8 | 12 |
/// |---|---|---|---|---|---|---|---|
/// | 8,000,000 × 20,000,000, 28 a row, f32 | 8.63 | 5.06 | **3.36** | 3.57 | 4.34 | 5.09 | 7.30 |
/// | f64 | 11.28 | 9.50 | 8.29 | 7.38 | **6.53** | 7.53 | 10.61 |
/// | 4,000,000 × 30,000,000, 20 a row, f32 | 3.70 | 2.81 | 2.18 | **1.68** | 1.77 | 2.09 | 2.75 |
/// | f64 | 4.42 | 4.00 | 3.70 | 3.50 | 3.27 | **3.24** | 4.13 |
/// | 4,000,000 × 8,000,000, 20 a row, f32 | **1.01** | 1.03 | 1.16 | 1.31 | 1.62 | 1.94 | 2.63 |
/// | f64 | 2.77 | 1.54 | **1.36** | 1.56 | 2.02 | 2.59 | 3.80 |
///
/// Where shared memory has the sums, they are as few as have room there. 4,000,000 rows of 20 on an H200, µs, beside the fastest launch that
/// adds to global memory:
///
/// | columns | 60,000 | 100,000 | 150,000 | 200,000 | 300,000 |
/// |---|---|---|---|---|---|
/// | f32 | 2: **491** and 980 | 2: **530** and 965 | 3: **755** and 966 | 4: 969 and **941** | 6: 1,418 and **923** |
/// | columns | 40,000 | 75,000 | 100,000 | 150,000 | |
/// | f64 | 2: **847** and 1,030 | 4: 1,471 and **982** | 5: 1,754 and **1,020** | 7: 2,437 and **967** | |
/// | columns, fixed point | 40,000 | 70,000 | 75,000 | 100,000 | 150,000 |
/// | f32 | | 4: **851** and 1,031 | | 5: 1,183 | 7: 1,640 and **972** |
/// | f64 | 3: **1,086** and 1,953 | | 6: 2,143 and **1,891** | 8: 2,847 | |
pub(super) fn windows(limits: &DeviceLimits, kernel: &Candidate, problem: &Problem) -> u32 {
    if kernel.product != Product::Transposed {
        return 1;
    }
    if kernel.sums.place == Place::Shared {
        return windows_of_shared(limits, kernel, problem);
    }
    // Sums of all columns have room in half of L2: no plan need weigh what would be one.
    if problem.cols.saturating_mul(MOST_BYTES) <= limits.l2_bytes / 2 {
        return 1;
    }
    let spread = spread(kernel, problem);
    let time = |windows: u32| {
        let walks = f64::from(windows);
        let stream = problem.matrix_bytes() / limits.rates.stream_gbs;
        let access = access(limits, kernel, (problem, kernel.product), (&spread, walks));
        let issue = issue(limits, kernel, (problem, kernel.product), walks);
        let parts = [walks * stream, access, issue * 1e9];
        parts.iter().map(|part| part * part).sum::<f64>()
    };
    // The fewest of those that take the least time, as far as it falls.
    let mut least = (1, time(1));
    for windows in 2..=MOST_WINDOWS {
        let next = time(windows);
        if next < least.1 {
            least = (windows, next);
        } else if windows > least.0 + 1 {
            break;
        }
    }
    least.0
}

/// The fewest windows of columns whose sums have room in a block's shared memory, or as many as are tried.
fn windows_of_shared(limits: &DeviceLimits, kernel: &Candidate, problem: &Problem) -> u32 {
    let has_room = |windows: &u32| {
        let columns = problem.cols.div_ceil(u64::from(*windows));
        let bytes = kernel
            .shared
            .bytes(columns, kernel.max_block, limits.warp_size);
        bytes <= u64::from(limits.shared_per_block)
    };
    (1..MOST_SHARED_WINDOWS)
        .find(has_room)
        .unwrap_or(MOST_SHARED_WINDOWS)
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

/// Seconds in which the SMs issue the instructions of this number of walks.
fn issue(
    limits: &DeviceLimits,
    kernel: &Candidate,
    (problem, product): (&Problem, Product),
    walks: f64,
) -> f64 {
    let nnz = problem.nnz.unwrap_or(0) as f64;
    let of = usize::from(product == Product::Transposed);
    let instructions = nnz * per_entry(problem, of) / f64::from(limits.warp_size.max(1))
        + of_rows(kernel, problem, product);
    walks * instructions / (limits.rates.issue * 1e9)
}

/// Seconds of all its launches, one for each walk.
fn launch(limits: &DeviceLimits, kernel: &Candidate, problem: &Problem, walks: f64) -> f64 {
    let each = limits.rates.launch_us * 1e-6;
    match kernel.sums.number {
        Number::Float => walks * each,
        Number::Fixed => (walks + 2.0) * each + fixed_ends(limits, problem),
    }
}

fn per_entry(problem: &Problem, of: usize) -> f64 {
    match problem.dtype {
        Precision::F32 => PER_ENTRY[of],
        Precision::F64 => PER_ENTRY_OF_F64 * PER_ENTRY[of],
    }
}

/// Instructions of warps for rows whose sums have an order: a warp adds up as many rows of a tile at a time as their lanes let it
/// have, and steps over them together.
fn of_rows(kernel: &Candidate, problem: &Problem, product: Product) -> f64 {
    let (Number::Fixed, Team::Lanes(lanes), Product::Fused) =
        (kernel.sums.number, kernel.team, product)
    else {
        return 0.0;
    };
    let (tile, lanes) = (f64::from(TILE), f64::from(lanes));
    let mean = problem.mean_row().max(1.0);
    let tiles = problem.nnz.unwrap_or(0) as f64 / tile;
    let groups = ((tile / mean).max(1.0) * lanes / 32.0).ceil();
    let steps = (mean.min(tile) / lanes).ceil();
    tiles * groups * (PER_GROUP + PER_STEP * steps)
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
    let (rates, nnz) = (&limits.rates, problem.nnz.unwrap_or(0) as f64);
    let of = usize::from(product == Product::Transposed);
    let words = f64::from(problem.dtype.bytes()) / 4.0;
    let beyond = beyond(limits, problem, product);
    // A line of indices, and one or two of values and of what is exchanged, for each 32 entries.
    let in_order = nnz * (1.0 + words + EXCHANGES[of] * words) / 32.0 / rates.lines;
    let is_shared = kernel.sums.place == Place::Shared;
    let found = if is_shared {
        0.0
    } else {
        nnz / rates.shared_gather
    };
    let gathered = match product {
        Product::Transposed => 0.0,
        _ if is_shared => gathers(limits, kernel, (problem, nnz), 0.0),
        _ => {
            let there = gathers(limits, kernel, (problem, spread.there), beyond);
            spread.here / rates.shared_gather + there
        }
    };
    let add = match (kernel.sums.number, problem.dtype) {
        (Number::Fixed, Precision::F32) => rates.shared_fixed_f32,
        (Number::Fixed, Precision::F64) => rates.shared_fixed_f64,
        (Number::Float, Precision::F32) => rates.shared_add_f32,
        (Number::Float, Precision::F64) => rates.shared_add_f64,
    };
    let queue = match is_shared && kernel.sums.number == Number::Float {
        true => queue_of_block(limits, problem) * 1e9,
        false => 0.0,
    };
    let again = match kernel.sums.number {
        Number::Float => BY_SOME_LANES,
        Number::Fixed => 1.0,
    };
    let rounds = match is_shared {
        true => 1.0 + again * (walks - 1.0),
        false => 1.0,
    };
    let here = (rounds * spread.here / add).max(queue);
    let there = match kernel.sums.number {
        Number::Float => {
            let each = match (product, problem.dtype) {
                (Product::Transposed, Precision::F64) => ADDS_ALONE_OF_F64,
                _ => 1.0,
            };
            let beside = match problem.dtype {
                Precision::F32 => BESIDE_X[0],
                Precision::F64 => BESIDE_X[1],
            };
            let wanted = match product {
                Product::Fused if is_wider_than_l2(limits, problem) => wanted_bytes(problem),
                _ => wanted_of_cold(problem),
            };
            let bytes = beside * wanted / walks + beyond;
            each * spread.there / scatter(limits, problem.dtype, bytes)
        }
        Number::Fixed => {
            let rate = fixed_scatter(limits, problem, walks);
            fixed_words(problem) * spread.there / rate
        }
    };
    walks * (in_order + found) + gathered + here + there
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

/// What parts take beyond what they take side by side: a block waits at barriers between one and the next, and an SM has no
/// other. Fixed-point sums in f64 of 655,000 rows of 15 take 110 µs, with parts of 42, 61 and 30; of 381,000 of 58 157, with
/// 91, 100 and 67.
pub(super) fn apart(parts: [f64; 3]) -> f64 {
    let [stream, access, issue] = parts;
    let squares: f64 = parts.iter().map(|part| part * part).sum();
    squares.sqrt() - soft_max([stream, access, issue, 0.0, 0.0])
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
