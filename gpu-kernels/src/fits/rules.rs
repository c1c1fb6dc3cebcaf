//! What a fit does next: rules of Newton's method with a line search, without its arithmetic. The CPU follows the same.

use super::args::{DEPENDENT, ITERATION_LIMIT, MET, NOT_FINITE, PRECISION_LIMIT, STALLED};
use crate::math::abs;
use crate::scalar::Real;

/// Share of the predicted decrease that a step has to bring.
const SUFFICIENT: f64 = 1e-4;
/// Parts of a step that are tried.
const TRIALS: u32 = 60;
/// A difference of values that rounding alone can make, of the value.
const NOISE: f64 = 8.0 * f64::EPSILON;
/// What a step may promise to take off F, of F, for a fit whose gradient is short enough to end.
const LOW: f64 = 1e-7;
/// Share of the first F that counts as that of a fit without error.
const NOTHING: f64 = 1e-6;
/// Steps at most once the gradient is short enough: more say that the minimum is not at a finite distance.
const FURTHER: u32 = 10;
/// Share of a mean square that a variance may fall to by rounding.
const CONSTANT: f64 = 64.0 * f64::EPSILON;
/// Share of a diagonal element that its pivot may fall to, for each coordinate.
const CANCELLED: f64 = 1e3 * f64::EPSILON;

/// F and the length of its gradient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct At {
    /// F.
    pub value: f64,
    /// ‖gradient‖, in units in which columns are standardised, if they are.
    pub norm: f64,
}

impl At {
    /// Before there is any.
    pub const NOWHERE: At = At {
        value: 0.0,
        norm: 0.0,
    };

    #[inline(always)]
    fn is_finite(&self) -> bool {
        self.value.is_finite() && self.norm.is_finite()
    }
}

/// When a fit ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stop {
    /// ‖gradient‖ over that at the start.
    pub tolerance: f64,
    /// Steps.
    pub most_steps: u32,
}

/// What a point is evaluated for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The fit begins there.
    First,
    /// A part of a step, which has to bring what it promises.
    Search,
    /// A step that promises less than rounding hides: the gradient alone can judge it.
    Wander,
}

/// Where a fit stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Course {
    phase: Phase,
    at: At,
    first: At,
    steps: u32,
    /// Steps since the gradient has been short enough.
    further: u32,
    /// What the step promises: half of it, and to first order all.
    decrease: f64,
    part: f64,
    trials: u32,
    dependent: u32,
}

/// What becomes of a point that was evaluated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrival {
    /// The fit stands there.
    Taken,
    /// This part of the step is tried instead.
    Shorter(f64),
    /// The fit ends where it stood.
    Ended(u32),
}

/// What becomes of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// It is tried.
    Whole,
    /// It is taken, and the fit ends: what a short step leaves of the distance is its square.
    Last,
    /// The fit ends where it stands.
    Ended(u32),
}

impl Course {
    /// Before the first point.
    #[inline(always)]
    pub const fn new() -> Course {
        Course {
            phase: Phase::First,
            at: At::NOWHERE,
            first: At::NOWHERE,
            steps: 0,
            further: 0,
            decrease: 0.0,
            part: 1.0,
            trials: 0,
            dependent: 0,
        }
    }

    /// Judges the point that was tried.
    #[inline(always)]
    pub fn arrive(&mut self, next: At) -> Arrival {
        if !self.is_better(&next) {
            return self.shorten();
        }
        self.at = next;
        match self.phase {
            Phase::First => self.first = next,
            _ => self.steps += 1,
        }
        match next.is_finite() {
            true => Arrival::Taken,
            false => Arrival::Ended(NOT_FINITE),
        }
    }

    #[inline(always)]
    fn is_better(&self, next: &At) -> bool {
        let wanted = (-SUFFICIENT * self.part).fma(self.decrease, self.at.value);
        match self.phase {
            Phase::First => true,
            Phase::Search => next.is_finite() && next.value <= wanted,
            Phase::Wander => next.is_finite() && next.norm < self.at.norm,
        }
    }

    #[inline(always)]
    fn shorten(&mut self) -> Arrival {
        if self.phase == Phase::Wander {
            return Arrival::Ended(PRECISION_LIMIT);
        }
        self.trials += 1;
        if self.trials == TRIALS {
            return Arrival::Ended(STALLED);
        }
        self.part *= 0.5;
        Arrival::Shorter(self.part)
    }

