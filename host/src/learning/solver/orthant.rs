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

use super::{Iteration, Limits, Objective, Solved, noise, ratio};
use crate::device::Buffer;
use crate::learning::cg::{self, Convergence, Pace};
use crate::matrix::Element;
use crate::ops::cg::{CgVectors, Stop};
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

/// Minimises `objective(θ) + Σ l1ⱼ·|θⱼ|` from `theta`.
pub(in crate::learning) fn minimise<T: Number>(
    objective: &mut dyn Objective<T>,
    theta: Buffer<T>,
    penalty: Penalty,
    limits: &Limits,
    watch: &mut dyn FnMut(Iteration),
) -> Result<Solved<T>, OpError> {
    let mut orthant = Orthant::start(objective, &theta, penalty)?;
    let convergence = orthant.run(objective, limits, watch)?;
    Ok(Solved {
        theta: objective.device().upload(&orthant.at.theta)?,
        objective: orthant.at.value,
        gradient_ratio: ratio(orthant.at.norm, orthant.first_norm),
        n_iter: orthant.n_iter,
        convergence,
    })
}

/// The l1 weights, and the inverse diagonal that scales directions.
pub(in crate::learning) struct Penalty {
    /// κ per coordinate.
    pub(in crate::learning) l1: Vec<f64>,
    /// D⁻¹ per coordinate, 0 for coordinates to be held.
    pub(in crate::learning) inverse_diagonal: Vec<f64>,
}

/// A point with the least subgradient of the whole objective.
struct At<T> {
    theta: Vec<T>,
    /// f + Σ κ·|θ|.
    value: f64,
    /// v.
    subgradient: Vec<f64>,
    /// ‖v‖.
    norm: f64,
}

struct Orthant<T: Number> {
    at: At<T>,
    penalty: Penalty,
    vectors: CgVectors<T>,
    theta: Buffer<T>,
    gradient: Buffer<T>,
    first_norm: f64,
    n_iter: usize,
    begun: Instant,
}

impl<T: Number> Orthant<T> {
    fn start(
        objective: &mut dyn Objective<T>,
        theta: &Buffer<T>,
        penalty: Penalty,
    ) -> Result<Self, OpError> {
        let begun = Instant::now();
        let device = objective.device().clone();
        let zeros = || device.zeros::<T>(theta.len());
        let mut orthant = Orthant {
            at: At {
                theta: Vec::new(),
                value: 0.0,
                subgradient: Vec::new(),
                norm: 0.0,
            },
            penalty,
            vectors: CgVectors::new(&device, zeros()?, None, None, Stop::at(FORCING))?,
            theta: zeros()?,
            gradient: zeros()?,
            first_norm: 0.0,
            n_iter: 0,
            begun,
        };
        orthant.at = orthant.evaluate(objective, theta.to_vec()?)?;
        orthant.first_norm = orthant.at.norm;
        objective.accept();
        Ok(orthant)
    }

    fn evaluate(
        &mut self,
        objective: &mut dyn Objective<T>,
        theta: Vec<T>,
    ) -> Result<At<T>, OpError> {
        self.theta.copy_from_slice(&theta)?;
        let smooth = objective.evaluate(&self.theta, &mut self.gradient)?.value;
        let gradient = self.gradient.to_vec()?;
        let l1 = &self.penalty.l1;
        let absolute: f64 = theta
            .iter()
            .zip(l1)
            .map(|(x, l1)| l1 * Element::to_f64(*x).abs())
            .sum();
        let coordinates = theta.iter().zip(&gradient).zip(l1);
        let subgradient: Vec<f64> = coordinates
            .map(|((x, g), l1)| least(Element::to_f64(*x), Element::to_f64(*g), *l1))
            .collect();
        let norm = subgradient.iter().map(|v| v * v).sum::<f64>().sqrt();
        Ok(At {
            theta,
            value: smooth + absolute,
            subgradient,
            norm,
        })
    }

