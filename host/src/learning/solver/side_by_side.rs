//! Newton's method for several problems that share their products: each goes its own way, as [`super::newton`] would
//! take it alone, but what all of them need next is computed at once.
//!
//! In a round all problems solve for their directions, product by product, until the last of them is content; then all
//! try their steps. A problem that has ended is left out of what follows.

use std::time::Instant;

use super::newton::{Newton, Next, Step};
use super::{Begin, Iteration, Limits, Point, Solved};
use crate::device::{Buffer, Device, Readback};
use crate::learning::cg::{self, Convergence};
use crate::ops::cg::CgState;
use crate::ops::{Number, OpError};

/// Objectives of as many θ, all of one length, evaluated together.
pub(in crate::learning) trait Objectives<T: Number> {
    /// Where all vectors lie.
    fn device(&self) -> &Device;

    /// Value, gradient and its norm at each point that is given, by the number of its problem.
    fn evaluate(&mut self, points: &mut [(usize, &mut Point<T>)]) -> Result<(), OpError>;

    /// Makes the points of the last evaluation those whose Hessians count.
    fn accept(&mut self, problems: &[usize]) -> Result<(), OpError>;

    /// The product of the Hessian with each direction that is given: the first buffer into the second.
    fn hessian_vectors(
        &mut self,
        directions: &mut [(usize, &Buffer<T>, &mut Buffer<T>)],
    ) -> Result<(), OpError>;
}

/// One problem: where it begins, the inverse of its Hessian's diagonal, when it stops.
pub(in crate::learning) struct Problem<T: Number> {
    pub(in crate::learning) begin: Begin<T>,
    pub(in crate::learning) inverse_diagonal: Buffer<T>,
    pub(in crate::learning) limits: Limits,
}

/// A problem on its way.
struct Side<T: Number> {
    newton: Newton<T>,
    limits: Limits,
    readback: Readback,
    history: Vec<Iteration>,
    end: Option<Convergence>,
}

/// How a problem ended, with its iterations.
pub(in crate::learning) type Told<T> = (Solved<T>, Vec<Iteration>);

/// Minimises all objectives; what comes out is in the order of the problems, with the iterations of each.
pub(in crate::learning) fn minimise<T: Number>(
    objectives: &mut dyn Objectives<T>,
    problems: Vec<Problem<T>>,
) -> Result<Vec<Told<T>>, OpError> {
    let mut sides = start(objectives, problems)?;
    loop {
        for side in sides.iter_mut().filter(|side| side.end.is_none()) {
            side.end = side.newton.end(&side.limits);
        }
        if sides.iter().all(|side| side.end.is_some()) {
            break;
        }
        let found = directions(objectives, &mut sides)?;
        steps(objectives, &mut sides, &found)?;
    }
    let ended = sides.into_iter().map(|side| {
        let end = side.end.unwrap_or(Convergence::IterationLimit);
        (side.newton.solved(end), side.history)
    });
    Ok(ended.collect())
}

