//! Arguments that make no sense, help, and what a pipe may do.

use std::process::{Command, Stdio};

use crate::program::{self, diabetes, run};

/// A negative number is a value, which the option judges; what only a GPU can do is refused beside the CPU.
#[test]
fn options_say_what_is_wrong_with_their_values() {
    let data = diabetes();
    for (arguments, expected) in [
        (
            ["logreg", "--c", "-1"],
            "'-1' for '--c <C>': expected a number above 0",
        ),
        (["ridge", "--alpha", "-0.5"], "'-0.5' for '--alpha <ALPHA>'"),
        (
            ["ridge", "--threads", "0"],
            "'0' for '--threads <N>': expected a number of threads, 1 or more",
        ),
        (
            ["ridge", "--values", "bf16"],
            "--values does nothing with --device cpu",
        ),
        (
            ["lasso", "--model", "published"],
            "--model does nothing with --device cpu",
        ),
        (
            ["hits", "--values", "f32"],
            "--values does nothing with --device cpu",
        ),
    ] {
        let [trainer, option, value] = arguments;
        let run = run(["train", trainer, &data, "--device", "cpu", option, value]);
        let run = run.expect_code(2);
        assert!(
            run.stderr.contains(expected),
            "{arguments:?}: {}",
            run.stderr
        );
    }
}

/// A tip names an option that there is, or there is none.
#[test]
fn an_unknown_option_is_not_taken_for_a_value() {
    let data = diabetes();
    let unknown = run(["train", "ridge", &data, "--l1-ratio", "0.5"]).expect_code(2);
    let similar = run(["train", "ridge", &data, "--alpah", "0.5"]).expect_code(2);
    assert!(!unknown.stderr.contains("tip:"), "{}", unknown.stderr);
    assert!(similar.stderr.contains("'--alpha'"), "{}", similar.stderr);
}

#[test]
fn wrong_arguments_end_with_2() {
    let data = diabetes();
    for arguments in [
        &[][..],
        &["fly"],
        &["train"],
        &["train", "linreg"],
        &["train", "linreg", &data, "--l2", "-1"],
        &["train", "linreg", &data, "--l2=-1"],
        &["train", "linreg", &data, "--l2", "nan"],
        &["train", "linreg", &data, "--tol", "x"],
        &["train", "linreg", &data, "--max-iter", "0"],
        &["train", "linreg", &data, "--dtype", "f16"],
        &["train", "linreg", &data, "--device", "gpu"],
        &["train", "ridge", &data, "--alpha", "-1"],
        &["train", "pagerank", &data, "--dangling", "nowhere"],
        &["train", "svd", &data, "-k", "0"],
        &["train", "logreg", &data, "--c", "0"],
        &["train", "logreg", &data, "--penalty", "l3"],
        &["train", "logreg", &data, "--penalty", "elasticnet"],
        &["train", "logreg", &data, "--class-weight", "1"],
        &["train", "glm", &data, "--family", "tweedie"],
        &["train", "glm", &data, "--link", "square"],
        &["train", "elasticnet", &data, "--l1-ratio", "2"],
        &["cv", "ridge", &data, "--folds", "0"],
        &["predict", "model", &data, "--proba", "--decision"],
        &["predict", &data],
        &["plan"],
        &["plan", "--rows", "5", "--cols", "5"],
        &["plan", "--rows", "5", "--nnz", "5"],
        &[
            "plan", "--rows", "5", "--cols", "5", "--nnz", "5", "--dense",
        ],
        &["plan", &data, "--rows", "5", "--cols", "5", "--nnz", "5"],
        &["plan", &data, "--registers", "0"],
        &["plan", &data, "--gpu", "abacus"],
        &["emulate"],
        &["emulate", &data, "--self-check"],
        &["emulate", &data, "--seeds", "3"],
        &["emulate", "--self-check", "--seeds", "0"],
        &["completions", "cmd"],
    ] {
        let run = run(arguments).expect_code(2);
        assert!(
            run.stdout.is_empty() && !run.stderr.is_empty(),
            "{arguments:?}"
        );
    }
}

#[test]
fn help_has_examples_everywhere() {
    for command in [
        "train",
        "train linreg",
        "train ridge",
        "train lasso",
        "train elasticnet",
        "train logreg",
        "train glm",
        "train svc",
        "train svr",
        "train huber",
        "train quantile",
        "cv",
        "evaluate",
        "convert",
        "train hits",
        "train pagerank",
        "train svd",
        "predict",
        "plan",
        "emulate",
        "info",
        "synth",
        "synth sparse",
        "synth dense",
        "synth shape",
        "completions",
    ] {
        let help = run(command.split(' ').chain(["--help"])).expect_code(0);
        assert!(
            help.stdout.contains("Example"),
            "{command}: {}",
            help.stdout
        );
        assert_eq!(help.stderr, "");
    }
    assert!(
        run(["--version"])
            .expect_code(0)
            .stdout
            .starts_with("warpfuse ")
    );
}

#[test]
fn info_describes_this_machine() {
    let info = run(["info", "--json"]).expect_code(0).json();
    assert!(
        info["cpu"]["threads"]
            .as_u64()
            .is_some_and(|threads| threads > 0),
        "{info}"
    );
    let (missing, devices) = (
        &info["cuda"]["missing"],
        info["cuda"]["devices"].as_array().expect("a list"),
    );
    assert_eq!(missing.is_string(), devices.is_empty(), "{info}");
    let (missing, images) = (
        &info["kernels"]["missing"],
        info["kernels"]["images"].as_array().expect("a list"),
    );
    assert_eq!(missing.is_string(), images.is_empty(), "{info}");
    assert!(
        images
            .iter()
            .all(|image| image["kernels"].as_u64() > Some(0)),
        "{info}"
    );
    assert!(run(["info"]).expect_code(0).stdout.contains("cpu"));
}

#[test]
fn completions_are_scripts() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            run(["completions", shell])
                .expect_code(0)
                .stdout
                .contains("linreg"),
            "{shell}"
        );
    }
}

#[test]
fn logs_go_to_stderr() {
    let run = run([
        "train",
        "linreg",
        &diabetes(),
        "--device",
        "cpu",
        "--solver",
        "conjugate-gradient",
        "--json",
        "-vv",
    ])
    .expect_code(0);
    run.json();
    assert!(
        run.stderr.contains("data read") && run.stderr.contains("iteration=2"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = Command::new(program::path())
        .args(["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}
