//! Distributions and links of generalised linear models.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::metrics::Deviance;
use crate::ops::objective as kernels;

/// The distribution of the targets of a [`Glm`](super::Glm).
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

/// The function g of a [`Glm`](super::Glm), g(mean) = linear predictor.
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
    /// The link that is used unless another is requested.
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

    /// V(μ), the variance of a target of mean μ over the dispersion.
    pub(super) fn variance(self, mean: f64) -> f64 {
        match self {
            Family::Gaussian => 1.0,
            Family::Binomial => mean * (1.0 - mean),
            Family::Poisson => mean,
            Family::Gamma => mean * mean,
            Family::InverseGaussian => mean * mean * mean,
            Family::Tweedie { power } => mean.powf(power),
        }
    }

    /// What the loss of the kernels lacks of half the deviance: a function of the target alone.
    pub(super) fn saturated(self, b: f64) -> f64 {
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

impl Link {
    /// The mean of a linear predictor.
    pub(super) fn mean(self, t: f64) -> f64 {
        self.of_kernels().mean(t)
    }

    /// dμ/dt.
    pub(super) fn slope(self, t: f64) -> f64 {
        match self {
            Link::Identity => 1.0,
            Link::Logit => {
                let mean = self.mean(t);
                mean * (1.0 - mean)
            }
            Link::Probit => (-0.5 * t * t).exp() / (2.0 * std::f64::consts::PI).sqrt(),
            Link::Cloglog => (t - t.exp()).exp(),
            Link::Log => t.exp(),
            Link::Inverse => -1.0 / (t * t),
            Link::Sqrt => 2.0 * t,
            Link::Power(exponent) => t.powf(1.0 / exponent - 1.0) / exponent,
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
