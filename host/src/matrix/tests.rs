use approx::assert_relative_eq;
use ndarray::{Array2, array};
use proptest::prelude::*;

use super::strategy::{csr, dense};
use super::*;

fn small() -> CsrMatrix<f64> {
    csr_from_parts(
        (4, 5),
        vec![0, 2, 2, 5, 6],
        vec![0, 4, 0, 1, 2, 4],
        vec![1.0, 2.0, 3.0, -4.0, 5.0, 0.5],
    )
    .expect("a sound matrix")
}

fn fault(offsets: &[u64], indices: &[u32], shape: (usize, usize)) -> CsrError {
    let values = vec![1.0_f32; indices.len()];
    csr_from_parts(shape, offsets.to_vec(), indices.to_vec(), values).expect_err("unsound")
}

#[test]
fn unsound_structure_is_refused_by_name() {
    use CsrError::*;
    let ends = |first, last, indices, values| Ends {
        first,
        last,
        indices,
        values,
    };
    assert_eq!(fault(&[], &[], (0, 1)), OffsetCount { rows: 0, found: 0 });
    assert_eq!(
        fault(&[0, 1], &[0], (2, 1)),
        OffsetCount { rows: 2, found: 2 }
    );
    assert_eq!(fault(&[1, 1], &[0], (1, 1)), ends(1, 1, 1, 1));
    assert_eq!(fault(&[0, 2], &[0], (1, 1)), ends(0, 2, 1, 1));
    assert_eq!(
        fault(&[0, 3, 1, 2], &[0, 1], (3, 2)),
        OffsetOrder { row: 0 }
    );
    assert_eq!(
        fault(&[0, 2, 1, 2], &[0, 1], (3, 2)),
        OffsetOrder { row: 1 }
    );
    assert_eq!(
        fault(&[0, u64::MAX, 2], &[0, 1], (2, 2)),
        OffsetOrder { row: 0 }
    );
    assert_eq!(fault(&[0, 2], &[1, 0], (1, 2)), IndexOrder { row: 0 });
    assert_eq!(fault(&[0, 2], &[1, 1], (1, 2)), IndexOrder { row: 0 });
    let range = IndexRange {
        row: 1,
        index: 2,
        cols: 2,
    };
    assert_eq!(fault(&[0, 1, 2], &[0, 2], (2, 2)), range);
    let cols = 1 << 32;
    assert_eq!(fault(&[0], &[], (0, cols)), TooManyColumns { found: cols });
}

#[test]
fn the_first_of_many_bad_rows_is_reported() {
    let rows = 100_000;
    let offsets: Vec<u64> = (0..=rows as u64).map(|row| 2 * row).collect();
    let mut indices: Vec<u32> = [0, 1].repeat(rows);
    for bad in [99_999, 40_000, 70_001] {
        indices[2 * bad] = 1;
    }
    let error = fault(&offsets, &indices, (rows, 2));
    assert_eq!(error, CsrError::IndexOrder { row: 40_000 });
}

#[test]
fn statistics_of_a_small_matrix() {
    let stats = MatrixStats::of(&Features::Sparse(small()));
    assert_eq!((stats.rows, stats.cols, stats.nnz), (4, 5, 6));
    assert_eq!((stats.min_row, stats.max_row, stats.empty_rows), (0, 3, 1));
    assert_relative_eq!(stats.mean_row, 1.5);
    assert_relative_eq!(stats.density(), 0.3);
    assert_eq!(stats.row_length_histogram, [1, 1, 2]);
}

#[test]
fn statistics_without_rows_or_entries() {
    let stats = MatrixStats::from_offsets(&[0], 3);
    assert_eq!(
        (stats.rows, stats.nnz, stats.min_row, stats.max_row),
        (0, 0, 0, 0)
    );
    assert_eq!((stats.mean_row, stats.density()), (0.0, 0.0));
    assert!(stats.row_length_histogram.is_empty());
    assert_eq!(MatrixStats::uniform(0, 0, 0).rows, 0);
}

#[test]
fn dense_statistics_are_those_of_full_rows() {
    let stats = MatrixStats::of(&Features::Dense(Array2::<f32>::zeros((3, 4))));
    assert!(stats.dense);
    assert_eq!((stats.nnz, stats.min_row, stats.max_row), (12, 4, 4));
    assert_eq!(stats.row_length_histogram, [0, 0, 0, 3]);
}

#[test]
fn imagined_rows_are_as_equal_as_can_be() {
    let stats = MatrixStats::uniform(4, 10, 6);
    assert_eq!(
        (stats.rows, stats.nnz, stats.min_row, stats.max_row),
        (4, 6, 1, 2)
    );
    assert_eq!(stats.row_length_histogram, [0, 2, 2]);
    let stats = MatrixStats::uniform(4, 10, 3);
    assert_eq!((stats.min_row, stats.max_row, stats.empty_rows), (0, 1, 1));
}

