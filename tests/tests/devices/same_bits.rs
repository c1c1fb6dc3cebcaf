//! Reproducible sums: every launch comes to the bits of the CPU.

use anyhow::{Context, Result, ensure};
use warpfuse::device::Device;
use warpfuse::matrix::Element;
use warpfuse::ops::{Matrix, MatrixOptions, Number};
use warpfuse::plan::fused::{Forced, Product, Summation};
use warpfuse_tests::cases::Case;
use warpfuse_tests::sample::{FULL, PLAIN, Part, Sample, Values};

use super::fused::{self, PRODUCTS};

/// Numbers whose sums depend on their order, and such as have to arrive as they are.
pub const VALUES: [Values; 6] = [
    Values::Uniform,
    Values::Huge,
    Values::Tiny,
    Values::Subnormal,
    Values::Nan,
    Values::Infinity,
];

/// The launches that are compared.
pub struct Launches {
    /// Those of a product.
    pub of: fn(&Device, Product) -> Vec<Forced>,
    /// Which of them a device need not have room for.
    pub may_not_fit: fn(&Forced) -> bool,
}

/// With reproducible sums.
pub fn options(forced: Forced) -> MatrixOptions {
    MatrixOptions {
        forced,
        summation: Summation::Reproducible,
        ..MatrixOptions::default()
    }
}

/// Computes all products by all launches.
pub fn run<T: Number>(device: &Device, case: &Case, launches: &Launches) -> Result<()> {
    let sample = case.sample::<T>();
    let host = matrix(&Device::cpu(), &sample, Forced::default())?;
    for product in PRODUCTS {
        for parts in [PLAIN, FULL] {
            let expected = bits(&fused::compute(&host, &sample, product, parts)?);
            for forced in (launches.of)(device, product) {
                let matrix = matrix(device, &sample, forced)?;
                if let Err(error) = matrix.used_plan(product) {
                    ensure!((launches.may_not_fit)(&forced), error);
                    continue;
                }
                check(&matrix, &sample, (product, parts), &expected)
                    .with_context(|| format!("{product:?} with {parts:?}, {forced}"))?;
            }
        }
    }
    Ok(())
}

fn check<T: Number>(
    matrix: &Matrix<T>,
    sample: &Sample<T>,
    (product, parts): (Product, &[Part]),
    expected: &[Option<u64>],
) -> Result<()> {
    fused::check(matrix, sample, product, parts)?;
    let found = bits(&fused::compute(matrix, sample, product, parts)?);
    let differs = (0..found.len()).find(|i| found[*i] != expected[*i]);
    ensure!(
        differs.is_none(),
        "element {differs:?} has other bits than on the CPU"
    );
    Ok(())
}

fn matrix<T: Number>(device: &Device, sample: &Sample<T>, forced: Forced) -> Result<Matrix<T>> {
    let features = sample.features.clone();
    Ok(Matrix::with_options(device, features, options(forced))?)
}

/// NaN has many bit patterns, of which none is promised.
fn bits<T: Number>(values: &[T]) -> Vec<Option<u64>> {
    let bits = |value: &T| (!Element::to_f64(*value).is_nan()).then(|| value.to_bits());
    values.iter().map(bits).collect()
}
