//! What is looked at once a solve has ended.

use super::FitError;
use super::cg::Convergence;
use super::design::Design;
use super::solver::Solved;
use super::spec::{ObjectiveSpec, SampleLoss};
use crate::device::Buffer;
use crate::matrix::{Dtype, Element};
use crate::ops::objective::Loss;
use crate::ops::{Number, OpError};
use crate::parallel;

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
    let of_block = |number: usize| -> f64 {
        let start = number * BLOCK;
        let rows = parallel::chunk(&predictors, BLOCK, number).iter();
        let rows = rows.zip(&targets[start..]).zip(&weights[start..]);
        rows.map(|((t, b), v)| {
            let point = loss.at(Element::to_f64(*t), Element::to_f64(*b));
            point.weighted(*v).loss
        })
        .sum()
    };
    let sums = parallel::map(predictors.len().div_ceil(BLOCK), of_block);
    Ok(sums.into_iter().sum())
}

/// Tells an unpenalised logistic fit to separable classes from one that converged, and adds up the deviance of
/// an f32 model in f64, because it is a small difference of large losses.
pub(super) fn settle<T: Number>(
    design: &Design<'_, T>,
    spec: &ObjectiveSpec,
    rows: Rows<'_, T>,
    solved: Solved<T>,
) -> Result<Solved<T>, FitError> {
    let penalised = spec.l1 > 0.0 || spec.l2 > 0.0;
    match spec.loss {
        SampleLoss::Single(Loss::Logistic) if !penalised => {
            let separated = separates(design, &solved.theta, &rows)?;
            let convergence = if separated {
                Convergence::Separable
            } else {
                solved.convergence
            };
            Ok(Solved {
                convergence,
                ..solved
            })
        }
        SampleLoss::Single(loss @ Loss::Glm { .. }) if T::DTYPE == Dtype::F32 => {
            let theta = solved.theta.to_vec()?;
            let losses = losses(design, loss, &theta, &rows)?;
            let (coef, _) = theta.split_at(design.coefficients());
            let sum =
                |f: fn(f64) -> f64| -> f64 { coef.iter().map(|w| f(Element::to_f64(*w))).sum() };
            let ridge = 0.5 * spec.l2 * sum(|w| w * w);
            Ok(Solved {
                objective: losses + ridge + spec.l1 * sum(f64::abs),
                ..solved
            })
        }
        _ => Ok(solved),
    }
}
