//! The objective of multinomial logistic regression, on the device from θ to the gradient.

use super::design::Columns;
use super::solver::{Objective, Value};
use crate::device::{Buffer, Device};
use crate::ops::design::{DesignColumns, DesignVectors, Ridge};
use crate::ops::objective::{Softmax, SoftmaxOut};
use crate::ops::{Matrix, Number, OpError};

/// `f(θ) = Σᵢ vᵢ·(ln Σ꜀ exp tᵢ꜀ − tᵢ,bᵢ) + ½·λ‖W̃‖² + ½·λ_b·‖b̃‖²` with tᵢ꜀ = x̃ᵢ·θ꜀; one pass over X per evaluation and
/// per Hessian product, whatever k.
pub(super) struct SoftmaxObjective<'a, T: Number> {
    matrix: &'a Matrix<T>,
    classes: usize,
    vectors: DesignVectors<T>,
    /// b, numbers of classes.
    targets: Buffer<T>,
    weights: Buffer<T>,
    ridge: Ridge,
    /// Probabilities, m × k, at the accepted point and at the last one.
    accepted: Buffer<T>,
    trial: Buffer<T>,
}

impl<'a, T: Number> SoftmaxObjective<'a, T> {
    pub(super) fn new(
        matrix: &'a Matrix<T>,
        columns: &Columns,
        classes: usize,
        (targets, weights): (&[T], &[T]),
        ridge: Ridge,
    ) -> Result<Self, OpError> {
        let device = matrix.device();
        let design = DesignColumns {
            cols: matrix.cols(),
            means: columns.means.as_deref(),
            scales: columns.scales.as_deref(),
            intercept: columns.intercept,
            classes,
        };
        let elements = matrix.rows() * classes;
        Ok(SoftmaxObjective {
            matrix,
            classes,
            vectors: DesignVectors::new(device, &design)?,
            targets: device.upload(targets)?,
            weights: device.upload(weights)?,
            ridge,
            accepted: device.zeros(elements)?,
            trial: device.zeros(elements)?,
        })
    }
}

/// What the rows are judged by, and where sums and Xᵀ·S go.
fn parts<'s, T: Number>(
    classes: usize,
    weights: &'s Buffer<T>,
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
        classes,
        weights: Some(weights),
        constants: Some(constants),
    };
    let out = SoftmaxOut {
        sums,
        gradient: raw,
    };
    (softmax, y, out)
}

impl<T: Number> Objective<T> for SoftmaxObjective<'_, T> {
    fn device(&self) -> &Device {
        self.matrix.device()
    }

    fn len(&self) -> usize {
        (self.matrix.cols() + usize::from(self.vectors.has_intercept)) * self.classes
    }

    fn evaluate(&mut self, theta: &Buffer<T>, gradient: &mut Buffer<T>) -> Result<Value, OpError> {
        self.vectors.enter(theta)?;
        let (softmax, y, out) = parts(self.classes, &self.weights, &mut self.vectors);
        let kept = Some(&mut self.trial);
        self.matrix
            .softmax_objective(&softmax, &self.targets, y, out, kept)?;
        self.vectors.leave(theta, self.ridge, gradient)?;
        Value::of(&self.vectors)
    }

    fn accept(&mut self) {
        std::mem::swap(&mut self.accepted, &mut self.trial);
    }

    fn hessian_vector(
        &mut self,
        direction: &Buffer<T>,
        product: &mut Buffer<T>,
        solve: Option<&Buffer<f64>>,
    ) -> Result<(), OpError> {
        self.vectors.enter(direction)?;
        let (softmax, s, out) = parts(self.classes, &self.weights, &mut self.vectors);
        self.matrix
            .softmax_product(&softmax, &self.accepted, s, out, solve)?;
        self.vectors.leave(direction, self.ridge, product)
    }

    fn skips(&self) -> bool {
        !self.device().is_cpu()
    }
}
