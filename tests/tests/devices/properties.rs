//! Random small matrices with random optional parts; a failure is shrunk to the smallest that fails.

use anyhow::{Result, anyhow};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use warpfuse::device::Device;
use warpfuse::ops::{Matrix, Number};
use warpfuse::plan::fused::Product;
use warpfuse_tests::Subset;
use warpfuse_tests::cases::Choices;
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::sample::{Sample, Values};

use super::fused;
use super::suite::{Suite, Test};

/// A problem, small enough to be read when it fails.
#[derive(Debug, Clone)]
struct Problem {
    seed: u64,
    shape: (usize, usize),
    pattern: Pattern,
    values: Values,
    product: Product,
    /// Which of the sixteen choices of optional parts.
    parts: usize,
}

/// Adds both element types.
pub fn add(suite: &mut Suite) {
    suite.add(Test::new("properties/fused/f32"), |device| {
        run::<f32>(device)
    });
    suite.add(Test::new("properties/fused/f64"), |device| {
        run::<f64>(device)
    });
}

fn run<T: Number>(device: &Device) -> Result<()> {
    let cases = match Subset::of(device) {
        Subset::Full => 300,
        Subset::Small => 40,
    };
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    // The same problems in every run; what once failed belongs into the list of cases.
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let outcome = runner.run(&problems(), |problem| {
        let checked = check::<T>(device, &problem);
        checked.map_err(|error| TestCaseError::fail(format!("{error:#}")))
    });
    outcome.map_err(|error| anyhow!("{error}"))
}

fn problems() -> impl Strategy<Value = Problem> {
    let pattern = prop_oneof![
        Just(Pattern::Dense),
        (0..40_usize).prop_map(Pattern::PerRow),
        (0..40_usize).prop_map(Pattern::Growing),
        (1..300_usize).prop_map(Pattern::Giant),
        Just(Pattern::OneFull),
    ];
    let values = select(vec![Values::Integers, Values::Uniform]);
    let product = select(vec![Product::Fused, Product::Forward, Product::Transposed]);
    let shape = (0..140_usize, 0..300_usize);
    (any::<u64>(), shape, pattern, values, product, 0..16_usize).prop_map(
        |(seed, shape, pattern, values, product, parts)| Problem {
            seed,
            shape,
            pattern,
            values,
            product,
            parts,
        },
    )
}

fn check<T: Number>(device: &Device, problem: &Problem) -> Result<()> {
    let Problem {
        seed,
        shape,
        pattern,
        values,
        product,
        parts,
    } = *problem;
    let sample = Sample::<T>::new(seed, shape, pattern, values);
    let matrix = Matrix::new(device, sample.features.clone())?;
    fused::check(&matrix, &sample, product, &Choices::Every.lists()[parts]).map(drop)
}
