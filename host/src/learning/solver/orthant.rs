//! Newton's method for `f(θ) + Σ κⱼ·|θⱼ|`, one orthant at a time.
//!
//! At θ the coordinates that are 0 and whose gradient does not exceed κ are held. For the others, in the orthant
//! that θ and the least subgradient v point to, the sum is smooth: conjugate gradients solve H·d = −v on them
//! with H of f, and a line search projects θ + t·d onto the orthant. Once the orthant is that of the solution,
//! steps are Newton's.
//!
//! Source: G. Andrew, J. Gao, "Scalable training of L1-regularized log-linear models", ICML 2007 (orthants, least
//! subgradient, projected search); R. Byrd, G. Chin, J. Nocedal, F. Oztoprak, "A family of second-order methods
//! for convex ℓ1-regularized optimization", Math. Program. 159, 2016 (Newton-CG on the free coordinates); the
//! zero coordinates follow −D⁻¹v where Newton's direction leaves the orthant, as in M. Schmidt's thesis, 2010.

use std::time::Instant;

use super::method::{self, Method, Next, Step};
use super::{Begin, Iteration, Limits, Objective, Point, Solved, Watch, noise, ratio, stops};
use crate::device::{Buffer, Device};
use crate::learning::cg::Convergence;
use crate::learning::checkpoint::Record;
use crate::ops::cg::{CgState, CgVectors, Stop};
use crate::ops::orthant::{OrthantVectors, Subgradient};
use crate::ops::{Number, OpError};

/// The largest relative residual at which an inner solve may stop.
const FORCING: f64 = 0.1;
/// Inner iterations: at least, and in all.
const FEW_INNER: usize = 20;
const MOST_INNER: usize = 1000;
/// Share of the decrease along the subgradient that a step must bring.
const SUFFICIENT: f64 = 1e-4;
/// Steps of one search, each half as long as the one before.
const TRIALS: usize = 40;

/// κ, and how many of the first coordinates it belongs to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::learning) struct L1 {
    /// κ.
    pub(in crate::learning) weight: f64,
    /// Coordinates.
    pub(in crate::learning) penalised: usize,
}

/// Minimises `objective(θ) + Σ κ·|θⱼ|` from where it begins; `inverse_diagonal` scales directions, and holds coordinates
/// where it is 0.
pub(in crate::learning) fn minimise<T: Number>(
    objective: &mut dyn Objective<T>,
    begin: Begin<T>,
    (inverse_diagonal, l1): (Buffer<T>, L1),
    limits: &Limits,
    watch: &mut Watch<'_, T>,
) -> Result<Solved<T>, OpError> {
    let begun = Instant::now();
    let orthant = |objective: &mut dyn Objective<T>| {
        let points = begin.points(objective)?;
        let device = objective.device().clone();
        Orthant::new(&device, points, (inverse_diagonal, l1), begun)
    };
    method::minimise(("orthant", objective), orthant, limits, watch)
}

/// Figures of the whole objective at a point, with its least subgradient.
struct Figures<T: Number> {
    /// f + Σ κ·|θ|.
    value: f64,
    /// v.
    subgradient: Subgradient<T>,
    /// ‖v‖.
    norm: f64,
}

impl<T: Number> Figures<T> {
    /// At a point where f has been evaluated.
    fn find(&mut self, point: &Point<T>, penalty: &mut OrthantVectors<T>) -> Result<(), OpError> {
        penalty.subgradient(&point.theta, &point.gradient, &mut self.subgradient)?;
        let [absolute, square] = penalty.figures()?;
        (self.value, self.norm) = (point.value + absolute, square.sqrt());
        Ok(())
    }

    fn unknown(device: &Device, len: usize) -> Result<Self, OpError> {
        Ok(Figures {
            value: 0.0,
            subgradient: Subgradient::new(device, len)?,
            norm: 0.0,
        })
    }
}

/// What a search follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Along {
    /// The direction that the inner solve found.
    Newton,
    /// −D⁻¹·v, which descends whatever the curvature.
    Descent,
}

/// A step on its way.
#[derive(Clone, Copy)]
struct Search {
    along: Along,
    /// Its length.
    t: f64,
    trials: usize,
    /// v·(θ' − θ) of the point that is tried.
    slope: f64,
}

impl Search {
    fn new(along: Along) -> Search {
        Search {
            along,
            t: 1.0,
            trials: 0,
            slope: 0.0,
        }
    }
}

/// A solve without the objective.
pub(super) struct Orthant<T: Number> {
    theta: Buffer<T>,
    at: Figures<T>,
    /// What is tried, with value and gradient of f alone.
    trial: Point<T>,
    found: Figures<T>,
    search: Search,
    penalty: OrthantVectors<T>,
    vectors: CgVectors<T>,
    first_norm: f64,
    n_iter: usize,
    begun: Instant,
}

