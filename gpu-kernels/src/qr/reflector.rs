//! One Householder reflector in Higham's formulation, and what keeps its squares in range.
//!
//! For x with first component x₁: s = −sign(x₁)·‖x‖, v = x but for v₁ = x₁ − s, τ = −1 / (s·v₁); then
//! (I − τ·v·vᵀ)·x = s·e₁. v₁ is a sum of numbers of one sign, so that nothing cancels, and all other components of v are those
//! of x. Of x = 0 come v₁ = τ = s = 0: no reflection.
//!
//! τ is of the order of 1 / ‖x‖². Where ‖x‖² is out of range, v is x times a power of two, which changes neither the
//! reflection nor, because it is exact, its accuracy.
//!
//! Source: N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, chapter 19.

use crate::math::{Elementary, abs};
use crate::simt;

/// Numbers with a range in which squares of norms, and their reciprocals, are exact enough.
pub trait Ranged: Elementary {
    /// Between these, ‖x‖² is used as it is. Products of v with other columns then stay finite where those are below
    /// 2⁹⁶ (f32) and 2⁹⁰⁰ (f64); columns that are all larger come in range by their own scales.
    const SAFE: [Self; 2];
    /// The largest finite number.
    const LARGEST: Self;
    /// Exponents of each of the two factors of a scale go so far.
    const REACH: i32;

    /// √x, correctly rounded, of what is [safe](is_safe). Of what is not finite it is not finite; of 0 it is anything.
    fn root(self) -> Self;
    /// 1/x, correctly rounded, for x between the least safe number and four times the largest.
    fn reciprocal(self) -> Self;
}

impl Ranged for f32 {
    // 2⁻⁶⁰ and 2³⁰.
    const SAFE: [f32; 2] = [8.673_617_4e-19, 1_073_741_824.0];
    const LARGEST: f32 = f32::MAX;
    const REACH: i32 = 120;

    #[inline(always)]
    fn root(self) -> f32 {
        simt::root_f32(self)
    }

    #[inline(always)]
    fn reciprocal(self) -> f32 {
        simt::recip_f32(self)
    }
}

impl Ranged for f64 {
    // 2⁻³⁰⁰ and 2²⁰⁰.
    const SAFE: [f64; 2] = [4.909_093_465_297_727e-91, 1.606_938_044_258_990_3e60];
    const LARGEST: f64 = f64::MAX;
    const REACH: i32 = 1_000;

    #[inline(always)]
    fn root(self) -> f64 {
        self.sqrt()
    }

    #[inline(always)]
    fn reciprocal(self) -> f64 {
        1.0 / self
    }
}

/// A power of two, and its reciprocal, as two factors each: that of a subnormal number is not finite.
#[derive(Debug, Clone, Copy)]
pub struct Scale<T> {
    up: [T; 2],
    down: [T; 2],
}

impl<T: Ranged> Scale<T> {
    /// v = x.
    pub const ONE: Scale<T> = Scale {
        up: [T::ONE; 2],
        down: [T::ONE; 2],
    };

    /// What brings a vector whose largest magnitude is this near 1; one for 0 and what is not finite.
    #[inline(always)]
    pub fn of(largest: T) -> Scale<T> {
        if !(largest > T::ZERO && largest <= T::LARGEST) {
            return Self::ONE;
        }
        let (_, exponent) = largest.split();
        let near = exponent.clamp(-T::REACH, T::REACH);
        let parts = [near, exponent - near];
        Scale {
            up: [T::exp2_int(-parts[0]), T::exp2_int(-parts[1])],
            down: [T::exp2_int(parts[0]), T::exp2_int(parts[1])],
        }
    }

    /// What v has of a component of x.
    #[inline(always)]
    pub fn up(&self, x: T) -> T {
        x * self.up[0] * self.up[1]
    }

    /// What x has of a norm of v.
    #[inline(always)]
    pub fn down(&self, norm: T) -> T {
        norm * self.down[1] * self.down[0]
    }
}

/// A reflector without the components that are those of x.
#[derive(Debug, Clone, Copy)]
pub struct Reflector<T> {
    /// v₁.
    pub first: T,
    /// τ.
    pub tau: T,
    /// s.
    pub diagonal: T,
}

/// x₁² + the sum of the squares of the others.
#[inline(always)]
pub fn square<T: Ranged>(x1: T, tail: T) -> T {
    x1.fma(x1, tail)
}

/// Whether ‖x‖² may be used as it is.
#[inline(always)]
pub fn is_safe<T: Ranged>(square: T) -> bool {
    square >= T::SAFE[0] && square <= T::SAFE[1]
}

/// The reflector of x with first component `x1` and ‖x‖² = `square`, both of the scaled x.
#[inline(always)]
pub fn reflector<T: Ranged>(x1: T, square: T, scale: Scale<T>) -> Reflector<T> {
    let norm = square.root();
    let s = if x1 < T::ZERO { norm } else { -norm };
    let tau = abs(x1).fma(norm, square).reciprocal();
    let unless_zero = |value: T| if square == T::ZERO { T::ZERO } else { value };
    Reflector {
        first: unless_zero(x1 - s),
        tau: unless_zero(tau),
        diagonal: unless_zero(scale.down(s)),
    }
}

/// Whether x is neither infinite nor NaN.
#[inline(always)]
pub fn is_finite<T: Ranged>(x: T) -> bool {
    abs(x) <= T::LARGEST
}