/// Evaluates and accepts the first points, after the cold ones where some begin elsewhere.
fn start<T: Number>(
    objectives: &mut dyn Objectives<T>,
    problems: Vec<Problem<T>>,
) -> Result<Vec<Side<T>>, OpError> {
    let begun = Instant::now();
    let device = objectives.device().clone();
    let unevaluated = |theta: Buffer<T>| -> Result<Point<T>, OpError> {
        Ok(Point {
            gradient: device.zeros(theta.len())?,
            theta,
            value: 0.0,
            norm: 0.0,
        })
    };
    let (mut colds, mut points, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    for problem in problems {
        colds.push(problem.begin.cold.map(unevaluated).transpose()?);
        points.push(unevaluated(problem.begin.theta)?);
        rest.push((problem.inverse_diagonal, problem.limits));
    }
    let mut cold: Vec<_> = numbered(&mut colds)
        .filter_map(|(side, point)| Some((side, point.as_mut()?)))
        .collect();
    if !cold.is_empty() {
        objectives.evaluate(&mut cold)?;
    }
    objectives.evaluate(&mut numbered(&mut points).collect::<Vec<_>>())?;
    objectives.accept(&(0..points.len()).collect::<Vec<_>>())?;
    let all = points.into_iter().zip(colds).zip(rest);
    all.map(|((point, cold), (inverse_diagonal, limits))| {
        let first_norm = cold.map_or(point.norm, |cold| cold.norm);
        let newton = Newton::new(&device, point, first_norm, inverse_diagonal, begun)?;
        Ok(Side {
            readback: Readback::new(&device, newton.vectors.state().len())?,
            newton,
            limits,
            history: Vec::new(),
            end: None,
        })
    })
    .collect()
}

fn numbered<I>(all: &mut [I]) -> impl Iterator<Item = (usize, &mut I)> {
    all.iter_mut().enumerate()
}

/// Runs the inner solves of all problems that have not ended.
fn directions<T: Number>(
    objectives: &mut dyn Objectives<T>,
    sides: &mut [Side<T>],
) -> Result<Vec<Option<CgState>>, OpError> {
    let mut most = vec![0; sides.len()];
    for (side, most) in sides.iter_mut().zip(&mut most) {
        if side.end.is_none() {
            *most = side.newton.restart(&side.limits)?;
        }
    }
    let mut found = read(sides, |side| most[side] > 0)?;
    for done in 0.. {
        let goes_on = |side: usize| {
            let going = found[side].as_ref().map(cg::outcome);
            done < most[side] && going == Some(None)
        };
        let open: Vec<bool> = (0..sides.len()).map(goes_on).collect();
        if !open.contains(&true) {
            break;
        }
        products(objectives, sides, &open)?;
        for (state, place) in read(sides, |side| open[side])?.into_iter().zip(&mut found) {
            *place = state.or(*place);
        }
    }
    Ok(found)
}

/// One product, and one iteration of conjugate gradients, of each problem that is open.
fn products<T: Number>(
    objectives: &mut dyn Objectives<T>,
    sides: &mut [Side<T>],
    open: &[bool],
) -> Result<(), OpError> {
    let mut asked: Vec<_> = numbered(sides)
        .filter(|(side, _)| open[*side])
        .map(|(number, side)| {
            let (p, q, _) = side.newton.vectors.product();
            (number, p, q)
        })
        .collect();
    objectives.hessian_vectors(&mut asked)?;
    let ours = numbered(sides).filter(|(side, _)| open[*side]);
    ours.map(|(_, side)| side)
        .try_for_each(|side| side.newton.vectors.advance())
}

/// The states of some inner solves: all copies are submitted before the first is waited for.
fn read<T: Number>(
    sides: &mut [Side<T>],
    wanted: impl Fn(usize) -> bool,
) -> Result<Vec<Option<CgState>>, OpError> {
    for (_, side) in numbered(sides).filter(|(number, _)| wanted(*number)) {
        side.readback.submit(side.newton.vectors.state())?;
    }
    let state = |(number, side): (usize, &mut Side<T>)| {
        if !wanted(number) {
            return Ok(None);
        }
        Ok(Some(CgState::of(side.readback.wait()?)))
    };
    numbered(sides).map(state).collect()
}

/// Tries the step of each problem that found a direction.
fn steps<T: Number>(
    objectives: &mut dyn Objectives<T>,
    sides: &mut [Side<T>],
    found: &[Option<CgState>],
) -> Result<(), OpError> {
    let mut trying = Vec::new();
    for (number, side) in numbered(sides) {
        let Some(inner) = found[number].as_ref().filter(|_| side.end.is_none()) else {
            continue;
        };
        match side.newton.after_inner(inner) {
            Next::Ends(convergence) => side.end = Some(convergence),
            Next::Again => {}
            Next::Tries => {
                side.newton.aim()?;
                trying.push((number, *inner));
            }
        }
    }
    if trying.is_empty() {
        return Ok(());
    }
    let tries = |number: usize| trying.iter().any(|(side, _)| *side == number);
    let mut points: Vec<_> = numbered(sides)
        .filter(|(number, _)| tries(*number))
        .map(|(number, side)| (number, &mut side.newton.trial))
        .collect();
    objectives.evaluate(&mut points)?;
    let mut taken = Vec::new();
    for (number, inner) in &trying {
        let side = &mut sides[*number];
        match side.newton.step(inner) {
            Step::Taken => taken.push(*number),
            Step::Refused => {}
            Step::Exhausted => side.end = Some(Convergence::PrecisionLimit),
        }
        side.history.push(side.newton.iteration(inner));
    }
    if taken.is_empty() {
        return Ok(());
    }
    objectives.accept(&taken)
}
