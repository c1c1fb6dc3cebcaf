//! Fits of few columns, of which a device makes many in one launch ([`crate::ops::fits`]): which fits these are, what they are
//! told, and what their ends mean.

use std::ops::Range;

use super::cg::Convergence;
use super::controls::Controls;
use super::solver::Solver;
use super::spec::{ObjectiveSpec, SampleLoss};
use super::start::first_predictor;
use crate::matrix::{CsrMatrix, Element, Features, Storage};
use crate::ops::Number;
use crate::ops::fits::{End, FitRules, MOST_COLUMNS, Outcome};
use crate::ops::objective::Loss;

/// The loss of fits that can be made together: of one predictor, without an l1 term, of few columns and by no solver that was
/// requested for something else.
pub(super) fn loss_of(cols: usize, spec: &ObjectiveSpec, controls: &Controls) -> Option<Loss> {
    let is_asked = matches!(controls.solver, Solver::Auto | Solver::NewtonCholesky);
    match spec.loss {
        SampleLoss::Single(loss) if is_narrow(cols) && is_asked && spec.l1 == 0.0 => {
            Some(loss).filter(|_| !controls.non_negative)
        }
        _ => None,
    }
}

/// Whether a launch knows this many columns.
pub(super) fn is_narrow(cols: usize) -> bool {
    (1..=MOST_COLUMNS as usize).contains(&cols)
}

/// What all of them are told.
pub(super) fn rules<'a>(
    loss: Loss,
    controls: &Controls,
    factors: Option<&'a [f64]>,
) -> FitRules<'a> {
    FitRules {
        loss,
        has_intercept: controls.fit_intercept,
        standardizes: controls.standardize,
        factors,
        tolerance: controls.tolerance,
        max_iter: u32::try_from(controls.max_iter).unwrap_or(u32::MAX),
    }
}

/// Where a fit begins: the model without columns, of targets with this mean.
pub(super) fn intercept(loss: Loss, spec: &ObjectiveSpec, controls: &Controls, mean: f64) -> f64 {
    let is_free = controls.fit_intercept && spec.intercept_l2 == 0.0;
    let alone = first_predictor(loss, mean);
    if is_free && alone.is_finite() {
        alone
    } else {
        0.0
    }
}

/// How a fit ended; none where a solver by itself may do better, or says what is wrong.
pub(super) fn convergence(outcome: &Outcome) -> Option<Convergence> {
    let convergence = match outcome.end {
        End::Met => Convergence::Converged,
        End::PrecisionLimit => Convergence::PrecisionLimit,
        End::IterationLimit => Convergence::IterationLimit,
        End::Stalled | End::NotFinite | End::NoRows => return None,
    };
    Some(convergence).filter(|_| !outcome.is_dependent)
}

/// The intercept and the coefficients of θ, as T has them.
pub(super) fn rounded<T: Number>(theta: &[f64]) -> (f64, Vec<f64>) {
    let rounded = |w: &f64| Element::to_f64(<T as Element>::from_f64(*w));
    (rounded(&theta[0]), theta[1..].iter().map(rounded).collect())
}

/// Writes elements of X, row by row without gaps.
pub(super) fn fill_rows<T: Number>(features: &Features<T>, range: Range<usize>, to: &mut [T]) {
    if let Storage::Dense(x) = features.storage()
        && let Some(all) = x.to_slice()
    {
        return to.copy_from_slice(&all[range]);
    }
    gather_rows(features, range, to, |row| row);
}

/// [`fill_rows`] of an X that has row `row(i)` of this one at place i.
pub(super) fn gather_rows<T: Number>(
    features: &Features<T>,
    range: Range<usize>,
    to: &mut [T],
    row: impl Fn(usize) -> usize,
) {
    let cols = features.cols();
    match features.storage() {
        Storage::Dense(x) => match x.to_slice() {
            Some(all) => each_row(cols, range, to, |place, part, to| {
                to.copy_from_slice(&all[row(place) * cols..][part]);
            }),
            None => each_row(cols, range, to, |place, part, to| {
                let row = x.row(row(place));
                to.iter_mut().zip(part).for_each(|(to, j)| *to = row[j]);
            }),
        },
        Storage::Sparse(x) => each_row(cols, range, to, |place, part, to| {
            spread(x, row(place), part, to);
        }),
    }
}

/// Calls `copy` with each place of a range of elements, which of the columns are wanted, and where.
fn each_row<T>(
    cols: usize,
    range: Range<usize>,
    to: &mut [T],
    copy: impl Fn(usize, Range<usize>, &mut [T]),
) {
    let (mut place, mut col, mut rest) = (range.start / cols, range.start % cols, to);
    while !rest.is_empty() {
        let (own, others) = rest.split_at_mut(rest.len().min(cols - col));
        copy(place, col..col + own.len(), own);
        (place, col, rest) = (place + 1, 0, others);
    }
}

/// Writes some columns of a sparse row.
fn spread<T: Number>(x: &CsrMatrix<T>, row: usize, part: Range<usize>, to: &mut [T]) {
    to.fill(T::default());
    let offsets = x.indptr();
    let offsets = &offsets.raw_storage()[row..=row + 1];
    for entry in offsets[0] as usize..offsets[1] as usize {
        let col = x.indices()[entry] as usize;
        if part.contains(&col) {
            to[col - part.start] = x.data()[entry];
        }
    }
}
