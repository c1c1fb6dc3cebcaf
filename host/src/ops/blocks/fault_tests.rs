//! Every allocation, copy and launch of products over an X that streams, made to fail once: the result is right, or an
//! error, and nothing is left behind.

use std::sync::Arc;

use crate::device::{Device, EmulatorOptions};
use crate::matrix::{Features, csr_from_parts};
use crate::ops::{Matrix, MatrixOptions, OpError, Preparation, Terms};
use crate::plan::fused::Summation;

const ROWS: usize = 96;
const COLS: usize = 12;

fn features() -> Arc<Features<f64>> {
    let offsets = (0..=ROWS).map(|row| 3 * row as u64).collect();
    let entries = || (0..ROWS).flat_map(|row| (0..3).map(move |i| (row, i)));
    let indices = entries().map(|(row, i)| (row % 4 + 4 * i) as u32).collect();
    let values = entries()
        .map(|(row, i)| 1.0 / (1 + row + i) as f64)
        .collect();
    let x = csr_from_parts((ROWS, COLS), offsets, indices, values);
    Arc::new(Features::Sparse(x.expect("columns ascend")))
}

/// A fused product over blocks of which some stay and some stream, page-locked.
fn product(device: &Device, features: &Arc<Features<f64>>) -> Result<Vec<u64>, OpError> {
    let options = MatrixOptions {
        summation: Summation::Reproducible,
        device_bytes: Some(3_000),
        ..MatrixOptions::default()
    };
    let often = Preparation::For {
        evaluations: 1_000_000,
    };
    let x = Matrix::prepared(device, features.clone(), options, often)?;
    assert!(x.residency().streams);
    let y = device.upload(&[0.3; COLS])?;
    let mut w = device.zeros(COLS)?;
    x.fused(&y, &Terms::default(), &mut w)?;
    Ok(w.to_vec()?.into_iter().map(f64::to_bits).collect())
}

#[test]
fn whatever_fails_the_result_is_right_or_an_error_and_nothing_is_left() {
    let (device, features) = (
        Device::small_emulator(EmulatorOptions::default()),
        features(),
    );
    let expected = product(&device, &features).expect("nothing fails");
    let (mut errors, mut survived) = (0, 0);
    for operation in 1.. {
        device.fail_after(Some(operation));
        let found = product(&device, &features);
        let was_reached = device.fail_after(None).is_none();
        assert_eq!(device.usage().live_bytes, 0, "operation {operation}");
        assert_eq!(device.usage().pinned_bytes, 0, "operation {operation}");
        match found {
            Ok(found) => {
                assert_eq!(found, expected, "operation {operation}");
                survived += 1;
            }
            Err(error) => {
                assert!(was_reached, "operation {operation}: {error}");
                errors += 1;
            }
        }
        if !was_reached {
            break;
        }
    }
    assert!(
        errors > 10 && survived > 1,
        "{errors} errors, {survived} survived"
    );
    assert_eq!(
        product(&device, &features).expect("nothing fails"),
        expected
    );
}
