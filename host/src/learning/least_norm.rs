//! Of many minima the one nearest to zero.
//!
//! Without a penalty and with at most as many rows as columns, every solution of some linear equations is a minimum.
//! Conjugate gradients from zero stay in the span of `D⁻¹·Xᵀ`, D the preconditioner, and find the minimum of least
//! `‖D^½·w‖`. With one number for all columns that is the least norm, which scikit-learn's and LAPACK's least squares
//! give too, and which does not depend on rows of weight 0.

use super::sample_weights::SampleWeights;
use crate::parallel;

/// A ridge below this share of the diagonal is too small to decide between minima: its gradient is lost in the
/// tolerance of a solve, which has half of the digits of f64.
const NEGLIGIBLE: f64 = 1e-8;

/// Whether there are many minima, or nearly: no l1 penalty, next to no l2 penalty, and no more rows with weight than
/// columns. An intercept takes one row, which is why as many are too few. `inverse` is that of the Hessian's diagonal, a
/// number for each column and predictor.
pub(super) fn is_wanted((l1, l2): (f64, f64), weights: &SampleWeights, inverse: &[f64]) -> bool {
    let moving = |j: usize| match inverse[j] > 0.0 {
        true => inverse[j],
        false => f64::INFINITY,
    };
    let diagonal = 1.0 / parallel::least(inverse.len(), moving);
    // No more rows are counted than decide it.
    let are_few = || weights.positive(inverse.len() + 1) <= inverse.len();
    l1 == 0.0 && l2 <= NEGLIGIBLE * diagonal && are_few()
}

/// Replaces the numbers above 0 by one: the inverse of the mean of their inverses. 0 stays: such columns do not move.
pub(super) fn even(inverse: &mut [f64]) {
    let moving = inverse.iter().filter(|d| **d > 0.0);
    let (count, sum) = moving.fold((0.0, 0.0), |(count, sum), d| (count + 1.0, sum + 1.0 / d));
    for d in inverse.iter_mut().filter(|d| **d > 0.0) {
        *d = count / sum;
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, Axis, array};

    use crate::device::Device;
    use crate::learning::{FitOptions, Ridge};
    use crate::matrix::Features;

    #[test]
    fn of_one_equation() {
        let x = Features::Dense(array![[1.0, 2.0, 0.0]]);
        let params = Ridge::params()
            .alpha(0.0)
            .fit_intercept(false)
            .tolerance(1e-12);
        let model = params.fit(&Device::cpu(), x, &[5.0]).expect("fits");
        let expected = [1.0, 2.0, 0.0]; // y·x / ‖x‖²
        let close = |(w, e): (&f64, &f64)| (w - e).abs() < 1e-12;
        assert!(
            model.coef().iter().zip(&expected).all(close),
            "{:?}",
            model.coef()
        );
    }

    /// A row of weight 2 is that row twice, one of weight 0 is none; the equations contradict each other in part.
    #[test]
    fn weights_are_repetitions() {
        let x = Array2::from_shape_fn((6, 7), |(i, j)| ((3 * i + 5 * j + i * j) % 7) as f64 + 0.1);
        let (y, weights) = (
            [1.0, 3.0, 2.0, 5.0, 4.0, 9.0],
            [2.0, 0.0, 1.0, 1.0, 0.0, 3.0],
        );
        let rows = [0, 0, 2, 3, 5, 5, 5];
        let targets: Vec<f64> = rows.iter().map(|row| y[*row]).collect();
        let repeated = Features::Dense(x.select(Axis(0), &rows));
        let params = Ridge::params().alpha(0.0).tolerance(1e-13);
        let expected = params
            .fit(&Device::cpu(), repeated, &targets)
            .expect("fits");
        let options = FitOptions {
            sample_weight: Some(&weights),
            ..FitOptions::default()
        };
        let model = params.fit_with(&Device::cpu(), Features::Dense(x), &y, options);
        let model = model.expect("fits");
        let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-9;
        assert!(
            model.coef().iter().zip(expected.coef()).all(close),
            "{:?}",
            model.coef()
        );
        assert!((model.intercept() - expected.intercept()).abs() < 1e-9);
    }
}
