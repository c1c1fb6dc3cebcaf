//! Newton directions of a softmax whose Hessian is not formed: conjugate gradients on products with X̃, preconditioned by
//! factors of the Hessian's diagonal blocks, one for each class.
//!
//! A block is X̃ᵀ·diag(v ⊙ p ⊙ (1 − p))·X̃ + λ. What it leaves out couples classes, not columns: the inner iterations do not
//! grow with the condition of X̃. k blocks take the k + 1-th part of the work of the whole Hessian, twice.
//!
//! Source: R. Dembo, T. Steihaug, "Truncated-Newton algorithms for large-scale unconstrained optimization", Math. Prog. 26,
//! 1983 (how exact an inner solve has to be).

use super::problem::{At, Problem};
use super::step::Step;

/// Inner iterations of one direction.
const MOST: usize = 200;
/// What is left of a gradient by a direction at most.
const LOOSE: f64 = 0.1;

/// Factors of the diagonal blocks at a point.
pub(super) struct Blocks {
    steps: Vec<Step>,
}

impl Blocks {
    pub(super) fn new(problem: &Problem<'_>, at: &At) -> Blocks {
        let k = problem.predictors();
        let (kept, weights) = (&at.judged.kept, problem.weights);
        let grams = problem.design.grams(k, |c, i| {
            let p = kept[i * k + c];
            weights[i] * p * (1.0 - p)
        });
        let free: Vec<usize> = (0..problem.design.width())
            .filter(|column| !problem.held[*column])
            .collect();
        let factor = |(c, mut gram): (usize, faer::Mat<f64>)| {
            for j in 0..problem.design.width() {
                gram[(j, j)] += problem.l2(j * k + c);
            }
            Step::new(&gram, &free)
        };
        Blocks {
            steps: grams.into_iter().enumerate().map(factor).collect(),
        }
    }

    /// An approximate inverse of the Hessian times `r`.
    fn apply(&self, r: &[f64]) -> Vec<f64> {
        let k = self.steps.len();
        let mut out = vec![0.0; r.len()];
        for (c, step) in self.steps.iter().enumerate() {
            let own: Vec<f64> = r.iter().skip(c).step_by(k).map(|r| -r).collect();
            for (j, value) in step.direction(&own).into_iter().enumerate() {
                out[j * k + c] = value;
            }
        }
        out
    }
}

/// The part of the gradient that a direction may leave: less the nearer the minimum, so that steps become Newton's.
pub(super) fn wanted(at: &At, first_norm: f64, target: f64) -> f64 {
    let share = (at.norm / first_norm.max(f64::MIN_POSITIVE))
        .sqrt()
        .min(LOOSE);
    (share * at.norm).max(0.3 * target)
}

/// A direction that leaves `wanted` of the gradient's norm, and the products that it took.
pub(super) fn direction(
    problem: &Problem<'_>,
    at: &At,
    blocks: &Blocks,
    wanted: f64,
) -> (Vec<f64>, usize) {
    let k = problem.predictors();
    let of_free = |i: usize, value: f64| if problem.held[i / k] { 0.0 } else { value };
    let gradient = at.gradient.iter().enumerate();
    let mut r: Vec<f64> = gradient.map(|(i, g)| of_free(i, -g)).collect();
    let mut d = vec![0.0; r.len()];
    let mut z = blocks.apply(&r);
    let mut p = z.clone();
    let mut rz = dot(&r, &z);
    for iteration in 0..MOST {
        let q = product(problem, at, &p);
        let curvature = dot(&p, &q);
        if !(curvature > 0.0 && rz > 0.0) {
            return (d, iteration);
        }
        let along = rz / curvature;
        for i in 0..d.len() {
            d[i] += along * p[i];
            r[i] = of_free(i, r[i] - along * q[i]);
        }
        if dot(&r, &r).sqrt() <= wanted {
            return (d, iteration + 1);
        }
        z = blocks.apply(&r);
        let next = dot(&r, &z);
        let share = next / rz;
        rz = next;
        for (p, z) in p.iter_mut().zip(&z) {
            *p = z + share * *p;
        }
    }
    (d, MOST)
}

/// The Hessian at a point times `direction`.
fn product(problem: &Problem<'_>, at: &At, direction: &[f64]) -> Vec<f64> {
    let k = problem.predictors();
    let mut t = problem.design.predictors(direction, k);
    let rows = t.chunks_exact_mut(k).zip(at.judged.kept.chunks_exact(k));
    for ((t, p), weight) in rows.zip(problem.weights) {
        let mean: f64 = t.iter().zip(p).map(|(t, p)| t * p).sum();
        for (t, p) in t.iter_mut().zip(p) {
            *t = weight * p * (*t - mean);
        }
    }
    let mut out = problem.design.transposed(&t, k);
    for (i, (out, d)) in out.iter_mut().zip(direction).enumerate() {
        *out += problem.l2(i) * d;
    }
    out
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
