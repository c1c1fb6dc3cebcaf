//! Limited-memory BFGS with a search for the weak Wolfe conditions.
//!
//! Source: J. Nocedal, "Updating quasi-Newton matrices with limited storage", Math. Comp. 35, 1980; the search
//! by bisection: A. Lewis, M. Overton, "Nonsmooth optimization via quasi-Newton methods", Math. Program. 141, 2013.

use std::collections::VecDeque;
use std::time::Instant;

use super::{Begin, Iteration, Limits, Objective, Point, Solved, Watch, noise, ratio};
use crate::device::Buffer;
use crate::learning::cg::Convergence;
use crate::matrix::Element;
use crate::ops::{Number, OpError, vector};

/// Pairs that are kept, as in scikit-learn's `lbfgs`.
const PAIRS: usize = 10;
/// Shares of the slope: of the decrease, and of what may remain.
const SUFFICIENT: f64 = 1e-4;
const CURVATURE: f64 = 0.9;
/// Evaluations of one search.
const TRIALS: usize = 40;

/// Minimises `objective` from where it begins.
pub(in crate::learning) fn minimise<T: Number>(
    objective: &mut dyn Objective<T>,
    begin: Begin<T>,
    limits: &Limits,
    watch: &mut Watch<'_, T>,
) -> Result<Solved<T>, OpError> {
    let mut lbfgs = Lbfgs::start(objective, begin)?;
    let convergence = lbfgs.run(objective, limits, watch)?;
    Ok(Solved {
        objective: lbfgs.point.value,
        gradient_ratio: ratio(lbfgs.point.norm, lbfgs.first_norm),
        theta: lbfgs.point.theta,
        n_iter: lbfgs.n_iter,
        convergence,
    })
}

/// s = θ' − θ and y = g' − g, with 1/(yᵀs).
struct Pair<T: Number> {
    s: Buffer<T>,
    y: Buffer<T>,
    inverse: f64,
}

struct Lbfgs<T: Number> {
    point: Point<T>,
    trial: Point<T>,
    direction: Buffer<T>,
    pairs: VecDeque<Pair<T>>,
    /// yᵀs / yᵀy of the last pair.
    scale: f64,
    first_norm: f64,
    n_iter: usize,
    begun: Instant,
}

impl<T: Number> Lbfgs<T> {
    fn start(objective: &mut dyn Objective<T>, begin: Begin<T>) -> Result<Self, OpError> {
        let begun = Instant::now();
        let device = objective.device().clone();
        let zeros = || device.zeros::<T>(begin.theta.len());
        let (direction, gradient, first) = (zeros()?, zeros()?, zeros()?);
        let (point, first_norm) = begin.point(objective)?;
        Ok(Lbfgs {
            first_norm,
            scale: ratio(1.0, point.norm),
            point,
            trial: Point {
                theta: first,
                gradient,
                value: 0.0,
                norm: 0.0,
            },
            direction,
            pairs: VecDeque::new(),
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
            self.turn()?;
            let trials = self.search(objective)?;
            let Some(trials) = trials else {
                if self.pairs.is_empty() {
                    return Ok(Convergence::PrecisionLimit);
                }
                // Steepest descent may go on where old curvature misleads.
                self.pairs.clear();
                self.scale = ratio(1.0, self.point.norm);
                continue;
            };
            self.n_iter += 1;
            self.remember()?;
            objective.accept();
            let iteration = Iteration {
                objective: self.point.value,
                gradient_ratio: ratio(self.point.norm, self.first_norm),
                inner: trials - 1,
                seconds: self.begun.elapsed().as_secs_f64(),
                validation: None,
            };
            watch(iteration, &self.point.theta);
        }
        Ok(if self.point.norm <= limits.tolerance * self.first_norm {
            Convergence::Converged
        } else {
            Convergence::IterationLimit
        })
    }

    /// direction = −B⁻¹·g by the two loops.
    fn turn(&mut self) -> Result<(), OpError> {
        let number = <T as Element>::from_f64;
        let one = number(1.0);
        vector::scaled_copy(number(-1.0), &self.point.gradient, &mut self.direction)?;
        let mut factors = Vec::with_capacity(self.pairs.len());
        for pair in self.pairs.iter().rev() {
            let a = pair.inverse * vector::dot(&pair.s, &self.direction)?;
            vector::axpby(number(-a), &pair.y, one, &mut self.direction)?;
            factors.push(a);
        }
        let unscaled = self.direction.try_clone()?;
        vector::scaled_copy(number(self.scale), &unscaled, &mut self.direction)?;
        for (pair, a) in self.pairs.iter().zip(factors.into_iter().rev()) {
            let b = pair.inverse * vector::dot(&pair.y, &self.direction)?;
            vector::axpby(number(a - b), &pair.s, one, &mut self.direction)?;
        }
        Ok(())
    }

    /// Leaves a point that satisfies the weak Wolfe conditions in `trial`, and says after how many evaluations.
    fn search(&mut self, objective: &mut dyn Objective<T>) -> Result<Option<usize>, OpError> {
        let slope = vector::dot(&self.point.gradient, &self.direction)?;
        if !(slope < 0.0 && slope.is_finite()) {
            return Ok(None);
        }
        let (mut low, mut high, mut t) = (0.0, f64::INFINITY, 1.0);
        let is_noise = -slope <= noise::<T>(self.point.value);
        for trial in 1..=TRIALS {
            let one = <T as Element>::from_f64(1.0);
            self.trial.theta.copy_from(&self.point.theta)?;
            let step = <T as Element>::from_f64(t);
            vector::axpby(step, &self.direction, one, &mut self.trial.theta)?;
            self.trial.evaluate(objective)?;
            if is_noise {
                let closer = self.trial.is_finite() && self.trial.norm < self.point.norm;
                return Ok(closer.then_some(trial));
            }
            let bound = self.point.value + SUFFICIENT * t * slope;
            if !(self.trial.is_finite() && self.trial.value <= bound) {
                high = t;
            } else if vector::dot(&self.trial.gradient, &self.direction)? < CURVATURE * slope {
                low = t;
            } else {
                return Ok(Some(trial));
            }
            t = if high.is_finite() {
                0.5 * (low + high)
            } else {
                2.0 * t
            };
        }
        Ok(None)
    }

    /// Moves to the trial and keeps the pair of differences.
    fn remember(&mut self) -> Result<(), OpError> {
        std::mem::swap(&mut self.point, &mut self.trial);
        let number = <T as Element>::from_f64;
        let (one, minus) = (number(1.0), number(-1.0));
        let mut s = self.point.theta.try_clone()?;
        vector::axpby(minus, &self.trial.theta, one, &mut s)?;
        let mut y = self.point.gradient.try_clone()?;
        vector::axpby(minus, &self.trial.gradient, one, &mut y)?;
        let (ys, yy) = (vector::dot(&y, &s)?, vector::dot(&y, &y)?);
        if ys > 0.0 && ys.is_finite() && yy > 0.0 {
            self.scale = ys / yy;
            let inverse = 1.0 / ys;
            self.pairs.push_back(Pair { s, y, inverse });
            if self.pairs.len() > PAIRS {
                self.pairs.pop_front();
            }
        }
        Ok(())
    }
}
