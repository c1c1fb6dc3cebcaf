//! The same bits for every number of threads, and from one call to the next.

use super::cases::{csr, dense, rng, sparse, values};
use crate::cpu::{
    Addend, RowMatrix, Scalar, Terms, Workspace, forward, fused, stream, transposed, vector,
};

fn in_pool<R: Send>(threads: usize, run: impl FnOnce() -> R + Send) -> R {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .expect("threads");
    pool.install(run)
}

/// The results of all passes, as bits.
fn passes<T: Scalar>(x: &impl RowMatrix<T>, rows: usize, cols: usize) -> Vec<u64> {
    let mut rng = rng(21);
    let (y, p) = (values::<T>(cols, &mut rng), values::<T>(rows, &mut rng));
    let (v, z) = (values::<T>(rows, &mut rng), values::<T>(cols, &mut rng));
    let addend = Addend::Vector {
        beta: T::narrow(0.5),
        z: &z,
    };
    let half = Terms {
        weights: Some(&v),
        ..Terms::scaled(T::narrow(1.5))
    };
    let terms = Terms { addend, ..half };
    let (mut w, mut w2) = (vec![T::ONE; cols], vec![T::ONE; cols]);
    let mut q = vec![T::ONE; rows];
    let mut workspace = Workspace::new();
    fused(x, &y, &terms, &mut w, &mut workspace);
    transposed(x, &p, &terms, &mut w2, &mut workspace);
    forward(x, &y, &half, &mut q);
    let all = w.iter().chain(&w2).chain(&q);
    all.map(|&value| Into::<f64>::into(value).to_bits())
        .collect()
}

fn same_bits<T: Scalar>(x: &impl RowMatrix<T>, rows: usize, cols: usize) {
    let expected = in_pool(1, || passes(x, rows, cols));
    for threads in [2, 3, 8] {
        assert!(
            in_pool(threads, || passes(x, rows, cols)) == expected,
            "{threads} threads"
        );
    }
}

/// Three chunks of 65,536 entries and more.
#[test]
fn dense_passes() {
    let mut rng = rng(22);
    for (rows, cols) in [(9_000, 28), (2_000, 129), (30, 7_000)] {
        let single = values::<f32>(rows * cols, &mut rng);
        same_bits(&dense(rows, cols, &single).x, rows, cols);
        let double = values::<f64>(rows * cols, &mut rng);
        same_bits(&dense(rows, cols, &double).x, rows, cols);
    }
}

#[test]
fn sparse_passes() {
    let mut rng = rng(23);
    for (rows, cols) in [(9_000, 50), (3_000, 4_000)] {
        let x = sparse::<f32>(rows, cols, |row| row % 97, &mut rng);
        same_bits(&csr(&x), rows, cols);
    }
}

#[test]
fn vectors() {
    let mut rng = rng(24);
    let (a, b) = (
        values::<f32>(1_000_003, &mut rng),
        values::<f32>(1_000_003, &mut rng),
    );
    let bits = || [vector::dot(&a, &b).to_bits(), stream::sum(&a).to_bits()];
    let expected = in_pool(1, bits);
    for threads in [2, 3, 8] {
        assert_eq!(in_pool(threads, bits), expected);
    }
}
