//! How far a computed number may be from the true one.
//!
//! A sum of products in which no term passes through more than k roundings, each of relative size at
//! most u, differs from the exact sum by at most `γ(k) · Σ|terms|` in whatever order it is added, with
//! `γ(k) = k·u / (1 − k·u)`; where the signs of the roundings do not conspire, `λ·√k` takes the place of k
//! but for a probability of `2·exp(−λ²/2)`. [`growth`] is the smaller of the two.
//!
//! Each underflow adds an absolute error of at most the smallest normal number: atomic additions of
//! f32 in a GPU's global memory flush subnormal numbers to zero.
//!
//! Integers whose sums of magnitudes stay below 1/u are added without any rounding: their bound is zero.
//!
//! Source: N. Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., §3.1; N. Higham and
//! T. Mary, "A New Approach to Probabilistic Rounding Error Analysis", *SIAM J. Sci. Comput.* 41(5), 2019.

use std::fmt;

use warpfuse::matrix::{Dtype, Element};
use warpfuse::ops::Number;
use warpfuse::reference::rounding::{UNIT_F32, UNIT_F64, gamma};

/// λ of the probabilistic bound: it fails for less than one element in 10¹³.
const LAMBDA: f64 = 8.0;

/// u, half the distance from 1 to the next number.
pub fn unit_roundoff(dtype: Dtype) -> f64 {
    match dtype {
        Dtype::F32 => UNIT_F32,
        Dtype::F64 => UNIT_F64,
    }
}

/// The smallest normal number, the most that an underflow or a flush to zero can lose.
pub fn smallest_normal(dtype: Dtype) -> f64 {
    match dtype {
        Dtype::F32 => f64::from(f32::MIN_POSITIVE),
        Dtype::F64 => f64::MIN_POSITIVE,
    }
}

/// The relative error that k roundings build up, relative to the sum of the terms' magnitudes.
pub fn growth(roundings: usize, unit: f64) -> f64 {
    let k = roundings as f64;
    let probable = (LAMBDA * k.sqrt() * unit + k * unit * unit / (1.0 - unit)).exp_m1();
    gamma(roundings, unit).min(probable)
}

/// True values with a bound for each.
#[derive(Debug, Clone, PartialEq)]
pub struct Truth {
    /// In f64.
    pub values: Vec<f64>,
    /// The largest error that is allowed, for each value.
    pub bounds: Vec<f64>,
}

impl Truth {
    /// Values that have to be met exactly.
    pub fn exact(values: Vec<f64>) -> Truth {
        let bounds = vec![0.0; values.len()];
        Truth { values, bounds }
    }
}

/// The largest errors of one comparison.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Worst {
    /// Error over bound, at most 1.
    pub ratio: f64,
    /// Error over the largest magnitude of the true values.
    pub relative: f64,
}

impl Worst {
    /// The larger of each.
    pub fn max(self, other: Worst) -> Worst {
        let ratio = self.ratio.max(other.ratio);
        let relative = self.relative.max(other.relative);
        Worst { ratio, relative }
    }
}

/// A result that is further from the truth than its bound.
#[derive(Debug, Clone, PartialEq)]
pub enum Mismatch {
    /// As many values as expected were not computed.
    Length {
        /// Values computed.
        computed: usize,
        /// Values expected.
        expected: usize,
    },
    /// Some values are wrong; the first of them.
    Value {
        /// Which value.
        index: usize,
        /// What was computed.
        computed: f64,
        /// What is true.
        truth: f64,
        /// By how much they may differ.
        bound: f64,
        /// How many values are wrong.
        wrong: usize,
        /// Of how many.
        len: usize,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Length { computed, expected } => {
                write!(f, "expected {expected} values, found {computed}")
            }
            Mismatch::Value {
                index,
                computed,
                truth,
                bound,
                wrong,
                len,
            } => write!(
                f,
                "{wrong} of {len} values are wrong; value {index} is {computed:e}, \
                 expected {truth:e} ± {bound:e} (off by {:e})",
                (computed - truth).abs()
            ),
        }
    }
}

impl std::error::Error for Mismatch {}