    /// Judges the step from where the fit stands: `decrease` is gᵀH⁻¹g.
    #[inline(always)]
    pub fn aim(&mut self, decrease: f64, is_dependent: bool, stop: Stop) -> Aim {
        self.decrease = decrease;
        if is_dependent {
            self.dependent = DEPENDENT;
        }
        let size = abs(self.at.value).max(NOTHING * abs(self.first.value));
        if self.at.norm <= stop.tolerance * self.first.norm {
            if decrease <= LOW * size {
                return Aim::Last;
            }
            if self.further == FURTHER {
                return Aim::Ended(MET);
            }
            self.further += 1;
        }
        if self.steps == stop.most_steps {
            return Aim::Ended(ITERATION_LIMIT);
        }
        self.phase = match decrease <= NOISE * size {
            true => Phase::Wander,
            false => Phase::Search,
        };
        (self.part, self.trials) = (1.0, 0);
        Aim::Whole
    }

    /// The word for how it ended.
    #[inline(always)]
    pub fn word(&self, status: u32) -> u32 {
        status | self.dependent
    }

    /// F, ‖gradient‖ over that at the start, and steps.
    #[inline(always)]
    pub fn figures(&self) -> [f64; 3] {
        let ratio = match self.at.norm == 0.0 {
            true => 0.0,
            false => self.at.norm / self.first.norm,
        };
        [self.at.value, ratio, self.steps as f64]
    }
}

impl Default for Course {
    fn default() -> Self {
        Self::new()
    }
}

/// One over the root of a pivot, of which `before` was the diagonal element; 0 for one that has cancelled, whose coordinate does
/// not move.
#[inline(always)]
pub fn inverse_root(before: f64, left: f64, order: u32) -> f64 {
    match left > CANCELLED * order as f64 * before {
        true => 1.0 / crate::math::Elementary::sqrt(left),
        false => 0.0,
    }
}

/// The variance of a column of this mean and mean square; 0 where it is constant.
#[inline(always)]
pub fn variance(mean: f64, square: f64) -> f64 {
    let variance = (-mean).fma(mean, square);
    match variance > CONSTANT * square {
        true => variance,
        false => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STOP: Stop = Stop {
        tolerance: 1e-3,
        most_steps: 2,
    };

    fn at(value: f64, norm: f64) -> At {
        At { value, norm }
    }

    #[test]
    fn a_step_that_brings_too_little_is_halved() {
        let mut course = Course::new();
        assert_eq!(course.arrive(at(10.0, 1.0)), Arrival::Taken);
        assert_eq!(course.aim(2.0, false, STOP), Aim::Whole);
        assert_eq!(course.arrive(at(10.0, 0.1)), Arrival::Shorter(0.5));
        assert_eq!(course.arrive(at(f64::NAN, 0.1)), Arrival::Shorter(0.25));
        assert_eq!(course.arrive(at(9.0, 0.1)), Arrival::Taken);
        assert_eq!(course.figures(), [9.0, 0.1, 1.0]);
    }

    #[test]
    fn each_end_is_reached() {
        let mut course = Course::new();
        assert_eq!(course.arrive(at(f64::NAN, 1.0)), Arrival::Ended(NOT_FINITE));
        course = Course::new();
        course.arrive(at(1.0, 1.0));
        course.aim(0.5, true, STOP);
        for _ in 1..TRIALS {
            assert!(matches!(course.arrive(at(2.0, 1.0)), Arrival::Shorter(_)));
        }
        assert_eq!(course.arrive(at(2.0, 1.0)), Arrival::Ended(STALLED));
        assert_eq!(course.word(STALLED), STALLED | DEPENDENT);
        assert_eq!(course.arrive(at(0.5, 1e-4)), Arrival::Taken);
        assert_eq!(course.aim(1e-9, false, STOP), Aim::Last);
        // A gradient that is short while the step is long: separable classes.
        let further = (0..FURTHER).map(|_| {
            let mut course = course;
            course.steps = 0;
            course.aim(1.0, false, STOP)
        });
        assert!(further.into_iter().all(|aim| aim == Aim::Whole));
        course.steps = 2;
        course.at.norm = 1.0;
        assert_eq!(course.aim(1.0, false, STOP), Aim::Ended(ITERATION_LIMIT));
        course.steps = 0;
        assert_eq!(course.aim(1e-16, false, STOP), Aim::Whole);
        assert_eq!(course.arrive(at(0.5, 1.0)), Arrival::Ended(PRECISION_LIMIT));
    }

    #[test]
    fn pivots_and_variances_that_cancel_are_none() {
        assert_eq!(inverse_root(4.0, 4.0, 2), 0.5);
        assert_eq!(inverse_root(4.0, 1e-14, 2), 0.0);
        assert_eq!(inverse_root(0.0, f64::NAN, 2), 0.0);
        assert_eq!((variance(3.0, 9.0), variance(0.0, 9.0)), (0.0, 9.0));
    }
}
