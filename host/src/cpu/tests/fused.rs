//! Every pass at every size, with every combination of terms.

use proptest::prelude::*;

use super::cases::{EVERY, SIZES, check, csr, dense, rng, sparse, values};
use crate::cpu::{Dense, Scalar};

fn dense_sizes<T: Scalar>() {
    let mut rng = rng(1);
    for rows in SIZES {
        for cols in SIZES {
            let values = values::<T>(rows * cols, &mut rng);
            let case = dense(rows, cols, &values);
            let which = EVERY[(rows + cols) % EVERY.len()];
            check(&case.view, &case.x, which, &mut rng);
        }
    }
}

#[test]
fn dense_sizes_f32() {
    dense_sizes::<f32>();
}

#[test]
fn dense_sizes_f64() {
    dense_sizes::<f64>();
}

fn sparse_sizes<T: Scalar>() {
    let mut rng = rng(2);
    for rows in SIZES {
        for cols in SIZES {
            let x = sparse::<T>(rows, cols, |row| row % 7 * 3, &mut rng);
            let which = EVERY[(rows + cols) % EVERY.len()];
            check(&x, &csr(&x), which, &mut rng);
        }
    }
}

#[test]
fn sparse_sizes_f32() {
    sparse_sizes::<f32>();
}

#[test]
fn sparse_sizes_f64() {
    sparse_sizes::<f64>();
}

/// Enough rows for many chunks, hence for several threads and copies of w.
#[test]
fn many_chunks() {
    let mut rng = rng(3);
    for which in EVERY {
        let values = values::<f32>(40_000 * 13, &mut rng);
        let case = dense(40_000, 13, &values);
        check(&case.view, &case.x, which, &mut rng);
        let x = sparse::<f32>(40_000, 60, |row| row % 20, &mut rng);
        check(&x, &csr(&x), which, &mut rng);
    }
}

/// Few or very long rows take two products instead of one pass.
#[test]
fn wide() {
    let mut rng = rng(4);
    for (rows, cols) in [(1, 300_000), (3, 70_001), (70, 2_049), (300, 4_097)] {
        for which in EVERY {
            let values = values::<f32>(rows * cols, &mut rng);
            let case = dense(rows, cols, &values);
            check(&case.view, &case.x, which, &mut rng);
        }
    }
}

#[test]
fn rows_apart() {
    let mut rng = rng(5);
    let (rows, cols, stride) = (37, 21, 40);
    for which in EVERY {
        // No more than is needed: the last row ends where the values end.
        let values = values::<f64>((rows - 1) * stride + cols, &mut rng);
        let x = Dense::new(rows, cols, stride, &values).expect("enough values");
        let copied: Vec<f64> = (0..rows).flat_map(|row| x.row(row).to_vec()).collect();
        check(&dense(rows, cols, &copied).view, &x, which, &mut rng);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_dense(rows in 0usize..300, cols in 0usize..200, which in 0..EVERY.len(), seed: u64) {
        let mut rng = rng(seed);
        let single = values::<f32>(rows * cols, &mut rng);
        let case = dense(rows, cols, &single);
        check(&case.view, &case.x, EVERY[which], &mut rng);
        let double = values::<f64>(rows * cols, &mut rng);
        let case = dense(rows, cols, &double);
        check(&case.view, &case.x, EVERY[which], &mut rng);
    }

    #[test]
    fn any_sparse(
        rows in 0usize..300,
        cols in 0usize..200,
        entries in 0usize..40,
        which in 0..EVERY.len(),
        seed: u64,
    ) {
        let mut rng = rng(seed);
        let x = sparse::<f32>(rows, cols, |row| (row * 7) % (entries + 1), &mut rng);
        check(&x, &csr(&x), EVERY[which], &mut rng);
        let x = sparse::<f64>(rows, cols, |row| (row * 7) % (entries + 1), &mut rng);
        check(&x, &csr(&x), EVERY[which], &mut rng);
    }
}
