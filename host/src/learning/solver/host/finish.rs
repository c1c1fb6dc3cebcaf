//! The last steps to the minimum, once the gradient is short enough.
//!
//! A gradient's length says little of the distance to the minimum: along a direction of curvature λ, which is often a weak
//! ridge alone, they differ by 1/λ. A Newton step is that distance, up to its square. So a solve that has converged takes the
//! next step's length, in the metric of the Hessian that it has, and goes on while that is more than the accuracy promised.
//! A step costs one read of X̃ and no Hessian.
//!
//! Source: the step with a Hessian kept is the chord method, C. T. Kelley, "Iterative Methods for Linear and Nonlinear
//! Equations", SIAM 1995, section 5.4.

use super::newton::{Direction, Newton};
use super::outcome::Watch;

/// Distance to the minimum, of the largest coefficient, from which on coefficients are as accurate as promised (1e-5), with
/// room for the estimate.
const NEAR: f64 = 2e-6;
/// Steps at most: each leaves a small part of the distance, or the minimum is not at a finite distance.
const STEPS: usize = 4;
/// What is left of a gradient by a step.
const LEFT: f64 = 1e-2;

/// Steps from where `newton` has converged until coefficients are near those of the minimum. Ends where a step does not
/// shorten the gradient, which has been short enough before.
pub(super) fn approach(newton: &mut Newton<'_, '_>, max_iter: usize, watch: &mut Watch<'_>) {
    for _ in 0..STEPS {
        if newton.n_iter >= max_iter {
            return;
        }
        let Some(direction) = remaining(newton) else {
            return;
        };
        let pairs = newton.at.theta.iter().zip(&direction.step);
        let next = newton.problem.at(pairs.map(|(x, d)| x + d).collect());
        if !(next.value.is_finite() && next.norm < newton.at.norm) {
            return;
        }
        (newton.at, newton.gap) = (next, None);
        newton.n_iter += 1;
        let line = newton.iteration(direction.inner);
        if watch(line, &|| newton.at.theta.clone()).is_break() {
            return;
        }
    }
}

/// The step that is left, unless it is short, or nothing is known of the curvature yet.
fn remaining(newton: &mut Newton<'_, '_>) -> Option<Direction> {
    let wanted = LEFT * newton.at.norm;
    let direction = match (newton.by_products, &newton.hessian) {
        _ if newton.at.norm == 0.0 => return None,
        (true, _) => newton.direction_by_products(wanted),
        (false, Some(_)) => newton.direction_of_hessian(wanted),
        (false, None) => return None,
    };
    let coefficients = newton.problem.columns() * newton.problem.predictors();
    let length = |x: &[f64]| {
        x[..coefficients]
            .iter()
            .fold(0.0_f64, |most, x| most.max(x.abs()))
    };
    let is_far = length(&direction.step) > NEAR * length(&newton.at.theta);
    is_far.then_some(direction)
}
