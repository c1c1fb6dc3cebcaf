//! What a user may rely on: files that are not destroyed, options that do something, models that say what they are.

use std::fs;

use crate::program::{Folder, diabetes, number, numbers, run};

/// `train TRAINER` on the sample data, saved to `path`.
fn train<'a>(trainer: &'a str, path: &'a str, options: &[&'a str]) -> crate::program::Run {
    let data = diabetes();
    let fixed = ["train", trainer, &data, "--device", "cpu", "-o", path];
    run(fixed.iter().chain(options))
}

#[cfg(unix)]
#[test]
fn links_are_written_through_and_devices_stay() {
    use std::os::unix::fs::{FileTypeExt, symlink};
    let folder = Folder::new();
    let (real, link) = (folder.file("real", "old"), folder.path("link"));
    symlink(&real, &link).expect("a link");
    train("linreg", &link, &[]).expect_code(0);
    assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
    assert!(folder.read("real").len() > 100);
    let full = train("linreg", "/dev/full", &[]).expect_code(1);
    assert!(full.stderr.contains("/dev/full"), "{}", full.stderr);
    let device = fs::metadata("/dev/full").expect("there").file_type();
    assert!(device.is_char_device());
}

#[test]
fn weights_whose_sum_overflows_are_refused() {
    let folder = Folder::new();
    let weights = folder.path("weights.npy");
    let large = ndarray::Array1::from_elem(442, 1e308);
    ndarray_npy::write_npy(&weights, &large).expect("written");
    for trainer in ["ridge", "lasso"] {
        let words = ["train", trainer, &diabetes(), "--device", "cpu"];
        let refused = run(words.iter().chain(&["--sample-weight", &weights]));
        let refused = refused.expect_code(1);
        assert!(
            refused.stderr.contains("finite, but is inf"),
            "{}",
            refused.stderr
        );
    }
}

#[cfg(unix)]
#[test]
fn a_folder_is_no_place_for_a_model_and_is_found_out_before_the_fit() {
    let folder = Folder::new();
    let path = folder.path("");
    let fit = run(["train", "linreg", "no-such-data", "-o", &path]).expect_code(1);
    assert!(fit.stderr.contains("cannot write"), "{}", fit.stderr);
}

#[cfg(unix)]
#[test]
fn a_model_can_be_read_by_those_whom_the_umask_lets() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let (plain, model) = (folder.file("plain", ""), folder.path("model"));
    train("linreg", &model, &[]).expect_code(0);
    let mode = |path: &str| fs::metadata(path).expect("there").permissions().mode();
    assert_eq!(mode(&model), mode(&plain));
}

#[test]
fn reproducible_models_are_the_same_file() {
    let folder = Folder::new();
    let [first, second] = ["first", "second"].map(|name| {
        train("ridge", &folder.path(name), &["--reproducible"]).expect_code(0);
        folder.read(name)
    });
    assert!(first == second);
}

#[test]
fn options_that_do_nothing_are_refused() {
    let data = diabetes();
    let cases: [&[&str]; 5] = [
        &["train", "glm", &data, "--power", "1.5"],
        &["cv", "glm", &data, "--power", "1.5"],
        &["train", "logreg", &data, "--l1-ratio", "0.5"],
        &[
            "train",
            "logreg",
            &data,
            "--penalty",
            "l1",
            "--l1-ratio",
            "0.5",
        ],
        &[
            "train",
            "ridge",
            &data,
            "--target",
            "y.npy",
            "--target-column",
            "y",
        ],
    ];
    for case in cases {
        let refused = run(case).expect_code(2);
        assert!(refused.stderr.contains("error:"), "{}", refused.stderr);
    }
}

