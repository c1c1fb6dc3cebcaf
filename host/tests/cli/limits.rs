//! What the operating system limits: size of files, memory.
#![cfg(unix)]

use std::fs;
use std::process::{Command, Output, Stdio};

use crate::program::{self, Folder, diabetes};

/// Runs the program below `ulimit LIMIT`.
fn limited(limit: &str, arguments: &[&str]) -> Output {
    let script = format!("ulimit {limit} && exec \"$0\" \"$@\"");
    Command::new("sh")
        .args(["-c", &script])
        .arg(program::path())
        .args(arguments)
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .output()
        .expect("a shell")
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_full_disk_leaves_what_was_there_and_nothing_half_written() {
    let folder = Folder::new();
    let (old, link) = (folder.file("old", "what was there"), folder.path("link"));
    std::os::unix::fs::symlink("nowhere", &link).expect("a link");
    let data = diabetes();
    for place in [&old, &link, &folder.path("new")] {
        // No byte may be written to a file.
        let fit = limited(
            "-f 0",
            &["train", "ridge", &data, "--device", "cpu", "-o", place],
        );
        assert_eq!(fit.status.code(), Some(1), "{fit:?}");
        assert!(told(&fit).contains("File too large"), "{}", told(&fit));
    }
    let mut left: Vec<_> = fs::read_dir(folder.path(""))
        .expect("there")
        .flatten()
        .map(|file| file.file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["link", "old"]);
    assert_eq!(folder.read("old"), b"what was there");
}

/// Predictions and data that are made are written as models are.
#[test]
fn no_file_is_left_half_written_by_a_full_disk() {
    let folder = Folder::new();
    let (model, data) = (folder.path("model"), diabetes());
    program::train_to(&model);
    let old = |name: &str| folder.file(name, "what was there");
    let predict = ["predict", &model, &data, "--device", "cpu", "-o"];
    let sparse = "synth sparse --rows 5000 --cols 20 --nnz-per-row 3 -o";
    let sparse: Vec<&str> = sparse.split(' ').collect();
    let dense: Vec<&str> = "synth dense --rows 5000 --cols 20 -o".split(' ').collect();
    let cases = [
        (&predict[..], old("p.npy")),
        (&predict, old("p.txt")),
        (&sparse, old("d.svm")),
        (&sparse, old("d.mtx")),
        (&sparse, old("d.wfc")),
        (&dense, old("d.npy")),
    ];
    let files = || fs::read_dir(folder.path("")).expect("there").count();
    let before = files();
    for (words, place) in cases {
        let words: Vec<&str> = words.iter().copied().chain([&place[..]]).collect();
        // A block of 512 bytes may be written.
        let ended = limited("-f 1", &words);
        assert_eq!(ended.status.code(), Some(1), "{words:?} {ended:?}");
        assert!(told(&ended).contains("File too large"), "{}", told(&ended));
        assert_eq!(fs::read(&place).expect("there"), b"what was there");
        assert_eq!(files(), before, "{words:?}");
    }
}

/// Whatever is written: the place of a link or a device is never taken by a file.
#[test]
fn links_and_devices_stay_whatever_is_written() {
    let folder = Folder::new();
    let (model, data) = (folder.path("model"), diabetes());
    program::train_to(&model);
    for name in ["p.npy", "p.txt", "d.svm", "d.mtx", "d.wfc", "d.npy"] {
        let (link, target) = (folder.path(name), folder.path(&format!("target of {name}")));
        std::os::unix::fs::symlink(&target, &link).expect("a link");
        let place = ["-o", &link];
        let words: &[&str] = match name {
            "p.npy" | "p.txt" => &["predict", &model, &data, "--device", "cpu"],
            "d.npy" => &["synth", "dense", "--rows", "20", "--cols", "3"],
            _ => &[
                "synth",
                "sparse",
                "--rows",
                "20",
                "--cols",
                "3",
                "--nnz-per-row",
                "2",
            ],
        };
        program::run(words.iter().chain(&place)).expect_code(0);
        assert!(
            fs::symlink_metadata(&link).expect("there").is_symlink(),
            "{name}"
        );
        assert!(!fs::read(&target).expect("written through").is_empty());
    }
}

#[test]
fn memory_that_is_refused_is_an_error_with_need_and_limit() {
    let folder = Folder::new();
    // Foreseen: vectors over that number of columns.
    let wide = folder.file("wide.svm", "1 1:1 500000000:1\n2 1:2\n3 2:1\n");
    let read = limited("-v 2000000", &["train", "ridge", &wide, "--device", "cpu"]);
    assert_eq!(read.status.code(), Some(1), "{read:?}");
    let text = told(&read);
    let need = "found a need for 8000000000 bytes (vectors over 500000000 columns)";
    assert!(
        text.contains("expected data that fit") && text.contains(need),
        "{text}"
    );
    // Met where it is: a kernel of all pairs of rows.
    let rows: String = (0..20_000)
        .map(|row| format!("{} 1:{row}\n", row % 7))
        .collect();
    let tall = folder.file("tall.svm", rows);
    for (dtype, halves) in [("f64", true), ("f32", false)] {
        let words = [
            "train",
            "kernel-ridge",
            &tall,
            "--solver",
            "cholesky",
            "--device",
            "cpu",
            "--dtype",
            dtype,
        ];
        let fit = limited("-v 1000000", &words);
        let text = told(&fit);
        assert_eq!(fit.status.code(), Some(1), "{fit:?}");
        let words = "error: out of memory: expected 3200000000 bytes more, found none; the limit of this process is 1024000000";
        assert!(text.contains(words), "{text}");
        assert!(!text.contains("--device cpu"), "{text}");
        assert_eq!(text.contains("--dtype f32"), halves, "{text}");
    }
}

/// Whatever block is refused, and whoever requested it: the program ends with 0 or with 1 and says why. A library that
/// factors the kernel asks for a block itself, and panics.
#[cfg(target_os = "linux")]
#[test]
fn any_block_may_be_refused() {
    let folder = Folder::new();
    let rows: String = (0..1200)
        .map(|row| format!("{} 1:{row}\n", row % 7))
        .collect();
    let data = folder.file("some.svm", rows);
    let with = |megabytes: usize, words: &[&str]| {
        let rest = ["--device", "cpu", "--threads", "1"];
        let words: Vec<&str> = words.iter().chain(&rest).copied().collect();
        limited(&format!("-v {}", megabytes << 10), &words)
    };
    // What the program takes without a kernel.
    let fits = |megabytes: &usize| {
        with(*megabytes, &["train", "ridge", &data])
            .status
            .success()
    };
    let least = (40..1000)
        .step_by(10)
        .find(fits)
        .expect("a limit that is enough");
    let kernel = ["train", "kernel-ridge", &data, "--solver", "cholesky"];
    let mut refused = 0;
    for megabytes in (least..).step_by(4) {
        let fit = with(megabytes, &kernel);
        if fit.status.success() {
            break;
        }
        let text = told(&fit);
        assert_eq!(fit.status.code(), Some(1), "{megabytes} MB: {text}");
        assert!(text.contains("out of memory: expected"), "{text}");
        refused += 1;
    }
    assert!(refused > 0, "the kernel and its factor take 23 MB");
}

/// Memory for a few threads less, or for none: an error that says so, not a panic.
#[cfg(target_os = "linux")]
#[test]
fn a_limit_below_what_threads_take_is_an_error() {
    let data = diabetes();
    let with =
        |megabytes: usize, words: &[&str]| limited(&format!("-v {}", megabytes << 10), words);
    // Below some limit the system does not start the program.
    let starts = |megabytes: &usize| with(*megabytes, &["--version"]).status.success();
    let least = (4..1000).step_by(2).find(starts).expect("a limit");
    let mut without_threads = 0;
    for megabytes in (least..1000).step_by(2) {
        let words = ["train", "ridge", &data, "--device", "cpu", "--threads", "8"];
        let fit = with(megabytes, &words);
        if fit.status.success() {
            break;
        }
        let text = told(&fit);
        assert_eq!(fit.status.code(), Some(1), "{megabytes} MB: {fit:?}");
        assert!(!text.contains("panicked"), "{text}");
        without_threads += u32::from(text.contains("expected threads to compute with"));
    }
    assert!(without_threads > 0, "eight threads take 16 MB");
}

/// What stands before numbers of eight bytes in an npy file: 128 bytes.
fn header(shape: &str, by_columns: bool) -> Vec<u8> {
    let order = if by_columns { "True" } else { "False" };
    let text = format!("{{'descr': '<f8', 'fortran_order': {order}, 'shape': {shape}, }}");
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(format!("{text:<117}\n").bytes());
    bytes
}

/// 40,000 x 200 numbers of eight bytes, 64 MB, row by row or column by column.
fn array(by_columns: bool) -> Vec<u8> {
    const SHAPE: (usize, usize) = (40_000, 200);
    let mut bytes = header(&format!("{SHAPE:?}"), by_columns);
    let (long, short) = if by_columns {
        (SHAPE.1, SHAPE.0)
    } else {
        SHAPE
    };
    for a in 0..long {
        for b in 0..short {
            let (i, j) = if by_columns { (b, a) } else { (a, b) };
            bytes.extend((((i * 7919 + j * 104_729) % 1009) as f64).to_le_bytes());
        }
    }
    bytes
}

/// A fit has room for X and half of X besides: whatever the order of its elements, X is in memory once.
#[cfg(target_os = "linux")]
#[test]
fn an_array_is_in_memory_once() {
    let folder = Folder::new();
    let mut targets = header("(40000,)", false);
    targets.extend((0..40_000).flat_map(|i| f64::from(i % 11).to_le_bytes()));
    let targets = folder.file("y.npy", targets);
    let mut scores = Vec::new();
    for by_columns in [false, true] {
        let data = folder.file("x.npy", array(by_columns));
        let words = [
            "train",
            "ridge",
            &data,
            "--target",
            &targets,
            "--solver",
            "conjugate-gradient",
            "--max-iter",
            "2",
            "--device",
            "cpu",
            "--threads",
            "2",
            "--json",
        ];
        // Kilobytes of memory that is written to and no file's.
        let fit = limited("-d 94000", &words);
        assert_eq!(fit.status.code(), Some(0), "{}", told(&fit));
        let found: serde_json::Value = serde_json::from_slice(&fit.stdout).expect("JSON");
        scores.push(found["r2"].as_f64().expect("a score"));
        let less = limited("-d 60000", &words);
        assert_eq!(less.status.code(), Some(1), "the limit counts");
    }
    assert_eq!(scores[0], scores[1], "one fit, whatever the order");
}
