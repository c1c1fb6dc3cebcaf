//! Elementary functions with the same bits on every device: exp, ln, their relatives near 1, pow, and the
//! normal distribution.
//!
//! Only fused multiply-adds, additions, products, quotients and square roots that IEEE 754 rounds correctly are
//! used, in a fixed order, so that CPU, emulator and GPU agree bit by bit.
//!
//! | function | largest error, ulp | method |
//! |---|---|---|
//! | [`exp`], [`exp_m1`] | 1, 2 | x = k·ln 2 + r, polynomial of degree 11 (f64) or 7 (f32) in r |
//! | [`ln`], [`ln_1p`] | 1 | x = 2ᵏ·(1 + f), series in f / (2 + f) as in FreeBSD's msun |
//! | [`sigmoid`], [`softplus`] | 2 | of the above |
//! | [`pow`] | 2 + 2·abs(a·ln x) | exp(a·ln x) with the product in two parts |
//! | [`erfcx`] | 3 | (1 + 2x)·erfcx(x) as a polynomial in (x − K) / (x + K), after Shepherd and Laframboise (1981) |
//! | [`Normal`] | 8 | of the above; tails do not cancel |
//!
//! Results below the smallest normal number may be off by one unit of the last place of a subnormal.

use core::cmp::Ordering;

use crate::scalar::Real;

/// A real number type with what the functions of this module are built from.
pub trait Elementary: Real {
    /// 1/2.
    const HALF: Self;
    /// 2.
    const TWO: Self;
    /// Positive infinity.
    const INFINITY: Self;
    /// Not a number.
    const NAN: Self;
    /// Constants of the argument reductions.
    const REDUCTION: Reduction<Self>;

    /// (eʳ − 1 − r) / r² for |r| ≤ ln 2 / 2.
    fn exp_tail(r: Self) -> Self;
    /// R with ln(1 + f) = f − f²/2 + s·(f²/2 + R), where s = f / (2 + f), z = s², for 1 + f in [√½, √2].
    fn ln_tail(z: Self) -> Self;
    /// (1 + 2x)·erfcx(x) for x = K·(1 + q) / (1 − q).
    fn erfcx_core(q: Self) -> Self;
    /// 2ᵏ where that is a normal number.
    fn exp2_int(k: i32) -> Self;
    /// m in [√½, √2] and k with x = m·2ᵏ, for finite x > 0.
    fn split(self) -> (Self, i32);
    /// The integer that was rounded to by adding `REDUCTION.round`.
    fn rounded(shifted: Self) -> i32;
    /// √x, correctly rounded.
    fn sqrt(self) -> Self;
}

/// Constants of the argument reductions of a number type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reduction<T> {
    /// 1 / ln 2.
    pub log2_e: T,
    /// Adding it rounds to an integer.
    pub round: T,
    /// ln 2, and what rounding left of it.
    pub ln2: [T; 2],
    /// The leading bits of ln 2, so that products with exponents are exact, and the rest.
    pub ln2_split: [T; 2],
    /// Beyond these `exp` is infinite, and 0.
    pub exp_range: [T; 2],
    /// Beyond these eˣ − 1 is eˣ, and −1.
    pub exp_m1_range: [T; 2],
    /// K of `erfcx`.
    pub erfcx_pole: T,
}

/// c₀ + x·(c₁ + x·(…)), fused.
macro_rules! horner {
    ($x:expr; $c:expr) => { $c };
    ($x:expr; $c:expr, $($rest:expr),+) => { horner!($x; $($rest),+).fma($x, $c) };
}

impl Elementary for f32 {
    const HALF: f32 = 0.5;
    const TWO: f32 = 2.0;
    const INFINITY: f32 = f32::INFINITY;
    const NAN: f32 = f32::NAN;
    const REDUCTION: Reduction<f32> = Reduction {
        log2_e: core::f32::consts::LOG2_E,
        round: 12_582_912.0,
        ln2: [core::f32::consts::LN_2, -1.904_654_3e-9],
        ln2_split: [0.693_138_1, 9.058_001e-6],
        exp_range: [89.0, -104.0],
        exp_m1_range: [20.0, -20.0],
        erfcx_pole: 2.0,
    };

    #[inline(always)]
    fn exp_tail(r: f32) -> f32 {
        horner!(r; 0.5, 0.166_666_67, 0.041_666_465, 0.008_333_311, 0.001_393_365, 1.989_099_1e-4)
    }