#[test]
fn targets_of_a_regression_are_no_labels() {
    let folder = Folder::new();
    let data = folder.file("data.svm", "0.5 1:1\n1.25 1:2\n0.75 1:3\n2 1:4\n");
    for trainer in ["logreg", "svc"] {
        let refused = run(["train", trainer, &data, "--device", "cpu"]).expect_code(1);
        let words = "unknown label type: continuous";
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
}

#[test]
fn a_model_of_another_version_or_with_broken_numbers_is_refused() {
    let folder = Folder::new();
    let model = folder.path("model");
    train("linreg", &model, &[]).expect_code(0);
    let whole = folder.read("model");
    let version = format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION"));
    let at = whole
        .windows(version.len())
        .position(|bytes| bytes == version.as_bytes())
        .expect("a version");
    let mut later = whole.clone();
    later[at + 11] = b'9';
    let mut broken = whole.clone();
    let last = broken.len() - 16;
    broken[last..last + 8].copy_from_slice(&f64::NAN.to_le_bytes());
    for (bytes, words) in [(later, "found version 9"), (broken, "is NaN")] {
        let path = folder.file("other", bytes);
        let refused = run(["predict", &path, &diabetes(), "--device", "cpu"]).expect_code(1);
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
}

#[test]
fn one_row_has_no_r2_and_says_so() {
    let folder = Folder::new();
    let data = folder.file("one.svm", "3 1:2\n");
    let fit = run(["train", "ridge", &data, "--device", "cpu", "--json"]).expect_code(0);
    assert!(fit.json()["r2"].is_null(), "{}", fit.stdout);
    assert!(fit.stderr.contains("R² is not defined"), "{}", fit.stderr);
}

#[test]
fn cv_saves_the_best_fitted_to_all_rows() {
    let folder = Folder::new();
    let (best, alone) = (folder.path("best"), folder.path("alone"));
    let data = diabetes();
    let arguments = [
        "cv",
        "ridge",
        &data,
        "--device",
        "cpu",
        "--path",
        "0.01,1000",
        "-o",
        &best,
        "--json",
    ];
    let compared = run(arguments).expect_code(0).json();
    let alpha = compared["best"]["alpha"].to_string();
    train("ridge", &alone, &["--alpha", &alpha]).expect_code(0);
    let predict = |model: &str| {
        let arguments = ["predict", model, &data, "--device", "cpu", "--json"];
        numbers(&run(arguments).expect_code(0).json(), "predictions")
    };
    for (found, expected) in predict(&best).iter().zip(predict(&alone)) {
        assert!(
            (found - expected).abs() <= 1e-9 * expected.abs(),
            "{found} {expected}"
        );
    }
}

#[test]
fn cv_makes_its_own_path_and_compares_shares() {
    let data = diabetes();
    let cv = |arguments: &[&str]| {
        let fixed = ["--device", "cpu", "--folds", "3", "--json"];
        let all = ["cv", arguments[0], data.as_str()].into_iter();
        run(all.chain(arguments[1..].iter().copied()).chain(fixed))
    };
    let lasso = cv(&["lasso", "--path", "auto:10"]).expect_code(0).json();
    let path = lasso["path"].as_array().expect("a list");
    let alpha = |point: usize| number(&path[point], "alpha");
    assert_eq!(path.len(), 10);
    assert!((alpha(0) / alpha(9) - 1e3).abs() < 1e-6, "{lasso}");
    // The strongest leaves nothing but the mean of other rows.
    assert!(number(&path[0], "mean_score") < 0.05, "{lasso}");
    assert!(number(&lasso["best"], "mean_score") > 0.4, "{lasso}");
    let net = cv(&["elasticnet", "--path", "0.01,0.1", "--l1-ratios", "0.2,0.8"]);
    let net = net.expect_code(0).json();
    assert_eq!(net["path"].as_array().map(Vec::len), Some(4));
    assert_eq!(number(&net["path"][3], "l1_ratio"), 0.8);
    cv(&["ridge", "--l1-ratios", "0.5"]).expect_code(1);
    // The best ridge is within the path, not at one of its ends.
    let ridge = cv(&["linreg", "--path", "auto"]).expect_code(0).json();
    let best = number(&ridge["best"], "l2");
    assert!(best > number(&ridge["path"][19], "l2") && best < number(&ridge["path"][0], "l2"));
    assert!(number(&ridge["best"], "mean_score") > 0.4, "{ridge}");
}

#[test]
fn cv_compares_what_it_is_told_to_and_keeps_groups_together() {
    let folder = Folder::new();
    let rows: String = (0..12)
        .map(|i| format!("{} 1:{} 2:{}\n", i % 2, (i * 7) % 5, i % 2 * (i % 3)))
        .collect();
    let data = folder.file("rows.svm", &rows);
    let groups = folder.path("groups.npy");
    let numbers = ndarray::Array1::from_iter((0..12).map(|i| f64::from(i / 4)));
    ndarray_npy::write_npy(&groups, &numbers).expect("written");
    let cv = |arguments: &[&str]| {
        let all = ["cv", "logreg", &data, "--device", "cpu", "--json"].into_iter();
        run(all.chain(arguments.iter().copied()))
    };
    let by = [
        "--folds",
        "3",
        "--groups",
        &groups,
        "--scoring",
        "neg-log-loss",
    ];
    let found = cv(&by).expect_code(0).json();
    assert_eq!(found["scoring"], "neg-log-loss");
    for fold in found["path"][0]["folds"].as_array().expect("a list") {
        let confusion: Vec<Vec<f64>> =
            serde_json::from_value(fold["confusion"].clone()).expect("a table");
        assert_eq!(confusion.concat().iter().sum::<f64>(), 4.0);
    }
    assert!(number(&found["best"], "mean_score") < 0.0, "{found}");
    let wrong = cv(&["--scoring", "r2"]).expect_code(1);
    assert!(wrong.stderr.contains("--scoring r2"), "{}", wrong.stderr);
    let few = cv(&["--folds", "4", "--groups", &groups]).expect_code(1);
    assert!(few.stderr.contains("groups"), "{}", few.stderr);
}

#[test]
fn cv_has_no_best_where_no_score_is_defined() {
    let folder = Folder::new();
    let rows: String = (0..12)
        .map(|i| format!("{} 1:{} 2:{}\n", i * i, i, (i * 7) % 5))
        .collect();
    let (data, model) = (folder.file("rows.svm", &rows), folder.path("model"));
    let fixed = [
        "cv", "ridge", &data, "--device", "cpu", "--path", "1,10", "--folds", "12",
    ];
    let cv = |more: &[&str]| run(fixed.iter().chain(more));
    // There is no R² of one row.
    let found = cv(&["--json"]).expect_code(0);
    assert!(found.stderr.contains("not defined"), "{}", found.stderr);
    let found = found.json();
    assert!(found["best"].is_null() && found["path"][0]["mean_score"].is_null());
    let table = cv(&[]).expect_code(0).stdout;
    assert!(table.ends_with("best: none\n"), "{table}");
    assert!(table.contains(" 1 to 1"), "{table}");
    let refused = cv(&["-o", &model]).expect_code(1);
    assert!(refused.stderr.contains("--scoring"), "{}", refused.stderr);
    assert!(!std::path::Path::new(&model).exists());
    // An error of one row is a number.
    let scoring = ["--scoring", "neg-mean-absolute-error", "-o", &model];
    cv(&scoring).expect_code(0);
}

#[test]
fn a_fit_goes_on_from_a_model_and_threads_do_not_matter() {
    let folder = Folder::new();
    let (first, second) = (folder.path("first"), folder.path("second"));
    train("lasso", &first, &["--alpha", "0.1"]).expect_code(0);
    let again = [
        "--alpha",
        "0.1",
        "--start",
        &first,
        "--threads",
        "1",
        "--json",
    ];
    let warm = train("lasso", &second, &again).expect_code(0).json();
    assert_eq!(warm["n_iter"], 0, "{warm}");
    let narrow = folder.file("narrow.svm", "1 1:1\n2 1:2\n");
    let other = [
        "train", "lasso", &narrow, "--start", &first, "--device", "cpu",
    ];
    let refused = run(other).expect_code(1);
    assert!(
        refused.stderr.contains("expected a model of 1 features"),
        "{}",
        refused.stderr
    );
}

#[test]
fn options_that_a_format_has_no_use_for_are_refused_by_name() {
    let folder = Folder::new();
    let table = folder.file("t.csv", "a,b\n1,2\n2,3\n3,5\n");
    let text = diabetes();
    let cases: [(&str, &[&str]); 9] = [
        (&text, &["--hash", "16"]),
        (&text, &["--missing", "mean"]),
        (&text, &["--categorical", "1"]),
        (&text, &["--drop", "1"]),
        (&text, &["--delimiter", ";"]),
        (&text, &["--header", "yes"]),
        (&text, &["--target-column", "1"]),
        (&table, &["--index-base", "1", "--target-column", "b"]),
        (
            &table,
            &[
                "--index-base",
                "0",
                "--target-column",
                "b",
                "--missing",
                "mean",
            ],
        ),
    ];
    for (file, options) in cases {
        let fixed = ["train", "ridge", file, "--device", "cpu"];
        let refused = run(fixed.iter().chain(options)).expect_code(1);
        let words = format!("for which {} is meant", options[0]);
        assert!(refused.stderr.contains(&words), "{}", refused.stderr);
    }
}

#[test]
fn cv_shows_what_it_uses_and_no_more() {
    let help = run(["cv", "ridge", "--help"]).expect_code(0).stdout;
    for option in ["--validation", "--start", "--patience"] {
        assert!(!help.contains(option), "{option}");
        run(["cv", "ridge", &diabetes(), option, "1"]).expect_code(2);
    }
}

/// Rows of noise, in which every iteration learns more of the noise.
fn noise(seed: u32, rows: usize) -> String {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state >> 8) / f64::from(1_u32 << 24) - 0.5
    };
    let row = |_| {
        let pairs: String = (1..30).map(|at| format!(" {at}:{}", next())).collect();
        format!("{}{pairs}\n", i32::from(next() > 0.0))
    };
    (0..rows).map(row).collect()
}