    fn run(
        &mut self,
        objective: &mut dyn Objective<T>,
        limits: &Limits,
        watch: &mut dyn FnMut(Iteration),
    ) -> Result<Convergence, OpError> {
        if !(self.at.value.is_finite() && self.at.norm.is_finite()) {
            return Ok(Convergence::NotFinite);
        }
        while self.n_iter < limits.max_iter {
            if self.at.norm <= limits.tolerance * self.first_norm {
                return Ok(Convergence::Converged);
            }
            let (direction, inner) = self.newton_direction(objective)?;
            self.n_iter += 1;
            let moved = self.search(objective, &direction)?
                || self.search(objective, &self.scaled_descent())?;
            watch(Iteration {
                objective: self.at.value,
                gradient_ratio: ratio(self.at.norm, self.first_norm),
                inner,
                seconds: self.begun.elapsed().as_secs_f64(),
            });
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

    /// d with H·d = −v on the free coordinates, 0 elsewhere, and the iterations that it took.
    fn newton_direction(
        &mut self,
        objective: &mut dyn Objective<T>,
    ) -> Result<(Vec<f64>, usize), OpError> {
        let at = &self.at;
        let free = |i: usize| at.theta[i] != T::default() || at.subgradient[i] != 0.0;
        let scales = self.penalty.inverse_diagonal.iter().enumerate();
        let held: Vec<T> = scales
            .map(|(i, d)| <T as Element>::from_f64(if free(i) { *d } else { 0.0 }))
            .collect();
        let residual: Vec<T> = at
            .subgradient
            .iter()
            .map(|v| <T as Element>::from_f64(*v))
            .collect();
        let device = objective.device().clone();
        self.vectors.precondition(Some(device.upload(&held)?));
        self.gradient.copy_from_slice(&residual)?;
        let tolerance = FORCING.min(ratio(at.norm, self.first_norm).sqrt());
        self.vectors.restart(&self.gradient, Stop::at(tolerance))?;
        let most = (2 * at.theta.len()).clamp(FEW_INNER, MOST_INNER);
        let product = |vectors: &mut CgVectors<T>| {
            objective.hessian_vector(&vectors.p, &mut vectors.q)?;
            vectors.advance()
        };
        let state = cg::run(&mut self.vectors, most, Pace::Lockstep, product, |_| {})?;
        let steps = self.vectors.w.to_vec()?;
        let mut direction: Vec<f64> = steps.iter().map(|d| Element::to_f64(*d)).collect();
        for (i, d) in direction.iter_mut().enumerate() {
            let v = self.at.subgradient[i];
            if self.at.theta[i] == T::default() && self.penalty.l1[i] > 0.0 && *d * v >= 0.0 {
                *d = -self.penalty.inverse_diagonal[i] * v;
            }
        }
        Ok((direction, state.iterations))
    }

    /// −D⁻¹·v, which descends whatever the curvature.
    fn scaled_descent(&self) -> Vec<f64> {
        let scales = self.penalty.inverse_diagonal.iter();
        scales
            .zip(&self.at.subgradient)
            .map(|(d, v)| -d * v)
            .collect()
    }

    /// θ + t·d, coordinates that would leave the orthant at 0.
    fn project(&self, direction: &[f64], t: f64) -> Vec<T> {
        let coordinates = self.at.theta.iter().zip(direction).enumerate();
        coordinates
            .map(|(i, (x, d))| {
                let x = Element::to_f64(*x);
                let to = x + t * d;
                let side = if x == 0.0 { -self.at.subgradient[i] } else { x };
                let leaves = self.penalty.l1[i] > 0.0 && to * side <= 0.0;
                <T as Element>::from_f64(if leaves { 0.0 } else { to })
            })
            .collect()
    }

    /// Halves t from 1 until the objective has decreased enough; whether a step was taken.
    fn search(
        &mut self,
        objective: &mut dyn Objective<T>,
        direction: &[f64],
    ) -> Result<bool, OpError> {
        let mut t = 1.0;
        for _ in 0..HALVINGS {
            let theta = self.project(direction, t);
            let slope = self.slope_to(&theta);
            let trial = self.evaluate(objective, theta)?;
            let enough = trial.value <= self.at.value + SUFFICIENT * slope && slope < 0.0;
            // Below rounding only the subgradient tells progress.
            let is_noise = slope.abs() <= noise::<T>(self.at.value);
            let closer = trial.value.is_finite() && trial.norm < self.at.norm;
            if if is_noise { closer } else { enough } {
                objective.accept();
                self.at = trial;
                return Ok(true);
            }
            if is_noise {
                return Ok(false);
            }
            t *= 0.5;
        }
        Ok(false)
    }

    /// v·(θ' − θ).
    fn slope_to(&self, theta: &[T]) -> f64 {
        let steps = theta.iter().zip(&self.at.theta);
        steps
            .zip(&self.at.subgradient)
            .map(|((to, from), v)| v * (Element::to_f64(*to) - Element::to_f64(*from)))
            .sum()
    }
}

/// The element of least magnitude of the subdifferential of f + κ·|x|, g being the derivative of f.
fn least(x: f64, g: f64, l1: f64) -> f64 {
    if x != 0.0 {
        g + l1 * x.signum()
    } else if g.abs() <= l1 {
        0.0
    } else {
        g - l1 * g.signum()
    }
}
