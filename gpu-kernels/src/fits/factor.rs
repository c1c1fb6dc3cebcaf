//! A Newton step of the first warp: Cholesky of the Hessian with the gradient as its last row, and the way back.
//!
//! A column at a time, each lane some of its elements. A pivot that cancels down to rounding says that its column depends on
//! those before: its coordinate does not move. As the intercept is the first, constant columns are such.

use super::pass::figure;
use super::rows::Fit;
use super::rules::inverse_root;
use crate::cta::{Cta, Shuffle, WARP};
use crate::math::Elementary;
use crate::scalar::Real;
use crate::verbs::{FULL, lane};

/// Writes H⁻¹·gradient as the step, and what it promises: gᵀH⁻¹g.
#[inline(always)]
#[track_caller]
pub(super) fn step<C: Cta, T: Elementary>(cta: &C, fit: &Fit<'_, '_, T>) {
    let order = fit.layout(cta).order;
    let (mut decrease, mut is_dependent) = (0.0, 0.0);
    let mut k = 0;
    while k < order {
        is_dependent += column(cta, fit, k);
        let own: f64 = cta.shared_read(fit.layout(cta).row(order), k as usize);
        decrease = own.fma(own, decrease);
        k += 1;
    }
    if lane(cta) == 0 {
        let figures = fit.layout(cta).figures();
        cta.shared_write(figures, figure::DECREASE, decrease);
        cta.shared_write(figures, figure::IS_DEPENDENT, is_dependent);
    }
    back(cta, fit);
}

/// Makes column k of the factor, in whose diagonal element its inverse is; 1 where it depends on those before.
#[inline(always)]
#[track_caller]
fn column<C: Cta, T: Elementary>(cta: &C, fit: &Fit<'_, '_, T>, k: u32) -> f64 {
    let layout = &fit.layout(cta);
    let of_pivot = layout.row(k);
    let mut verdict = [0.0, 0.0];
    let mut i = k + lane(cta);
    while i <= layout.order {
        let row = layout.row(i);
        let before: f64 = cta.shared_read(row, k as usize);
        let mut left = before;
        for j in 0..k as usize {
            left = (-cta.shared_read(row, j)).fma(cta.shared_read(of_pivot, j), left);
        }
        if i == k {
            let inverse = inverse_root(before, left, layout.order);
            let cancelled = inverse == 0.0 && before > 0.0;
            verdict = [inverse, if cancelled { 1.0 } else { 0.0 }];
        } else {
            cta.shared_write(row, k as usize, left);
        }
        i += WARP;
    }
    let [inverse, is_dependent] = verdict.map(|of| cta.shuffle(of, Shuffle::Index(0), WARP, FULL));
    let mut i = k + lane(cta);
    while i <= layout.order {
        let row = layout.row(i);
        let value = match i == k {
            true => inverse,
            false => inverse * cta.shared_read(row, k as usize),
        };
        cta.shared_write(row, k as usize, value);
        i += WARP;
    }
    cta.sync_warp();
    is_dependent
}

/// Lᵀ·step = y, which is in the last row.
#[inline(always)]
#[track_caller]
fn back<C: Cta, T: Elementary>(cta: &C, fit: &Fit<'_, '_, T>) {
    let layout = &fit.layout(cta);
    let last = layout.row(layout.order);
    for turn in 0..layout.order {
        let k = layout.order - 1 - turn;
        let row = layout.row(k);
        let own = cta.shared_read(last, k as usize) * cta.shared_read(row, k as usize);
        if lane(cta) == 0 {
            cta.shared_write(layout.step(), k as usize, own);
        }
        let mut i = lane(cta);
        while i < k {
            let at = i as usize;
            let left = (-cta.shared_read(row, at)).fma(own, cta.shared_read(last, at));
            cta.shared_write(last, at, left);
            i += WARP;
        }
        cta.sync_warp();
    }
}
