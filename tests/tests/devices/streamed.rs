//! X beyond what a device may hold of it: every operation over blocks that stay or stream.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use warpfuse::device::Device;
use warpfuse::matrix::{Element, Features};
use warpfuse::ops::{Matrix, MatrixOptions, Number};
use warpfuse::plan::fused::Summation;
use warpfuse_tests::Subset;
use warpfuse_tests::cases::{self, Case};
use warpfuse_tests::sample::{FULL, PLAIN, Values};

use super::fused::{self, PRODUCTS};
use super::suite::{Suite, Test};
use super::{many, objective, softmax};

/// Stored entries of the largest case.
const MOST: usize = 2_500;

/// Percent of X that may lie on the device; cases take turns.
const SHARES: [u64; 3] = [25, 75, 1];

/// Adds every case that is not empty, and those of ordinary numbers with every other operation.
pub fn add(suite: &mut Suite) {
    let has_blocks = |case: &Case| (1..=MOST).contains(&case.entries()) && case.rows > 1;
    for (turn, case) in cases::all().into_iter().filter(has_blocks).enumerate() {
        let test = |name: &str, subset, dtype| {
            Test::new(format!("streamed/{name}{case}/{dtype}")).within(subset)
        };
        // Emulators take every third.
        let subset = match turn % 3 {
            0 => case.subset(),
            _ => Subset::Full,
        };
        let turn = turn / 3;
        suite.add_in_both(
            |dtype| test("", subset, dtype),
            move |device| run::<f32>(device, &case, turn),
            move |device| run::<f64>(device, &case, turn),
        );
        if case.values != Values::Uniform {
            continue;
        }
        suite.add_in_both(
            |dtype| test("objective/", subset, dtype),
            move |device| objective::run_streamed::<f32>(device, &case, turn),
            move |device| objective::run_streamed::<f64>(device, &case, turn),
        );
        suite.add_in_both(
            |dtype| test("softmax/", subset, dtype),
            move |device| softmax::run_streamed::<f32>(device, &case, turn),
            move |device| softmax::run_streamed::<f64>(device, &case, turn),
        );
        suite.add_in_both(
            |dtype| test("many/", subset, dtype),
            move |device| many::run_streamed::<f32>(device, &case, turn),
            move |device| many::run_streamed::<f64>(device, &case, turn),
        );
    }
}

/// X on a device that may have a share of it.
pub fn matrix<T: Number>(
    device: &Device,
    features: &Arc<Features<T>>,
    turn: usize,
) -> Result<Matrix<T>> {
    let options = options(features, turn, Summation::Free);
    let matrix = Matrix::with_options(device, features.clone(), options)?;
    ensure!(
        matrix.residency().streams != device.is_cpu(),
        "{:?} of {:?}",
        matrix.residency(),
        options
    );
    Ok(matrix)
}

/// X with sums that repeat: on a device that may have a share of it, and all of it on the CPU.
pub struct Repeating<T: Number> {
    streamed: Matrix<T>,
    whole: Matrix<T>,
}

impl<T: Number> Repeating<T> {
    pub fn new(device: &Device, features: &Arc<Features<T>>, turn: usize) -> Result<Self> {
        let streamed = options(features, turn, Summation::Reproducible);
        let whole = MatrixOptions {
            summation: Summation::Reproducible,
            ..MatrixOptions::default()
        };
        Ok(Repeating {
            streamed: Matrix::with_options(device, features.clone(), streamed)?,
            whole: Matrix::with_options(&Device::cpu(), features.clone(), whole)?,
        })
    }

    /// Whether what is computed over both is the same, bit by bit.
    pub fn same_bits(&self, compute: impl Fn(&Matrix<T>) -> Result<Vec<u64>>) -> Result<()> {
        let (streamed, whole) = (compute(&self.streamed)?, compute(&self.whole)?);
        ensure!(streamed == whole, "other bits than on the CPU");
        Ok(())
    }
}

fn options<T: Number>(features: &Features<T>, turn: usize, summation: Summation) -> MatrixOptions {
    let size = size_of::<T>();
    let bytes = match features.is_sparse() {
        true => features.nnz() * (4 + size) + 4 * features.rows(),
        false => features.nnz() * size,
    };
    MatrixOptions {
        device_bytes: Some(bytes as u64 * SHARES[turn % SHARES.len()] / 100),
        summation,
        ..MatrixOptions::default()
    }
}

fn run<T: Number>(device: &Device, case: &Case, turn: usize) -> Result<()> {
    let sample = case.sample::<T>();
    let free = matrix(device, &sample.features, turn)?;
    let repeating = Repeating::new(device, &sample.features, turn)?;
    for product in PRODUCTS {
        for parts in [PLAIN, FULL] {
            let what = || format!("{product:?} with {parts:?}");
            fused::check(&free, &sample, product, parts).with_context(what)?;
            let repeated = |x: &Matrix<T>| Ok(bits(&fused::compute(x, &sample, product, parts)?));
            repeating.same_bits(repeated).with_context(what)?;
        }
    }
    Ok(())
}

/// NaN has many bit patterns, of which none is promised.
fn bits<T: Number>(values: &[T]) -> Vec<u64> {
    let bits = |value: &T| match Element::to_f64(*value).is_nan() {
        true => u64::MAX,
        false => gpu_kernels::Word::to_bits(*value),
    };
    values.iter().map(bits).collect()
}
