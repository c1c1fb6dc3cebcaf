//! Rows of multinomial logistic regression: k linear predictors each.

use super::row_targets::RowTargets;
use super::rows_objective::{Directed, Rows};
use super::sample_weights::SampleWeights;
use crate::device::{Buffer, Device};
use crate::ops::design::DesignVectors;
use crate::ops::objective::{Constant, Softmax, SoftmaxOut};
use crate::ops::{Matrix, Number, OpError};

/// `Σᵢ vᵢ·(ln Σ꜀ exp tᵢ꜀ − tᵢ,bᵢ)`; probabilities, m × k, are kept.
pub(super) struct SoftmaxRows<T: Number> {
    classes: usize,
    /// b, numbers of classes.
    targets: Buffer<T>,
    weights: Buffer<T>,
}

impl<T: Number> SoftmaxRows<T> {
    pub(super) fn new(
        device: &Device,
        classes: usize,
        (targets, weights): (&RowTargets<'_, T>, &SampleWeights),
    ) -> Result<Self, OpError> {
        Ok(SoftmaxRows {
            classes,
            targets: targets.upload(device)?,
            weights: weights.upload(device)?,
        })
    }

    /// What the rows are judged by, and where sums and Xᵀ·S go.
    fn parts<'s>(
        &'s self,
        vectors: &'s mut DesignVectors<T>,
    ) -> (Softmax<'s, T>, &'s Buffer<T>, SoftmaxOut<'s, T>) {
        let DesignVectors {
            y,
            constants,
            raw,
            sums,
            ..
        } = vectors;
        let softmax = Softmax {
            classes: self.classes,
            weights: Some(&self.weights),
            constants: Some(constants),
        };
        let out = SoftmaxOut {
            sums,
            gradient: raw,
        };
        (softmax, y, out)
    }
}

impl<T: Number> Rows<T> for SoftmaxRows<T> {
    fn predictors(&self) -> usize {
        self.classes
    }

    fn evaluate(
        &mut self,
        x: &Matrix<T>,
        vectors: &mut DesignVectors<T>,
        kept: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        let (softmax, y, out) = self.parts(vectors);
        x.softmax_objective(&softmax, &self.targets, y, out, Some(kept))
    }

    fn product(
        &mut self,
        x: &Matrix<T>,
        vectors: &mut DesignVectors<T>,
        of: Directed<'_, T>,
    ) -> Result<(), OpError> {
        let (softmax, s, out) = self.parts(vectors);
        x.softmax_product(&softmax, of.kept, s, out, of.solve)
    }

    fn skips(&self, x: &Matrix<T>, _: Constant) -> bool {
        !x.device().is_cpu()
    }
}
