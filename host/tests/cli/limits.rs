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
