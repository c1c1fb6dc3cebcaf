//! The losses, each as a type, and all of them as a value.

use super::glm::{self, Distribution, Link};
use super::{Point, RowLoss};
use crate::math::{Elementary, ln_1p, sigmoid, times};

/// A loss as the host names it.
///
/// | loss | of one row | target b |
/// |---|---|---|
/// | `Squared` | ½·(t − b)² | any |
/// | `Logistic` | ln(1 + eᵗ) − b·t | 0 to 1 |
/// | `SquaredHinge` | max(0, 1 − b·t)² | −1 or 1 |
/// | `EpsilonInsensitive` | max(0, \|t − b\| − ε)² | any |
/// | `Huber` | ½·r² up to δ, δ·\|r\| − ½·δ² beyond, r = t − b | any |
/// | `Glm` | half the deviance, up to a constant of b | see [`Distribution`] |
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Loss {
    /// Least squares.
    Squared,
    /// Binary logistic regression: [`Distribution::Binomial`] with [`Link::Logit`].
    Logistic,
    /// L2-loss support vector classification.
    SquaredHinge,
    /// L2-loss support vector regression.
    EpsilonInsensitive {
        /// ε: residuals up to it cost nothing.
        epsilon: f64,
    },
    /// Huber's: rows further off than δ pull no harder.
    Huber {
        /// δ.
        delta: f64,
    },
    /// A generalised linear model.
    Glm {
        /// The distribution of the targets.
        distribution: Distribution,
        /// The function g with g(mean) = t.
        link: Link,
    },
}

/// For which losses an entry was compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LossClass {
    /// [`Squared`] alone.
    Squared,
    /// [`Logistic`] alone.
    Logistic,
    /// Any, by [`AnyLoss`].
    Any,
}

impl Loss {
    /// The kernels that evaluate it.
    pub fn class(self) -> LossClass {
        match self.simplified() {
            Loss::Squared => LossClass::Squared,
            Loss::Logistic => LossClass::Logistic,
            _ => LossClass::Any,
        }
    }

    /// The same loss in its cheapest form: a GLM that is least squares or logistic regression as such, a tweedie
    /// of power 0, 1, 2 or 3 as the distribution of that power.
    pub fn simplified(self) -> Loss {
        let Loss::Glm { distribution, link } = self else {
            return self;
        };
        match (distribution.simplified(), link) {
            (Distribution::Gaussian, Link::Identity) => Loss::Squared,
            (Distribution::Binomial, Link::Logit) => Loss::Logistic,
            (distribution, link) => Loss::Glm { distribution, link },
        }
    }

    /// Whether b is a possible target.
    pub fn accepts(self, b: f64) -> bool {
        match self {
            Loss::Squared | Loss::EpsilonInsensitive { .. } | Loss::Huber { .. } => b.is_finite(),
            Loss::Logistic => (0.0..=1.0).contains(&b),
            Loss::SquaredHinge => b == 1.0 || b == -1.0,
            Loss::Glm { distribution, .. } => distribution.accepts(b),
        }
    }

    /// What a row with linear predictor `t` and target `b` contributes: the kernels' own arithmetic.
    pub fn at<T: Elementary>(self, t: T, b: T) -> Point<T> {
        AnyLoss(self.code()).at(t, b)
    }

    /// What [`AnyLoss`] branches on.
    pub fn code<T: Elementary>(self) -> LossCode<T> {
        let code = |kind, parameter| LossCode {
            kind,
            link: 0,
            parameter: T::of_f64(parameter),
            exponent: T::ONE,
        };
        match self.simplified() {
            Loss::Squared => code(kind::SQUARED, 0.0),
            Loss::Logistic => code(kind::LOGISTIC, 0.0),
            Loss::SquaredHinge => code(kind::SQUARED_HINGE, 0.0),
            Loss::EpsilonInsensitive { epsilon } => code(kind::EPSILON_INSENSITIVE, epsilon),
            Loss::Huber { delta } => code(kind::HUBER, delta),
            Loss::Glm { distribution, link } => LossCode {
                kind: kind::GLM + distribution.code(),
                link: link.code(),
                parameter: T::of_f64(distribution.power()),
                exponent: T::of_f64(link.inverse_exponent()),
            },
        }
    }
}

mod kind {
    pub const SQUARED: u32 = 0;
    pub const LOGISTIC: u32 = 1;
    pub const SQUARED_HINGE: u32 = 2;
    pub const EPSILON_INSENSITIVE: u32 = 3;
    pub const HUBER: u32 = 4;
    pub const GLM: u32 = 5;
}

