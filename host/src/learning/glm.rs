//! Generalised linear models.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::FitError;
use super::fit::{Controls, ObjectiveSpec, SampleLoss, control_setters, not_negative, share};
use super::fit_methods::{NumberEstimator, number_estimator};
use super::metrics::Deviance;
use super::regressor::{Regressor, RegressorParams};
use super::solver::Solver;
use crate::matrix::Element;
use crate::ops::{Number, objective as kernels};

/// The distribution of the targets of a [`Glm`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Variance 1; any target. Link by default: identity.
    #[default]
    Gaussian,
    /// Variance μ(1 − μ); targets from 0 to 1. Link by default: logit.
    Binomial,
    /// Variance μ; targets ≥ 0. Link by default: log.
    Poisson,
    /// Variance μ²; targets > 0. Link by default: log, as in scikit-learn (statsmodels: inverse).
    Gamma,
    /// Variance μ³; targets > 0. Link by default: log (statsmodels: inverse squared, `Power(-2)`).
    InverseGaussian,
    /// Variance μᵖ; targets as the power allows. Link by default: log, and identity for power 0.
    Tweedie {
        /// p: 0, or at least 1.
        power: f64,
    },
}

/// The function g of a [`Glm`], g(mean) = linear predictor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    /// μ.
    #[default]
    Identity,
    /// ln(μ / (1 − μ)).
    Logit,
    /// Φ⁻¹(μ).
    Probit,
    /// ln(−ln(1 − μ)).
    Cloglog,
    /// ln μ.
    Log,
    /// 1 / μ.
    Inverse,
    /// √μ.
    Sqrt,
    /// μˣ with this exponent x, not 0.
    Power(f64),
}

impl Family {
    /// The link that is used unless another is asked for.
    pub fn default_link(self) -> Link {
        match self {
            Family::Gaussian | Family::Tweedie { power: 0.0 } => Link::Identity,
            Family::Binomial => Link::Logit,
            _ => Link::Log,
        }
    }

    pub(super) fn of_kernels(self) -> kernels::Distribution {
        match self {
            Family::Gaussian => kernels::Distribution::Gaussian,
            Family::Binomial => kernels::Distribution::Binomial,
            Family::Poisson => kernels::Distribution::Poisson,
            Family::Gamma => kernels::Distribution::Gamma,
            Family::InverseGaussian => kernels::Distribution::InverseGaussian,
            Family::Tweedie { power } => kernels::Distribution::Tweedie { power },
        }
    }

    /// What the loss of the kernels lacks of half the deviance: a function of the target alone.
    fn saturated(self, b: f64) -> f64 {
        let x_ln_x = |x: f64| if x == 0.0 { 0.0 } else { x * x.ln() };
        match self.of_kernels().simplified() {
            kernels::Distribution::Gaussian => 0.0,
            kernels::Distribution::Binomial => -x_ln_x(b) - x_ln_x(1.0 - b),
            kernels::Distribution::Poisson => b - x_ln_x(b),
            kernels::Distribution::Gamma => 1.0 + b.ln(),
            kernels::Distribution::InverseGaussian => -0.5 / b,
            kernels::Distribution::Tweedie { power } => {
                let high = b.powf(2.0 - power);
                high / (2.0 - power) - high / (1.0 - power)
            }
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Family::Gaussian => f.write_str("gaussian"),
            Family::Binomial => f.write_str("binomial"),
            Family::Poisson => f.write_str("poisson"),
            Family::Gamma => f.write_str("gamma"),
            Family::InverseGaussian => f.write_str("inverse gaussian"),
            Family::Tweedie { power } => write!(f, "tweedie (power {power})"),
        }
    }
}

impl From<Family> for Deviance {
    fn from(family: Family) -> Deviance {
        match family {
            Family::Gaussian => Deviance::Gaussian,
            Family::Binomial => Deviance::Binomial,
            Family::Poisson => Deviance::Poisson,
            Family::Gamma => Deviance::Gamma,
            Family::InverseGaussian => Deviance::InverseGaussian,
            Family::Tweedie { power } => Deviance::Tweedie(power),
        }
    }
}

