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

#[test]
fn memory_that_is_refused_is_an_error_with_need_and_limit() {
    let folder = Folder::new();
    let limit = "-v 2000000";
    // Foreseen: the header of the file says how much it takes.
    let rows = folder.file(
        "rows.mtx",
        "%%MatrixMarket matrix coordinate real general\n1000000000 3 1\n1 1 1\n",
    );
    let read = limited(limit, &["train", "svd", &rows, "--device", "cpu"]);
    assert_eq!(read.status.code(), Some(1), "{read:?}");
    assert!(
        told(&read).contains("found a need for 8000000"),
        "{}",
        told(&read)
    );
    // Met where it is: coefficients of so many columns.
    let table = folder.file("table.csv", "city,y\nUlm,1\nBonn,2\nUlm,3\n");
    for (dtype, halves) in [("f64", true), ("f32", false)] {
        let hashed = [
            "train",
            "ridge",
            &table,
            "--target-column",
            "y",
            "--hash",
            "2^29",
            "--device",
            "cpu",
            "--dtype",
            dtype,
        ];
        let fit = limited(limit, &hashed);
        let text = told(&fit);
        assert_eq!(fit.status.code(), Some(1), "{fit:?}");
        assert!(
            text.contains("bytes") && (text.contains("2048000000") || text.contains("need")),
            "{text}"
        );
        assert!(!text.contains("--device cpu"), "{text}");
        assert_eq!(text.contains("--dtype f32"), halves, "{text}");
    }
}
