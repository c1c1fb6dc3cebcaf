//! Generalised linear models: a distribution of the targets, and a link between mean and linear predictor.
//!
//! The loss is half the unit deviance without what depends on b alone. With μ the mean, V its variance function and
//! μ' = dμ/dt, its derivative is (μ − b)·μ'/V(μ) and Fisher's weight is μ'²/V(μ). For V = μᵖ both are computed from
//! ρ = μ'/μ, as ρ·(μ²⁻ᵖ − b·μ¹⁻ᵖ) and ρ²·μ²⁻ᵖ, so that nothing overflows before the result does.
//!
//! Functions are inlined where that counts: see [`super::judge`].
//!
//! Source: P. McCullagh and J. Nelder, *Generalized Linear Models*, 2nd ed., 1989; B. Jørgensen, *The Theory of
//! Dispersion Models*, 1997 (tweedie).

use super::Point;
use crate::math::{
    Elementary, Normal, exp, exp_m1, exp_of_product, is_nan, ln, ln_1p, sigmoid, softplus, times,
};

/// The distribution of the targets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// V = 1; any b.
    Gaussian,
    /// V = μ·(1 − μ); b from 0 to 1, the proportion of successes.
    Binomial,
    /// V = μ; b ≥ 0.
    Poisson,
    /// V = μ²; b > 0.
    Gamma,
    /// V = μ³; b > 0.
    InverseGaussian,
    /// V = μᵖ; b ≥ 0 for p < 2, b > 0 from there on.
    Tweedie {
        /// p: 0, or at least 1.
        power: f64,
    },
}

/// The function g with g(μ) = t.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Link {
    /// t = μ.
    Identity,
    /// t = ln(μ / (1 − μ)).
    Logit,
    /// t = Φ⁻¹(μ).
    Probit,
    /// t = ln(−ln(1 − μ)).
    Cloglog,
    /// t = ln μ.
    Log,
    /// t = 1 / μ.
    Inverse,
    /// t = √μ, for t > 0.
    Sqrt,
    /// t = μˣ with this exponent x, which is not 0; for t > 0.
    Power(f64),
}

impl Distribution {
    /// Tweedie of power 0, 1, 2, 3 as gaussian, poisson, gamma, inverse gaussian.
    pub fn simplified(self) -> Distribution {
        match self {
            Distribution::Tweedie { power: 0.0 } => Distribution::Gaussian,
            Distribution::Tweedie { power: 1.0 } => Distribution::Poisson,
            Distribution::Tweedie { power: 2.0 } => Distribution::Gamma,
            Distribution::Tweedie { power: 3.0 } => Distribution::InverseGaussian,
            other => other,
        }
    }

    /// Whether b is a possible target.
    pub fn accepts(self, b: f64) -> bool {
        match self {
            Distribution::Gaussian => b.is_finite(),
            Distribution::Binomial => (0.0..=1.0).contains(&b),
            other => {
                b.is_finite() && (b > 0.0 || b == 0.0 && other.power() < 2.0)
                    || other.power() == 0.0
            }
        }
    }

    /// p of V = μᵖ; 0 for binomial.
    pub fn power(self) -> f64 {
        match self {
            Distribution::Gaussian | Distribution::Binomial => 0.0,
            Distribution::Poisson => 1.0,
            Distribution::Gamma => 2.0,
            Distribution::InverseGaussian => 3.0,
            Distribution::Tweedie { power } => power,
        }
    }

    pub(super) fn code(self) -> u32 {
        match self {
            Distribution::Gaussian => distribution::GAUSSIAN,
            Distribution::Binomial => distribution::BINOMIAL,
            Distribution::Poisson => distribution::POISSON,
            Distribution::Gamma => distribution::GAMMA,
            Distribution::InverseGaussian => distribution::INVERSE_GAUSSIAN,
            Distribution::Tweedie { .. } => distribution::TWEEDIE,
        }
    }
}

impl Link {
    /// The mean at t: the inverse of the link. NaN outside its domain.
    pub fn mean<T: Elementary>(self, t: T) -> T {
        mean(self.code(), T::of_f64(self.inverse_exponent()), t)
    }

    pub(super) fn code(self) -> u32 {
        match self {
            Link::Identity => link::IDENTITY,
            Link::Logit => link::LOGIT,
            Link::Probit => link::PROBIT,
            Link::Cloglog => link::CLOGLOG,
            Link::Log => link::LOG,
            Link::Inverse => link::INVERSE,
            Link::Sqrt | Link::Power(_) => link::POWER,
        }
    }

