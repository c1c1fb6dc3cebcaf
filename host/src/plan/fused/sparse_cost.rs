//! What entries of a sparse X cost besides their bytes.

use crate::plan::limits::DeviceLimits;
use crate::plan::problem::Problem;

/// Shared memory that an SM can set aside, KiB; the rest of the unified cache is L1.
const CARVE_OUTS: [f64; 10] = [
    0.0, 8.0, 16.0, 32.0, 64.0, 100.0, 132.0, 164.0, 196.0, 228.0,
];

/// Bytes of L1 that a byte of CSR rows takes while it is under way: rows lie across cache lines. Where L1 is less,
/// fewer are under way.
pub(super) const L1_PER_BYTE_IN_FLIGHT: f64 = 2.0;
/// The same where nothing is gathered through L1: y is in shared memory, or there is none. Found with y in shared memory on an
/// H200; `Xᵀ·p` takes as long with 28 KiB of L1 as with 96 on an H100: n = 44,000 and 56,000, floats 357 and 370 µs,
/// fixed-point sums over two blocks 397 and 403.
pub(super) const L1_PER_BYTE_ALONE: f64 = 0.7;

/// What a round trip to L2 takes, of one to memory, and the share of L2 up to which X and the vectors stay there from one product
/// to the next. On an H100 20,242 rows of 74 in the mean and 800 in the longest, 12 MB, take X·y 10.2 µs, where round trips to
/// memory would take 15.
const L2_ROUND_TRIP: f64 = 0.4;
const L2_THAT_STAYS: f64 = 0.5;

/// What round trips of a product that reads this many bytes take, of those to memory.
pub(super) fn round_trip(limits: &DeviceLimits, bytes: f64) -> f64 {
    let share = bytes / (limits.l2_bytes as f64).max(1.0);
    let beyond = ((share - L2_THAT_STAYS) / (1.0 - L2_THAT_STAYS)).clamp(0.0, 1.0);
    L2_ROUND_TRIP + (1.0 - L2_ROUND_TRIP) * beyond
}

/// Bytes that L2 gives out at a time, and those of a cache line.
pub(super) const L2_SECTOR: f64 = 32.0;
pub(super) const LINE: f64 = 128.0;

/// Bytes of the vector of columns that are wanted again and again: all of it where columns are alike, less the more entries
/// the most frequent have. By Zipf's law with an exponent of 1.1, 10,922 of 29,890,095 columns have two thirds of the
/// entries, and X·y takes 0.70 ms on an H200, as if y had 31 MB. With an exponent of 0.73 10,890 of 8,224,490 have an eighth, and
/// additions to w take as long as to all of its 33 MB: the exponent is this times the share of the entries. A vector of f64 has room
/// for half as many columns in the same bytes, which want nearly as many entries: kddb's X·y takes 1.35 times as long as in f32.
pub(super) fn wanted_bytes(problem: &Problem) -> f64 {
    const EVENNESS: f64 = 0.27;
    const WORD: f64 = 4.0;
    let (cols, nnz) = (problem.cols as f64, problem.nnz.unwrap_or(0) as f64);
    let element = f64::from(problem.dtype.bytes());
    let bytes = cols * element;
    match problem.frequent_columns() {
        Some((columns, entries)) if columns > 0.0 => {
            let share = entries / nnz;
            let evenness = columns / cols / share;
            let wide = (element / WORD).powf(share);
            bytes / wide * evenness.clamp(1e-9, 1.0).powf(EVENNESS * share)
        }
        _ => bytes,
    }
}

/// Bytes of L1 that are left beside `taken` bytes of shared memory.
pub(super) fn l1_left(unified_bytes: u32, taken: f64) -> f64 {
    let taken = taken / 1024.0;
    let carved = CARVE_OUTS.into_iter().find(|&kib| kib >= taken);
    let carved = 1024.0 * carved.unwrap_or(taken);
    (f64::from(unified_bytes) - carved).max(0.0)
}

/// Gathers at random that `entries` are worth which want elements at random of a vector of this many bytes, in its order:
/// each line and each of its sectors counts half, so that a sector by itself is a gather. 80 million entries with
/// 4,000,000 × 4,000,000 take 0.56 ms over panels on an H200, with 30,000,000 columns 1.08.
pub(super) fn gathers_in_order(bytes: f64, entries: f64) -> f64 {
    // Of this many places, those that this many entries at random hit.
    let touched = |places: f64| {
        let places = places.max(1.0);
        places * (1.0 - (-entries / places).exp())
    };
    0.5 * (touched(bytes / L2_SECTOR) + touched(bytes / LINE))
}

/// The share of gathers that hit L1 where it has room for y.
const MOST_HITS: f64 = 0.75;

/// The share of gathers that hit L1 where `bytes` of y just fit or nearly do, beside sums in shared memory: 4,000,000 rows of 20
/// with n = 28,000 take 0.40 ms on an H200, where y just fits, and 0.63 with n = 40,000.
pub(super) fn fits_beside_sums(left: f64, bytes: f64) -> f64 {
    MOST_HITS * (left / bytes).min(1.0).powi(4)
}

/// The same of X·y, which adds nothing that would hold up rows: those of two blocks stream through L1 meanwhile, and of
/// y is kept the less, the more of L1 it wants. By the times of an H100 for n = 44,000 and 56,000, vectors of eight and of
/// four lanes, 27 to 34 and 56 to 60 % of the gathers miss, 28 and 64 by this power. The H200's with n = 40,000 came after it: 14 to
/// 21 %, and 20.
pub(super) fn fits_alone(left: f64, bytes: f64) -> f64 {
    (1.0 - (bytes / left.max(1.0)).powf(3.5)).clamp(0.0, MOST_HITS)
}

/// The share of gathers from y that hit L1: of columns that are alike `fits` where L1 has room for y, else what `room` keeps
/// while rows stream past. Frequent columns are there when they are wanted again, the surer the more entries they have: X·y with 4,000,000 × 1,000,000 by Zipf's law takes 0.51, 0.27 and
/// 0.20 ms on an H200 with 0.37, 0.79 and 0.96 of the entries in 10,922 columns, and 0.64 ms uniformly.
pub(super) fn hits(problem: &Problem, room: f64, fits: f64) -> f64 {
    let element = f64::from(problem.dtype.bytes());
    let bytes = (problem.cols as f64 * element).max(1.0);
    let all_alike = (room / bytes).min(1.0).max(fits);
    let Some((columns, entries)) = problem.frequent_columns() else {
        return all_alike;
    };
    let frequent = entries / problem.nnz.unwrap_or(0).max(1) as f64;
    all_alike.max((room / (columns.max(1.0) * element)).min(1.0) * frequent * frequent)
}

/// Cache lines that a warp's load of consecutive rows touches, per entry. Short vectors make a warp
/// span many rows, whose pieces lie in as many lines.
pub(super) fn lines_per_entry(mean: f64, vs: u32) -> f64 {
    const LINE_ENTRIES: f64 = 32.0;
    // Index and value.
    const LOADS: f64 = 2.0;
    let vs = f64::from(vs.max(1));
    let rows = (LINE_ENTRIES / vs).max(1.0);
    let chunks = (mean / vs).ceil().max(1.0);
    let span = (rows * mean.max(1.0) / LINE_ENTRIES).ceil();
    let lines = span.min(rows).max(1.0);
    LOADS * lines * chunks / (rows * mean.max(1.0))
}
