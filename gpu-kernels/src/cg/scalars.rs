//! The scalars of a solve, and how they move on.

use crate::cta::{Cache, Cta};
use crate::memory::In;
use crate::scalar::Real;

/// Places in the state vector.
pub mod state {
    /// r·z of the current residual, as the last step foretold it.
    pub const RZ: usize = 0;
    /// ‖r‖² of the current residual, as the last step foretold it.
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
    /// The state before the first one.
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

/// What is added up over p, q = A·p, r, and D⁻¹.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sums {
    /// p·q.
    pub pq: f64,
    /// r·z.
    pub rz: f64,
    /// ‖r‖², of coordinates that are not held, as all that follow.
    pub rr: f64,
    /// z·q.
    pub zq: f64,
    /// q·D⁻¹·q.
    pub qq_inverse: f64,
    /// r·q.
    pub rq: f64,
    /// ‖q‖².
    pub qq: f64,
}

impl Sums {
    /// How many there are.
    pub const COUNT: usize = 7;

    /// In the order of the partial sums.
    #[inline(always)]
    pub fn of([pq, rz, rr, zq, qq_inverse, rq, qq]: [f64; Sums::COUNT]) -> Self {
        Sums {
            pq,
            rz,
            rr,
            zq,
            qq_inverse,
            rq,
            qq,
        }
    }

    /// Adds what an element of p, q, r and D⁻¹ has of each.
    #[inline(always)]
    pub fn add<T: Real>([p, q, r, inverse]: [T; 4], to: &mut [f64; Sums::COUNT]) {
        let (z, scaled) = ((r * inverse).to_f64(), (q * inverse).to_f64());
        let is_held = inverse == T::ZERO;
        let (p, q, r) = (p.to_f64(), q.to_f64(), r.to_f64());
        let counted = |x: f64| if is_held { 0.0 } else { x };
        let (free_r, free_q) = (counted(r), counted(q));
        let [pq, rz, rr, zq, qq_inverse, rq, qq] = to;
        *pq = p.fma(q, *pq);
        *rz = r.fma(z, *rz);
        *rr = free_r.fma(free_r, *rr);
        *zq = z.fma(q, *zq);
        *qq_inverse = q.fma(scaled, *qq_inverse);
        *rq = free_r.fma(free_q, *rq);
        *qq = free_q.fma(free_q, *qq);
    }

    /// r·z after a step of this length.
    #[inline(always)]
    fn rz_after(&self, a: f64) -> f64 {
        after(self.rz, self.zq, self.qq_inverse, a)
    }

    /// ‖r‖² after a step of this length.
    #[inline(always)]
    fn rr_after(&self, a: f64) -> f64 {
        after(self.rr, self.rq, self.qq, a)
    }
}

/// The part of a square that sums of a few million products in f64 leave uncertain where they cancel.
const UNCERTAIN: f64 = 1e-14;

/// `xx + 2a·xq + a²·qq`, the square of x + a·q, and no less than what it may be for rounding: a solve ends by what is
/// certain. No number stays none.
#[inline(always)]
fn after(xx: f64, xq: f64, qq: f64, a: f64) -> f64 {
    let square = a.fma(a.fma(qq, 2.0 * xq), xx);
    let least = UNCERTAIN * xx;
    if square < least { least } else { square }
}

/// What an iteration changes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// a of w += a·p; 0 when the solve has ended.
    pub length: f64,
    /// b of p = −z + b·p.
    pub turn: f64,
    /// Whether the step ends on the border of the trust region.
    pub border: bool,
}

/// Whether the state before is that of a beginning.
#[inline(always)]
pub fn is_opening(before: &[f64; state::LEN]) -> bool {
    before[state::ITERATIONS] < 0.0
}

