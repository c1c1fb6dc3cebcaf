//! Solves that may stop and go on: what all solvers of a device tell a checkpoint.

use std::time::{Duration, Instant};

use super::{Iteration, Objective, Point, Solved, Watch};
use crate::device::Buffer;
use crate::learning::checkpoint::{Record, session};
use crate::ops::{Number, OpError};

/// Figures of an iteration in a record.
const FIGURES: usize = 6;

impl Iteration {
    /// Keeps the iteration for checkpoints.
    pub(in crate::learning) fn tell(&self) {
        let [judged, validation] = match self.validation {
            Some(validation) => [1.0, validation],
            None => [0.0, 0.0],
        };
        let (inner, seconds) = (self.inner as f64, self.seconds);
        let figures = [self.objective, self.gradient_ratio, inner, seconds];
        session::tell(&[&figures[..], &[judged, validation]].concat());
    }

    fn of(figures: [f64; FIGURES]) -> Iteration {
        let [
            objective,
            gradient_ratio,
            inner,
            seconds,
            judged,
            validation,
        ] = figures;
        Iteration {
            objective,
            gradient_ratio,
            inner: inner as usize,
            seconds,
            validation: (judged == 1.0).then_some(validation),
        }
    }
}

/// The iterations that a record tells of.
pub(in crate::learning) fn told(record: &Record) -> Result<Vec<Iteration>, OpError> {
    let figures = session::recall(record)?;
    let (each, _) = figures.as_chunks::<FIGURES>();
    Ok(each.iter().map(|figures| Iteration::of(*figures)).collect())
}

/// Minimises by `solve` what has not been minimised before a checkpoint. It is given what was recorded where it stopped.
pub(super) fn recorded<T: Number>(
    (solver, objective): (&'static str, &mut dyn Objective<T>),
    watch: &mut Watch<'_, T>,
    solve: impl FnOnce(
        &mut dyn Objective<T>,
        Option<&Record>,
        &mut Watch<'_, T>,
    ) -> Result<Solved<T>, OpError>,
) -> Result<Solved<T>, OpError> {
    let found = session::begin(solver)?;
    if let Some(found) = &found {
        told(found)?.into_iter().for_each(|told| watch(told, None));
    }
    let solved = match &found {
        Some(found) if found.has(SOLVED) => Solved::recall(found, objective)?,
        _ => solve(objective, found.as_ref(), watch)?,
    };
    session::end(|record| solved.keep(record))?;
    Ok(solved)
}

const SOLVED: &str = "solved";

impl<T: Number> Solved<T> {
    pub(super) fn keep(&self, to: &mut Record) -> Result<(), OpError> {
        to.vector("theta", &self.theta)?;
        let n_iter = self.n_iter as f64;
        let figures = [
            self.objective,
            self.gradient_ratio,
            self.gradient_norm,
            n_iter,
        ];
        to.numbers(SOLVED, &figures);
        to.json("convergence", &self.convergence);
        Ok(())
    }

    pub(super) fn recall(from: &Record, objective: &dyn Objective<T>) -> Result<Self, OpError> {
        let mut theta = objective.device().zeros(objective.len())?;
        from.restore("theta", &mut theta)?;
        let [objective, gradient_ratio, gradient_norm, n_iter] = from.array(SOLVED)?;
        Ok(Solved {
            theta,
            objective,
            gradient_ratio,
            gradient_norm,
            n_iter: n_iter as usize,
            convergence: from.json_of("convergence")?,
        })
    }
}

impl<T: Number> Point<T> {
    pub(super) fn save(&self, to: &mut Record) -> Result<(), OpError> {
        to.vector("theta", &self.theta)?;
        to.vector("gradient", &self.gradient)?;
        to.numbers("point", &[self.value, self.norm]);
        Ok(())
    }

    pub(super) fn restore(&mut self, from: &Record) -> Result<(), OpError> {
        from.restore("theta", &mut self.theta)?;
        from.restore("gradient", &mut self.gradient)?;
        [self.value, self.norm] = from.array("point")?;
        Ok(())
    }
}

/// Evaluates and accepts `theta`, for its Hessian alone.
pub(super) fn stand<T: Number>(
    objective: &mut dyn Objective<T>,
    theta: &Buffer<T>,
) -> Result<(), OpError> {
    let mut gradient = objective.device().zeros(theta.len())?;
    objective.evaluate(theta, &mut gradient)?;
    objective.accept();
    Ok(())
}

/// When a solve began that has taken `seconds`.
pub(super) fn begun(seconds: f64) -> Instant {
    let now = Instant::now();
    let since = Duration::try_from_secs_f64(seconds).ok();
    since
        .and_then(|since| now.checked_sub(since))
        .unwrap_or(now)
}
