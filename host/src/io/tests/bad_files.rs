//! The corpus of bad files: each gives an error with its place, never a panic.

use super::super::{Columns, IndexBase, ReadOptions};
use super::read_as;

/// Name, content, and the end of the message after the path.
type Case = (&'static str, &'static [u8], &'static str);

const LIBSVM: &[Case] = &[
    (
        "empty.svm",
        b"",
        ":1:1: expected at least one sample, found the end of the file",
    ),
    (
        "comments.svm",
        b"# none\n\n# at all\n",
        ":4:1: expected at least one sample, found the end of the file",
    ),
    (
        "labels.svm",
        b"1\n2\n3",
        ":3:2: expected an index:value pair in at least one sample, found the end of the file",
    ),
    (
        "letters.svm",
        b"1 1:2\n1 1:abc\n",
        ":2:5: expected a number after the colon, found `abc`",
    ),
    (
        "letters_after.svm",
        b"1 1:2x 2:3\n",
        ":1:5: expected a number after the colon, found `2x`",
    ),
    (
        "label.svm",
        b"1 1:2\r\nspam 1:1\r\n",
        ":2:1: expected a label (a number) at the start of the sample, found `spam`",
    ),
    (
        "no_label.svm",
        b"1 1:2\n1:2 2:3\n",
        ":2:1: expected a label before the first index:value pair, as other samples have one, found `1:2`",
    ),
    (
        "several.svm",
        b"1,2 1:2\n",
        ":1:1: expected one label (samples with several labels are not supported), found `1,2`",
    ),
    (
        "colon.svm",
        b"1 1:2 3 4:5\n",
        ":1:8: expected a colon and a value after the feature index, found a blank",
    ),
    (
        "truncated_index.svm",
        b"1 1:2\n1 1:2 3",
        ":2:8: expected a colon and a value after the feature index, found the end of the file",
    ),
    (
        "truncated_value.svm",
        b"1 1:2\n1 1:2 3:",
        ":2:9: expected a number after the colon, found the end of the file",
    ),
    (
        "no_value.svm",
        b"1 1: 2:3\n",
        ":1:5: expected a number after the colon, found a blank",
    ),
    (
        "negative.svm",
        b"1 -1:2\n",
        ":1:3: expected a feature index (a whole number, 0 or more), found `-1:2`",
    ),
    (
        "real_index.svm",
        b"1 1.5:2\n",
        ":1:3: expected a feature index (a whole number, 0 or more), found `1.5:2`",
    ),
    (
        "large.svm",
        b"1 4294967295:1\n",
        ":1:3: expected a feature index of at most 4294967294, found `4294967295:1`",
    ),
    (
        "huge.svm",
        b"1 1:1 99999999999999999999999999999:1\n",
        ":1:7: expected a feature index of at most 4294967294, found `99999999999999999999999999999:1`",
    ),
    (
        "twice.svm",
        b"1 1:2 3:4 1:5\n",
        ":1:11: expected each feature index at most once in a sample, found `1:5`",
    ),
    (
        "twice_qid.svm",
        b"1 qid:3 3:2 3:4\n",
        ":1:13: expected each feature index at most once in a sample, found `3:4`",
    ),
    (
        "nan.svm",
        b"1 1:nan\n",
        ":1:5: expected a finite number that fits f64, found `nan`",
    ),
    (
        "inf.svm",
        b"1 1:1e999\n",
        ":1:5: expected a finite number that fits f64, found `1e999`",
    ),
    (
        "nan_label.svm",
        b"nan 1:1\n",
        ":1:1: expected a finite number that fits f64, found `nan`",
    ),
    (
        "qid.svm",
        b"1 qid:x 1:1\n",
        ":1:3: expected a whole number after `qid:`, found `qid:x`",
    ),
    (
        "query.svm",
        b"1 query 1:1\n",
        ":1:3: expected a feature index (a whole number, 0 or more), found `query`",
    ),
    (
        "nul.svm",
        b"1 1:2\n\0\0\0\0\n",
        r":2:1: expected a label (a number) at the start of the sample, found `\x00\x00\x00\x00`",
    ),
    (
        "garbage.svm",
        b"\x7fELF\x02\x01\x01\xff\xfe",
        r":1:1: expected a label (a number) at the start of the sample, found `\x7fELF\x02\x01\x01\xff\xfe`",
    ),
    (
        "csv.svm",
        b"a;b;c\n1;2;3\n",
        ":1:1: expected a label (a number) at the start of the sample, found `a;b;c`",
    ),
    (
        "sign.svm",
        b"- 1:1\n",
        ":1:1: expected a label (a number) at the start of the sample, found `-`",
    ),
];

const MATRIX_MARKET: &[Case] = &[
    (
        "empty.mtx",
        b"",
        ":1:1: expected a line that starts with `%%MatrixMarket`, found the end of the file",
    ),
    (
        "banner.mtx",
        b"1 1 1\n1 1 1\n",
        ":1:1: expected `%%MatrixMarket`, found `1`",
    ),
    (
        "object.mtx",
        b"%%MatrixMarket vector coordinate real general\n",
        ":1:16: expected the object `matrix`, found `vector`",
    ),
    (
        "layout.mtx",
        b"%%MatrixMarket matrix list real general\n",
        ":1:23: expected the layout `coordinate` or `array`, found `list`",
    ),
    (
        "complex.mtx",
        b"%%MatrixMarket matrix coordinate complex general\n",
        ":1:34: expected the field `real`, `integer` or `pattern` (complex matrices are not supported), found `complex`",
    ),
    (
        "hermitian.mtx",
        b"%%MatrixMarket matrix coordinate real hermitian\n",
        ":1:39: expected the symmetry `general`, `symmetric` or `skew-symmetric`, found `hermitian`",
    ),
    (
        "array_pattern.mtx",
        b"%%MatrixMarket matrix array pattern general\n",
        ":1:29: expected a field other than `pattern` for an array, found `pattern`",
    ),
    (
        "header_only.mtx",
        b"%%MatrixMarket matrix coordinate real general\n",
        ":2:1: expected a line of sizes (rows, columns, entries), found the end of the file",
    ),
    (
        "sizes.mtx",
        b"%%MatrixMarket matrix coordinate real general\n% c\n2 2\n",
        ":3:4: expected a number of entries, found the end of the line",
    ),
    (
        "letters.mtx",
        b"%%MatrixMarket matrix coordinate real general\n2 x 1\n",
        ":2:3: expected a number of columns (at most 4294967295), found `x`",
    ),
    (
        "zero.mtx",
        b"%%MatrixMarket matrix coordinate real general\n0 3 0\n",
        ":2:1: expected at least one row and one column, found `0`",
    ),
    (
        "negative.mtx",
        b"%%MatrixMarket matrix coordinate real general\n-2 3 0\n",
        ":2:1: expected a number of rows (at most 4294967295), found `-2`",
    ),
    (
        "huge_rows.mtx",
        b"%%MatrixMarket matrix coordinate real general\n4000000000 3 1\n1 1 1\n",
        ":2:1: expected at most 16781504 rows in a file of 67 bytes, found `4000000000`",
    ),
    (
        "huge_rows64.mtx",
        b"%%MatrixMarket matrix coordinate real general\n99999999999999999999 3 1\n1 1 1\n",
        ":2:1: expected a number of rows (at most 4294967295), found `99999999999999999999`",
    ),
    (
        "huge_entries.mtx",
        b"%%MatrixMarket matrix coordinate real general\n3 3 9999999999999999\n1 1 1\n",
        ":4:1: expected 9999999999999999 entries as the header promises (there are 1), found the end of the file",
    ),
    (
        "truncated.mtx",
        b"%%MatrixMarket matrix coordinate real general\n3 3 3\n1 1 1\n2 2",
        ":4:4: expected a number, found the end of the file",
    ),
    (
        "more.mtx",
        b"%%MatrixMarket matrix coordinate real general\n3 3 1\n1 1 1\n\n2 2 2\n",
        ":5:1: expected the end of the file after the 1 entries promised, found `2`",
    ),
    (
        "row.mtx",
        b"%%MatrixMarket matrix coordinate real general\n3 3 1\n4 1 1\n",
        ":3:1: expected a row index from 1 to 3, found `4`",
    ),
    (
        "row_zero.mtx",
        b"%%MatrixMarket matrix coordinate real general\n3 3 1\n0 1 1\n",
        ":3:1: expected a row index from 1 to 3, found `0`",
    ),
    (
        "column.mtx",
        b"%%MatrixMarket matrix coordinate real general\r\n3 3 1\r\n1 4 1\r\n",
        ":3:3: expected a column index from 1 to 3, found `4`",
    ),
    (
        "value.mtx",
        b"%%MatrixMarket matrix coordinate real general\n3 3 1\n1 1 one\n",
        ":3:5: expected a number, found `one`",
    ),
    (
        "value_after.mtx",
        b"%%MatrixMarket matrix coordinate real general\n3 3 1\n1 1 1.5d0\n",
        ":3:5: expected a number, found `1.5d0`",
    ),
    (
        "integer.mtx",
        b"%%MatrixMarket matrix coordinate integer general\n3 3 1\n1 1 1.5\n",
        ":3:5: expected a whole number (the header says `integer`), found `1.5`",
    ),
    (
        "extra.mtx",
        b"%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 1 1\n",
        ":3:5: expected the end of the line after the entry, found `1`",
    ),
    (
        "inf.mtx",
        b"%%MatrixMarket matrix coordinate real general\n3 3 1\n1 1 inf\n",
        ":3:5: expected a finite number that fits f64, found `inf`",
    ),
    (
        "sum.mtx",
        b"%%MatrixMarket matrix coordinate real general\n1 1 2\n1 1 1e308\n1 1 1e308\n",
        ":3:1: expected entries of the same place whose sum is finite, found `1`",
    ),
    (
        "upper.mtx",
        b"%%MatrixMarket matrix coordinate real symmetric\n3 3 1\n1 2 1\n",
        ":3:3: expected an entry on or below the diagonal, found `2`",
    ),
    (
        "diagonal.mtx",
        b"%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 1\n2 2 1\n",
        ":3:3: expected an entry below the diagonal, found `2`",
    ),
    (
        "rectangle.mtx",
        b"%%MatrixMarket matrix coordinate real symmetric\n3 4 1\n1 1 1\n",
        ":2:1: expected as many rows as columns in a symmetric matrix, found `3`",
    ),
    (
        "array_short.mtx",
        b"%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n",
        ":6:1: expected 4 values for these sizes (there are 3), found the end of the file",
    ),
    (
        "array_huge.mtx",
        b"%%MatrixMarket matrix array real general\n9999999 4294967295\n1\n",
        ":4:1: expected 42949668655032705 values for these sizes (there are 1), found the end of the file",
    ),
    (
        "array_huge_symmetric.mtx",
        b"%%MatrixMarket matrix array real symmetric\n16777216 16777216\n1\n",
        ":4:1: expected 140737496743936 values for these sizes (there are 1), found the end of the file",
    ),
    (
        "array_letters.mtx",
        b"%%MatrixMarket matrix array real general\n2 1\n1\nx\n",
        ":4:1: expected a number, found `x`",
    ),
];

#[test]
fn libsvm_faults_are_reported_with_their_place() {
    check(LIBSVM, &ReadOptions::default());
}

#[test]
fn matrix_market_faults_are_reported_with_their_place() {
    check(MATRIX_MARKET, &ReadOptions::default());
}

#[test]
fn an_index_zero_breaks_a_file_declared_to_start_at_one() {
    let options = ReadOptions {
        index_base: IndexBase::One,
        ..ReadOptions::default()
    };
    let expected = ":2:3: expected a feature index of at least 1 (the file is read with indices from 1), found `0:1`";
    check(
        &[("zero.svm", b"1 1:1\n1 0:1\n1 0:2\n", expected)],
        &options,
    );
}

#[test]
fn a_model_with_fewer_columns_refuses_more() {
    let options = ReadOptions {
        columns: Columns::Exactly(2),
        ..ReadOptions::default()
    };
    check(
        &[
            (
                "wide.svm",
                b"1 1:1\n1 3:1\n1 3:1\n",
                ":2:3: expected feature indices below 3, for 2 columns, found `3:1`",
            ),
            (
                "wide.mtx",
                b"%%MatrixMarket matrix coordinate real general\n1 3 1\n1 1 1\n",
                ":2:1: expected sizes with at most 2 columns, found `1`",
            ),
        ],
        &options,
    );
}

#[test]
fn a_gigantic_line_is_a_line() {
    let mut line = b"1".to_vec();
    for index in 1..300_000 {
        line.extend_from_slice(format!(" {index}:1").as_bytes());
    }
    line.extend_from_slice(b" x");
    let error = read_as("line.svm", &line, &ReadOptions::default()).expect_err("a letter");
    let message = error.to_string();
    let place = format!(":1:{}: expected a feature index", line.len());
    assert!(message.contains(&place), "{message}");
}

#[test]
fn of_many_faults_the_first_is_reported() {
    let mut text = b"1 1:1 2:2\n".repeat(200_000);
    for line in [199_000, 120_000, 180_000] {
        text[10 * line + 2] = b'x';
    }
    for _ in 0..5 {
        let error = read_as("many.svm", &text, &ReadOptions::default()).expect_err("letters");
        assert!(error.to_string().contains("many.svm:120001:3:"), "{error}");
    }
}

fn check(cases: &[Case], options: &ReadOptions) {
    for (name, content, expected) in cases {
        let error = match read_as(name, content, options) {
            Ok(_) => panic!("{name} was read without an error"),
            Err(error) => error.to_string(),
        };
        let ending = format!("{name}{expected}");
        assert!(
            error.ends_with(&ending),
            "{name}\n  expected …{ending}\n  found     {error}"
        );
    }
}
