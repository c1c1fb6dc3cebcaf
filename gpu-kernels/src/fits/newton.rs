//! Newton's method with a line search, by one block: what the rules say is done.

use super::args::{FitArgs, FitLoss, INVALID, NO_ROWS, REPORT};
use super::factor;
use super::pass::{Judged, figure, sums, with_penalties};
use super::rows::Fit;
use super::rules::{Aim, Arrival, Course, Stop, variance};
use crate::cta::{Cache, Cta, Shared, WARP};
use crate::math::Elementary;
use crate::scalar::Real;
use crate::verbs::each_of_block;

/// How a fit ended.
type End = (u32, [f64; 3]);

/// See the head of the folder.
#[inline(always)]
pub(super) fn fit<C: Cta, T: Elementary, L: FitLoss>(cta: &C, args: &FitArgs<'_, T>) {
    cta.launch_bounds::<{ super::MOST_THREADS }, 2>();
    let (status, figures) = match Fit::of(cta, args) {
        None => (INVALID, [0.0; 3]),
        Some(fit) if fit.rows == 0 => (NO_ROWS, [0.0; 3]),
        Some(fit) => minimise::<C, T, L>(cta, &fit),
    };
    if cta.thread() == 0 {
        let block = cta.block() as usize;
        for (i, figure) in figures.into_iter().enumerate() {
            cta.write(args.report, block * REPORT as usize + i, figure);
        }
        cta.write(args.status, block, status);
    }
}

/// Minimises F, and writes where.
#[inline(always)]
#[track_caller]
fn minimise<C: Cta, T: Elementary, L: FitLoss>(cta: &C, fit: &Fit<'_, '_, T>) -> End {
    begin(cta, fit);
    let mut course = Course::new();
    // Passes are made in one place: each would be a copy of their code.
    let mut judged = match fit.args.standardizes {
        0 => Judged::ByLoss,
        _ => Judged::ByPresence,
    };
    let status = loop {
        sums::<C, T, L>(cta, fit, judged);
        let goes_on = match judged {
            Judged::ByPresence => standardize(cta, fit),
            Judged::ByLoss => next(cta, fit, &mut course),
        };
        judged = Judged::ByLoss;
        if let Err(status) = goes_on {
            break course.word(status);
        }
    };
    let (theta, order) = (fit.layout(cta).theta(), fit.layout(cta).order);
    let first = cta.block() as usize * order as usize;
    cta.sync();
    each_of_block(cta, order, |i| {
        cta.write(fit.args.theta, first + i, cta.shared_read(theta, i));
    });
    (status, course.figures())
}

/// Rows, θ and ridge to shared memory.
#[inline(always)]
#[track_caller]
fn begin<C: Cta, T: Elementary>(cta: &C, fit: &Fit<'_, '_, T>) {
    fit.stage(cta);
    let (args, layout) = (fit.args, &fit.layout(cta));
    let first = cta.block() as usize * layout.order as usize;
    each_of_block(cta, layout.order, |i| {
        let is_held = i == 0 && args.has_intercept == 0;
        let theta = match is_held {
            true => 0.0,
            false => cta.read(args.theta, first + i),
        };
        let ridge = match i {
            0 => fit.ridge[1],
            _ if args.factors.is_some() => {
                fit.ridge[0] * cta.load(args.factors, i - 1, Cache::Keep)
            }
            _ => fit.ridge[0],
        };
        cta.shared_write(layout.theta(), i, theta);
        cta.shared_write(layout.trial(), i, theta);
        cta.shared_write(layout.ridge(), i, if is_held { 0.0 } else { ridge });
        cta.shared_write(layout.units(), i, if is_held { 0.0 } else { 1.0 });
    });
    cta.sync();
}

/// Makes the ridge one on columns of deviation 1; fails where no row has weight.
#[inline(always)]
#[track_caller]
fn standardize<C: Cta, T: Elementary>(cta: &C, fit: &Fit<'_, '_, T>) -> Result<(), u32> {
    let layout = &fit.layout(cta);
    let total: f64 = cta.shared_read(layout.row(0), 0);
    each_of_block(cta, fit.cols, |col| {
        let (row, at) = (layout.row(col as u32 + 1), col + 1);
        let mean = cta.shared_read(row, 0) / total;
        let variance = variance(mean, cta.shared_read(row, at) / total);
        let ridge: f64 = cta.shared_read(layout.ridge(), at);
        // A constant column is held beside an intercept, and taken as it is where there is none.
        let (unit, square) = match (variance > 0.0, fit.args.has_intercept) {
            (true, _) => (1.0 / variance.sqrt(), variance),
            (false, 0) => (1.0, 1.0),
            (false, _) => (0.0, 0.0),
        };
        cta.shared_write(layout.ridge(), at, ridge * square);
        cta.shared_write(layout.units(), at, unit);
    });
    cta.sync();
    match total > 0.0 {
        true => Ok(()),
        false => Err(NO_ROWS),
    }
}

/// What to do after a pass; the status at the end. All threads come to the same.
#[inline(always)]
#[track_caller]
fn next<C: Cta, T: Elementary>(
    cta: &C,
    fit: &Fit<'_, '_, T>,
    course: &mut Course,
) -> Result<(), u32> {
    let layout = &fit.layout(cta);
    match course.arrive(with_penalties(cta, fit)) {
        Arrival::Ended(status) => return Err(status),
        Arrival::Shorter(part) => {
            advance(cta, fit, layout.trial(), part);
            return Ok(());
        }
        Arrival::Taken => each_of_block(cta, layout.order, |i| {
            cta.shared_write(layout.theta(), i, cta.shared_read(layout.trial(), i));
        }),
    }
    aim(cta, fit, course)
}

/// Takes aim at the next point, unless the fit ends here.
#[inline(always)]
#[track_caller]
fn aim<C: Cta, T: Elementary>(
    cta: &C,
    fit: &Fit<'_, '_, T>,
    course: &mut Course,
) -> Result<(), u32> {
    let layout = &fit.layout(cta);
    if cta.thread() < WARP {
        factor::step(cta, fit);
    }
    cta.sync();
    let decrease = cta.shared_read(layout.figures(), figure::DECREASE);
    let dependent: f64 = cta.shared_read(layout.figures(), figure::IS_DEPENDENT);
    let stop = Stop {
        tolerance: fit.args.tolerance,
        most_steps: fit.args.most_steps,
    };
    let (to, ends) = match course.aim(decrease, dependent > 0.0, stop) {
        Aim::Ended(status) => return Err(status),
        Aim::Last => (layout.theta(), Err(super::MET)),
        Aim::Whole => (layout.trial(), Ok(())),
    };
    advance(cta, fit, to, 1.0);
    ends
}

/// θ less a part of the step.
#[inline(always)]
#[track_caller]
fn advance<C: Cta, T: Elementary>(cta: &C, fit: &Fit<'_, '_, T>, to: Shared<f64>, part: f64) {
    let layout = &fit.layout(cta);
    each_of_block(cta, layout.order, |i| {
        let step: f64 = cta.shared_read(layout.step(), i);
        let theta = cta.shared_read(layout.theta(), i);
        cta.shared_write(to, i, (-part).fma(step, theta));
    });
    cta.sync();
}
