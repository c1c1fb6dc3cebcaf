//! Quantile regression.

use super::FitError;
use super::checks::not_negative;
use super::controls::{Controls, control_setters};
use super::problem::Regression;
use super::spec::{Kinked, ObjectiveSpec, SampleLoss};

/// Quantile regression: minimises `Σ vᵢ·ρ(yᵢ − xᵢ·w − b) / S + α‖w‖₁`, S = Σ vᵢ, ρ(r) = max(τ·r, (τ − 1)·r), the intercept
/// unpenalised. The prediction is the τ-quantile of y given x: with τ = ½ the median.
///
/// The same objective as scikit-learn's `QuantileRegressor`, and with α = 0 as statsmodels' `QuantReg`. Where several
/// coefficients are best (the objective is piecewise linear), any of them may come out.
///
/// **Solver.** A primal-dual interior-point method on the host (R. Portnoy, R. Koenker, "The Gaussian hare and the Laplacian
/// tortoise", Stat. Sci. 12, 1997), which ends when the objective is within the tolerance of its lower bound: X has to be on
/// the CPU, or small.
///
/// | parameter | default | scikit-learn |
/// |---|---|---|
/// | `quantile` | 0.5 | `quantile=0.5` |
/// | `alpha` | 1 | `alpha=1.0` |
/// | `fit_intercept` | yes | `fit_intercept=True` |
/// | `tolerance` | 1e-6, of which a hundredth is the relative duality gap at which to stop | – |
/// | `max_iter` | 1000 | – |
///
/// ```
/// use ndarray::array;
/// use warpfuse::device::Device;
/// use warpfuse::learning::Quantile;
/// use warpfuse::matrix::Features;
///
/// // The median does not mind one value that is far off.
/// let x = Features::Dense(array![[0.0], [1.0], [2.0], [3.0], [4.0]]);
/// let model = Quantile::params().alpha(0.0).fit(&Device::cpu(), x, &[0.0, 2.0, 4.0, 6.0, 100.0])?;
/// assert!((model.coef()[0] - 2.0).abs() < 1e-4);
/// # Ok::<(), warpfuse::learning::FitError>(())
/// ```
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Quantile {
    quantile: f64,
    alpha: f64,
    controls: Controls,
}

impl Default for Quantile {
    fn default() -> Self {
        Quantile {
            quantile: 0.5,
            alpha: 1.0,
            controls: Controls::default(),
        }
    }
}

control_setters!(Quantile);

impl Quantile {
    /// Sets τ, between 0 and 1 (default ½: the median).
    pub fn quantile(self, quantile: f64) -> Self {
        Self { quantile, ..self }
    }

    /// Sets α ≥ 0, the weight of ‖w‖₁ (default 1).
    pub fn alpha(self, alpha: f64) -> Self {
        Self { alpha, ..self }
    }
}

impl Regression for Quantile {
    fn check(&self) -> Result<(), FitError> {
        not_negative("alpha", self.alpha)?;
        if self.quantile > 0.0 && self.quantile < 1.0 {
            return Ok(());
        }
        Err(FitError::Parameter {
            name: "quantile",
            expected: "above 0 and below 1",
            found: self.quantile,
        })
    }

    fn is_kinked(&self) -> bool {
        true
    }

    fn spec(&self, _: f64) -> ObjectiveSpec {
        ObjectiveSpec {
            l1: self.alpha,
            ..ObjectiveSpec::mean_of(SampleLoss::Kinked(Kinked::Quantile(self.quantile)))
        }
    }
}
