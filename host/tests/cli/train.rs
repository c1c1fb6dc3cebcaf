//! `train linreg`, and whether its results are right.

use std::fs;

use serde_json::Value;

use crate::program::{self, Folder, diabetes, number, numbers, run, run_with, train_to};

const TINY: &str = "1 1:0\n3 1:1\n5 1:2\n7.5 1:3\n";

/// |found − expected| ≤ 1e-8 |expected|, written so that NaN fails.
fn assert_close(what: &str, found: f64, expected: f64) {
    let error = (found - expected).abs();
    assert!(
        error <= 1e-8 * expected.abs(),
        "{what}: expected {expected}, found {found}"
    );
}

/// scikit-learn's intercept without one is exactly 0, and so is ours.
fn check_ridge(case: &Value) {
    let alpha = case["alpha"].to_string();
    let data = diabetes();
    let mut arguments = vec![
        "train", "linreg", &data, "--device", "cpu", "--json", "--tol", "1e-14", "--l2", &alpha,
    ];
    if case["fit_intercept"] == false {
        arguments.push("--no-intercept");
    }
    let fit = run(arguments).expect_code(0).json();
    let (found, expected) = (numbers(&fit, "coef"), numbers(case, "coef"));
    assert_eq!(found.len(), expected.len());
    for (column, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_close(&format!("coef[{column}] of {case}"), *found, *expected);
    }
    for name in ["intercept", "r2", "rmse"] {
        assert_close(
            &format!("{name} of {case}"),
            number(&fit, name),
            number(case, name),
        );
    }
    assert_eq!(fit["converged"], true, "{fit}");
}

#[test]
fn coefficients_are_those_of_scikit_learns_ridge() {
    let reference =
        fs::read_to_string(program::sample("diabetes.ridge.json")).expect("the reference");
    let reference: Value = serde_json::from_str(&reference).expect("JSON");
    let cases = reference["cases"].as_array().expect("cases");
    assert_eq!(cases.len(), 6);
    cases.iter().for_each(check_ridge);
}

#[test]
fn f32_comes_close() {
    let data = diabetes();
    let fit = |dtype: &str| {
        run([
            "train", "linreg", &data, "--l2", "0.1", "--device", "cpu", "--dtype", dtype, "--json",
        ])
        .expect_code(0)
        .json()
    };
    let (single, double) = (fit("f32"), fit("f64"));
    assert_eq!(single["dtype"], "f32");
    assert!(
        (number(&single, "r2") - number(&double, "r2")).abs() <= 1e-4,
        "{single}"
    );
}

#[test]
fn json_has_the_promised_fields_and_nothing_else_is_on_stdout() {
    let fit = run(["train", "linreg", &diabetes(), "--device", "cpu", "--json"]).expect_code(0);
    assert_eq!(fit.stdout.lines().count(), 1);
    let object = fit.json();
    for name in [
        "coef",
        "intercept",
        "n_iter",
        "converged",
        "r2",
        "rmse",
        "device",
        "seconds",
    ] {
        assert!(
            object.get(name).is_some_and(|value| !value.is_null()),
            "{name} in {object}"
        );
    }
    assert_eq!(object["device"], "cpu");
    assert_eq!(fit.stderr, "");
}

#[test]
fn the_report_tells_what_a_user_wants_to_know() {
    let folder = Folder::new();
    let model = folder.path("model.safetensors");
    let fit = train_to(&model);
    for words in [
        "442 samples x 10 features",
        "4420 (100",
        "iterations",
        "gradient",
        "R²",
        "RMSE",
        "intercept",
        "coef[2]",
        "peak device memory",
        &model,
    ] {
        assert!(fit.stdout.contains(words), "{words} in {}", fit.stdout);
    }
}

#[test]
fn stdin_is_a_file_too() {
    let arguments = ["train", "linreg", "-", "--device", "cpu", "--json"];
    let fit = run_with(arguments, TINY.as_bytes()).expect_code(0).json();
    assert_close("coef", numbers(&fit, "coef")[0], 2.15);
    assert_close("intercept", number(&fit, "intercept"), 0.9);
}

