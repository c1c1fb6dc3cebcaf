//! Integers as sums of sparse rows: the same bits on the CPU, on a device, in blocks that stream, with and without a head.

use std::sync::Arc;

use crate::device::{Device, EmulatorOptions};
use crate::matrix::{Features, csr_from_parts};
use crate::ops::objective::{Evaluation, HeadSize, Intercept, Loss, ObjectiveOut, ObjectiveSums};
use crate::ops::{Matrix, MatrixOptions, Terms};
use crate::plan::fused::{Product, Summation};

const ROWS: usize = 640;
/// More than blocks have room for.
const COLS: usize = 70_000;
const PER_ROW: usize = 10;

/// Rows of ten entries, of which the first ones are in few columns.
fn features(value: fn(usize) -> f32) -> Arc<Features<f32>> {
    let offsets = (0..=ROWS).map(|row| (row * PER_ROW) as u64).collect();
    let column = |row: usize, i: usize| match i {
        0..3 => (3 * i + row % 3) as u32,
        _ => (i * 7_000 - 10 + row % 37) as u32,
    };
    let entries = || (0..ROWS).flat_map(|row| (0..PER_ROW).map(move |i| (row, i)));
    let indices = entries().map(|(row, i)| column(row, i)).collect();
    let values = (0..ROWS * PER_ROW).map(value).collect();
    let x = csr_from_parts((ROWS, COLS), offsets, indices, values);
    Arc::new(Features::Sparse(x.expect("columns ascend")))
}

fn matrix(device: &Device, features: &Arc<Features<f32>>, limit: Option<u64>) -> Matrix<f32> {
    let options = MatrixOptions {
        summation: Summation::Reproducible,
        device_bytes: limit,
        ..MatrixOptions::default()
    };
    let x = Matrix::with_options(device, features.clone(), options).expect("X");
    assert_eq!(x.residency().streams, limit.is_some());
    x
}

fn numbers(len: usize, by: usize) -> Vec<f32> {
    let number = |i: usize| ((i * 13 % by) as f32 - 0.4 * by as f32) / 7.0;
    (0..len).map(number).collect()
}

/// The bits of products with X, with Xᵀ, and with the Hessian of an objective, and the bytes that crossed for the last.
fn bits(x: &Matrix<f32>) -> (Vec<Vec<u32>>, u64) {
    let device = x.device();
    let upload = |values: Vec<f32>| device.upload(&values).expect("a vector");
    let (y, p) = (upload(numbers(COLS, 101)), upload(numbers(ROWS, 53)));
    let curvature = upload(numbers(ROWS, 11).into_iter().map(f32::abs).collect());
    let mut found = Vec::new();
    let mut w = device.zeros(COLS).expect("w");
    let terms = Terms {
        weights: Some(&curvature),
        ..Terms::default()
    };
    x.fused(&y, &terms, &mut w).expect("a product");
    found.push(w.to_vec().expect("w"));
    x.transposed(&p, &Terms::default(), &mut w).expect("Xᵀp");
    found.push(w.to_vec().expect("w"));
    let c = upload(vec![0.25]);
    let mut sums = device.zeros(ObjectiveSums::LEN).expect("sums");
    let before = device.usage().sent_bytes;
    let out = ObjectiveOut::new(&mut sums, &mut w);
    let intercept = Intercept::Given(&c);
    x.hessian_product(&curvature, intercept, &y, out)
        .expect("H·s");
    let crossed = device.usage().sent_bytes - before;
    found.push(w.to_vec().expect("w"));
    let target = upload((0..ROWS).map(|row| (row % 2) as f32).collect());
    let evaluation = Evaluation {
        weights: Some(&curvature),
        intercept,
        ..Evaluation::new(Loss::Logistic, &target)
    };
    let out = ObjectiveOut::new(&mut sums, &mut w);
    x.objective(&evaluation, &y, out).expect("an objective");
    found.push(w.to_vec().expect("w"));
    let sums = sums.to_vec().expect("sums").into_iter();
    found.push(sums.map(|sum| sum as f32).collect());
    let bits = |numbers: Vec<f32>| numbers.into_iter().map(f32::to_bits).collect();
    (found.into_iter().map(bits).collect(), crossed)
}

#[test]
fn sums_have_the_same_bits_with_a_head_and_cross_once_for_a_hessian() {
    let values: [fn(usize) -> f32; 3] = [|_| 1.0, |_| 0.75, |i| 1.0 / (1 + i % 97) as f32 - 0.3];
    for (number, value) in values.into_iter().enumerate() {
        let features = features(value);
        let (expected, _) = bits(&matrix(&Device::cpu(), &features, None));
        for limit in [None, Some(20 << 10)] {
            let device = Device::small_emulator(EmulatorOptions::default());
            let mut x = matrix(&device, &features, limit);
            assert_eq!(bits(&x).0, expected, "values {number} under {limit:?}");
            assert_eq!(x.tell_head(HeadSize::Places(8)).expect("a head"), 8);
            for product in [Product::Fused, Product::Transposed] {
                let plan = x.used_plan(product).expect("a plan").expect("of a GPU");
                let plan = plan.to_string();
                assert!(plan.contains("head"), "{plan}");
            }
            let all = x.residency();
            let (found, crossed) = bits(&x);
            assert_eq!(found, expected, "values {number} with a head, {limit:?}");
            assert_eq!(crossed, all.block_bytes - all.resident_bytes);
        }
    }
}

/// y times a column's scale is beyond f32, X·y is not.
#[test]
fn slopes_that_their_vectors_cannot_bound_in_floats_are_added_right() {
    let large = 2.0_f32.powi(100);
    let x = csr_from_parts(
        (3, 2),
        vec![0, 2, 3, 4],
        vec![0, 1, 1, 0],
        vec![large, 1.0, 2.0, 2.0_f32.powi(-60)],
    );
    let features = Arc::new(Features::Sparse(x.expect("rows")));
    let y = [2.0_f32.powi(27), 3.0];
    let curvature = [1.0_f32; 3];
    for device in [
        Device::cpu(),
        Device::small_emulator(EmulatorOptions::default()),
    ] {
        let x = matrix(&device, &features, None);
        let (y, curvature) = (device.upload(&y).expect("y"), device.upload(&curvature));
        let mut sums = device.zeros(ObjectiveSums::LEN).expect("sums");
        let mut w = device.zeros(2).expect("w");
        let out = ObjectiveOut::new(&mut sums, &mut w);
        let curvature = curvature.expect("d");
        x.hessian_product(&curvature, Intercept::Absent, &y, out)
            .expect("H·s");
        assert_eq!(w.to_vec().expect("w")[1], 2.0_f32.powi(127), "{device}");
    }
}
