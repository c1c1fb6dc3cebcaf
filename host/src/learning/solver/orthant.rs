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

use super::{Begin, Iteration, Limits, Objective, Solved, Watch, noise, ratio};
use crate::device::{Buffer, Device};
use crate::learning::cg::{self, Convergence, Pace};
use crate::matrix::Element;
use crate::ops::cg::{CgVectors, Stop};
use crate::ops::orthant::{OrthantVectors, Subgradient};
use crate::ops::{Number, OpError};

/// The largest relative residual at which an inner solve may stop.
const FORCING: f64 = 0.1;
/// Inner iterations: at least, and in all.
const FEW_INNER: usize = 20;
const MOST_INNER: usize = 1000;
/// Share of the decrease along the subgradient that a step must bring.
const SUFFICIENT: f64 = 1e-4;
/// Halvings of a step before it is given up.
const HALVINGS: usize = 40;

/// Minimises `objective(θ) + Σ l1ⱼ·|θⱼ|` from where it begins.
pub(in crate::learning) fn minimise<T: Number>(
    objective: &mut dyn Objective<T>,
    begin: Begin<T>,
    penalty: Penalty,
    limits: &Limits,
    watch: &mut Watch<'_, T>,
) -> Result<Solved<T>, OpError> {
    let mut orthant = Orthant::start(objective, begin, penalty)?;
    let convergence = orthant.run(objective, limits, watch)?;
    Ok(Solved {
        objective: orthant.at.value,
        gradient_ratio: ratio(orthant.at.norm, orthant.first_norm),
        theta: orthant.at.theta,
        n_iter: orthant.n_iter,
        convergence,
    })
}

/// The l1 weights, and the inverse diagonal that scales directions.
pub(in crate::learning) struct Penalty {
    /// κ.
    pub(in crate::learning) l1: f64,
    /// The first coordinates, which κ belongs to.
    pub(in crate::learning) penalised: usize,
    /// D⁻¹ per coordinate, 0 for coordinates to be held.
    pub(in crate::learning) inverse_diagonal: Vec<f64>,
}

/// A point with the least subgradient of the whole objective.
struct At<T: Number> {
    theta: Buffer<T>,
    /// f + Σ κ·|θ|.
    value: f64,
    /// v.
    subgradient: Subgradient<T>,
    /// ‖v‖.
    norm: f64,
}

struct Orthant<T: Number> {
    at: At<T>,
    trial: At<T>,
    penalty: OrthantVectors<T>,
    vectors: CgVectors<T>,
    gradient: Buffer<T>,
    first_norm: f64,
    n_iter: usize,
    begun: Instant,
}

/// What a search follows.
#[derive(Clone, Copy)]
enum Along {
    /// The direction that the inner solve found.
    Newton,
    /// −D⁻¹·v, which descends whatever the curvature.
    Descent,
}

impl<T: Number> At<T> {
    fn new(device: &Device, theta: Buffer<T>) -> Result<Self, OpError> {
        let len = theta.len();
        Ok(At {
            theta,
            value: 0.0,
            subgradient: Subgradient::new(device, len)?,
            norm: 0.0,
        })
    }

    /// Value and subgradient at θ.
    fn evaluate(
        &mut self,
        objective: &mut dyn Objective<T>,
        penalty: &mut OrthantVectors<T>,
        gradient: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        let smooth = objective.evaluate(&self.theta, gradient)?.value;
        penalty.subgradient(&self.theta, gradient, &mut self.subgradient)?;
        let [absolute, square] = penalty.figures()?;
        (self.value, self.norm) = (smooth + absolute, square.sqrt());
        Ok(())
    }
}

