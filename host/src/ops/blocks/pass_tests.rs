//! How often X crosses the link in passes that follow each other, and for sums over its columns.

use std::sync::Arc;

use crate::device::{Device, EmulatorOptions};
use crate::matrix::{ColumnMoments, Features, csr_from_parts};
use crate::ops::{Matrix, MatrixOptions, Terms};
use crate::plan::fused::Summation;
use crate::plan::streaming::SLOTS;

const ROWS: usize = 640;
const COLS: usize = 50;
const PER_ROW: usize = 10;

/// Rows of ten entries of which each is what `value` gives for its row and its place.
fn features(value: fn(usize, usize) -> f32) -> Arc<Features<f32>> {
    let offsets = (0..=ROWS).map(|row| (row * PER_ROW) as u64).collect();
    let entries = || (0..ROWS).flat_map(|row| (0..PER_ROW).map(move |i| (row, i)));
    let indices = entries().map(|(row, i)| (row % 5 + i * 5) as u32).collect();
    let values = entries().map(|(row, i)| value(row, i)).collect();
    let x = csr_from_parts((ROWS, COLS), offsets, indices, values);
    Arc::new(Features::Sparse(x.expect("columns ascend")))
}

fn streamed(features: &Arc<Features<f32>>, summation: Summation) -> Matrix<f32> {
    let options = MatrixOptions {
        // Room for some blocks.
        device_bytes: Some(12 << 10),
        summation,
        ..MatrixOptions::default()
    };
    let device = Device::small_emulator(EmulatorOptions::default());
    let x = Matrix::with_options(&device, features.clone(), options).expect("X");
    assert!(x.residency().streams);
    x
}

/// Bytes that `work` sends to the device.
fn crossing(x: &Matrix<f32>, work: impl FnOnce()) -> u64 {
    let before = x.device().usage().sent_bytes;
    work();
    x.device().usage().sent_bytes - before
}

fn absent(x: &Matrix<f32>) -> u64 {
    let all = x.residency();
    all.block_bytes - all.resident_bytes
}

#[test]
fn columns_are_added_while_their_blocks_cross_once() {
    let values: [fn(usize, usize) -> f32; 4] = [
        |_, _| 1.0,
        |_, _| 0.5,
        |row, _| (row % 7) as f32 - 3.0,
        |row, i| ((row + 3 * i) % 11) as f32 - 5.0,
    ];
    for (number, value) in values.into_iter().enumerate() {
        let features = features(value);
        let expected = ColumnMoments::of(&features);
        for summation in [Summation::Free, Summation::Reproducible] {
            let x = streamed(&features, summation);
            let mut found = None;
            let crossed = crossing(&x, || found = x.column_moments().expect("sums"));
            // Numbers of a few bits: exact in any order.
            let is_promised = summation == Summation::Free || number == 0;
            assert_eq!(found, is_promised.then(|| expected.clone()), "{number}");
            let of_pass = if is_promised { absent(&x) } else { 0 };
            assert_eq!(crossed, of_pass, "values {number}");
        }
    }
}

#[test]
fn the_first_blocks_of_a_pass_to_come_cross_behind_the_last_of_this_one() {
    let features = features(|row, i| 1.0 / (row + i + 1) as f32);
    let expected = {
        let whole = Matrix::new(&Device::cpu(), features.clone()).expect("X");
        fused(&whole)
    };
    let x = streamed(&features, Summation::Free);
    let (device, each) = (x.device().clone(), absent(&x));
    assert!(each > 0 && x.residency().resident_bytes > 0);
    let y = device.upload(&[0.5_f32; COLS]).expect("y");
    let mut w = device.zeros(COLS).expect("w");
    let mut pass =
        |terms: &Terms<'_, f32>| crossing(&x, || x.fused(&y, terms, &mut w).expect("a product"));
    let plain = Terms::default();
    assert_eq!(pass(&plain), each, "nothing is to come");
    x.announce(3).expect("a count");
    let found: Vec<u64> = (0..5).map(|_| pass(&plain)).collect();
    let ahead = found[0] - each;
    let most = SLOTS as u64 * x.residency().block_bytes / x.residency().blocks as u64;
    assert!(ahead > 0 && ahead <= 2 * most, "{found:?} of {each}");
    assert_eq!(found[1..], [each, each - ahead, each, each]);
    let found = w.to_vec().expect("w");
    for (found, expected) in found.iter().zip(&expected) {
        assert!((found - expected).abs() <= 1e-4 * expected.abs());
    }
}

fn fused(x: &Matrix<f32>) -> Vec<f32> {
    let y = x.device().upload(&[0.5_f32; COLS]).expect("y");
    let mut w = x.device().zeros(COLS).expect("w");
    x.fused(&y, &Terms::default(), &mut w).expect("a product");
    w.to_vec().expect("w")
}
