//! The kernels k(x, y) as types: how a difference of coordinates enters, and what becomes of the sum.
//!
//! Coordinates reach the GPU scaled, u = x · [`KernelFunction::scale`] / ℓ, so that the exponentials are powers
//! of two of the sum s itself, without a multiplication per pair.

use crate::scalar::Real;
use crate::simt;

/// A kernel function k(x, y) with length scale ℓ; r = ‖x − y‖₂.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KernelFunction {
    /// `exp(−r² / 2ℓ²)`.
    Gaussian,
    /// `exp(−‖x − y‖₁ / ℓ)`.
    Laplace,
    /// Matérn ν = 1/2: `exp(−r/ℓ)`.
    Matern12,
    /// Matérn ν = 3/2: `(1 + a) · exp(−a)`, a = √3·r/ℓ.
    Matern32,
    /// Matérn ν = 5/2: `(1 + a + a²/3) · exp(−a)`, a = √5·r/ℓ.
    Matern52,
    /// `1 / (1 + r²/ℓ²)`.
    Cauchy,
    /// `1 / √(1 + r²/ℓ²)`.
    InverseMultiquadric,
}

impl KernelFunction {
    /// All of them.
    pub const ALL: [KernelFunction; 7] = [
        KernelFunction::Gaussian,
        KernelFunction::Laplace,
        KernelFunction::Matern12,
        KernelFunction::Matern32,
        KernelFunction::Matern52,
        KernelFunction::Cauchy,
        KernelFunction::InverseMultiquadric,
    ];

    /// What coordinates are multiplied with, for ℓ = 1, before they reach a kernel of this function.
    pub const fn scale(self) -> f64 {
        use core::f64::consts::LOG2_E;
        match self {
            // √(log₂e / 2), √3·log₂e, √5·log₂e.
            KernelFunction::Gaussian => 0.849_321_800_288_019,
            KernelFunction::Laplace | KernelFunction::Matern12 => LOG2_E,
            KernelFunction::Matern32 => 2.498_821_110_647_343,
            KernelFunction::Matern52 => 3.225_964_182_229_561,
            KernelFunction::Cauchy | KernelFunction::InverseMultiquadric => 1.0,
        }
    }

    /// k from the differences between the scaled coordinates of two points, in f64: for what is done pair by pair.
    pub fn value(self, differences: impl Iterator<Item = f64>) -> f64 {
        fn of<K: Function<f64>>(differences: impl Iterator<Item = f64>) -> f64 {
            K::value(differences.fold(0.0, |s, difference| K::accumulate(difference, s)))
        }
        match self {
            KernelFunction::Gaussian => of::<Gaussian>(differences),
            KernelFunction::Laplace => of::<Laplace>(differences),
            KernelFunction::Matern12 => of::<Matern12>(differences),
            KernelFunction::Matern32 => of::<Matern32>(differences),
            KernelFunction::Matern52 => of::<Matern52>(differences),
            KernelFunction::Cauchy => of::<Cauchy>(differences),
            KernelFunction::InverseMultiquadric => of::<InverseMultiquadric>(differences),
        }
    }

    /// The name in entries, files and arguments.
    pub const fn name(self) -> &'static str {
        match self {
            KernelFunction::Gaussian => "gaussian",
            KernelFunction::Laplace => "laplace",
            KernelFunction::Matern12 => "matern12",
            KernelFunction::Matern32 => "matern32",
            KernelFunction::Matern52 => "matern52",
            KernelFunction::Cauchy => "cauchy",
            KernelFunction::InverseMultiquadric => "inverse_multiquadric",
        }
    }
}

