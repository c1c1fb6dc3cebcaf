//! Iterations of conjugate gradients, in legs: a checkpoint is written between two of them.

use super::cg::outcome;
use super::checkpoint::{Record, session};
use super::solver::Objective;
use crate::device::{Buffer, Readback};
use crate::ops::cg::{CgProduct, CgState, CgVectors, Stop};
use crate::ops::{Number, OpError, interrupt};

/// Whether the host waits for the scalars of one iteration before it submits the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// It submits the next first: no gap between iterations, but one product too many at the end, unless that looks
    /// at the state itself.
    Ahead,
    /// It waits: for solves of a few iterations with long products that do not look.
    Lockstep,
}

impl Pace {
    /// Ahead where a product too many costs nothing.
    pub(super) fn of<T: Number>(objective: &dyn Objective<T>) -> Pace {
        if objective.skips() {
            Pace::Ahead
        } else {
            Pace::Lockstep
        }
    }
}

/// How far a solve has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Leg {
    /// Iterations that were submitted.
    pub(super) done: usize,
    /// Iterations at most.
    pub(super) most: usize,
}

impl Leg {
    /// Before the first of `most` iterations.
    pub(super) fn first(most: usize) -> Leg {
        Leg { done: 0, most }
    }

    /// Adds the solve to a record.
    pub(super) fn save<T: Number>(
        &self,
        vectors: &CgVectors<T>,
        to: &mut Record,
    ) -> Result<(), OpError> {
        to.vector("cg.w", &vectors.whole(&vectors.w)?)?;
        to.vector("cg.r", &vectors.whole(&vectors.r)?)?;
        to.vector("cg.p", &vectors.p)?;
        to.vector("cg.state", vectors.state())?;
        let Stop { tolerance, radius } = vectors.stop();
        let [done, most] = [self.done, self.most].map(|count| count as f64);
        to.numbers("cg.leg", &[tolerance, radius, done, most]);
        Ok(())
    }

    /// Puts vectors without a shift back to where a solve was recorded.
    pub(super) fn restore<T: Number>(
        vectors: &mut CgVectors<T>,
        from: &Record,
    ) -> Result<Leg, OpError> {
        let [tolerance, radius, done, most] = from.array("cg.leg")?;
        from.restore("cg.p", &mut vectors.p)?;
        let (device, len) = (vectors.p.device(), vectors.p.len());
        let found = |name| -> Result<Buffer<T>, OpError> {
            let mut all = device.zeros(len)?;
            from.restore(name, &mut all)?;
            Ok(all)
        };
        vectors.resume_w(&found("cg.w")?)?;
        vectors.resume_r(&found("cg.r")?)?;
        from.restore("cg.state", vectors.resume(Stop { tolerance, radius }))?;
        let [done, most] = [done, most].map(|count| count as usize);
        Ok(Leg { done, most })
    }
}

/// One iteration of a solve over the Hessian of an objective.
pub(super) fn iterate<T: Number>(
    objective: &mut dyn Objective<T>,
    vectors: &mut CgVectors<T>,
) -> Result<(), OpError> {
    let spread = vectors.spread().cloned();
    let CgProduct { p, q, state, .. } = vectors.product();
    match spread {
        Some(spread) => objective.hessian_share(&spread, p, q, Some(state))?,
        None => objective.hessian_vector(p, q, Some(state))?,
    }
    vectors.advance()
}

/// Runs iterations until the solve ends or `max_iter` are done, and shows every state to `seen`, that of the
/// start included, with the vectors, which are of the same iteration in [`Pace::Lockstep`] and may be of the next else.
pub(super) fn run<T: Number>(
    vectors: &mut CgVectors<T>,
    (max_iter, pace): (usize, Pace),
    step: impl FnMut(&mut CgVectors<T>) -> Result<(), OpError>,
    seen: impl FnMut(&CgState, &CgVectors<T>) -> Result<(), OpError>,
) -> Result<CgState, OpError> {
    let whole = (&mut Leg::first(max_iter), pace);
    Ok(advance(vectors, whole, |_, _| Ok(false), step, seen)?.0)
}