    /// 1/x of t = μˣ.
    pub(super) fn inverse_exponent(self) -> f64 {
        match self {
            Link::Sqrt => 2.0,
            Link::Power(exponent) => 1.0 / exponent,
            _ => 1.0,
        }
    }
}

pub(super) mod distribution {
    pub const GAUSSIAN: u32 = 0;
    pub const BINOMIAL: u32 = 1;
    pub const POISSON: u32 = 2;
    pub const GAMMA: u32 = 3;
    pub const INVERSE_GAUSSIAN: u32 = 4;
    pub const TWEEDIE: u32 = 5;
}

mod link {
    pub const IDENTITY: u32 = 0;
    pub const LOGIT: u32 = 1;
    pub const PROBIT: u32 = 2;
    pub const CLOGLOG: u32 = 3;
    pub const LOG: u32 = 4;
    pub const INVERSE: u32 = 5;
    pub const POWER: u32 = 6;
}

/// The mean at t, and what distributions need of it.
#[derive(Clone, Copy)]
struct Mean<T> {
    /// μ.
    mean: T,
    /// 1/μ.
    inverse: T,
    /// ln μ.
    ln: T,
    /// ρ = μ'/μ.
    rate: T,
    /// μ'.
    slope: T,
}

/// eᵗ for cloglog, finite: where it would overflow the mean has been 1 for long.
#[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
fn finite_exp<T: Elementary>(t: T) -> T {
    let limit = T::REDUCTION.exp_range[0] - T::TWO;
    exp(if t > limit { limit } else { t })
}

/// m / (eᵐ − 1), 1 at 0.
#[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
fn over_exp_m1<T: Elementary>(m: T) -> T {
    if m == T::ZERO { T::ONE } else { m / exp_m1(m) }
}

impl<T: Elementary> Mean<T> {
    /// Of a mean with its logarithm and ρ, away from 0.
    #[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
    fn positive(mean: T, ln: T, rate: T) -> Self {
        Mean {
            mean,
            inverse: T::ONE / mean,
            ln,
            rate,
            slope: rate * mean,
        }
    }

    #[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
    fn at(code: u32, exponent: T, t: T) -> Self {
        match code {
            link::IDENTITY => Mean {
                mean: t,
                inverse: T::ONE / t,
                ln: ln(t),
                rate: T::ONE / t,
                slope: T::ONE,
            },
            link::LOGIT => {
                let (yes, no, _) = sigmoid(t);
                Self::positive(yes, -softplus(-t), no)
            }
            link::PROBIT => {
                let normal = Normal::at(t);
                Self::positive(normal.tails[0], normal.ln_tails[0], normal.ratios[0])
            }
            link::CLOGLOG => {
                let m = finite_exp(t);
                let mean = -exp_m1(-m);
                Self::positive(mean, ln(mean), over_exp_m1(m))
            }
            link::LOG => Self::positive(exp(t), t, T::ONE),
            link::INVERSE => {
                let mean = T::ONE / t;
                Mean {
                    mean,
                    inverse: t,
                    ln: -ln(t),
                    rate: -mean,
                    slope: -mean * mean,
                }
            }
            _ => Self::power(exponent, t),
        }
    }

    /// t = μˣ with 1/x given.
    #[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
    fn power(inverse_exponent: T, t: T) -> Self {
        let l = ln(t);
        Self::positive(
            exp_of_product(inverse_exponent, l),
            inverse_exponent * l,
            inverse_exponent / t,
        )
    }
}

/// Whether the link has a mean at t: powers are for t > 0, the inverse is for t ≠ 0.
#[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
fn in_domain<T: Elementary>(code: u32, t: T) -> bool {
    match code {
        link::POWER => t > T::ZERO,
        link::INVERSE => t != T::ZERO,
        _ => true,
    }
}

/// The mean at t; NaN outside the link's domain.
#[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
pub(super) fn mean<T: Elementary>(code: u32, inverse_exponent: T, t: T) -> T {
    if !in_domain(code, t) {
        return T::NAN;
    }
    Mean::at(code, inverse_exponent, t).mean
}

