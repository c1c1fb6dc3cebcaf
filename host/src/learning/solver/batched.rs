//! Several problems that share their products: each goes its own way, as [`super::newton`] or, with an l1 penalty,
//! [`super::orthant`] would take it alone, but what all of them need next is computed at once.
//!
//! In a round all problems solve for their directions, product by product, until the last of them is content; then all
//! try their steps, until the last of them has found one. A problem that has ended is left out of what follows.

use std::time::Instant;

use super::method::{Method, Next, Step};
use super::newton::Newton;
use super::orthant::{L1, Orthant};
use super::{Begin, Iteration, Limits, Point, Solved};
use crate::device::{Buffer, Device, Readback};
use crate::learning::cg::{self, Convergence};
use crate::ops::cg::{CgProduct, CgState};
use crate::ops::{Number, OpError, interrupt};

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

/// One problem: where it begins, the inverse of its Hessian's diagonal, its l1 penalty, when it stops.
pub(in crate::learning) struct Problem<T: Number> {
    pub(in crate::learning) begin: Begin<T>,
    pub(in crate::learning) inverse_diagonal: Buffer<T>,
    pub(in crate::learning) l1: Option<L1>,
    pub(in crate::learning) limits: Limits,
}

/// A problem on its way.
struct Member<T: Number> {
    method: Box<dyn Method<T>>,
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
    let mut members = start(objectives, problems)?;
    loop {
        for member in members.iter_mut().filter(|member| member.end.is_none()) {
            member.end = member.method.end(&member.limits);
        }
        if members.iter().all(|member| member.end.is_some()) {
            break;
        }
        let found = directions(objectives, &mut members)?;
        steps(objectives, &mut members, &found)?;
    }
    let ended = members.into_iter().map(|member| {
        let end = member.end.unwrap_or(Convergence::IterationLimit);
        (member.method.solved(end), member.history)
    });
    Ok(ended.collect())
}

/// Evaluates and accepts the first points, after the cold ones where some begin elsewhere.
fn start<T: Number>(
    objectives: &mut dyn Objectives<T>,
    problems: Vec<Problem<T>>,
) -> Result<Vec<Member<T>>, OpError> {
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
        rest.push((problem.inverse_diagonal, problem.l1, problem.limits));
    }
    let mut cold: Vec<_> = numbered(&mut colds)
        .filter_map(|(member, point)| Some((member, point.as_mut()?)))
        .collect();
    if !cold.is_empty() {
        objectives.evaluate(&mut cold)?;
    }
    objectives.evaluate(&mut numbered(&mut points).collect::<Vec<_>>())?;
    objectives.accept(&(0..points.len()).collect::<Vec<_>>())?;
    let all = points.into_iter().zip(colds).zip(rest);
    all.map(|((point, cold), (inverse_diagonal, l1, limits))| {
        let mut method = method(&device, (point, cold), (inverse_diagonal, l1), begun)?;
        Ok(Member {
            readback: Readback::new(&device, method.vectors().state().len())?,
            method,
            limits,
            history: Vec::new(),
            end: None,
        })
    })
    .collect()
}

/// That of a problem's penalty.
fn method<T: Number>(
    device: &Device,
    (point, cold): (Point<T>, Option<Point<T>>),
    (inverse_diagonal, l1): (Buffer<T>, Option<L1>),
    begun: Instant,
) -> Result<Box<dyn Method<T>>, OpError> {
    Ok(match l1 {
        Some(l1) => {
            let scaled = (inverse_diagonal, l1);
            Box::new(Orthant::new(device, (point, cold), scaled, begun)?)
        }
        None => {
            let first_norm = cold.map_or(point.norm, |cold| cold.norm);
            let newton = Newton::new((device, None), point, first_norm, inverse_diagonal, begun)?;
            Box::new(newton)
        }
    })
}

fn numbered<I>(all: &mut [I]) -> impl Iterator<Item = (usize, &mut I)> {
    all.iter_mut().enumerate()
}

