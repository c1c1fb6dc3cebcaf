//! Least squares, plain and penalised: linear and ridge regression, lasso, elastic net.

use super::FitError;
use super::checks::{not_negative, share};
use super::controls::{Controls, control_setters};
use super::problem::Regression;
use super::spec::ObjectiveSpec;

/// Linear regression: minimises `Σ vᵢ·(yᵢ − xᵢ·w − b)² + λ‖w‖²`, the intercept unpenalised.
///
/// λ is scikit-learn's `alpha` of `Ridge`; λ = 0 is ordinary least squares. [`Ridge`] minimises the same with a penalty by
/// default.
///
/// **Solver.** Chosen by size, structure and penalty ([`LinearRegression::solver`]; see the
/// [guide](super::guide#solvers)). Small and medium: a Cholesky factor of the normal equations, without a penalty
/// orthogonal factors of X. Large: conjugate gradients on the centred normal equations with a diagonal preconditioner, one
/// pass over X per iteration. On request R of X itself ([`Solver::Qr`](super::Solver::Qr)). Where the solution is not unique,
/// it is the shortest; iterations approach the one nearest to zero in the norm of the preconditioner.
///
/// | parameter | default | scikit-learn |
/// |---|---|---|
/// | `l2` (λ) | 0 | `LinearRegression` has none; `alpha` of `Ridge` |
/// | `fit_intercept` | yes | `fit_intercept=True` |
/// | `tolerance` | 1e-6, of the gradient's norm over that at the start | `tol=1e-6` (sparse X); dense X by SVD |
/// | `max_iter` | 1000 steps of conjugate gradients | – |
/// | `standardize` | no | a `StandardScaler` before it |
///
/// ```
/// use ndarray::array;
/// use warpfuse::device::Device;
/// use warpfuse::learning::LinearRegression;
/// use warpfuse::matrix::Features;
///
/// let x = Features::Dense(array![[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]);
/// let model = LinearRegression::params().l2(0.5).fit(&Device::auto(), x, &[1.0, 2.0, 3.0, 4.0])?;
/// assert_eq!(model.coef().len(), 2);
/// # Ok::<(), warpfuse::learning::FitError>(())
/// ```
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct LinearRegression {
    l2: f64,
    controls: Controls,
}

impl Default for LinearRegression {
    fn default() -> Self {
        LinearRegression {
            l2: 0.0,
            controls: Controls::default(),
        }
    }
}

control_setters!(LinearRegression);

impl LinearRegression {
    /// Sets λ ≥ 0, the weight of ‖w‖² (default 0).
    pub fn l2(self, l2: f64) -> Self {
        Self { l2, ..self }
    }
}

impl Regression for LinearRegression {
    fn check(&self) -> Result<(), FitError> {
        not_negative("l2", self.l2)
    }

    fn spec(&self, total: f64) -> ObjectiveSpec {
        ObjectiveSpec::sum_of_squares(self.l2, total)
    }
}

/// Ridge regression: minimises `Σ vᵢ·(yᵢ − xᵢ·w − b)² + α‖w‖²`, the intercept unpenalised.
///
/// The same numbers as scikit-learn's `Ridge`; α = 0 is least squares.
///
/// **Solver.** Chosen by size, structure and penalty ([`Ridge::solver`]; see the [guide](super::guide#solvers)). Small and medium:
/// a Cholesky factor of the normal equations. Large: conjugate gradients on the centred normal equations with a diagonal
/// preconditioner, one pass over X per iteration. [`Solver::Qr`](super::Solver::Qr) takes R of X itself, for columns that are
/// near to depending on each other.
///
/// | parameter | default | scikit-learn |
/// |---|---|---|
/// | `alpha` | 1 | `alpha=1.0` |
/// | `fit_intercept` | yes | `fit_intercept=True` |
/// | `tolerance` | 1e-6, of the gradient's norm over that at the start | `tol=1e-4` |
/// | `max_iter` | 1000 Newton steps, of which one is enough | `max_iter=None` |
/// | `standardize` | no | a `StandardScaler` before it |
///
/// ```
/// use ndarray::array;
/// use warpfuse::device::Device;
/// use warpfuse::learning::Ridge;
/// use warpfuse::matrix::Features;
///
/// let x = Features::Dense(array![[0.0], [1.0], [2.0]]);
/// let model = Ridge::params().alpha(2.0).fit(&Device::cpu(), x, &[0.0, 2.0, 4.0])?;
/// assert!((model.coef()[0] - 1.0).abs() < 1e-6); // Σ(x − x̄)·y / (Σ(x − x̄)² + α) = 4 / 4
/// # Ok::<(), warpfuse::learning::FitError>(())
/// ```
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Ridge {
    alpha: f64,
    controls: Controls,
}

impl Default for Ridge {
    fn default() -> Self {
        Ridge {
            alpha: 1.0,
            controls: Controls::default(),
        }
    }
}

control_setters!(Ridge);

impl Ridge {
    /// Sets α ≥ 0 (default 1).
    pub fn alpha(self, alpha: f64) -> Self {
        Self { alpha, ..self }
    }
}

impl Regression for Ridge {
    fn check(&self) -> Result<(), FitError> {
        not_negative("alpha", self.alpha)
    }

