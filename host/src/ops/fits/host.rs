//! Small fits on the CPU: one after the other on each core.

use gpu_kernels::fits::rules::Stop;

use super::{FitRows, FitRules, Minima, SmallFit};
use crate::cpu::fits as cpu;
use crate::ops::{Number, OpError};
use crate::parallel;

/// What lies on the CPU.
pub(super) struct Arrays<'a, T> {
    x: &'a [T],
    targets: &'a [T],
    weights: Option<&'a [T]>,
    offset: Option<&'a [T]>,
}

impl<'a, T: Number> Arrays<'a, T> {
    /// None where X is on another device.
    pub(super) fn of(rows: &FitRows<'a, T>) -> Option<Arrays<'a, T>> {
        Some(Arrays {
            x: rows.x.as_host_slice()?,
            targets: rows.targets.as_host_slice()?,
            weights: rows.weights.and_then(|weights| weights.as_host_slice()),
            offset: rows.offset.and_then(|offset| offset.as_host_slice()),
        })
    }
}

pub(super) fn minimise<T: Number>(
    arrays: &Arrays<'_, T>,
    rows: &FitRows<'_, T>,
    rules: &FitRules<'_>,
    fits: &[SmallFit],
    start: &[f64],
) -> Result<Minima, OpError> {
    let order = rows.cols + 1;
    let mut theta = start.to_vec();
    let places = theta.chunks_exact_mut(order).zip(fits);
    let ends = parallel::map_items(places, |_, (theta, fit)| {
        cpu::minimise(&one(arrays, rows, rules, fit), theta)
    });
    let words: Vec<u32> = ends.iter().map(|(word, _)| *word).collect();
    let report: Vec<f64> = ends.iter().flat_map(|(_, figures)| *figures).collect();
    Minima::new(order, theta, &words, &report)
}

fn one<'a, T: Number>(
    arrays: &Arrays<'a, T>,
    rows: &FitRows<'_, T>,
    rules: &FitRules<'a>,
    fit: &SmallFit,
) -> cpu::Fit<'a, T> {
    let of = |all: &'a [T], first: usize| &all[first..][..fit.rows];
    cpu::Fit {
        loss: rules.loss,
        x: arrays.x.get(fit.row * rows.pitch..).unwrap_or_default(),
        pitch: rows.pitch,
        cols: rows.cols,
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
