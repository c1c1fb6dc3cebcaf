//! How many windows of columns `Xᵀ·p` adds to, one after the other.

use gpu_kernels::fused::Place;

use super::super::candidate::Candidate;
use super::{access, issue, spread, together};
use crate::plan::limits::DeviceLimits;
use crate::plan::problem::{Problem, Product};

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
pub(in crate::plan::fused) fn windows(
    limits: &DeviceLimits,
    kernel: &Candidate,
    problem: &Problem,
) -> u32 {
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
        together([walks * stream, access, issue * 1e9])
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
