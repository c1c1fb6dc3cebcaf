use std::sync::Arc;

use crate::device::{Buffer, Device, EmulatorOptions};
use crate::matrix::{Features, csr_from_parts};
use crate::ops::objective::{Evaluation, Intercept, Loss, ObjectiveOut, ObjectiveSums};
use crate::ops::{HostShare, Matrix, MatrixOptions, Terms};
use crate::plan::fused::{Product, Summation};

const ROWS: usize = 640;
const COLS: usize = 12;

/// Small integers, so that sums of products are exact in f64 in whatever order they are added.
fn integer(place: usize) -> f64 {
    (place * 7 % 11) as f64 - 5.0
}

fn sparse() -> Arc<Features<f64>> {
    let offsets = (0..=ROWS).map(|row| 3 * row as u64).collect();
    let entries = || (0..ROWS).flat_map(|row| (0..3).map(move |i| (row, i)));
    let indices = entries().map(|(row, i)| (row % 4 + 4 * i) as u32).collect();
    let values = (0..3 * ROWS).map(|place| 1.0 + integer(place)).collect();
    let x = csr_from_parts((ROWS, COLS), offsets, indices, values);
    Arc::new(Features::Sparse(x.expect("columns ascend")))
}

fn dense() -> Arc<Features<f64>> {
    let value = |(r, c): (usize, usize)| integer(r * COLS + c);
    Arc::new(Features::Dense(ndarray::Array2::from_shape_fn(
        (ROWS, COLS),
        value,
    )))
}

fn vector(device: &Device, len: usize) -> Buffer<f64> {
    let values: Vec<f64> = (0..len).map(|place| integer(3 * place + 1)).collect();
    device.upload(&values).expect("a vector")
}

/// X on an emulated GPU that has room for a part, beside a CPU that computes `share` of the rows.
fn shared(features: &Arc<Features<f64>>, share: f64) -> Matrix<f64> {
    let options = MatrixOptions {
        device_bytes: Some(16_000),
        host_share: HostShare::Fixed(share),
        ..MatrixOptions::default()
    };
    let device = Device::small_emulator(EmulatorOptions::default());
    Matrix::with_options(&device, features.clone(), options).expect("X")
}

fn on_cpu(features: &Arc<Features<f64>>) -> Matrix<f64> {
    Matrix::new(&Device::cpu(), features.clone()).expect("X")
}

/// α · Xᵀ(v ⊙ (X·y − s)) + β·z, and its halves.
fn product(x: &Matrix<f64>, product: Product) -> Vec<f64> {
    let device = x.device();
    let (from, to) = match product {
        Product::Fused => (COLS, COLS),
        Product::Forward => (COLS, ROWS),
        Product::Transposed => (ROWS, COLS),
    };
    let (input, z) = (vector(device, from), vector(device, to));
    let (weights, shift) = (vector(device, ROWS), vector(device, 1));
    let terms = Terms {
        alpha: 2.0,
        weights: Some(&weights),
        shift: (product != Product::Transposed).then_some(&shift),
        addend: Some((-3.0, &z)),
        ..Terms::default()
    };
    let mut output = device.zeros(to).expect("a result");
    let done = x.product(product, &input, &terms, &mut output);
    done.expect("a product");
    output.to_vec().expect("a result")
}

