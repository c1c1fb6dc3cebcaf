//! Numbers as integers of a fixed scale: sums that do not depend on their order.
//!
//! A column's sum of products x·p is kept as an integer in units of 2⁻ˢ. Integers add without rounding, so any
//! order of additions, any grid and any device give the same bits. Nothing here can overflow:
//!
//! - every column of X is scaled by the power of two that brings its largest magnitude below 1 (x′ = x·2^−e,
//!   y′ = y·2^e: the products stay what they were, bit for bit, but for underflow);
//! - with P a power of two above every |p| and m rows, |Σ x′·p| < m·P, and S is chosen so that
//!   m·P·2ˢ ≤ 2^[`SUM_BITS`](FixedPoint::SUM_BITS), one bit below what the words hold with their sign.
//!
//! P comes from bounds, not from p itself: |p| ≤ max|v| · (longest row · max|y′| + |s|).
//!
//! Error: each addition rounds by at most half a unit, so column j with c entries is off by at most
//! `c · max|X[:,j]| · m · P · 2^−SUM_BITS` besides the roundings of p: for f32 with four million rows a unit is 2⁻⁴⁰ of
//! the largest product that its column could have, for f64 2⁻⁷².
//!
//! Source: integer accumulators for reproducible sums are folklore of parallel molecular dynamics; the scaling
//! from bounds that are known before the pass is ours.

use crate::scalar::Real;
use crate::simt::{round_f32, round_f64};

/// An integer in units of 2⁻ˢ: `high` for f32, `high · 2³² + low` for f64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fixed {
    /// The number, or its upper part.
    pub high: i64,
    /// The lower part of f64's.
    pub low: u32,
}

/// A real number type whose sums can be kept in integers.
pub trait FixedPoint: Real {
    /// 32-bit words of a sum: 2 or 3.
    const WORDS: u32;
    /// 64-bit words of a sum in global memory: 1 or 2.
    const LIMBS: usize;
    /// The magnitude of a sum stays at or below 2 to this power.
    const SUM_BITS: i32;
    /// The exponent field of infinities and NaN.
    const NON_FINITE: u32;
    /// What the exponent field of a number exceeds e by, with |number| < 2^e.
    const BIAS: i32;

    /// The exponent field: 0 for zero and subnormal numbers.
    fn exponent_field(self) -> u32;
    /// `self · 2^exponent`, for exponents that [`pair_of_powers`] can express.
    fn scaled(self, exponent: i32) -> Self;
    /// The nearest integer; `self` is below 2^[`SUM_BITS`](FixedPoint::SUM_BITS).
    fn to_fixed(self) -> Fixed;
    /// The sum whose high and low parts were added up separately, in f64.
    fn of_sums(high: i64, low: u64) -> f64;
}

impl FixedPoint for f32 {
    const WORDS: u32 = 2;
    const LIMBS: usize = 1;
    const SUM_BITS: i32 = 62;
    const NON_FINITE: u32 = 0xff;
    const BIAS: i32 = 126;

    #[inline(always)]
    fn exponent_field(self) -> u32 {
        self.to_bits() >> 23 & 0xff
    }

    #[inline(always)]
    fn scaled(self, exponent: i32) -> f32 {
        let (a, b) = pair_of_powers(exponent, 126);
        let power = |e: i32| f32::from_bits(((e + 127) as u32) << 23);
        self * power(a) * power(b)
    }

    #[inline(always)]
    fn to_fixed(self) -> Fixed {
        Fixed {
            high: round_f32(self),
            low: 0,
        }
    }

    #[inline(always)]
    fn of_sums(high: i64, _: u64) -> f64 {
        high as f64
    }
}

impl FixedPoint for f64 {
    const WORDS: u32 = 3;
    const LIMBS: usize = 2;
    const SUM_BITS: i32 = 94;
    const NON_FINITE: u32 = 0x7ff;
    const BIAS: i32 = 1022;

    #[inline(always)]
    fn exponent_field(self) -> u32 {
        (self.to_bits() >> 52) as u32 & 0x7ff
    }

    #[inline(always)]
    fn scaled(self, exponent: i32) -> f64 {
        scaled_f64(self, exponent)
    }

    #[inline(always)]
    fn to_fixed(self) -> Fixed {
        const TWO_32: f64 = 4_294_967_296.0;
        let above = round_f64(self * (1.0 / TWO_32));
        // Exact: both are multiples of the last bit of `self`, and the difference is at most 2³¹.
        let below = round_f64(Real::fma(above as f64, -TWO_32, self));
        Fixed {
            high: above + (below >> 32),
            low: below as u32,
        }
    }

