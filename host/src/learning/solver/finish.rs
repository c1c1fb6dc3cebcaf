//! The last steps to the minimum on a device, once the gradient is short enough.
//!
//! A gradient's length says little of the distance to the minimum: along a direction of curvature λ, which is often a weak
//! ridge alone, they differ by 1/λ. A Newton step is that distance, up to its square. So a solve that has converged takes the
//! next step by conjugate gradients, and goes on while that is longer than the accuracy promised, as
//! [`super::host`] does with its factors. In f32 rounding is larger than what there is to gain.
//!
//! Source: J. Nocedal, S. Wright, "Numerical Optimization", 2nd edition, section 7.1 (inexact Newton).

use super::stops::{self, recorded};
use super::{Iteration, Limits, Objective, Point, Solved, Watch, ratio};
use crate::device::Buffer;
use crate::learning::cg::Convergence;
use crate::learning::checkpoint::{Record, session};
use crate::learning::leg::{self, Leg, Pace};
use crate::matrix::{Dtype, Element};
use crate::ops::cg::{CgVectors, Stop};
use crate::ops::{Number, OpError, vector};

/// Distance to the minimum, of the largest coefficient, from which on coefficients are as accurate as promised (1e-5), with
/// room for the estimate.
const NEAR: f64 = 2e-6;
/// Steps at most: each leaves a small part of the distance, or the minimum is not at a finite distance.
const STEPS: usize = 4;
/// What is left of a gradient by a step.
const LEFT: f64 = 1e-2;
/// Inner iterations of a step: at least, and in all.
const FEW_INNER: usize = 20;
const MOST_INNER: usize = 2000;

/// Whether solves of T are finished.
pub(in crate::learning) fn is_worth<T: Number>() -> bool {
    T::DTYPE == Dtype::F64
}

/// What a finish goes by.
pub(in crate::learning) struct Scale<'a, T: Number> {
    /// The inverse of the Hessian's diagonal, about; 0 for coordinates that are held.
    pub(in crate::learning) inverse: &'a Buffer<T>,
    /// Elements of θ that are coefficients; intercepts follow.
    pub(in crate::learning) coefficients: usize,
}

/// Steps from where `solved` has converged until coefficients are near those of the minimum. Ends where a step does not
/// shorten the gradient, which has been short enough before.
pub(in crate::learning) fn approach<T: Number>(
    objective: &mut dyn Objective<T>,
    solved: Solved<T>,
    scale: &Scale<'_, T>,
    limits: &Limits,
    watch: &mut Watch<'_, T>,
) -> Result<Solved<T>, OpError> {
    if solved.convergence != Convergence::Converged || solved.gradient_norm == 0.0 {
        return Ok(solved);
    }
    recorded(("finish", objective), watch, |objective, found, watch| {
        let mut finish = match found {
            Some(found) => Finish::restored(objective, (solved, found))?,
            None => Finish::new(objective, solved)?,
        };
        let mut found = found;
        while finish.steps < STEPS {
            let room = limits.max_iter.saturating_sub(finish.solved.n_iter);
            if room == 0 || !finish.step(objective, (scale, found.take()), watch)? {
                break;
            }
            finish.steps += 1;
        }
        Ok(finish.solved)
    })
}

struct Finish<T: Number> {
    solved: Solved<T>,
    gradient: Buffer<T>,
    first_norm: f64,
    seconds: std::time::Instant,
    /// Steps that were taken.
    steps: usize,
}

impl<T: Number> Finish<T> {
    /// The point of `solved`, evaluated again: solvers may have tried another since.
    fn new(objective: &mut dyn Objective<T>, solved: Solved<T>) -> Result<Self, OpError> {
        let first_norm = ratio(solved.gradient_norm, solved.gradient_ratio);
        let at = Point::start(objective, solved.theta)?;
        let solved = Solved {
            theta: at.theta,
            ..solved
        };
        Ok(Finish {
            solved,
            gradient: at.gradient,
            first_norm,
            seconds: std::time::Instant::now(),
            steps: 0,
        })
    }

    /// In the step that was recorded, of a finish that began at `solved`.
    fn restored(
        objective: &mut dyn Objective<T>,
        (solved, found): (Solved<T>, &Record),
    ) -> Result<Self, OpError> {
        let first_norm = ratio(solved.gradient_norm, solved.gradient_ratio);
        let [value, norm, n_iter, steps, seconds] = found.array("finish")?;
        let at = Solved {
            objective: value,
            gradient_norm: norm,
            gradient_ratio: ratio(norm, first_norm),
            n_iter: n_iter as usize,
            ..solved
        };
        let mut finish = Finish::new(objective, at)?;
        found.restore("theta", &mut finish.solved.theta)?;
        found.restore("gradient", &mut finish.gradient)?;
        stops::stand(objective, &finish.solved.theta)?;
        (finish.first_norm, finish.steps) = (first_norm, steps as usize);
        finish.seconds = stops::begun(seconds);
        Ok(finish)
    }