impl Link {
    pub(super) fn of_kernels(self) -> kernels::Link {
        match self {
            Link::Identity => kernels::Link::Identity,
            Link::Logit => kernels::Link::Logit,
            Link::Probit => kernels::Link::Probit,
            Link::Cloglog => kernels::Link::Cloglog,
            Link::Log => kernels::Link::Log,
            Link::Inverse => kernels::Link::Inverse,
            Link::Sqrt => kernels::Link::Sqrt,
            Link::Power(exponent) => kernels::Link::Power(exponent),
        }
    }
}

/// g(mean), by bisection where g has no closed form.
pub(super) fn link_of_mean(link: kernels::Link, mean: f64) -> f64 {
    match link {
        kernels::Link::Identity => mean,
        kernels::Link::Logit => (mean / (1.0 - mean)).ln(),
        kernels::Link::Cloglog => (-(-mean).ln_1p()).ln(),
        kernels::Link::Log => mean.ln(),
        kernels::Link::Inverse => 1.0 / mean,
        kernels::Link::Sqrt => mean.sqrt(),
        kernels::Link::Power(exponent) => mean.powf(exponent),
        kernels::Link::Probit => {
            let (mut low, mut high) = (-40.0, 40.0);
            for _ in 0..80 {
                let middle: f64 = 0.5 * (low + high);
                if link.mean(middle) < mean {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            0.5 * (low + high)
        }
    }
}

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
/// **Solver.** Fisher scoring (iteratively reweighted least squares; Newton's method where the link is canonical)
/// in a trust region, each step from inner conjugate gradients; L-BFGS on demand; with ρ > 0 in one orthant at a time.
/// A step that leaves the domain of the link, such as a negative mean of counts, is refused. X is read once per
/// outer iteration for loss and gradient, and once per inner iteration.
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
number_estimator!(Glm);

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

    /// Sets how directions are found (default [`Solver::NewtonCg`]).
    pub fn solver(mut self, solver: Solver) -> Self {
        self.controls.solver = solver;
        self
    }

    /// The distribution of the targets, and the link in use.
    pub fn family_and_link(&self) -> (Family, Link) {
        let link = self.link.unwrap_or(self.family.default_link());
        (self.family, link)
    }

    /// Whether a linear predictor of 0 is outside the domain.
    fn starts_outside(&self) -> bool {
        let loss = self.loss();
        !loss.at(0.0, 1.0).loss.is_finite() || !loss.at(0.0, 1.0).slope.is_finite()
    }

    fn loss(&self) -> kernels::Loss {
        let (family, link) = self.family_and_link();
        let (distribution, link) = (family.of_kernels(), link.of_kernels());
        kernels::Loss::Glm { distribution, link }.simplified()
    }
}

impl NumberEstimator for Glm {
    fn controls(&self) -> &Controls {
        &self.controls
    }

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
        if self.alpha * self.l1_ratio > 0.0 && self.controls.solver == Solver::Lbfgs {
            return Err(FitError::Combination {
                first: "solver lbfgs",
                second: "an l1 penalty",
                remedy: "use Newton's method (newton-cg)",
            });
        }
        if !self.controls.fit_intercept && self.starts_outside() {
            return Err(FitError::Combination {
                first: "this link without an intercept",
                second: "this family",
                remedy: "fit an intercept, from which a start inside the link's domain is known, or use link log",
            });
        }
        Ok(())
    }

    fn check_domain<T: Number>(&self, targets: &[T]) -> Result<(), FitError> {
        let distribution = self.family.of_kernels();
        let outside = |b: &T| !distribution.accepts(Element::to_f64(*b));
        match targets.iter().position(outside) {
            Some(row) => Err(FitError::TargetOutside {
                row,
                value: Element::to_f64(targets[row]),
                distribution: self.family.to_string(),
            }),
            None => Ok(()),
        }
    }

    fn spec<T: Number>(&self, targets: &[T], weights: &[f64]) -> ObjectiveSpec {
        let total: f64 = weights.iter().sum();
        let saturated: f64 = targets
            .iter()
            .zip(weights)
            .filter(|(_, weight)| **weight > 0.0)
            .map(|(b, weight)| weight * self.family.saturated(Element::to_f64(*b)))
            .sum();
        ObjectiveSpec {
            loss: SampleLoss::Single(self.loss()),
            l2: self.alpha * (1.0 - self.l1_ratio),
            l1: self.alpha * self.l1_ratio,
            intercept_l2: 0.0,
            factor: 1.0,
            constant: -saturated / total,
        }
    }
    fn into_params(self) -> RegressorParams {
        RegressorParams::Glm(self)
    }
}
