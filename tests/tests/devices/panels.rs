//! Strategies for sparse X by force, over prepared and other matrices, on what is awkward for them.

use anyhow::{Context, Result, ensure};
use warpfuse::device::Device;
use warpfuse::matrix::{self, Dtype};
use warpfuse::ops::{Matrix, MatrixOptions, Number, Preparation};
use warpfuse::plan::fused::{Forced, Product, Stored, StoredValues, Strategy};
use warpfuse_tests::cases::Case;
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::sample::{FULL, PLAIN, Sample, Values};

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

/// Numbers of a row that other numbers stood in: equal ones, equal ones of a row, and such as need few bits.
type Kind = (&'static str, fn(usize, f64) -> f64);
const KINDS: [Kind; 12] = [
    ("ones", |_, _| 1.0),
    ("equal", |_, _| -0.37),
    ("equal_zeros", |_, _| -0.0),
    ("equal_subnormals", |_, _| 1e-44),
    ("equal_and_huge", |_, _| 1e15),
    ("equal_and_infinite", |_, _| f64::INFINITY),
    ("equal_and_nan", |_, _| f64::NAN),
    ("equal_in_rows", |row, _| 1.0 / (1 + row % 9) as f64),
    ("apart_in_rows", |row, _| [0.0625, 1.0, 64.0][row % 3]),
    (
        "nan_in_a_row",
        |row, _| if row == 3 { f64::NAN } else { 0.7 },
    ),
    ("bfloat16", |_, value| {
        f64::from(f32::from_bits((value as f32).to_bits() & 0xffff_0000))
    }),
    ("f32", |_, value| f64::from(value as f32)),
];

/// Their matrices: every class of rows, rows longer than registers hold, rows without entries, and as many columns as 16
/// bits count.
const OF_KINDS: [((usize, usize), Pattern); 6] = [
    ((300, 90), Pattern::PerRow(7)),
    ((257, 129), Pattern::Zipf(40)),
    ((301, 1_000), Pattern::Giant(900)),
    ((90, 65_534), Pattern::EveryOther(11)),
    ((70, 65_536), Pattern::PerRow(9)),
    ((70, 65_537), Pattern::Growing(40)),
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
                let test = Test::new(format!("hot_columns/{case}/{dtype}"));
                of_form(test.within(case.subset()), values)
            };
            suite.add_in_both(
                test,
                move |device| run_hot::<f32>(device, &case),
                move |device| run_hot::<f64>(device, &case),
            );
            let test =
                |dtype: Dtype| Test::new(format!("sell/{case}/{dtype}")).within(case.subset());
            suite.add_in_both(
                test,
                move |device| run_sell::<f32>(device, &case.sample()),
                move |device| run_sell::<f64>(device, &case.sample()),
            );
            for form in FORMS {
                let test = move |dtype: Dtype| {
                    let test = Test::new(format!("{}/{case}/{dtype}", form.strategy));
                    of_form(test.within(case.subset()), values)
                };
                suite.add_in_both(
                    test,
                    move |device| check::<f32>(device, &case, form),
                    move |device| check::<f64>(device, &case, form),
                );
            }
        }
    }
    for (name, value) in KINDS {
        for (shape, pattern) in OF_KINDS {
            let case = Case::new(shape, pattern, Values::Uniform);
            let test = |dtype: Dtype| {
                let name = format!("hot_columns/{name}/{case}/{dtype}");
                Test::new(name).within(case.subset())
            };
            suite.add_in_both(
                test,
                move |device| run_kind::<f32>(device, &case, value),
                move |device| run_kind::<f64>(device, &case, value),
            );
            let test = |dtype: Dtype| {
                let name = format!("sell/{name}/{case}/{dtype}");
                Test::new(name).within(case.subset())
            };
            suite.add_in_both(
                test,
                move |device| run_sell::<f32>(device, &case.sample().with_entries(value)),
                move |device| run_sell::<f64>(device, &case.sample().with_entries(value)),
            );
        }
    }
    suite.add(Test::new("panels/announced"), announced);
    suite.add(Test::new("hot_columns/forms"), forms);
}

/// The CPU prepares nothing but SELL and has one way for each product, which it goes in `panels` with all kinds of numbers:
/// one kind shows that it takes a form's options.
fn of_form(test: Test, values: Values) -> Test {
    match values {
        Values::Uniform => test,
        _ => test.of_entries(),
    }
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
    check_hot(device, (case, &case.sample::<T>()), &[0, 3, u32::MAX])
}

/// With each of these numbers of hot columns at most; on the CPU, where they change nothing, with one.
fn check_hot<T: Number>(device: &Device, of: (&Case, &Sample<T>), mosts: &[u32]) -> Result<()> {
    let tried = if device.is_cpu() { 1 } else { mosts.len() };
    for &most in &mosts[..tried] {
        check_sample(device, of, hot(most))
            .with_context(|| format!("at most {most} hot columns"))?;
    }
    Ok(())
}

