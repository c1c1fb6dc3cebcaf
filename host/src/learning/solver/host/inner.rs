//! Newton directions by conjugate gradients on products with the Hessian, which is not formed.
//!
//! Source: R. Dembo, T. Steihaug, "Truncated-Newton algorithms for large-scale unconstrained optimization", Math. Prog. 26,
//! 1983 (how exact an inner solve has to be); with a preconditioner: Golub & Van Loan, "Matrix Computations", section 11.5.

use super::problem::{At, Problem};

/// What is left of a gradient by a direction at most.
const LOOSE: f64 = 0.1;

/// The Hessian at a point, and an approximate inverse of it.
pub(super) trait Curved {
    /// Makes of `out` the Hessian times a direction, whatever it was.
    fn product(&self, direction: &[f64], out: &mut Vec<f64>);

    /// Makes of `out` the approximate inverse times a residual, whatever it was.
    fn precondition(&self, residual: &[f64], out: &mut Vec<f64>);

    /// Iterations of one direction at most.
    fn most(&self) -> usize;
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
    hessian: &dyn Curved,
    wanted: f64,
) -> (Vec<f64>, usize) {
    let k = problem.predictors();
    let free: Vec<bool> = (0..at.gradient.len())
        .map(|i| !problem.held[i / k])
        .collect();
    let of_free = |i: usize, value: f64| if free[i] { value } else { 0.0 };
    let gradient = at.gradient.iter().enumerate();
    let mut r: Vec<f64> = gradient.map(|(i, g)| of_free(i, -g)).collect();
    let mut d = vec![0.0; r.len()];
    let (mut p, mut q, mut z) = (Vec::new(), Vec::new(), Vec::new());
    hessian.precondition(&r, &mut p);
    let mut rz = dot(&r, &p);
    for iteration in 0..hessian.most() {
        hessian.product(&p, &mut q);
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
        hessian.precondition(&r, &mut z);
        let next = dot(&r, &z);
        let share = next / rz;
        rz = next;
        for (p, z) in p.iter_mut().zip(&z) {
            *p = z + share * *p;
        }
    }
    (d, hessian.most())
}

/// Four sums side by side, so that additions do not wait for each other.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (mut sums, (left, right)) = ([0.0; 4], (a.chunks_exact(4), b.chunks_exact(4)));
    let tail = left.remainder().iter().zip(right.remainder());
    let tail: f64 = tail.map(|(a, b)| a * b).sum();
    for (a, b) in left.zip(right) {
        for i in 0..4 {
            sums[i] += a[i] * b[i];
        }
    }
    (sums[0] + sums[2]) + (sums[1] + sums[3]) + tail
}
