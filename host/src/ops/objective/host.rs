//! Objectives on the CPU device: buffers as slices, handed to [`crate::cpu::objective`].

use super::super::host::{HostRows, with_rows};
use super::super::matrix::Matrix;
use super::super::share::{part_mut, part_of};
use super::super::terms::Terms;
use super::super::{Number, OpError};
use super::bounds::{bounds, one_of};
use super::{Evaluation, Intercept, ObjectiveOut};
use crate::cpu::Addend;
use crate::cpu::objective as cpu;
use crate::device::Buffer;
use crate::parallel::locked;

const ON_HOST: &str = "the operation has checked that its buffers lie on the CPU";

fn slice<T: bytemuck::Pod>(buffer: &Buffer<T>) -> &[T] {
    buffer.as_host_slice().expect(ON_HOST)
}

fn slice_mut<T: bytemuck::Pod>(buffer: &mut Buffer<T>) -> &mut [T] {
    buffer.as_host_slice_mut().expect(ON_HOST)
}

/// The evaluation of rows whose products are known; an intercept is given or absent.
pub(super) fn on_host<'a, T: Number>(evaluation: &Evaluation<'a, T>) -> cpu::Evaluation<'a, T> {
    cpu::Evaluation {
        loss: evaluation.loss,
        target: evaluation.target.map(slice),
        weights: evaluation.weights.map(slice),
        offset: evaluation.offset.map(slice),
        intercept: match evaluation.intercept {
            Intercept::Given(c) => slice(c)[0],
            _ => T::default(),
        },
        scale: evaluation.scale,
    }
}

/// Evaluates an objective on the CPU; shapes and devices have been checked. Where rows are shared, each member has the
/// residuals and curvatures of its own.
pub(super) fn run<T: Number>(
    rows: &HostRows<T>,
    evaluation: &Evaluation<'_, T>,
    y: &Buffer<T>,
    out: &mut ObjectiveOut<'_, T>,
) -> Result<(), OpError> {
    let x = &*rows.features;
    let (cols, share) = (x.cols(), rows.share.as_ref());
    let (coefficients, last) = slice(y).split_at(cols);
    let evaluation = cpu::Evaluation {
        loss: evaluation.loss,
        target: evaluation.target.map(|v| part_of(share, v, 1)),
        weights: evaluation.weights.map(|v| part_of(share, v, 1)),
        offset: evaluation.offset.map(|v| part_of(share, v, 1)),
        intercept: match evaluation.intercept {
            Intercept::Absent => T::default(),
            Intercept::Given(c) => slice(c)[0],
            Intercept::Last => last[0],
        },
        scale: evaluation.scale,
    };
    let mut gradient = out
        .gradient
        .as_mut()
        .map(|w| slice_mut(w).split_at_mut(cols));
    let z = out.addend.map(|(beta, z)| (beta, slice(z).split_at(cols)));
    let addend = z.map(|(beta, (z, _))| (beta, z));
    let outputs = cpu::Outputs {
        gradient: gradient.as_mut().map(|(w, _)| &mut **w),
        addend: match addend {
            Some((beta, z)) if share.is_none() => Addend::Vector { beta, z },
            _ => Addend::None,
        },
        residual: out
            .residual
            .as_mut()
            .map(|v| part_mut(share, slice_mut(v), 1)),
        curvature: out
            .curvature
            .as_mut()
            .map(|v| part_mut(share, slice_mut(v), 1)),
    };
    let mut workspace = locked(&rows.workspace);
    let mut sums = with_rows!(x, |x| cpu::objective(
        &x,
        coefficients,
        &evaluation,
        outputs,
        &mut workspace
    ));
    if let Some(share) = share {
        share.group().sum(&mut sums)?;
        if let Some((w, _)) = &mut gradient {
            share.sum(w, addend)?;
        }
    }
    slice_mut(out.sums).copy_from_slice(&sums);
    if let Some((_, [last])) = gradient {
        let addend = z.map_or(0.0, |(beta, (_, z))| {
            Into::<f64>::into(beta) * Into::<f64>::into(z[0])
        });
        *last = <T as crate::cpu::Scalar>::narrow(sums[1] + addend);
    }
    Ok(())
}

impl<T: Number> Matrix<T> {
    /// X·y, the losses of the rows, Xᵀg, with the bits that every device gets.
    pub(super) fn objective_in_order(
        &self,
        evaluation: &Evaluation<'_, T>,
        y: &Buffer<T>,
        out: &mut ObjectiveOut<'_, T>,
    ) -> Result<(), OpError> {
        self.site.with_row_vectors(|between| {
            self.objective_in_order_between(between, (evaluation, y), out)
        })
    }

    fn objective_in_order_between(
        &self,
        [products, own]: [&mut Buffer<T>; 2],
        (evaluation, y): (&Evaluation<'_, T>, &Buffer<T>),
        out: &mut ObjectiveOut<'_, T>,
    ) -> Result<(), OpError> {
        let plain = Terms::default();
        self.forward(y, &plain, products)?;
        let residual = out.residual.as_deref_mut().unwrap_or(own);
        let curvature = out.curvature.as_deref_mut().map(slice_mut);
        let sums = cpu::row_losses_in_order(
            slice(products),
            &on_host(evaluation),
            slice_mut(residual),
            curvature,
        );
        slice_mut(out.sums).copy_from_slice(&sums);
        let one = one_of::<T>(self.device(), evaluation.loss)?;
        let within = bounds(evaluation, y, one.as_ref());
        match (&mut out.gradient, within) {
            (Some(gradient), Some(within)) => self.transposed_within(residual, &within, gradient),
            (Some(gradient), None) => self.transposed(residual, &plain, gradient),
            (None, _) => Ok(()),
        }
    }
}
