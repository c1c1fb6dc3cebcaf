//! Newton's method in a trust region, the steps from preconditioned conjugate gradients.
//!
//! Source: C.-J. Lin, R. Weng, S. Keerthi, "Trust region Newton method for logistic regression", JMLR 9, 2008
//! (LIBLINEAR's TRON), with its rules for the radius. The region is an ellipsoid in the norm of the
//! preconditioner. Where differences of the objective drown in rounding, the norm of the gradient decides.

use std::time::Instant;

use super::{Begin, Iteration, Limits, Objective, Point, Solved, Watch, noise, ratio};
use crate::device::Buffer;
use crate::learning::cg::{self, Convergence, Pace};
use crate::matrix::Element;
use crate::ops::cg::{CgState, CgVectors, Stop};
use crate::ops::{Number, OpError, vector};

/// The largest relative residual at which an inner solve may stop.
const FORCING: f64 = 0.1;
/// Share of the predicted decrease above which a step is taken.
const ACCEPT: f64 = 1e-4;
/// Shares of the predicted decrease below which the region shrinks, and from which it may grow.
const POOR: f64 = 0.25;
const GOOD: f64 = 0.75;
/// Factors of the radius.
const SHRINK: f64 = 0.25;
const SHRINK_LESS: f64 = 0.5;
const GROW: f64 = 4.0;
/// Inner iterations: at least, and in all.
const FEW_INNER: usize = 20;
const MOST_INNER: usize = 2000;

/// Minimises `objective` from where it begins; `inverse_diagonal` approximates the inverse of the Hessian's diagonal and
/// holds coordinates where it is 0.
pub(in crate::learning) fn minimise<T: Number>(
    objective: &mut dyn Objective<T>,
    begin: Begin<T>,
    inverse_diagonal: Buffer<T>,
    limits: &Limits,
    watch: &mut Watch<'_, T>,
) -> Result<Solved<T>, OpError> {
    let mut newton = Newton::start(objective, begin, inverse_diagonal)?;
    let convergence = newton.run(objective, limits, watch)?;
    Ok(Solved {
        objective: newton.point.value,
        gradient_ratio: ratio(newton.point.norm, newton.first_norm),
        theta: newton.point.theta,
        n_iter: newton.n_iter,
        convergence,
    })
}

struct Newton<T: Number> {
    point: Point<T>,
    trial: Point<T>,
    vectors: CgVectors<T>,
    radius: f64,
    first_norm: f64,
    n_iter: usize,
    begun: Instant,
}

/// What became of a step.
enum Step {
    Taken,
    Refused,
    /// Nothing below the rounding of the objective is left to gain.
    Exhausted,
}

impl<T: Number> Newton<T> {
    fn start(
        objective: &mut dyn Objective<T>,
        begin: Begin<T>,
        inverse_diagonal: Buffer<T>,
    ) -> Result<Self, OpError> {
        let begun = Instant::now();
        let (point, first_norm) = begin.point(objective)?;
        let trial = Point {
            theta: point.theta.try_clone()?,
            gradient: point.gradient.try_clone()?,
            value: 0.0,
            norm: 0.0,
        };
        let vectors = CgVectors::new(
            objective.device(),
            point.gradient.try_clone()?,
            Some(inverse_diagonal),
            None,
            Stop::at(FORCING),
        )?;
        Ok(Newton {
            first_norm,
            point,
            trial,
            vectors,
            radius: f64::INFINITY,
            n_iter: 0,
            begun,
        })
    }

    fn run(
        &mut self,
        objective: &mut dyn Objective<T>,
        limits: &Limits,
        watch: &mut Watch<'_, T>,
    ) -> Result<Convergence, OpError> {
        if !self.point.is_finite() {
            return Ok(Convergence::NotFinite);
        }
        while self.n_iter < limits.max_iter {
            if self.point.norm <= limits.tolerance * self.first_norm {
                return Ok(Convergence::Converged);
            }
            let inner = self.inner(objective, limits)?;
            if inner.iterations == 0 && !inner.border {
                match self.without_curvature(&inner) {
                    Some(convergence) => return Ok(convergence),
                    None => continue,
                }
            }
            self.n_iter += 1;
            let step = self.step(objective, &inner)?;
            let iteration = Iteration {
                objective: self.point.value,
                gradient_ratio: ratio(self.point.norm, self.first_norm),
                inner: inner.iterations,
                seconds: self.begun.elapsed().as_secs_f64(),
                validation: None,
            };
            watch(iteration, &self.point.theta);
            if let Step::Exhausted = step {
                return Ok(Convergence::PrecisionLimit);
            }
        }
        Ok(if self.point.norm <= limits.tolerance * self.first_norm {
            Convergence::Converged
        } else {
            Convergence::IterationLimit
        })
    }