/// Sums, gradient, residual and curvature of a squared loss with everything that an evaluation may have.
fn objective(x: &Matrix<f64>, intercept: usize, wants: bool) -> [Vec<f64>; 4] {
    let device = x.device();
    let own = COLS + usize::from(intercept == 2);
    let (y, z, c) = (vector(device, own), vector(device, own), vector(device, 1));
    let [target, weights, offset] = [0, 1, 2].map(|_| vector(device, ROWS));
    let zeros = |len: usize| device.zeros::<f64>(len).expect("a result");
    let (mut sums, mut gradient) = (zeros(ObjectiveSums::LEN), zeros(own));
    let (mut residual, mut curvature) = (zeros(ROWS), zeros(ROWS));
    let evaluation = Evaluation {
        loss: Loss::Squared,
        target: Some(&target),
        weights: Some(&weights),
        offset: Some(&offset),
        intercept: match intercept {
            0 => Intercept::Absent,
            1 => Intercept::Given(&c),
            _ => Intercept::Last,
        },
        scale: 2.0,
    };
    let out = ObjectiveOut {
        sums: &mut sums,
        gradient: wants.then_some(&mut gradient),
        addend: wants.then_some((2.0, &z)),
        residual: wants.then_some(&mut residual),
        curvature: wants.then_some(&mut curvature),
        solve: None,
    };
    x.objective(&evaluation, &y, out).expect("an objective");
    [sums, gradient, residual, curvature].map(|vector| vector.to_vec().expect("a result"))
}

const PRODUCTS: [Product; 3] = [Product::Fused, Product::Forward, Product::Transposed];

#[test]
fn products_and_objectives_are_those_of_all_rows() {
    for features in [sparse(), dense()] {
        let alone = on_cpu(&features);
        for share in [0.02, 0.3, 0.7, 1.0] {
            let both = shared(&features, share);
            both.upload_rows().expect("room for a part");
            let of_host = both.residency().host_rows;
            let expected = share * ROWS as f64;
            assert!(
                (of_host as f64 - expected).abs() <= 64.0,
                "{share}: {of_host}"
            );
            for kind in PRODUCTS {
                assert_eq!(
                    product(&both, kind),
                    product(&alone, kind),
                    "{kind} {share}"
                );
            }
            for (intercept, wants) in [(0, true), (1, true), (2, true), (1, false)] {
                let found = objective(&both, intercept, wants);
                assert_eq!(
                    found,
                    objective(&alone, intercept, wants),
                    "{intercept} {share}"
                );
            }
        }
    }
}

#[test]
fn rows_of_the_cpu_do_not_cross_the_link() {
    for features in [sparse(), dense()] {
        let crossed = |share: f64| {
            let x = shared(&features, share);
            x.upload_rows().expect("room for a part");
            let y = vector(x.device(), COLS);
            let mut w = x.device().zeros(COLS).expect("w");
            let before = x.device().usage().sent_bytes;
            x.fused(&y, &Terms::default(), &mut w).expect("a product");
            (x.device().usage().sent_bytes - before, x.residency())
        };
        let (alone, of_alone) = crossed(0.0);
        assert!(of_alone.host_rows == 0 && alone > 0);
        let (both, of_both) = crossed(0.5);
        assert!(of_both.host_rows > ROWS / 3);
        assert!(both < alone / 2, "{both} of {alone} bytes");
    }
}

#[test]
fn sums_that_are_to_repeat_are_not_shared() {
    let options = MatrixOptions {
        device_bytes: Some(4_000),
        host_share: HostShare::Fixed(0.5),
        summation: Summation::Reproducible,
        ..MatrixOptions::default()
    };
    let device = Device::small_emulator(EmulatorOptions::default());
    let x = Matrix::with_options(&device, sparse(), options).expect("X");
    assert!(x.residency().streams);
    assert_eq!(x.residency().host_rows, 0);
}

#[test]
fn what_fails_on_either_side_is_an_error_and_the_next_product_is_right() {
    let features = sparse();
    let x = shared(&features, 0.5);
    let expected = product(&x, Product::Fused);
    let device = x.device().clone();
    let y = vector(&device, COLS);
    let (mut errors, mut operation) = (0, 0);
    loop {
        operation += 1;
        let mut w = device.zeros(COLS).expect("w");
        device.fail_after(Some(operation));
        let found = x.fused(&y, &Terms::default(), &mut w);
        let was_reached = device.fail_after(None).is_none();
        errors += usize::from(found.is_err());
        assert_eq!(found.is_err(), was_reached, "operation {operation}");
        assert_eq!(product(&x, Product::Fused), expected, "after {operation}");
        if !was_reached {
            break;
        }
    }
    assert!(errors > 3, "{errors} errors");
}
