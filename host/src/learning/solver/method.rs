//! What Newton's method in a region and in an orthant have in common: directions from inner solves, steps that are tried.
//!
//! A method does what lies between evaluations and products. Whoever drives it, [`run`] for one problem or
//! [`super::batched`] for several, brings those.

use super::stops::{recorded, stand};
use super::{Iteration, Limits, Objective, Point, Solved, Watch};
use crate::device::Buffer;
use crate::learning::cg::Convergence;
use crate::learning::checkpoint::{Record, session};
use crate::learning::leg::{self, Leg, Pace};
use crate::ops::cg::{CgState, CgVectors};
use crate::ops::{Number, OpError};

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
    /// Another inner solve has to find a better one.
    Refused,
    /// There is another point to try, at which the method [aims](Method::aim) next.
    Further,
    /// Nothing below the rounding of the objective is left to gain.
    Exhausted,
}

/// A solve without the objective.
pub(super) trait Method<T: Number> {
    /// Whether, and how, it ends before another iteration.
    fn end(&self, limits: &Limits) -> Option<Convergence>;

    /// Starts an inner solve, of this many iterations at most.
    fn restart(&mut self, limits: &Limits) -> Result<usize, OpError>;

    /// Of the inner solve.
    fn vectors(&mut self) -> &mut CgVectors<T>;

    /// Whether there is a step to try. Counts the iteration if there is.
    fn after_inner(&mut self, inner: &CgState) -> Next;

    /// Puts the next point to try into the trial.
    fn aim(&mut self) -> Result<(), OpError>;

    /// Where it stands.
    fn theta(&self) -> &Buffer<T>;

    /// What is to be evaluated.
    fn trial(&mut self) -> &mut Point<T>;

    /// Takes the step to the evaluated trial or not.
    fn step(&mut self, inner: &CgState) -> Result<Step, OpError>;

    /// What is told of the iteration that has ended.
    fn iteration(&self, inner: &CgState) -> Iteration;

    /// Adds where it stands to a record, but for the inner solve.
    fn save(&self, to: &mut Record) -> Result<(), OpError>;

    /// Puts it back to where it was recorded.
    fn restore(&mut self, from: &Record) -> Result<(), OpError>;

    /// How it ended.
    fn solved(self: Box<Self>, convergence: Convergence) -> Solved<T>;
}

/// Minimises one objective by the method that `begin` makes, at a point that has been evaluated and accepted.
pub(super) fn minimise<'m, T: Number, M: Method<T> + 'm>(
    (name, objective): (&'static str, &mut dyn Objective<T>),
    begin: impl FnOnce(&mut dyn Objective<T>) -> Result<M, OpError>,
    limits: &Limits,
    watch: &mut Watch<'_, T>,
) -> Result<Solved<T>, OpError> {
    recorded((name, objective), watch, |objective, found, watch| {
        let mut method: Box<dyn Method<T> + 'm> = Box::new(begin(objective)?);
        let leg = match found {
            Some(found) => Some(go_back(&mut *method, objective, found)?),
            None => None,
        };
        run((method, leg), objective, limits, watch)
    })
}

/// Puts a method and its objective to where a solve was recorded.
fn go_back<T: Number>(
    method: &mut dyn Method<T>,
    objective: &mut dyn Objective<T>,
    found: &Record,
) -> Result<Leg, OpError> {
    method.restore(found)?;
    stand(objective, method.theta())?;
    Leg::restore(method.vectors(), found)
}

/// Goes on with an inner solve, if there is one under way.
fn run<'m, T: Number>(
    (mut method, mut leg): (Box<dyn Method<T> + 'm>, Option<Leg>),
    objective: &mut dyn Objective<T>,
    limits: &Limits,
    watch: &mut Watch<'_, T>,
) -> Result<Solved<T>, OpError> {
    let convergence = loop {
        let under_way = leg.take();
        if under_way.is_none()
            && let Some(end) = method.end(limits)
        {
            break end;
        }
        let leg = match under_way {
            Some(leg) => leg,
            None => Leg::first(method.restart(limits)?),
        };
        let inner = inner((&mut *method, leg), objective)?;
        match method.after_inner(&inner) {
            Next::Ends(convergence) => break convergence,
            Next::Again => continue,
            Next::Tries => {}
        }
        let step = tried(&mut *method, objective, &inner)?;
        watch(method.iteration(&inner), Some(method.theta()));
        if let Step::Exhausted = step {
            break Convergence::PrecisionLimit;
        }
    };
    Ok(method.solved(convergence))
}

fn inner<T: Number>(
    (method, mut leg): (&mut dyn Method<T>, Leg),
    objective: &mut dyn Objective<T>,
) -> Result<CgState, OpError> {
    let pace = Pace::of(objective);
    let mut product = |vectors: &mut CgVectors<T>| leg::iterate(objective, vectors);
    loop {
        let course = (&mut leg, pace);
        let ended = leg::run_leg(method.vectors(), course, &mut product, |_, _| Ok(()))?;
        if let Some(state) = ended {
            return Ok(state);
        }
        session::save(|record| {
            method.save(record)?;
            leg.save(method.vectors(), record)
        })?;
    }
}

/// Tries one point after the other until the method has made up its mind.
fn tried<T: Number>(
    method: &mut dyn Method<T>,
    objective: &mut dyn Objective<T>,
    inner: &CgState,
) -> Result<Step, OpError> {
    loop {
        method.aim()?;
        method.trial().evaluate(objective)?;
        match method.step(inner)? {
            Step::Further => {}
            Step::Taken => {
                objective.accept();
                return Ok(Step::Taken);
            }
            step => return Ok(step),
        }
    }
}

/// Whether, and how, a solve ends after this many iterations, with a gradient of this norm, and of that norm at the start.
pub(super) fn end(
    n_iter: usize,
    is_finite: bool,
    (norm, first_norm): (f64, f64),
    limits: &Limits,
) -> Option<Convergence> {
    if n_iter == 0 && !is_finite {
        Some(Convergence::NotFinite)
    } else if norm <= limits.tolerance * first_norm {
        Some(Convergence::Converged)
    } else if n_iter >= limits.max_iter {
        Some(Convergence::IterationLimit)
    } else {
        None
    }
}