    #[inline(always)]
    fn of_sums(high: i64, low: u64) -> f64 {
        let high = high.wrapping_add((low >> 32) as i64);
        high as f64 * 4_294_967_296.0 + (low as u32) as f64
    }
}

/// `value · 2^exponent` for exponents up to ±2044.
#[inline(always)]
pub fn scaled_f64(value: f64, exponent: i32) -> f64 {
    let (a, b) = pair_of_powers(exponent, 1022);
    let power = |e: i32| f64::from_bits(((e + 1023) as u64) << 52);
    value * power(a) * power(b)
}

/// Two exponents of normal numbers, at most `limit` in magnitude, that add up to `exponent`; where it is beyond
/// twice the limit, as near as they come.
#[inline(always)]
pub fn pair_of_powers(exponent: i32, limit: i32) -> (i32, i32) {
    let a = (exponent / 2).clamp(-limit, limit);
    (a, (exponent - a).clamp(-limit, limit))
}

/// e with |x| < 2^e for every finite entry of a column whose largest exponent field is this.
#[inline(always)]
pub fn column_exponent<T: FixedPoint>(field: u32) -> i32 {
    field.max(1) as i32 - T::BIAS
}

/// The largest exponent fields of what a launch takes, and how many there are of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ranges {
    /// Of y′, or of p.
    pub input: u32,
    /// Of v; [`FixedPoint::BIAS`]` + 1` without one.
    pub weights: u32,
    /// Of s; 0 without one.
    pub shift: u32,
    /// Entries of the longest row that is multiplied by y; 1 for Xᵀ·p.
    pub longest: u32,
    /// m.
    pub rows: u64,
}

impl Ranges {
    /// S: the exponent that p is scaled by.
    #[inline(always)]
    pub fn scale<T: FixedPoint>(&self) -> i32 {
        let exponent = |field: u32| column_exponent::<T>(field);
        let dot = exponent(self.input) + bits(self.longest as u64);
        // Two more: for the sum of two terms, and for the roundings of a dot product.
        let p = exponent(self.weights) + dot.max(exponent(self.shift)) + 2;
        // A p above what the type holds is infinite, and not scaled.
        let p = p.min(T::NON_FINITE as i32 - T::BIAS + 1);
        let most = 2 * (T::BIAS - 4);
        (T::SUM_BITS - bits(self.rows) - p).min(most)
    }
}

/// The exponent field, or `so_far` where that is more or the number is infinite or NaN.
#[inline(always)]
pub fn range<T: FixedPoint>(so_far: u32, value: T) -> u32 {
    let field = value.exponent_field();
    if field == T::NON_FINITE {
        so_far
    } else {
        so_far.max(field)
    }
}

/// [`range`] of `value · 2^exponent`, also where that is more than the type holds.
#[inline(always)]
pub fn range_of_scaled<T: FixedPoint>(so_far: u32, value: T, exponent: i32) -> u32 {
    let field = value.exponent_field();
    if field == T::NON_FINITE || value == T::ZERO {
        return so_far;
    }
    so_far.max((field.max(1) as i32 + exponent).max(0) as u32)
}

/// The least e with `count` ≤ 2^e.
#[inline(always)]
pub fn bits(count: u64) -> i32 {
    64 - count.max(1).saturating_sub(1).leading_zeros() as i32
}

/// Entries of a row that the registers of 4 lanes hold.
const HELD_BY_FOUR: u64 = 20;

/// Lanes that share a row wherever the bits of a result are promised: the order of a dot product's additions
/// follows from it. `longest` is the number of entries of the longest row.
///
/// 4,000,000 rows of 20 take 230 µs with 4 lanes and 273 with 8 on an H200 (n = 10,000), 391 and 546 in halves (28,000); with
/// row lengths log-normal 733 and 642.
pub const fn lanes_per_row(rows: u64, nonzeros: u64, longest: u64) -> u32 {
    if longest <= HELD_BY_FOUR || nonzeros <= rows.saturating_mul(6) {
        4
    } else if nonzeros <= rows.saturating_mul(48) {
        8
    } else {
        32
    }
}