/// Compares computed values with the truth.
///
/// Where the truth is infinite or NaN, the computed value has to be the same; a NaN anywhere else, in the
/// value or in its bound, is a mismatch.
///
/// # Errors
/// [`Mismatch`], naming the first wrong value.
pub fn compare<T: Number>(computed: &[T], truth: &Truth) -> Result<Worst, Mismatch> {
    let (computed_len, expected) = (computed.len(), truth.values.len());
    if computed_len != expected {
        let computed = computed_len;
        return Err(Mismatch::Length { computed, expected });
    }
    let finite = truth.values.iter().filter(|value| value.is_finite());
    let largest = finite.fold(0.0, |max: f64, value| max.max(value.abs()));
    let mut worst = Worst::default();
    let mut first = None;
    let mut wrong = 0;
    let pairs = truth.values.iter().zip(&truth.bounds).zip(computed);
    for (index, ((&truth, &bound), value)) in pairs.enumerate() {
        let value = Element::to_f64(*value);
        match judge(value, truth, bound) {
            Some(ratio) => {
                let relative = relative::<T>((value - truth).abs(), largest);
                worst = worst.max(Worst { ratio, relative });
            }
            None => {
                wrong += 1;
                first.get_or_insert((index, value, truth, bound));
            }
        }
    }
    match first {
        None => Ok(worst),
        Some((index, computed, truth, bound)) => Err(Mismatch::Value {
            index,
            computed,
            truth,
            bound,
            wrong,
            len: expected,
        }),
    }
}

/// Error over bound where the value is good enough.
fn judge(value: f64, truth: f64, bound: f64) -> Option<f64> {
    if !truth.is_finite() {
        let same = value == truth || (value.is_nan() && truth.is_nan());
        return same.then_some(0.0);
    }
    let error = (value - truth).abs();
    // Not `error > bound`: a NaN has to fail.
    let good = error <= bound && bound.is_finite();
    good.then(|| if error == 0.0 { 0.0 } else { error / bound })
}

/// Zero where the result is so small that it may underflow, or not finite.
fn relative<T: Number>(error: f64, largest: f64) -> f64 {
    let is_normal = largest >= smallest_normal(T::DTYPE);
    if is_normal && error.is_finite() {
        error / largest
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truth(value: f64, bound: f64) -> Truth {
        Truth {
            values: vec![value],
            bounds: vec![bound],
        }
    }

    #[test]
    fn nan_fails_unless_the_truth_is_nan() {
        assert!(compare(&[f64::NAN], &truth(1.0, 1e300)).is_err());
        assert!(compare(&[1.0], &truth(1.0, f64::NAN)).is_err());
        assert!(compare(&[1.0], &truth(1.0, f64::INFINITY)).is_err());
        assert!(compare(&[1.0], &truth(f64::NAN, f64::NAN)).is_err());
        assert!(compare(&[f64::NAN], &truth(f64::NAN, f64::NAN)).is_ok());
    }

    #[test]
    fn infinities_need_their_sign() {
        assert!(compare(&[f32::INFINITY], &truth(f64::INFINITY, f64::NAN)).is_ok());
        assert!(compare(&[f32::NEG_INFINITY], &truth(f64::INFINITY, f64::NAN)).is_err());
    }

    #[test]
    fn the_bound_itself_is_allowed_and_no_more() {
        let worst = compare(&[1.5], &truth(1.0, 0.5)).expect("on the bound");
        assert_eq!((worst.ratio, worst.relative), (1.0, 0.5));
        assert!(compare(&[1.5000001], &truth(1.0, 0.5)).is_err());
        assert!(compare(&[1.0], &Truth::exact(vec![1.0])).is_ok());
        assert!(compare(&[1.0 + f64::EPSILON], &Truth::exact(vec![1.0])).is_err());
    }

    #[test]
    fn lengths_have_to_agree() {
        let error = compare(&[1.0, 2.0], &Truth::exact(vec![1.0])).expect_err("too long");
        assert_eq!(error.to_string(), "expected 1 values, found 2");
    }

    #[test]
    fn few_roundings_take_the_certain_bound_and_many_the_probable_one() {
        assert_eq!(growth(10, UNIT_F32), gamma(10, UNIT_F32));
        let many = growth(1_000_000, UNIT_F32);
        assert!(many < gamma(1_000_000, UNIT_F32) / 100.0);
        assert!(many > LAMBDA * 1000.0 * UNIT_F32);
    }
}
