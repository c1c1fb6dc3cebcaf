//! The last steps to the minimum, once the gradient is short enough.
//!
//! A gradient's length says little of the distance to the minimum: along a direction of curvature λ, which is often a weak
//! ridge alone, they differ by 1/λ. A Newton step is that distance, up to its square. So a solve that has converged takes the
//! next step's length, in the metric of the Hessian that it has, and what the step promises to take off the objective, and
//! goes on while either is more than the accuracy promised. A step costs one read of X̃ and no Hessian, unless the one kept
//! is of a point too far away.
//!
//! Source: the step with a Hessian kept is the chord method, C. T. Kelley, "Iterative Methods for Linear and Nonlinear
//! Equations", SIAM 1995, section 5.4.

use super::newton::{Direction, Newton};
use super::outcome::Watch;

/// Distance to the minimum, of the largest coefficient, from which on coefficients are as accurate as promised (1e-5), with
/// room for the estimate.
const NEAR: f64 = 2e-6;
/// What a step may promise to take off the objective, of the objective, for that to be as accurate as promised (1e-6).
const LOW: f64 = 1e-7;
/// Share of the first objective that counts as that of a fit without error.
const NOTHING: f64 = 1e-6;
/// Steps by the Hessian that is kept: each leaves a small part of the distance, or the Hessian is of too far away.
const KEPT: usize = 4;
/// Steps by new Hessians at most: more say that the minimum is not at a finite distance.
const RENEWED: usize = 10;
/// What is left of a gradient by a step.
const LEFT: f64 = 1e-2;

/// Steps from where `newton` has converged until coefficients and the objective are near those of the minimum. Ends where no
/// step goes on: the gradient has been short enough before.
pub(super) fn approach(newton: &mut Newton<'_, '_>, max_iter: usize, watch: &mut Watch<'_>) {
    let (mut kept, mut renewed) = (0, 0);
    while newton.n_iter < max_iter && renewed < RENEWED {
        let Some(direction) = remaining(newton) else {
            return;
        };
        let inner = direction.inner;
        newton.n_iter += 1;
        if kept < KEPT && shortens(newton, &direction) {
            kept += 1;
        } else if newton.problem.is_quadratic() {
            return;
        } else {
            (kept, renewed) = (0, renewed + 1);
            newton.hessian = None;
            let direction = newton.direction(LEFT * newton.at.norm);
            if newton.search(&direction).is_some() {
                return;
            }
        }
        newton.gap = None;
        let line = newton.iteration(inner);
        if watch(line, &|| newton.at.theta.clone()).is_break() {
            return;
        }
    }
}

/// Takes a step if it shortens the gradient; whether it does.
fn shortens(newton: &mut Newton<'_, '_>, direction: &Direction) -> bool {
    let pairs = newton.at.theta.iter().zip(&direction.step);
    let next = newton.problem.at(pairs.map(|(x, d)| x + d).collect());
    let shorter = next.value.is_finite() && next.norm < newton.at.norm;
    if shorter {
        newton.at = next;
    }
    shorter
}

/// The step that is left, unless it is short and promises little, or nothing is known of the curvature yet.
fn remaining(newton: &mut Newton<'_, '_>) -> Option<Direction> {
    if newton.at.norm == 0.0 || newton.problem.is_apart(&newton.at.theta) {
        return None;
    }
    let wanted = LEFT * newton.at.norm;
    let direction = match (newton.by_products, &newton.hessian) {
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
    let first = Some(NOTHING * newton.first_value.abs()).filter(|first| first.is_finite());
    let value = newton.at.value.abs().max(first.unwrap_or(0.0));
    let is_far = length(&direction.step) > NEAR * length(&newton.at.theta);
    let is_high = direction.decrease.abs() > LOW * value;
    (is_far || is_high).then_some(direction)
}
