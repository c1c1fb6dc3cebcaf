//! What rows of different lengths cost, and columns that many rows have.

use super::launch::Blocks;
use crate::plan::limits::DeviceLimits;
use crate::plan::problem::{Precision, Problem, Product};

/// What a step beyond those in registers takes, where all warps of an SM have such, and where one warp is left with a long
/// row, microseconds. On an H200 with 4,000,000 × 10,000, 20 entries a row in the log-normal mean and 1,399 in the
/// longest: `X·y` takes 0.293 ms with VS = 8 and 0.350 with VS = 4, where equal rows take 0.200 and 0.181; `Xᵀ·p` 0.42 and
/// 0.63 instead of 0.22 and 0.21, the whole pattern 0.64 and 0.74 instead of 0.24 and 0.23. With rows of 20,000 entries
/// among those of 20 the pattern takes 2.4 ms with VS = 16 and n = 100,000 instead of 1.4. X·y has them
/// beside what else it waits for: 0.36 ms with 1,000,000 columns by Zipf's law and the same lengths, 0.28 with equal ones.
const FORWARD_US: [f64; 2] = [0.21, 0.42];
const TRANSPOSED_US: [f64; 2] = [0.25, 0.35];
const FUSED_US: [f64; 2] = [0.23, 0.4];

/// Steps of warps beyond those that equal rows would take.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Uneven {
    /// Of all warps, and what each takes, seconds.
    steps: f64,
    step: f64,
    /// What a step takes where one vector is left with a long row, or with more long ones than others, seconds.
    alone: f64,
    /// Steps of the longest row, and how far rows are from the mean one, in steps.
    longest: f64,
    deviation: f64,
    /// Rows, and lanes of a vector.
    rows: f64,
    lanes: f64,
}

/// By how many standard deviations the longest of 32 rows is beyond the mean one, were they normally distributed.
const LONGEST_OF_WARP: f64 = 2.07;
/// What is left of the longest rows of a vector, which begin beside others that are shorter: fitted.
const BEYOND_MEAN: f64 = 0.64;
/// How much longer steps of the fused product and of X·y take in f64: fitted.
const FUSED_OF_F64: f64 = 1.19;
const FORWARD_OF_F64: f64 = 1.5;

impl Uneven {
    /// For vectors of `vs` lanes that hold `held` entries each.
    pub fn of(problem: &Problem, product: Product, vs: u32, held: u32) -> Self {
        if problem.is_dense() || problem.row_steps.is_none() {
            return Uneven::default();
        }
        let [step, alone] = match product {
            Product::Forward => FORWARD_US,
            Product::Transposed => TRANSPOSED_US,
            Product::Fused => FUSED_US,
        };
        let lanes = f64::from(vs.clamp(1, 32));
        let warps = problem.rows as f64 * lanes / 32.0;
        let usual = (problem.mean_row() / lanes)
            .ceil()
            .max(f64::from(held.max(1)));
        let longest = (problem.longest() / lanes).ceil() - usual;
        let times = match (product, problem.dtype) {
            (Product::Fused, Precision::F64) => FUSED_OF_F64,
            (Product::Forward, Precision::F64) => FORWARD_OF_F64,
            _ => 1.0,
        };
        // Rows of a warp of single lanes go on until the longest of them has ended.
        let of_warp = problem.steps(1) / (problem.rows as f64 / 32.0).max(1.0);
        let deviation = (of_warp - problem.mean_row()).max(0.0) / LONGEST_OF_WARP;
        Uneven {
            steps: (problem.steps(vs) - usual * warps).max(0.0),
            step: times * step * 1e-6,
            alone: times * alone * 1e-6,
            longest: longest.max(0.0),
            deviation: deviation / lanes,
            rows: problem.rows as f64,
            lanes,
        }
    }

    /// With as many warps as are resident. Vectors have as many rows each: the one whose rows are longest by chance ends last.
    pub fn seconds(&self, limits: &DeviceLimits, blocks: &Blocks) -> f64 {
        let warps = f64::from(limits.sms.max(1)) * f64::from(blocks.occupancy.warps_per_sm.max(1));
        if self.alone <= 0.0 {
            return 0.0;
        }
        let vectors = (warps * 32.0 / self.lanes).min(self.rows).max(1.0);
        let of_vector = BEYOND_MEAN * (self.rows / vectors).sqrt() * self.deviation;
        let beyond_mean = of_vector * (2.0 * vectors.ln()).sqrt();
        self.steps / warps * self.step + self.longest.max(beyond_mean) * self.alone
    }
}

/// How long two additions to one element in global memory take one after the other, seconds. By Zipf's law with exponents
/// of 0.8, 1.1 and 1.4 over 1,000,000 columns on an H200 5.1, 11.6 and 14.2 ms with VS = 8, with 0.9, 3.7 and 4 million
/// entries in the first; a warp whose rows start with it adds to it once for all of them.
const QUEUE: f64 = 3.3e-9;

/// The same of two additions to one line of 32 columns, which meet there whatever column they are for: the three have 5.7,
/// 27 and 46 million entries in the first, the shape of url 30 million and takes 12 ms, 1.2 million of which are in the most frequent
/// column.
const QUEUE_OF_LINE: f64 = 0.38e-9;
/// How much longer an addition to a line takes in f64: those shapes take 4.6, 14.8 and, url, 14.8 ms.
const LINE_OF_F64: f64 = 1.2;

/// Seconds of additions to global memory one after the other, with vectors of `vs` lanes.
pub(super) fn queue(problem: &Problem, vs: u32) -> f64 {
    let line = problem.columns.map_or(0, |columns| columns.lines[2]) as f64;
    let of_line = match problem.dtype {
        Precision::F32 => QUEUE_OF_LINE,
        Precision::F64 => LINE_OF_F64 * QUEUE_OF_LINE,
    };
    let alone = QUEUE * problem.busiest_column();
    of_lanes(vs) * alone.max(of_line * line)
}

/// How much longer a queue takes with vectors of `vs` lanes than with eight: exponents of 0.8, 1.1 and 1.4 take 5.8, 12.9 and
/// 15.3 ms with VS = 16, and 6.5, 13.9 and 16.9 ms with VS = 32.
fn of_lanes(vs: u32) -> f64 {
    match vs {
        0..16 => 1.0,
        16..32 => 1.06,
        _ => 1.2,
    }
}