/// Loss and derivatives of a model; `parameters` are the power of the variance and the inverse exponent of the link.
#[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
pub(super) fn at<T: Elementary>(
    distribution: u32,
    link: u32,
    [power, inverse_exponent]: [T; 2],
    t: T,
    b: T,
) -> Point<T> {
    if is_nan(t) {
        return Point {
            loss: t,
            slope: t,
            curvature: t,
        };
    }
    if !in_domain(link, t) {
        return Point::OUTSIDE;
    }
    if distribution == distribution::BINOMIAL {
        return binomial(link, inverse_exponent, t, b);
    }
    let mean = Mean::at(link, inverse_exponent, t);
    if distribution == distribution::GAUSSIAN {
        return gaussian(&mean, b);
    }
    // A mean that underflows still has its logarithm.
    if mean.mean < T::ZERO || mean.ln == -T::INFINITY {
        return Point::OUTSIDE;
    }
    positive(distribution, power, &mean, b)
}

#[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
fn gaussian<T: Elementary>(mean: &Mean<T>, b: T) -> Point<T> {
    let residual = mean.mean - b;
    Point {
        loss: T::HALF * residual * residual,
        slope: residual * mean.slope,
        curvature: mean.slope * mean.slope,
    }
}

/// V = μᵖ with p ≥ 1: loss, μ²⁻ᵖ and μ¹⁻ᵖ decide all.
#[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
fn positive<T: Elementary>(distribution: u32, power: T, mean: &Mean<T>, b: T) -> Point<T> {
    let Mean {
        mean: mu,
        inverse,
        ln,
        rate,
        ..
    } = *mean;
    // Where both terms would overflow against one another.
    let factored = mu < T::ONE && power > T::TWO;
    let (loss, high, low) = match distribution {
        distribution::POISSON => (mu - times(b, ln), mu, T::ONE),
        distribution::GAMMA => (b.fma(inverse, ln), T::ONE, inverse),
        distribution::INVERSE_GAUSSIAN => (
            inverse * (T::HALF * b).fma(inverse, -T::ONE),
            inverse,
            inverse * inverse,
        ),
        _ => {
            let (to_high, to_low) = (T::TWO - power, T::ONE - power);
            let (high, low) = (exp_of_product(to_high, ln), exp_of_product(to_low, ln));
            let loss = if factored {
                low * (mu / to_high - b / to_low)
            } else {
                high / to_high - times(b, low) / to_low
            };
            (loss, high, low)
        }
    };
    let difference = if factored {
        low * (mu - b)
    } else {
        high - times(b, low)
    };
    Point {
        loss,
        slope: rate * difference,
        curvature: rate * rate * high,
    }
}

/// −b·ln μ − (1 − b)·ln(1 − μ).
#[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
fn binomial<T: Elementary>(link: u32, inverse_exponent: T, t: T, b: T) -> Point<T> {
    let not_b = T::ONE - b;
    match link {
        link::LOGIT => super::RowLoss::at(&super::Logistic, t, b),
        link::PROBIT => {
            let Normal {
                ln_tails, ratios, ..
            } = Normal::at(t);
            Point {
                loss: -times(b, ln_tails[0]) - times(not_b, ln_tails[1]),
                slope: times(not_b, ratios[1]) - times(b, ratios[0]),
                curvature: ratios[0] * ratios[1],
            }
        }
        link::CLOGLOG => {
            let m = finite_exp(t);
            let ratio = over_exp_m1(m);
            Point {
                loss: times(not_b, m) - times(b, ln(-exp_m1(-m))),
                slope: times(not_b, m) - times(b, ratio),
                curvature: m * ratio,
            }
        }
        link::LOG => {
            if t >= T::ZERO {
                return Point::OUTSIDE;
            }
            let odds = T::ONE / exp_m1(-t);
            Point {
                loss: -(b * t) - times(not_b, ln(-exp_m1(t))),
                slope: times(not_b, odds) - b,
                curvature: odds,
            }
        }
        _ => {
            let Mean {
                mean,
                ln,
                rate,
                slope,
                ..
            } = Mean::at(link, inverse_exponent, t);
            let rest = T::ONE - mean;
            if mean <= T::ZERO || rest <= T::ZERO {
                return Point::OUTSIDE;
            }
            Point {
                loss: -times(b, ln) - times(not_b, ln_1p(-mean)),
                slope: times(not_b, slope) / rest - times(b, rate),
                curvature: rate * slope / rest,
            }
        }
    }
}
