//! `predict`, from a model that `train` saved.

use crate::program::{Folder, diabetes, number, numbers, run, train_to};

/// Trains on the sample data; the model's file is in the folder.
fn trained() -> (Folder, String) {
    let folder = Folder::new();
    let model = folder.path("model.safetensors");
    train_to(&model);
    (folder, model)
}

#[test]
fn a_saved_model_predicts_as_well_as_the_report_said() {
    let (_folder, model) = trained();
    let data = diabetes();
    let fit = run(["train", "linreg", &data, "--device", "cpu", "--json"])
        .expect_code(0)
        .json();
    let predicted = run(["predict", &model, &data, "--device", "cpu", "--json"])
        .expect_code(0)
        .json();
    assert!(
        (number(&predicted, "r2") - number(&fit, "r2")).abs() <= 1e-12,
        "{predicted}"
    );
    assert_eq!(numbers(&predicted, "predictions").len(), 442);
}

#[test]
fn predictions_are_one_per_line_and_the_score_is_apart() {
    let (folder, model) = trained();
    let data = diabetes();
    let printed = run(["predict", &model, &data, "--device", "cpu"]).expect_code(0);
    assert_eq!(
        printed
            .stdout
            .lines()
            .filter(|line| line.parse::<f64>().is_ok())
            .count(),
        442
    );
    assert!(
        printed.stderr.starts_with("R² 0.51") && printed.stderr.contains("RMSE"),
        "{}",
        printed.stderr
    );
    let quiet = run(["predict", &model, &data, "--device", "cpu", "-q"]).expect_code(0);
    assert_eq!(
        (quiet.stdout, quiet.stderr.as_str()),
        (printed.stdout.clone(), "")
    );

    let text = folder.path("p.txt");
    let written = run(["predict", &model, &data, "--device", "cpu", "-o", &text]).expect_code(0);
    assert_eq!(written.stdout, "");
    assert_eq!(folder.read("p.txt"), printed.stdout.as_bytes());
    let array = folder.path("p.npy");
    run(["predict", &model, &data, "--device", "cpu", "-o", &array]).expect_code(0);
    assert!(folder.read("p.npy").starts_with(b"\x93NUMPY"));
}

#[test]
fn sparse_data_may_be_narrower_than_the_model_but_not_wider() {
    let (folder, model) = trained();
    let narrow = folder.file("narrow.svm", "0 3:0.01\n0 2:-0.02\n");
    let printed = run(["predict", &model, &narrow, "--device", "cpu"]).expect_code(0);
    assert_eq!(printed.stdout.lines().count(), 2);
    let wide = folder.file("wide.svm", "0 3:0.01\n0 11:1\n");
    let refused = run(["predict", &model, &wide, "--device", "cpu"]).expect_code(1);
    assert!(
        refused
            .stderr
            .contains("wide.svm:2:3: expected feature indices below 11"),
        "{}",
        refused.stderr
    );
}

#[test]
fn dense_data_have_exactly_the_models_width() {
    let (folder, model) = trained();
    let x = folder.path("x.npy");
    run(["synth", "dense", "--rows", "5", "--cols", "9", "-o", &x]).expect_code(0);
    let refused = run(["predict", &model, &x, "--device", "cpu"]).expect_code(1);
    assert!(
        refused.stderr.contains("x.npy") && refused.stderr.contains("10"),
        "{}",
        refused.stderr
    );
}

#[test]
fn what_is_no_model_is_refused() {
    let folder = Folder::new();
    let broken = folder.file("broken", "not a model");
    for model in [broken, folder.path("missing")] {
        let refused = run(["predict", &model, &diabetes()]).expect_code(1);
        assert!(
            refused.stderr.starts_with("error: ") && refused.stderr.contains(&model),
            "{}",
            refused.stderr
        );
    }
}
