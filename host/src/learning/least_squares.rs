//! Penalised least squares: ridge, lasso, elastic net.

use std::sync::Arc;

use super::fit::{
    Controls, Extras, Goal, SampleLoss, check_targets, control_setters, not_negative,
    sample_weights, share,
};
use super::regressor::{Regressor, RegressorParams};
use super::task::Task;
use super::{FitError, Placed};
use crate::device::Device;
use crate::matrix::Features;
use crate::ops::Number;
use crate::ops::objective::Loss;

/// Defines `fit` and `fit_with` of an estimator with `goal(&self, total weight) -> Goal` and `check(&self)`.
macro_rules! fit_regressor {
    ($estimator:ident) => {
        impl $estimator {
            /// Fits to `features` (m × n) and `targets` (m) on `device`.
            ///
            /// # Errors
            /// [`FitError`] when shapes, values or parameters do not fit, or the device fails. Not converging is
            /// not an error: see [`Regressor::converged`].
            pub fn fit<T: Number>(
                &self,
                device: &Device,
                features: impl Into<Arc<Features<T>>>,
                targets: &[T],
            ) -> Result<Regressor, FitError> {
                self.fit_with(device, features, targets, Extras::default())
            }

            /// `fit` with sample weights, a mask of columns, a warm start or someone watching.
            ///
            /// # Errors
            /// As `fit`.
            pub fn fit_with<T: Number>(
                &self,
                device: &Device,
                features: impl Into<Arc<Features<T>>>,
                targets: &[T],
                extras: Extras<'_>,
            ) -> Result<Regressor, FitError> {
                self.check()?;
                let data = Placed::new(device, features, self.controls.matrix)?;
                self.fit_on(&data, targets, extras)
            }

            /// `fit_with` on features that are on a device already.
            ///
            /// # Errors
            /// As `fit_with`.
            pub fn fit_on<T: Number>(
                &self,
                data: &Placed<T>,
                targets: &[T],
                mut extras: Extras<'_>,
            ) -> Result<Regressor, FitError> {
                self.task(data, targets, &extras)?.fit(data, &mut extras)
            }

            /// What is to be solved.
            pub(super) fn task<T: Number>(
                &self,
                data: &Placed<T>,
                targets: &[T],
                extras: &Extras<'_>,
            ) -> Result<Task<T, RegressorParams>, FitError> {
                self.check()?;
                check_targets(data.matrix().rows(), targets)?;
                let weights = sample_weights(targets.len(), extras)?;
                Ok(Task {
                    controls: self.controls,
                    goal: self.goal(weights.iter().sum()),
                    targets: targets.to_vec(),
                    weights,
                    answer: RegressorParams::$estimator(self.clone()),
                })
            }
        }
    };
}

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
fit_regressor!(Ridge);

impl Ridge {
    /// Sets α ≥ 0 (default 1).
    pub fn alpha(self, alpha: f64) -> Self {
        Self { alpha, ..self }
    }

    fn check(&self) -> Result<(), FitError> {
        not_negative("alpha", self.alpha)
    }

    /// `(Σ v·½r² / S + ½·(α/S)‖w‖²) · 2S`.
    fn goal(&self, total: f64) -> Goal {
        Goal {
            loss: SampleLoss::Single(Loss::Squared),
            l2: self.alpha / total,
            l1: 0.0,
            intercept_l2: 0.0,
            factor: 2.0 * total,
            constant: 0.0,
        }
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
fit_regressor!(Lasso);

impl Lasso {
    /// Sets α ≥ 0 (default 1).
    pub fn alpha(self, alpha: f64) -> Self {
        Self { alpha, ..self }
    }

    fn check(&self) -> Result<(), FitError> {
        not_negative("alpha", self.alpha)
    }

    fn goal(&self, _total: f64) -> Goal {
        mean_squares(self.alpha, 1.0)
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
fit_regressor!(ElasticNet);

impl ElasticNet {
    /// Sets α ≥ 0 (default 1).
    pub fn alpha(self, alpha: f64) -> Self {
        Self { alpha, ..self }
    }

    /// Sets ρ, from 0 (ridge) to 1 (lasso; default 0.5).
    pub fn l1_ratio(self, l1_ratio: f64) -> Self {
        Self { l1_ratio, ..self }
    }

    fn check(&self) -> Result<(), FitError> {
        not_negative("alpha", self.alpha)?;
        share("l1_ratio", self.l1_ratio)
    }

    fn goal(&self, _total: f64) -> Goal {
        mean_squares(self.alpha, self.l1_ratio)
    }
}

fn mean_squares(alpha: f64, l1_ratio: f64) -> Goal {
    Goal {
        loss: SampleLoss::Single(Loss::Squared),
        l2: alpha * (1.0 - l1_ratio),
        l1: alpha * l1_ratio,
        intercept_l2: 0.0,
        factor: 1.0,
        constant: 0.0,
    }
}
