//! Strategies for sparse X by force, over prepared and other matrices, on what is awkward for them.

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
            for form in FORMS {
                let test = move |dtype: Dtype| {
                    Test::new(format!("{}/{case}/{dtype}", form.strategy)).within(case.subset())
                };
                suite.add_in_both(
                    test,
                    move |device| check::<f32>(device, &case, form),
                    move |device| check::<f64>(device, &case, form),
                );
            }
        }
    }
    suite.add(Test::new("panels/announced"), announced);
}

/// How products are computed.
#[derive(Clone, Copy)]
struct Form {
    strategy: Strategy,
    preparation: Option<Preparation>,
    /// Threads of a block on an emulator, whose lanes are threads of the host.
    emulated_block: u32,
    products: &'static [Product],
}

const FORMS: [Form; 3] = [
    Form {
        strategy: Strategy::PrivateW,
        preparation: None,
        emulated_block: 96,
        products: &[Product::Fused, Product::Transposed],
    },
    Form {
        strategy: Strategy::BalancedDot,
        preparation: None,
        emulated_block: 256,
        products: &[Product::Forward],
    },
    Form {
        strategy: Strategy::StoredTranspose,
        preparation: Some(Preparation::Transpose),
        emulated_block: 256,
        products: &[Product::Fused, Product::Transposed],
    },
];

fn run<T: Number>(device: &Device, case: &Case) -> Result<()> {
    let form = Form {
        strategy: Strategy::Panels,
        preparation: Some(Preparation::Panels),
        emulated_block: 96,
        products: &PRODUCTS,
    };
    check::<T>(device, case, form)
}

/// Nothing, little and everything is hot.
fn run_hot<T: Number>(device: &Device, case: &Case) -> Result<()> {
    for most in [0, 3, u32::MAX] {
        let most = Some(most);
        let form = Form {
            strategy: Strategy::HotColumns,
            preparation: Some(Preparation::HotColumns { most }),
            emulated_block: 96,
            products: &[Product::Fused, Product::Transposed],
        };
        check::<T>(device, case, form).with_context(|| format!("at most {most:?} hot columns"))?;
    }
    Ok(())
}

fn check<T: Number>(device: &Device, case: &Case, form: Form) -> Result<()> {
    let strategy = form.strategy;
    let sample = case.sample::<T>();
    let options = MatrixOptions {
        forced: Forced {
            strategy: Some(strategy),
            bs: matches!(device, Device::Emulator(_)).then_some(form.emulated_block),
            ..Forced::default()
        },
        ..MatrixOptions::default()
    };
    let mut matrix = Matrix::with_options(device, sample.features.clone(), options)?;
    if let Some(preparation) = form.preparation {
        let stored = matrix.prepare(preparation)?;
        ensure!(
            device.is_cpu() == (stored == Stored::Rows),
            "stored as {stored}"
        );
    }
    for &product in form.products {
        if lacks_room(&matrix, (case, strategy), product) {
            continue;
        }
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

/// Whether a copy of w for each vector is more than shared memory has.
fn lacks_room<T: Number>(
    matrix: &Matrix<T>,
    (case, strategy): (&Case, Strategy),
    product: Product,
) -> bool {
    let is_wide = strategy == Strategy::PrivateW && case.cols > 4_096;
    is_wide && matrix.used_plan(product).is_err()
}

/// A small matrix is not worth it, however often it is used once.
fn announced(device: &Device) -> Result<()> {
    let case = Case::new((300, 90), Pattern::PerRow(7), Values::Uniform);
    let mut matrix = Matrix::new(device, case.sample::<f32>().features.clone())?;
    let stored = matrix.prepare(Preparation::For { evaluations: 1 })?;
    ensure!(stored == Stored::Rows, "stored as {stored}");
    Ok(())
}