    #[inline(always)]
    fn ln_tail(z: f32) -> f32 {
        z * horner!(z; 0.666_666_6, 0.400_009_72, 0.284_987_87, 0.242_790_79)
    }

    #[inline(always)]
    fn erfcx_core(q: f32) -> f32 {
        horner!(q; 1.276_978_4, -0.092_763_82, -0.166_031_09, 0.164_050_5, -0.054_211_995, -0.008_024_739,
            0.008_689_253, 0.001_230_503_2, -0.001_395_805, -3.709_284e-4, 1.608_403_5e-4, 6.807_515e-5)
    }

    #[inline(always)]
    fn exp2_int(k: i32) -> f32 {
        f32::from_bits((k.wrapping_add(127) as u32) << 23)
    }

    #[inline(always)]
    fn split(self) -> (f32, i32) {
        const SQRT_HALF: u32 = 0x3f35_04f3;
        let (scaled, offset) = if self < f32::MIN_POSITIVE {
            (self * 33_554_432.0, 25)
        } else {
            (self, 0)
        };
        let bits = scaled.to_bits().wrapping_add(0x3f80_0000 - SQRT_HALF);
        let k = (bits >> 23) as i32 - 127 - offset;
        (f32::from_bits((bits & 0x007f_ffff) + SQRT_HALF), k)
    }

    #[inline(always)]
    fn rounded(shifted: f32) -> i32 {
        (shifted.to_bits() as i32).wrapping_sub(Self::REDUCTION.round.to_bits() as i32)
    }

    #[inline(always)]
    fn sqrt(self) -> f32 {
        crate::simt::sqrt_f32(self)
    }
}

impl Elementary for f64 {
    const HALF: f64 = 0.5;
    const TWO: f64 = 2.0;
    const INFINITY: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;
    const REDUCTION: Reduction<f64> = Reduction {
        log2_e: core::f64::consts::LOG2_E,
        round: 6_755_399_441_055_744.0,
        ln2: [core::f64::consts::LN_2, 2.319_046_813_846_299_6e-17],
        ln2_split: [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10],
        exp_range: [710.0, -746.0],
        exp_m1_range: [40.0, -40.0],
        erfcx_pole: 4.0,
    };

    #[inline(always)]
    fn exp_tail(r: f64) -> f64 {
        horner!(r; 0.5, 0.166_666_666_666_666_69, 0.041_666_666_666_666_67, 0.008_333_333_333_326_136,
            0.001_388_888_888_888_374_8, 1.984_126_987_482_062_7e-4, 2.480_158_732_554_774_3e-5,
            2.755_725_540_020_642_2e-6, 2.755_727_364_311_03e-7, 2.510_521_700_472_074_5e-8,
            2.091_468_696_808_687_6e-9)
    }

    #[inline(always)]
    fn ln_tail(z: f64) -> f64 {
        z * horner!(z; 6.666_666_666_666_735e-1, 3.999_999_999_940_942e-1, 2.857_142_874_366_239e-1,
            2.222_219_843_214_978_4e-1, 1.818_357_216_161_805e-1, 1.531_383_769_920_937_3e-1,
            1.479_819_860_511_658_6e-1)
    }

    #[inline(always)]
    fn erfcx_core(q: f64) -> f64 {
        horner!(q; 1.232_995_118_625_552_6, -0.139_621_116_840_562_5, 0.015_379_652_102_610_162,
            0.068_097_054_254_686_2, -0.101_039_066_035_852_94, 0.093_732_834_998_651_72,
            -0.066_330_365_820_503_67, 0.037_167_515_531_843_2, -0.016_197_733_979_924_26,
            0.005_031_970_032_548_695, -7.577_737_141_838_885e-4, -1.992_570_041_218_481_4e-4,
            1.506_231_178_516_207e-4, -2.439_811_794_207_995e-5, -1.122_514_035_444_965_8e-5,
            5.707_239_573_693_257e-6, 2.980_596_055_322_769e-7, -8.218_020_654_813_044e-7,
            7.111_912_428_010_423e-8, 1.068_344_292_674_458_6e-7, -1.635_738_398_212_476_8e-8,
            -1.254_482_540_385_551_8e-8, 1.571_215_363_831_906_4e-9, 9.655_408_225_482_863e-10)
    }

