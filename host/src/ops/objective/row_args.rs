//! The arguments of a launch over rows of an evaluation.

use std::ops::Range;

use gpu_kernels::objective::RowArgs;
use gpu_kernels::{In, Out};

use super::super::Number;
use super::super::launch::{slice, slice_mut};
use super::{Evaluation, Intercept, ObjectiveOut};
use crate::device::Buffer;

pub(super) const GRADIENT: &str = "an objective without a gradient takes another way";

/// The rows `range` of an evaluation, and the gradient.
pub(super) fn row_args<'a, T: Number>(
    evaluation: &Evaluation<'a, T>,
    y: &'a Buffer<T>,
    out: &'a mut ObjectiveOut<'_, T>,
    range: Range<usize>,
) -> (RowArgs<'a, T>, Option<&'a mut Buffer<T>>) {
    let of_rows = |vector: Option<&'a Buffer<T>>| vector.map_or(In::none(), |v| slice(v, &range));
    let mut gradient = out.gradient.as_deref_mut();
    let (intercept, slope) = match evaluation.intercept {
        Intercept::Absent => (In::none(), Out::none()),
        Intercept::Given(c) => (c.input(), Out::none()),
        Intercept::Last => (
            last_of(y),
            gradient.as_deref_mut().map_or(Out::none(), last_of_mut),
        ),
    };
    let rows = RowArgs {
        loss: evaluation.loss.code(),
        scale: evaluation.scale,
        target: of_rows(evaluation.target),
        weights: of_rows(evaluation.weights),
        offset: of_rows(evaluation.offset),
        intercept,
        residual: rows_of(out.residual.as_deref_mut(), &range),
        curvature: rows_of(out.curvature.as_deref_mut(), &range),
        sums: out.sums.output(),
        slope,
        solve: out.solve.map_or(In::none(), Buffer::input),
    };
    (rows, gradient)
}

fn rows_of<'a, T: Number>(vector: Option<&'a mut Buffer<T>>, range: &Range<usize>) -> Out<'a, T> {
    vector.map_or(Out::none(), |vector| slice_mut(vector, range))
}

/// The last element of y, which [`Intercept::Last`] has.
fn last_of<T: Number>(y: &Buffer<T>) -> In<'_, T> {
    // SAFETY: the checks have found n + 1 elements, so that there is a last one.
    unsafe { In::new(y.input().pointer().add(y.len() - 1), 1) }
}

/// [`last_of`] for the gradient. Nothing else of a launch reaches that element: its w ends before it.
fn last_of_mut<'a, T: Number>(gradient: &mut Buffer<T>) -> Out<'a, T> {
    let last = gradient.len() - 1;
    // SAFETY: as in `last_of`; the buffer is borrowed mutably by the arguments that this becomes part of.
    unsafe { Out::new(gradient.output().pointer().add(last), 1) }
}
