//! Data of odd scales, with outliers, and penalties that are very weak or very strong: found by comparing thousands of random
//! fits with an independent minimiser.

use ndarray::{Array2, Axis};

use super::everyday::{normal, random, sums};
use crate::device::Device;
use crate::learning::{
    Convergence, ElasticNet, Estimator, Family, FitOptions, Glm, Labels, Lasso, LinearRegression,
    LinearSvc, LogisticRegression, Model, Penalty, Ridge, Targets,
};
use crate::matrix::Features;

fn normals(rows: usize, cols: usize, seed: u64) -> Array2<f64> {
    let mut next = random(seed);
    Array2::from_shape_simple_fn((rows, cols), || normal(&mut next))
}

fn fit(estimator: impl Into<Estimator>, x: &Array2<f64>, targets: Targets<'_, f64>) -> Model {
    let features = Features::Dense(x.clone());
    let estimator = estimator.into();
    let model = estimator.fit_with(&Device::cpu(), features, targets, FitOptions::default());
    model.expect("fitted")
}

/// The objective at the default tolerance is within 10⁻⁶ of that of a far smaller one, and both have converged.
fn is_at_its_minimum(estimator: impl Into<Estimator>, x: &Array2<f64>, targets: Targets<'_, f64>) {
    let estimator = estimator.into();
    let usual = fit(estimator.clone(), x, targets);
    let tight = fit(estimator.tolerance(1e-13), x, targets);
    assert_eq!(usual.report().convergence, Convergence::Converged);
    let (found, least) = (usual.report().objective, tight.report().objective);
    assert!(
        (found - least).abs() <= 1e-6 * least,
        "{found:e} and {least:e}"
    );
}

/// A row a thousand times as large as the others makes the first gradient large: a part of it is no small gradient.
#[test]
fn an_outlier_makes_no_fit_end_early() {
    let mut x = normals(10, 5, 3);
    x.row_mut(4).mapv_inplace(|x| 1e3 * x);
    let mut next = random(5);
    let classes: Vec<f64> = x
        .rows()
        .into_iter()
        .map(|row| f64::from(row[0] / (1.0 + row[0].abs()) + 0.7 * next() > 0.0))
        .collect();
    let labels = Labels::Numbers(classes);
    is_at_its_minimum(LinearSvc::params().c(42.0), &x, Targets::Labels(&labels));
    is_at_its_minimum(
        LogisticRegression::params().c(100.0),
        &x,
        Targets::Labels(&labels),
    );
    let counts: Vec<f64> = (0..10).map(|i| f64::from(i % 4)).collect();
    let poisson = Glm::params().family(Family::Poisson).alpha(1e-6);
    is_at_its_minimum(poisson, &x, Targets::Numbers(&counts));
}

/// Rows that are nearly certain have slopes of nearly 0, and the gap of the fit is known all the same: it decides.
#[test]
fn a_weak_l1_penalty_ends_by_its_gap() {
    let (x, mut next) = (normals(30, 100, 7), random(11));
    let of_sign = |t: f64| f64::from(t > 0.0);
    let two: Vec<f64> = x.column(0).iter().map(|t| of_sign(t + next())).collect();
    let three: Vec<f64> = x
        .column(1)
        .iter()
        .zip(&two)
        .map(|(t, c)| c + of_sign(t - 0.3))
        .collect();
    for classes in [two, three] {
        let labels = Labels::Numbers(classes);
        let params = LogisticRegression::params().penalty(Penalty::L1).c(5000.0);
        let model = fit(params, &x, Targets::Labels(&labels));
        let report = model.report();
        let gap = report.relative_gap.expect("a gap is known");
        assert_eq!(report.convergence, Convergence::Converged);
        assert!(gap <= 1e-6, "{gap:e}");
    }
}

/// Where the penalty holds all coefficients at 0 the start is the minimum, and rounding of the intercept is no gradient.
#[test]
fn a_penalty_that_holds_everything_converges_at_once() {
    let x = normals(100, 5, 13) + 1e4;
    let y = sums(&x, &[1.0, 2.0, 3.0, -4.0, 0.5]);
    let classes = Labels::Numbers(y.iter().map(|t| f64::from(*t > 25_000.0)).collect());
    let counts: Vec<f64> = (0..100).map(|i| f64::from(i % 4)).collect();
    let l1 = LogisticRegression::params().penalty(Penalty::L1).c(1e-9);
    let poisson = Glm::params()
        .family(Family::Poisson)
        .alpha(1e9)
        .l1_ratio(1.0);
    let fits = [
        fit(Lasso::params().alpha(1e9), &x, Targets::Numbers(&y)),
        fit(ElasticNet::params().alpha(1e9), &x, Targets::Numbers(&y)),
        fit(l1, &x, Targets::Labels(&classes)),
        fit(poisson, &x, Targets::Numbers(&counts)),
    ];
    for model in fits {
        let report = model.report();
        assert_eq!(report.convergence, Convergence::Converged, "{report:?}");
        assert!(report.n_iter <= 1, "{} iterations", report.n_iter);
        assert!(model.coef()[0].iter().all(|w| *w == 0.0));
    }
}