#[test]
fn widening_keeps_entries_and_refuses_to_narrow() {
    let x = Features::Sparse(small());
    let wide = x.clone().with_cols(9).expect("wider");
    assert_eq!((wide.cols(), wide.nnz()), (9, 6));
    let error = x.clone().with_cols(4).expect_err("narrower");
    assert_eq!(error, WidthError::TooFew { cols: 5, wanted: 4 });
    let wanted = 1 << 32;
    assert_eq!(
        x.with_cols(wanted).expect_err("too wide"),
        WidthError::TooMany { wanted }
    );
    let dense = Features::Dense(array![[1.0_f32, 2.0]]);
    let error = dense.with_cols(3).expect_err("dense");
    assert_eq!(error, WidthError::Dense { cols: 2, wanted: 3 });
}

#[test]
fn a_cast_that_overflows_names_the_entry() {
    let mut entries = 0..;
    let x = with_entries(&small(), |_, value| match entries.next() {
        Some(3) => -1e39,
        _ => value,
    });
    let error = Features::Sparse(x).cast::<f32>().expect_err("too large");
    assert_eq!((error.entry, error.value, error.to), (3, -1e39, Dtype::F32));
}

#[test]
fn decimals_read_back_exactly() {
    for value in [0.1, -0.0, 1e-310, f64::MAX, 123_456_789.123_456_78] {
        let mut text = Vec::new();
        value.write_decimal(&mut text);
        let (back, length) = f64::parse_decimal(&text).expect("a number");
        assert_eq!((back.to_bits(), length), (value.to_bits(), text.len()));
    }
    assert_eq!(f32::parse_decimal(b"+1.5e1:rest"), Some((15.0, 6)));
    assert_eq!(f32::parse_decimal(b"-"), None);
}

proptest! {
    #[test]
    fn moments_agree_with_plain_sums(x in csr()) {
        // Every value becomes a small integer: sums are exact, in any order.
        let x = x.map(|v| (v.to_bits() % 17) as f64 - 8.0);
        let full = x.to_dense();
        let sparse = Features::from(x);
        let moments = ColumnMoments::of(&sparse);
        let sums = full.sum_axis(ndarray::Axis(0)).to_vec();
        prop_assert_eq!(&moments.sum, &sums);
        let squares = full.mapv(|v| v * v).sum_axis(ndarray::Axis(0)).to_vec();
        prop_assert_eq!(&moments.sum_of_squares, &squares);
        prop_assert_eq!(ColumnMoments::of(&Features::Dense(full)), moments);
    }

    #[test]
    fn moments_of_ones_are_those_of_any_values(x in csr()) {
        let ones = x.map(|_| 1.0);
        let full = Features::Dense(ones.to_dense());
        prop_assert_eq!(ColumnMoments::of(&Features::from(ones)), ColumnMoments::of(&full));
    }

    #[test]
    fn frequencies_add_up_to_the_entries(x in csr()) {
        let mut expected = vec![0; x.cols()];
        for &j in x.indices() {
            expected[j as usize] += 1;
        }
        prop_assert_eq!(column_frequencies(&Features::Sparse(x)), expected);
    }

    #[test]
    fn a_cast_rounds_each_value(x in dense()) {
        match Features::Dense(x.clone()).cast::<f32>() {
            Ok(Features::Dense(cast)) => prop_assert_eq!(cast, x.mapv(|v| v as f32)),
            Ok(_) => prop_assert!(false, "dense stays dense"),
            Err(error) => prop_assert!((x.as_slice().unwrap()[error.entry] as f32).is_infinite()),
        }
    }
}

#[test]
fn many_blocks_give_the_sums_of_one() {
    let (rows, cols) = (5_000, 3);
    let offsets: Vec<u64> = (0..=rows as u64).map(|row| row * cols as u64).collect();
    let indices: Vec<u32> = (0..cols as u32).collect::<Vec<_>>().repeat(rows);
    let values: Vec<f32> = (0..rows * cols).map(|i| (i % 7) as f32).collect();
    let expected = (0..cols).map(|j| {
        values[j..]
            .iter()
            .step_by(cols)
            .map(|&v| f64::from(v))
            .sum()
    });
    let expected: Vec<f64> = expected.collect();
    let x = csr_from_parts((rows, cols), offsets, indices, values).expect("a sound matrix");
    let features = Features::Sparse(x);
    assert_eq!(ColumnMoments::of(&features).sum, expected);
    assert_eq!(column_frequencies(&features), vec![rows as u64; cols]);
}