    /// Solves H·s = −g inside the region.
    fn inner(
        &mut self,
        objective: &mut dyn Objective<T>,
        limits: &Limits,
    ) -> Result<CgState, OpError> {
        let progress = ratio(self.point.norm, self.first_norm);
        let tolerance = if limits.quadratic {
            (0.5 * limits.tolerance / progress).min(FORCING)
        } else {
            FORCING.min(progress.sqrt())
        };
        let radius = self.radius;
        let stop = Stop { tolerance, radius };
        self.vectors.restart(&self.point.gradient, stop)?;
        let most = (2 * self.point.theta.len()).clamp(FEW_INNER, MOST_INNER);
        let pace = Pace::of(objective);
        let product = |vectors: &mut CgVectors<T>| {
            let (p, q, state) = vectors.product();
            objective.hessian_vector(p, q, Some(state))?;
            vectors.advance()
        };
        cg::run(&mut self.vectors, most, pace, product, |_| {})
    }

    /// The first direction has no positive curvature: with a region there is a step to its border.
    fn without_curvature(&mut self, inner: &CgState) -> Option<Convergence> {
        if !inner.residual_squared.is_finite() || !inner.curvature.is_finite() {
            return Some(Convergence::NotFinite);
        }
        if self.radius.is_finite() || inner.preconditioned_squared <= 0.0 {
            return Some(Convergence::PrecisionLimit);
        }
        self.radius = inner.preconditioned_squared.sqrt();
        None
    }

    /// Tries the step that the inner solve found, and sets the next radius.
    fn step(&mut self, objective: &mut dyn Objective<T>, inner: &CgState) -> Result<Step, OpError> {
        self.trial.theta.copy_from(&self.point.theta)?;
        let one = <T as Element>::from_f64(1.0);
        vector::axpby(one, &self.vectors.w, one, &mut self.trial.theta)?;
        self.trial.evaluate(objective)?;
        let is_noise = inner.decrease <= noise::<T>(self.point.value);
        let taken = if is_noise {
            self.trial.is_finite() && self.trial.norm < self.point.norm
        } else {
            self.adapt(inner)
        };
        if taken {
            objective.accept();
            std::mem::swap(&mut self.point, &mut self.trial);
            return Ok(Step::Taken);
        }
        Ok(if is_noise {
            Step::Exhausted
        } else {
            Step::Refused
        })
    }

    /// LIBLINEAR's rules for the radius; whether the step is taken.
    fn adapt(&mut self, inner: &CgState) -> bool {
        let change = self.trial.value - self.point.value;
        if !self.trial.is_finite() {
            self.radius = SHRINK * inner.norm;
            return false;
        }
        let gain = -change / inner.decrease;
        let excess = change - inner.slope;
        // The minimum along the step of the parabola through both values.
        let along = if excess <= 0.0 {
            GROW
        } else {
            (-0.5 * inner.slope / excess).max(SHRINK)
        };
        let reach = along * inner.norm;
        let radius = if self.radius.is_finite() {
            self.radius
        } else {
            inner.norm
        };
        self.radius = if gain < ACCEPT {
            reach.min(SHRINK_LESS * radius)
        } else if gain < POOR {
            (SHRINK * radius).max(reach.min(SHRINK_LESS * radius))
        } else if gain < GOOD {
            (SHRINK * radius).max(reach.min(GROW * radius))
        } else if inner.border {
            GROW * radius
        } else {
            radius.max(reach.min(GROW * radius))
        };
        gain > ACCEPT
    }
}