#[test]
fn a_fit_without_progress_on_other_data_stops_early_with_its_best() {
    let folder = Folder::new();
    let (train, other) = (
        folder.file("train.svm", noise(1, 40)),
        folder.file("other.svm", noise(2, 40)),
    );
    for solver in ["lbfgs", "newton-cg", "newton-cholesky"] {
        let fixed = [
            "train",
            "logreg",
            &train,
            "--validation",
            &other,
            "--device",
            "cpu",
        ];
        let fit = |more: &[&str]| {
            let own = ["--c", "1e6", "--solver", solver, "--json"];
            let all = fixed.iter().chain(&own);
            run(all.chain(more)).expect_code(0)
        };
        let whole = fit(&[]).json();
        let early = fit(&["--patience", "1", "--strict"]);
        assert!(
            early.stderr.contains("the best coefficients are kept"),
            "{}",
            early.stderr
        );
        let early = early.json();
        assert_eq!(
            (&early["convergence"], &early["converged"]),
            (&"early_stopped".into(), &false.into())
        );
        assert!(
            number(&early, "n_iter") < number(&whole, "n_iter"),
            "{solver}"
        );
        let loss = |fit: &serde_json::Value| number(&fit["validation"], "log_loss");
        assert!(loss(&early) < loss(&whole), "{solver}");
        // The model is that of the best iteration of all.
        let history = early["history"].as_array().expect("a list");
        let figures = history
            .iter()
            .map(|iteration| number(iteration, "validation"));
        let best = figures.fold(f64::INFINITY, f64::min);
        assert!(
            (loss(&early) - best).abs() <= 1e-12 * best,
            "{solver}: {early}"
        );
    }
    run(["train", "logreg", &train, "--patience", "3"]).expect_code(2);
    let each = [
        "train",
        "svc",
        &folder.file("three.svm", "0 1:1\n1 1:2\n2 1:3\n"),
        "--patience",
        "3",
    ];
    let three = folder.path("three.svm");
    let refused = run(each
        .iter()
        .chain(&["--validation", &three, "--device", "cpu"]))
    .expect_code(1);
    assert!(
        refused.stderr.contains("one for each class"),
        "{}",
        refused.stderr
    );
}