    #[inline(always)]
    fn exp2_int(k: i32) -> f64 {
        f64::from_bits((k.wrapping_add(1023) as u64) << 52)
    }

    #[inline(always)]
    fn split(self) -> (f64, i32) {
        const SQRT_HALF: u64 = 0x3fe6_a09e_0000_0000;
        let (scaled, offset) = if self < f64::MIN_POSITIVE {
            (self * 18_014_398_509_481_984.0, 54)
        } else {
            (self, 0)
        };
        let bits = scaled
            .to_bits()
            .wrapping_add(0x3ff0_0000_0000_0000 - SQRT_HALF);
        let k = (bits >> 52) as i32 - 1023 - offset;
        (
            f64::from_bits((bits & 0x000f_ffff_ffff_ffff) + SQRT_HALF),
            k,
        )
    }

    #[inline(always)]
    fn rounded(shifted: f64) -> i32 {
        shifted.to_bits() as i32
    }

    #[inline(always)]
    fn sqrt(self) -> f64 {
        crate::simt::sqrt_f64(self)
    }
}

/// Whether x is not a number.
#[inline(always)]
pub fn is_nan<T: Elementary>(x: T) -> bool {
    x.partial_cmp(&x).is_none()
}

/// |x|.
#[inline(always)]
pub fn abs<T: Elementary>(x: T) -> T {
    if x < T::ZERO { -x } else { x }
}

/// a·b, but 0 where a is 0, whatever b.
#[inline(always)]
pub fn times<T: Elementary>(a: T, b: T) -> T {
    if a == T::ZERO { T::ZERO } else { a * b }
}

/// x between `low` and `high`; a NaN stays.
#[inline(always)]
fn clamp<T: Elementary>(x: T, low: T, high: T) -> T {
    if x > high {
        high
    } else if x < low {
        low
    } else {
        x
    }
}

/// eʳ − 1 and k with x = k·ln 2 + r, |r| ≤ ln 2 / 2.
#[inline(always)]
fn reduced_exp_m1<T: Elementary>(x: T) -> (T, i32) {
    let Reduction {
        log2_e, round, ln2, ..
    } = T::REDUCTION;
    let shifted = x.fma(log2_e, round);
    let k = shifted - round;
    let r = k.fma(-ln2[1], k.fma(-ln2[0], x));
    ((r * r).fma(T::exp_tail(r), r), T::rounded(shifted))
}

/// eˣ; 0 and ∞ where it underflows and overflows.
#[inline(always)]
pub fn exp<T: Elementary>(x: T) -> T {
    let [high, low] = T::REDUCTION.exp_range;
    let (tail, k) = reduced_exp_m1(clamp(x, low, high));
    // In two steps: 2ᵏ itself may be subnormal or infinite where the product is not.
    let half = k >> 1;
    (T::ONE + tail) * T::exp2_int(half) * T::exp2_int(k.wrapping_sub(half))
}

/// eˣ − 1, accurate near 0.
#[inline(always)]
pub fn exp_m1<T: Elementary>(x: T) -> T {
    let [high, low] = T::REDUCTION.exp_m1_range;
    if x > high {
        return exp(x);
    }
    let (tail, k) = reduced_exp_m1(clamp(x, low, high));
    let scale = T::exp2_int(k);
    scale.fma(tail, scale - T::ONE)
}

/// ln(2ᵏ·(1 + f)) + c for 1 + f in [√½, √2] and small c.
#[inline(always)]
fn ln_of_parts<T: Elementary>(f: T, c: T, k: i32) -> T {
    let [ln2_high, ln2_low] = T::REDUCTION.ln2_split;
    let k = T::of_f64(k as f64);
    let half_square = T::HALF * f * f;
    let s = f / (T::TWO + f);
    let tail = s * (half_square + T::ln_tail(s * s));
    (((tail + (k * ln2_low + c)) - half_square) + f) + k * ln2_high
}

/// ln x; −∞ at 0, NaN below.
#[inline(always)]
pub fn ln<T: Elementary>(x: T) -> T {
    match x.partial_cmp(&T::ZERO) {
        Some(Ordering::Greater) if x < T::INFINITY => {}
        Some(Ordering::Greater) => return x,
        Some(Ordering::Equal) => return -T::INFINITY,
        _ => return T::NAN,
    }
    let (m, k) = x.split();
    ln_of_parts(m - T::ONE, T::ZERO, k)
}

