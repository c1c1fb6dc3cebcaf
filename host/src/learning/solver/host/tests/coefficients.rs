//! How far coefficients are from the minimum's where a solve ends.

use super::super::choice::Direct;
use super::{Data, LOGISTIC, SOFTMAX, near, random};
use crate::learning::cg::Convergence;
use crate::learning::spec::SampleLoss;

/// Columns of scales from 1 to 16 that tell the classes apart, and a penalty that is weak beside the curvature of the loss:
/// where the gradient is short enough, coefficients may be 1e-2 off.
#[test]
fn coefficients_are_near_those_of_the_minimum() {
    // Of an even number of classes, what is added to all of them alike may leave the l1 term as it is.
    let three = SampleLoss::Multinomial { classes: 3 };
    let cases = [
        (LOGISTIC, (0.0, 1e-6), Direct::Cholesky),
        (SOFTMAX, (0.0, 1e-6), Direct::Cholesky),
        (SOFTMAX, (0.0, 1e-6), Direct::Products),
        (three, (1e-4, 0.0), Direct::CoordinateDescent),
    ];
    for (loss, penalties, method) in cases {
        let data = told_apart(loss, penalties);
        let solve = |tolerance| {
            let mut solved = data.solve(method, tolerance);
            assert_eq!(solved.convergence, Convergence::Converged, "{method:?}");
            solved.theta.truncate(12 * loss.predictors());
            solved.theta
        };
        let exact = solve(1e-12);
        for tolerance in [1e-4, 1e-5, 1e-6] {
            near(&solve(tolerance), &exact, 1e-5);
        }
    }
}

/// Classes are the rows' ranks by a score, with little noise.
fn told_apart(loss: SampleLoss, penalties: (f64, f64)) -> Data {
    let mut x = random(400, 12);
    let noise = |i: usize| 0.2 * ((i * 7919) % 101) as f64 / 101.0;
    let score: Vec<f64> = (0..400).map(|i| x.row(i).sum() + noise(i)).collect();
    for (j, mut column) in x.columns_mut().into_iter().enumerate() {
        column *= 2f64.powi(j as i32 % 5);
    }
    let classes = loss.predictors().max(2);
    let rank = |s: &f64| score.iter().filter(|other| *other < s).count();
    let targets = score
        .iter()
        .map(|s| (rank(s) * classes / 400) as f64)
        .collect();
    Data {
        targets,
        ..Data::new(x, loss, penalties)
    }
}
