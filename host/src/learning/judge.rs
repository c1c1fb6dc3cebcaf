//! What is looked at once a solve has ended.

use rayon::prelude::*;

use super::design::Design;
use crate::device::Buffer;
use crate::matrix::Element;
use crate::ops::objective::Loss;
use crate::ops::{Number, OpError};

/// Rows whose losses are added by one thread; the blocks are added in order, so that the number of threads does
/// not matter.
const BLOCK: usize = 4096;

/// Whether every row with weight is on its class's side.
pub(super) fn separates<T: Number>(
    design: &Design<'_, T>,
    theta: &Buffer<T>,
    (targets, weights): (&[T], &[T]),
) -> Result<bool, OpError> {
    let predictors = design.forward(&theta.to_vec()?)?;
    let half = <T as Element>::from_f64(0.5);
    let zero = T::default();
    let rows = predictors.iter().zip(targets).zip(weights);
    Ok(rows
        .into_iter()
        .all(|((t, b), v)| *v == zero || *t != zero && (*b > half) == (*t > zero)))
}

/// Σ v·loss in f64, from the linear predictors in T.
pub(super) fn losses<T: Number>(
    design: &Design<'_, T>,
    loss: Loss,
    theta: &[T],
    (targets, weights): (&[T], &[f64]),
) -> Result<f64, OpError> {
    let predictors = design.forward(theta)?;
    let rows = predictors
        .par_chunks(BLOCK)
        .zip(targets.par_chunks(BLOCK).zip(weights.par_chunks(BLOCK)));
    let sums: Vec<f64> = rows
        .map(|(t, (targets, weights))| {
            let rows = t.iter().zip(targets).zip(weights);
            rows.map(|((t, b), v)| {
                let point = loss.at(Element::to_f64(*t), Element::to_f64(*b));
                point.weighted(*v).loss
            })
            .sum()
        })
        .collect();
    Ok(sums.into_iter().sum())
}
