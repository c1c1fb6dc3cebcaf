//! Dot product, norms and axpby in f64.

use super::rounding::gamma;

/// `Σ aᵢ·bᵢ`.
///
/// # Panics
/// When the lengths differ.
pub fn dot<T: Copy + Into<f64>>(a: &[T], b: &[T]) -> f64 {
    assert_eq!(
        a.len(),
        b.len(),
        "dot product of vectors of different lengths"
    );
    a.iter().zip(b).map(|(&a, &b)| a.into() * b.into()).sum()
}

/// `Σ |aᵢ·bᵢ|`, which error bounds of [`dot`] are relative to.
///
/// # Panics
/// When the lengths differ.
pub fn dot_magnitude<T: Copy + Into<f64>>(a: &[T], b: &[T]) -> f64 {
    assert_eq!(
        a.len(),
        b.len(),
        "dot product of vectors of different lengths"
    );
    a.iter()
        .zip(b)
        .map(|(&a, &b)| (a.into() * b.into()).abs())
        .sum()
}

/// How far a dot product computed with unit roundoff `unit` may be from [`dot`].
///
/// # Panics
/// When the lengths differ.
pub fn dot_error_bound<T: Copy + Into<f64>>(a: &[T], b: &[T], unit: f64) -> f64 {
    gamma(a.len() + 1, unit) * dot_magnitude(a, b)
}

/// The Euclidean norm `√Σ aᵢ²`, without protection against overflow of the squares.
pub fn norm2<T: Copy + Into<f64>>(a: &[T]) -> f64 {
    dot(a, a).sqrt()
}

/// `Σ |aᵢ|`.
pub fn norm1<T: Copy + Into<f64>>(a: &[T]) -> f64 {
    a.iter().map(|&a| a.into().abs()).sum()
}

/// `max |aᵢ|`, 0 for an empty vector, NaN when an element is NaN.
pub fn norm_max<T: Copy + Into<f64>>(a: &[T]) -> f64 {
    a.iter().map(|&a| a.into().abs()).fold(0.0, max_or_nan)
}

/// `α·xᵢ + β·yᵢ`.
///
/// # Panics
/// When the lengths differ.
pub fn axpby<T: Copy + Into<f64>>(alpha: T, x: &[T], beta: T, y: &[T]) -> Vec<f64> {
    assert_eq!(x.len(), y.len(), "axpby of vectors of different lengths");
    let (alpha, beta) = (alpha.into(), beta.into());
    x.iter()
        .zip(y)
        .map(|(&x, &y)| alpha * x.into() + beta * y.into())
        .collect()
}

/// The larger of two, or NaN when either is NaN (`f64::max` would drop it).
fn max_or_nan(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else {
        a.max(b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_vectors_by_hand() {
        assert_eq!(dot(&[1.0f32, 2.0], &[3.0, -4.0]), -5.0);
        assert_eq!(dot_magnitude(&[1.0f32, 2.0], &[3.0, -4.0]), 11.0);
        assert_eq!(norm2(&[3.0, 4.0]), 5.0);
        assert_eq!(norm1(&[3.0, -4.0]), 7.0);
        assert_eq!(norm_max(&[3.0, -4.0]), 4.0);
        assert_eq!(norm_max::<f32>(&[]), 0.0);
        assert!(norm_max(&[f64::NAN, 1.0]).is_nan());
        assert_eq!(axpby(2.0f32, &[1.0, 2.0], -1.0, &[1.0, 1.0]), [1.0, 3.0]);
    }
}
