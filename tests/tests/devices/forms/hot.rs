//! Hot columns made on the device: the same entries as in the host's form, so that products are those of the matrix, and
//! sums of integers have the same bits.

use anyhow::{Context, Result, ensure};
use warpfuse::device::Device;
use warpfuse::matrix::Dtype;
use warpfuse::ops::{Matrix, MatrixOptions, Number, Preparation};
use warpfuse::plan::fused::{Forced, Maker, Product, Stored, StoredValues, Strategy};
use warpfuse_tests::cases::Case;
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::sample::{FULL, PLAIN, Sample, Values};

use crate::fused;
use crate::suite::{Suite, Test};

/// Every class of rows, rows longer than all hands hold, rows and columns without entries, more columns than places, and
/// more rows and columns than a chunk has.
const MATRICES: [((usize, usize), Pattern); 9] = [
    ((1, 1), Pattern::PerRow(1)),
    ((300, 90), Pattern::PerRow(7)),
    ((257, 129), Pattern::Zipf(40)),
    ((301, 1_000), Pattern::Giant(900)),
    ((400, 33), Pattern::OneColumn),
    ((31, 700), Pattern::OneFull),
    ((65, 129), Pattern::Empty),
    ((70, 65_537), Pattern::Growing(40)),
    ((4_500, 4_200), Pattern::PerRow(3)),
];

const VALUES: [Values; 5] = [
    Values::Integers,
    Values::Uniform,
    Values::Subnormal,
    Values::Nan,
    Values::Infinity,
];