#[test]
fn an_iteration_that_stops_early_is_loud_and_fails_when_strict() {
    let data = diabetes();
    let arguments = [
        "train",
        "linreg",
        &data,
        "--device",
        "cpu",
        "--solver",
        "conjugate-gradient",
        "--max-iter",
        "2",
        "-q",
    ];
    let loose = run(arguments).expect_code(0);
    assert!(loose.stdout.contains("NOT CONVERGED"), "{}", loose.stdout);
    for words in [
        "warning: NOT CONVERGED after 2 iterations",
        "gradient",
        "scale the features",
        "--max-iter",
    ] {
        assert!(loose.stderr.contains(words), "{words} in {}", loose.stderr);
    }
    run(arguments.into_iter().chain(["--strict"])).expect_code(3);
    let json = run(arguments.into_iter().chain(["--strict", "--json"]))
        .expect_code(3)
        .json();
    assert_eq!(json["converged"], false);
    run(["train", "linreg", &data, "--device", "cpu", "--strict"]).expect_code(0);
}

#[test]
fn dense_features_need_targets_from_elsewhere() {
    let folder = Folder::new();
    let (x, y) = (folder.path("x.npy"), folder.path("y.npy"));
    let made = [
        "synth", "dense", "--rows", "200", "--cols", "3", "--noise", "0", "-o", &x, "--target", &y,
    ];
    run(made).expect_code(0);
    let without = run(["train", "linreg", &x, "--device", "cpu"]).expect_code(1);
    assert!(
        without.stderr.contains("--target FILE.npy"),
        "{}",
        without.stderr
    );
    let fit = run([
        "train", "linreg", &x, "--target", &y, "--device", "cpu", "--json",
    ])
    .expect_code(0)
    .json();
    assert!(number(&fit, "r2") >= 1.0 - 1e-9, "{fit}");
}

#[test]
fn too_few_targets_are_an_error() {
    let folder = Folder::new();
    let (x, y) = (folder.path("x.npy"), folder.path("y.npy"));
    run([
        "synth", "dense", "--rows", "20", "--cols", "3", "-o", &x, "--target", &y,
    ])
    .expect_code(0);
    let other = folder.path("x2.npy");
    run([
        "synth", "dense", "--rows", "21", "--cols", "3", "-o", &other,
    ])
    .expect_code(0);
    let fit = run(["train", "linreg", &other, "--target", &y, "--device", "cpu"]).expect_code(1);
    assert!(
        fit.stderr.contains("each of the 21 rows, found 20"),
        "{}",
        fit.stderr
    );
}

#[test]
fn the_cache_gives_the_same_result_and_is_written() {
    let folder = Folder::new();
    let data = folder.file("data.svm", TINY);
    let fit = || {
        run([
            "train", "linreg", &data, "--cache", "--device", "cpu", "--json",
        ])
        .expect_code(0)
        .json()
    };
    let (first, second) = (fit(), fit());
    assert!(!folder.read("data.svm.wfc").is_empty());
    assert_eq!(first["coef"], second["coef"]);
}

#[test]
fn a_model_that_cannot_be_saved_is_found_out_before_the_fit() {
    let folder = Folder::new();
    let model = folder.path("no/such/folder/model");
    let fit = run(["train", "linreg", "no-such-data", "-o", &model]).expect_code(1);
    assert!(fit.stderr.contains("expected a folder"), "{}", fit.stderr);
}

#[test]
fn a_gpu_that_is_not_there_is_an_error_with_a_remedy() {
    let fit = run([
        "train",
        "linreg",
        &diabetes(),
        "--device",
        "cuda:4000000000",
    ])
    .expect_code(1);
    assert!(fit.stderr.contains("cuda:4000000000"), "{}", fit.stderr);
    let remedy = ["the device `cpu`", "warpfuse info"]
        .iter()
        .any(|words| fit.stderr.contains(words));
    assert!(remedy, "{}", fit.stderr);
}

/// What many try first: the name of a column where a file is expected.
#[test]
fn a_column_is_no_file_of_targets() {
    let folder = Folder::new();
    let data = folder.path("people.csv");
    fs::write(&data, "age,bought\n31,1\n55,0\n20,1\n").expect("a folder for files");
    let refused = run([
        "train", "logreg", &data, "--target", "bought", "--device", "cpu",
    ])
    .expect_code(1);
    let advice = "a column of the data is --target-column bought";
    assert!(refused.stderr.contains(advice), "{}", refused.stderr);
}
