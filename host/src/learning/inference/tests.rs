//! Standard errors beside statsmodels'.

use ndarray::Array2;
use serde_json::Value;

use super::*;
use crate::device::Device;
use crate::learning::tests::stored::{json, numbers};
use crate::learning::{
    Estimator, FitOptions, Glm, Labels, LinearRegression, LogisticRegression, Penalty,
};
use crate::matrix::Features;

/// Coefficients and standard errors agree to 1e-10; what is made of both has the error of both, and a tail that of its
/// statistic times the statistic.
fn close(what: &str, found: f64, expected: f64, tolerance: f64) {
    let error = (found - expected).abs();
    assert!(
        error <= tolerance * expected.abs(),
        "{what}: expected {expected}, found {found}"
    );
}

fn estimator(kind: &str) -> Estimator {
    let glm = |family| Glm::params().family(family).alpha(0.0);
    match kind {
        "ols" => LinearRegression::params().into(),
        "logit" => LogisticRegression::params().penalty(Penalty::None).into(),
        "probit" => glm(Family::Binomial).link(Link::Probit).into(),
        "poisson" => glm(Family::Poisson).into(),
        "gamma" => glm(Family::Gamma).into(),
        "gaussian" => glm(Family::Gaussian).into(),
        _ => glm(Family::InverseGaussian).link(Link::Log).into(),
    }
}

fn fitted(case: &Value) -> (Inference, Vec<Vec<f64>>) {
    let columns = case["columns"].as_u64().expect("columns") as usize;
    let data = json(&format!("{}.json", case["data"].as_str().expect("a name")));
    let rows: Vec<Vec<f64>> = data["x"]
        .as_array()
        .expect("rows")
        .iter()
        .map(numbers)
        .collect();
    let x = Array2::from_shape_fn((rows.len(), columns), |(i, j)| rows[i][j]);
    let (device, y) = (Device::cpu(), numbers(&data["y"]));
    let labels = Labels::Numbers(y.clone());
    let kind = case["kind"].as_str().expect("a kind");
    let targets = if kind == "logit" {
        Targets::Labels(&labels)
    } else {
        Targets::Numbers(&y)
    };
    let weights: Vec<f64> = (0..rows.len())
        .map(|i| 0.5 + (i % 5) as f64 / 4.0)
        .collect();
    let weights = (case["weighted"] == true).then_some(&weights[..]);
    let options = FitOptions {
        sample_weight: weights,
        ..FitOptions::default()
    };
    let estimator = estimator(kind).tolerance(1e-14).max_iter(10_000);
    let features = Features::Dense(x);
    let model = estimator
        .fit_with(&device, features.clone(), targets, options)
        .expect("a fit");
    let matrix = Matrix::new(&device, features).expect("a matrix");
    let found = model
        .infer(&matrix, targets, weights)
        .expect("standard errors");
    let expected = case["estimates"].as_array().expect("estimates");
    (found, expected.iter().map(numbers).collect())
}

#[test]
fn standard_errors_are_statsmodels() {
    let expected = json("report.json");
    let cases = expected["inference"].as_array().expect("cases");
    assert!(cases.len() >= 9);
    for case in cases {
        let (found, expected) = fitted(case);
        let name = format!("{} {}", case["data"], case["kind"]);
        close(
            &name,
            found.dispersion,
            case["dispersion"].as_f64().expect("φ"),
            1e-10,
        );
        let all = found.columns.iter().chain([&found.intercept]);
        let largest = expected.iter().map(|e| e[0].abs()).fold(0.0, f64::max);
        for (number, (found, expected)) in all.zip(&expected).enumerate() {
            let found = found.expect("a coefficient");
            let what = |part: &str| format!("{part} of {number} of {name}");
            close(
                &what("standard error"),
                found.standard_error,
                expected[1],
                1e-10,
            );
            // Coefficients near 0 are differences of larger numbers.
            assert!(
                (found.coef - expected[0]).abs() <= 1e-10 * largest,
                "{}",
                what("coef")
            );
            let statistic = (found.statistic - expected[2]).abs();
            let scale = 1.0 + largest / expected[1];
            assert!(
                statistic <= 1e-9 * scale,
                "{}: {statistic}",
                what("statistic")
            );
            let tail = 1e-8 * (1.0 + expected[2].abs()).powi(2);
            close(&what("p"), found.p_value, expected[3], tail);
            let reach = largest + 3.0 * expected[1];
            for (found, expected) in [(found.low, expected[4]), (found.high, expected[5])] {
                assert!(
                    (found - expected).abs() <= 1e-10 * reach,
                    "{}",
                    what("interval")
                );
            }
        }
    }
}

fn refusal(estimator: impl Into<Estimator>, x: Array2<f64>, y: &[f64]) -> String {
    let (device, labels) = (Device::cpu(), Labels::Numbers(y.to_vec()));
    let estimator = estimator.into();
    let targets = if estimator.is_classifier() {
        Targets::Labels(&labels)
    } else {
        Targets::Numbers(y)
    };
    let features = Features::Dense(x);
    let model = estimator.fit_with(&device, features.clone(), targets, FitOptions::default());
    let matrix = Matrix::new(&device, features).expect("a matrix");
    match model.expect("a fit").infer(&matrix, targets, None) {
        Err(InferenceError::Undefined(reason)) => reason.to_owned(),
        other => panic!("expected a reason, found {other:?}"),
    }
}

#[test]
fn what_has_no_standard_errors_says_why() {
    let x = |n: usize| Array2::from_shape_fn((6, n), |(i, j)| ((i * 7 + j * 5) % 11) as f64);
    let y = [0.0, 1.0, 0.0, 1.0, 1.0, 0.0];
    assert!(refusal(LogisticRegression::params(), x(2), &y).contains("penalised"));
    let three = [0.0, 1.0, 2.0, 0.0, 1.0, 2.0];
    let free = LogisticRegression::params().penalty(Penalty::None);
    assert!(refusal(free, x(2), &three).contains("relative to each other"));
    assert!(refusal(LinearRegression::params(), x(5), &y).contains("no more rows"));
    let twice = Array2::from_shape_fn((6, 2), |(i, _)| (i * i) as f64);
    assert!(refusal(LinearRegression::params(), twice, &y).contains("depend on each other"));
    let svc = crate::learning::LinearSvc::params();
    assert!(refusal(svc, x(2), &y).contains("penalised"));
}

#[test]
fn a_constant_column_has_no_standard_error() {
    let x = Array2::from_shape_fn((6, 2), |(i, j)| if j == 0 { 3.0 } else { (i * i) as f64 });
    let (device, y) = (Device::cpu(), [0.0, 1.0, 0.5, 2.0, 1.5, 3.0]);
    let features = Features::Dense(x);
    let model = LinearRegression::params()
        .fit(&device, features.clone(), &y)
        .expect("a fit");
    let matrix = Matrix::new(&device, features).expect("a matrix");
    let found = Model::Regressor(model).infer(&matrix, Targets::Numbers(&y), None);
    let found = found.expect("standard errors");
    assert!(found.columns[0].is_none() && found.columns[1].is_some());
    assert_eq!(found.degrees_of_freedom, 4.0);
}
