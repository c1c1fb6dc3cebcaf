//! What entries of a sparse X cost besides their bytes.

use crate::plan::problem::Problem;

/// Shared memory that an SM can set aside, KiB; the rest of the unified cache is L1.
const CARVE_OUTS: [f64; 10] = [
    0.0, 8.0, 16.0, 32.0, 64.0, 100.0, 132.0, 164.0, 196.0, 228.0,
];

/// Bytes of L1 that a byte of CSR rows takes while it is under way: rows lie across cache lines. Where L1 is less,
/// fewer are under way. Without gathers rows take less: see [`place`](super::place).
pub(super) const L1_PER_BYTE_IN_FLIGHT: f64 = 2.0;

/// Bytes that L2 gives out at a time, and those of a cache line.
pub(super) const L2_SECTOR: f64 = 32.0;
const LINE: f64 = 128.0;

/// Bytes of the vector of columns that are wanted again and again: all of it where columns are alike, less the more entries
/// the most frequent have. By Zipf's law with an exponent of 1.1, 10,922 of 29,890,095 columns have two thirds of the
/// entries, and X·y takes 0.70 ms on an H200, as if y had 26 MB.
pub(super) fn wanted_bytes(problem: &Problem) -> f64 {
    const EVENNESS: f64 = 0.2;
    let (cols, nnz) = (problem.cols as f64, problem.nnz.unwrap_or(0) as f64);
    let bytes = cols * f64::from(problem.dtype.bytes());
    match problem.frequent_columns() {
        Some((columns, entries)) if columns > 0.0 => {
            let evenness = columns / cols / (entries / nnz);
            bytes * evenness.clamp(1e-9, 1.0).powf(EVENNESS)
        }
        _ => bytes,
    }
}

/// The share of gathers that hit L1 where it has just room for y.
const MOST_HITS: f64 = 0.75;

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

/// Bytes of the L1 cache.
#[derive(Clone, Copy)]
pub(super) struct L1 {
    /// What shared memory leaves.
    pub left: f64,
    /// What keeps gathered elements while rows stream past.
    pub room: f64,
}

/// The share of gathers from y that hit L1: 4,000,000 rows of 20 with n = 28,000 take 0.40 ms on an H200, where y just fits, and 0.63 with n = 40,000. Frequent columns are there when they are
/// wanted again, the surer the more entries they have: X·y with 4,000,000 × 1,000,000 by Zipf's law takes 0.51, 0.27 and
/// 0.20 ms on an H200 with 0.37, 0.79 and 0.96 of the entries in 10,922 columns, and 0.64 ms uniformly.
pub(super) fn hits(problem: &Problem, L1 { left, room }: L1) -> f64 {
    let element = f64::from(problem.dtype.bytes());
    let bytes = (problem.cols as f64 * element).max(1.0);
    let fits = MOST_HITS * (left / bytes).min(1.0).powi(4);
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