    fn save(&self, to: &mut Record) -> Result<(), OpError> {
        to.vector("theta", &self.solved.theta)?;
        to.vector("gradient", &self.gradient)?;
        let Solved {
            objective,
            gradient_norm,
            n_iter,
            ..
        } = self.solved;
        let [n_iter, steps] = [n_iter, self.steps].map(|count| count as f64);
        let seconds = self.seconds.elapsed().as_secs_f64();
        to.numbers(
            "finish",
            &[objective, gradient_norm, n_iter, steps, seconds],
        );
        Ok(())
    }

    /// Takes the step that is left, unless it is short or leads nowhere; whether another may follow.
    fn step(
        &mut self,
        objective: &mut dyn Objective<T>,
        scale: (&Scale<'_, T>, Option<&Record>),
        watch: &mut Watch<'_, T>,
    ) -> Result<bool, OpError> {
        let Some((direction, inner)) = self.direction(objective, scale)? else {
            return Ok(false);
        };
        let mut trial = Point {
            theta: self.solved.theta.try_clone()?,
            gradient: self.gradient.try_clone()?,
            value: 0.0,
            norm: 0.0,
        };
        let one = <T as Element>::from_f64(1.0);
        vector::axpby(one, &direction, one, &mut trial.theta)?;
        trial.evaluate(objective)?;
        if !(trial.is_finite() && trial.norm < self.solved.gradient_norm) {
            return Ok(false);
        }
        objective.accept();
        self.take(trial);
        let iteration = Iteration {
            objective: self.solved.objective,
            gradient_ratio: self.solved.gradient_ratio,
            inner,
            seconds: self.seconds.elapsed().as_secs_f64(),
            validation: None,
        };
        watch(iteration, Some(&self.solved.theta));
        Ok(true)
    }

    fn take(&mut self, at: Point<T>) {
        self.solved.theta = at.theta;
        self.solved.objective = at.value;
        self.solved.gradient_norm = at.norm;
        self.solved.gradient_ratio = ratio(at.norm, self.first_norm);
        self.solved.n_iter += 1;
        self.gradient = at.gradient;
    }

    /// H·d = −g to a part of the gradient, and the products that took; nothing where d is short, or not to be had. Goes on
    /// with the solve that was recorded, if it was.
    fn direction(
        &self,
        objective: &mut dyn Objective<T>,
        (scale, found): (&Scale<'_, T>, Option<&Record>),
    ) -> Result<Option<(Buffer<T>, usize)>, OpError> {
        let device = objective.device().clone();
        let inverse = Some(scale.inverse.try_clone()?);
        let gradient = self.gradient.try_clone()?;
        let (spread, stop) = (objective.spread()?, Stop::at(LEFT));
        let mut vectors = CgVectors::spread_over(spread, &device, gradient, inverse, None, stop)?;
        let most = (2 * self.gradient.len()).clamp(FEW_INNER, MOST_INNER);
        let mut leg = match found {
            Some(found) => Leg::restore(&mut vectors, found)?,
            None => Leg::first(most),
        };
        let pace = Pace::of(objective);
        let mut product = |vectors: &mut CgVectors<T>| leg::iterate(objective, vectors);
        let inner = loop {
            let course = (&mut leg, pace);
            let ended = leg::run_leg(&mut vectors, course, &mut product, |_, _| Ok(()))?;
            if let Some(state) = ended {
                break state;
            }
            session::save(|record| {
                self.save(record)?;
                leg.save(&vectors, record)
            })?;
        };
        if !inner.is_converged() {
            return Ok(None);
        }
        let w = vectors.into_solution()?;
        let lengths = (
            largest(&w, scale.coefficients)?,
            largest(&self.solved.theta, scale.coefficients)?,
        );
        Ok((lengths.0 > NEAR * lengths.1).then_some((w, inner.iterations)))
    }
}

/// The largest size of a coefficient.
fn largest<T: Number>(theta: &Buffer<T>, coefficients: usize) -> Result<f64, OpError> {
    let values: Vec<T> = theta.to_vec()?;
    let sizes = values[..coefficients]
        .iter()
        .map(|x| Element::to_f64(*x).abs());
    Ok(sizes.fold(0.0, f64::max))
}
