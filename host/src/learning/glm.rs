//! Generalised linear models.

use serde::{Deserialize, Serialize};

use super::FitError;
use super::checks::{not_negative, share};
use super::controls::{Controls, control_setters};
use super::family::{Family, Link};
use super::problem::Regression;
use super::spec::{ObjectiveSpec, SampleLoss};
use crate::ops::objective as kernels;

/// A generalised linear model: minimises `Σ vᵢ·½d(yᵢ, μᵢ) / S + α·((1 − ρ)/2·‖w‖² + ρ‖w‖₁)`, S = Σ vᵢ, d the unit
/// deviance of the family, `g(μᵢ) = xᵢ·w + b`, the intercept unpenalised.
///
/// The same numbers as scikit-learn's `PoissonRegressor`, `GammaRegressor` and `TweedieRegressor` (ρ = 0), and with
/// α = 0 the maximum likelihood estimates of statsmodels' `GLM` with the same family and link.
///
/// | [`Family`] | V(μ) | links that are common |
/// |---|---|---|
/// | `Gaussian` | 1 | identity, log, inverse |
/// | `Binomial` | μ(1 − μ) | logit, probit, cloglog, log |
/// | `Poisson` | μ | log, sqrt, identity |
/// | `Gamma` | μ² | log, inverse, identity |
/// | `InverseGaussian` | μ³ | log, `Power(-2)`, inverse |
/// | `Tweedie { power }` | μᵖ | log |
///
/// **Solver.** Fisher scoring (iteratively reweighted least squares; Newton's method where the link is canonical),
/// by Cholesky factors where the problem is small enough, else in a trust region, each step from inner conjugate
/// gradients; L-BFGS on demand; with ρ > 0 by coordinate descent or in one orthant at a time ([`Glm::solver`]). A step
/// that leaves the domain of the link, such as a negative mean of counts, is refused. Without an intercept coefficients of 0
/// may be outside the domain: means of 0 by the identity. The fit then begins at coefficients that give every row a
/// mean that the family has, which a squared hinge finds where there are any, and is refused where there are none.
///
/// | parameter | default | scikit-learn |
/// |---|---|---|
/// | `family` | gaussian | the class; `power` of `TweedieRegressor` |
/// | `link` | see [`Family`] | `link='auto'` |
/// | `alpha` | 1 | `alpha=1.0` |
/// | `l1_ratio` | 0 | – |
/// | `fit_intercept` | yes | `fit_intercept=True` |
/// | `tolerance` | 1e-6, of the gradient's norm over that of the intercept-only model | `tol=1e-4`, of the largest element |
/// | `max_iter` | 1000 | `max_iter=100` |
///
/// ```
/// use ndarray::array;
/// use warpfuse::device::Device;
/// use warpfuse::learning::{Family, Glm};
/// use warpfuse::matrix::Features;
///
/// let x = Features::Dense(array![[0.0], [1.0], [2.0], [3.0]]);
/// let model = Glm::params().family(Family::Poisson).alpha(0.0).fit(&Device::cpu(), x, &[1.0, 2.0, 4.0, 8.0])?;
/// assert!((model.coef()[0] - 2f64.ln()).abs() < 1e-6);
/// # Ok::<(), warpfuse::learning::FitError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Glm {
    family: Family,
    link: Option<Link>,
    alpha: f64,
    l1_ratio: f64,
    controls: Controls,
}

impl Default for Glm {
    fn default() -> Self {
        Glm {
            family: Family::Gaussian,
            link: None,
            alpha: 1.0,
            l1_ratio: 0.0,
            controls: Controls::default(),
        }
    }
}

control_setters!(Glm);

impl Glm {
    /// Sets the distribution of the targets (default gaussian).
    pub fn family(self, family: Family) -> Self {
        Self { family, ..self }
    }

    /// Sets the link (default: [`Family::default_link`]).
    pub fn link(self, link: Link) -> Self {
        let link = Some(link);
        Self { link, ..self }
    }

    /// Sets α ≥ 0, the strength of the penalty (default 1).
    pub fn alpha(self, alpha: f64) -> Self {
        Self { alpha, ..self }
    }

    /// Sets ρ, the share of the l1 norm in the penalty, from 0 to 1 (default 0).
    pub fn l1_ratio(self, l1_ratio: f64) -> Self {
        Self { l1_ratio, ..self }
    }

    /// The distribution of the targets, and the link in use.
    pub fn family_and_link(&self) -> (Family, Link) {
        let link = self.link.unwrap_or(self.family.default_link());
        (self.family, link)
    }

    fn loss(&self) -> kernels::Loss {
        let (family, link) = self.family_and_link();
        let (distribution, link) = (family.of_kernels(), link.of_kernels());
        kernels::Loss::Glm { distribution, link }.simplified()
    }
}

impl Regression for Glm {
    fn check(&self) -> Result<(), FitError> {
        not_negative("alpha", self.alpha)?;
        share("l1_ratio", self.l1_ratio)?;
        if let Family::Tweedie { power } = self.family
            && !(power == 0.0 || power >= 1.0 && power.is_finite())
        {
            return Err(FitError::Parameter {
                name: "power",
                expected: "0, or finite and at least 1",
                found: power,
            });
        }
        if let Some(Link::Power(exponent)) = self.link
            && !(exponent.is_finite() && exponent != 0.0)
        {
            return Err(FitError::Parameter {
                name: "the exponent of the link",
                expected: "finite and not 0 (for which log is the limit)",
                found: exponent,
            });
        }
        Ok(())
    }

    fn spec(&self, _: f64) -> ObjectiveSpec {
        ObjectiveSpec {
            l2: self.alpha * (1.0 - self.l1_ratio),
            l1: self.alpha * self.l1_ratio,
            ..ObjectiveSpec::mean_of(SampleLoss::Single(self.loss()))
        }
    }

    fn glm(&self) -> Option<(Family, Link)> {
        Some(self.family_and_link())
    }
}
