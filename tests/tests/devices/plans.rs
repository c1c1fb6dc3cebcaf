//! Plans other than the default: the published launch model, and every strategy by force.

use anyhow::{Context, Result, ensure};
use warpfuse::device::Device;
use warpfuse::matrix::Dtype;
use warpfuse::ops::{Matrix, MatrixOptions, Number, candidates};
use warpfuse::plan::fused::{Candidate, Forced, Model, Product, Storage, Strategy, Summation};
use warpfuse_tests::Subset;
use warpfuse_tests::cases::Case;
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::sample::{FULL, PLAIN, Values};

use super::fused::{self, PRODUCTS};
use super::suite::{Suite, Test};

const DENSE: [(usize, usize); 4] = [(150, 28), (19, 129), (13, 300), (4, 1_000)];

/// Rows that start anywhere, in both types.
const SHORT: [(usize, usize); 3] = [(700, 1), (300, 7), (150, 31)];

const LONG: (usize, usize) = (7, 2_500);

/// Rows that a cluster shares, and both types' blocks hold alone.
const SHARED: (usize, usize) = (150, 10_001);

const SPARSE: [((usize, usize), Pattern); 3] = [
    ((200, 300), Pattern::PerRow(9)),
    ((301, 1_000), Pattern::Giant(900)),
    ((150, 90), Pattern::EveryOther(40)),
];

/// More columns than sums of either type that one block of today's devices holds, fewer than a cluster's two do.
const SPREAD: ((usize, usize), Pattern) = ((40, 33_001), Pattern::PerRow(9));

/// More columns than one block's shared memory has floating-point sums for on any device, of either type.
const WIDE: ((usize, usize), Pattern) = ((90, 61_001), Pattern::Growing(120));

/// Of every compiled kernel for the fused product over the rows of a sparse X, and two products.
fn sparse_strategies() -> Vec<Strategy> {
    let kernels = candidates::<f32>("sm_90").into_iter();
    let is_of_rows =
        |kernel: &Candidate| (kernel.product, kernel.storage) == (Product::Fused, Storage::Sparse);
    let of_rows = kernels.filter(is_of_rows).map(|kernel| kernel.strategy);
    let mut strategies: Vec<Strategy> = of_rows.collect();
    strategies.dedup();
    let all = Strategy::ALL.iter().copied();
    let compiled = all.filter(|strategy| strategies.contains(strategy));
    compiled.chain([Strategy::SparseTwoProducts]).collect()
}

/// Adds the published model and the strategies.
pub fn add(suite: &mut Suite) {
    use Strategy::*;
    let dense = |shape| Case::new(shape, Pattern::Dense, Values::Integers);
    for case in DENSE.map(dense) {
        add_case(suite, case, &[DenseRegisters, DenseTwoProducts]);
    }
    for case in SHORT.map(dense) {
        add_case(suite, case, &[DenseTiles]);
    }
    add_case(suite, dense(LONG), &[DenseRing]);
    add_case(suite, dense(SHARED), &[DenseCluster]);
    for case in SPARSE.map(|(shape, pattern)| Case::new(shape, pattern, Values::Integers)) {
        add_case(suite, case, &sparse_strategies());
    }
    let spread = Case::new(SPREAD.0, SPREAD.1, Values::Integers);
    add_case(suite, spread, &[FixedCluster]);
    let wide = Case::new(WIDE.0, WIDE.1, Values::Integers);
    for (strategy, summation) in [
        (EvenShared, Summation::Free),
        (FixedEvenShared, Summation::Reproducible),
    ] {
        let name = move |dtype| {
            let name = format!("plan/windows_{strategy}/{wide}/{dtype}");
            Test::new(name).of_entries()
        };
        suite.add_in_both(
            name,
            move |device| in_windows::<f32>(device, &wide, (strategy, summation)),
            move |device| in_windows::<f64>(device, &wide, (strategy, summation)),
        );
    }
}

fn add_case(suite: &mut Suite, case: Case, strategies: &[Strategy]) {
    let test = |plan: &'static str| {
        move |dtype: Dtype| {
            let name = format!("plan/{plan}/{case}/{dtype}");
            Test::new(name).of_entries().within(case.subset())
        }
    };
    // Fills the device, however little there is to do: emulators get the smallest.
    let filling = |dtype: Dtype| match case.entries() {
        0..=2_500 => test("published")(dtype),
        _ => test("published")(dtype).within(Subset::Full),
    };
    suite.add_in_both(
        filling,
        move |device| published::<f32>(device, &case),
        move |device| published::<f64>(device, &case),
    );
    for &strategy in strategies {
        suite.add_in_both(
            test(strategy.name()),
            move |device| forced::<f32>(device, &case, strategy),
            move |device| forced::<f64>(device, &case, strategy),
        );
    }
}

fn published<T: Number>(device: &Device, case: &Case) -> Result<()> {
    let options = MatrixOptions {
        model: Model::Published,
        ..MatrixOptions::default()
    };
    PRODUCTS
        .iter()
        .try_for_each(|product| run::<T>(device, case, options, *product).map(drop))
}

/// The fused product alone: its halves have one strategy each.
fn forced<T: Number>(device: &Device, case: &Case, strategy: Strategy) -> Result<()> {
    let forced = Forced {
        strategy: Some(strategy),
        ..Forced::default()
    };
    let options = MatrixOptions {
        forced,
        ..MatrixOptions::default()
    };
    if strategy.needs_clusters() && !device.has_clusters() {
        return Ok(());
    }
    let used = run::<T>(device, case, options, Product::Fused)?;
    ensure!(used == Some(strategy), "forced {strategy}, used {used:?}");
    Ok(())
}

/// `Xᵀ·p` with sums of some columns at a time in shared memory.
fn in_windows<T: Number>(
    device: &Device,
    case: &Case,
    (strategy, summation): (Strategy, Summation),
) -> Result<()> {
    let options = MatrixOptions {
        forced: Forced {
            strategy: Some(strategy),
            ..Forced::default()
        },
        summation,
        ..MatrixOptions::default()
    };
    let sample = case.sample::<T>();
    let matrix = Matrix::with_options(device, sample.features.clone(), options)?;
    for parts in [PLAIN, FULL] {
        fused::check(&matrix, &sample, Product::Transposed, parts)
            .with_context(|| format!("{parts:?}"))?;
    }
    let plan = matrix.used_plan(Product::Transposed)?;
    let windows = plan.map(|plan| (plan.strategy, plan.windows));
    ensure!(
        windows.is_none_or(|(used, windows)| used == strategy && windows > 1),
        "expected {strategy} in windows, used {windows:?}"
    );
    Ok(())
}

/// Checks one product, and says by which strategy it was computed.
fn run<T: Number>(
    device: &Device,
    case: &Case,
    options: MatrixOptions,
    product: Product,
) -> Result<Option<Strategy>> {
    let sample = case.sample::<T>();
    let matrix = Matrix::with_options(device, sample.features.clone(), options)?;
    for parts in [PLAIN, FULL] {
        fused::check(&matrix, &sample, product, parts)
            .with_context(|| format!("{product:?} with {parts:?}"))?;
    }
    Ok(matrix.used_plan(product)?.map(|plan| plan.strategy))
}
