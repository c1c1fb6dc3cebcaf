//! Penalised least squares: ridge, lasso, elastic net.

use super::FitError;
use super::fit::{Controls, ObjectiveSpec, SampleLoss, control_setters, not_negative, share};
use super::fit_methods::{NumberEstimator, number_estimator};
use super::regressor::{Regressor, RegressorParams};
use crate::ops::Number;
use crate::ops::objective::Loss;

/// Ridge regression: minimises `Σ vᵢ·(yᵢ − xᵢ·w − b)² + α‖w‖²`, the intercept unpenalised.
///
/// The same numbers as scikit-learn's `Ridge`. [`LinearRegression`](super::LinearRegression) solves the same problem
/// without sample weights, warm start and standardisation; α = 0 is least squares.
///
/// **Solver.** One Newton step: conjugate gradients on the centred normal equations with a diagonal preconditioner,
/// one pass over X per iteration.
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
number_estimator!(Ridge);

impl Ridge {
    /// Sets α ≥ 0 (default 1).
    pub fn alpha(self, alpha: f64) -> Self {
        Self { alpha, ..self }
    }
}

impl NumberEstimator for Ridge {
    fn controls(&self) -> &Controls {
        &self.controls
    }

    fn check(&self) -> Result<(), FitError> {
        not_negative("alpha", self.alpha)
    }

    /// `(Σ v·½r² / S + ½·(α/S)‖w‖²) · 2S`.
    fn spec<T: Number>(&self, _: &[T], weights: &[f64]) -> ObjectiveSpec {
        let total: f64 = weights.iter().sum();
        ObjectiveSpec {
            loss: SampleLoss::Single(Loss::Squared),
            l2: self.alpha / total,
            l1: 0.0,
            intercept_l2: 0.0,
            factor: 2.0 * total,
            constant: 0.0,
        }
    }

    fn into_params(self) -> RegressorParams {
        RegressorParams::Ridge(self)
    }
}

/// The lasso: minimises `Σ vᵢ·(yᵢ − xᵢ·w − b)² / (2S) + α‖w‖₁`, S = Σ vᵢ, the intercept unpenalised.
///
/// The same numbers as scikit-learn's `Lasso`.
///
/// **Solver.** Newton's method in one orthant at a time (two-metric projection): coordinates that are and stay 0 are
/// held, conjugate gradients solve for the others, and a line search projects onto the orthant. Where scikit-learn
/// walks coordinate by coordinate, this takes one pass over X per inner iteration and one per step.
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
number_estimator!(Lasso);

impl Lasso {
    /// Sets α ≥ 0 (default 1).
    pub fn alpha(self, alpha: f64) -> Self {
        Self { alpha, ..self }
    }
}

impl NumberEstimator for Lasso {
    fn controls(&self) -> &Controls {
        &self.controls
    }

    fn check(&self) -> Result<(), FitError> {
        not_negative("alpha", self.alpha)
    }

    fn spec<T: Number>(&self, _: &[T], _: &[f64]) -> ObjectiveSpec {
        mean_squares(self.alpha, 1.0)
    }

    fn into_params(self) -> RegressorParams {
        RegressorParams::Lasso(self)
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
number_estimator!(ElasticNet);

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

impl NumberEstimator for ElasticNet {
    fn controls(&self) -> &Controls {
        &self.controls
    }

    fn check(&self) -> Result<(), FitError> {
        not_negative("alpha", self.alpha)?;
        share("l1_ratio", self.l1_ratio)
    }

    fn spec<T: Number>(&self, _: &[T], _: &[f64]) -> ObjectiveSpec {
        mean_squares(self.alpha, self.l1_ratio)
    }

    fn into_params(self) -> RegressorParams {
        RegressorParams::ElasticNet(self)
    }
}

fn mean_squares(alpha: f64, l1_ratio: f64) -> ObjectiveSpec {
    ObjectiveSpec {
        loss: SampleLoss::Single(Loss::Squared),
        l2: alpha * (1.0 - l1_ratio),
        l1: alpha * l1_ratio,
        intercept_l2: 0.0,
        factor: 1.0,
        constant: 0.0,
    }
}
