//! Unit deviances d(b, μ) of the distributions: zero for an exact mean, twice the lack of log-likelihood elsewhere.
//!
//! Definitions as in scikit-learn's `mean_tweedie_deviance`; B. Jørgensen, *The Theory of Dispersion Models*, 1997.

use super::glm::{self, Distribution, Link, distribution};
use crate::math::{Elementary, exp_of_product, is_nan, ln};

/// A distribution and a link as a kernel's argument.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanCode {
    distribution: u32,
    link: u32,
    power: f64,
    inverse_exponent: f64,
}

impl MeanCode {
    /// Of a generalised linear model.
    pub fn new(distribution: Distribution, link: Link) -> MeanCode {
        let distribution = distribution.simplified();
        MeanCode {
            distribution: distribution.code(),
            link: link.code(),
            power: distribution.power(),
            inverse_exponent: link.inverse_exponent(),
        }
    }

    /// The mean at t; NaN outside the link's domain.
    #[inline(always)]
    pub fn mean(&self, t: f64) -> f64 {
        glm::mean(self.link, self.inverse_exponent, t)
    }

    /// d(b, μ); NaN where the distribution has no such target or mean.
    #[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
    pub fn deviance(&self, b: f64, mean: f64) -> f64 {
        if self.distribution == distribution::GAUSSIAN {
            return (b - mean) * (b - mean);
        }
        if self.distribution == distribution::BINOMIAL {
            return binomial(b, mean);
        }
        if is_nan(b) || is_nan(mean) || mean <= 0.0 || b < 0.0 || b == 0.0 && self.power >= 2.0 {
            return f64::NAN;
        }
        match self.distribution {
            distribution::POISSON => 2.0 * (x_ln(b, b / mean) - b + mean),
            distribution::GAMMA => 2.0 * (ln(mean / b) + b / mean - 1.0),
            distribution::INVERSE_GAUSSIAN => {
                let relative = (b - mean) / mean;
                relative * relative / b
            }
            _ => tweedie(self.power, b, mean),
        }
    }
}

#[inline(always)]
fn binomial(b: f64, mean: f64) -> f64 {
    let unit = 0.0..=1.0;
    if !unit.contains(&b) || !unit.contains(&mean) {
        return f64::NAN;
    }
    2.0 * (x_ln(b, b / mean) + x_ln(1.0 - b, (1.0 - b) / (1.0 - mean)))
}

#[inline(always)]
fn tweedie(power: f64, b: f64, mean: f64) -> f64 {
    let (one, two) = (1.0 - power, 2.0 - power);
    let l = ln(mean);
    let of_target = if b == 0.0 {
        0.0
    } else {
        exp_of_product(two, ln(b)) / (one * two)
    };
    2.0 * (of_target - b * exp_of_product(one, l) / one + exp_of_product(two, l) / two)
}

/// x·ln y, 0 where x is.
#[inline(always)]
fn x_ln<T: Elementary>(x: T, y: T) -> T {
    if x == T::ZERO { T::ZERO } else { x * ln(y) }
}
