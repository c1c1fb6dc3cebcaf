//! Fixed-point sums: the same bits on every run, grid and device, whatever the numbers.

use anyhow::{Result, ensure};
use warpfuse::device::Device;
use warpfuse::matrix::{CsrMatrix, Dtype, Element, Features, csr_from_parts};
use warpfuse::ops::{Matrix, Number, Terms};
use warpfuse::plan::fused::{Forced, Product, Strategy};
use warpfuse_tests::cases::Case;
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::sample::Values;

use super::same_bits::{Launches, VALUES, options, run};
use super::suite::{Suite, Test};

/// Rows of all lengths, shapes around vectors and blocks.
const MATRICES: [((usize, usize), Pattern); 14] = [
    ((100, 90), Pattern::PerRow(7)),
    ((257, 129), Pattern::Zipf(40)),
    ((101, 1_000), Pattern::Giant(900)),
    ((150, 90), Pattern::EveryOther(60)),
    ((500, 40), Pattern::Growing(20)),
    ((200, 33), Pattern::OneColumn),
    ((31, 700), Pattern::OneFull),
    ((65, 129), Pattern::Empty),
    ((90, 60_000), Pattern::PerRow(7)),
    // As few columns as blocks of a cluster, one fewer, one more.
    ((70, 1), Pattern::PerRow(1)),
    ((70, 2), Pattern::PerRow(2)),
    ((70, 3), Pattern::PerRow(2)),
    // What a cluster of two blocks holds on today's devices, of f32 and of f64.
    ((40, 58_111), Pattern::PerRow(7)),
    ((40, 38_740), Pattern::PerRow(7)),
];

/// Threads of blocks, in turn.
const BLOCKS: [u32; 5] = [256, 96, 64, 128, 32];

/// Of the fused product.
const FUSED_ALONE: [Strategy; 2] = [Strategy::FixedWithY, Strategy::SparseTwoProducts];

/// n words of shared memory are more than some devices have, and some have no clusters.
const LAUNCHES: Launches = Launches {
    of: launches,
    may_not_fit: |forced| !forced.is_empty(),
};

/// Adds one test for each matrix, kind of numbers and type.
pub fn add(suite: &mut Suite) {
    for (shape, pattern) in MATRICES {
        for values in VALUES {
            let case = Case::new(shape, pattern, values);
            let test =
                |dtype: Dtype| Test::new(format!("fixed/{case}/{dtype}")).within(case.subset());
            suite.add_in_both(
                test,
                move |device| run::<f32>(device, &case, &LAUNCHES),
                move |device| run::<f64>(device, &case, &LAUNCHES),
            );
        }
    }
    let test = |dtype: Dtype| Test::new(format!("fixed/columns_of_all_scales/{dtype}"));
    suite.add_in_both(
        test,
        columns_of_all_scales::<f32>,
        columns_of_all_scales::<f64>,
    );
}

/// The planner's own launch, and every strategy in several grids.
fn launches(device: &Device, product: Product) -> Vec<Forced> {
    let mut all = vec![Forced::default()];
    if device.is_cpu() || product == Product::Forward {
        return all;
    }
    let fixed = Strategy::ALL
        .iter()
        .copied()
        .filter(|strategy| strategy.is_fixed());
    let strategies = fixed.chain([Strategy::SparseTwoProducts]);
    for (strategy, bs) in strategies.zip(BLOCKS.into_iter().cycle()) {
        if product == Product::Fused || !FUSED_ALONE.contains(&strategy) {
            all.push(Forced {
                strategy: Some(strategy),
                bs: Some(bs),
                blocks_per_sm: Some(1),
                ..Forced::default()
            });
        }
    }
    all
}

/// Columns times powers of two, y divided by them: w is multiplied by them, to the bit.
fn columns_of_all_scales<T: Number>(device: &Device) -> Result<()> {
    let case = Case::new((200, 60), Pattern::PerRow(9), Values::Uniform);
    let sample = case.sample::<T>();
    let Features::Sparse(x) = &*sample.features else {
        return Ok(());
    };
    let power = |column: usize| f64::powi(2.0, (column as i32 * 7) % 81 - 40);
    let y: Vec<T> = (0..60)
        .map(|j| times(sample.y[j], 1.0 / power(j)))
        .collect();
    let plain = fused_product(device, Features::Sparse(x.clone()), &sample.y)?;
    let scaled = fused_product(device, Features::Sparse(scale(x, power)), &y)?;
    for (j, (scaled, plain)) in scaled.into_iter().zip(plain).enumerate() {
        let expected = times(plain, power(j));
        ensure!(
            scaled.to_bits() == expected.to_bits(),
            "column {j}: {scaled:?}, expected {expected:?}"
        );
    }
    Ok(())
}

fn times<T: Number>(value: T, factor: f64) -> T {
    value * <T as Element>::from_f64(factor)
}

fn scale<T: Number>(x: &CsrMatrix<T>, power: impl Fn(usize) -> f64) -> CsrMatrix<T> {
    let values = x.indices().iter().zip(x.data());
    let values = values.map(|(j, value)| times(*value, power(*j as usize)));
    let offsets = x.proper_indptr().to_vec();
    csr_from_parts(x.shape(), offsets, x.indices().to_vec(), values.collect())
        .expect("the structure of a valid matrix")
}

fn fused_product<T: Number>(device: &Device, x: Features<T>, y: &[T]) -> Result<Vec<T>> {
    let matrix = Matrix::with_options(device, x, options(Forced::default()))?;
    let mut w = device.zeros(y.len())?;
    matrix.fused(&device.upload(y)?, &Terms::default(), &mut w)?;
    Ok(w.to_vec()?)
}
