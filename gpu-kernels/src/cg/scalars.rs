//! The scalars of a solve, and how they move on.

use crate::cta::{Cache, Cta};
use crate::memory::In;

/// Places in the state vector.
pub mod state {
    /// r·z of the current residual.
    pub const RZ: usize = 0;
    /// ‖r‖² of the current residual.
    pub const RR: usize = 1;
    /// The value of ‖r‖² at which to stop.
    pub const STOP: usize = 2;
    /// Iterations done; negative before the first direction.
    pub const ITERATIONS: usize = 3;
    /// p·q of the last step, 1 before the first; not positive when the matrix is not positive definite along p.
    pub const CURVATURE: usize = 4;
    /// ‖w‖²_D.
    pub const NORM: usize = 5;
    /// wᵀ·D·p.
    pub const CROSS: usize = 6;
    /// ‖p‖²_D.
    pub const LENGTH: usize = 7;
    /// r₀·w.
    pub const SLOPE: usize = 8;
    /// −(½·wᵀ·A·w + r₀·w), by how much the quadratic model is below its value at w = 0.
    pub const DECREASE: usize = 9;
    /// 1 once a step has ended on the border of the trust region, else 0.
    pub const BORDER: usize = 10;
    /// Length of the state vector.
    pub const LEN: usize = 11;
    /// The state from which the first direction is taken.
    pub const START: [f64; LEN] = [0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
}

/// Whether the solve of this state has ended, so that the product that was submitted ahead of the news is not wanted.
#[inline(always)]
pub(crate) fn is_over<C: Cta>(cta: &C, solve: In<'_, f64>) -> bool {
    if !solve.is_some() {
        return false;
    }
    let left: f64 = cta.load(solve, state::RR, Cache::Keep);
    left <= cta.load(solve, state::STOP, Cache::Keep)
}

/// How far a step goes along p.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stride {
    /// a of w += a·p; 0 when the solve has ended.
    pub length: f64,
    /// Whether the step ends on the border of the trust region.
    pub border: bool,
}

/// The step from the state `before`, with p·q = `pq`, inside ‖w‖_D ≤ `radius`.
///
/// Without a trust region (infinite radius) a direction of no positive curvature is not followed; with one it
/// is followed to the border.
#[inline(always)]
pub fn stride(before: &[f64; state::LEN], pq: f64, radius: f64) -> Stride {
    const NONE: Stride = Stride {
        length: 0.0,
        border: false,
    };
    if before[state::RR] <= before[state::STOP] {
        return NONE;
    }
    if pq > 0.0 {
        let length = before[state::RZ] / pq;
        if norm_after(before, length) <= radius * radius {
            return Stride {
                length,
                border: false,
            };
        }
    }
    if radius.is_finite() {
        let length = to_border(before, radius);
        return Stride {
            length,
            border: true,
        };
    }
    NONE
}

/// ‖w + a·p‖²_D.
#[inline(always)]
fn norm_after(before: &[f64; state::LEN], a: f64) -> f64 {
    before[state::NORM] + a * (2.0 * before[state::CROSS] + a * before[state::LENGTH])
}

/// The positive root τ of ‖w + τ·p‖²_D = radius², in the form without cancellation.
#[inline(always)]
fn to_border(before: &[f64; state::LEN], radius: f64) -> f64 {
    let gap = radius * radius - before[state::NORM];
    let cross = before[state::CROSS];
    let root = crate::simt::sqrt_f64(cross * cross + before[state::LENGTH] * gap);
    gap / (cross + root)
}

/// The state after an iteration: from the state before, the sums r·z, ‖r‖² and p·q, and the step taken.
#[inline(always)]
pub fn next_state(
    before: &[f64; state::LEN],
    [rz, rr, pq]: [f64; 3],
    stride: Stride,
    tolerance: f64,
) -> [f64; state::LEN] {
    let mut after = *before;
    after[state::RZ] = rz;
    after[state::RR] = rr;
    if before[state::ITERATIONS] < 0.0 {
        after[state::STOP] = tolerance * tolerance * rr;
        after[state::ITERATIONS] = 0.0;
        after[state::CURVATURE] = 1.0;
        after[state::LENGTH] = rz;
        return after;
    }
    after[state::CURVATURE] = pq;
    let a = stride.length;
    if a > 0.0 {
        let b = rz / before[state::RZ];
        after[state::ITERATIONS] += 1.0;
        after[state::NORM] = norm_after(before, a);
        after[state::CROSS] = b * (before[state::CROSS] + a * before[state::LENGTH]);
        after[state::LENGTH] = rz + b * b * before[state::LENGTH];
        after[state::SLOPE] -= a * before[state::RZ];
        after[state::DECREASE] += a * (before[state::RZ] - 0.5 * a * pq);
    }
    if stride.border {
        after[state::STOP] = f64::INFINITY;
        after[state::BORDER] = 1.0;
    }
    after
}
