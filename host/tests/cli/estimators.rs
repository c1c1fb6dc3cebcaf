//! Every trainer against scikit-learn (`data/generate.py` made the figures), and what becomes of its model.

use std::path::Path;

use serde_json::Value;

use crate::program::{Folder, diabetes, number, numbers, run};

/// Both sides stop at small gradients.
const AGREEMENT: f64 = 1e-5;

fn data(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/data");
    folder.join(name).display().to_string()
}

fn known(name: &str) -> Value {
    let all: Value = serde_json::from_str(include_str!("data/iris.json")).expect("JSON");
    all[name].clone()
}

/// Trains on iris with a tight tolerance; the JSON object.
fn train(trainer: &str, options: &[&str]) -> Value {
    let iris = data("iris.svm");
    let fixed = [
        "train", trainer, &iris, "--device", "cpu", "--tol", "1e-10", "--json",
    ];
    run(fixed.iter().chain(options)).expect_code(0).json()
}

/// All numbers of two JSON values, compared.
fn assert_agree(what: &str, found: &Value, expected: &Value) {
    match (found, expected) {
        (Value::Array(found), Value::Array(expected)) => {
            assert_eq!(found.len(), expected.len(), "{what}");
            for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
                assert_agree(&format!("{what}[{index}]"), found, expected);
            }
        }
        (found, expected) => {
            let number =
                |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{what}: {value}"));
            let (found, expected) = (number(found), number(expected));
            let error = (found - expected).abs();
            assert!(
                error <= AGREEMENT * expected.abs().max(1.0),
                "{what}: expected {expected}, found {found}"
            );
        }
    }
}

fn check(name: &str, found: &Value, fields: &[&str]) {
    let expected = known(name);
    for field in fields {
        assert_agree(
            &format!("{field} of {name}"),
            &found[*field],
            &expected[*field],
        );
    }
    assert_eq!(found["converged"], true, "{found}");
    assert!(
        found["objective"].is_number() && number(found, "n_iter") > 0.0,
        "{found}"
    );
}

/// Iris without its first class, in the folder.
fn two_classes(folder: &Folder) -> String {
    let all = std::fs::read_to_string(data("iris.svm")).expect("the data");
    let lines: Vec<&str> = all.lines().filter(|line| !line.starts_with('0')).collect();
    folder.file("two.svm", lines.join("\n"))
}

#[test]
fn classifiers_agree_with_scikit_learn() {
    let fields = ["coef", "intercept", "accuracy", "log_loss"];
    let fit = train("logreg", &["--c", "0.5"]);
    check("multinomial", &fit, &fields);
    assert_eq!(numbers(&fit, "classes"), [0.0, 1.0, 2.0]);
    assert_eq!(fit["confusion"].as_array().map(Vec::len), Some(3));
    let fit = train(
        "logreg",
        &[
            "--c",
            "0.5",
            "--class-weight",
            "1=2,2=0.5",
            "--solver",
            "lbfgs",
        ],
    );
    check("weighted", &fit, &fields[..2]);
    check(
        "svc",
        &train("svc", &["--c", "0.1"]),
        &["coef", "intercept", "accuracy"],
    );
    let folder = Folder::new();
    let two = two_classes(&folder);
    let arguments = [
        "train", "logreg", &two, "--c", "2", "--device", "cpu", "--tol", "1e-10", "--json",
    ];
    let fit = run(arguments).expect_code(0).json();
    check("binary", &fit, &fields);
    assert!(number(&fit, "auc") > 0.9, "{fit}");
}

#[test]
fn regressions_agree_with_scikit_learn() {
    let fields = ["coef", "intercept"];
    let lasso = train("lasso", &["--alpha", "0.02"]);
    check("lasso", &lasso, &fields);
    assert_agree("R²", &lasso["r2"], &known("lasso")["score"]);
    let options = ["--alpha", "0.05", "--l1-ratio", "0.3"];
    check("elasticnet", &train("elasticnet", &options), &fields);
    let poisson = train("glm", &["--family", "poisson", "--alpha", "0.1"]);
    check("poisson", &poisson, &fields);
    assert_agree(
        "D²",
        &poisson["explained_deviance"],
        &known("poisson")["score"],
    );
    let svr = train("svr", &["--epsilon", "0.1"]);
    assert!(number(&svr, "r2") > 0.9, "{svr}");
}