/// Runs the inner solves of all problems that have not ended.
fn directions<T: Number>(
    objectives: &mut dyn Objectives<T>,
    members: &mut [Member<T>],
) -> Result<Vec<Option<CgState>>, OpError> {
    let mut most = vec![0; members.len()];
    for (member, most) in members.iter_mut().zip(&mut most) {
        if member.end.is_none() {
            *most = member.method.restart(&member.limits)?;
        }
    }
    let mut found = read(members, |member| most[member] > 0)?;
    for done in 0.. {
        let goes_on = |member: usize| {
            let going = found[member].as_ref().map(cg::outcome);
            done < most[member] && going == Some(None)
        };
        let open: Vec<bool> = (0..members.len()).map(goes_on).collect();
        if !open.contains(&true) {
            break;
        }
        products(objectives, members, &open)?;
        for (state, place) in read(members, |member| open[member])?
            .into_iter()
            .zip(&mut found)
        {
            *place = state.or(*place);
        }
    }
    Ok(found)
}

/// One product, and one iteration of conjugate gradients, of each problem that is open.
fn products<T: Number>(
    objectives: &mut dyn Objectives<T>,
    members: &mut [Member<T>],
    open: &[bool],
) -> Result<(), OpError> {
    let mut asked: Vec<_> = numbered(members)
        .filter(|(member, _)| open[*member])
        .map(|(number, member)| {
            let CgProduct { p, q, .. } = member.method.vectors().product();
            (number, p, q)
        })
        .collect();
    interrupt::proceed()?;
    objectives.hessian_vectors(&mut asked)?;
    let ours = numbered(members).filter(|(member, _)| open[*member]);
    ours.map(|(_, member)| member)
        .try_for_each(|member| member.method.vectors().advance())
}

/// The states of some inner solves: all copies are submitted before the first is waited for.
fn read<T: Number>(
    members: &mut [Member<T>],
    wanted: impl Fn(usize) -> bool,
) -> Result<Vec<Option<CgState>>, OpError> {
    for (_, member) in numbered(members).filter(|(number, _)| wanted(*number)) {
        member.readback.submit(member.method.vectors().state())?;
    }
    let state = |(number, member): (usize, &mut Member<T>)| {
        if !wanted(number) {
            return Ok(None);
        }
        Ok(Some(CgState::of(member.readback.wait()?)))
    };
    numbered(members).map(state).collect()
}

/// Tries the step of each problem that found a direction.
fn steps<T: Number>(
    objectives: &mut dyn Objectives<T>,
    members: &mut [Member<T>],
    found: &[Option<CgState>],
) -> Result<(), OpError> {
    let mut trying = Vec::new();
    for (number, member) in numbered(members) {
        let Some(inner) = found[number].as_ref().filter(|_| member.end.is_none()) else {
            continue;
        };
        match member.method.after_inner(inner) {
            Next::Ends(convergence) => member.end = Some(convergence),
            Next::Again => {}
            Next::Tries => trying.push((number, *inner)),
        }
    }
    while !trying.is_empty() {
        trying = tried(objectives, members, trying)?;
    }
    Ok(())
}

/// Tries a point of each of these problems; those that have another one to try.
fn tried<T: Number>(
    objectives: &mut dyn Objectives<T>,
    members: &mut [Member<T>],
    trying: Vec<(usize, CgState)>,
) -> Result<Vec<(usize, CgState)>, OpError> {
    let tries = |number: usize| trying.iter().any(|(member, _)| *member == number);
    let mut points = Vec::new();
    for (number, member) in numbered(members).filter(|(number, _)| tries(*number)) {
        member.method.aim()?;
        points.push((number, member.method.trial()));
    }
    objectives.evaluate(&mut points)?;
    let (mut taken, mut further) = (Vec::new(), Vec::new());
    for (number, inner) in trying {
        let member = &mut members[number];
        match member.method.step(&inner)? {
            Step::Further => {
                further.push((number, inner));
                continue;
            }
            Step::Taken => taken.push(number),
            Step::Refused => {}
            Step::Exhausted => member.end = Some(Convergence::PrecisionLimit),
        }
        member.history.push(member.method.iteration(&inner));
    }
    if !taken.is_empty() {
        objectives.accept(&taken)?;
    }
    Ok(further)
}
