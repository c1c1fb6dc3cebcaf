//! A fit under a limit that has room for its vectors and little else.

use super::*;
use crate::device::{EmulatorOptions, MemoryOptions};
use crate::matrix::csr_from_parts;
use crate::ops::MatrixOptions;
use crate::plan::fused::Summation;

const COLS: usize = 2_000;
const M: usize = 1_300;
const PER_ROW: usize = 8;

fn wide() -> Features<f32> {
    let stratum = COLS / PER_ROW;
    let entries = || (0..M * PER_ROW).map(|at| (at / PER_ROW, at % PER_ROW));
    let indices = entries().map(|(row, i)| (i * stratum + (row * (3 + i)) % stratum) as u32);
    let values = entries().map(|(row, i)| 0.5 + ((row * 7 + i * 5) % 11) as f32 / 11.0);
    let offsets = (0..=M).map(|row| (row * PER_ROW) as u64).collect();
    let x = csr_from_parts((M, COLS), offsets, indices.collect(), values.collect());
    Features::Sparse(x.expect("columns ascend"))
}

fn coefficients(limit: Option<usize>) -> Result<Vec<u64>, FitError> {
    let device = Device::small_emulator(EmulatorOptions::default());
    if let Some(limit) = limit {
        device.limit_memory(MemoryOptions::limited(limit));
    }
    let options = MatrixOptions {
        summation: Summation::Reproducible,
        ..MatrixOptions::default()
    };
    let labels = Labels::Numbers((0..M).map(|i| ((i * 5) % 7 / 4) as f64).collect());
    let params = LogisticRegression::params()
        .solver(Solver::NewtonCg)
        .max_iter(2);
    let estimator = Estimator::from(params).matrix_options(options);
    let targets = Targets::Labels(&labels);
    let model = estimator.fit_with(&device, wide(), targets, FitOptions::default())?;
    let usage = device.usage();
    assert!(limit.is_none_or(|limit| usage.peak_bytes <= limit));
    Ok(model
        .coef()
        .into_iter()
        .flatten()
        .map(|c| c.to_bits())
        .collect())
}

/// Twelve vectors of columns, sums of two, five of rows, and what streams: without a level that goes before a point is evaluated, or
/// with a third vector of rows between launches, a fit takes 155,000.
const LIMIT: usize = 152_000;

#[test]
fn vectors_that_nobody_needs_leave_room_for_others() {
    let all = coefficients(None).expect("no limit");
    assert_eq!(coefficients(Some(LIMIT)).expect("room"), all);
}
