//! Every pass at every size, with every combination of terms.

use proptest::prelude::*;

use rand::Rng;

use super::cases::{EVERY, Passes, SIZES, Which, check, csr, dense, rng, sparse, values};
use crate::cpu::sell::{Made, Sell};
use crate::cpu::{Dense, Scalar};
use crate::matrix::CsrMatrix;

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

/// Compressed rows, and blocks by rows and by columns.
fn check_sparse<T: Scalar>(x: &CsrMatrix<T>, which: Which, rng: &mut impl Rng) {
    let passes = Passes::new(x, which, rng);
    passes.check(&csr(x));
    let made = Made::of(&csr(x));
    let mut indices = vec![u16::MAX; made.order().entries()];
    let mut values = vec![T::narrow(f64::NAN); made.order().values()];
    let order = made.place(&mut indices, &mut values);
    passes.check(&Sell::new(&order, &indices, &values));
}

fn sparse_sizes<T: Scalar>() {
    let mut rng = rng(2);
    for rows in SIZES {
        for cols in SIZES {
            let x = sparse::<T>(rows, cols, |row| row % 7 * 3, &mut rng);
            let which = EVERY[(rows + cols) % EVERY.len()];
            check_sparse(&x, which, &mut rng);
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

/// Enough entries for several chunks of 65,536, hence for several threads and copies of w.
#[test]
fn many_chunks() {
    let mut rng = rng(3);
    for which in EVERY {
        let values = values::<f32>(16_000 * 13, &mut rng);
        let case = dense(16_000, 13, &values);
        check(&case.view, &case.x, which, &mut rng);
        let x = sparse::<f32>(20_000, 60, |row| row % 20, &mut rng);
        check_sparse(&x, which, &mut rng);
    }
}

/// Several blocks and tiles; columns and rows that are cut into pieces; as many columns as 16 bits count, and one more; equal
/// values, which are not stored.
#[test]
fn slices() {
    let mut rng = rng(6);
    for (i, (rows, cols)) in [(9_000, 20), (5, 65_536), (3, 65_537), (700, 6_145)]
        .into_iter()
        .enumerate()
    {
        for ones in [false, true] {
            let x = sparse::<f32>(rows, cols, |row| 1 + row % 50 * 7 * (row % 2), &mut rng);
            let x = match ones {
                true => {
                    let (offsets, indices) =
                        (x.indptr().raw_storage().to_vec(), x.indices().to_vec());
                    let ones = vec![-1.5; x.nnz()];
                    CsrMatrix::new((rows, cols), offsets.into(), indices.into(), ones.into())
                }
                false => x,
            };
            check_sparse(&x, EVERY[i], &mut rng);
        }
    }
}

/// Blocks whose entries are there by rows alone, and blocks that have them twice.
#[test]
fn entries_once_and_twice() {
    let mut rng = rng(7);
    for which in EVERY {
        let x = sparse::<f32>(13_000, 200, |row| row % 5, &mut rng);
        copies_are(&x, 2.0);
        check_sparse(&x, which, &mut rng);
        let x = sparse::<f64>(13_000, 200, |row| row % 5, &mut rng);
        // Two of seven blocks have them once.
        copies_are(&x, 2.0 - 2.0 * 2_048.0 / 13_000.0);
        check_sparse(&x, which, &mut rng);
    }
}

/// Entries in slices over those of `x`, but for what pads lists.
fn copies_are<T: Scalar>(x: &CsrMatrix<T>, expected: f64) {
    let entries = Made::of(&csr(x)).order().entries();
    let share = entries as f64 / x.nnz() as f64;
    assert!((share / expected - 1.0).abs() < 0.08, "{share} {expected}");
}

/// Few or very long rows take two products instead of one pass.
#[test]
fn wide() {
    let mut rng = rng(4);
    // Two chunks, of which rows have many tiles, or three.
    for (rows, cols) in [(1, 150_000), (3, 45_001), (70, 2_049), (33, 4_097)] {
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
        check_sparse(&x, EVERY[which], &mut rng);
        let x = sparse::<f64>(rows, cols, |row| (row * 7) % (entries + 1), &mut rng);
        check_sparse(&x, EVERY[which], &mut rng);
    }
}