/// Numbers of a row that other numbers stood in.
type Kind = (&'static str, fn(usize, f64) -> f64);
const KINDS: [Kind; 8] = [
    ("ones", |_, _| 1.0),
    ("equal_subnormals", |_, _| 1e-44),
    ("equal_and_infinite", |_, _| f64::INFINITY),
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

/// Their matrices.
const OF_KINDS: [((usize, usize), Pattern); 3] = [
    ((257, 129), Pattern::Zipf(40)),
    ((301, 1_000), Pattern::Giant(900)),
    ((70, 65_536), Pattern::PerRow(9)),
];

/// Threads of a block of the products.
const EMULATED_BLOCK: u32 = 96;

/// Adds one test for each matrix, kind of numbers and type.
pub fn add(suite: &mut Suite) {
    for (shape, pattern) in MATRICES {
        for values in VALUES {
            let case = Case::new(shape, pattern, values);
            let test = |dtype: Dtype| of_case(&case, format!("hot_making/{case}/{dtype}"));
            suite.add_in_both(
                test,
                move |device| check(device, &case.sample::<f32>(), &[0, 3, u32::MAX]),
                move |device| check(device, &case.sample::<f64>(), &[0, 3, u32::MAX]),
            );
        }
    }
    for (name, value) in KINDS {
        for (shape, pattern) in OF_KINDS {
            let case = Case::new(shape, pattern, Values::Uniform);
            let test = |dtype: Dtype| of_case(&case, format!("hot_making/{name}/{case}/{dtype}"));
            suite.add_in_both(
                test,
                move |device| {
                    let sample = case.sample::<f32>().with_entries(value);
                    check(device, &sample, &[3, u32::MAX])
                },
                move |device| {
                    let sample = case.sample::<f64>().with_entries(value);
                    check(device, &sample, &[3, u32::MAX])
                },
            );
        }
    }
    suite.add(Test::new("hot_making/forms"), forms);
}

/// The CPU prepares nothing.
fn of_case(case: &Case, name: String) -> Test {
    Test::new(name).within(case.subset()).of_entries()
}

/// `sample` with at most this many hot columns, made by one of the two; products are forced to use them.
fn made<T: Number>(
    device: &Device,
    sample: &Sample<T>,
    (most, options): (u32, MatrixOptions),
) -> Result<Matrix<T>> {
    let forced = Forced {
        strategy: Some(Strategy::HotColumns),
        bs: matches!(device, Device::Emulator(_)).then_some(EMULATED_BLOCK),
        ..Forced::default()
    };
    let options = MatrixOptions { forced, ..options };
    let mut matrix = Matrix::with_options(device, sample.features.clone(), options)?;
    let stored = matrix.prepare(Preparation::HotColumns { most: Some(most) })?;
    ensure!(
        device.is_cpu() || stored == Stored::RowsAndHotColumns,
        "stored as {stored}"
    );
    Ok(matrix)
}

fn by(maker: Maker) -> MatrixOptions {
    MatrixOptions {
        maker: Some(maker),
        ..MatrixOptions::default()
    }
}

fn check<T: Number>(device: &Device, sample: &Sample<T>, mosts: &[u32]) -> Result<()> {
    for &most in mosts {
        check_one(device, sample, most).with_context(|| format!("at most {most} hot columns"))?;
    }
    Ok(())
}

fn check_one<T: Number>(device: &Device, sample: &Sample<T>, most: u32) -> Result<()> {
    let matrix = made(device, sample, (most, by(Maker::Device)))?;
    for product in [Product::Fused, Product::Transposed] {
        for parts in [PLAIN, FULL] {
            fused::check(&matrix, sample, product, parts)
                .with_context(|| format!("{product:?} with {parts:?}"))?;
        }
    }
    if !device.is_cpu() {
        let hosts = made(device, sample, (most, by(Maker::Host)))?;
        same(&matrix, &hosts)?;
    }
    Ok(())
}

/// What both say of X, and `Xᵀ·p` of both where all sums are integers.
fn same<T: Number>(found: &Matrix<T>, expected: &Matrix<T>) -> Result<()> {
    let [own, hosts] = [found, expected].map(|x| (x.problem().values, x.problem().columns));
    ensure!(own == hosts, "{own:?} for {hosts:?}");
    if own.1.is_none_or(|columns| columns.cold_columns > 0) {
        return Ok(());
    }
    let p: Vec<T> = (0..found.rows())
        .map(|row| T::from_f64(((row * 37 % 101) as f64 - 50.0) / 64.0))
        .collect();
    let [own, hosts] = [found, expected].map(|x| -> Result<Vec<u64>> {
        let (p, mut w) = (x.device().upload(&p)?, x.device().zeros(x.cols())?);
        x.transposed(&p, &Default::default(), &mut w)?;
        Ok(w.to_vec()?
            .into_iter()
            .map(gpu_kernels::Word::to_bits)
            .collect())
    });
    ensure!(own? == hosts?, "sums of integers have the same bits");
    Ok(())
}

/// Values are stored as they were declared, and rounded once.
fn forms(device: &Device) -> Result<()> {
    use warpfuse::matrix::Values::{Bf16, F32};
    let case = Case::new((300, 90), Pattern::PerRow(7), Values::Uniform);
    let sample = case.sample::<f64>();
    let halved = |value: f64| {
        let bits = (value as f32).to_bits();
        let rounded = bits + 0x7fff + (bits >> 16 & 1);
        f64::from(f32::from_bits(rounded & 0xffff_0000))
    };
    let as_f32 = sample
        .clone()
        .with_entries(|_, value| f64::from(value as f32));
    let as_bf16 = as_f32.clone().with_entries(move |_, value| halved(value));
    for (stored, declared, truth, expected) in [
        (&sample, F32, &as_f32, StoredValues::F32),
        (&as_f32, Bf16, &as_bf16, StoredValues::Bf16),
    ] {
        let options = MatrixOptions {
            values: declared,
            ..by(Maker::Device)
        };
        for most in [20, 90] {
            let matrix = made(device, stored, (most, options))?;
            // Nothing is prepared on the CPU, and nothing rounded.
            let truth = if device.is_cpu() { stored } else { truth };
            fused::check(&matrix, truth, Product::Fused, FULL)?;
            let found = matrix.problem().values;
            ensure!(device.is_cpu() || found == expected, "{found}");
        }
    }
    Ok(())
}
