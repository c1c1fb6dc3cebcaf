//! Rows of one linear predictor each.

use super::fused_hessian::{Curvature, FusedHessian};
use super::row_targets::RowTargets;
use super::rows_objective::{Directed, Rows};
use super::sample_weights::SampleWeights;
use crate::device::{Buffer, Device};
use crate::matrix::Element;
use crate::ops::design::{DesignVectors, Ridge};
use crate::ops::objective::{Constant, Evaluation, Intercept, Loss, ObjectiveOut};
use crate::ops::{Matrix, Number, OpError};

/// `Σᵢ vᵢ·loss(tᵢ, bᵢ)`; vᵢ·loss'' is kept.
pub(super) struct SingleRows<T: Number> {
    loss: Loss,
    targets: Buffer<T>,
    weights: Buffer<T>,
    offset: Option<Buffer<T>>,
    /// Where X is stored in a form over which products of the Hessian are fused products.
    fused: Option<FusedHessian<T>>,
}

impl<T: Number> SingleRows<T> {
    pub(super) fn new(
        device: &Device,
        loss: Loss,
        (targets, weights): (&RowTargets<'_, T>, &SampleWeights),
        offset: Option<&[f64]>,
    ) -> Result<Self, OpError> {
        let upload = |offset: &[f64]| {
            device.upload_with(offset.len(), |range, to: &mut [T]| {
                let pairs = to.iter_mut().zip(&offset[range]);
                pairs.for_each(|(to, o)| *to = <T as Element>::from_f64(*o));
            })
        };
        Ok(SingleRows {
            loss,
            targets: targets.upload(device)?,
            weights: weights.upload(device)?,
            offset: offset.map(upload).transpose()?,
            fused: None,
        })
    }

    /// Products over a further form of X, where they are fused products.
    fn fused(
        &mut self,
        x: &Matrix<T>,
        has_intercept: bool,
    ) -> Result<Option<&mut FusedHessian<T>>, OpError> {
        let constant = Constant::of(has_intercept);
        if self.fused.is_none() && x.hessian_in_one_product(constant)? {
            let curvature = match self.loss {
                Loss::Squared => Curvature::Constant,
                _ => Curvature::OfPoint,
            };
            let len = x.cols() + usize::from(has_intercept);
            self.fused = Some(FusedHessian::new(x.device(), len, curvature)?);
        }
        Ok(self.fused.as_mut())
    }
}

impl<T: Number> Rows<T> for SingleRows<T> {
    fn predictors(&self) -> usize {
        1
    }

    fn evaluate(
        &mut self,
        x: &Matrix<T>,
        vectors: &mut DesignVectors<T>,
        kept: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        if let Some(fused) = &mut self.fused {
            fused.make_room(x.device());
        }
        let evaluation = Evaluation {
            loss: self.loss,
            target: Some(&self.targets),
            weights: Some(&self.weights),
            offset: self.offset.as_ref(),
            intercept: given(vectors.has_intercept, &vectors.constants),
            scale: <T as Element>::from_f64(1.0),
        };
        let out = ObjectiveOut {
            curvature: Some(kept),
            ..ObjectiveOut::new(&mut vectors.sums, &mut vectors.raw)
        };
        x.objective(&evaluation, &vectors.y, out)?;
        if let Some(fused) = &mut self.fused {
            fused.evaluated();
        }
        if !vectors.has_intercept {
            return Ok(());
        }
        match self.fused(x, true)? {
            Some(fused) => fused.take(&vectors.sums),
            None => Ok(()),
        }
    }

    fn accept(&mut self) {
        if let Some(fused) = &mut self.fused {
            fused.accept();
        }
    }

    fn product(
        &mut self,
        x: &Matrix<T>,
        vectors: &mut DesignVectors<T>,
        of: Directed<'_, T>,
    ) -> Result<(), OpError> {
        if let Some(fused) = self.fused(x, vectors.has_intercept)? {
            return fused.product(x, vectors, of);
        }
        let Directed {
            kept, solve, as_is, ..
        } = of;
        let intercept = given(vectors.has_intercept, &vectors.constants);
        let out = ObjectiveOut {
            solve,
            ..ObjectiveOut::new(&mut vectors.sums, &mut vectors.raw)
        };
        x.hessian_product(kept, intercept, as_is.unwrap_or(&vectors.y), out)
    }

    fn whole_product(
        &mut self,
        x: &Matrix<T>,
        of: Directed<'_, T>,
        (ridge, out): (Ridge, &mut Buffer<T>),
    ) -> Result<bool, OpError> {
        let is_fused = self.fused(x, false)?.is_some();
        if is_fused {
            FusedHessian::whole(x, of, (ridge, out))?;
        }
        Ok(is_fused)
    }

    fn skips(&self, x: &Matrix<T>, constant: Constant) -> bool {
        matches!(x.hessian_runs_ahead(constant), Ok(true))
    }
}

fn given<T: Number>(has_intercept: bool, constant: &Buffer<T>) -> Intercept<'_, T> {
    if has_intercept {
        Intercept::Given(constant)
    } else {
        Intercept::Absent
    }
}