impl<T: Number> Orthant<T> {
    /// From a point where f has been evaluated; tolerances are relative to the norm at the cold one, if there is any.
    pub(super) fn new(
        device: &Device,
        (point, cold): (Point<T>, Option<Point<T>>),
        (inverse_diagonal, l1): (Buffer<T>, L1),
        begun: Instant,
    ) -> Result<Self, OpError> {
        let len = point.theta.len();
        let mut penalty = OrthantVectors::new(inverse_diagonal, (l1.weight, l1.penalised))?;
        let mut at = Figures::unknown(device, len)?;
        let mut found = Figures::unknown(device, len)?;
        at.find(&point, &mut penalty)?;
        let mut first_norm = at.norm;
        if let Some(cold) = cold {
            found.find(&cold, &mut penalty)?;
            first_norm = found.norm;
        }
        Ok(Orthant {
            theta: point.theta.try_clone()?,
            at,
            trial: point,
            found,
            search: Search::new(Along::Newton),
            penalty,
            vectors: CgVectors::new(device, device.zeros(len)?, None, None, Stop::at(FORCING))?,
            first_norm,
            n_iter: 0,
            begun,
        })
    }

    /// Whether the objective has decreased enough; below rounding only the subgradient tells progress.
    fn is_progress(&self, is_noise: bool) -> bool {
        if is_noise {
            return self.found.value.is_finite() && self.found.norm < self.at.norm;
        }
        let slope = self.search.slope;
        self.found.value <= self.at.value + SUFFICIENT * slope && slope < 0.0
    }
}

impl<T: Number> Method<T> for Orthant<T> {
    fn end(&self, limits: &Limits) -> Option<Convergence> {
        let is_finite = self.at.value.is_finite() && self.at.norm.is_finite();
        method::end(
            self.n_iter,
            is_finite,
            (self.at.norm, self.first_norm),
            limits,
        )
    }

    /// H·d = −v on the free coordinates, 0 elsewhere.
    fn restart(&mut self, _limits: &Limits) -> Result<usize, OpError> {
        let Subgradient { vector, free } = &self.at.subgradient;
        self.vectors.precondition(Some(free.try_clone()?));
        let tolerance = FORCING.min(ratio(self.at.norm, self.first_norm).sqrt());
        self.vectors.restart(vector, Stop::at(tolerance))?;
        Ok((2 * self.theta.len()).clamp(FEW_INNER, MOST_INNER))
    }

    fn vectors(&mut self) -> &mut CgVectors<T> {
        &mut self.vectors
    }

    /// There is always one: the subgradient points somewhere even where the inner solve found nothing.
    fn after_inner(&mut self, _inner: &CgState) -> Next {
        self.n_iter += 1;
        self.search = Search::new(Along::Newton);
        Next::Tries
    }

    fn aim(&mut self) -> Result<(), OpError> {
        let direction = match self.search.along {
            Along::Newton => Some(&self.vectors.w),
            Along::Descent => None,
        };
        let v = &self.at.subgradient.vector;
        let step = (direction, self.search.t);
        self.search.slope = self
            .penalty
            .project(&self.theta, v, step, &mut self.trial.theta)?;
        Ok(())
    }

    fn theta(&self) -> &Buffer<T> {
        &self.theta
    }

    fn trial(&mut self) -> &mut Point<T> {
        &mut self.trial
    }

    fn step(&mut self, _inner: &CgState) -> Result<Step, OpError> {
        self.found.find(&self.trial, &mut self.penalty)?;
        let is_noise = self.search.slope.abs() <= noise::<T>(self.at.value);
        if self.is_progress(is_noise) {
            std::mem::swap(&mut self.theta, &mut self.trial.theta);
            std::mem::swap(&mut self.at, &mut self.found);
            return Ok(Step::Taken);
        }
        self.search.t *= 0.5;
        self.search.trials += 1;
        if !is_noise && self.search.trials < TRIALS {
            return Ok(Step::Further);
        }
        if self.search.along == Along::Descent {
            return Ok(Step::Exhausted);
        }
        self.search = Search::new(Along::Descent);
        Ok(Step::Further)
    }

    fn iteration(&self, inner: &CgState) -> Iteration {
        Iteration {
            objective: self.at.value,
            gradient_ratio: ratio(self.at.norm, self.first_norm),
            inner: inner.iterations,
            seconds: self.begun.elapsed().as_secs_f64(),
            validation: None,
        }
    }

    fn save(&self, to: &mut Record) -> Result<(), OpError> {
        to.vector("theta", &self.theta)?;
        let Subgradient { vector, free } = &self.at.subgradient;
        to.vector("subgradient", vector)?;
        to.vector("free", free)?;
        let (n_iter, seconds) = (self.n_iter as f64, self.begun.elapsed().as_secs_f64());
        let Figures { value, norm, .. } = self.at;
        to.numbers("orthant", &[value, norm, self.first_norm, n_iter, seconds]);
        Ok(())
    }

    fn restore(&mut self, from: &Record) -> Result<(), OpError> {
        from.restore("theta", &mut self.theta)?;
        let Subgradient { vector, free } = &mut self.at.subgradient;
        from.restore("subgradient", vector)?;
        from.restore("free", free)?;
        self.vectors.precondition(Some(free.try_clone()?));
        let [value, norm, first_norm, n_iter, seconds] = from.array("orthant")?;
        (self.at.value, self.at.norm, self.first_norm) = (value, norm, first_norm);
        (self.n_iter, self.begun) = (n_iter as usize, stops::begun(seconds));
        Ok(())
    }

    fn solved(self: Box<Self>, convergence: Convergence) -> Solved<T> {
        Solved {
            objective: self.at.value,
            gradient_ratio: ratio(self.at.norm, self.first_norm),
            gradient_norm: self.at.norm,
            theta: self.theta,
            n_iter: self.n_iter,
            convergence,
        }
    }
}
