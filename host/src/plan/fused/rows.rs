//! What rows of different lengths cost, and columns that many rows have.

use super::launch::Blocks;
use crate::plan::limits::DeviceLimits;
use crate::plan::problem::{Problem, Product};

/// What a step beyond those in registers takes, where all warps of an SM have such, and where one warp is left with a long
/// row, microseconds. On an H200 with 4,000,000 × 10,000, 20 entries a row in the log-normal mean and 1,399 in the
/// longest: `X·y` takes 0.293 ms with VS = 8 and 0.350 with VS = 4, where equal rows take 0.200 and 0.181; `Xᵀ·p` 0.42 and
/// 0.63 instead of 0.22 and 0.21, the whole pattern 0.64 and 0.74 instead of 0.24 and 0.23. With rows of 20,000 entries
/// among those of 20 the pattern takes 2.4 ms with VS = 16 and n = 100,000 instead of 1.4. X·y has them
/// beside what else it waits for: 0.36 ms with 1,000,000 columns by Zipf's law and the same lengths, 0.28 with equal ones.
const FORWARD_US: [f64; 2] = [0.27, 0.35];
const TRANSPOSED_US: [f64; 2] = [0.25, 0.3];
const FUSED_US: [f64; 2] = [0.35, 0.4];

/// Steps of warps beyond those that equal rows would take.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Uneven {
    /// Of all warps, and what each takes, seconds.
    steps: f64,
    step: f64,
    /// What the longest row takes.
    longest: f64,
}

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
        Uneven {
            steps: (problem.steps(vs) - usual * warps).max(0.0),
            step: step * 1e-6,
            longest: longest.max(0.0) * alone * 1e-6,
        }
    }

    /// With as many warps as are resident.
    pub fn seconds(&self, limits: &DeviceLimits, blocks: &Blocks) -> f64 {
        let warps = f64::from(limits.sms.max(1)) * f64::from(blocks.occupancy.warps_per_sm.max(1));
        self.steps / warps * self.step + self.longest
    }
}

/// How long two additions to one element in global memory take one after the other, seconds. By Zipf's law with exponents
/// of 0.8, 1.1 and 1.4 over 1,000,000 columns on an H200 5.1, 11.6 and 14.2 ms with VS = 8, with 0.9, 3.7 and 4 million
/// entries in the first; a warp whose rows start with it adds to it once for all of them.
const QUEUE: f64 = 3.3e-9;

/// [`QUEUE`] with vectors of `vs` lanes: the three take 5.8, 12.9 and 15.3 ms with VS = 16 and 6.5, 13.9 and 16.9 ms with
/// VS = 32.
pub(super) fn queue_of(vs: u32) -> f64 {
    QUEUE
        * match vs {
            0..16 => 1.0,
            16..32 => 1.06,
            _ => 1.2,
        }
}
