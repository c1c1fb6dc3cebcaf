//! What an objective is made of, and where it goes.

use gpu_kernels::objective::Loss;

use super::super::Number;
use crate::device::Buffer;

/// What an objective is made of besides X and the coefficients.
#[derive(Debug, Clone, Copy)]
pub struct Evaluation<'a, T: Number> {
    /// The loss of a row.
    pub loss: Loss,
    /// b, one target per row; zeros when absent.
    pub target: Option<&'a Buffer<T>>,
    /// One weight per row; ones when absent. A row of weight 0 takes no part, even where its predictor lies outside the
    /// domain of the link; its entries have to be finite.
    pub weights: Option<&'a Buffer<T>>,
    /// o, one per row, added to X·y.
    pub offset: Option<&'a Buffer<T>>,
    /// c.
    pub intercept: Intercept<'a, T>,
    /// A factor of all weights, such as 1/m or C.
    pub scale: T,
}

/// The constant that is added to every element of X·y.
#[derive(Debug, Clone, Copy)]
pub enum Intercept<'a, T: Number> {
    /// None.
    Absent,
    /// The one element of a buffer. Its derivative is Σ g, the second of the sums.
    Given(&'a Buffer<T>),
    /// The last element of y: y, gradient and z have n + 1 elements, and Σ g is the gradient's last.
    Last,
}

/// Where an objective goes.
#[derive(Debug)]
pub struct ObjectiveOut<'a, T: Number> {
    /// Σ v·loss, Σ g, Σ d: three elements; see [`ObjectiveSums`].
    pub sums: &'a mut Buffer<f64>,
    /// Xᵀg + β·z; when absent, X is not multiplied a second time.
    pub gradient: Option<&'a mut Buffer<T>>,
    /// β and z, such as λ and the coefficients; z is not the gradient itself.
    pub addend: Option<(T, &'a Buffer<T>)>,
    /// g, one element per row. Where members of a [group](crate::device::group) share the rows, each gets those of its own.
    pub residual: Option<&'a mut Buffer<T>>,
    /// d, one element per row; as [`ObjectiveOut::residual`].
    pub curvature: Option<&'a mut Buffer<T>>,
    /// The state of a conjugate-gradient solve ([`CgVectors::state`](super::super::cg::CgVectors::state)): once it has ended,
    /// an objective that is computed in one pass on a GPU leaves everything at zero and does not read X.
    pub solve: Option<&'a Buffer<f64>>,
}

/// The sums of an objective, read back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ObjectiveSums {
    /// Σ v·loss. Infinite where a row lies outside the domain of its link.
    pub loss: f64,
    /// Σ g, the derivative by the intercept.
    pub slope: f64,
    /// Σ d, the second derivative by the intercept.
    pub curvature: f64,
}

impl ObjectiveSums {
    /// Elements of [`ObjectiveOut::sums`].
    pub const LEN: usize = 3;

    /// From a copy of [`ObjectiveOut::sums`].
    pub fn of(values: &[f64]) -> ObjectiveSums {
        ObjectiveSums {
            loss: values[0],
            slope: values[1],
            curvature: values[2],
        }
    }
}

impl<'a, T: Number> Evaluation<'a, T> {
    /// The loss with these targets: no weights, no offset, no intercept, scale 1.
    pub fn new(loss: Loss, target: &'a Buffer<T>) -> Self {
        Evaluation {
            loss,
            target: Some(target),
            weights: None,
            offset: None,
            intercept: Intercept::Absent,
            scale: <T as gpu_kernels::Real>::ONE,
        }
    }
}

impl<'a, T: Number> ObjectiveOut<'a, T> {
    /// Sums and gradient, and nothing else.
    pub fn new(sums: &'a mut Buffer<f64>, gradient: &'a mut Buffer<T>) -> Self {
        ObjectiveOut {
            sums,
            gradient: Some(gradient),
            addend: None,
            residual: None,
            curvature: None,
            solve: None,
        }
    }
}