/// What was summed for one column.
#[derive(Debug, Clone, Copy)]
pub struct Total<T> {
    /// The sum of [`Fixed::high`].
    pub high: i64,
    /// The sum of [`Fixed::low`].
    pub low: u64,
    /// What the units are 2 to the power of.
    pub exponent: i32,
    /// The sum of products that were infinite or NaN, 0 without any.
    pub special: T,
}

impl<T: FixedPoint> Total<T> {
    /// `α · sum + β · z`, rounded once at the end.
    #[inline(always)]
    pub fn result(&self, alpha: T, beta: T, z: T) -> T {
        let sum = scaled_f64(T::of_sums(self.high, self.low), self.exponent);
        let product = alpha.to_f64() * (sum + self.special.to_f64());
        T::of_f64(product + beta.to_f64() * z.to_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value<T: FixedPoint>(fixed: Fixed) -> f64 {
        T::of_sums(fixed.high, fixed.low as u64)
    }

    #[test]
    fn four_lanes_share_rows_that_they_hold() {
        let lanes = |mean: u64, longest| lanes_per_row(1_000, 1_000 * mean, longest);
        assert_eq!([lanes(20, 20), lanes(6, 900), lanes(0, 0)], [4; 3]);
        assert_eq!([lanes(20, 21), lanes(7, 900), lanes(48, 48)], [8; 3]);
        assert_eq!([lanes(49, 49), lanes(73, 5_000)], [32; 2]);
    }

    #[test]
    fn integers_survive() {
        for x in [0.0f32, 1.0, -1.0, 2.5, -3.5, 1e9, -7.25e11, 4.6e18, -4.6e18] {
            assert_eq!(value::<f32>(x.to_fixed()), x.round_ties_even() as f64);
        }
        let large = 2f64.powi(94);
        for x in [
            0.0,
            1.0,
            -1.0,
            4294967295.0,
            -4294967297.5,
            1e25,
            -1e25,
            large,
            -large,
        ] {
            assert_eq!(value::<f64>(x.to_fixed()), x.round_ties_even(), "{x}");
        }
    }

    #[test]
    fn sums_of_either_sign_cancel() {
        let terms = [1e20, -3e19, 7.0, -1e20, 3e19, -8.0, 5e9, -5e9];
        let (mut high, mut low) = (0i64, 0u64);
        for term in terms.map(f64::to_fixed) {
            high = high.wrapping_add(term.high);
            low += term.low as u64;
        }
        assert_eq!(f64::of_sums(high, low), -1.0);
    }

    #[test]
    fn powers_of_two_are_exact_over_the_whole_range() {
        assert_eq!(1.5f32.scaled(-140).scaled(140), 1.5);
        assert_eq!(f32::from_bits(1).scaled(149), 1.0);
        assert_eq!(f64::from_bits(1).scaled(1074), 1.0);
        assert_eq!(3.0f64.scaled(-2000).scaled(2000), 0.0);
    }

    #[test]
    fn ranges_of_scaled_numbers_do_not_end_where_the_type_does() {
        for (value, exponent) in [
            (1.0_f32, 3),
            (-0.75, -20),
            (1e-30, 60),
            (0.0, 90),
            (3e38, -1),
        ] {
            let expected = range(7, value.scaled(exponent));
            assert_eq!(range_of_scaled(7, value, exponent), expected, "{value}");
        }
        assert_eq!(range_of_scaled(7, f32::NAN, 1), 7);
        assert_eq!(range_of_scaled(0, 1.0_f32, 200), 127 + 200);
        assert_eq!(range_of_scaled(0, 1.0_f32, -200), 0);
    }

    #[test]
    fn no_sum_leaves_its_words() {
        for longest in [1, 20, 5000] {
            for rows in [1u64, 70, 4_000_000, 1 << 32] {
                let ranges = Ranges {
                    input: 127,
                    weights: 127,
                    shift: 127,
                    longest,
                    rows,
                };
                let most = rows as f64 * (longest as f64 * 2.0 + 2.0) * 2.0;
                let scaled = scaled_f64(most, ranges.scale::<f32>());
                assert!(scaled <= 2f64.powi(f32::SUM_BITS), "{scaled:e}");
                assert!(scaled > 2f64.powi(f32::SUM_BITS - 6), "{scaled:e}");
            }
        }
    }

    #[test]
    fn counts_round_up_to_powers_of_two() {
        assert_eq!(
            [0, 1, 2, 3, 4, 5, 1 << 32].map(bits),
            [0, 0, 1, 2, 2, 3, 32]
        );
    }
}
