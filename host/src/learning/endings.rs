//! How fits of awkward data end: "converged" only where the objective is the minimum's.
//!
//! Every estimator is fitted to every kind of data on the CPU, by the solver that suits it best, and again as tightly as f64 allows. A
//! fit that says that it converged has the objective of the tight one to 10⁻⁶; those that cannot converge are listed, with
//! what they say instead.

use ndarray::Array2;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{
    Convergence, ElasticNet, Family, FitReport, Glm, Labels, Lasso, LinearSvc, LinearSvr, Link,
    LogisticRegression, Penalty, Ridge,
};
use crate::device::Device;
use crate::matrix::Features;

/// Kinds of data.
const DATA: [&str; 8] = [
    "one-hot",
    "equal columns",
    "nearly equal columns",
    "columns of scales from 1e-4 to 1e4",
    "columns far from 0",
    "more columns than rows",
    "seven rows",
    "powers",
];

/// Estimators.
const ESTIMATORS: [&str; 13] = [
    "least squares",
    "ridge",
    "lasso",
    "elastic net",
    "logistic",
    "logistic l1",
    "logistic, no penalty",
    "multinomial",
    "multinomial l1",
    "poisson",
    "poisson sqrt, no penalty",
    "svc",
    "svr",
];

/// Fits that end otherwise than by converging: classes that can be separated have no best coefficients.
const OTHERWISE: [(&str, &str, Convergence); 1] = [(
    "more columns than rows",
    "logistic, no penalty",
    Convergence::Separable,
)];

fn features(kind: &str) -> Array2<f64> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut numbers = |rows: usize, cols: usize| {
        Array2::from_shape_fn((rows, cols), |_| 2.0 * random.random::<f64>() - 1.0)
    };
    match kind {
        "one-hot" => Array2::from_shape_fn((240, 18), |(i, j)| {
            let group = j / 6;
            f64::from((i * (2 * group + 3) + i / (group + 2)) % 6 == j % 6)
        }),
        "equal columns" => {
            let mut x = numbers(90, 6);
            let first = x.column(0).to_owned();
            x.column_mut(4).assign(&first);
            x
        }
        "nearly equal columns" => {
            let mut x = numbers(90, 6);
            for i in 0..90 {
                x[[i, 5]] = x[[i, 0]] + 1e-6 * x[[i, 5]];
            }
            x
        }
        "columns of scales from 1e-4 to 1e4" => {
            let mut x = numbers(90, 5);
            for (j, mut column) in x.columns_mut().into_iter().enumerate() {
                column *= 10f64.powi(2 * j as i32 - 4);
            }
            x
        }
        "columns far from 0" => numbers(90, 4) + 1e4,
        "more columns than rows" => numbers(20, 60),
        "seven rows" => numbers(7, 3),
        _ => Array2::from_shape_fn((120, 10), |(i, j)| (i as f64 / 119.0).powi(j as i32 + 1)),
    }
}

/// What rows are worth: depends on the first three columns, each in its own units, with much noise.
fn scores(x: &Array2<f64>) -> Vec<f64> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
    let rows = x.nrows() as f64;
    let units: Vec<(f64, f64)> = x
        .columns()
        .into_iter()
        .map(|column| {
            let mean = column.sum() / rows;
            let square: f64 = column.iter().map(|x| (x - mean).powi(2)).sum();
            (mean, (square / rows).sqrt().max(1e-12))
        })
        .collect();
    let score = |row: ndarray::ArrayView1<'_, f64>| -> f64 {
        let parts = row.iter().zip(&units).take(3);
        parts.map(|(x, (mean, unit))| (x - mean) / unit).sum()
    };
    x.rows()
        .into_iter()
        .map(|row| score(row) + 4.0 * (random.random::<f64>() - 0.5))
        .collect()
}

/// How a fit of `estimator` ends with this tolerance, or the default one.
fn report(kind: &str, estimator: &str, tolerance: f64) -> FitReport {
    let x = features(kind);
    let scores = scores(&x);
    let classes = |thresholds: &[f64]| {
        let class = |score: &f64| thresholds.iter().filter(|t| *score > **t).count() as f64;
        Labels::Numbers(scores.iter().map(class).collect())
    };
    let (two, three) = (classes(&[0.3]), classes(&[-0.6, 0.6]));
    let counts: Vec<f64> = scores.iter().map(|s| (s + 4.0).max(0.0).floor()).collect();
    let (device, x) = (Device::cpu(), Features::Dense(x));
    let logistic = |penalty: Penalty, labels: &Labels| {
        let params = LogisticRegression::params().penalty(penalty);
        let model = params.tolerance(tolerance).fit(&device, x.clone(), labels);
        model.map(|model| model.report().clone())
    };
    macro_rules! numbers {
        ($params:expr, $targets:expr) => {
            $params
                .tolerance(tolerance)
                .fit(&device, x.clone(), $targets)
                .map(|model| model.report().clone())
        };
    }
    let fitted = match estimator {
        "least squares" => numbers!(Ridge::params().alpha(0.0), &scores),
        "ridge" => numbers!(Ridge::params(), &scores),
        "lasso" => numbers!(Lasso::params().alpha(0.02), &scores),
        "elastic net" => numbers!(ElasticNet::params().alpha(0.02), &scores),
        "logistic" => logistic(Penalty::L2, &two),
        "logistic l1" => logistic(Penalty::L1, &two),
        "logistic, no penalty" => logistic(Penalty::None, &two),
        "multinomial" => logistic(Penalty::L2, &three),
        "multinomial l1" => logistic(Penalty::L1, &three),
        "poisson" => numbers!(Glm::params().family(Family::Poisson).alpha(0.1), &counts),
        "poisson sqrt, no penalty" => {
            let glm = Glm::params().family(Family::Poisson).link(Link::Sqrt);
            numbers!(glm.alpha(0.0), &counts)
        }
        "svc" => LinearSvc::params()
            .tolerance(tolerance)
            .fit(&device, x.clone(), &two)
            .map(|model| model.report().clone()),
        _ => numbers!(LinearSvr::params().epsilon(0.1), &scores),
    };
    fitted.unwrap_or_else(|error| panic!("{estimator} on {kind}: {error}"))
}

#[test]
fn fits_end_as_the_table_says_and_converged_means_the_minimum() {
    let mut wrong = Vec::new();
    for kind in DATA {
        for estimator in ESTIMATORS {
            let (found, tight) = (
                report(kind, estimator, 1e-6),
                report(kind, estimator, 1e-11),
            );
            let listed = OTHERWISE
                .iter()
                .find(|(k, e, _)| (*k, *e) == (kind, estimator));
            let expected = listed.map_or(Convergence::Converged, |(.., ending)| *ending);
            let least = found.objective.min(tight.objective);
            let scale = least.abs().max(1e-9 * first_objective(&found));
            let off = (found.objective - least) / scale;
            let honest = found.convergence != Convergence::Converged || off <= 1e-6;
            if found.convergence != expected || !honest {
                wrong.push(format!(
                    "{estimator} on {kind}: {:?} instead of {expected:?}, gradient {:.1e}, off by {off:.1e}, {} iterations, {}",
                    found.convergence,
                    found.gradient_ratio,
                    found.n_iter,
                    found.solver.name(),
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Objectives of perfect fits are 0 but for rounding: what they are relative to.
fn first_objective(report: &FitReport) -> f64 {
    report
        .history
        .first()
        .map_or(1.0, |first| first.objective.abs())
        .max(1.0)
}