fn hot(most: u32) -> Form {
    Form {
        strategy: Strategy::HotColumns,
        preparation: Some(Preparation::HotColumns { most: Some(most) }),
        emulated_block: 96,
        products: &[Product::Fused, Product::Transposed],
    }
}

/// The CPU's form, which others do not make.
fn run_sell<T: Number>(device: &Device, sample: &Sample<T>) -> Result<()> {
    // With an account of its own.
    let cpu = Device::cpu();
    let device = match device.is_cpu() {
        true => &cpu,
        false => device,
    };
    let mut matrix = Matrix::new(device, sample.features.clone())?;
    let before = device.usage().live_bytes;
    let stored = matrix.prepare(Preparation::Sell)?;
    let is_made = stored == Stored::RowsAndSell;
    ensure!(device.is_cpu() == is_made, "stored as {stored}");
    if !is_made {
        return Ok(());
    }
    let entries = matrix.problem().nnz.unwrap_or(0);
    let held = (device.usage().live_bytes - before) as u64;
    ensure!(held >= 4 * entries, "{held} bytes for {entries} entries");
    for product in PRODUCTS {
        for parts in [PLAIN, FULL] {
            fused::check(&matrix, sample, product, parts)
                .with_context(|| format!("{product:?} with {parts:?}"))?;
        }
    }
    Ok(())
}

fn check<T: Number>(device: &Device, case: &Case, form: Form) -> Result<()> {
    check_sample(device, (case, &case.sample::<T>()), form)
}

/// [`run_hot`] with other numbers.
fn run_kind<T: Number>(device: &Device, case: &Case, value: fn(usize, f64) -> f64) -> Result<()> {
    let sample = case.sample::<T>().with_entries(value);
    check_hot(device, (case, &sample), &[3, u32::MAX])
}

fn check_sample<T: Number>(
    device: &Device,
    (case, sample): (&Case, &Sample<T>),
    form: Form,
) -> Result<()> {
    let strategy = form.strategy;
    let block = form.emulated_block;
    let options = forcing(device, (strategy, block), MatrixOptions::default());
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
            fused::check(&matrix, sample, product, parts)
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

fn forcing(
    device: &Device,
    (strategy, emulated_block): (Strategy, u32),
    options: MatrixOptions,
) -> MatrixOptions {
    let forced = Forced {
        strategy: Some(strategy),
        bs: matches!(device, Device::Emulator(_)).then_some(emulated_block),
        ..Forced::default()
    };
    MatrixOptions { forced, ..options }
}

/// A small matrix is not worth it, however often it is used once.
fn announced(device: &Device) -> Result<()> {
    let case = Case::new((300, 90), Pattern::PerRow(7), Values::Uniform);
    let mut matrix = Matrix::new(device, case.sample::<f32>().features.clone())?;
    let stored = matrix.prepare(Preparation::For { evaluations: 1 })?;
    ensure!(stored == Stored::Rows, "stored as {stored}");
    Ok(())
}

/// Values are stored in as few bits as hold them, or as few as were declared; what was declared is computed with.
fn forms(device: &Device) -> Result<()> {
    let case = Case::new((300, 90), Pattern::PerRow(7), Values::Uniform);
    let sample = case.sample::<f64>();
    let rounded = |value: f64| f64::from(value as f32);
    let halved = |value: f64| {
        let bits = (value as f32).to_bits();
        f64::from(f32::from_bits(
            (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff_0000,
        ))
    };
    let as_f32 = sample.clone().with_entries(|_, value| rounded(value));
    let as_bf16 = sample
        .clone()
        .with_entries(|_, value| halved(rounded(value)));
    let ones = sample.clone().with_entries(|_, _| 1.0);
    use matrix::Values::{Bf16, Exact, F32};
    for (stored, declared, truth, expected) in [
        (&sample, Exact, &sample, StoredValues::Whole),
        (&sample, F32, &as_f32, StoredValues::F32),
        (&as_f32, Exact, &as_f32, StoredValues::F32),
        (&as_f32, Bf16, &as_bf16, StoredValues::Bf16),
        (&as_bf16, Exact, &as_bf16, StoredValues::Bf16),
        (&ones, Bf16, &ones, StoredValues::Equal),
    ] {
        let options = MatrixOptions {
            values: declared,
            ..MatrixOptions::default()
        };
        let mut matrix = Matrix::with_options(device, stored.features.clone(), options)?;
        matrix.prepare(Preparation::HotColumns { most: Some(90) })?;
        matrix.replan(forcing(device, (Strategy::HotColumns, 96), options));
        let truth = match device.is_cpu() {
            // Nothing is prepared there, and nothing rounded.
            true => stored,
            false => truth,
        };
        fused::check(&matrix, truth, Product::Fused, FULL)
            .with_context(|| format!("{declared:?}, {expected}"))?;
        let found = matrix.problem().values;
        ensure!(
            device.is_cpu() || found == expected,
            "{found} for {expected}"
        );
    }
    Ok(())
}
