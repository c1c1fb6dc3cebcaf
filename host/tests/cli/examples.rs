//! The examples of every help are commands that run.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};

use ndarray::{Array1, Array2};

use crate::program::{self, Folder, run};

/// Models that examples name.
const MODELS: [&str; 3] = ["model.safetensors", "other.safetensors", "liblinear.model"];
/// Rows of all data.
const ROWS: usize = 60;

/// All commands, each with its parents before it.
fn commands() -> Vec<Vec<String>> {
    let (mut all, mut open) = (Vec::new(), vec![Vec::<String>::new()]);
    while let Some(command) = open.pop() {
        let help = help_of(&command);
        let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
        for line in listed.take_while(|line| !line.is_empty()) {
            let name = line.split_whitespace().next().expect("a name");
            if line.starts_with("  ") && !line.starts_with("   ") && name != "help" {
                open.push(command.iter().cloned().chain([name.to_owned()]).collect());
            }
        }
        all.push(command);
    }
    all
}

fn help_of(command: &[String]) -> String {
    let words = command.iter().map(String::as_str).chain(["--help"]);
    run(words).expect_code(0).stdout
}

/// The examples of a help; lines that were broken are put together.
fn examples(help: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let lines = help.lines().skip_while(|line| !line.starts_with("Example"));
    for line in lines.skip(1).take_while(|line| !line.is_empty()) {
        if line.contains("warpfuse") {
            all.push(line.trim().to_owned());
        } else if let Some(last) = all.last_mut() {
            last.push(' ');
            last.push_str(line.trim());
        }
    }
    all
}

/// A row's features: small whole numbers, of which some are 0.
fn features(row: usize) -> [usize; 4] {
    [row % 5, row * 7 % 3, row * 3 % 4, row % 2]
}

fn libsvm(target: impl Fn(usize) -> String) -> String {
    let line = |row: usize| {
        let pairs = features(row).into_iter().enumerate();
        let pairs: String = pairs
            .map(|(at, value)| format!(" {}:{value}", at + 1))
            .collect();
        format!("{}{pairs}\n", target(row))
    };
    (0..ROWS).map(line).collect()
}

/// Writes all files that examples name.
fn write_files(folder: &Folder) {
    let label = |row: usize| {
        if row * 7 % 11 < 5 {
            "1".to_owned()
        } else {
            "-1".to_owned()
        }
    };
    for name in [
        "data", "new", "test", "train", "large", "clicks", "labelled",
    ] {
        folder.file(&format!("{name}.svm"), libsvm(label));
    }
    let count = |row: usize| (1 + row * 7 % 5).to_string();
    for name in ["counts", "claims", "costs", "times"] {
        folder.file(&format!("{name}.svm"), libsvm(count));
    }
    folder.file(
        "labels.txt",
        (0..ROWS).map(|row| label(row) + "\n").collect::<String>(),
    );
    let row = |row: usize| features(row).map(|value| value.to_string()).join(",");
    let known = |name: &str| -> String {
        let rows = (0..ROWS).map(|at| format!("{},{}\n", row(at), count(at)));
        format!("a,b,c,d,{name}\n") + &rows.collect::<String>()
    };
    folder.file("data.csv", known("y"));
    folder.file("homes.csv", known("price"));
    let rows = (0..ROWS).map(|at| row(at) + "\n");
    folder.file(
        "new.csv",
        "a,b,c,d\n".to_owned() + &rows.collect::<String>(),
    );
    let edges: String = (1..=ROWS)
        .map(|node| format!("{node} {} 1\n", 1 + node * 7 % ROWS))
        .collect();
    let banner = "%%MatrixMarket matrix coordinate real general\n";
    folder.file(
        "links.mtx",
        format!("{banner}{ROWS} {ROWS} {ROWS}\n{edges}"),
    );
    // Nothing was tuned: no GPU may be there.
    folder.file("tuning.jsonl", "");
    let x = Array2::from_shape_fn((ROWS, 4), |(row, column)| features(row)[column] as f64);
    ndarray_npy::write_npy(folder.path("x.npy"), &x).expect("written");
    for name in ["y", "years", "patients", "topic"] {
        let numbers = Array1::from_iter((0..ROWS).map(|row| 1.0 + (row * 7 % 5) as f64));
        ndarray_npy::write_npy(folder.path(&format!("{name}.npy")), &numbers).expect("written");
    }
}