    fn spec(&self, total: f64) -> ObjectiveSpec {
        ObjectiveSpec::sum_of_squares(self.alpha, total)
    }
}

/// The lasso: minimises `Σ vᵢ·(yᵢ − xᵢ·w − b)² / (2S) + α‖w‖₁`, S = Σ vᵢ, the intercept unpenalised.
///
/// The same numbers as scikit-learn's `Lasso`.
///
/// **Solver.** Chosen by size and structure ([`Lasso::solver`]; see the [guide](super::guide#solvers)). Small and medium:
/// coordinate descent on the Gram matrix of the columns that matter, until the duality gap is small
/// ([`FitReport::relative_gap`](super::FitReport::relative_gap)). Large: Newton's method in one orthant at a time
/// (two-metric projection): coordinates that are and stay 0 are held, conjugate gradients solve for the others, and a line
/// search projects onto the orthant; one pass over X per inner iteration and one per step.
///
/// | parameter | default | scikit-learn |
/// |---|---|---|
/// | `alpha` | 1 | `alpha=1.0` |
/// | `fit_intercept` | yes | `fit_intercept=True` |
/// | `tolerance` | 1e-6, of the least subgradient's norm over that at the start | `tol=1e-4`, of the duality gap |
/// | `max_iter` | 1000 steps | `max_iter=1000` walks over all columns |
/// | `standardize` | no | a `StandardScaler` before it |
///
/// ```
/// use ndarray::array;
/// use warpfuse::device::Device;
/// use warpfuse::learning::Lasso;
/// use warpfuse::matrix::Features;
///
/// let x = Features::Dense(array![[0.0, 1.0], [1.0, -1.0], [2.0, 1.0], [3.0, -1.0]]);
/// let model = Lasso::params().alpha(0.5).fit(&Device::cpu(), x, &[0.0, 2.0, 4.0, 6.0])?;
/// assert_eq!(model.coef()[1], 0.0);
/// # Ok::<(), warpfuse::learning::FitError>(())
/// ```
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Lasso {
    alpha: f64,
    controls: Controls,
}

impl Default for Lasso {
    fn default() -> Self {
        Lasso {
            alpha: 1.0,
            controls: Controls::default(),
        }
    }
}

control_setters!(Lasso);

impl Lasso {
    /// Sets α ≥ 0 (default 1).
    pub fn alpha(self, alpha: f64) -> Self {
        Self { alpha, ..self }
    }
}

impl Regression for Lasso {
    fn check(&self) -> Result<(), FitError> {
        not_negative("alpha", self.alpha)
    }

    fn spec(&self, _: f64) -> ObjectiveSpec {
        ObjectiveSpec::mean_squares(self.alpha, 1.0)
    }
}

/// The elastic net: minimises `Σ vᵢ·(yᵢ − xᵢ·w − b)² / (2S) + α·ρ‖w‖₁ + α·(1 − ρ)/2·‖w‖²`, S = Σ vᵢ, the intercept
/// unpenalised.
///
/// The same numbers as scikit-learn's `ElasticNet`. **Solver**: as [`Lasso`].
///
/// | parameter | default | scikit-learn |
/// |---|---|---|
/// | `alpha` | 1 | `alpha=1.0` |
/// | `l1_ratio` (ρ) | 0.5 | `l1_ratio=0.5` |
/// | `fit_intercept` | yes | `fit_intercept=True` |
/// | `tolerance` | 1e-6, of the least subgradient's norm over that at the start | `tol=1e-4`, of the duality gap |
/// | `max_iter` | 1000 steps | `max_iter=1000` walks over all columns |
/// | `standardize` | no | a `StandardScaler` before it |
///
/// ```
/// use ndarray::array;
/// use warpfuse::device::Device;
/// use warpfuse::learning::ElasticNet;
/// use warpfuse::matrix::Features;
///
/// let x = Features::Dense(array![[0.0], [1.0], [2.0]]);
/// let model = ElasticNet::params().alpha(0.1).l1_ratio(0.2).fit(&Device::cpu(), x, &[0.0, 2.0, 4.0])?;
/// assert!(model.converged());
/// # Ok::<(), warpfuse::learning::FitError>(())
/// ```
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ElasticNet {
    alpha: f64,
    l1_ratio: f64,
    controls: Controls,
}

impl Default for ElasticNet {
    fn default() -> Self {
        ElasticNet {
            alpha: 1.0,
            l1_ratio: 0.5,
            controls: Controls::default(),
        }
    }
}

control_setters!(ElasticNet);

impl ElasticNet {
    /// Sets α ≥ 0 (default 1).
    pub fn alpha(self, alpha: f64) -> Self {
        Self { alpha, ..self }
    }

    /// Sets ρ, from 0 (ridge) to 1 (lasso; default 0.5).
    pub fn l1_ratio(self, l1_ratio: f64) -> Self {
        Self { l1_ratio, ..self }
    }
}

impl Regression for ElasticNet {
    fn check(&self) -> Result<(), FitError> {
        not_negative("alpha", self.alpha)?;
        share("l1_ratio", self.l1_ratio)
    }

    fn spec(&self, _: f64) -> ObjectiveSpec {
        ObjectiveSpec::mean_squares(self.alpha, self.l1_ratio)
    }
}
