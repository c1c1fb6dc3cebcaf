//! `train --checkpoint`: fits that end early and go on.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::program::{self, Folder, Run, diabetes, run};

/// Rows with a thousand columns, so that a checkpoint is larger than a model.
fn wide() -> String {
    let mut text = String::new();
    for row in 0..300_usize {
        text += &((row * row + row / 7) % 2).to_string();
        for entry in 0..10 {
            let column = 1 + entry * 100 + (row * (entry + 3) + entry * entry) % 100;
            text += &format!(" {column}:{}", ((row + 5 * entry) % 11) as f64 / 5.0 - 1.0);
        }
        text.push('\n');
    }
    text
}

/// The arguments of a fit of some hundred products with X, after each of which there is a checkpoint.
fn fit<'a>(data: &'a str, model: &'a str, checkpoint: &'a str) -> Vec<&'a str> {
    [
        &alone(data, model)[..],
        &["--checkpoint", checkpoint, "--every", "0s"],
    ]
    .concat()
}

fn alone<'a>(data: &'a str, model: &'a str) -> Vec<&'a str> {
    let fixed = "--device cpu --solver newton-cg --reproducible --tol 1e-12 --c 1e6";
    let own = ["train", "logreg", data, "-o", model];
    own.into_iter().chain(fixed.split(' ')).collect()
}

/// The model of a fit that nobody ends.
fn undisturbed(data: &str, folder: &Folder) -> Vec<u8> {
    run(alone(data, &folder.path("alone"))).expect_code(0);
    folder.read("alone")
}

