//! Conjugate gradients on a quadratic objective: every iteration is one Hessian product.
//!
//! Where [`super::newton`] takes whole solves for its iterations, this counts, shows and limits their steps. A solve that
//! has ended by its own recurrence is judged by the gradient at its end, and goes on from there where that is still too
//! large. Source: Hestenes & Stiefel 1952, with a diagonal preconditioner.

use std::time::Instant;

use super::{Begin, Iteration, Limits, Objective, Point, Solved, Watch, method, ratio};
use crate::device::Buffer;
use crate::learning::cg::{self, Convergence, Pace};
use crate::matrix::{Dtype, Element};
use crate::ops::cg::{CgState, CgVectors, Stop};
use crate::ops::{Number, OpError, vector};

/// A solve from a better start has to shrink the gradient to this part at least: else rounding is all that is left of it.
const WORTHWHILE: f64 = 0.5;

/// To which part one solve shrinks the gradient where the tolerance is below the precision: beyond half of the digits, the
/// recurrence of a singular system follows rounding into directions of no curvature, and coefficients grow along them
/// without end. The next solve begins with the gradient of the point itself.
fn least_part<T: Number>(tolerance: f64) -> f64 {
    let unit = match T::DTYPE {
        Dtype::F32 => f64::from(f32::EPSILON),
        Dtype::F64 => f64::EPSILON,
    };
    if tolerance < unit { unit.sqrt() } else { 0.0 }
}

/// Minimises a quadratic `objective` from where it begins; `inverse_diagonal` approximates the inverse of the Hessian's
/// diagonal and holds coordinates where it is 0. In [`Pace::Lockstep`] `watch` is shown where each iteration led; else
/// where the solve began.
pub(in crate::learning) fn minimise<T: Number>(
    objective: &mut dyn Objective<T>,
    begin: Begin<T>,
    inverse_diagonal: Buffer<T>,
    (limits, pace): (&Limits, Pace),
    watch: &mut Watch<'_, T>,
) -> Result<Solved<T>, OpError> {
    let begun = Instant::now();
    let (mut point, cold) = begin.points(objective)?;
    let first_norm = cold.map_or(point.norm, |cold| cold.norm);
    let mut trial = Point {
        theta: point.theta.try_clone()?,
        gradient: point.gradient.try_clone()?,
        ..point
    };
    let (device, stop) = (objective.device().clone(), Stop::at(limits.tolerance));
    let gradient = point.gradient.try_clone()?;
    let mut vectors = CgVectors::new(&device, gradient, Some(inverse_diagonal), None, stop)?;
    let (mut n_iter, least) = (0, least_part::<T>(limits.tolerance));
    let convergence = loop {
        let norms = (point.norm, first_norm);
        if let Some(end) = method::end(n_iter, point.is_finite(), norms, limits) {
            break end;
        }
        let progress = ratio(point.norm, first_norm);
        let part = (limits.tolerance / progress).max(least);
        vectors.restart(&point.gradient, Stop::at(part))?;
        let seen = |state: &CgState, vectors: &CgVectors<T>| {
            if pace == Pace::Lockstep {
                aim(&point, vectors, &mut trial)?;
            }
            if state.iterations > 0 {
                watch(shown(&point, state, first_norm, begun), &trial.theta);
            }
            Ok(())
        };
        let product = |vectors: &mut CgVectors<T>| {
            let (p, q, state) = vectors.product();
            objective.hessian_vector(p, q, Some(state))?;
            vectors.advance()
        };
        let inner = cg::run(&mut vectors, limits.max_iter - n_iter, pace, product, seen)?;
        n_iter += inner.iterations;
        aim(&point, &vectors, &mut trial)?;
        trial.evaluate(objective)?;
        let end = judge(&point, &trial, &inner, limits.tolerance * first_norm);
        if end.is_none() || trial.is_finite() && trial.value <= point.value {
            std::mem::swap(&mut point, &mut trial);
            objective.accept();
        }
        if let Some(end) = end {
            break end;
        }
    };
    Ok(Solved {
        objective: point.value,
        gradient_ratio: ratio(point.norm, first_norm),
        gradient_norm: point.norm,
        theta: point.theta,
        n_iter,
        convergence,
    })
}

/// An iteration of a solve from `point`, by the solve's own recurrences.
fn shown<T: Number>(
    point: &Point<T>,
    state: &CgState,
    first_norm: f64,
    begun: Instant,
) -> Iteration {
    Iteration {
        objective: point.value - state.decrease,
        gradient_ratio: ratio(state.residual_squared.sqrt(), first_norm),
        inner: 1,
        seconds: begun.elapsed().as_secs_f64(),
        validation: None,
    }
}

/// Puts the end of a solve from `point` into `trial`.
fn aim<T: Number>(
    point: &Point<T>,
    vectors: &CgVectors<T>,
    trial: &mut Point<T>,
) -> Result<(), OpError> {
    let one = <T as Element>::from_f64(1.0);
    trial.theta.copy_from(&point.theta)?;
    vector::axpby(one, &vectors.w, one, &mut trial.theta)
}

/// How it ends at `trial`; not at all where there is more to gain from another solve.
fn judge<T: Number>(
    point: &Point<T>,
    trial: &Point<T>,
    inner: &CgState,
    wanted: f64,
) -> Option<Convergence> {
    match cg::outcome(inner) {
        Some(Convergence::NotFinite) => Some(Convergence::NotFinite),
        _ if !trial.is_finite() => Some(Convergence::NotFinite),
        _ if trial.norm <= wanted => Some(Convergence::Converged),
        // The iterations are spent.
        None => Some(Convergence::IterationLimit),
        _ if trial.norm < WORTHWHILE * point.norm => None,
        Some(Convergence::Singular) => Some(Convergence::Singular),
        Some(_) => Some(Convergence::PrecisionLimit),
    }
}

#[cfg(test)]
mod tests {
    use sprs::CsMatI;

    use crate::device::Device;
    use crate::learning::{LinearRegression, Solver};
    use crate::matrix::Features;

    const ROWS: usize = 3000;
    const COLS: usize = 103;

    /// Row i misses columns i % 3, 50 + i % 3 and 100 + i % 3: all others are constant, and those are three times the same.
    fn rows_of_period_3() -> CsMatI<f32, u32, u64> {
        let row = |i: usize| (0..COLS).filter(move |j| j % 50 != i % 3 || j / 50 > 2);
        let indices: Vec<u32> = (0..ROWS).flat_map(row).map(|j| j as u32).collect();
        let offsets = (0..=ROWS).map(|i| (i * (COLS - 3)) as u64).collect();
        let values = vec![1.0 / 32.0; indices.len()];
        CsMatI::new((ROWS, COLS), offsets, indices, values)
    }

    /// Beyond the precision of f32 there is no curvature along sums of such columns, nor a gradient but rounding.
    #[test]
    fn singular_systems_end_at_the_precision() {
        let x = Features::from(rows_of_period_3());
        let y: Vec<f32> = (0..ROWS).map(|i| [1.0, 2.0, 4.0][i % 3]).collect();
        let params = LinearRegression::params()
            .tolerance(1e-10)
            .solver(Solver::ConjugateGradient);
        let model = params.fit(&Device::cpu(), x.clone(), &y).expect("fits");
        let found = model.predict(&Device::cpu(), x).expect("predicts");
        let off = |(found, y): (&f32, &f32)| (found - y).abs();
        let most = found.iter().zip(&y).map(off).fold(0.0, f32::max);
        assert!(most < 1e-4, "{most} off, of {:?}", model.report());
    }
}