/// [`run`] until a checkpoint is due: then there is no state, and the next call goes on. A leg has one iteration at least.
pub(super) fn run_leg<T: Number>(
    vectors: &mut CgVectors<T>,
    leg: (&mut Leg, Pace),
    step: impl FnMut(&mut CgVectors<T>) -> Result<(), OpError>,
    seen: impl FnMut(&CgState, &CgVectors<T>) -> Result<(), OpError>,
) -> Result<Option<CgState>, OpError> {
    let (state, is_paused) = advance(vectors, leg, is_due, step, seen)?;
    Ok((!is_paused).then_some(state))
}

/// Of members that keep a share of the vectors each, iterations between two at which they ask whether a checkpoint is due, the
/// first of a leg's being one: none of them can write it without the others, and to ask is to wait.
const ASKED_EVERY: usize = 16;

/// Whether a checkpoint is due: where members keep a share of the vectors each, what the first one says, for all.
fn is_due<T: Number>(vectors: &CgVectors<T>, done: usize) -> Result<bool, OpError> {
    let Some(spread) = vectors.spread() else {
        return Ok(session::is_due());
    };
    if !session::asks(done % ASKED_EVERY == 1) {
        return Ok(false);
    }
    let mut due = [u64::from(session::is_due())];
    spread.group().broadcast(0, &mut due)?;
    Ok(due == [1])
}

/// The last state, and whether it was time to pause. One member of a group may pause where the others do not, unless each keeps
/// a share of the vectors: whether an iteration is submitted depends on the same states, so that all members submit as many.
fn advance<T: Number>(
    vectors: &mut CgVectors<T>,
    (leg, pace): (&mut Leg, Pace),
    is_due: impl Fn(&CgVectors<T>, usize) -> Result<bool, OpError>,
    mut step: impl FnMut(&mut CgVectors<T>) -> Result<(), OpError>,
    mut seen: impl FnMut(&CgState, &CgVectors<T>) -> Result<(), OpError>,
) -> Result<(CgState, bool), OpError> {
    let device = vectors.w.device();
    let mut readback = Readback::new(&device, vectors.state().len())?;
    readback.submit(vectors.state())?;
    let (before, mut is_paused) = (leg.done, false);
    let mut state = match (pace, before) {
        // An iteration past the end changes nothing: a GPU need not wait for the host to look at the start.
        (Pace::Ahead, 0) if !device.is_cpu() => None,
        _ => Some(CgState::of(readback.wait()?)),
    };
    if before == 0
        && let Some(state) = &state
    {
        seen(state, vectors)?;
    }
    let mut pending = usize::from(state.is_none());
    while leg.done < leg.most {
        // The first iteration after a pause was decided on before it.
        let goes_on = before > 0 && leg.done == before;
        if !goes_on && state.as_ref().and_then(outcome).is_some() {
            break;
        }
        is_paused = leg.done > before && is_due(vectors, leg.done)?;
        if is_paused {
            break;
        }
        interrupt::proceed()?;
        step(vectors)?;
        match pace {
            // The next iteration writes another state, and the one after it waits.
            Pace::Ahead => readback.submit_beside(vectors.state())?,
            Pace::Lockstep => readback.submit(vectors.state())?,
        }
        (leg.done, pending) = (leg.done + 1, pending + 1);
        if pending > 1 || pace == Pace::Lockstep {
            pending -= 1;
            seen(state.insert(CgState::of(readback.wait()?)), vectors)?;
        }
    }
    while readback.is_pending() {
        seen(state.insert(CgState::of(readback.wait()?)), vectors)?;
    }
    Ok((state.expect("that of the start at least"), is_paused))
}
