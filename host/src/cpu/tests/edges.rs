//! Giant rows, columns that come twice, NaN and infinity, and arguments that do not fit.

use super::cases::{EVERY, check, csr, dense, rng, sparse, values};
use crate::cpu::{Addend, Csr, Dense, LayoutError, Terms, Workspace, forward, fused, transposed};

#[test]
fn one_giant_row() {
    let mut rng = rng(11);
    for which in EVERY {
        let x = sparse::<f32>(
            50,
            20_000,
            |row| if row == 17 { 20_000 } else { 0 },
            &mut rng,
        );
        assert_eq!(x.nnz(), 20_000);
        check(&x, &csr(&x), which, &mut rng);
    }
}

#[test]
fn more_columns_than_copies_pay_for() {
    let mut rng = rng(12);
    let x = sparse::<f64>(4_000, 5_000, |_| 50, &mut rng);
    for which in EVERY {
        check(&x, &csr(&x), which, &mut rng);
    }
}

#[test]
fn a_column_that_comes_twice_counts_twice() {
    let x = Csr::new(2, &[0, 3], &[1, 0, 1], &[1.0, 5.0, 2.0]).expect("valid");
    let mut w = [0.0; 2];
    fused(
        &x,
        &[1.0, 1.0],
        &Terms::scaled(1.0),
        &mut w,
        &mut Workspace::new(),
    );
    assert_eq!(w, [40.0, 24.0]);
}

/// One special value in row 1, column 2 of a 3 × n matrix of ones.
fn with_special(cols: usize, special: f64) -> Vec<f64> {
    let mut values = vec![1.0; 3 * cols];
    values[cols + 2] = special;
    values
}

#[test]
fn nan_and_infinity_reach_what_depends_on_them_and_nothing_else() {
    for cols in [3, 4, 5, 8, 9, 17, 40, 129] {
        for special in [f64::NAN, f64::INFINITY] {
            let values = with_special(cols, special);
            let case = dense(3, cols, &values);
            let mut p = [0.0; 3];
            forward(&case.x, &vec![1.0; cols], &Terms::scaled(1.0), &mut p);
            assert_eq!((p[0], p[2]), (cols as f64, cols as f64));
            assert!(if special.is_nan() {
                p[1].is_nan()
            } else {
                p[1] == f64::INFINITY
            });

            let mut w = vec![0.0; cols];
            let workspace = &mut Workspace::new();
            transposed(&case.x, &[1.0; 3], &Terms::scaled(1.0), &mut w, workspace);
            for (column, &w) in w.iter().enumerate() {
                assert_eq!(
                    w.is_finite(),
                    column != 2,
                    "{cols} columns, column {column}"
                );
            }
            fused(
                &case.x,
                &vec![1.0; cols],
                &Terms::scaled(1.0),
                &mut w,
                workspace,
            );
            assert!(w.iter().all(|w| !w.is_finite()), "{cols} columns");
            assert!(
                special.is_nan() || w.iter().all(|&w| w == f64::INFINITY),
                "{cols} columns"
            );
        }
    }
}

#[test]
fn nan_in_a_sparse_matrix() {
    let x = Csr::new(3, &[0, 2, 2, 3], &[0, 2, 1], &[f32::NAN, 1.0, 4.0]).expect("valid");
    let mut w = [0.0f32; 3];
    fused(
        &x,
        &[1.0; 3],
        &Terms::scaled(1.0),
        &mut w,
        &mut Workspace::new(),
    );
    assert!(w[0].is_nan() && w[2].is_nan());
    assert_eq!(w[1], 16.0);
}

#[test]
fn the_old_output_is_read_only_in_place() {
    let values = [1.0, 2.0];
    let x = Dense::new(1, 2, 2, &values).expect("valid");
    let mut w = [f64::NAN; 2];
    let workspace = &mut Workspace::new();
    fused(&x, &[1.0, 1.0], &Terms::scaled(1.0), &mut w, workspace);
    assert_eq!(w, [3.0, 6.0]);
    let terms = Terms {
        addend: Addend::InPlace { beta: 2.0 },
        ..Terms::scaled(1.0)
    };
    fused(&x, &[1.0, 1.0], &terms, &mut w, workspace);
    assert_eq!(w, [9.0, 18.0]);
}

