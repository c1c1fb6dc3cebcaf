//! Sums, extremes and moments, one element after the other.

use std::cmp::Ordering;

use super::rounding::gamma;

/// Σ xᵢ of integers, exactly.
pub fn sum_of_integers<T: Copy + Into<i64>>(x: &[T]) -> i128 {
    x.iter().map(|&x| i128::from(x.into())).sum()
}

/// Σ xᵢ·yᵢ of integers, exactly.
///
/// # Panics
/// When the lengths differ, or beyond 128 bits.
pub fn dot_of_integers<T: Copy + Into<i64>>(x: &[T], y: &[T]) -> i128 {
    assert_eq!(x.len(), y.len(), "arrays of different lengths");
    let product = |(&x, &y): (&T, &T)| i128::from(x.into()) * i128::from(y.into());
    x.iter().zip(y).map(product).sum()
}

/// A sum as the exact value of what f64 additions with a running error term give, and the sum of magnitudes
/// that error bounds are relative to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounded {
    /// The sum.
    pub value: f64,
    /// Σ |terms|.
    pub magnitude: f64,
}

impl Bounded {
    /// How far a sum of `terms` terms, computed with unit roundoff `unit` in any order, may be from the value.
    pub fn bound(&self, terms: usize, unit: f64) -> f64 {
        gamma(terms + 2, unit) * self.magnitude
    }
}

/// Σ terms, with the rounding errors of the additions added up too (Neumaier 1974).
///
/// ```
/// use warpfuse::reference::reduce::sum;
/// assert_eq!(sum([1e16, 1.0, -1e16]).value, 1.0);
/// ```
pub fn sum(terms: impl IntoIterator<Item = f64>) -> Bounded {
    let (mut value, mut error, mut magnitude) = (0.0_f64, 0.0, 0.0);
    for term in terms {
        let next = value + term;
        error += if value.abs() >= term.abs() {
            (value - next) + term
        } else {
            (term - next) + value
        };
        value = next;
        magnitude += term.abs();
    }
    // Beyond the finite numbers the error term means nothing.
    let value = if value.is_finite() {
        value + error
    } else {
        value
    };
    Bounded { value, magnitude }
}

/// Which element is sought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extreme {
    /// The least.
    Least,
    /// The greatest.
    Greatest,
    /// The one of greatest magnitude.
    Magnitude,
}

/// The index of the first sought element: the first NaN where there is one; −0 is less than +0. `None` of an
/// empty array.
///
/// ```
/// use warpfuse::reference::reduce::{Extreme, position};
/// assert_eq!(position(&[1.0, -2.0, -2.0], Extreme::Least), Some(1));
/// assert_eq!(position(&[1.0, f64::NAN], Extreme::Least), Some(1));
/// assert_eq!(position(&[0.0, -0.0], Extreme::Least), Some(1));
/// ```
pub fn position<T: Copy + Into<f64>>(x: &[T], sought: Extreme) -> Option<usize> {
    let nan = x.iter().position(|&x| x.into().is_nan());
    if nan.is_some() {
        return nan;
    }
    first_by(x, |a, b| order(a.into(), b.into(), sought))
}

/// [`position`] of integers that a double does not hold.
pub fn position_of_integers(x: &[i64], sought: Extreme) -> Option<usize> {
    first_by(x, |a, b| match sought {
        Extreme::Least => b.cmp(&a),
        Extreme::Greatest => a.cmp(&b),
        Extreme::Magnitude => a.unsigned_abs().cmp(&b.unsigned_abs()),
    })
}

fn order(a: f64, b: f64, sought: Extreme) -> Ordering {
    match sought {
        Extreme::Least => b.total_cmp(&a),
        Extreme::Greatest => a.total_cmp(&b),
        Extreme::Magnitude => a.abs().total_cmp(&b.abs()),
    }
}

/// The first of the elements that `order` puts highest.
fn first_by<T: Copy>(x: &[T], order: impl Fn(T, T) -> Ordering) -> Option<usize> {
    let better = |best: usize, i: usize| {
        if order(x[i], x[best]) == Ordering::Greater {
            i
        } else {
            best
        }
    };
    (0..x.len()).reduce(better)
}

/// Mean and Σ (x − mean)², in two passes.
///
/// # Panics
/// When there are no elements.
pub fn moments<T: Copy + Into<f64>>(x: &[T]) -> (f64, f64) {
    assert!(!x.is_empty(), "the mean of no elements");
    let mean = sum(x.iter().map(|&x| x.into())).value / x.len() as f64;
    let deviations = sum(x.iter().map(|&x| (x.into() - mean).powi(2))).value;
    (mean, deviations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_arrays_by_hand() {
        assert_eq!(sum_of_integers(&[i64::MAX, 1]), 1 << 63);
        assert_eq!(dot_of_integers(&[2_i32, 3], &[4, -5]), -7);
        assert_eq!(sum([1.0, -3.0]).magnitude, 4.0);
        assert_eq!(moments(&[1.0_f32, 3.0]), (2.0, 2.0));
        assert_eq!(
            position_of_integers(&[1, i64::MIN], Extreme::Magnitude),
            Some(1)
        );
        assert_eq!(position::<f32>(&[], Extreme::Least), None);
        assert!(sum([f64::INFINITY, 1.0]).value.is_infinite());
    }
}
