//! Reproducible sums: every launch comes to the bits of the CPU.

use std::fmt;

use anyhow::{Context, Result, ensure};
use warpfuse::device::Device;
use warpfuse::matrix::Element;
use warpfuse::ops::{Matrix, MatrixOptions, Number};
use warpfuse::plan::fused::{Forced, Product, Summation};
use warpfuse_tests::cases::Case;
use warpfuse_tests::sample::{FULL, PLAIN, Part, Sample, Values};
use warpfuse_tests::tolerance::Truth;

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

/// Computes all products by all launches, each with no and with all parts by one matrix, which finds its memory used.
pub fn run<T: Number>(device: &Device, case: &Case, launches: &Launches) -> Result<()> {
    let sample = case.sample::<T>();
    let host = matrix(&Device::cpu(), &sample, Forced::default())?;
    for product in PRODUCTS {
        let expected = [PLAIN, FULL].map(|parts| Expected::new(&host, &sample, product, parts));
        let expected = expected.into_iter().collect::<Result<Vec<_>>>()?;
        for forced in (launches.of)(device, product) {
            let matrix = matrix(device, &sample, forced)?;
            if let Err(error) = matrix.used_plan(product) {
                ensure!((launches.may_not_fit)(&forced), error);
                continue;
            }
            for expected in &expected {
                let checked = expected.check(&matrix, &sample);
                checked.with_context(|| format!("{product:?}, {expected}, {forced}"))?;
            }
        }
    }
    Ok(())
}

/// What every launch has to come to.
struct Expected {
    product: Product,
    parts: &'static [Part],
    truth: Truth,
    /// None for a NaN.
    bits: Vec<Option<u64>>,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "with {:?}", self.parts)
    }
}

impl Expected {
    fn new<T: Number>(
        host: &Matrix<T>,
        sample: &Sample<T>,
        product: Product,
        parts: &'static [Part],
    ) -> Result<Expected> {
        Ok(Expected {
            product,
            parts,
            truth: sample.truth(product, &sample.terms(product, parts)),
            bits: bits(&fused::compute(host, sample, product, parts)?),
        })
    }

    fn check<T: Number>(&self, matrix: &Matrix<T>, sample: &Sample<T>) -> Result<()> {
        let computed = fused::compute(matrix, sample, self.product, self.parts)?;
        fused::compare(matrix, sample, self.product, (&computed, &self.truth))?;
        let found = bits(&computed);
        let differs = (0..found.len()).find(|i| found[*i] != self.bits[*i]);
        ensure!(
            differs.is_none(),
            "element {differs:?} has other bits than on the CPU"
        );
        Ok(())
    }
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