#[test]
fn losses_with_kinks_and_huber_have_trainers() {
    for (trainer, options) in [
        ("huber", &["--epsilon", "1.5"][..]),
        ("huber", &["--scale", "0.2"]),
        ("quantile", &["--quantile", "0.25", "--alpha", "0.001"]),
        (
            "svr",
            &["--loss", "epsilon-insensitive", "--epsilon", "0.1"],
        ),
    ] {
        let fit = train(trainer, options);
        assert!(
            fit["converged"] == true && number(&fit, "r2") > 0.8,
            "{fit}"
        );
    }
    for (trainer, options) in [
        ("svc", &["--loss", "hinge"][..]),
        ("logreg", &["--one-vs-rest"]),
    ] {
        let fit = train(trainer, options);
        assert!(
            fit["converged"] == true && number(&fit, "accuracy") > 0.9,
            "{fit}"
        );
        assert_eq!(fit["intercept"].as_array().map(Vec::len), Some(3));
    }
}

#[test]
fn exposures_are_offsets_of_counts() {
    let folder = Folder::new();
    let data = folder.file("t.svm", "2 1:0\n6 1:0\n5 1:1\n10 1:1\n");
    let years = folder.file("years.npy", npy(&[1.0, 3.0, 1.0, 2.0]));
    let logs = folder.file("logs.npy", npy(&[1.0, 3.0, 1.0, 2.0].map(f64::ln)));
    let fit = |trainer: &[&str]| {
        let fixed = ["--device", "cpu", "--tol", "1e-12"];
        run([&["train"], trainer, &[data.as_str()], &fixed[..]].concat())
    };
    let poisson = ["glm", "--family", "poisson", "--alpha", "0", "--json"];
    for (option, file) in [("--exposure", &years), ("--offset", &logs)] {
        let model = fit(&[&poisson[..], &[option, file]].concat())
            .expect_code(0)
            .json();
        assert_agree("rate", &model["intercept"], &serde_json::json!(2f64.ln()));
        assert_agree("ratio", &model["coef"], &serde_json::json!([2.5f64.ln()]));
        assert!(number(&model, "explained_deviance") > 0.999, "{model}");
    }
    let refused = fit(&["ridge", "--exposure", &years]).expect_code(1);
    assert!(refused.stderr.contains("link log"), "{}", refused.stderr);
    let none = folder.file("none.npy", npy(&[1.0, 0.0, 1.0, 2.0]));
    let refused = fit(&[&poisson[..], &["--exposure", &none]].concat()).expect_code(1);
    assert!(
        refused.stderr.contains("found 0 in row 1"),
        "{}",
        refused.stderr
    );
    let short = folder.file("short.npy", npy(&[1.0]));
    let refused = fit(&["ridge", "--offset", &short]).expect_code(1);
    assert!(
        refused
            .stderr
            .contains("one offset for each of the 4 rows, found 1"),
        "{}",
        refused.stderr
    );
}

#[test]
fn penalty_factors_and_signs_constrain_coefficients() {
    let folder = Folder::new();
    let factors = folder.file("factors.npy", npy(&[1.0, 0.0, 1e9, 1.0]));
    let fit = train("ridge", &["--penalty-factors", &factors]);
    let coef = numbers(&fit, "coef");
    assert!(coef[2].abs() < 1e-6 && coef[1].abs() > 1e-2, "{coef:?}");
    let free = numbers(&train("lasso", &["--alpha", "0.001"]), "coef");
    assert!(free.iter().any(|w| *w < 0.0), "{free:?}");
    let bound = numbers(
        &train("lasso", &["--alpha", "0.001", "--non-negative"]),
        "coef",
    );
    assert!(bound.iter().all(|w| *w >= 0.0), "{bound:?}");
}

#[test]
fn ridge_is_what_linreg_is() {
    let data = diabetes();
    let fit = |arguments: [&str; 2], option: &str| {
        let fixed = ["--device", "cpu", "--tol", "1e-12", "--json", option, "0.1"];
        let words = [arguments[0], arguments[1], &data].into_iter().chain(fixed);
        run(words).expect_code(0).json()
    };
    let (ridge, linreg) = (
        fit(["train", "ridge"], "--alpha"),
        fit(["train", "linreg"], "--l2"),
    );
    for field in ["coef", "intercept", "r2", "rmse"] {
        assert_agree(field, &ridge[field], &linreg[field]);
    }
}

