//! Options beside others: those that do nothing are refused, those that go together are a grid.

use crate::program::{Folder, diabetes, number, run};

#[test]
fn options_that_do_nothing_beside_others_are_refused_by_name() {
    let data = diabetes();
    let cases: [(&[&str], &str); 10] = [
        (
            &["cv", "ridge", "--alpha", "3", "--path", "1,2"],
            "--alpha does nothing beside --path",
        ),
        (
            &["cv", "linreg", "--l2", "3", "--path", "auto"],
            "--l2 does nothing beside --path",
        ),
        (
            &["cv", "svc", "--c", "3", "--path", "1,2"],
            "--c does nothing beside --path",
        ),
        (
            &[
                "cv",
                "elasticnet",
                "--l1-ratio",
                "0.5",
                "--l1-ratios",
                "0.1,0.9",
            ],
            "--l1-ratio does nothing beside --l1-ratios",
        ),
        (
            &["cv", "svr", "--epsilon", "1", "--epsilons", "0,1"],
            "--epsilon does nothing beside --epsilons",
        ),
        (
            &["train", "logreg", "--penalty", "none", "--c", "3"],
            "--c does nothing beside --penalty none",
        ),
        (
            &["cv", "logreg", "--penalty", "none", "--path", "auto"],
            "--path does nothing beside --penalty none",
        ),
        (
            &[
                "train",
                "logreg",
                "--penalty",
                "none",
                "--penalty-factors",
                "f.npy",
            ],
            "--penalty-factors does nothing beside --penalty none",
        ),
        (
            &["train", "svr", "--no-intercept", "--intercept-scaling", "3"],
            "--intercept-scaling does nothing beside --no-intercept",
        ),
        (
            &["train", "logreg", "--penalty", "elasticnet"],
            "--penalty elasticnet: expected --l1-ratio RHO",
        ),
    ];
    for (words, message) in cases {
        let refused = run(words.iter().copied().chain([&data[..]])).expect_code(2);
        assert!(refused.stderr.contains(message), "{}", refused.stderr);
    }
    // What is not typed has its usual value, and is no reason to refuse anything.
    let usual = ["cv", "logreg", &data, "--penalty", "elasticnet"];
    let refused = run(usual).expect_code(2);
    assert!(refused.stderr.contains("--l1-ratios"), "{}", refused.stderr);
}

/// C and ε of a support vector regression, α and ρ of a logistic one: each pair once, in the order typed, and the best one is
/// saved.
#[test]
fn two_parameters_are_a_grid() {
    let folder = Folder::new();
    let (data, best) = (diabetes(), folder.path("best"));
    let cv = |words: &[&str]| {
        let fixed = [
            "cv", words[0], &data, "--device", "cpu", "--folds", "3", "--json",
        ];
        run(fixed.iter().chain(&words[1..])).expect_code(0).json()
    };
    let grid = [
        "svr",
        "--path",
        "0.1,1",
        "--epsilons",
        "0,10,60",
        "-o",
        &best,
    ];
    let found = cv(&grid);
    let path = found["path"].as_array().expect("a list");
    let pairs: Vec<(f64, f64)> = path
        .iter()
        .map(|point| (number(point, "c"), number(point, "epsilon")))
        .collect();
    let expected = [
        (0.1, 0.0),
        (1.0, 0.0),
        (0.1, 10.0),
        (1.0, 10.0),
        (0.1, 60.0),
        (1.0, 60.0),
    ];
    assert_eq!(pairs, expected);
    let scores: Vec<f64> = path
        .iter()
        .map(|point| number(point, "mean_score"))
        .collect();
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    assert_eq!(number(&found["best"], "mean_score"), most);
    let chosen = scores
        .iter()
        .position(|score| *score == most)
        .expect("the best");
    assert_eq!(number(&found["best"], "epsilon"), expected[chosen].1);
    // Each point is the cross-validation of what it says.
    let alone = cv(&["svr", "--c", "1", "--epsilon", "10"]);
    assert!((number(&alone["best"], "mean_score") - scores[3]).abs() <= 1e-6);
    // The model is that of the best point.
    let (c, epsilon) = (
        expected[chosen].0.to_string(),
        expected[chosen].1.to_string(),
    );
    let single = folder.path("single");
    let words = [
        "train",
        "svr",
        &data,
        "--device",
        "cpu",
        "--c",
        &c,
        "--epsilon",
        &epsilon,
        "-o",
        &single,
    ];
    run(words).expect_code(0);
    let score = |model: &str| {
        let words = ["evaluate", model, &data, "--device", "cpu", "--json"];
        number(&run(words).expect_code(0).json(), "r2")
    };
    assert!((score(&best) - score(&single)).abs() <= 1e-6);
    let wrong = ["cv", "ridge", &data, "--epsilons", "0,1"];
    let refused = run(wrong).expect_code(1);
    assert!(
        refused.stderr.contains("svr or huber"),
        "{}",
        refused.stderr
    );
}