#[cfg(unix)]
#[test]
fn a_model_may_lie_in_memory_and_follow_links_to_nowhere() {
    let shared = std::path::Path::new("/dev/shm");
    if shared.is_dir() {
        let folder = tempfile::tempdir_in(shared).expect("a folder");
        let path = folder.path().join("model").display().to_string();
        train("linreg", &path, &[]).expect_code(0);
        assert!(fs::metadata(&path).expect("there").len() > 100);
    }
    let folder = Folder::new();
    let link = folder.path("link");
    std::os::unix::fs::symlink("new", &link).expect("a link");
    train("linreg", &link, &[]).expect_code(0);
    assert!(folder.read("new").len() > 100);
}

#[test]
fn no_advice_is_to_do_what_was_done() {
    for (dtype, advised) in [("f64", false), ("f32", true)] {
        let data = diabetes();
        let fit = [
            "train",
            "kernel-ridge",
            &data,
            "--device",
            "cpu",
            "--solver",
            "conjugate-gradient",
            "--max-iter",
            "1",
            "--alpha",
            "1e-9",
            "--tol",
            "1e-12",
            "--dtype",
            dtype,
        ];
        let text = run(fit).expect_code(0).stderr;
        assert!(text.contains("NOT CONVERGED"), "{text}");
        assert_eq!(text.contains("--dtype f64"), advised, "{text}");
    }
}
