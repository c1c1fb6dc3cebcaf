//! What solvers minimise.

use crate::device::{Buffer, Device};
use crate::ops::design::DesignVectors;
use crate::ops::{Number, OpError};

/// A value of an objective, with the norm of its gradient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    /// f(θ).
    pub value: f64,
    /// ‖∇f(θ)‖₂.
    pub gradient_norm: f64,
}

impl Value {
    /// Of the point whose gradient the last [`DesignVectors::leave`] wrote. Waits.
    ///
    /// # Errors
    /// [`OpError::Device`] when the device fails.
    pub fn of<T: Number>(vectors: &DesignVectors<T>) -> Result<Value, OpError> {
        let [loss, ridge, square] = vectors.figures()?;
        Ok(Value {
            value: loss + ridge,
            gradient_norm: square.sqrt(),
        })
    }
}

/// A smooth function f of the coefficients θ, on a device.
pub trait Objective<T: Number> {
    /// Where θ and the gradient lie.
    fn device(&self) -> &Device;

    /// Elements of θ.
    fn len(&self) -> usize;

    /// Whether θ has no elements.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// f(θ), infinite or NaN outside its domain, and ‖∇f(θ)‖₂; writes ∇f(θ).
    ///
    /// # Errors
    /// When lengths do not fit or the device fails.
    fn evaluate(&mut self, theta: &Buffer<T>, gradient: &mut Buffer<T>) -> Result<Value, OpError>;

    /// Makes the point of the last evaluation the one whose Hessian counts.
    fn accept(&mut self);

    /// `product = H·direction` at the accepted point, H the Hessian or a positive semidefinite stand-in. Once the
    /// conjugate-gradient solve whose state `solve` is has ended, the product is of no interest.
    ///
    /// # Errors
    /// As [`Objective::evaluate`].
    fn hessian_vector(
        &mut self,
        direction: &Buffer<T>,
        product: &mut Buffer<T>,
        solve: Option<&Buffer<f64>>,
    ) -> Result<(), OpError>;

    /// Whether a product for a solve that has ended costs next to nothing, so that the host may submit products ahead
    /// of what it knows.
    fn skips(&self) -> bool {
        false
    }
}
