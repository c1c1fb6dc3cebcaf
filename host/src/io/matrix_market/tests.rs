//! What the format allows; what it does not is in the corpus of bad files.

use ndarray::{Array2, array};

use crate::io::ReadOptions;
use crate::io::tests::read_as;
use crate::matrix::Features;

fn full(text: &str) -> Array2<f64> {
    let data = read_as("a.mtx", text, &ReadOptions::default()).expect("a good file");
    assert_eq!(data.targets, None);
    match data.features {
        Features::Sparse(x) => x.to_dense(),
        Features::Dense(x) => {
            assert!(x.is_standard_layout());
            x
        }
        Features::Narrow(_) | Features::Shared(_) => panic!("a file of text is not shared"),
    }
}

#[test]
fn general_entries_in_any_order() {
    let expected = array![[0.0, 2.5, 0.0], [-1.0, 0.0, 0.001]];
    for text in [
        "%%MatrixMarket matrix coordinate real general\n2 3 3\n1 2 2.5\n2 1 -1\n2 3 1e-3\n",
        "%%MatrixMarket matrix coordinate real general\n2 3 3\n2 3 1e-3\n2 1 -1\n1 2 2.5",
        "%%matrixmarket MATRIX Coordinate Real General\r\n% one\r\n\r\n%two\r\n2 3 3\r\n1 2 2.5\r\n\r\n 2\t1   -1 \r\n2 3 1e-3\r\n",
        "%%MatrixMarket matrix coordinate double general\n2 3 3\n1 2 2.5\n2 1 -1\n2 3 1e-3\n",
    ] {
        assert_eq!(full(text), expected, "{text}");
    }
}

#[test]
fn integers_and_patterns() {
    let text = "%%MatrixMarket matrix coordinate integer general\n1 3 2\n1 3 -7\n1 1 4\n";
    assert_eq!(full(text), array![[4.0, 0.0, -7.0]]);
    let text = "%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 2\n2 1\n";
    assert_eq!(full(text), array![[0.0, 1.0], [1.0, 0.0]]);
}

#[test]
fn symmetric_halves_are_mirrored() {
    let text = "%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 1 1\n3 1 2\n3 2 3\n";
    assert_eq!(
        full(text),
        array![[1.0, 0.0, 2.0], [0.0, 0.0, 3.0], [2.0, 3.0, 0.0]]
    );
    let text = "%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 2\n2 1 2\n3 2 3\n";
    assert_eq!(
        full(text),
        array![[0.0, -2.0, 0.0], [2.0, 0.0, -3.0], [0.0, 3.0, 0.0]]
    );
    let text = "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n";
    assert_eq!(full(text), array![[0.0, 1.0], [1.0, 0.0]]);
}

#[test]
fn repeated_places_are_added_up() {
    let text = "%%MatrixMarket matrix coordinate real general\n3 2 6\n1 2 1\n3 1 5\n1 1 3\n1 2 2\n1 2 4\n3 2 6\n";
    assert_eq!(full(text), array![[3.0, 7.0], [0.0, 0.0], [5.0, 6.0]]);
    let data = read_as("a.mtx", text, &ReadOptions::default()).expect("a good file");
    assert_eq!(data.features.nnz(), 4);
}

#[test]
fn arrays_come_by_columns() {
    let text = "%%MatrixMarket matrix array real general\n2 3\n1\n2\n3\n4\n5\n6\n";
    assert_eq!(full(text), array![[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]);
    let text = "%%MatrixMarket matrix array integer general\n2 2\n1 2\n3 4";
    assert_eq!(full(text), array![[1.0, 3.0], [2.0, 4.0]]);
    let text = "%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n";
    assert_eq!(full(text), array![[1.0, 2.0], [2.0, 3.0]]);
    let text = "%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3\n";
    assert_eq!(
        full(text),
        array![[0.0, -1.0, -2.0], [1.0, 0.0, -3.0], [2.0, 3.0, 0.0]]
    );
}

#[test]
fn empty_matrices_have_a_shape() {
    let text = "%%MatrixMarket matrix coordinate real general\n3 4 0\n";
    assert_eq!(full(text), Array2::<f64>::zeros((3, 4)));
}

#[test]
fn many_rows_are_sorted_and_added_up_across_tasks() {
    use std::fmt::Write;
    let rows = 10_000;
    let mut text = format!(
        "%%MatrixMarket matrix coordinate integer general\n{rows} 4 {}\n",
        3 * rows
    );
    for (column, value) in [(3, 1), (1, 2), (3, 10)] {
        for row in 1..=rows {
            writeln!(text, "{row} {column} {value}").expect("memory");
        }
    }
    let x = full(&text);
    assert!(
        x.rows()
            .into_iter()
            .all(|row| row.to_vec() == [2.0, 0.0, 11.0, 0.0])
    );
}