#[test]
fn no_rows_leave_the_addend() {
    let x = Dense::new(0, 2, 2, &[]).expect("valid");
    let mut w = [f64::NAN; 2];
    let addend = Addend::Vector {
        beta: 3.0,
        z: &[1.0, 2.0],
    };
    fused(
        &x,
        &[1.0; 2],
        &Terms {
            addend,
            ..Terms::scaled(1.0)
        },
        &mut w,
        &mut Workspace::new(),
    );
    assert_eq!(w, [3.0, 6.0]);
    // Rows so long that the pass would be cut by columns.
    let x = Dense::<f64>::new(0, 100_000, 100_000, &[]).expect("valid");
    let mut w = vec![f64::NAN; 100_000];
    fused(
        &x,
        &vec![1.0; 100_000],
        &Terms::scaled(1.0),
        &mut w,
        &mut Workspace::new(),
    );
    assert!(w.iter().all(|&w| w == 0.0));
}

#[test]
fn no_columns_leave_the_shift() {
    let x = Dense::<f64>::new(3, 0, 0, &[]).expect("valid");
    let mut p = [f64::NAN; 3];
    forward(
        &x,
        &[],
        &Terms {
            shift: Some(1.0),
            ..Terms::scaled(2.0)
        },
        &mut p,
    );
    assert_eq!(p, [-2.0; 3]);
}

#[test]
fn layouts_that_are_none() {
    let entries: (&[u32], &[f32]) = (&[0, 1], &[1.0, 2.0]);
    let csr = |cols, offsets| Csr::new(cols, offsets, entries.0, entries.1).map(|_| ());
    assert_eq!(csr(2, &[]), Err(LayoutError::NoOffsets));
    assert_eq!(csr(2, &[1, 2]), Err(LayoutError::FirstOffset { found: 1 }));
    let descending = LayoutError::Descending {
        row: 1,
        start: 2,
        end: 1,
    };
    assert_eq!(csr(2, &[0, 2, 1]), Err(descending));
    let entries = LayoutError::Entries {
        last: 1,
        indices: 2,
        values: 2,
    };
    assert_eq!(csr(2, &[0, 1]), Err(entries));
    let range = LayoutError::ColumnOutOfRange {
        entry: 1,
        index: 1,
        cols: 1,
    };
    assert_eq!(csr(1, &[0, 2]), Err(range));
    assert_eq!(csr(2, &[0, 2]), Ok(()));

    let dense = |rows, cols, stride| Dense::new(rows, cols, stride, &[0.0; 6]).map(|_| ());
    assert_eq!(
        dense(2, 3, 2),
        Err(LayoutError::Stride { stride: 2, cols: 3 })
    );
    assert!(matches!(
        dense(3, 3, 3),
        Err(LayoutError::TooFewValues { .. })
    ));
    assert!(matches!(
        dense(usize::MAX, 3, 3),
        Err(LayoutError::TooFewValues { .. })
    ));
    assert_eq!(dense(2, 2, 4), Ok(()));
}

#[test]
#[should_panic(expected = "y needs one element per column")]
fn a_short_y() {
    let x = Dense::new(1, 2, 2, &[1.0, 2.0]).expect("valid");
    fused(
        &x,
        &[1.0],
        &Terms::scaled(1.0),
        &mut [0.0; 2],
        &mut Workspace::new(),
    );
}

#[test]
#[should_panic(expected = "v needs one element per row")]
fn short_weights() {
    let x = Dense::new(1, 2, 2, &[1.0, 2.0]).expect("valid");
    let terms = Terms {
        weights: Some(&[][..]),
        ..Terms::scaled(1.0)
    };
    fused(&x, &[1.0; 2], &terms, &mut [0.0; 2], &mut Workspace::new());
}

/// Sums of a thousand times a thousand terms in f32 stay as good as the blocks they are made of.
#[test]
fn f32_sums_do_not_drift_with_the_number_of_rows() {
    let mut rng = rng(13);
    let x = values::<f32>(300_000, &mut rng)
        .iter()
        .map(|x| x.abs())
        .collect::<Vec<_>>();
    let case = dense(100_000, 3, &x);
    let mut w = [0.0f32; 3];
    transposed(
        &case.x,
        &vec![1.0; 100_000],
        &Terms::scaled(1.0),
        &mut w,
        &mut Workspace::new(),
    );
    let terms = crate::reference::fused::Terms::scaled(1.0, 0.0);
    let truth = crate::reference::fused::transposed(&case.view, &vec![1.0f32; 100_000], &terms);
    for (w, truth) in w.iter().zip(truth) {
        assert!(
            (f64::from(*w) - truth).abs() <= 1e-6 * truth,
            "{w} instead of {truth}"
        );
    }
}