/// Kills a fit after this many checkpoints that its log tells of; whether it was still there.
fn kill_after(checkpoints: usize, arguments: &[&str]) -> bool {
    let mut child = Command::new(program::path())
        .args(arguments)
        .arg("-v")
        .env_remove("WARPFUSE_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let log = BufReader::new(child.stderr.take().expect("stderr is piped"));
    let lines = log.lines().map(|line| line.expect("the log is text"));
    let written = lines
        .filter(|line| line.contains("written"))
        .take(checkpoints);
    let is_there = written.count() == checkpoints;
    let _ = child.kill();
    child.wait().expect("it ends");
    is_there
}

#[test]
fn a_killed_fit_goes_on_and_ends_with_the_model_of_another() {
    let folder = Folder::new();
    let data = folder.file("data.svm", wide());
    let expected = undisturbed(&data, &folder);
    let (model, checkpoint) = (folder.path("model"), folder.path("checkpoint"));
    let arguments = fit(&data, &model, &checkpoint);
    for kill in 0..6 {
        assert!(
            kill_after(1 + kill, &arguments),
            "it ended before kill {kill}"
        );
        assert!(!Path::new(&model).exists());
        assert!(Path::new(&checkpoint).exists());
    }
    let last = run(&arguments).expect_code(0);
    assert!(
        last.stderr.contains("goes on from checkpoint"),
        "{}",
        last.stderr
    );
    assert_eq!(folder.read("model"), expected);
    assert!(!Path::new(&checkpoint).exists(), "it is of no more use");
}

/// With files of no more than 16 KiB.
fn run_in_little_room(arguments: &[&str]) -> Run {
    let output = Command::new("bash")
        .args(["-c", "trap '' XFSZ; ulimit -f 16; exec \"$@\"", "bash"])
        .arg(program::path())
        .args(arguments)
        .output()
        .expect("bash is there");
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    Run {
        code: output.status.code().expect("no signal"),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

#[test]
fn a_full_disk_ends_no_fit_and_leaves_the_checkpoint_before() {
    let folder = Folder::new();
    let data = folder.file("data.svm", wide());
    let expected = undisturbed(&data, &folder);
    let (model, checkpoint) = (folder.path("model"), folder.path("checkpoint"));
    let arguments = fit(&data, &model, &checkpoint);
    assert!(kill_after(20, &arguments));
    let before = fs::read(&checkpoint).expect("there");
    assert!(before.len() > 16 << 10 && expected.len() < 16 << 10);
    let found = run_in_little_room(&arguments);
    // A warning for all of them.
    let warnings = found.stderr.matches("the fit goes on").count();
    assert_eq!(warnings, 1, "{}", found.stderr);
    assert!(
        found.stderr.contains("cannot write the checkpoint"),
        "{}",
        found.stderr
    );
    assert_eq!((found.code, folder.read("model")), (0, expected));
}

#[test]
fn checkpoints_of_other_fits_and_no_checkpoints_are_refused() {
    let folder = Folder::new();
    let data = folder.file("data.svm", wide());
    let (model, checkpoint) = (folder.path("model"), folder.path("checkpoint"));
    let arguments = fit(&data, &model, &checkpoint);
    assert!(kill_after(3, &arguments));
    let before = fs::read(&checkpoint).expect("there");
    let with_another = |argument: &&str| match *argument {
        "1e6" => "2".to_owned(),
        same => same.to_owned(),
    };
    let other = run(arguments.iter().map(with_another)).expect_code(1);
    for said in [
        "is of another fit: expected c 2.0, found 1000000.0",
        "delete this one",
    ] {
        assert!(other.stderr.contains(said), "{said}: {}", other.stderr);
    }
    let diabetes = diabetes();
    let other = run(fit(&diabetes, &model, &checkpoint)).expect_code(1);
    assert!(
        other.stderr.contains("is of another fit"),
        "{}",
        other.stderr
    );
    assert_eq!(fs::read(&checkpoint).expect("there"), before);
    let text = folder.file("text", "no checkpoint\n");
    let other = run(fit(&data, &model, &text)).expect_code(1);
    assert!(
        other.stderr.contains("is not a whole checkpoint"),
        "{}",
        other.stderr
    );
    run(["train", "ridge", &diabetes, "-o", &model]).expect_code(0);
    let other = run(fit(&data, &folder.path("other"), &model)).expect_code(1);
    let said = "expected format warpfuse-checkpoint, found warpfuse-model";
    assert!(other.stderr.contains(said), "{}", other.stderr);
    let nowhere = folder.path("missing/checkpoint");
    let other = run(fit(&data, &model, &nowhere)).expect_code(1);
    assert!(
        other.stderr.contains("cannot write the checkpoint"),
        "{}",
        other.stderr
    );
    run(["train", "ridge", &data, "--every", "5m"]).expect_code(2);
    let wrong = ["--checkpoint", &checkpoint, "--every", "soon"];
    let wrong = run(["train", "ridge", &data].iter().chain(&wrong)).expect_code(2);
    assert!(
        wrong.stderr.contains("expected a time such as"),
        "{}",
        wrong.stderr
    );
}

/// What commands without a model of their own found goes on too: singular vectors, sums over kernels, a comparison.
#[test]
fn killed_commands_go_on_and_end_with_the_result_of_others() {
    let folder = Folder::new();
    let (wide, diabetes) = (folder.file("data.svm", wide()), diabetes());
    for (command, data, result) in [
        ("train svd DATA -k 3 --tol 1e-13", &wide, "singular_values"),
        (
            "train kernel-ridge DATA --solver conjugate-gradient --rank 0",
            &diabetes,
            "dual_coef",
        ),
        (
            "cv logreg DATA --path 0.1,1,10 --reproducible",
            &wide,
            "path",
        ),
    ] {
        let arguments: Vec<&str> = command
            .split(' ')
            .map(|word| if word == "DATA" { data } else { word })
            .chain(["--device", "cpu", "--json"])
            .collect();
        let expected = run(&arguments).expect_code(0).json();
        assert!(!expected[result].is_null(), "{command}: {expected}");
        let checkpoint = folder.path("checkpoint");
        let with = [
            &arguments[..],
            &["--checkpoint", &checkpoint, "--every", "0s"],
        ]
        .concat();
        for kill in 0..2 {
            assert!(
                kill_after(1 + kill, &with),
                "{command}: it ended before kill {kill}"
            );
        }
        let last = run(&with).expect_code(0);
        let goes_on = last.stderr.contains("goes on from checkpoint");
        assert!(goes_on, "{command}: {}", last.stderr);
        assert_eq!(last.json()[result], expected[result], "{command}");
        assert!(!Path::new(&checkpoint).exists(), "{command}");
    }
}
