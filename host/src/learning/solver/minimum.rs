//! The solvers for objectives of one's own.

use super::{Begin, Iteration, Limits, Objective, newton};
use crate::device::Buffer;
use crate::learning::Convergence;
use crate::matrix::Element;
use crate::ops::{Number, OpError};

/// How [`newton_cg`] goes about it.
pub struct NewtonOptions<T: Number> {
    /// It ends at ‖gradient‖ ≤ tolerance · ‖gradient at the start‖.
    pub tolerance: f64,
    /// Outer iterations at most.
    pub max_iter: usize,
    /// An approximate inverse of the Hessian's diagonal, with 0 for coordinates to be held; ones when absent.
    pub inverse_diagonal: Option<Buffer<T>>,
}

impl<T: Number> Default for NewtonOptions<T> {
    /// A tolerance of 10⁻⁴, 100 iterations, no diagonal.
    fn default() -> Self {
        NewtonOptions {
            tolerance: 1e-4,
            max_iter: 100,
            inverse_diagonal: None,
        }
    }
}

/// Where a solver came to.
pub struct Minimum<T: Number> {
    /// θ, on the objective's device.
    pub theta: Buffer<T>,
    /// f(θ).
    pub objective: f64,
    /// ‖gradient‖ over that at the start.
    pub gradient_ratio: f64,
    /// Outer iterations.
    pub n_iter: usize,
    /// How it ended.
    pub convergence: Convergence,
}

/// Minimises `objective` from `theta` by Newton's method in a trust region, with steps from conjugate gradients: the
/// solver of the estimators. `watch` is called after each outer iteration.
///
/// # Errors
/// [`OpError::Length`] when θ or the diagonal has another length than the objective, and when the objective or the
/// device fails.
///
/// ```
/// use warpfuse::device::{Buffer, Device};
/// use warpfuse::learning::{NewtonOptions, Objective, Value, newton_cg};
/// use warpfuse::ops::{OpError, vector};
///
/// /// ½·(θ − 3)²
/// struct Parabola(Device);
/// impl Objective<f64> for Parabola {
///     fn device(&self) -> &Device {
///         &self.0
///     }
///     fn len(&self) -> usize {
///         1
///     }
///     fn evaluate(&mut self, theta: &Buffer<f64>, gradient: &mut Buffer<f64>) -> Result<Value, OpError> {
///         let slope = theta.to_vec()?[0] - 3.0;
///         gradient.copy_from_slice(&[slope])?;
///         Ok(Value { value: 0.5 * slope * slope, gradient_norm: slope.abs() })
///     }
///     fn accept(&mut self) {}
///     fn hessian_vector(
///         &mut self,
///         direction: &Buffer<f64>,
///         product: &mut Buffer<f64>,
///         _: Option<&Buffer<f64>>,
///     ) -> Result<(), OpError> {
///         vector::scaled_copy(1.0, direction, product)
///     }
/// }
///
/// let device = Device::cpu();
/// let start = device.zeros(1)?;
/// let found = newton_cg(&mut Parabola(device), start, NewtonOptions::default(), &mut |_| {})?;
/// assert!((found.theta.to_vec()?[0] - 3.0).abs() < 1e-3);
/// # Ok::<(), OpError>(())
/// ```
pub fn newton_cg<T: Number>(
    objective: &mut dyn Objective<T>,
    theta: Buffer<T>,
    options: NewtonOptions<T>,
    watch: &mut dyn FnMut(Iteration),
) -> Result<Minimum<T>, OpError> {
    let len = objective.len();
    crate::ops::checks::same_length("θ", &theta, len)?;
    let inverse_diagonal = match options.inverse_diagonal {
        Some(diagonal) => diagonal,
        None => objective
            .device()
            .upload(&vec![<T as Element>::from_f64(1.0); len])?,
    };
    crate::ops::checks::same_length("the inverse diagonal", &inverse_diagonal, len)?;
    let limits = Limits {
        tolerance: options.tolerance,
        max_iter: options.max_iter,
        quadratic: false,
    };
    let begin = Begin { theta, cold: None };
    let mut show = |iteration, _: Option<&Buffer<T>>| watch(iteration);
    let solved = newton::minimise(objective, begin, inverse_diagonal, &limits, &mut show)?;
    Ok(Minimum {
        theta: solved.theta,
        objective: solved.objective,
        gradient_ratio: solved.gradient_ratio,
        n_iter: solved.n_iter,
        convergence: solved.convergence,
    })
}
