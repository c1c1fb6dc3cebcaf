//! Limited-memory BFGS with a search for the weak Wolfe conditions.
//!
//! The first scaling of each direction is D⁻¹, the inverse of the Hessian's diagonal at the start (of a GLM about that of the
//! whole Hessian's blocks), times what the newest pair says of it: yᵀs / yᵀD⁻¹y. Columns of very different sizes then take no
//! more iterations than equal ones. Coordinates whose D⁻¹ is 0 are held.
//!
//! Dot products stay on the device and become factors there: the host reads once per evaluation, value, norm and two
//! slopes together.
//!
//! Source: J. Nocedal, "Updating quasi-Newton matrices with limited storage", Math. Comp. 35, 1980; the search
//! by bisection: A. Lewis, M. Overton, "Nonsmooth optimization via quasi-Newton methods", Math. Program. 141, 2013; a diagonal
//! first scaling: J. Gilbert, C. Lemaréchal, "Some numerical experiments with variable-storage quasi-Newton algorithms",
//! Math. Program. 45, 1989.

use std::collections::VecDeque;
use std::time::Instant;

use super::stops::{self, recorded};
use super::{Along, Begin, Iteration, Limits, Objective, Point, Solved, Watch, noise, ratio};
use crate::device::Buffer;
use crate::learning::cg::Convergence;
use crate::learning::checkpoint::{Record, session};
use crate::matrix::Element;
use crate::ops::vector::{self, Dots, Factor};
use crate::ops::{Number, OpError, interrupt};

/// Pairs that are kept, as in scikit-learn's `lbfgs`.
const PAIRS: usize = 10;
/// Shares of the slope: of the decrease, and of what may remain.
const SUFFICIENT: f64 = 1e-4;
const CURVATURE: f64 = 0.9;
/// Evaluations of one search.
const TRIALS: usize = 40;

/// Where scalars lie on the device: for each pair yᵀs, sᵀd and yᵀd, then yᵀD⁻¹y of the newest.
mod slot {
    use super::PAIRS;

    pub(super) const YS: usize = 0;
    pub(super) const SD: usize = PAIRS;
    pub(super) const YD: usize = 2 * PAIRS;
    pub(super) const YY: usize = 3 * PAIRS;
    pub(super) const COUNT: usize = YY + 1;
}

/// Minimises `objective` from where it begins.
pub(in crate::learning) fn minimise<T: Number>(
    objective: &mut dyn Objective<T>,
    (begin, inverse_diagonal): (Begin<T>, Buffer<T>),
    limits: &Limits,
    watch: &mut Watch<'_, T>,
) -> Result<Solved<T>, OpError> {
    recorded(("lbfgs", objective), watch, |objective, found, watch| {
        let mut lbfgs = Lbfgs::start(objective, begin, inverse_diagonal)?;
        if let Some(found) = found {
            lbfgs.restore(found)?;
        }
        let convergence = lbfgs.run(objective, limits, watch)?;
        Ok(Solved {
            objective: lbfgs.point.value,
            gradient_ratio: ratio(lbfgs.point.norm, lbfgs.first_norm),
            gradient_norm: lbfgs.point.norm,
            theta: lbfgs.point.theta,
            n_iter: lbfgs.n_iter,
            convergence,
        })
    })
}

/// s = θ' − θ and y = g' − g, and which of the pairs' slots are theirs.
struct Pair<T: Number> {
    s: Buffer<T>,
    y: Buffer<T>,
    number: usize,
}

/// What a search found.
struct Found {
    trials: usize,
    /// (θ' − θ)ᵀ(g' − g).
    bend: f64,
}

struct Lbfgs<T: Number> {
    point: Point<T>,
    trial: Point<T>,
    direction: Buffer<T>,
    scaled: Buffer<T>,
    /// D⁻¹.
    inverse: Buffer<T>,
    pairs: VecDeque<Pair<T>>,
    /// The slots of the next pair.
    next: usize,
    figures: Buffer<f64>,
    dots: Dots,
    first_norm: f64,
    n_iter: usize,
    begun: Instant,
}

