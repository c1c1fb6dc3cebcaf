//! A pass over the rows of a fit: F, its gradient and its Hessian at one point.

use super::args::FitLoss;
use super::hessian::{Place, SIDE, Sums, put};
use super::rows::{Chunk, Fit};
use super::rules::At;
use crate::cta::{Cta, WARP};
use crate::math::Elementary;
use crate::objective::Point;
use crate::scalar::Real;
use crate::verbs::{lane, sum_lanes};

/// Places of figures.
pub(super) mod figure {
    pub const VALUE: usize = 0;
    pub const NORM: usize = 1;
    pub const DECREASE: usize = 2;
    pub const IS_DEPENDENT: usize = 3;
}

/// What rows are judged for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Judged {
    /// F and its derivatives.
    ByLoss,
    /// How many have weight, and X̃ᵀX̃ of those: deviations are those of the rows that take part.
    ByPresence,
}

const NOTHING: Point<f64> = Point {
    loss: 0.0,
    slope: 0.0,
    curvature: 0.0,
};

/// Adds the penalties to the sums at the point that is tried, and says what it is worth; the gradient is the last row of the
/// Hessian. All threads call, and a barrier is at the end.
#[inline(always)]
#[track_caller]
pub(super) fn with_penalties<C: Cta, T: Elementary>(cta: &C, fit: &Fit<'_, '_, T>) -> At {
    if cta.thread() < WARP {
        add_penalties(cta, fit);
    }
    cta.sync();
    let figures = fit.layout(cta).figures();
    At {
        value: cta.shared_read(figures, figure::VALUE),
        norm: cta.shared_read(figures, figure::NORM),
    }
}

/// Sums over all rows at the point that is tried; a barrier is at the end.
#[inline(always)]
#[track_caller]
pub(super) fn sums<C: Cta, T: Elementary, L: FitLoss>(
    cta: &C,
    fit: &Fit<'_, '_, T>,
    judged: Judged,
) {
    let mut place = Place { row: 0, col: 0 };
    while place.row < fit.cols {
        let (sums, points) = of_warp::<C, T, L>(cta, fit, (judged, place));
        by_turns(cta, fit, place, (sums, points));
        place = match place.col == place.row {
            true => Place {
                row: place.row + SIDE,
                col: 0,
            },
            false => Place {
                col: place.col + SIDE,
                ..place
            },
        };
    }
}

/// The sums of this warp's rows.
#[inline(always)]
#[track_caller]
fn of_warp<C: Cta, T: Elementary, L: FitLoss>(
    cta: &C,
    fit: &Fit<'_, '_, T>,
    (judged, place): (Judged, Place),
) -> (Sums, Point<f64>) {
    let (warp, warps) = (cta.thread() / WARP, fit.layout(cta).warps);
    let slopes = fit.layout(cta).slopes(warp);
    let (mut sums, mut points) = (Sums::ZERO, NOTHING);
    let (mut number, mut buffer) = (warp, 0);
    fit.begin(cta, number, buffer);
    while number < fit.chunks() {
        fit.begin(cta, number + warps, 1 - buffer);
        cta.copies_done::<1>();
        // All lanes have their copies, and have read the slopes of the chunk before.
        cta.sync_warp();
        let chunk = fit.chunk(cta, number, buffer);
        let point = judge::<C, T, L>(cta, fit, &chunk, judged);
        points = Point {
            loss: points.loss + point.loss,
            slope: points.slope + point.slope,
            curvature: points.curvature + point.curvature,
        };
        cta.shared_write(slopes, lane(cta) as usize, point.slope);
        cta.shared_write(slopes, (WARP + lane(cta)) as usize, point.curvature);
        cta.sync_warp();
        sums.add(cta, &chunk, place, slopes);
        // The buffer is copied to next.
        cta.sync_warp();
        number += warps;
        buffer = 1 - buffer;
    }
    cta.copies_done::<0>();
    (sums, points)
}