/// ln(1 + x), accurate near 0; −∞ at −1, NaN below.
#[inline(always)]
pub fn ln_1p<T: Elementary>(x: T) -> T {
    match x.partial_cmp(&-T::ONE) {
        Some(Ordering::Greater) if x < T::INFINITY => {}
        Some(Ordering::Greater) => return x,
        Some(Ordering::Equal) => return -T::INFINITY,
        _ => return T::NAN,
    }
    let u = T::ONE + x;
    let (m, k) = u.split();
    if k == 0 {
        return ln_of_parts(x, T::ZERO, 0);
    }
    // What rounding 1 + x lost.
    let lost = if k >= 2 {
        T::ONE - (u - x)
    } else {
        x - (u - T::ONE)
    };
    ln_of_parts(m - T::ONE, lost / u, k)
}

/// xᵃ for x > 0.
#[inline(always)]
pub fn pow<T: Elementary>(x: T, a: T) -> T {
    exp_of_product(a, ln(x))
}

/// e^(a·l), with the rounding of the product made good.
#[inline(always)]
pub fn exp_of_product<T: Elementary>(a: T, l: T) -> T {
    let product = a * l;
    let high = exp(product);
    let low = a.fma(l, -product);
    if abs(low) < T::INFINITY && high < T::INFINITY {
        high.fma(low, high)
    } else {
        high
    }
}

/// 1 / (1 + e⁻ᵗ) and 1 / (1 + eᵗ), both without cancellation, and e^(−|t|).
#[inline(always)]
pub fn sigmoid<T: Elementary>(t: T) -> (T, T, T) {
    let small = exp(-abs(t));
    let larger = T::ONE / (T::ONE + small);
    let smaller = small * larger;
    if t < T::ZERO {
        (smaller, larger, small)
    } else {
        (larger, smaller, small)
    }
}

/// ln(1 + eᵗ).
#[inline(always)]
pub fn softplus<T: Elementary>(t: T) -> T {
    let tail = ln_1p(exp(-abs(t)));
    if t > T::ZERO { t + tail } else { tail }
}

/// e^(x²)·erfc(x) for x ≥ 0.
#[inline(always)]
pub fn erfcx<T: Elementary>(x: T) -> T {
    let pole = T::REDUCTION.erfcx_pole;
    let q = if x < T::INFINITY {
        (x - pole) / (x + pole)
    } else {
        T::ONE
    };
    T::erfcx_core(q) / x.fma(T::TWO, T::ONE)
}

/// The standard normal distribution at t, both tails without cancellation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Normal<T> {
    /// φ(t).
    pub density: T,
    /// Φ(t) and Φ(−t).
    pub tails: [T; 2],
    /// ln Φ(t) and ln Φ(−t).
    pub ln_tails: [T; 2],
    /// φ(t)/Φ(t) and φ(t)/Φ(−t).
    pub ratios: [T; 2],
}

impl<T: Elementary> Normal<T> {
    /// The distribution at t.
    #[inline(always)]
    pub fn at(t: T) -> Self {
        let x = abs(t);
        let half_square = T::HALF * (x * x);
        let lost = if half_square < T::INFINITY {
            T::HALF * x.fma(x, -(x * x))
        } else {
            T::ZERO
        };
        let gauss = exp(-half_square);
        let gauss = gauss - gauss * lost;
        let scaled = T::HALF * erfcx(x * T::of_f64(core::f64::consts::FRAC_1_SQRT_2));
        let density = gauss * T::of_f64(INV_SQRT_TWO_PI);
        let (lower, upper) = (scaled * gauss, T::ONE - scaled * gauss);
        let small = [
            lower,
            ln(scaled) - half_square,
            T::of_f64(INV_SQRT_TWO_PI) / scaled,
        ];
        let large = [upper, ln_1p(-lower), density / upper];
        let [first, second] = if t > T::ZERO {
            [large, small]
        } else {
            [small, large]
        };
        Normal {
            density,
            tails: [first[0], second[0]],
            ln_tails: [first[1], second[1]],
            ratios: [first[2], second[2]],
        }
    }
}

/// 1 / √(2π).
const INV_SQRT_TWO_PI: f64 = 0.398_942_280_401_432_7;

#[cfg(test)]
mod tests;
