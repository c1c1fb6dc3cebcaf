//! Minimisation of a smooth objective, with an l1 term where wanted.
//!
//! | solver | for | per outer iteration |
//! |---|---|---|
//! | [`conjugate`] | quadratic | one Hessian product |
//! | [`newton`] | smooth | 1 evaluation, one Hessian product per inner CG iteration |
//! | [`lbfgs`] | smooth | 1 evaluation, rarely more |
//! | [`orthant`] | smooth + l1 | 1 evaluation, rarely more, one Hessian product per inner CG iteration |
//! | [`host`] | small and medium, on the host | see there |
//! | [`finish`] | what of these has converged in f64 | one Newton step by CG |
//! | [`batched`] | several problems | as [`newton`] or [`orthant`], for the whole batch |
//!
//! An evaluation and a Hessian product are one pass over X each.

pub(super) mod batched;
pub(super) mod conjugate;
pub(super) mod finish;
pub(super) mod host;
pub(super) mod lbfgs;
mod method;
mod minimum;
pub(super) mod newton;
mod objective;
pub(super) mod orthant;
pub(super) mod smooth;
pub(super) mod stops;

pub use minimum::{Minimum, NewtonOptions, newton_cg};
pub use objective::{Along, Objective, Value};

use super::cg::Convergence;
use crate::device::Buffer;
use crate::ops::{Number, OpError};

/// One outer iteration of a solver.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Iteration {
    /// The objective, scaled as the estimator documents.
    pub objective: f64,
    /// ‖gradient‖ over that at the start; of the least subgradient where there is an l1 penalty.
    pub gradient_ratio: f64,
    /// Hessian products, or evaluations beyond the first, that the iteration took.
    pub inner: usize,
    /// Seconds since the solve began.
    pub seconds: f64,
    /// What the model was worth on other data, where that was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<f64>,
}

/// Called after each outer iteration, with where it led; of those before a checkpoint that the fit goes on from, without.
pub(super) type Watch<'a, T> = dyn FnMut(Iteration, Option<&Buffer<T>>) + 'a;

/// How a solver finds its directions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Solver {
    /// Whichever the size, the structure and the penalty suit best; the report names it and says why.
    #[default]
    Auto,
    /// Newton's, from inner conjugate gradients: in a trust region, as LIBLINEAR's TRON, or in an orthant
    /// where there is an l1 penalty.
    NewtonCg,
    /// Limited-memory BFGS; smooth penalties only.
    Lbfgs,
    /// Conjugate gradients, for squared errors without an l1 penalty: an iteration is one product, where an iteration of
    /// Newton's method is a whole solve.
    ConjugateGradient,
    /// Newton's, with a Cholesky factor of the Hessian, on the host; smooth penalties only.
    NewtonCholesky,
    /// Newton's with an l1 penalty, each step by coordinate descent on the Hessian of the columns that matter, on the host.
    CoordinateDescent,
    /// Least squares by R of X itself, whose condition is the root of that of the normal equations: R in one read of X, and one
    /// more for each step. Where X has at least as many rows as columns: on the host, and on a GPU where X is large and dense
    /// with up to 32 columns.
    Qr,
    /// Least squares by singular values, on the host.
    Svd,
    /// A primal-dual interior-point method, for losses with kinks (quantiles, hinges), on the host.
    InteriorPoint,
}

impl Solver {
    /// As the command line and model files name it.
    pub fn name(self) -> &'static str {
        match self {
            Solver::Auto => "auto",
            Solver::NewtonCg => "newton-cg",
            Solver::Lbfgs => "lbfgs",
            Solver::ConjugateGradient => "conjugate-gradient",
            Solver::NewtonCholesky => "newton-cholesky",
            Solver::CoordinateDescent => "coordinate-descent",
            Solver::Qr => "qr",
            Solver::Svd => "svd",
            Solver::InteriorPoint => "interior-point",
        }
    }
}

/// When a solver stops.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Limits {
    /// ‖gradient‖ over that at the start.
    pub(super) tolerance: f64,
    /// Outer iterations.
    pub(super) max_iter: usize,
    /// Inner tolerance where the objective is quadratic and one Newton step is all.
    pub(super) quadratic: bool,
}

/// Where a solve begins.
pub(super) struct Begin<T: Number> {
    pub(super) theta: Buffer<T>,
    /// Whose gradient the tolerance is relative to, where that is not θ's.
    pub(super) cold: Option<Buffer<T>>,
}

impl<T: Number> Begin<T> {
    /// The first point, evaluated and accepted, and that which tolerances are relative to, if it is another.
    pub(super) fn points(
        self,
        objective: &mut dyn Objective<T>,
    ) -> Result<(Point<T>, Option<Point<T>>), OpError> {
        let cold = self.cold.map(|cold| Point::start(objective, cold));
        let cold = cold.transpose()?;
        Ok((Point::start(objective, self.theta)?, cold))
    }
}

/// How a solve ended.
pub(super) struct Solved<T: Number> {
    pub(super) theta: Buffer<T>,
    pub(super) objective: f64,
    pub(super) gradient_ratio: f64,
    /// ‖gradient‖.
    pub(super) gradient_norm: f64,
    pub(super) n_iter: usize,
    pub(super) convergence: Convergence,
}

/// Where a solver stands.
pub(super) struct Point<T: Number> {
    pub(super) theta: Buffer<T>,
    pub(super) gradient: Buffer<T>,
    pub(super) value: f64,
    pub(super) norm: f64,
}

impl<T: Number> Point<T> {
    /// Evaluates and accepts `theta`.
    pub(super) fn start(
        objective: &mut dyn Objective<T>,
        theta: Buffer<T>,
    ) -> Result<Self, OpError> {
        let gradient = objective.device().zeros(theta.len())?;
        let mut point = Point {
            theta,
            gradient,
            value: 0.0,
            norm: 0.0,
        };
        point.evaluate(objective)?;
        objective.accept();
        Ok(point)
    }

    /// Value, gradient and its norm at θ.
    pub(super) fn evaluate(&mut self, objective: &mut dyn Objective<T>) -> Result<(), OpError> {
        let found = objective.evaluate(&self.theta, &mut self.gradient)?;
        (self.value, self.norm) = (found.value, found.gradient_norm);
        Ok(())
    }

    /// Whether value and gradient are finite.
    pub(super) fn is_finite(&self) -> bool {
        self.value.is_finite() && self.norm.is_finite()
    }
}

/// A difference of objectives that rounding alone can make: some units in the last place of T.
pub(super) fn noise<T: Number>(value: f64) -> f64 {
    let unit = match T::DTYPE {
        crate::matrix::Dtype::F32 => f64::from(f32::EPSILON),
        crate::matrix::Dtype::F64 => f64::EPSILON,
    };
    8.0 * unit * value.abs()
}

/// a / b, 0 when both are.
pub(super) fn ratio(a: f64, b: f64) -> f64 {
    if a == 0.0 { 0.0 } else { a / b }
}
