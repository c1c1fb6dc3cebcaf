//! Conjugate gradients on a quadratic objective: every iteration is one Hessian product.
//!
//! Where [`super::newton`] takes whole solves for its iterations, this counts, shows and limits their steps. A solve that
//! has ended by its own recurrence is judged by the gradient at its end, and goes on from there where that is still too
//! large. Source: Hestenes & Stiefel 1952, with a diagonal preconditioner.

use std::time::Instant;

use super::stops::{self, recorded};
use super::{Begin, Iteration, Limits, Objective, Point, Solved, Watch, method, ratio};
use crate::device::Buffer;
use crate::learning::cg::{self, Convergence};
use crate::learning::checkpoint::{Record, session};
use crate::learning::leg::{self, Leg, Pace};
use crate::matrix::Dtype;
use crate::ops::cg::{CgState, CgVectors, Stop};
use crate::ops::{Number, OpError};

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
    recorded(
        ("conjugate-gradient", objective),
        watch,
        |objective, found, watch| {
            let mut conjugate = Conjugate::start(objective, begin, inverse_diagonal, limits)?;
            let leg = match found {
                Some(found) => Some(conjugate.go_back(objective, found)?),
                None => None,
            };
            let convergence = conjugate.run(leg, objective, (limits, pace), watch)?;
            Ok(Solved {
                objective: conjugate.point.value,
                gradient_ratio: ratio(conjugate.point.norm, conjugate.first_norm),
                gradient_norm: conjugate.point.norm,
                theta: conjugate.point.theta,
                n_iter: conjugate.n_iter,
                convergence,
            })
        },
    )
}

struct Conjugate<T: Number> {
    /// Where the solve that is under way began.
    point: Point<T>,
    trial: Point<T>,
    vectors: CgVectors<T>,
    first_norm: f64,
    /// Before the solve that is under way.
    n_iter: usize,
    begun: Instant,
}

impl<T: Number> Conjugate<T> {
    fn start(
        objective: &mut dyn Objective<T>,
        begin: Begin<T>,
        inverse_diagonal: Buffer<T>,
        limits: &Limits,
    ) -> Result<Self, OpError> {
        let begun = Instant::now();
        let (point, cold) = begin.points(objective)?;
        let (device, stop) = (objective.device().clone(), Stop::at(limits.tolerance));
        let (gradient, spread) = (point.gradient.try_clone()?, objective.spread()?);
        let inverse = Some(inverse_diagonal);
        Ok(Conjugate {
            vectors: CgVectors::spread_over(spread, &device, gradient, inverse, None, stop)?,
            first_norm: cold.map_or(point.norm, |cold| cold.norm),
            trial: Point {
                theta: point.theta.try_clone()?,
                gradient: point.gradient.try_clone()?,
                ..point
            },
            point,
            n_iter: 0,
            begun,
        })
    }

    fn save(&self, leg: &Leg, to: &mut Record) -> Result<(), OpError> {
        self.point.save(to)?;
        let (n_iter, seconds) = (self.n_iter as f64, self.begun.elapsed().as_secs_f64());
        to.numbers("conjugate", &[self.first_norm, n_iter, seconds]);
        leg.save(&self.vectors, to)
    }

    fn go_back(&mut self, objective: &mut dyn Objective<T>, from: &Record) -> Result<Leg, OpError> {
        self.point.restore(from)?;
        let [first_norm, n_iter, seconds] = from.array("conjugate")?;
        (self.first_norm, self.n_iter) = (first_norm, n_iter as usize);
        self.begun = stops::begun(seconds);
        stops::stand(objective, &self.point.theta)?;
        Leg::restore(&mut self.vectors, from)
    }

    /// Goes on with a solve, if there is one under way.
    fn run(
        &mut self,
        mut leg: Option<Leg>,
        objective: &mut dyn Objective<T>,
        (limits, pace): (&Limits, Pace),
        watch: &mut Watch<'_, T>,
    ) -> Result<Convergence, OpError> {
        loop {
            let leg = match leg.take() {
                Some(leg) => leg,
                None => {
                    let norms = (self.point.norm, self.first_norm);
                    let is_finite = self.point.is_finite();
                    if let Some(end) = method::end(self.n_iter, is_finite, norms, limits) {
                        return Ok(end);
                    }
                    self.restart(limits)?
                }
            };
            let inner = self.inner((leg, pace), objective, watch)?;
            self.n_iter += inner.iterations;
            aim(&self.point, &self.vectors, &mut self.trial)?;
            self.trial.evaluate(objective)?;
            let wanted = limits.tolerance * self.first_norm;
            let end = judge(&self.point, &self.trial, &inner, wanted);
            let is_lower = self.trial.is_finite() && self.trial.value <= self.point.value;
            if end.is_none() || is_lower {
                std::mem::swap(&mut self.point, &mut self.trial);
                objective.accept();
            }
            if let Some(end) = end {
                return Ok(end);
            }
        }
    }

    fn restart(&mut self, limits: &Limits) -> Result<Leg, OpError> {
        let progress = ratio(self.point.norm, self.first_norm);
        let part = (limits.tolerance / progress).max(least_part::<T>(limits.tolerance));
        self.vectors.restart(&self.point.gradient, Stop::at(part))?;
        Ok(Leg::first(limits.max_iter - self.n_iter))
    }

    fn inner(
        &mut self,
        (mut leg, pace): (Leg, Pace),
        objective: &mut dyn Objective<T>,
        watch: &mut Watch<'_, T>,
    ) -> Result<CgState, OpError> {
        let mut product = |vectors: &mut CgVectors<T>| leg::iterate(objective, vectors);
        loop {
            let (point, trial) = (&self.point, &mut self.trial);
            let since = (self.first_norm, self.begun);
            let seen = |state: &CgState, vectors: &CgVectors<T>| {
                if pace == Pace::Lockstep {
                    aim(point, vectors, trial)?;
                }
                if state.iterations > 0 {
                    watch(shown(point, state, since), Some(&trial.theta));
                }
                Ok(())
            };
            let course = (&mut leg, pace);
            let ended = leg::run_leg(&mut self.vectors, course, &mut product, seen)?;
            if let Some(state) = ended {
                return Ok(state);
            }
            session::save(|record| self.save(&leg, record))?;
        }
    }
}

/// An iteration of a solve from `point`, by the solve's own recurrences.
fn shown<T: Number>(
    point: &Point<T>,
    state: &CgState,
    (first_norm, begun): (f64, Instant),
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
    trial.theta.copy_from(&point.theta)?;
    vectors.add_to(&mut trial.theta)
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
