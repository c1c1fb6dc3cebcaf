//! Unit roundoffs and the constant γ of floating-point error analysis.
//!
//! Source: N. Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., §3.1 and §3.5: a sum
//! of products in which no term passes through more than k roundings differs from the exact one by at
//! most `γ(k) · Σ|terms|`, in whatever order it is summed.

/// Unit roundoff of f32, 2⁻²⁴.
pub const UNIT_F32: f64 = f32::EPSILON as f64 / 2.0;

/// Unit roundoff of f64, 2⁻⁵³.
pub const UNIT_F64: f64 = f64::EPSILON / 2.0;

/// `γ(k) = k·u / (1 − k·u)`, the relative error that k roundings with unit roundoff u can build up.
///
/// Infinite when `k·u ≥ 1`: then nothing is promised.
///
/// ```
/// use warpfuse::reference::rounding::{UNIT_F64, gamma};
/// assert_eq!(gamma(0, UNIT_F64), 0.0);
/// assert!(gamma(10, UNIT_F64) > 10.0 * UNIT_F64);
/// assert_eq!(gamma(2, 0.5), f64::INFINITY);
/// ```
pub fn gamma(k: usize, unit: f64) -> f64 {
    let ku = k as f64 * unit;
    if ku < 1.0 {
        ku / (1.0 - ku)
    } else {
        f64::INFINITY
    }
}

/// True when every `|value − truth| ≤ bound`; a NaN anywhere in `values`, or in a bound, is false.
///
/// Where the truth is not finite the value has to be the same infinity, or NaN for NaN.
///
/// # Panics
/// When the lengths differ.
pub fn within(values: &[f64], truth: &[f64], bound: &[f64]) -> bool {
    assert_eq!(
        values.len(),
        truth.len(),
        "values and truth differ in length"
    );
    assert_eq!(
        values.len(),
        bound.len(),
        "values and bounds differ in length"
    );
    values
        .iter()
        .zip(truth)
        .zip(bound)
        .all(|((&value, &truth), &bound)| {
            if truth.is_finite() {
                (value - truth).abs() <= bound
            } else {
                value == truth || (value.is_nan() && truth.is_nan())
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_is_never_within_a_bound() {
        assert!(within(&[1.0], &[1.0], &[0.0]));
        assert!(!within(&[f64::NAN], &[1.0], &[1.0]));
        assert!(!within(&[1.0], &[1.0], &[f64::NAN]));
        assert!(!within(&[1.0], &[f64::NAN], &[f64::INFINITY]));
        assert!(!within(
            &[f64::INFINITY],
            &[f64::NEG_INFINITY],
            &[f64::INFINITY]
        ));
    }
}