#[test]
fn sample_weights_of_zero_leave_rows_out() {
    let folder = Folder::new();
    let lines = "1 1:0\n3 1:1\n5 1:2\n100 1:9\n";
    let (all, some) = (
        folder.file("all.svm", lines),
        folder.file("some.svm", &lines[..18]),
    );
    let weights = folder.path("w.npy");
    std::fs::write(&weights, npy(&[1.0, 1.0, 1.0, 0.0])).expect("a file");
    let fixed = [
        "--device", "cpu", "--alpha", "0.5", "--tol", "1e-12", "--json",
    ];
    let fit = |words: &[&str]| run(words.iter().chain(&fixed)).expect_code(0).json();
    let weighted = fit(&["train", "ridge", &all, "--sample-weight", &weights]);
    let fewer = fit(&["train", "ridge", &some]);
    for field in ["coef", "intercept", "r2", "rmse"] {
        assert_agree(field, &weighted[field], &fewer[field]);
    }
    let wrong = run(["train", "ridge", &some, "--sample-weight", &weights]).expect_code(1);
    assert!(
        wrong.stderr.contains("each of the 3 rows, found 4"),
        "{}",
        wrong.stderr
    );
}

/// An npy file of f64 values.
fn npy(values: &[f64]) -> Vec<u8> {
    let shape = format!("({},)", values.len());
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}");
    let header = format!("{header:117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

#[test]
fn labels_may_be_names_and_are_kept() {
    let folder = Folder::new();
    let data = folder.file("d.svm", "0 1:0 2:1\n0 1:1 2:0\n0 1:8 2:9\n0 1:9 2:7\n");
    let labels = folder.file("labels.txt", "ham\nham\nspam\nspam\n");
    let model = folder.path("model");
    let arguments = [
        "train", "logreg", &data, "--target", &labels, "--device", "cpu", "-o", &model, "--json",
    ];
    let fit = run(arguments).expect_code(0).json();
    assert_eq!(fit["classes"], serde_json::json!(["ham", "spam"]));
    let predicted = run(["predict", &model, &data, "--device", "cpu"]).expect_code(0);
    assert_eq!(predicted.stdout, "ham\nham\nspam\nspam\n");
    assert_eq!(predicted.stderr, "");
    let scored = run([
        "evaluate", &model, &data, "--target", &labels, "--device", "cpu", "--json",
    ])
    .expect_code(0)
    .json();
    assert_eq!(number(&scored, "accuracy"), 1.0);
    let other = folder.file("other.txt", "ham\nham\neggs\nspam\n");
    let refused = run(["evaluate", &model, &data, "--target", &other]).expect_code(1);
    assert!(
        refused
            .stderr
            .contains("labels ham, spam, found \"eggs\" for sample 2"),
        "{}",
        refused.stderr
    );
    let weights = run([
        "train",
        "logreg",
        &data,
        "--target",
        &labels,
        "--class-weight",
        "egg=2",
    ])
    .expect_code(1);
    assert!(
        weights.stderr.contains("ham, spam, found egg"),
        "{}",
        weights.stderr
    );
}

#[test]
fn probabilities_and_decisions_have_a_column_per_class() {
    let folder = Folder::new();
    let (iris, model) = (data("iris.svm"), folder.path("model"));
    run(["train", "logreg", &iris, "--device", "cpu", "-o", &model]).expect_code(0);
    let proba = run(["predict", &model, &iris, "--device", "cpu", "--proba", "-q"]).expect_code(0);
    assert_eq!(proba.stdout.lines().count(), 150);
    for line in proba.stdout.lines() {
        let row: Vec<f64> = line
            .split(' ')
            .map(|p| p.parse().expect("a number"))
            .collect();
        assert!(
            row.len() == 3 && (row.iter().sum::<f64>() - 1.0).abs() < 1e-12,
            "{line}"
        );
    }
    let json = run(["predict", &model, &iris, "--device", "cpu", "--json", "-q"])
        .expect_code(0)
        .json();
    assert_eq!(numbers(&json, "predictions").len(), 150);
    assert!(number(&json, "accuracy") > 0.95, "{json}");
    let svc = folder.path("svc");
    run(["train", "svc", &iris, "--device", "cpu", "-o", &svc]).expect_code(0);
    let refused = run(["predict", &svc, &iris, "--device", "cpu", "--proba"]).expect_code(1);
    assert!(
        refused.stderr.contains("use --decision"),
        "{}",
        refused.stderr
    );
    run(["predict", &svc, &iris, "--device", "cpu", "--decision"]).expect_code(0);
}

#[test]
fn liblinear_takes_models_and_gives_them_back() {
    let folder = Folder::new();
    let iris = data("iris.svm");
    let (model, text, again) = (
        folder.path("m"),
        folder.path("m.model"),
        folder.path("again"),
    );
    for (trainer, option) in [
        ("logreg", "--c=1"),
        ("svc", "--c=1"),
        ("svr", "--c=1"),
        ("ridge", "--alpha=1"),
    ] {
        run([
            "train", trainer, &iris, "--device", "cpu", option, "-o", &model,
        ])
        .expect_code(0);
        run(["convert", &model, &text, "--to", "liblinear"]).expect_code(0);
        assert!(
            folder.read("m.model").starts_with(b"solver_type L2R_"),
            "{trainer}"
        );
        run(["convert", &text, &again, "--to", "safetensors"]).expect_code(0);
        let predict = |model: &str| {
            run(["predict", model, &iris, "--device", "cpu", "-q"])
                .expect_code(0)
                .stdout
        };
        let expected = predict(&model);
        assert_eq!(predict(&text), expected, "{trainer}");
        assert_eq!(predict(&again), expected, "{trainer}");
    }
    let named = folder.file("labels.txt", "a\nb\n");
    let tiny = folder.file("t.svm", "0 1:1\n0 1:2\n");
    run([
        "train", "logreg", &tiny, "--target", &named, "--device", "cpu", "-o", &model,
    ])
    .expect_code(0);
    let refused = run(["convert", &model, &text, "--to", "liblinear"]).expect_code(1);
    assert!(
        refused.stderr.contains("whole numbers"),
        "{}",
        refused.stderr
    );
}

#[test]
fn cross_validation_finds_the_better_penalty() {
    let iris = data("iris.svm");
    let arguments = [
        "cv",
        "logreg",
        &iris,
        "--path",
        "1e-6,1,10",
        "--folds",
        "3",
        "--device",
        "cpu",
        "--json",
    ];
    let found = run(arguments).expect_code(0).json();
    let path = found["path"].as_array().expect("a list");
    assert_eq!(path.len(), 3);
    assert!(
        path[0]["mean_score"].as_f64() < path[1]["mean_score"].as_f64(),
        "{found}"
    );
    assert_eq!(path[1]["scores"].as_array().map(Vec::len), Some(3));
    assert!(number(&found["best"], "c") >= 1.0, "{found}");
    assert_eq!(
        run(arguments).expect_code(0).json(),
        found,
        "the same seed, the same folds"
    );
    let table = run([
        "cv",
        "ridge",
        &diabetes(),
        "--path",
        "0.001,1000",
        "--device",
        "cpu",
    ])
    .expect_code(0);
    assert!(
        table.stdout.ends_with("best: --alpha 0.001\n"),
        "{}",
        table.stdout
    );
    let refused = run(["cv", "ridge", &diabetes(), "--folds", "443"]).expect_code(1);
    assert!(refused.stderr.contains("442 samples"), "{}", refused.stderr);
}

#[test]
fn validation_data_are_scored_as_well() {
    let iris = data("iris.svm");
    let fit = train("logreg", &["--validation", &iris]);
    assert_eq!(fit["validation"]["accuracy"], fit["accuracy"]);
    let report = run([
        "train",
        "logreg",
        &iris,
        "--device",
        "cpu",
        "--validation",
        &iris,
    ])
    .expect_code(0);
    for words in [
        "accuracy",
        "validation log-loss",
        "classes",
        "objective",
        "3 lists of 4",
    ] {
        assert!(
            report.stdout.contains(words),
            "{words} in {}",
            report.stdout
        );
    }
}

#[test]
fn classes_that_can_be_told_apart_need_a_penalty() {
    let folder = Folder::new();
    let data = folder.file("d.svm", "-1 1:1\n-1 1:2\n1 1:3\n1 1:4\n");
    let arguments = [
        "train",
        "logreg",
        &data,
        "--penalty",
        "none",
        "--device",
        "cpu",
        "--strict",
    ];
    let fit = run(arguments).expect_code(3);
    assert!(fit.stderr.contains("use a penalty"), "{}", fit.stderr);
    let one = folder.file("one.svm", "1 1:1\n1 1:2\n");
    let refused = run(["train", "logreg", &one, "--device", "cpu"]).expect_code(1);
    assert!(
        refused.stderr.contains("at least 2 classes"),
        "{}",
        refused.stderr
    );
}
