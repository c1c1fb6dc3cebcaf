//! Small fits on the CPU: one after the other on each core.

use gpu_kernels::fits::rules::Stop;

use super::values::{FitRows, FitRules, SmallFit};
use crate::cpu::fits as cpu;
use crate::ops::Number;
use crate::parallel;

/// What lies on the CPU.
pub(super) struct Arrays<'a, T> {
    /// n.
    pub(super) cols: usize,
    /// Elements from row to row.
    pub(super) pitch: usize,
    pub(super) x: &'a [T],
    pub(super) targets: &'a [T],
    pub(super) weights: Option<&'a [T]>,
    pub(super) offset: Option<&'a [T]>,
}

impl<'a, T: Number> Arrays<'a, T> {
    /// None where X is on another device.
    pub(super) fn of(rows: &FitRows<'a, T>) -> Option<Arrays<'a, T>> {
        Some(Arrays {
            cols: rows.cols,
            pitch: rows.pitch,
            x: rows.x.as_host_slice()?,
            targets: rows.targets.as_host_slice()?,
            weights: rows.weights.and_then(|weights| weights.as_host_slice()),
            offset: rows.offset.and_then(|offset| offset.as_host_slice()),
        })
    }
}

/// Minimises from θ, n + 1 elements for each fit, which become where it ends; how each ended, and its figures.
pub(super) fn minimise<T: Number>(
    arrays: &Arrays<'_, T>,
    rules: &FitRules<'_>,
    fits: &[SmallFit],
    theta: &mut [f64],
) -> Vec<(u32, [f64; 3])> {
    let places = theta.chunks_exact_mut(arrays.cols + 1).zip(fits);
    parallel::map_items(places, |_, (theta, fit)| {
        cpu::minimise(&one(arrays, rules, fit), theta)
    })
}

fn one<'a, T: Number>(
    arrays: &Arrays<'a, T>,
    rules: &FitRules<'a>,
    fit: &SmallFit,
) -> cpu::Fit<'a, T> {
    let of = |all: &'a [T], first: usize| &all[first..][..fit.rows];
    cpu::Fit {
        loss: rules.loss,
        x: arrays.x.get(fit.row * arrays.pitch..).unwrap_or_default(),
        pitch: arrays.pitch,
        cols: arrays.cols,
        targets: of(arrays.targets, fit.target),
        weights: arrays.weights.map(|weights| of(weights, fit.weight)),
        offset: arrays.offset.map(|offset| of(offset, fit.row)),
        scale: fit.scale,
        ridge: [fit.intercept_l2, fit.l2],
        factors: rules.factors,
        has_intercept: rules.has_intercept,
        standardizes: rules.standardizes,
        stop: Stop {
            tolerance: rules.tolerance,
            most_steps: rules.max_iter,
        },
    }
}
