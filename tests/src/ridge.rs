//! Ridge regression by Cholesky's factorisation of the normal equations, in f64.

use ndarray::{Array1, Array2, Axis};

/// A linear model.
#[derive(Debug, Clone, PartialEq)]
pub struct Ridge {
    /// n coefficients.
    pub coef: Vec<f64>,
    /// 0 when none was wanted.
    pub intercept: f64,
}

/// Whether an intercept is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intercept {
    /// Columns and targets are centred first.
    Fitted,
    /// Through the origin.
    Zero,
}

/// Minimises `Σ (tᵢ − xᵢ·w − b)² + λ·‖w‖²`, λ > 0.
///
/// # Panics
/// When X and t differ in rows, or `XᵀX + λI` is not positive definite to working precision.
///
/// ```
/// use ndarray::array;
/// use warpfuse_tests::ridge::{Intercept, ridge};
/// let model = ridge(&array![[1.0], [2.0]], &[2.0, 4.0], 1.0, Intercept::Zero);
/// assert!((model.coef[0] - 10.0 / 6.0).abs() < 1e-15);
/// ```
pub fn ridge(x: &Array2<f64>, targets: &[f64], l2: f64, intercept: Intercept) -> Ridge {
    let targets = Array1::from(targets.to_vec());
    let (x_mean, t_mean) = match intercept {
        Intercept::Fitted => (mean_of_rows(x), targets.mean().unwrap_or(0.0)),
        Intercept::Zero => (Array1::zeros(x.ncols()), 0.0),
    };
    let centred = x - &x_mean;
    let a = centred.t().dot(&centred) + Array2::<f64>::eye(x.ncols()) * l2;
    let coef = solve(a, centred.t().dot(&(&targets - t_mean)));
    let intercept = t_mean - x_mean.dot(&coef);
    Ridge {
        coef: coef.to_vec(),
        intercept,
    }
}

fn mean_of_rows(x: &Array2<f64>) -> Array1<f64> {
    x.mean_axis(Axis(0)).expect("at least one sample")
}

/// Solves A·w = b for symmetric positive definite A: A = L·Lᵀ, L·u = b, Lᵀ·w = u.
///
/// L is found row by row, from products of rows: A's lower half alone is read.
///
/// # Panics
/// When A is not positive definite to working precision, or smaller than b.
pub fn solve(a: Array2<f64>, mut b: Array1<f64>) -> Array1<f64> {
    let n = b.len();
    let mut rows: Vec<Vec<f64>> = a.outer_iter().map(|row| row.to_vec()).collect();
    for i in 0..n {
        let (before, rest) = rows.split_at_mut(i);
        let row = &mut rest[0];
        for (j, other) in before.iter().enumerate() {
            row[j] = (row[j] - dot(&row[..j], &other[..j])) / other[j];
        }
        let pivot = (row[i] - dot(&row[..i], &row[..i])).sqrt();
        assert!(pivot > 0.0, "column {i} depends on those before it");
        row[i] = pivot;
        b[i] = (b[i] - (0..i).map(|k| row[k] * b[k]).sum::<f64>()) / pivot;
    }
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|k| rows[k][i] * b[k]).sum();
        b[i] = (b[i] - known) / rows[i][i];
    }
    b
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Random;

    #[test]
    fn the_gradient_vanishes() {
        let random = &mut Random::new(2);
        let x = Array2::from_shape_simple_fn((30, 7), || random.signed() + 0.5);
        let t: Vec<f64> = (0..30).map(|_| random.signed()).collect();
        for intercept in [Intercept::Fitted, Intercept::Zero] {
            let model = ridge(&x, &t, 0.3, intercept);
            let w = Array1::from(model.coef.clone());
            let residual = x.dot(&w) + model.intercept - Array1::from(t.clone());
            let gradient = x.t().dot(&residual) + &w * 0.3;
            assert!(gradient.iter().all(|g| g.abs() < 1e-12), "{gradient}");
            assert!(intercept == Intercept::Zero || residual.sum().abs() < 1e-12);
        }
    }
}