/// What this lane's row contributes. Lanes begin at different columns, so that rows of 32 elements lie in all banks.
#[inline(always)]
#[track_caller]
fn judge<C: Cta, T: Elementary, L: FitLoss>(
    cta: &C,
    fit: &Fit<'_, '_, T>,
    chunk: &Chunk<T>,
    judged: Judged,
) -> Point<f64> {
    let own = cta.fresh(lane(cta));
    if own >= chunk.rows {
        return NOTHING;
    }
    let row = chunk.first + own;
    if judged == Judged::ByPresence {
        let takes_part = fit.weight(cta, row) != 0.0;
        let curvature = if takes_part { 1.0 } else { 0.0 };
        return Point {
            curvature,
            ..NOTHING
        };
    }
    let theta = fit.layout(cta).trial();
    let mut dot = cta.shared_read(theta, 0);
    let mut col = own % fit.cols;
    for _ in 0..fit.cols {
        let w = cta.shared_read(theta, (col + 1) as usize);
        dot = chunk.at(cta, own, col).fma(w, dot);
        col = match col + 1 == fit.cols {
            true => 0,
            false => col + 1,
        };
    }
    fit.point::<C, L>(cta, row, dot)
}

/// Adds up what warps have, the first to the last.
#[inline(always)]
#[track_caller]
fn by_turns<C: Cta, T: Elementary>(
    cta: &C,
    fit: &Fit<'_, '_, T>,
    place: Place,
    (sums, points): (Sums, Point<f64>),
) {
    let warp = cta.thread() / WARP;
    let mut turn = 0;
    while turn < fit.layout(cta).warps {
        if turn == warp {
            // A turn like the others: no code of its own.
            let begins = cta.fresh(turn) == 0;
            sums.flush(cta, fit, place, begins);
            if place.row == 0 {
                flush_points(cta, fit, points, begins);
            }
        }
        cta.sync();
        turn += 1;
    }
}

/// Σ loss, Σ slope and Σ curvature of the warp's rows.
#[inline(always)]
#[track_caller]
fn flush_points<C: Cta, T: Elementary>(
    cta: &C,
    fit: &Fit<'_, '_, T>,
    points: Point<f64>,
    begins: bool,
) {
    let loss = sum_lanes::<C, f64, WARP>(cta, points.loss);
    let slope = sum_lanes::<C, f64, WARP>(cta, points.slope);
    let curvature = sum_lanes::<C, f64, WARP>(cta, points.curvature);
    if lane(cta) == 0 {
        let layout = &fit.layout(cta);
        put(cta, layout.figures(), figure::VALUE as u32, (loss, begins));
        put(cta, layout.row(layout.order), 0, (slope, begins));
        put(cta, layout.row(0), 0, (curvature, begins));
    }
}

/// Adds the penalties, and leaves out what is held; the first warp calls.
#[inline(always)]
#[track_caller]
fn add_penalties<C: Cta, T: Elementary>(cta: &C, fit: &Fit<'_, '_, T>) {
    let layout = &fit.layout(cta);
    let theta = layout.trial();
    let last = layout.row(layout.order);
    let (mut penalty, mut squares) = (0.0, 0.0);
    let mut i = lane(cta);
    while i < layout.order {
        let at = i as usize;
        let ridge = cta.shared_read(layout.ridge(), at);
        let unit = cta.shared_read(layout.units(), at);
        let own = cta.shared_read(theta, at);
        let slope = ridge.fma(own, cta.shared_read(last, at));
        // What is held does not move.
        let slope = if unit == 0.0 { 0.0 } else { slope };
        let row = layout.row(i);
        let curvature = cta.shared_read(row, at) + ridge;
        cta.shared_write(last, at, slope);
        cta.shared_write(row, at, if unit == 0.0 { 0.0 } else { curvature });
        if fit.args.has_intercept == 0 && i > 0 {
            cta.shared_write(row, 0, 0.0);
        }
        penalty += 0.5 * ridge * own * own;
        squares += (slope * unit) * (slope * unit);
        i += WARP;
    }
    let penalty = sum_lanes::<C, f64, WARP>(cta, penalty);
    let norm = sum_lanes::<C, f64, WARP>(cta, squares).sqrt();
    if lane(cta) == 0 {
        let figures = layout.figures();
        let value = cta.shared_read(figures, figure::VALUE);
        cta.shared_write(figures, figure::VALUE, value + penalty);
        cta.shared_write(figures, figure::NORM, norm);
    }
}
