//! Allocations, copies and launches of a whole fit, made to fail one after the other: the model is the same, or there is an
//! error; nothing stays behind, and the next fit is right.

use super::*;
use crate::device::EmulatorOptions;
use crate::ops::MatrixOptions;
use crate::plan::fused::Summation;

/// Operations of a fit that fail, each in a fit of its own, spread over all.
const FAULTS: u64 = 24;

fn reproducible(device_bytes: Option<u64>) -> MatrixOptions {
    MatrixOptions {
        summation: Summation::Reproducible,
        device_bytes,
        ..MatrixOptions::default()
    }
}

/// Rows of three entries each.
fn sparse() -> Features<f64> {
    let offsets = (0..=ROWS as u64).map(|row| 3 * row).collect();
    let entries = || (0..ROWS).flat_map(|row| (0..3).map(move |i| (row, i)));
    let indices = entries().map(|(row, i)| (row % 2 + 2 * i) as u32).collect();
    let value = |(row, i)| 0.5 + ((row * 7 + i * 5) % 11) as f64 / 11.0;
    let values = entries().map(value).collect();
    let x = crate::matrix::csr_from_parts((ROWS, 6), offsets, indices, values);
    Features::Sparse(x.expect("columns ascend"))
}

/// The bits of a model's coefficients, or the error.
fn coefficients(
    estimator: &Estimator,
    device: &Device,
    features: &Features<f64>,
) -> Result<Vec<u64>, FitError> {
    let (numbers, labels) = (numbers(), labels());
    let targets = match estimator.is_classifier() {
        true => Targets::Labels(&labels),
        false => Targets::Numbers(&numbers),
    };
    let model = estimator.fit_with(device, features.clone(), targets, FitOptions::default())?;
    let all = model.coef().into_iter().flatten();
    Ok(all.map(|c| c.to_bits()).collect())
}

/// How many operations of a fit there are: the number that is left of more than there can be.
fn operations(estimator: &Estimator, device: &Device, features: &Features<f64>) -> u64 {
    const MANY: u64 = 1 << 40;
    device.fail_after(Some(MANY));
    let found = coefficients(estimator, device, features);
    let left = device.fail_after(None).expect("there are fewer");
    found.unwrap_or_else(|error| panic!("{estimator:?}: {error}"));
    MANY - left
}

fn check(estimator: &Estimator, device: &Device, features: &Features<f64>) -> (usize, usize) {
    let expected = coefficients(estimator, device, features).expect("nothing fails");
    let all = operations(estimator, device, features);
    let step = (all / FAULTS).max(1);
    let (mut errors, mut survived) = (0, 0);
    for operation in (1..=all).step_by(step as usize) {
        device.fail_after(Some(operation));
        let found = coefficients(estimator, device, features);
        let reached = device.fail_after(None).is_none();
        let what = format!("{estimator:?}, operation {operation} of {all}");
        assert!(reached, "{what}");
        let usage = device.usage();
        assert_eq!((usage.live_bytes, usage.pinned_bytes), (0, 0), "{what}");
        match found {
            Ok(found) => {
                assert_eq!(found, expected, "{what}");
                survived += 1;
            }
            Err(_) => errors += 1,
        }
    }
    let after = coefficients(estimator, device, features).expect("nothing fails");
    assert_eq!(after, expected, "{estimator:?}");
    (errors, survived)
}

#[test]
fn whatever_fails_in_a_fit_on_the_cpu_its_model_is_right_or_there_is_an_error() {
    let mut errors = 0;
    for estimator in Estimator::all() {
        for features in [features(), sparse()] {
            errors += check(&estimator, &Device::cpu(), &features).0;
        }
    }
    assert!(errors > 100, "{errors} errors");
}

#[test]
fn whatever_fails_in_a_fit_on_a_gpu_its_model_is_right_or_there_is_an_error() {
    let iterative = [
        Estimator::from(LinearRegression::default()),
        LogisticRegression::default().into(),
    ];
    let mut errors = 0;
    for estimator in iterative {
        let estimator = estimator.matrix_options(reproducible(None));
        for features in [features(), sparse()] {
            let device = Device::small_emulator(EmulatorOptions::default());
            errors += check(&estimator, &device, &features).0;
        }
    }
    assert!(errors > 20, "{errors} errors");
}

#[test]
fn whatever_fails_in_a_fit_of_which_x_streams_its_model_is_right_or_there_is_an_error() {
    let estimator = Estimator::from(LogisticRegression::default());
    let estimator = estimator.matrix_options(reproducible(Some(600)));
    let device = Device::small_emulator(EmulatorOptions::default());
    let (errors, _) = check(&estimator, &device, &sparse());
    assert!(errors > 5, "{errors} errors");
}