/// A loss as a kernel's argument.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossCode<T> {
    kind: u32,
    link: u32,
    parameter: T,
    exponent: T,
}

/// [`Loss::Squared`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Squared;

impl<T: Elementary> RowLoss<T> for Squared {
    #[inline(always)]
    fn at(&self, t: T, b: T) -> Point<T> {
        let residual = t - b;
        Point {
            loss: T::HALF * residual * residual,
            slope: residual,
            curvature: T::ONE,
        }
    }
}

/// [`Loss::Logistic`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Logistic;

impl<T: Elementary> RowLoss<T> for Logistic {
    #[inline(always)]
    fn at(&self, t: T, b: T) -> Point<T> {
        let (yes, no, small) = sigmoid(t);
        let not_b = T::ONE - b;
        // max(t, 0) − b·t without cancellation.
        let linear = if t > T::ZERO {
            times(not_b, t)
        } else {
            -times(b, t)
        };
        Point {
            loss: linear + ln_1p(small),
            slope: not_b.fma(yes, -(b * no)),
            curvature: yes * no,
        }
    }
}

/// [`Loss::SquaredHinge`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SquaredHinge;

impl<T: Elementary> RowLoss<T> for SquaredHinge {
    #[inline(always)]
    fn at(&self, t: T, b: T) -> Point<T> {
        hinge(b.fma(-t, T::ONE), -b)
    }
}

/// `excess²` where it is positive; `direction` (±1) is its derivative by t. A NaN stays.
#[inline(always)]
fn hinge<T: Elementary>(excess: T, direction: T) -> Point<T> {
    if excess <= T::ZERO {
        return Point {
            loss: T::ZERO,
            slope: T::ZERO,
            curvature: T::ZERO,
        };
    }
    Point {
        loss: excess * excess,
        slope: T::TWO * direction * excess,
        curvature: T::TWO,
    }
}

/// [`Loss::EpsilonInsensitive`] with its ε.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EpsilonInsensitive<T>(pub T);

impl<T: Elementary> RowLoss<T> for EpsilonInsensitive<T> {
    #[inline(always)]
    fn at(&self, t: T, b: T) -> Point<T> {
        let residual = t - b;
        if residual < T::ZERO {
            hinge(-residual - self.0, -T::ONE)
        } else {
            hinge(residual - self.0, T::ONE)
        }
    }
}

/// [`Loss::Huber`] with its δ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Huber<T>(pub T);

/// Curvature of a row beyond δ, of what its slope would have on a parabola from the target: a Hessian without it can have
/// no curvature in some direction, and Newton's steps no length.
const BEYOND: f64 = 0.01;

impl<T: Elementary> RowLoss<T> for Huber<T> {
    #[inline(always)]
    fn at(&self, t: T, b: T) -> Point<T> {
        let (residual, delta) = (t - b, self.0);
        // One that is not a number stays so.
        let slope = if residual > delta {
            delta
        } else if residual < -delta {
            -delta
        } else {
            residual
        };
        Point {
            loss: slope * (residual - T::HALF * slope),
            slope,
            curvature: if slope == residual {
                T::ONE
            } else {
                T::of_f64(BEYOND) * slope / residual
            },
        }
    }
}

/// [`Loss::Glm`], its distribution and link chosen by code.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Glm<T>(LossCode<T>);

impl<T: Elementary> RowLoss<T> for Glm<T> {
    #[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
    fn at(&self, t: T, b: T) -> Point<T> {
        let LossCode {
            kind,
            link,
            parameter,
            exponent,
        } = self.0;
        glm::at(kind - kind::GLM, link, [parameter, exponent], t, b)
    }
}

/// Any [`Loss`]: all rows of a launch take the same branch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AnyLoss<T>(pub LossCode<T>);

impl<T: Elementary> RowLoss<T> for AnyLoss<T> {
    #[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
    fn at(&self, t: T, b: T) -> Point<T> {
        match self.0.kind {
            kind::SQUARED => Squared.at(t, b),
            kind::LOGISTIC => Logistic.at(t, b),
            kind::SQUARED_HINGE => SquaredHinge.at(t, b),
            kind::EPSILON_INSENSITIVE => EpsilonInsensitive(self.0.parameter).at(t, b),
            kind::HUBER => Huber(self.0.parameter).at(t, b),
            _ => Glm(self.0).at(t, b),
        }
    }
}
