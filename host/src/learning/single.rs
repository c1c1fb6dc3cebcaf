//! The objective of one linear predictor per row, on the device from θ to the gradient.

use super::design::Columns;
use super::solver::{Objective, Value};
use crate::device::{Buffer, Device};
use crate::matrix::Element;
use crate::ops::design::{DesignColumns, DesignVectors, Ridge};
use crate::ops::objective::{Evaluation, Intercept, Loss, ObjectiveOut};
use crate::ops::{Matrix, Number, OpError};

/// `f(θ) = Σᵢ vᵢ·loss(x̃ᵢ·θ, bᵢ) + ½·λ‖w̃‖² + ½·λ_b·b̃²`; one pass over X per evaluation, one per Hessian product.
pub(super) struct Single<'a, T: Number> {
    matrix: &'a Matrix<T>,
    vectors: DesignVectors<T>,
    loss: Loss,
    targets: Buffer<T>,
    weights: Buffer<T>,
    ridge: Ridge,
    /// vᵢ·loss'' at the accepted point and at the last one.
    accepted: Buffer<T>,
    trial: Buffer<T>,
}

impl<'a, T: Number> Single<'a, T> {
    pub(super) fn new(
        matrix: &'a Matrix<T>,
        columns: &Columns,
        loss: Loss,
        (targets, weights): (&[T], &[T]),
        ridge: Ridge,
    ) -> Result<Self, OpError> {
        let device = matrix.device();
        let design = DesignColumns {
            cols: matrix.cols(),
            means: columns.means.as_deref(),
            scales: columns.scales.as_deref(),
            intercept: columns.intercept,
            classes: 1,
        };
        Ok(Single {
            matrix,
            vectors: DesignVectors::new(device, &design)?,
            loss,
            targets: device.upload(targets)?,
            weights: device.upload(weights)?,
            ridge,
            accepted: device.zeros(matrix.rows())?,
            trial: device.zeros(matrix.rows())?,
        })
    }
}

impl<T: Number> Objective<T> for Single<'_, T> {
    fn device(&self) -> &Device {
        self.matrix.device()
    }

    fn len(&self) -> usize {
        self.matrix.cols() + usize::from(self.vectors.has_intercept)
    }

    fn evaluate(&mut self, theta: &Buffer<T>, gradient: &mut Buffer<T>) -> Result<Value, OpError> {
        self.vectors.enter(theta)?;
        let vectors = &mut self.vectors;
        let evaluation = Evaluation {
            loss: self.loss,
            target: Some(&self.targets),
            weights: Some(&self.weights),
            offset: None,
            intercept: given(vectors.has_intercept, &vectors.constants),
            scale: <T as Element>::from_f64(1.0),
        };
        let out = ObjectiveOut {
            sums: &mut vectors.sums,
            gradient: Some(&mut vectors.raw),
            addend: None,
            residual: None,
            curvature: Some(&mut self.trial),
            solve: None,
        };
        self.matrix.objective(&evaluation, &vectors.y, out)?;
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
        let vectors = &mut self.vectors;
        let intercept = given(vectors.has_intercept, &vectors.constants);
        let out = ObjectiveOut {
            solve,
            ..ObjectiveOut::new(&mut vectors.sums, &mut vectors.raw)
        };
        self.matrix
            .hessian_product(&self.accepted, intercept, &vectors.y, out)?;
        self.vectors.leave(direction, self.ridge, product)
    }

    fn skips(&self) -> bool {
        matches!(self.matrix.objective_in_one_pass(Loss::Squared), Ok(true))
    }
}

fn given<T: Number>(has_intercept: bool, constant: &Buffer<T>) -> Intercept<'_, T> {
    if has_intercept {
        Intercept::Given(constant)
    } else {
        Intercept::Absent
    }
}
