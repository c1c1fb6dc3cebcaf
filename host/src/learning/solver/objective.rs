//! What solvers minimise.

use crate::device::{Buffer, Device};
use crate::ops::{Number, OpError, Spread, vector};

/// A value of an objective, with the norm of its gradient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    /// f(θ).
    pub value: f64,
    /// ‖∇f(θ)‖₂.
    pub gradient_norm: f64,
}

impl Value {
    /// Of the figures of a point: see [`DesignVectors::figures`](crate::ops::design::DesignVectors::figures).
    pub fn of([loss, ridge, square]: [f64; 3]) -> Value {
        Value {
            value: loss + ridge,
            gradient_norm: square.sqrt(),
        }
    }
}

/// A step that is tried: its direction, and the gradient where it begins.
#[derive(Debug, Clone, Copy)]
pub struct Along<'a, T: Number> {
    /// d.
    pub direction: &'a Buffer<T>,
    /// ∇f before the step.
    pub gradient: &'a Buffer<T>,
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

    /// [`Objective::evaluate`], and the slopes dᵀ∇f before the step and at θ. Implementations can read all of it at once;
    /// this one waits for each slope.
    ///
    /// # Errors
    /// As [`Objective::evaluate`].
    fn evaluate_along(
        &mut self,
        theta: &Buffer<T>,
        gradient: &mut Buffer<T>,
        along: Along<'_, T>,
    ) -> Result<(Value, [f64; 2]), OpError> {
        let value = self.evaluate(theta, gradient)?;
        let before = vector::dot(along.gradient, along.direction)?;
        Ok((value, [before, vector::dot(gradient, along.direction)?]))
    }

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

    /// How members of a group keep vectors as long as θ in a solve by conjugate gradients. Each has all elements unless told
    /// otherwise.
    ///
    /// # Errors
    /// When the group fails.
    fn spread(&self) -> Result<Option<Spread>, OpError> {
        Ok(None)
    }

    /// [`Objective::hessian_vector`], of which this member's share of the product at least is wanted.
    ///
    /// # Errors
    /// As [`Objective::evaluate`].
    fn hessian_share(
        &mut self,
        _spread: &Spread,
        direction: &Buffer<T>,
        product: &mut Buffer<T>,
        solve: Option<&Buffer<f64>>,
    ) -> Result<(), OpError> {
        self.hessian_vector(direction, product, solve)
    }

    /// Whether a product for a solve that has ended costs next to nothing, so that the host may submit products ahead
    /// of what it knows.
    fn skips(&self) -> bool {
        false
    }
}