/// Rows of one class alone have no ROC curve: the mean is not a number, and that is said.
#[test]
fn a_score_that_is_not_defined_is_no_number() {
    let folder = Folder::new();
    let rows: String = (0..12)
        .map(|i| format!("{} 1:{} 2:{}\n", i / 4 % 2, (i * 7) % 5, i % 3))
        .collect();
    let data = folder.file("rows.svm", rows);
    let groups = folder.file(
        "groups.txt",
        "0\n".repeat(4) + &"1\n".repeat(4) + &"2\n".repeat(4),
    );
    let cv = |scoring: &str| {
        let words = [
            "cv",
            "logreg",
            &data,
            "--device",
            "cpu",
            "--groups",
            &groups,
            "--folds",
            "3",
            "--json",
            "--path",
            "1,10",
            "--scoring",
            scoring,
        ];
        run(words).expect_code(0)
    };
    let undefined = cv("roc-auc");
    let told = undefined.json();
    assert!(told["path"][0]["mean_score"].is_null(), "{told}");
    assert!(told["path"][0]["scores"][0].is_null(), "{told}");
    assert!(
        undefined.stderr.contains("roc-auc is not defined"),
        "{}",
        undefined.stderr
    );
    let defined = cv("accuracy");
    assert!(defined.json()["path"][0]["mean_score"].is_number());
    assert!(
        !defined.stderr.contains("not defined"),
        "{}",
        defined.stderr
    );
}

/// `--solver` forces, the report says which solver it was, and why.
#[test]
fn reports_name_the_solver_and_why() {
    let data = diabetes();
    let fit = |solver: &str, more: &[&str]| {
        let fixed = [
            "train", "ridge", &data, "--device", "cpu", "--solver", solver,
        ];
        run(fixed.iter().chain(more)).expect_code(0)
    };
    for solver in [
        "newton-cg",
        "lbfgs",
        "conjugate-gradient",
        "newton-cholesky",
        "svd",
        "coordinate-descent",
    ] {
        let told = fit(solver, &["--json"]).json();
        assert_eq!(
            (&told["solver"], &told["solver_reason"]),
            (&solver.into(), &"requested".into())
        );
        let listing = fit(solver, &[]).stdout;
        assert!(
            listing.contains(&format!("{solver} (requested)")),
            "{listing}"
        );
    }
    let told = fit("auto", &["--json"]).json();
    assert_eq!(told["solver"], "newton-cholesky");
    assert_eq!(
        told["solver_reason"],
        "few enough coefficients for their Hessian"
    );
    let refused = run([
        "train", "lasso", &data, "--device", "cpu", "--solver", "svd",
    ])
    .expect_code(1);
    assert!(
        refused.stderr.contains("use coordinate-descent"),
        "{}",
        refused.stderr
    );
}