impl<T: Number> Orthant<T> {
    fn start(
        objective: &mut dyn Objective<T>,
        Begin { theta, cold }: Begin<T>,
        penalty: Penalty,
    ) -> Result<Self, OpError> {
        let begun = Instant::now();
        let device = objective.device().clone();
        let len = theta.len();
        let inverse: Vec<T> = penalty
            .inverse_diagonal
            .iter()
            .map(|d| <T as Element>::from_f64(*d))
            .collect();
        let inverse = device.upload(&inverse)?;
        let vectors = CgVectors::new(&device, device.zeros(len)?, None, None, Stop::at(FORCING))?;
        let mut orthant = Orthant {
            at: At::new(&device, theta)?,
            trial: At::new(&device, device.zeros(len)?)?,
            penalty: OrthantVectors::new(inverse, (penalty.l1, penalty.penalised))?,
            vectors,
            gradient: device.zeros(len)?,
            first_norm: 0.0,
            n_iter: 0,
            begun,
        };
        let Orthant {
            at,
            trial,
            penalty,
            gradient,
            ..
        } = &mut orthant;
        let is_warm = cold.is_some();
        if let Some(cold) = cold {
            trial.theta = cold;
            trial.evaluate(objective, penalty, gradient)?;
        }
        at.evaluate(objective, penalty, gradient)?;
        objective.accept();
        orthant.first_norm = if is_warm { trial.norm } else { at.norm };
        Ok(orthant)
    }

    fn run(
        &mut self,
        objective: &mut dyn Objective<T>,
        limits: &Limits,
        watch: &mut Watch<'_, T>,
    ) -> Result<Convergence, OpError> {
        if !(self.at.value.is_finite() && self.at.norm.is_finite()) {
            return Ok(Convergence::NotFinite);
        }
        while self.n_iter < limits.max_iter {
            if self.at.norm <= limits.tolerance * self.first_norm {
                return Ok(Convergence::Converged);
            }
            let inner = self.newton_direction(objective)?;
            self.n_iter += 1;
            let moved =
                self.search(objective, Along::Newton)? || self.search(objective, Along::Descent)?;
            let iteration = Iteration {
                objective: self.at.value,
                gradient_ratio: ratio(self.at.norm, self.first_norm),
                inner,
                seconds: self.begun.elapsed().as_secs_f64(),
                validation: None,
            };
            watch(iteration, &self.at.theta);
            if !moved {
                return Ok(Convergence::PrecisionLimit);
            }
        }
        Ok(if self.at.norm <= limits.tolerance * self.first_norm {
            Convergence::Converged
        } else {
            Convergence::IterationLimit
        })
    }

    /// Leaves d with H·d = −v on the free coordinates, 0 elsewhere, as the solution of the inner solve; the iterations
    /// that it took.
    fn newton_direction(&mut self, objective: &mut dyn Objective<T>) -> Result<usize, OpError> {
        let Subgradient { vector, free } = &self.at.subgradient;
        self.vectors.precondition(Some(free.try_clone()?));
        let tolerance = FORCING.min(ratio(self.at.norm, self.first_norm).sqrt());
        self.vectors.restart(vector, Stop::at(tolerance))?;
        let most = (2 * self.at.theta.len()).clamp(FEW_INNER, MOST_INNER);
        let pace = Pace::of(objective);
        let product = |vectors: &mut CgVectors<T>| {
            let (p, q, state) = vectors.product();
            objective.hessian_vector(p, q, Some(state))?;
            vectors.advance()
        };
        let state = cg::run(&mut self.vectors, most, pace, product, |_| {})?;
        Ok(state.iterations)
    }

    /// Halves t from 1 until the objective has decreased enough; whether a step was taken.
    fn search(&mut self, objective: &mut dyn Objective<T>, along: Along) -> Result<bool, OpError> {
        let mut t = 1.0;
        for _ in 0..HALVINGS {
            let direction = match along {
                Along::Newton => Some(&self.vectors.w),
                Along::Descent => None,
            };
            let (at, trial) = (&self.at, &mut self.trial);
            let v = &at.subgradient.vector;
            let slope = self
                .penalty
                .project(&at.theta, v, (direction, t), &mut trial.theta)?;
            trial.evaluate(objective, &mut self.penalty, &mut self.gradient)?;
            let enough = trial.value <= at.value + SUFFICIENT * slope && slope < 0.0;
            // Below rounding only the subgradient tells progress.
            let is_noise = slope.abs() <= noise::<T>(at.value);
            let closer = trial.value.is_finite() && trial.norm < at.norm;
            if if is_noise { closer } else { enough } {
                objective.accept();
                std::mem::swap(&mut self.at, &mut self.trial);
                return Ok(true);
            }
            if is_noise {
                return Ok(false);
            }
            t *= 0.5;
        }
        Ok(false)
    }
}
