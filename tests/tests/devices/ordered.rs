//! Sums over a dense X in an order: the same bits on every run, grid and device, whatever the numbers.

use anyhow::{Context, Result, ensure};
use warpfuse::device::Device;
use warpfuse::matrix::{Dtype, Element};
use warpfuse::ops::{Matrix, MatrixOptions, Number};
use warpfuse::plan::fused::{Forced, Summation};
use warpfuse_tests::cases::Case;
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::sample::{FULL, PLAIN, Sample, Values};

use super::fused::{self, PRODUCTS};
use super::suite::{Suite, Test};

/// Around packs, teams, rows in flight, tiles and chunks; rows that start anywhere; a warp's, a block's and a ring's
/// columns, and more.
const MATRICES: [(usize, usize); 20] = [
    (1, 1),
    (4_100, 1),
    (3_000, 2),
    (2_100, 3),
    (257, 7),
    (1_100, 8),
    (130, 25),
    (65, 28),
    (41, 31),
    (130, 33),
    (100, 62),
    (67, 100),
    (19, 129),
    (37, 1_000),
    (14, 1_023),
    (5, 1_025),
    (9, 2_100),
    (4, 6_001),
    (3, 20_000),
    (2, 33_000),
];

const VALUES: [Values; 6] = [
    Values::Uniform,
    Values::Huge,
    Values::Tiny,
    Values::Subnormal,
    Values::Nan,
    Values::Infinity,
];

/// Blocks on an SM: as many grids, where there are rows for them.
const BLOCKS: [Option<u32>; 5] = [None, Some(1), Some(2), Some(3), Some(4)];

/// Adds one test for each matrix, kind of numbers and type, and one with more chunks than blocks.
pub fn add(suite: &mut Suite) {
    for shape in MATRICES {
        for values in VALUES {
            let case = Case::new(shape, Pattern::Dense, values);
            let test =
                |dtype: Dtype| Test::new(format!("ordered/{case}/{dtype}")).within(case.subset());
            suite.add_in_both(
                test,
                move |device| run::<f32>(device, &case),
                move |device| run::<f64>(device, &case),
            );
        }
    }
    for shape in [(250_000, 5), (90_000, 28), (10_000, 300), (1_500, 2_500)] {
        let case = Case::new(shape, Pattern::Dense, Values::Uniform);
        let test = |dtype: Dtype| Test::new(format!("ordered/{case}/{dtype}")).of_cuda();
        suite.add_in_both(
            test,
            move |device| run::<f32>(device, &case),
            move |device| run::<f64>(device, &case),
        );
    }
}

fn run<T: Number>(device: &Device, case: &Case) -> Result<()> {
    let sample = case.sample::<T>();
    let host = matrix(&Device::cpu(), &sample, None)?;
    for product in PRODUCTS {
        for parts in [PLAIN, FULL] {
            let expected = bits(&fused::compute(&host, &sample, product, parts)?);
            for blocks in BLOCKS {
                let matrix = matrix(device, &sample, blocks)?;
                if let Err(error) = matrix.used_plan(product) {
                    // An SM does not hold so many blocks.
                    ensure!(blocks.is_some_and(|blocks| blocks > 1), error);
                    continue;
                }
                let what = || format!("{product:?} with {parts:?}, {blocks:?} blocks on an SM");
                fused::check(&matrix, &sample, product, parts).with_context(what)?;
                let found = bits(&fused::compute(&matrix, &sample, product, parts)?);
                let differs = (0..found.len()).find(|i| found[*i] != expected[*i]);
                ensure!(
                    differs.is_none(),
                    "{}: element {differs:?} has other bits than on the CPU",
                    what()
                );
            }
        }
    }
    Ok(())
}

fn matrix<T: Number>(
    device: &Device,
    sample: &Sample<T>,
    blocks_per_sm: Option<u32>,
) -> Result<Matrix<T>> {
    let options = MatrixOptions {
        forced: Forced {
            blocks_per_sm,
            ..Forced::default()
        },
        summation: Summation::Reproducible,
        ..MatrixOptions::default()
    };
    let features = sample.features.clone();
    Ok(Matrix::with_options(device, features, options)?)
}

/// NaN has many bit patterns, of which none is promised.
fn bits<T: Number>(values: &[T]) -> Vec<Option<u64>> {
    let bits = |value: &T| (!Element::to_f64(*value).is_nan()).then(|| value.to_bits());
    values.iter().map(bits).collect()
}
