//! What is looked at once a solve has ended.

use super::FitError;
use super::cg::Convergence;
use super::design::Design;
use super::sample_weights::SampleWeights;
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
    pub(super) weights: &'a SampleWeights,
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
    let is_apart = |row: usize| {
        let (t, b) = (predictors[row], rows.targets[row]);
        rows.weights.at(row) == 0.0 || t != zero && (b > half) == (t > zero)
    };
    let fails = |number: usize| {
        let mut rows = number * BLOCK..predictors.len().min((number + 1) * BLOCK);
        rows.any(|row| !is_apart(row)).then_some(())
    };
    Ok(parallel::first(predictors.len().div_ceil(BLOCK), fails).is_none())
}

/// Σ v·loss in f64, from the linear predictors in T.
pub(super) fn losses<T: Number>(
    design: &Design<'_, T>,
    loss: Loss,
    theta: &[T],
    rows: &Rows<'_, T>,
) -> Result<f64, OpError> {
    let predictors = rows.predictors(design, theta)?;
    let of_block = |number: usize| -> f64 {
        let start = number * BLOCK;
        let pairs = parallel::chunk(&predictors, BLOCK, number).iter();
        let pairs = pairs.zip(&rows.targets[start..]).enumerate();
        pairs
            .map(|(at, (t, b))| {
                let point = loss.at(Element::to_f64(*t), Element::to_f64(*b));
                point.weighted(rows.weights.at(start + at)).loss
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
