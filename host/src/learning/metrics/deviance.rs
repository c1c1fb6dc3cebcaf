//! Deviances of the exponential family: what a generalised linear model minimises.

use super::MetricError;
use super::sums::{Weights, explained_share, same_length};
use crate::ops::objective::{Distribution, unit_deviance};

/// A unit deviance d(t, μ): zero for a perfect mean, and twice the lack of log-likelihood elsewhere.
///
/// Definitions as in scikit-learn's `mean_tweedie_deviance`; Jørgensen 1997, "The Theory of Dispersion Models".
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Deviance {
    /// `(t − μ)²`; explained deviance is then R².
    Gaussian,
    /// `2·(t·ln(t/μ) + (1 − t)·ln((1 − t)/(1 − μ)))`, targets and means in [0, 1].
    Binomial,
    /// `2·(t·ln(t/μ) − t + μ)`, t ≥ 0.
    Poisson,
    /// `2·(ln(μ/t) + t/μ − 1)`, t > 0.
    Gamma,
    /// `(t − μ)² / (t·μ²)`, t > 0.
    InverseGaussian,
    /// Tweedie's with this power; 0, 1, 2 and 3 are gaussian, poisson, gamma and inverse gaussian. Not between
    /// 0 and 1.
    Tweedie(f64),
}

impl Deviance {
    /// `Σ w·d(t, μ) / Σ w`.
    ///
    /// # Errors
    /// [`MetricError::Domain`] for targets and means that the family does not have, [`MetricError::Power`] for
    /// powers between 0 and 1, and when lengths or weights do not fit.
    ///
    /// ```
    /// use warpfuse::learning::metrics::Deviance;
    /// let deviance = Deviance::Poisson.mean(&[0.0, 2.0], &[1.0, 2.0], None)?;
    /// assert_eq!(deviance, 1.0);
    /// # Ok::<(), warpfuse::learning::metrics::MetricError>(())
    /// ```
    pub fn mean(
        self,
        targets: &[f64],
        means: &[f64],
        weights: Option<&[f64]>,
    ) -> Result<f64, MetricError> {
        same_length("predictions", means.len(), targets.len())?;
        let weights = Weights::check(weights, targets.len())?;
        self.check(targets, means)?;
        Ok(weights.mean(|row| self.unit(targets[row], means[row])))
    }

    /// D², the explained deviance: `1 − Σ w·d(t, μ) / Σ w·d(t, t̄)`, t̄ the weighted mean.
    ///
    /// For constant targets it is 1 when every mean is exact and 0 otherwise.
    ///
    /// # Errors
    /// As [`Deviance::mean`].
    pub fn explained(
        self,
        targets: &[f64],
        means: &[f64],
        weights: Option<&[f64]>,
    ) -> Result<f64, MetricError> {
        let found = self.mean(targets, means, weights)?;
        let weights = Weights::check(weights, targets.len())?;
        let mean = weights.mean(|row| targets[row]);
        let constant = targets.iter().all(|target| *target == targets[0]);
        let null = match constant {
            true => 0.0,
            false => weights.mean(|row| self.unit(targets[row], mean)),
        };
        Ok(explained_share(found, null))
    }

    /// d(t, μ), both in the family's domain: that of the kernels, where they have one.
    fn unit(self, t: f64, mu: f64) -> f64 {
        let distribution = match self {
            Deviance::Gaussian => Distribution::Gaussian,
            Deviance::Binomial => Distribution::Binomial,
            Deviance::Poisson => Distribution::Poisson,
            Deviance::Gamma => Distribution::Gamma,
            Deviance::InverseGaussian => Distribution::InverseGaussian,
            Deviance::Tweedie(power) if power < 0.0 => return extreme_stable(power, t, mu),
            Deviance::Tweedie(power) => Distribution::Tweedie { power },
        };
        unit_deviance(distribution, t, mu)
    }

    /// A Tweedie power that has a name of its own, by that name.
    fn simplified(self) -> Self {
        match self {
            Deviance::Tweedie(0.0) => Deviance::Gaussian,
            Deviance::Tweedie(1.0) => Deviance::Poisson,
            Deviance::Tweedie(2.0) => Deviance::Gamma,
            Deviance::Tweedie(3.0) => Deviance::InverseGaussian,
            other => other,
        }
    }

    fn check(self, targets: &[f64], means: &[f64]) -> Result<(), MetricError> {
        let (of_targets, of_means) = match self.simplified() {
            Deviance::Gaussian => (Domain::Real, Domain::Real),
            Deviance::Binomial => (Domain::Unit, Domain::Unit),
            Deviance::Poisson => (Domain::NotNegative, Domain::Positive),
            Deviance::Gamma | Deviance::InverseGaussian => (Domain::Positive, Domain::Positive),
            Deviance::Tweedie(power) if power < 0.0 => (Domain::Real, Domain::Positive),
            Deviance::Tweedie(power) if (1.0..2.0).contains(&power) => {
                (Domain::NotNegative, Domain::Positive)
            }
            Deviance::Tweedie(power) if power.is_finite() && power > 2.0 => {
                (Domain::Positive, Domain::Positive)
            }
            Deviance::Tweedie(power) => return Err(MetricError::Power(power)),
        };
        of_targets.check("targets", targets)?;
        of_means.check("predictions", means)
    }
}

/// Tweedie's of a negative power, for any t: metrics know it, models do not.
fn extreme_stable(power: f64, t: f64, mu: f64) -> f64 {
    let (one, two) = (1.0 - power, 2.0 - power);
    let of_target = t.max(0.0).powf(two) / (one * two);
    2.0 * (of_target - t * mu.powf(one) / one + mu.powf(two) / two)
}

/// Values that a family has.
#[derive(Debug, Clone, Copy)]
enum Domain {
    Real,
    Unit,
    NotNegative,
    Positive,
}

impl Domain {
    fn holds(self, value: f64) -> bool {
        match self {
            Domain::Real => !value.is_nan(),
            Domain::Unit => (0.0..=1.0).contains(&value),
            Domain::NotNegative => value >= 0.0,
            Domain::Positive => value > 0.0,
        }
    }

    fn check(self, what: &'static str, values: &[f64]) -> Result<(), MetricError> {
        let expected = match self {
            Domain::Real => "that are numbers",
            Domain::Unit => "from 0 to 1",
            Domain::NotNegative => "of 0 or more",
            Domain::Positive => "above 0",
        };
        match values.iter().position(|value| !self.holds(*value)) {
            None => Ok(()),
            Some(row) => Err(MetricError::Domain {
                what,
                expected,
                row,
                value: values[row],
            }),
        }
    }
}
