//! Newton's method in a trust region, the steps from preconditioned conjugate gradients.
//!
//! Source: C.-J. Lin, R. Weng, S. Keerthi, "Trust region Newton method for logistic regression", JMLR 9, 2008
//! (LIBLINEAR's TRON), with its rules for the radius. The region is an ellipsoid in the norm of the
//! preconditioner. Where differences of the objective drown in rounding, the norm of the gradient decides.

use std::time::Instant;

use super::{Begin, Iteration, Limits, Objective, Point, Solved, Watch, noise, ratio};
use crate::device::{Buffer, Device};
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
    let begun = Instant::now();
    let (point, first_norm) = begin.point(objective)?;
    let device = objective.device().clone();
    let mut newton = Newton::new(&device, point, first_norm, inverse_diagonal, begun)?;
    let convergence = loop {
        if let Some(end) = newton.end(limits) {
            break end;
        }
        let inner = newton.inner(objective, limits)?;
        match newton.after_inner(&inner) {
            Next::Ends(convergence) => break convergence,
            Next::Again => continue,
            Next::Tries => {}
        }
        newton.aim()?;
        newton.trial.evaluate(objective)?;
        let step = newton.step(&inner);
        if let Step::Taken = step {
            objective.accept();
        }
        watch(newton.iteration(&inner), &newton.point.theta);
        if let Step::Exhausted = step {
            break Convergence::PrecisionLimit;
        }
    };
    Ok(newton.solved(convergence))
}

/// A solve without the objective: what happens between evaluations and products.
pub(super) struct Newton<T: Number> {
    pub(super) point: Point<T>,
    pub(super) trial: Point<T>,
    pub(super) vectors: CgVectors<T>,
    radius: f64,
    first_norm: f64,
    n_iter: usize,
    begun: Instant,
}

/// What follows an inner solve.
pub(super) enum Next {
    /// A step, to be evaluated.
    Tries,
    /// Another inner solve, in a region.
    Again,
    /// Nothing.
    Ends(Convergence),
}

/// What became of a step.
pub(super) enum Step {
    Taken,
    Refused,
    /// Nothing below the rounding of the objective is left to gain.
    Exhausted,
}

