//! Coefficients of fits that have converged are near those of the minimum, not their gradients alone.

use ndarray::Array2;

use super::everyday::{normal, random, sums};
use crate::device::Device;
use crate::learning::{Convergence, Labels, LogisticRegression, Ridge, Solver};
use crate::matrix::Features;

/// 400 rows whose columns are of sizes from 1 down to 10⁻³, and two of which are nearly the same.
fn many_scales() -> Array2<f64> {
    let mut next = random(31);
    let mut x = Array2::from_shape_simple_fn((400, 12), || normal(&mut next));
    for mut row in x.rows_mut() {
        row[11] = row[0] + 0.03 * row[11];
        for (j, x) in row.iter_mut().enumerate() {
            *x *= 10f64.powf(-(j as f64) / 4.0);
        }
    }
    x
}

/// The largest difference, of the largest coefficient.
fn distance(found: &[f64], best: &[f64]) -> f64 {
    let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, |a, b| b.abs().max(a));
    let differences = &mut found.iter().zip(best).map(|(a, b)| a - b);
    largest(differences) / largest(&mut best.iter().copied())
}

/// A short gradient is no small distance along weak directions: solvers by products go on until it is.
#[test]
fn iterations_end_near_the_minimum_whatever_the_scales() {
    let x = many_scales();
    let weights: Vec<f64> = (0..x.ncols()).map(|j| 1.0 + (j % 3) as f64).collect();
    let means = sums(&x, &weights);
    let mut next = random(37);
    let y: Vec<f64> = means.iter().map(|t| t + normal(&mut next)).collect();
    let classes: Vec<f64> = y.iter().map(|t| f64::from(*t > 0.0)).collect();
    let ridge = |solver, tolerance| {
        let params = Ridge::params().alpha(1e-3).solver(solver);
        let features = Features::Dense(x.clone());
        let params = params.tolerance(tolerance);
        params.fit(&Device::cpu(), features, &y).unwrap()
    };
    let logistic = |solver, tolerance| {
        let params = LogisticRegression::params().c(100.0).solver(solver);
        let features = Features::Dense(x.clone());
        let labels = Labels::Numbers(classes.clone());
        let params = params.tolerance(tolerance);
        params.fit(&Device::cpu(), features, &labels).unwrap()
    };
    let best = ridge(Solver::NewtonCholesky, 1e-13);
    for solver in [Solver::ConjugateGradient, Solver::NewtonCg] {
        let found = ridge(solver, 1e-4);
        let distance = distance(found.coef(), best.coef());
        assert!(distance <= 1e-5, "ridge, {solver:?}: {distance:e}");
        assert_eq!(found.report().convergence, Convergence::Converged);
    }
    let best = logistic(Solver::NewtonCholesky, 1e-13);
    let found = logistic(Solver::NewtonCg, 1e-4);
    let distance = distance(&found.coef()[0], &best.coef()[0]);
    assert!(distance <= 1e-5, "logistic: {distance:e}");
    assert_eq!(found.report().convergence, Convergence::Converged);
}
