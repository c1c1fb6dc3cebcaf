//! `train kernel-ridge`: fits, models, predictions, complaints.

use crate::program::{Folder, diabetes, number, numbers, run};

/// Four samples of t = x².
const SQUARES: &str = "0 1:0\n1 1:1\n4 1:2\n9 1:3\n";

fn train(data: &str, more: &[&str]) -> crate::program::Run {
    let arguments = ["train", "kernel-ridge", data, "--device", "cpu"];
    run(arguments.iter().chain(more))
}

#[test]
fn dual_coefficients_solve_the_system() {
    let folder = Folder::new();
    let data = folder.file("squares.svm", SQUARES);
    let options = [
        "--gamma", "0.5", "--alpha", "0.25", "--tol", "1e-12", "--json",
    ];
    let found = train(&data, &options).expect_code(0).json();
    assert_eq!(
        (&found["model"], &found["kernel"]),
        (&"kernel-ridge".into(), &"gaussian".into())
    );
    // γ = 1/2 is ℓ = 1.
    assert!(
        (number(&found, "length_scale") - 1.0).abs() < 1e-15,
        "{found}"
    );
    let dual = numbers(&found, "dual_coef");
    for (i, target) in [0.0, 1.0, 4.0, 9.0].into_iter().enumerate() {
        let k = |j: usize| (-0.5 * (i as f64 - j as f64).powi(2)).exp();
        let row: f64 = (0..4).map(|j| k(j) * dual[j]).sum();
        let left = row + 0.25 * dual[i];
        assert!(
            (left - target).abs() < 1e-9,
            "row {i}: {left}, expected {target}"
        );
    }
}

#[test]
fn a_saved_model_predicts_and_is_scored() {
    let folder = Folder::new();
    let (data, model) = (diabetes(), folder.path("model.safetensors"));
    let options = [
        "--kernel",
        "matern32",
        "--bandwidth",
        "0.5",
        "--alpha",
        "0.5",
        "-o",
        &model,
        "--json",
    ];
    let fit = train(&data, &options).expect_code(0).json();
    assert!(fit.get("dual_coef").is_none(), "{fit}");
    let r2 = number(&fit, "r2");
    assert!((0.4..1.0).contains(&r2), "{fit}");

    let apply = |command: &str| run([command, &model, &data, "--device", "cpu", "--json"]);
    let predicted = apply("predict").expect_code(0).json();
    assert_eq!(numbers(&predicted, "predictions").len(), 442);
    for found in [&predicted, &apply("evaluate").expect_code(0).json()] {
        assert!((number(found, "r2") - r2).abs() < 1e-12, "{found}");
    }
    let text = run([
        "predict", &model, &data, "--device", "cpu", "--dtype", "f32",
    ])
    .expect_code(0);
    assert_eq!(text.stdout.lines().count(), 442);
    assert!(text.stderr.contains("R²"), "{}", text.stderr);
}

#[test]
fn the_report_names_what_was_fitted_and_how_it_went() {
    let folder = Folder::new();
    let data = folder.file("squares.svm", SQUARES);
    let validation = folder.file("more.svm", "2.25 1:1.5\n6.25 1:2.5\n");
    let options = [
        "--kernel",
        "cauchy",
        "--length-scale",
        "2",
        "--validation",
        &validation,
    ];
    let told = train(&data, &options).expect_code(0).stdout;
    for part in [
        "Kernel ridge regression",
        "cauchy",
        "2.000000",
        "cholesky (few enough samples to form K)",
        "converged",
        "validation R²",
    ] {
        assert!(told.contains(part), "no `{part}` in {told}");
    }
    let both = ["--rank", "8", "--solver", "cholesky"];
    train(&data, &both).expect_code(1);
    let early = train(&data, &["--rank", "0", "--max-iter", "1", "--strict"]).expect_code(3);
    assert!(
        early.stderr.contains("NOT CONVERGED after 1"),
        "{}",
        early.stderr
    );
}

#[test]
fn what_does_not_fit_is_refused() {
    let folder = Folder::new();
    let data = folder.file("squares.svm", SQUARES);
    for wrong in [
        &["--alpha", "0"][..],
        &["--length-scale", "-1"],
        &["--gamma", "1", "--length-scale", "1"],
        &["--kernel", "sigmoid"],
    ] {
        train(&data, wrong).expect_code(2);
    }
    let gamma = train(&data, &["--kernel", "matern52", "--gamma", "1"]).expect_code(1);
    assert!(
        gamma.stderr.contains("use --length-scale"),
        "{}",
        gamma.stderr
    );
    let model = folder.path("model.safetensors");
    train(&data, &["-o", &model]).expect_code(0);
    let other = folder.path("model.txt");
    let converted = run(["convert", &model, &other, "--to", "liblinear"]).expect_code(1);
    assert!(
        converted.stderr.contains("expected a linear model"),
        "{}",
        converted.stderr
    );
    let proba = run(["predict", &model, &data, "--device", "cpu", "--proba"]).expect_code(1);
    assert!(proba.stderr.contains("--proba"), "{}", proba.stderr);
}