impl<T: Number> Newton<T> {
    /// From a point that has been evaluated.
    pub(super) fn new(
        device: &Device,
        point: Point<T>,
        first_norm: f64,
        inverse_diagonal: Buffer<T>,
        begun: Instant,
    ) -> Result<Self, OpError> {
        let trial = Point {
            theta: point.theta.try_clone()?,
            gradient: point.gradient.try_clone()?,
            value: 0.0,
            norm: 0.0,
        };
        let vectors = CgVectors::new(
            device,
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

    /// Whether, and how, it ends before another iteration.
    pub(super) fn end(&self, limits: &Limits) -> Option<Convergence> {
        if self.n_iter == 0 && !self.point.is_finite() {
            Some(Convergence::NotFinite)
        } else if self.point.norm <= limits.tolerance * self.first_norm {
            Some(Convergence::Converged)
        } else if self.n_iter >= limits.max_iter {
            Some(Convergence::IterationLimit)
        } else {
            None
        }
    }

    pub(super) fn solved(self, convergence: Convergence) -> Solved<T> {
        Solved {
            objective: self.point.value,
            gradient_ratio: ratio(self.point.norm, self.first_norm),
            theta: self.point.theta,
            n_iter: self.n_iter,
            convergence,
        }
    }

    /// What is told of the iteration that has ended.
    pub(super) fn iteration(&self, inner: &CgState) -> Iteration {
        Iteration {
            objective: self.point.value,
            gradient_ratio: ratio(self.point.norm, self.first_norm),
            inner: inner.iterations,
            seconds: self.begun.elapsed().as_secs_f64(),
            validation: None,
        }
    }

    /// Starts an inner solve of H·s = −g inside the region, of so many iterations at most.
    pub(super) fn restart(&mut self, limits: &Limits) -> Result<usize, OpError> {
        let progress = ratio(self.point.norm, self.first_norm);
        let tolerance = if limits.quadratic {
            (0.5 * limits.tolerance / progress).min(FORCING)
        } else {
            FORCING.min(progress.sqrt())
        };
        let radius = self.radius;
        let stop = Stop { tolerance, radius };
        self.vectors.restart(&self.point.gradient, stop)?;
        Ok((2 * self.point.theta.len()).clamp(FEW_INNER, MOST_INNER))
    }

    /// Solves H·s = −g inside the region.
    fn inner(
        &mut self,
        objective: &mut dyn Objective<T>,
        limits: &Limits,
    ) -> Result<CgState, OpError> {
        let most = self.restart(limits)?;
        let pace = Pace::of(objective);
        let product = |vectors: &mut CgVectors<T>| {
            let (p, q, state) = vectors.product();
            objective.hessian_vector(p, q, Some(state))?;
            vectors.advance()
        };
        cg::run(&mut self.vectors, most, pace, product, |_| {})
    }

    /// Whether there is a step to try. Counts the iteration if there is.
    pub(super) fn after_inner(&mut self, inner: &CgState) -> Next {
        if inner.iterations > 0 || inner.border {
            self.n_iter += 1;
            return Next::Tries;
        }
        match self.without_curvature(inner) {
            Some(convergence) => Next::Ends(convergence),
            None => Next::Again,
        }
    }

    /// The first direction has no positive curvature: with a region there is a step to its border.
    fn without_curvature(&mut self, inner: &CgState) -> Option<Convergence> {
        if !inner.residual_squared.is_finite() || !inner.curvature.is_finite() {
            return Some(Convergence::NotFinite);
        }
        if self.radius.is_finite() || inner.preconditioned_squared <= 0.0 {
            return Some(Convergence::PrecisionLimit);
        }
        // As a radius it would bring the same inner solve again, for ever.
        if !inner.preconditioned_squared.is_finite() {
            return Some(Convergence::NotFinite);
        }
        self.radius = inner.preconditioned_squared.sqrt();
        None
    }

    /// Puts the point that the inner solve found into the trial.
    pub(super) fn aim(&mut self) -> Result<(), OpError> {
        self.trial.theta.copy_from(&self.point.theta)?;
        let one = <T as Element>::from_f64(1.0);
        vector::axpby(one, &self.vectors.w, one, &mut self.trial.theta)
    }

    /// Takes the step to the evaluated trial or not, and sets the next radius.
    pub(super) fn step(&mut self, inner: &CgState) -> Step {
        let is_noise = inner.decrease <= noise::<T>(self.point.value);
        let taken = if is_noise {
            self.trial.is_finite() && self.trial.norm < self.point.norm
        } else {
            self.adapt(inner)
        };
        if taken {
            std::mem::swap(&mut self.point, &mut self.trial);
            return Step::Taken;
        }
        if is_noise {
            Step::Exhausted
        } else {
            Step::Refused
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn newton() -> Result<Newton<f64>, OpError> {
        let device = Device::cpu();
        let point = Point {
            theta: device.zeros(2)?,
            gradient: device.zeros(2)?,
            value: 1.0,
            norm: 1.0,
        };
        Newton::new(&device, point, 1.0, device.zeros(2)?, Instant::now())
    }

    #[test]
    fn a_region_without_a_radius_is_the_end() -> Result<(), OpError> {
        for squared in [f64::NAN, f64::INFINITY] {
            let inner = CgState {
                residual_squared: 1.0,
                preconditioned_squared: squared,
                stop: 0.0,
                iterations: 0,
                curvature: -1.0,
                norm: 0.0,
                slope: 0.0,
                decrease: 0.0,
                border: false,
            };
            let next = newton()?.after_inner(&inner);
            assert!(
                matches!(next, Next::Ends(Convergence::NotFinite)),
                "{squared}"
            );
        }
        Ok(())
    }
}