/// Columns without a penalty beside others have no gap, and targets of millions make the first gradient larger than the
/// penalty: it is followed all the same.
#[test]
fn columns_without_a_penalty_leave_the_others_theirs() {
    let x = normals(30, 10, 37);
    let y: Vec<f64> = sums(&x, &[3.0, -2.0, 1.0])
        .iter()
        .map(|t| 1e6 * t)
        .collect();
    let factors = [0.0, 1.0, 5.0, 0.1, 0.0, 1.0, 5.0, 0.1, 1.0, 1.0];
    let fit = |tolerance: f64| {
        let options = FitOptions {
            penalty_factors: Some(&factors),
            ..FitOptions::default()
        };
        let lasso = Lasso::params().alpha(0.9).tolerance(tolerance);
        let model = lasso.fit_with(&Device::cpu(), Features::Dense(x.clone()), &y, options);
        model.expect("fitted").report().objective
    };
    let (found, least) = (fit(1e-6), fit(1e-13));
    assert!(
        (found - least).abs() <= 1e-6 * least,
        "{found:e} and {least:e}"
    );
}

/// Seconds since 1970, taken within a minute: sums of squares have lost their spread, the column has not.
#[test]
fn columns_far_from_0_are_not_constant() {
    let near = normals(60, 2, 17) * 20.0;
    // What is left of the columns after rounding.
    let far = near.mapv(|x| x + 1.7e9);
    let near = far.mapv(|x| x - 1.7e9);
    let mut next = random(19);
    let y: Vec<f64> = sums(&near, &[0.3, -0.2])
        .iter()
        .map(|t| t + normal(&mut next))
        .collect();
    let labels = Labels::Numbers(y.iter().map(|t| f64::from(*t > 0.0)).collect());
    let estimators: [Estimator; 3] = [
        LinearRegression::params().into(),
        Ridge::params().into(),
        Lasso::params().alpha(0.1).into(),
    ];
    let same = |a: &Model, b: &Model| {
        for (a, b) in a.coef()[0].iter().zip(b.coef()[0]) {
            assert!(
                (a - b).abs() <= 1e-7 * b.abs() && *b != 0.0,
                "{a} instead of {b}"
            );
        }
    };
    for estimator in estimators {
        for standardize in [false, true] {
            let estimator = estimator.clone().standardize(standardize);
            let targets = Targets::Numbers(&y);
            same(
                &fit(estimator.clone(), &far, targets),
                &fit(estimator, &near, targets),
            );
        }
    }
    let logistic = Estimator::from(LogisticRegression::params());
    let targets = Targets::Labels(&labels);
    same(
        &fit(logistic.clone(), &far, targets),
        &fit(logistic, &near, targets),
    );
}

/// Units of X change nothing but the units of coefficients, also where there are fewer rows than columns and an intercept.
#[test]
fn least_squares_do_not_mind_units() {
    for (rows, cols) in [(2, 5), (12, 9), (40, 3)] {
        let x = normals(rows, cols, 23);
        let y: Vec<f64> = x.sum_axis(Axis(1)).iter().map(|t| t * t + 1.0).collect();
        let plain = fit(LinearRegression::params(), &x, Targets::Numbers(&y));
        for unit in [1e-24, 1e-9, 1e9, 1e24] {
            let scaled = fit(
                LinearRegression::params(),
                &(unit * &x),
                Targets::Numbers(&y),
            );
            for (a, b) in scaled.coef()[0].iter().zip(plain.coef()[0]) {
                assert!(
                    (unit * a - b).abs() <= 1e-9 * b.abs().max(1.0),
                    "{rows} x {cols} in {unit:e}"
                );
            }
            let (a, b) = (scaled.intercept()[0], plain.intercept()[0]);
            assert!(
                (a - b).abs() <= 1e-9 * b.abs().max(1.0),
                "{rows} x {cols} in {unit:e}"
            );
        }
    }
}

/// A ridge on columns that are divided by their deviations is no rounding of them, whatever they were before.
#[test]
fn a_ridge_counts_whatever_the_units_of_columns_that_are_divided() {
    let x = normals(100, 3, 31);
    let y = sums(&x, &[1.0, -2.0, 0.5]);
    let ridge = Estimator::from(Ridge::params().alpha(20.0)).standardize(true);
    let plain = fit(ridge.clone(), &x, Targets::Numbers(&y));
    let scaled = fit(ridge, &(1e12 * &x), Targets::Numbers(&y));
    for (a, b) in scaled.coef()[0].iter().zip(plain.coef()[0]) {
        assert!((1e12 * a - b).abs() <= 1e-9 * b.abs(), "{a} and {b}");
    }
    assert!(
        (plain.coef()[0][0] - 1.0).abs() > 0.1,
        "the penalty shrinks"
    );
}

/// Powers of one number, whose Gram matrix has no digits left, and a penalty that is next to nothing.
#[test]
fn a_lasso_of_powers_ends() {
    let x = Array2::from_shape_fn((30, 30), |(i, j)| (i as f64 / 29.0).powi(j as i32 + 1));
    let mut next = random(29);
    let y: Vec<f64> = (0..30)
        .map(|i| (i as f64 / 5.0).sin() + 0.1 * normal(&mut next))
        .collect();
    for alpha in [1e-2, 1e-5, 1e-8] {
        let model = fit(Lasso::params().alpha(alpha), &x, Targets::Numbers(&y));
        let report = model.report();
        assert!(report.n_iter <= 50, "{} iterations", report.n_iter);
        let steps: usize = report.history.iter().map(|iteration| iteration.inner).sum();
        assert!(steps <= 20_000, "{steps} steps");
        assert!(report.convergence.is_success(), "{report:?}");
    }
}
