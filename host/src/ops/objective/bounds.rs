//! Objectives whose slopes are bounded before a row is known: products of the Hessian, by the vectors that they are made of, and
//! logistic regression, by its targets. So is the scale of fixed-point sums of them known, too.

use super::super::forms::Within;
use super::super::{Number, OpError};
use super::{Evaluation, Intercept, Loss};
use crate::device::{Buffer, Device};
use crate::plan::fused::Product;

/// What bounds the slopes of an objective, if anything does that is known before X·y; `one` is [that](one_of) of its loss.
///
/// Least squares without targets have gᵣ = vᵣ·((X·y)ᵣ + c), logistic regression vᵣ·(σ(tᵣ) − bᵣ), of which σ is 1 at most.
pub(super) fn bounds<'a, T: Number>(
    evaluation: &Evaluation<'a, T>,
    y: &'a Buffer<T>,
    one: Option<&'a Buffer<T>>,
) -> Option<Within<'a, T>> {
    let (product, input, shift) = match (evaluation.loss, evaluation.target) {
        (Loss::Squared, None) if evaluation.offset.is_none() => match evaluation.intercept {
            Intercept::Absent => (Product::Fused, y, None),
            Intercept::Given(c) => (Product::Fused, y, Some(c)),
            Intercept::Last => return None,
        },
        (Loss::Logistic, Some(target)) => (Product::Transposed, target, Some(one?)),
        _ => return None,
    };
    let is_plain = evaluation.scale == <T as gpu_kernels::Real>::ONE;
    is_plain.then_some(Within {
        product,
        input,
        weights: evaluation.weights,
        shift,
    })
}

/// 1, for losses whose slopes it bounds.
pub(super) fn one_of<T: Number>(device: &Device, loss: Loss) -> Result<Option<Buffer<T>>, OpError> {
    match loss {
        Loss::Logistic => Ok(Some(device.upload(&[<T as gpu_kernels::Real>::ONE])?)),
        _ => Ok(None),
    }
}
