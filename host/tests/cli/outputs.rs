//! What comes out beside files: pipes, standard output, what is told meanwhile.

use std::fs;

use crate::program::{Folder, diabetes, run, train_to};

#[cfg(unix)]
#[test]
fn a_pipe_is_written_to_and_stays() {
    use std::os::unix::fs::FileTypeExt;
    let folder = Folder::new();
    let pipe = folder.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo").success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read(pipe).expect("read")
    });
    train_to(&pipe);
    let model = folder.file("model", reader.join().expect("a model"));
    assert!(
        fs::symlink_metadata(&pipe)
            .expect("there")
            .file_type()
            .is_fifo()
    );
    run(["predict", &model, &diabetes(), "--device", "cpu"]).expect_code(0);
}

#[test]
fn a_dash_is_standard_output() {
    let folder = Folder::new();
    let model = folder.path("model");
    train_to(&model);
    let data = diabetes();
    let plain = run(["predict", &model, &data, "--device", "cpu"]).expect_code(0);
    let dash = run(["predict", &model, &data, "--device", "cpu", "-o", "-"]).expect_code(0);
    assert_eq!(plain.stdout, dash.stdout);
    // Models are bytes: what comes through is read again.
    for words in [
        &["train", "kernel-ridge", &data][..],
        &["train", "ridge", &data],
    ] {
        let device = ["--device", "cpu", "-o", "-"];
        let bytes = std::process::Command::new(crate::program::path())
            .args(words.iter().chain(&device))
            .output()
            .expect("the program runs");
        assert!(bytes.status.success(), "{bytes:?}");
        let model = folder.file("through", &bytes.stdout);
        run(["predict", &model, &data, "--device", "cpu"]).expect_code(0);
    }
    let same = std::process::Command::new(crate::program::path())
        .args(["convert", &model, "-", "--to", "safetensors"])
        .output()
        .expect("the program runs");
    assert_eq!(same.stdout, folder.read("model"));
    assert!(!std::path::Path::new("-").exists());
}

/// What a terminal shows as a line with its seconds, the log of -vv has as an event.
#[test]
fn every_phase_tells_that_it_has_begun() {
    let folder = Folder::new();
    let (model, data) = (folder.path("model"), diabetes());
    let told = |words: &[&str]| {
        let fixed = ["--device", "cpu", "-vv", "--log-format", "json"];
        let text = run(words.iter().chain(&fixed)).expect_code(0).stderr;
        let events = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"));
        let begun = |event: serde_json::Value| {
            let what = event["what"].as_str().map(str::to_owned);
            let iteration = event.get("iteration").map(|_| "an iteration".to_owned());
            what.or(iteration)
        };
        let mut all: Vec<String> = events.filter_map(begun).collect();
        all.dedup();
        all
    };
    let page = folder.path("page.html");
    assert_eq!(
        told(&["train", "ridge", &data, "-o", &model, "--report", &page]),
        [
            "reading",
            "placing the data",
            "fitting",
            "an iteration",
            "scoring",
            "describing the fit"
        ]
    );
    assert_eq!(
        told(&["train", "kernel-ridge", &data]),
        ["reading", "fitting", "an iteration", "scoring"]
    );
    assert_eq!(
        told(&["predict", &model, &data]),
        ["reading", "predicting", "scoring"]
    );
    assert_eq!(told(&["evaluate", &model, &data]), ["reading", "scoring"]);
}