impl core::fmt::Display for KernelFunction {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

/// The functions that kernels are made of, as fast as the type has them.
pub trait Radial: Real {
    /// 2⁻ˣ for x ≥ −126; 0 where that is subnormal.
    fn decay(self) -> Self;
    /// √x.
    fn root(self) -> Self;
    /// 1/x.
    fn reciprocal(self) -> Self;
    /// 1/√x.
    fn reciprocal_root(self) -> Self;
    /// |x|.
    fn magnitude(self) -> Self;
}

impl Radial for f32 {
    #[inline(always)]
    fn decay(self) -> f32 {
        simt::decay_f32(self)
    }
    #[inline(always)]
    fn root(self) -> f32 {
        simt::near_sqrt_f32(self)
    }
    #[inline(always)]
    fn reciprocal(self) -> f32 {
        simt::near_recip_f32(self)
    }
    #[inline(always)]
    fn reciprocal_root(self) -> f32 {
        simt::near_rsqrt_f32(self)
    }
    #[inline(always)]
    fn magnitude(self) -> f32 {
        self.abs()
    }
}

impl Radial for f64 {
    #[inline(always)]
    fn decay(self) -> f64 {
        decay_f64(self, simt::fma_f64)
    }
    #[inline(always)]
    fn root(self) -> f64 {
        simt::sqrt_f64(self)
    }
    #[inline(always)]
    fn reciprocal(self) -> f64 {
        1.0 / self
    }
    #[inline(always)]
    fn reciprocal_root(self) -> f64 {
        1.0 / simt::sqrt_f64(self)
    }
    #[inline(always)]
    fn magnitude(self) -> f64 {
        self.abs()
    }
}

/// (ln 2)ᵏ/k! for k = 12 … 1: the series of 2ᶠ − 1, whose remainder for |f| ≤ 1/2 is below 2·10⁻¹⁶.
const SERIES: [f64; 12] = [
    2.567_843_599_348_82e-11,
    4.445_538_271_870_81e-10,
    7.054_911_620_801_121e-9,
    1.017_808_600_923_969_6e-7,
    1.321_548_679_014_430_5e-6,
    1.525_273_380_405_984e-5,
    1.540_353_039_338_160_6e-4,
    1.333_355_814_642_844e-3,
    9.618_129_107_628_477e-3,
    5.550_410_866_482_157_6e-2,
    2.402_265_069_591_007e-1,
    core::f64::consts::LN_2,
];

/// 2⁻ˣ for x ≥ 0 (0 from x = 1022 on, NaN for NaN), with the caller's fused multiply-add: a power of two by its
/// bits and a series. Wrong by at most 2 units in the last place.
#[inline(always)]
pub fn decay_f64(x: f64, fma: impl Fn(f64, f64, f64) -> f64) -> f64 {
    // Adding 1.5 · 2⁵² rounds to a whole number, which is then in the low bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let clamped = if x < 1022.0 { x } else { 1022.0 };
    let shifted = ROUND - clamped;
    let whole = shifted - ROUND;
    let fraction = -clamped - whole;
    let mut sum = SERIES[0];
    for coefficient in &SERIES[1..] {
        sum = fma(sum, fraction, *coefficient);
    }
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    let value = fma(sum * fraction, power, power);
    if x < 1022.0 {
        value
    } else if x >= 1022.0 {
        0.0
    } else {
        x
    }
}

/// A kernel function, compiled into bodies.
///
/// With u and v the scaled points, s = Σ [`accumulate`](Self::accumulate) over the dimensions,
/// k = [`value`](Self::value)(s) and ∂k/∂u = [`slope`](Self::slope)(s) · [`direction`](Self::direction)(u − v).
pub trait Function<T: Radial>: 'static {
    /// Which function it is.
    const FUNCTION: KernelFunction;

    /// s plus the contribution of one dimension: the square, unless the function is of another norm.
    #[inline(always)]
    fn accumulate(difference: T, s: T) -> T {
        difference.fma(difference, s)
    }

    /// k.
    fn value(s: T) -> T;

    /// The factor of the gradient. Where the function has no derivative (coincident points), 0.
    fn slope(s: T) -> T;

    /// What a difference becomes in the gradient: itself, unless the function is of another norm.
    #[inline(always)]
    fn direction(difference: T) -> T {
        difference
    }
}

/// ln 2.
#[inline(always)]
fn ln2<T: Real>() -> T {
    T::of_f64(core::f64::consts::LN_2)
}

/// [`KernelFunction::Gaussian`].
pub struct Gaussian;
/// [`KernelFunction::Laplace`].
pub struct Laplace;
/// [`KernelFunction::Matern12`].
pub struct Matern12;
/// [`KernelFunction::Matern32`].
pub struct Matern32;
/// [`KernelFunction::Matern52`].
pub struct Matern52;
/// [`KernelFunction::Cauchy`].
pub struct Cauchy;
/// [`KernelFunction::InverseMultiquadric`].
pub struct InverseMultiquadric;

impl<T: Radial> Function<T> for Gaussian {
    const FUNCTION: KernelFunction = KernelFunction::Gaussian;
    #[inline(always)]
    fn value(s: T) -> T {
        s.decay()
    }
    #[inline(always)]
    fn slope(s: T) -> T {
        T::of_f64(-2.0 * core::f64::consts::LN_2) * s.decay()
    }
}

