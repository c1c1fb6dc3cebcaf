//! Files that are wrong: an error with its place, exit code 1, no panic.

use crate::program::{Folder, run};

/// Name, content, and what stands in the message after the file's name.
type Case = (&'static str, &'static [u8], &'static str);

const TEXT: &[Case] = &[
    ("empty.svm", b"", ":1:1: "),
    (
        "letters.svm",
        b"1 1:2\n1 1:abc\n",
        ":2:5: expected a number after the colon, found `abc`",
    ),
    ("letters_crlf.svm", b"1 1:2\r\n1 1:1 2:x\r\n", ":2:9: "),
    ("letters_no_newline.svm", b"1 1:2\nspam", ":2:1: "),
    ("truncated.svm", b"1 1:2\n1 1:2 3:", ":2:9: "),
    ("large_index.svm", b"1 1:1 4294967295:1\n", ":1:7: "),
    (
        "huge_index.svm",
        b"1 1:1\n1 99999999999999999999:1\n",
        ":2:3: ",
    ),
    ("negative_index.svm", b"1 -3:1\n", ":1:3: "),
    (
        "binary.svm",
        b"\x7fELF\x02\x01\x01\xff\xfe\0\0\0\0",
        ":1:1: ",
    ),
    ("empty.mtx", b"", ":1:1: "),
    (
        "header_only.mtx",
        b"%%MatrixMarket matrix coordinate real general\n",
        ":2:1: ",
    ),
    (
        "truncated.mtx",
        b"%%MatrixMarket matrix coordinate real general\n3 3 3\n1 1 1\n2 2",
        ":4:4: ",
    ),
    (
        "missing.mtx",
        b"%%MatrixMarket matrix coordinate real general\n3 3 3\n1 1 1\n",
        ":4:1: ",
    ),
    (
        "huge_counts.mtx",
        b"%%MatrixMarket matrix coordinate real general\n3 3 9999999999999999\n1 1 1\n",
        ":4:1: ",
    ),
    (
        "huge_rows.mtx",
        b"%%MatrixMarket matrix coordinate real general\n4000000000 3 1\n1 1 1\n",
        ":2:1: ",
    ),
    (
        "huge_array.mtx",
        b"%%MatrixMarket matrix array real general\n9999999 4294967295\n1\n",
        ":4:1: ",
    ),
    (
        "row.mtx",
        b"%%MatrixMarket matrix coordinate real general\n3 3 1\n4 1 1\n",
        ":3:1: ",
    ),
    (
        "column_crlf.mtx",
        b"%%MatrixMarket matrix coordinate real general\r\n3 3 1\r\n1 4 1\r\n",
        ":3:3: ",
    ),
    (
        "letters.mtx",
        b"%%MatrixMarket matrix coordinate real general\n3 3 1\n1 1 one\n",
        ":3:5: ",
    ),
];

const BINARY: &[Case] = &[
    ("header_only.npy", b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', ", ": byte "),
    ("huge_counts.npy", b"\x93NUMPY\x01\x00\x4c\x00{'descr': '<f8', 'fortran_order': False, 'shape': (999999999, 999999999), } \n", ": byte "),
    ("truncated.wfc", b"WARPFUSE", ": byte "),
];

fn check(folder: &Folder, (name, content, place): &Case) {
    let path = folder.file(name, content);
    for command in [
        &["train", "linreg", &path, "--device", "cpu"][..],
        &["plan", &path, "--gpu", "h200"],
    ] {
        let run = run(command).expect_code(1);
        let expected = format!("error: {path}{place}");
        assert!(
            run.stderr.starts_with(&expected),
            "expected {expected}…, found {}",
            run.stderr
        );
        assert_eq!(run.stdout, "");
    }
}

#[test]
fn bad_text_is_reported_with_line_and_column() {
    let folder = Folder::new();
    TEXT.iter().for_each(|case| check(&folder, case));
}

#[test]
fn bad_binary_files_are_reported_with_the_byte() {
    let folder = Folder::new();
    BINARY.iter().for_each(|case| check(&folder, case));
}

#[test]
fn other_line_ends_and_a_missing_last_one_are_fine() {
    let folder = Folder::new();
    let mut results = Vec::new();
    for (name, content) in [
        ("lf.svm", "1 1:0\n3 1:1\n5 1:2\n"),
        ("crlf.svm", "1 1:0\r\n3 1:1\r\n5 1:2\r\n"),
        ("none.svm", "1 1:0\n3 1:1\n5 1:2"),
    ] {
        let path = folder.file(name, content);
        let fit = run(["train", "linreg", &path, "--device", "cpu", "--json"])
            .expect_code(0)
            .json();
        results.push(fit["coef"].clone());
    }
    assert!(
        results.windows(2).all(|pair| pair[0] == pair[1]),
        "{results:?}"
    );
}

#[test]
fn a_file_that_is_not_there_is_named_with_what_to_do() {
    let run = run(["train", "linreg", "no-such-file.svm"]).expect_code(1);
    assert_eq!(
        run.stderr,
        "error: cannot read no-such-file.svm\n  because: No such file or directory (os error 2)\n  \
         try: check the path; `-` reads standard input\n"
    );
}

#[test]
fn a_folder_is_not_a_file() {
    let folder = Folder::new();
    let run = run(["train", "linreg", &folder.path("")]).expect_code(1);
    assert!(run.stderr.contains("directory"), "{}", run.stderr);
}
