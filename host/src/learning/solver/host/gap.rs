//! The duality gap: the objective less a lower bound of its minimum.
//!
//! For losses ℓᵢ with conjugates ℓᵢ* and u = slopes of the losses, `D(u) = −Σ vᵢ·ℓᵢ*(uᵢ) − Ω*(−X̃ᵀ(v⊙u))` is a lower bound
//! for every u that the unpenalised intercept allows (Σ vᵢuᵢ = 0). Ω* of `l1·‖w‖₁ + ½λ‖w‖²` is `(|z| − l1)₊²/(2λ)`, and
//! without a ridge 0 where |z| ≤ l1 and infinite elsewhere; u is then scaled until all |z| ≤ l1. Of coefficients that may not
//! be negative only z > 0 counts. An offset o adds −uᵢ·oᵢ to the conjugate.
//!
//! Source: S.-J. Kim, K. Koh, M. Lustig, S. Boyd, D. Gorinevsky, "An interior-point method for large-scale l1-regularized
//! least squares", IEEE J. Sel. Top. Signal Process. 1, 2007; E. Ndiaye, O. Fercoq, A. Gramfort, J. Salmon, "Gap safe
//! screening rules for sparsity enforcing penalties", JMLR 18, 2017.

use super::problem::{At, Problem};
use crate::learning::spec::SampleLoss;
use crate::ops::objective::Loss;

/// How far rounding may put a probability outside 0 … 1.
const OUTSIDE: f64 = 1e-9;

/// Objective less the best lower bound found; `None` for losses whose conjugates are not known here.
pub(super) fn duality_gap(problem: &Problem<'_>, at: &At) -> Option<f64> {
    if !problem.has_kinks() || problem.spec.intercept_l2 != 0.0 {
        return None;
    }
    let conjugate = Conjugate::of(problem.spec.loss)?;
    let k = problem.predictors();
    let slopes = shifted(problem, &at.judged.slopes, k);
    let products = problem.design.transposed(&slopes, k);
    let coefficients = &products[..problem.columns() * k];
    let held = |i: usize| problem.held[i / k];
    let free = coefficients.iter().enumerate().filter(|(i, _)| !held(*i));
    let (mut within, mut excess) = (1.0_f64, 0.0);
    for (i, z) in free {
        let (kink, l2) = (problem.kink(i), problem.l2(i));
        if kink.l1 == 0.0 && l2 == 0.0 {
            return None;
        }
        let pull = kink.pull(*z);
        if pull > kink.l1 {
            within = within.min(kink.l1 / pull);
            excess += kink.excess(*z).powi(2) / (2.0 * l2);
        }
    }
    let mut bound = -conjugate.sum(problem, &slopes, within);
    let with_ridge = -conjugate.sum(problem, &slopes, 1.0) - excess;
    if with_ridge.is_finite() {
        bound = bound.max(with_ridge);
    }
    let gap = at.value - bound;
    gap.is_finite().then_some(gap.max(0.0))
}

/// v⊙u with Σ v·u = 0 for each predictor, where there is an intercept.
fn shifted(problem: &Problem<'_>, slopes: &[f64], k: usize) -> Vec<f64> {
    if !problem.intercept {
        return slopes.to_vec();
    }
    let mut sums = vec![0.0; k];
    for (i, slope) in slopes.iter().enumerate() {
        sums[i % k] += slope;
    }
    let shift = |(i, slope): (usize, &f64)| slope - problem.weights[i / k] * sums[i % k];
    slopes.iter().enumerate().map(shift).collect()
}

/// Losses whose conjugates are known.
#[derive(Clone, Copy)]
enum Conjugate {
    /// ½u² + u·b.
    Squared,
    /// p·ln p + (1 − p)·ln(1 − p) at p = u + b.
    Logistic,
    /// Σ p·ln p at p = u + 1[class].
    Softmax,
}

impl Conjugate {
    fn of(loss: SampleLoss) -> Option<Conjugate> {
        match loss {
            SampleLoss::Single(Loss::Squared) => Some(Conjugate::Squared),
            SampleLoss::Single(Loss::Logistic) => Some(Conjugate::Logistic),
            SampleLoss::Multinomial { .. } => Some(Conjugate::Softmax),
            SampleLoss::Single(_) | SampleLoss::Kinked(_) => None,
        }
    }

    /// Σ v·ℓ*(c·u), of v⊙u.
    fn sum(self, problem: &Problem<'_>, slopes: &[f64], c: f64) -> f64 {
        let k = problem.predictors();
        let rows = problem.targets.iter().zip(problem.weights).enumerate();
        rows.filter(|(_, (_, weight))| **weight > 0.0)
            .map(|(i, (target, weight))| {
                let u = |class: usize| c * slopes[i * k + class] / weight;
                // Of a loss at t + o instead of t.
                let shift = problem.offset.map_or(0.0, |offset| offset[i]);
                let shifted: f64 = (0..k).map(u).sum::<f64>() * shift;
                weight * (self.of_row(u, *target, k) - shifted)
            })
            .sum()
    }

    fn of_row(self, u: impl Fn(usize) -> f64, target: f64, k: usize) -> f64 {
        match self {
            Conjugate::Squared => u(0) * (0.5 * u(0) + target),
            Conjugate::Logistic => {
                let p = u(0) + target;
                entropy(p) + entropy(1.0 - p)
            }
            Conjugate::Softmax => {
                let hit = |class: usize| if class == target as usize { 1.0 } else { 0.0 };
                (0..k).map(|class| entropy(u(class) + hit(class))).sum()
            }
        }
    }
}

/// p·ln p; infinite outside 0 … 1.
fn entropy(p: f64) -> f64 {
    if !(-OUTSIDE..=1.0 + OUTSIDE).contains(&p) {
        f64::INFINITY
    } else if p <= 0.0 {
        0.0
    } else {
        p * p.ln()
    }
}
