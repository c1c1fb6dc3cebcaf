//! Smooth objectives: conjugate gradients where those are wanted, Newton's method else.

use super::{Begin, Limits, Objective, Solved, Solver, Watch, conjugate, newton};
use crate::device::Buffer;
use crate::learning::leg::Pace;
use crate::ops::{Number, OpError};

/// Minimises `objective` from where it begins; `judged` says that coefficients of each iteration are wanted.
pub(in crate::learning) fn minimise<T: Number>(
    objective: &mut dyn Objective<T>,
    begin: Begin<T>,
    inverse: Buffer<T>,
    (limits, (solver, judged)): (&Limits, (Solver, bool)),
    watch: &mut Watch<'_, T>,
) -> Result<Solved<T>, OpError> {
    if solver != Solver::ConjugateGradient {
        return newton::minimise(objective, begin, inverse, limits, watch);
    }
    let pace = match judged {
        true => Pace::Lockstep,
        false => Pace::of(objective),
    };
    conjugate::minimise(objective, begin, inverse, (limits, pace), watch)
}
