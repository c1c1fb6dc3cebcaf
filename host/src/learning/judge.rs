//! What is looked at once a solve has ended.

use super::FitError;
use super::cg::Convergence;
use super::design::Design;
use super::row_targets::RowTargets;
use super::sample_weights::SampleWeights;
use super::solver::Solved;
use super::spec::{ObjectiveSpec, SampleLoss};
use crate::device::Buffer;
use crate::matrix::{Dtype, Element};
use crate::ops::objective::{Evaluation, Loss, ObjectiveSums, RowsOut, row_losses};
use crate::ops::{Number, OpError};
use crate::parallel;

/// Rows whose losses are added by one thread; the blocks are added in order, so that the number of threads does
/// not matter.
const BLOCK: usize = 4096;

/// What rows are judged by, one of each for every row.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a, T> {
    pub(super) targets: &'a RowTargets<'a, T>,
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
        let (t, b) = (predictors[row], rows.targets.at(row));
        rows.weights.at(row) == 0.0 || t != zero && (b > half) == (t > zero)
    };
    let fails = |number: usize| {
        let mut rows = number * BLOCK..predictors.len().min((number + 1) * BLOCK);
        rows.any(|row| !is_apart(row)).then_some(())
    };
    Ok(parallel::first(predictors.len().div_ceil(BLOCK), fails).is_none())
}

/// Σ v·loss in f64, from the linear predictors in T: added where X lies, unless the same bits are promised of every device.
pub(super) fn losses<T: Number>(
    design: &Design<'_, T>,
    loss: Loss,
    theta: &[T],
    rows: &Rows<'_, T>,
) -> Result<f64, OpError> {
    if design.device().is_cpu() || design.is_reproducible() {
        return losses_on_host(design, loss, theta, rows);
    }
    match losses_there(design, loss, theta, rows) {
        Err(error) if error.is_out_of_memory() => losses_on_host(design, loss, theta, rows),
        found => found,
    }
}

/// 32 bytes a row of the device's memory, while they are added.
fn losses_there<T: Number>(
    design: &Design<'_, T>,
    loss: Loss,
    theta: &[T],
    rows: &Rows<'_, T>,
) -> Result<f64, OpError> {
    let device = design.device();
    let predictors = T::widened(&design.forward_there(theta)?.into())?;
    let targets = T::widened(&rows.targets.upload(device)?.into())?;
    let weights = rows.weights.upload(device)?;
    let offset = rows
        .offset
        .map(|offset| device.upload(offset))
        .transpose()?;
    let evaluation = Evaluation {
        weights: Some(&weights),
        offset: offset.as_ref(),
        ..Evaluation::new(loss, &targets)
    };
    let mut sums = device.zeros(ObjectiveSums::LEN)?;
    let out = RowsOut {
        sums: &mut sums,
        residual: None,
        curvature: None,
    };
    row_losses(&evaluation, &predictors, out)?;
    Ok(ObjectiveSums::of(&sums.to_vec()?).loss)
}

fn losses_on_host<T: Number>(
    design: &Design<'_, T>,
    loss: Loss,
    theta: &[T],
    rows: &Rows<'_, T>,
) -> Result<f64, OpError> {
    let predictors = rows.predictors(design, theta)?;
    let of_block = |number: usize| -> f64 {
        let start = number * BLOCK;
        let predictors = parallel::chunk(&predictors, BLOCK, number).iter();
        let of_row = |(t, row): (&T, usize)| {
            let b = rows.targets.at(row);
            let point = loss.at(Element::to_f64(*t), Element::to_f64(b));
            point.weighted(rows.weights.at(row)).loss
        };
        predictors.zip(start..).map(of_row).sum()
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

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use ndarray::Array2;

    use super::*;
    use crate::device::{Device, EmulatorOptions};
    use crate::learning::design::Columns;
    use crate::matrix::Features;
    use crate::ops::Matrix;
    use crate::ops::objective::{Distribution, Link};

    #[test]
    fn losses_added_where_x_lies_are_those_of_the_host() {
        let device = Device::emulator(EmulatorOptions::default());
        let x = Array2::from_shape_fn((300, 3), |(i, j)| ((7 * i + 3 * j) % 11) as f32 / 8.0);
        let x = Matrix::new(&device, Features::Dense(x)).unwrap();
        let columns = Columns {
            intercept: true,
            ..Columns::default()
        };
        let design = Design::new(&x, &columns, 1);
        let targets: Vec<f32> = (0..300).map(|i| (i % 5) as f32).collect();
        let weights: Vec<f64> = (0..300).map(|i| f64::from(i % 3)).collect();
        let offset: Vec<f64> = (0..300).map(|i| f64::from(i % 4) / 3.0).collect();
        let loss = Loss::Glm {
            distribution: Distribution::Poisson,
            link: Link::Log,
        };
        for (weights, offset) in [
            (SampleWeights::ones(300), None),
            (SampleWeights::each(weights), Some(&offset[..])),
        ] {
            let rows = Rows {
                targets: &RowTargets::Given(&targets),
                weights: &weights.normalised(),
                offset,
            };
            let theta = [0.5, -0.25, 0.125, 0.375];
            let there = losses_there(&design, loss, &theta, &rows).unwrap();
            let here = losses_on_host(&design, loss, &theta, &rows).unwrap();
            // The host rounds predictors with an offset to f32 again: half a unit in the last place of some 2.
            let near = if offset.is_some() { 1e-6 } else { 1e-13 };
            assert!((there - here).abs() <= near * here.abs(), "{there} {here}");
        }
    }
}
