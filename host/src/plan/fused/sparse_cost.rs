//! What entries of a sparse X cost besides their bytes.

use super::problem::Product;

/// Shared memory that an SM can set aside, KiB; the rest of the unified cache is L1.
const CARVE_OUTS: [f64; 10] = [
    0.0, 8.0, 16.0, 32.0, 64.0, 100.0, 132.0, 164.0, 196.0, 228.0,
];

/// Bytes of L1 that a byte of CSR rows takes while it is under way: rows lie across cache lines. Where L1 is less,
/// fewer are under way. From fixed-point sums in f64 with n = 10,000 on an H200, which are quicker with y outside
/// of shared memory: 0.412 ms with 120 KB of it, 0.449 ms (VS = 8) and 0.555 ms (VS = 4) with 200 KB. Without gathers
/// rows take less: Xᵀ·p with n = 10,000 takes 0.190 ms with two blocks of 768 threads and 160 KB, 0.212 ms with one.
const L1_PER_BYTE_IN_FLIGHT: f64 = 2.0;
const L1_PER_BYTE_ALONE: f64 = 1.5;

/// Bytes of rows that L1 has room for beside `taken` bytes of shared memory, and beside what is gathered in X·y.
pub(super) fn l1_room(unified_bytes: u32, taken: f64, product: Product) -> f64 {
    let taken = taken / 1024.0;
    let carved = CARVE_OUTS.into_iter().find(|&kib| kib >= taken);
    let carved = 1024.0 * carved.unwrap_or(taken);
    let left = f64::from(unified_bytes) - carved;
    let each = match product {
        Product::Transposed => L1_PER_BYTE_ALONE,
        _ => L1_PER_BYTE_IN_FLIGHT,
    };
    left.max(0.0) / each
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
