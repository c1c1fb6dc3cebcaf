//! The Hessian of a softmax by products with X̃, and factors of its diagonal blocks, one for each class.
//!
//! A block is X̃ᵀ·diag(v ⊙ p ⊙ (1 − p))·X̃ + λ. What it leaves out couples classes, not columns: the inner iterations do not
//! grow with the condition of X̃. k blocks take the k + 1-th part of the work of the whole Hessian, twice.

use super::inner::Curved;
use super::problem::{At, Problem};
use super::step::Step;

/// Inner iterations of one direction.
const MOST: usize = 200;

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
}

/// The Hessian of a softmax at a point, with blocks of it or of a point before.
pub(super) struct OfSoftmax<'a> {
    pub(super) problem: &'a Problem<'a>,
    pub(super) at: &'a At,
    pub(super) blocks: &'a Blocks,
}

impl Curved for OfSoftmax<'_> {
    fn product(&self, direction: &[f64], out: &mut Vec<f64>) {
        let problem = self.problem;
        let k = problem.predictors();
        let mut t = problem.design.predictors(direction, k);
        let kept = self.at.judged.kept.chunks_exact(k);
        for ((t, p), weight) in t.chunks_exact_mut(k).zip(kept).zip(problem.weights) {
            let mean: f64 = t.iter().zip(p).map(|(t, p)| t * p).sum();
            for (t, p) in t.iter_mut().zip(p) {
                *t = weight * p * (*t - mean);
            }
        }
        *out = problem.design.transposed(&t, k);
        for (i, (out, d)) in out.iter_mut().zip(direction).enumerate() {
            *out += problem.l2(i) * d;
        }
    }

    fn precondition(&self, residual: &[f64], out: &mut Vec<f64>) {
        let steps = &self.blocks.steps;
        let k = steps.len();
        out.resize(residual.len(), 0.0);
        for (c, step) in steps.iter().enumerate() {
            let own: Vec<f64> = residual.iter().skip(c).step_by(k).map(|r| -r).collect();
            for (j, value) in step.direction(&own).into_iter().enumerate() {
                out[j * k + c] = value;
            }
        }
    }

    fn most(&self) -> usize {
        MOST
    }
}