impl<T: Number> Lbfgs<T> {
    fn start(
        objective: &mut dyn Objective<T>,
        begin: Begin<T>,
        inverse: Buffer<T>,
    ) -> Result<Self, OpError> {
        let begun = Instant::now();
        let device = objective.device().clone();
        let zeros = || device.zeros::<T>(begin.theta.len());
        let (direction, scaled, gradient, first) = (zeros()?, zeros()?, zeros()?, zeros()?);
        let dots = Dots::new(&device, begin.theta.len())?;
        let (point, cold) = begin.points(objective)?;
        Ok(Lbfgs {
            first_norm: cold.map_or(point.norm, |cold| cold.norm),
            point,
            trial: Point {
                theta: first,
                gradient,
                value: 0.0,
                norm: 0.0,
            },
            direction,
            scaled,
            inverse,
            pairs: VecDeque::new(),
            next: 0,
            figures: device.zeros(slot::COUNT)?,
            dots,
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
            if session::is_due() {
                session::save(|record| self.save(record))?;
            }
            interrupt::proceed()?;
            self.turn()?;
            let Some(found) = self.search(objective)? else {
                if self.pairs.is_empty() {
                    return Ok(Convergence::PrecisionLimit);
                }
                // Steepest descent may go on where old curvature misleads.
                self.pairs.clear();
                continue;
            };
            self.n_iter += 1;
            self.remember(found.bend)?;
            objective.accept();
            let iteration = Iteration {
                objective: self.point.value,
                gradient_ratio: ratio(self.point.norm, self.first_norm),
                inner: found.trials - 1,
                seconds: self.begun.elapsed().as_secs_f64(),
                validation: None,
            };
            watch(iteration, Some(&self.point.theta));
        }
        Ok(if self.point.norm <= limits.tolerance * self.first_norm {
            Convergence::Converged
        } else {
            Convergence::IterationLimit
        })
    }

    fn save(&self, to: &mut Record) -> Result<(), OpError> {
        self.point.save(to)?;
        for (age, Pair { s, y, .. }) in self.pairs.iter().enumerate() {
            to.vector(&format!("s.{age}"), s)?;
            to.vector(&format!("y.{age}"), y)?;
        }
        let numbers: Vec<f64> = self.pairs.iter().map(|pair| pair.number as f64).collect();
        to.numbers("pairs", &numbers);
        to.vector("dots", &self.figures)?;
        let (next, n_iter) = (self.next as f64, self.n_iter as f64);
        let seconds = self.begun.elapsed().as_secs_f64();
        to.numbers("lbfgs", &[next, self.first_norm, n_iter, seconds]);
        Ok(())
    }

    fn restore(&mut self, from: &Record) -> Result<(), OpError> {
        self.point.restore(from)?;
        let device = self.direction.device();
        let vector = |name: &str| -> Result<Buffer<T>, OpError> {
            let mut vector = device.zeros(self.direction.len())?;
            from.restore(name, &mut vector)?;
            Ok(vector)
        };
        self.pairs.clear();
        for (age, number) in from.list_of("pairs")?.into_iter().enumerate() {
            self.pairs.push_back(Pair {
                s: vector(&format!("s.{age}"))?,
                y: vector(&format!("y.{age}"))?,
                number: number as usize,
            });
        }
        from.restore("dots", &mut self.figures)?;
        let [next, first_norm, n_iter, seconds] = from.array("lbfgs")?;
        (self.next, self.n_iter) = (next as usize, n_iter as usize);
        (self.first_norm, self.begun) = (first_norm, stops::begun(seconds));
        Ok(())
    }

    /// direction = −B⁻¹·g by the two loops.
    fn turn(&mut self) -> Result<(), OpError> {
        let (gradient, d) = (&self.point.gradient, &mut self.direction);
        let (figures, dots) = (&mut self.figures, &mut self.dots);
        vector::scaled_copy(<T as Element>::from_f64(-1.0), gradient, d)?;
        for Pair { s, y, number } in self.pairs.iter().rev() {
            let (sd, ys) = (slot::SD + number, slot::YS + number);
            dots.dot(s, d, figures, sd)?;
            let factor = Factor {
                of: [-1.0, 0.0],
                slots: [sd, sd, ys],
            };
            vector::steer(figures, factor, y, d)?;
        }
        match self.pairs.back() {
            Some(newest) => {
                let ys = slot::YS + newest.number;
                let factor = Factor {
                    of: [1.0, 0.0],
                    slots: [ys, ys, slot::YY],
                };
                vector::multiply(&self.inverse, d, &mut self.scaled)?;
                d.fill_zero()?;
                vector::steer(figures, factor, &self.scaled, d)?;
            }
            None => {
                vector::multiply(&self.inverse, d, &mut self.scaled)?;
                std::mem::swap(d, &mut self.scaled);
            }
        }
        for Pair { s, y, number } in &self.pairs {
            let (sd, yd, ys) = (slot::SD + number, slot::YD + number, slot::YS + number);
            dots.dot(y, d, figures, yd)?;
            let factor = Factor {
                of: [1.0, -1.0],
                slots: [sd, yd, ys],
            };
            vector::steer(figures, factor, s, d)?;
        }
        Ok(())
    }

    /// Evaluates the trial; the slopes at the point and there.
    fn try_step(
        &mut self,
        objective: &mut dyn Objective<T>,
        step: f64,
    ) -> Result<[f64; 2], OpError> {
        let one = <T as Element>::from_f64(1.0);
        self.trial.theta.copy_from(&self.point.theta)?;
        let step = <T as Element>::from_f64(step);
        vector::axpby(step, &self.direction, one, &mut self.trial.theta)?;
        let along = Along {
            direction: &self.direction,
            gradient: &self.point.gradient,
        };
        let Point {
            theta, gradient, ..
        } = &mut self.trial;
        let (found, slopes) = objective.evaluate_along(theta, gradient, along)?;
        (self.trial.value, self.trial.norm) = (found.value, found.gradient_norm);
        Ok(slopes)
    }

    /// Leaves a point that satisfies the weak Wolfe conditions in `trial`, and says after how many evaluations.
    fn search(&mut self, objective: &mut dyn Objective<T>) -> Result<Option<Found>, OpError> {
        let (mut low, mut high, mut t) = (0.0, f64::INFINITY, 1.0);
        for trials in 1..=TRIALS {
            let [slope, trial_slope] = self.try_step(objective, t)?;
            if !(slope < 0.0 && slope.is_finite()) {
                return Ok(None);
            }
            let found = Found {
                trials,
                bend: t * (trial_slope - slope),
            };
            if -slope <= noise::<T>(self.point.value) {
                let closer = self.trial.is_finite() && self.trial.norm < self.point.norm;
                return Ok(closer.then_some(found));
            }
            let bound = self.point.value + SUFFICIENT * t * slope;
            if !(self.trial.is_finite() && self.trial.value <= bound) {
                high = t;
            } else if trial_slope < CURVATURE * slope {
                low = t;
            } else {
                return Ok(Some(found));
            }
            t = if high.is_finite() {
                0.5 * (low + high)
            } else {
                2.0 * t
            };
        }
        Ok(None)
    }

    /// Moves to the trial, and keeps the pair of differences where the function bends up between the points.
    fn remember(&mut self, bend: f64) -> Result<(), OpError> {
        std::mem::swap(&mut self.point, &mut self.trial);
        if !(bend > 0.0 && bend.is_finite()) {
            return Ok(());
        }
        let one = <T as Element>::from_f64(1.0);
        let minus = <T as Element>::from_f64(-1.0);
        let mut s = self.point.theta.try_clone()?;
        vector::axpby(minus, &self.trial.theta, one, &mut s)?;
        let mut y = self.point.gradient.try_clone()?;
        vector::axpby(minus, &self.trial.gradient, one, &mut y)?;
        let (number, figures) = (self.next, &mut self.figures);
        self.dots.dot(&y, &s, figures, slot::YS + number)?;
        vector::multiply(&self.inverse, &y, &mut self.scaled)?;
        self.dots.dot(&y, &self.scaled, figures, slot::YY)?;
        if self.pairs.len() == PAIRS {
            self.pairs.pop_front();
        }
        self.pairs.push_back(Pair { s, y, number });
        self.next = (number + 1) % PAIRS;
        Ok(())
    }
}
