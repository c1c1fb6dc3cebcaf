//! What the format allows; what it does not is in the corpus of bad files.

use crate::io::tests::{read_as, read_sparse};
use crate::io::{IndexBase, ReadOptions, read};
use crate::matrix::{Features, csr_from_parts};

#[test]
fn one_matrix_has_many_spellings() {
    let expected = (
        csr_from_parts(
            (3, 3),
            vec![0, 2, 2, 3],
            vec![0, 2, 1],
            vec![0.5, -2.0, 0.001],
        )
        .expect("sound"),
        vec![1.0, -1.0, 2.5],
    );
    for (what, text) in [
        ("plain", "1 1:0.5 3:-2\n-1\n2.5 2:0.001\n"),
        ("plus", "+1 1:+0.5 3:-2\n-1\n+2.5 2:1e-3\n"),
        ("crlf", "1 1:0.5 3:-2\r\n-1\r\n2.5 2:0.001\r\n"),
        ("no final newline", "1 1:0.5 3:-2\n-1\n2.5 2:0.001"),
        ("blanks", "  1\t1:0.5   3:-2  \n-1  \n\t2.5 2:0.001 "),
        (
            "blank lines",
            "\n1 1:0.5 3:-2\n\n\r\n  \n-1\n2.5 2:0.001\n\n",
        ),
        (
            "comments",
            "# head\n1 1:0.5 3:-2# one\n-1 # 9:9\n2.5 2:0.001 #\n#",
        ),
        ("unsorted", "1 3:-2 1:0.5\n-1\n2.5 2:0.001\n"),
        (
            "queries",
            "1 qid:1 1:0.5 3:-2\n-1 qid:22\n2.5 qid:3 2:0.001\n",
        ),
        ("from zero", "1 0:0.5 2:-2\n-1\n2.5 1:0.001\n"),
        ("byte-order mark", "\u{feff}1 1:0.5 3:-2\n-1\n2.5 2:0.001\n"),
        ("leading zeros", "01 01:0.50 3:-02\n-1\n2.5 0002:.001\n"),
    ] {
        assert_eq!(read_sparse("a.svm", text), expected, "{what}");
    }
}

#[test]
fn explicit_zeros_are_kept() {
    let (x, _) = read_sparse("a.svm", "1 1:0 2:-0 3:1\n");
    assert_eq!(x.nnz(), 3);
}

#[test]
fn the_index_base_may_be_forced() {
    let with = |index_base| {
        let options = ReadOptions {
            index_base,
            ..ReadOptions::default()
        };
        let data = read_as("a.svm", "1 1:1 3:1\n", &options).expect("good");
        let Features::Sparse(x) = data.features else {
            panic!("sparse features expected");
        };
        (x.cols(), x.indices().to_vec())
    };
    assert_eq!(with(IndexBase::Auto), (3, vec![0, 2]));
    assert_eq!(with(IndexBase::One), (3, vec![0, 2]));
    assert_eq!(with(IndexBase::Zero), (4, vec![1, 3]));
}

#[test]
fn a_zero_index_late_in_the_file_shifts_all_of_it() {
    let mut text = "1 1:1 5:1\n".repeat(100_000);
    text.push_str("1 0:1\n");
    let (x, _) = read_sparse("a.svm", text);
    assert_eq!((x.cols(), &x.indices()[..2]), (6, &[1, 5][..]));
}

#[test]
fn numbers_are_correctly_rounded() {
    // A tie, the edge of the subnormals, and more digits than 64 bits hold.
    let numbers = [
        "9007199254740993",
        "2.2250738585072011e-308",
        "6.631236871469758276785396630275967e-4",
        "-1.7976931348623157e308",
    ];
    for number in numbers {
        let (x, _) = read_sparse("a.svm", format!("1 1:{number}\n"));
        let expected: f64 = number
            .parse()
            .expect("the standard library rounds correctly");
        assert_eq!(x.data()[0].to_bits(), expected.to_bits(), "{number}");
    }
}

#[test]
fn f32_is_rounded_once() {
    // Just above a tie of f32 by less than half a unit of f64: rounding to f64 first loses it.
    let scratch = crate::io::tests::file("a.svm", "1 1:1.00000005960464477540\n");
    let data = read::<f32>(&scratch.path, &ReadOptions::default()).expect("good");
    let Features::Sparse(x) = data.features else {
        panic!("sparse features expected");
    };
    assert_eq!(x.data(), [1.0 + f32::EPSILON]);
}

#[test]
fn the_sample_data_are_complete() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/diabetes.libsvm");
    let data = read::<f64>(path, &ReadOptions::default()).expect("good");
    let x = &data.features;
    assert_eq!((x.rows(), x.cols(), x.nnz()), (442, 10, 4420));
    let moments = crate::matrix::ColumnMoments::of(x);
    for (sum, squares) in moments.sum.into_iter().zip(moments.sum_of_squares) {
        // 442 terms of magnitude 0.05, scaled and centred in f64 by others.
        assert!(
            sum.abs() < 1e-12 && (squares - 1.0).abs() < 1e-13,
            "{sum} {squares}"
        );
    }
}

#[test]
fn samples_without_labels_are_features_without_targets() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("new.svm");
    std::fs::write(&path, "1:2 3:1 # first\n\n2:5\n").expect("written");
    let data = read::<f64>(&path, &ReadOptions::default()).expect("read");
    assert_eq!((data.features.rows(), data.features.cols()), (2, 3));
    assert_eq!((data.features.nnz(), data.targets), (3, None));
}