/// The state before, with r·z and ‖r‖² as they are; of a solve that has ended as it was, whose product need not have been
/// computed.
#[inline(always)]
pub fn refreshed(before: &[f64; state::LEN], sums: &Sums) -> [f64; state::LEN] {
    let mut now = *before;
    if before[state::RR] > before[state::STOP] {
        (now[state::RZ], now[state::RR]) = (sums.rz, sums.rr);
    }
    now
}

/// The step from the [`refreshed`] state inside ‖w‖_D ≤ `radius`, of vectors of T.
///
/// Without a trust region (infinite radius) a direction of no positive curvature is not followed; with one it
/// is followed to the border.
#[inline(always)]
pub fn step<T: Real>(now: &[f64; state::LEN], sums: &Sums, radius: f64) -> Step {
    let (length, border) = length_along(now, sums.pq, radius);
    // The vectors move by what T has of it.
    let turn = sums.rz_after(T::of_f64(length).to_f64()) / now[state::RZ];
    Step {
        length,
        turn,
        border,
    }
}

/// How far w moves, and whether to the border.
#[inline(always)]
fn length_along(now: &[f64; state::LEN], pq: f64, radius: f64) -> (f64, bool) {
    if now[state::RR] <= now[state::STOP] {
        return (0.0, false);
    }
    if pq > 0.0 {
        let length = now[state::RZ] / pq;
        if norm_after(now, length) <= radius * radius {
            return (length, false);
        }
    }
    match radius.is_finite() {
        true => (to_border(now, radius), true),
        false => (0.0, false),
    }
}

/// ‖w + a·p‖²_D.
#[inline(always)]
fn norm_after(now: &[f64; state::LEN], a: f64) -> f64 {
    now[state::NORM] + a * (2.0 * now[state::CROSS] + a * now[state::LENGTH])
}

/// The positive root τ of ‖w + τ·p‖²_D = radius², in the form without cancellation.
#[inline(always)]
fn to_border(now: &[f64; state::LEN], radius: f64) -> f64 {
    let gap = radius * radius - now[state::NORM];
    let cross = now[state::CROSS];
    let root = crate::simt::sqrt_f64(cross * cross + now[state::LENGTH] * gap);
    gap / (cross + root)
}

/// The state after an iteration of vectors of T: from the state before, the sums and the step taken. Of a beginning it is the first
/// one.
#[inline(always)]
pub fn next_state<T: Real>(
    before: &[f64; state::LEN],
    sums: &Sums,
    step: Step,
    tolerance: f64,
) -> [f64; state::LEN] {
    if is_opening(before) {
        return first_state(sums, tolerance);
    }
    let now = refreshed(before, sums);
    if now[state::RR] <= now[state::STOP] {
        return now;
    }
    let mut after = now;
    after[state::CURVATURE] = sums.pq;
    let a = step.length;
    if a > 0.0 {
        let moved = T::of_f64(a).to_f64();
        (after[state::RZ], after[state::RR]) = (sums.rz_after(moved), sums.rr_after(moved));
        let b = step.turn;
        after[state::ITERATIONS] += 1.0;
        after[state::NORM] = norm_after(&now, a);
        after[state::CROSS] = b * (now[state::CROSS] + a * now[state::LENGTH]);
        after[state::LENGTH] = after[state::RZ] + b * b * now[state::LENGTH];
        after[state::SLOPE] -= a * now[state::RZ];
        after[state::DECREASE] += a * (now[state::RZ] - 0.5 * a * sums.pq);
    }
    if step.border {
        after[state::STOP] = f64::INFINITY;
        after[state::BORDER] = 1.0;
    }
    after
}

#[inline(always)]
pub(super) fn first_state(sums: &Sums, tolerance: f64) -> [f64; state::LEN] {
    let mut first = [0.0; state::LEN];
    (first[state::RZ], first[state::RR]) = (sums.rz, sums.rr);
    first[state::STOP] = tolerance * tolerance * sums.rr;
    first[state::CURVATURE] = 1.0;
    first[state::LENGTH] = sums.rz;
    first
}