impl<T: Radial> Function<T> for Laplace {
    const FUNCTION: KernelFunction = KernelFunction::Laplace;
    #[inline(always)]
    fn accumulate(difference: T, s: T) -> T {
        s + difference.magnitude()
    }
    #[inline(always)]
    fn value(s: T) -> T {
        s.decay()
    }
    #[inline(always)]
    fn slope(s: T) -> T {
        -ln2::<T>() * s.decay()
    }
    #[inline(always)]
    fn direction(difference: T) -> T {
        if difference > T::ZERO {
            T::ONE
        } else if difference < T::ZERO {
            -T::ONE
        } else {
            T::ZERO
        }
    }
}

impl<T: Radial> Function<T> for Matern12 {
    const FUNCTION: KernelFunction = KernelFunction::Matern12;
    #[inline(always)]
    fn value(s: T) -> T {
        s.root().decay()
    }
    #[inline(always)]
    fn slope(s: T) -> T {
        if s > T::ZERO {
            -ln2::<T>() * s.root().decay() * s.reciprocal_root()
        } else {
            s
        }
    }
}

impl<T: Radial> Function<T> for Matern32 {
    const FUNCTION: KernelFunction = KernelFunction::Matern32;
    #[inline(always)]
    fn value(s: T) -> T {
        let t = s.root();
        t.fma(ln2(), T::ONE) * t.decay()
    }
    #[inline(always)]
    fn slope(s: T) -> T {
        -(ln2::<T>() * ln2::<T>()) * s.root().decay()
    }
}

impl<T: Radial> Function<T> for Matern52 {
    const FUNCTION: KernelFunction = KernelFunction::Matern52;
    #[inline(always)]
    fn value(s: T) -> T {
        let t = s.root();
        let third = T::of_f64(core::f64::consts::LN_2 * core::f64::consts::LN_2 / 3.0);
        t.fma(t.fma(third, ln2()), T::ONE) * t.decay()
    }
    #[inline(always)]
    fn slope(s: T) -> T {
        let t = s.root();
        let third = T::of_f64(core::f64::consts::LN_2 * core::f64::consts::LN_2 / 3.0);
        -third * t.fma(ln2(), T::ONE) * t.decay()
    }
}

impl<T: Radial> Function<T> for Cauchy {
    const FUNCTION: KernelFunction = KernelFunction::Cauchy;
    #[inline(always)]
    fn value(s: T) -> T {
        (T::ONE + s).reciprocal()
    }
    #[inline(always)]
    fn slope(s: T) -> T {
        let value = (T::ONE + s).reciprocal();
        -(value + value) * value
    }
}

impl<T: Radial> Function<T> for InverseMultiquadric {
    const FUNCTION: KernelFunction = KernelFunction::InverseMultiquadric;
    #[inline(always)]
    fn value(s: T) -> T {
        (T::ONE + s).reciprocal_root()
    }
    #[inline(always)]
    fn slope(s: T) -> T {
        let value = (T::ONE + s).reciprocal_root();
        -value * value * value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_those_of_the_formulas() {
        let log2_e = core::f64::consts::LOG2_E;
        let root = crate::simt::sqrt_f64;
        for (function, scale) in [
            (KernelFunction::Gaussian, root(log2_e / 2.0)),
            (KernelFunction::Matern32, root(3.0) * log2_e),
            (KernelFunction::Matern52, root(5.0) * log2_e),
        ] {
            assert!((function.scale() / scale - 1.0).abs() < 1e-15, "{function}");
        }
    }

    #[test]
    fn decay_is_two_to_the_minus_x_everywhere() {
        assert_eq!(0.0.decay(), 1.0);
        for whole in 0..1022_u64 {
            let power = f64::from_bits((1023 - whole) << 52);
            assert_eq!((whole as f64).decay(), power);
        }
        assert_eq!(
            [1022.5.decay(), 1e300.decay(), f64::INFINITY.decay()],
            [0.0; 3]
        );
        assert!(f64::NAN.decay().is_nan());
        let mut x = 0.0;
        while x < 60.0 {
            // 2⁻ˣ·2⁻ˣ = 2⁻²ˣ, with four roundings of a unit each at most.
            let (once, twice) = (f64::decay(x), f64::decay(2.0 * x));
            assert!((once * once / twice - 1.0).abs() < 1e-15, "{x}");
            x += 0.0137;
        }
    }
}
