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

/// What rows are judged by, one of each for every row.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a, T> {
    pub(super) targets: &'a [T],
    pub(super) weights: &'a [T],
    /// The weights in f64.
    pub(super) exact: &'a [f64],
    pub(super) offset: Option<&'a [f64]>,
}

impl<T: Number> Rows<'_, T> {
    /// X̃·θ with the offset.
    fn predictors(&self, design: &Design<'_, T>, theta: &[T]) -> Result<Vec<T>, OpError> {
        let mut predictors = design.forward(theta)?;
        if let Some(offset) = self.offset {
            let pairs = predictors.iter_mut().zip(offset);
            pairs.for_each(|(t, o)| *t = <T as Element>::from_f64(Element::to_f64(*t) + o));
        }
        Ok(predictors)
    }
}

/// Whether every row with weight is on its class's side.
pub(super) fn separates<T: Number>(
    design: &Design<'_, T>,
    theta: &Buffer<T>,
    rows: &Rows<'_, T>,
) -> Result<bool, OpError> {
    let predictors = rows.predictors(design, &theta.to_vec()?)?;
    let half = <T as Element>::from_f64(0.5);
    let zero = T::default();
    let rows = predictors.iter().zip(rows.targets).zip(rows.weights);
    Ok(rows
        .into_iter()
        .all(|((t, b), v)| *v == zero || *t != zero && (*b > half) == (*t > zero)))
}

/// Σ v·loss in f64, from the linear predictors in T.
pub(super) fn losses<T: Number>(
    design: &Design<'_, T>,
    loss: Loss,
    theta: &[T],
    rows: &Rows<'_, T>,
) -> Result<f64, OpError> {
    let predictors = rows.predictors(design, theta)?;
    let (targets, weights) = (rows.targets, rows.exact);
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
