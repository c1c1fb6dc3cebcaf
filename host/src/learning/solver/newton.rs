//! Newton's method in a trust region, the steps from preconditioned conjugate gradients.
//!
//! Source: C.-J. Lin, R. Weng, S. Keerthi, "Trust region Newton method for logistic regression", JMLR 9, 2008
//! (LIBLINEAR's TRON), with its rules for the radius. The region is an ellipsoid in the norm of the
//! preconditioner. Where differences of the objective drown in rounding, the norm of the gradient decides.

use std::time::Instant;

use super::method::{self, Method, Next, Step};
use super::{Begin, Iteration, Limits, Objective, Point, Solved, Watch, noise, ratio, stops};
use crate::device::{Buffer, Device};
use crate::learning::cg::Convergence;
use crate::learning::checkpoint::Record;
use crate::ops::cg::{CgState, CgVectors, Stop};
use crate::ops::{Number, OpError, Spread};

/// The largest relative residual at which an inner solve may stop.
const FORCING: f64 = 0.1;
/// Of the residual that the tolerance of the whole solve asks for, what an inner solve leaves at least.
const ENOUGH: f64 = 0.3;
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
    let newton = |objective: &mut dyn Objective<T>| {
        let (point, cold) = begin.points(objective)?;
        let device = objective.device().clone();
        let first_norm = cold.map_or(point.norm, |cold| cold.norm);
        let spread = objective.spread()?;
        Newton::new(
            (&device, spread),
            point,
            first_norm,
            inverse_diagonal,
            begun,
        )
    };
    method::minimise(("newton-cg", objective), newton, limits, watch)
}

/// A solve without the objective: what happens between evaluations and products.
pub(super) struct Newton<T: Number> {
    point: Point<T>,
    /// Its vectors are two of the inner solve's, from where it aims until the step is taken or not: own ones of 30 million
    /// columns would take 240 MB.
    trial: Point<T>,
    vectors: CgVectors<T>,
    radius: f64,
    first_norm: f64,
    n_iter: usize,
    begun: Instant,
}

impl<T: Number> Newton<T> {
    /// From a point that has been evaluated.
    pub(super) fn new(
        (device, spread): (&Device, Option<Spread>),
        point: Point<T>,
        first_norm: f64,
        inverse_diagonal: Buffer<T>,
        begun: Instant,
    ) -> Result<Self, OpError> {
        let trial = Point {
            theta: device.zeros(0)?,
            gradient: device.zeros(0)?,
            value: 0.0,
            norm: 0.0,
        };
        let vectors = CgVectors::spread_over(
            spread,
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

    /// The trial gets its vectors, or gives them back.
    fn trade(&mut self) {
        let Point {
            theta, gradient, ..
        } = &mut self.trial;
        self.vectors.lend(theta, gradient);
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

impl<T: Number> Method<T> for Newton<T> {
    fn end(&self, limits: &Limits) -> Option<Convergence> {
        let is_finite = self.point.is_finite();
        method::end(
            self.n_iter,
            is_finite,
            (self.point.norm, self.first_norm),
            limits,
        )
    }

    fn save(&self, to: &mut Record) -> Result<(), OpError> {
        self.point.save(to)?;
        let (n_iter, seconds) = (self.n_iter as f64, self.begun.elapsed().as_secs_f64());
        to.numbers("newton", &[self.radius, self.first_norm, n_iter, seconds]);
        Ok(())
    }

    fn restore(&mut self, from: &Record) -> Result<(), OpError> {
        self.point.restore(from)?;
        let [radius, first_norm, n_iter, seconds] = from.array("newton")?;
        (self.radius, self.first_norm) = (radius, first_norm);
        (self.n_iter, self.begun) = (n_iter as usize, stops::begun(seconds));
        Ok(())
    }

    fn solved(self: Box<Self>, convergence: Convergence) -> Solved<T> {
        Solved {
            objective: self.point.value,
            gradient_ratio: ratio(self.point.norm, self.first_norm),
            gradient_norm: self.point.norm,
            theta: self.point.theta,
            n_iter: self.n_iter,
            convergence,
        }
    }

    fn iteration(&self, inner: &CgState) -> Iteration {
        Iteration {
            objective: self.point.value,
            gradient_ratio: ratio(self.point.norm, self.first_norm),
            inner: inner.iterations,
            seconds: self.begun.elapsed().as_secs_f64(),
            validation: None,
        }
    }

    /// H·s = −g inside the region.
    fn restart(&mut self, limits: &Limits) -> Result<usize, OpError> {
        let progress = ratio(self.point.norm, self.first_norm);
        let tolerance = if limits.quadratic {
            (0.5 * limits.tolerance / progress).min(FORCING)
        } else {
            // No more than the tolerance asks for: the last step would spend as many products as all before.
            let enough = ENOUGH * limits.tolerance / progress;
            FORCING.min(progress.sqrt().max(enough))
        };
        let radius = self.radius;
        let stop = Stop { tolerance, radius };
        self.vectors.restart(&self.point.gradient, stop)?;
        Ok((2 * self.point.theta.len()).clamp(FEW_INNER, MOST_INNER))
    }

    fn vectors(&mut self) -> &mut CgVectors<T> {
        &mut self.vectors
    }

    fn after_inner(&mut self, inner: &CgState) -> Next {
        if inner.iterations > 0 || inner.border {
            self.n_iter += 1;
            return Next::Tries;
        }
        match self.without_curvature(inner) {
            Some(convergence) => Next::Ends(convergence),
            None => Next::Again,
        }
    }

    fn aim(&mut self) -> Result<(), OpError> {
        self.trade();
        self.trial.theta.copy_from(&self.point.theta)?;
        self.vectors.add_to(&mut self.trial.theta)
    }

    fn theta(&self) -> &Buffer<T> {
        &self.point.theta
    }

    fn trial(&mut self) -> &mut Point<T> {
        &mut self.trial
    }

    /// Takes the step or not, and sets the next radius.
    fn step(&mut self, inner: &CgState) -> Result<Step, OpError> {
        let is_noise = inner.decrease <= noise::<T>(self.point.value);
        let taken = if is_noise {
            self.trial.is_finite() && self.trial.norm < self.point.norm
        } else {
            self.adapt(inner)
        };
        if taken {
            std::mem::swap(&mut self.point, &mut self.trial);
        }
        self.trade();
        Ok(if taken {
            Step::Taken
        } else if is_noise {
            Step::Exhausted
        } else {
            Step::Refused
        })
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
        Newton::new(
            (&device, None),
            point,
            1.0,
            device.zeros(2)?,
            Instant::now(),
        )
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