/// Trains the models that examples name.
fn write_models(folder: &Folder) {
    for model in ["model", "other"] {
        let path = folder.path(&format!("{model}.safetensors"));
        let fit = [
            "train",
            "logreg",
            &folder.path("data.svm"),
            "--device",
            "cpu",
            "-o",
            &path,
        ];
        run(fit).expect_code(0);
    }
    let (model, text) = (
        folder.path("model.safetensors"),
        folder.path("liblinear.model"),
    );
    run(["convert", &model, &text, "--to", "liblinear"]).expect_code(0);
    fs::create_dir_all(folder.path(".local/share/bash-completion/completions")).expect("a folder");
}

/// Programs that examples call: this one, and what takes its JSON.
fn write_programs(folder: &Folder) {
    fs::create_dir(folder.path("bin")).expect("a folder");
    symlink(program::path(), folder.path("bin/warpfuse")).expect("a link");
    let jq = folder.file("bin/jq", "#!/bin/sh\n[ -n \"$(cat)\" ]\n");
    fs::set_permissions(jq, fs::Permissions::from_mode(0o755)).expect("a mode");
}

/// An example as this machine can run it: smaller, on the CPU.
fn adapted(example: &str) -> String {
    let smaller = [
        ("cuda:0", "cpu"),
        ("--rows 100000", "--rows 1000"),
        ("--scale 0.1", "--scale 0.001"),
        ("--scale 0.01", "--scale 0.0001"),
        ("--seeds 100", "--seeds 1"),
        ("-k 50", "-k 2"),
        ("-k 10", "-k 2"),
        ("zcat data.svm.gz", "cat data.svm"),
    ];
    smaller.iter().fold(example.to_owned(), |text, (from, to)| {
        text.replace(from, to)
    })
}

#[test]
fn examples_of_every_help_run() {
    let folder = Folder::new();
    write_files(&folder);
    write_models(&folder);
    write_programs(&folder);
    let models = MODELS.map(|name| (name, folder.read(name)));
    let path = format!(
        "{}:{}",
        folder.path("bin"),
        std::env::var("PATH").unwrap_or_default()
    );
    let mut seen = std::collections::BTreeSet::new();
    for command in commands() {
        let found = examples(&help_of(&command));
        assert!(!found.is_empty(), "{command:?} has no examples");
        // Examples before may have written files of the same names.
        write_files(&folder);
        for (name, model) in &models {
            folder.file(name, model);
        }
        for example in found
            .into_iter()
            .filter(|example| seen.insert(example.clone()))
        {
            let mut shell = Command::new("sh");
            shell
                .args(["-c", &adapted(&example)])
                .current_dir(folder.path(""))
                .stdin(Stdio::null());
            shell
                .env("PATH", &path)
                .env("HOME", folder.path(""))
                .env("XDG_CACHE_HOME", folder.path("cache"));
            let output = shell.output().expect("a shell");
            let told = String::from_utf8_lossy(&output.stderr);
            // Not converged with --strict is an end that an example may show; a GPU is not always there.
            let needs_gpu = ["calibrate", "tune ", "--measure", "cuda"]
                .iter()
                .any(|word| example.contains(word));
            let is_fine =
                matches!(output.status.code(), Some(0 | 3)) || (needs_gpu && told.contains("CUDA"));
            assert!(is_fine, "{example}\n{told}");
        }
    }
    assert!(seen.len() > 50, "{}", seen.len());
}
