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

use faer::Mat;

use super::design::OfRows;
use super::problem::{At, Problem};
use super::step::Step;
use crate::learning::spec::SampleLoss;
use crate::ops::objective::Loss;

/// How far rounding may put a probability outside 0 … 1.
const OUTSIDE: f64 = 1e-9;

/// Rounds in which intercepts are put to where their derivatives are 0.
const ROUNDS: usize = 30;
/// The most that an intercept moves in one of them.
const MOST_MOVED: f64 = 2.0;

/// Objective less the best lower bound found; `None` for losses whose conjugates are not known here, and where a column has
/// no penalty.
pub(super) fn duality_gap(problem: &Problem<'_>, at: &At) -> Option<f64> {
    if !problem.has_kinks() || problem.spec.intercept_l2 != 0.0 {
        return None;
    }
    let conjugate = Conjugate::of(problem.spec.loss)?;
    let k = problem.predictors();
    let mut bound = lower_bound(problem, conjugate, &shifted(problem, &at.judged.slopes, k))?;
    if !bound.is_finite() && problem.intercept {
        // Rows that are nearly certain have slopes of nearly 0, which a shift may take out of the domain.
        bound = lower_bound(
            problem,
            conjugate,
            &shifted(problem, &at_rest(problem, at), k),
        )?;
    }
    let gap = at.value - bound;
    gap.is_finite().then_some(gap.max(0.0))
}

/// D(v⊙u) of slopes that the intercept allows; −∞ outside its domain, `None` where a column has no penalty.
fn lower_bound(problem: &Problem<'_>, conjugate: Conjugate, slopes: &[f64]) -> Option<f64> {
    let k = problem.predictors();
    let products = problem.design.transposed(slopes, k);
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
    let bound = -conjugate.sum(problem, slopes, within);
    let with_ridge = -conjugate.sum(problem, slopes, 1.0) - excess;
    Some(match with_ridge.is_finite() {
        true => bound.max(with_ridge),
        false => bound,
    })
}

/// v⊙u where intercepts are at their best for these coefficients: Σ v·u = 0, and every u in the domain. Newton's method on
/// the intercepts alone.
fn at_rest(problem: &Problem<'_>, at: &At) -> Vec<f64> {
    let k = problem.predictors();
    let mut predictors = at.predictors.clone();
    let (mut slopes, mut kept) = (at.judged.slopes.clone(), at.judged.kept.clone());
    for _ in 0..ROUNDS {
        let (mut sums, mut sizes) = (vec![0.0; k], 0.0);
        for (i, slope) in slopes.iter().enumerate() {
            sums[i % k] += slope;
            sizes += slope.abs();
        }
        if sums.iter().all(|sum| sum.abs() <= f64::EPSILON * sizes) {
            break;
        }
        let step = step_of_intercepts(problem, &kept, &sums);
        for row in predictors.chunks_exact_mut(k) {
            let pairs = row.iter_mut().zip(&step);
            pairs.for_each(|(t, step)| *t += step.clamp(-MOST_MOVED, MOST_MOVED));
        }
        problem.losses().judge(OfRows {
            predictors: &mut predictors,
            slopes: &mut slopes,
            kept: &mut kept,
        });
    }
    slopes
}

/// −H⁻¹·g of the intercepts: `kept` is v·loss'' of one predictor, or probabilities of several.
fn step_of_intercepts(problem: &Problem<'_>, kept: &[f64], sums: &[f64]) -> Vec<f64> {
    let k = sums.len();
    if k == 1 {
        return vec![-sums[0] / kept.iter().sum::<f64>().max(f64::MIN_POSITIVE)];
    }
    let mut hessian = Mat::<f64>::zeros(k, k);
    for (row, weight) in kept.chunks_exact(k).zip(problem.weights) {
        for (a, p) in row.iter().enumerate() {
            hessian[(a, a)] += weight * p;
            for (b, q) in row.iter().enumerate() {
                hessian[(a, b)] -= weight * p * q;
            }
        }
    }
    let free: Vec<usize> = (0..k).collect();
    Step::new(&hessian, &free).direction(sums)
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
