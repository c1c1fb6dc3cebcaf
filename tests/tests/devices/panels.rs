//! Prepared matrices: products over panels and with hot columns, on what is awkward for them.

use anyhow::{Context, Result, ensure};
use warpfuse::device::Device;
use warpfuse::matrix::Dtype;
use warpfuse::ops::{Matrix, MatrixOptions, Number, Preparation};
use warpfuse::plan::fused::{Forced, Product, Stored, Strategy};
use warpfuse_tests::cases::Case;
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::sample::{FULL, PLAIN, Values};

use super::fused::{self, PRODUCTS};
use super::suite::{Suite, Test};

/// Several panels of rows and of columns, chunks that are not full, inputs out of reach of 16 bits.
const MATRICES: [((usize, usize), Pattern); 10] = [
    ((1, 1), Pattern::PerRow(1)),
    ((300, 90), Pattern::PerRow(7)),
    ((257, 129), Pattern::Zipf(40)),
    ((301, 1_000), Pattern::Giant(900)),
    ((500, 40), Pattern::Growing(20)),
    ((400, 33), Pattern::OneColumn),
    ((31, 700), Pattern::OneFull),
    ((65, 129), Pattern::Empty),
    ((90, 200_000), Pattern::PerRow(7)),
    ((70_000, 300), Pattern::EveryOther(3)),
];

const VALUES: [Values; 7] = [
    Values::Integers,
    Values::Uniform,
    Values::Huge,
    Values::Tiny,
    Values::Subnormal,
    Values::Nan,
    Values::Infinity,
];

/// Adds one test for each matrix, kind of numbers and type.
pub fn add(suite: &mut Suite) {
    for (shape, pattern) in MATRICES {
        for values in VALUES {
            let case = Case::new(shape, pattern, values);
            let test =
                |dtype: Dtype| Test::new(format!("panels/{case}/{dtype}")).within(case.subset());
            suite.add_in_both(
                test,
                move |device| run::<f32>(device, &case),
                move |device| run::<f64>(device, &case),
            );
            let test = |dtype: Dtype| {
                Test::new(format!("hot_columns/{case}/{dtype}")).within(case.subset())
            };
            suite.add_in_both(
                test,
                move |device| run_hot::<f32>(device, &case),
                move |device| run_hot::<f64>(device, &case),
            );
        }
    }
    suite.add(Test::new("panels/announced"), announced);
}

fn run<T: Number>(device: &Device, case: &Case) -> Result<()> {
    check::<T>(
        device,
        case,
        (Strategy::Panels, Preparation::Panels),
        &PRODUCTS,
    )
}

/// Nothing, little and everything is hot.
fn run_hot<T: Number>(device: &Device, case: &Case) -> Result<()> {
    for most in [0, 3, u32::MAX] {
        let most = Some(most);
        check::<T>(
            device,
            case,
            (Strategy::HotColumns, Preparation::HotColumns { most }),
            &[Product::Fused, Product::Transposed],
        )
        .with_context(|| format!("at most {most:?} hot columns"))?;
    }
    Ok(())
}

fn check<T: Number>(
    device: &Device,
    case: &Case,
    (strategy, preparation): (Strategy, Preparation),
    products: &[Product],
) -> Result<()> {
    let sample = case.sample::<T>();
    let options = MatrixOptions {
        forced: Forced {
            strategy: Some(strategy),
            // Lanes of an emulator are threads of the host.
            bs: matches!(device, Device::Emulator(_)).then_some(96),
            ..Forced::default()
        },
        ..MatrixOptions::default()
    };
    let mut matrix = Matrix::with_options(device, sample.features.clone(), options)?;
    let stored = matrix.prepare(preparation)?;
    ensure!(
        device.is_cpu() == (stored == Stored::Rows),
        "stored as {stored}"
    );
    for &product in products {
        for parts in [PLAIN, FULL] {
            fused::check(&matrix, &sample, product, parts)
                .with_context(|| format!("{product:?} with {parts:?}"))?;
        }
        if let Some(plan) = matrix.used_plan(product)? {
            ensure!(plan.strategy == strategy, "{}", plan.strategy);
        }
    }
    Ok(())
}

/// A small matrix is not worth it, however often it is used once.
fn announced(device: &Device) -> Result<()> {
    let case = Case::new((300, 90), Pattern::PerRow(7), Values::Uniform);
    let mut matrix = Matrix::new(device, case.sample::<f32>().features.clone())?;
    let stored = matrix.prepare(Preparation::For { evaluations: 1 })?;
    ensure!(stored == Stored::Rows, "stored as {stored}");
    Ok(())
}
