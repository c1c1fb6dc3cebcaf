//! Products with a sparse X whose most frequent columns are kept apart, how accurate sums of long columns are, and what that
//! means for conjugate gradients in f32.

use anyhow::{Context, Result, ensure};
use warpfuse::device::Device;
use warpfuse::io::synth::{ColumnDistribution, RowLengths, SparseSpec, SparseValues};
use warpfuse::learning::{CgOptions, CgStart, conjugate_gradient};
use warpfuse::matrix::{CsrMatrix, Dataset, Dtype, Element, Features, Storage, csr_from_parts};
use warpfuse::ops::objective::HeadSize;
use warpfuse::ops::{Matrix, MatrixOptions, Number, Preparation, Terms};
use warpfuse::plan::fused::{Maker, Plan, Product, Stored, Summation};
use warpfuse_tests::Subset;
use warpfuse_tests::cases::{self, Case};
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::sample::{Sample, Values};
use warpfuse_tests::tolerance::{Truth, unit_roundoff};

use super::fused::check;
use super::streamed;
use super::suite::{self, Suite, Test};

/// Columns that are kept apart: one, fewer and more than a warp has sums of its own for.
const PLACES: [u32; 3] = [200, 1, 5];

/// Adds products over heads, a few of the small ones on emulators too; long columns; and conjugate gradients.
pub fn add(suite: &mut Suite) {
    let sparse = |case: &Case| case.values == Values::Uniform && case.pattern != Pattern::Dense;
    for (i, case) in cases::all().into_iter().filter(sparse).enumerate() {
        let places = PLACES[i % PLACES.len()];
        let subset = match i % 4 {
            0 => case.subset(),
            _ => Subset::Full,
        };
        let test = |dtype| Test::new(format!("fused/head{places}/{case}/{dtype}")).within(subset);
        suite.add(test("f32"), move |device| run::<f32>(device, &case, places));
        suite.add(test("f64"), move |device| run::<f64>(device, &case, places));
        if case.entries() == 0 || case.rows < 2 {
            continue;
        }
        let subset = match i % 6 {
            1 => case.subset(),
            _ => Subset::Full,
        };
        let test =
            |dtype| Test::new(format!("streamed/head{places}/{case}/{dtype}")).within(subset);
        suite.add_in_both(
            test,
            move |device| run_streamed::<f32>(device, &case, places),
            move |device| run_streamed::<f64>(device, &case, places),
        );
    }
    suite.add(Test::new("fused/long_column/f32"), long_column);
    suite.add(
        Test::new("fused/long_column_reproducible/f32"),
        long_column_reproducible,
    );
    suite.add(Test::new("fused/head_is_prepared/f32"), is_prepared);
    for (name, preconditioned) in [("plain", false), ("diagonal", true)] {
        let test = Test::new(format!("learning/skewed_cg_{name}/f32")).within(Subset::Full);
        suite.add(test, move |device| skewed_cg(device, preconditioned));
    }
}

fn run<T: Number>(device: &Device, case: &Case, places: u32) -> Result<()> {
    let sample = case.sample::<T>();
    let matrix = Matrix::new(device, sample.features.clone())?;
    check_with_head(matrix, &sample, case, places)
}

/// X of which a part stays; all blocks are marked when a pass has come to them.
fn run_streamed<T: Number>(device: &Device, case: &Case, places: u32) -> Result<()> {
    let sample = case.sample::<T>();
    let matrix = streamed::matrix(device, &sample.features, places as usize)?;
    check_with_head(matrix, &sample, case, places)
}

fn check_with_head<T: Number>(
    mut matrix: Matrix<T>,
    sample: &Sample<T>,
    case: &Case,
    places: u32,
) -> Result<()> {
    let told = matrix.tell_head(HeadSize::Places(places))?;
    for product in [Product::Fused, Product::Transposed] {
        if sample.features.nnz() > 0 {
            let plan = matrix.used_plan(product)?;
            ensure!(
                plan.is_some_and(is_headed) == (told > 0),
                "{told} columns kept apart"
            );
        }
        for parts in case.choices.lists() {
            check(&matrix, sample, product, &parts)
                .with_context(|| format!("{product:?} with {parts:?}"))?;
        }
    }
    Ok(())
}

fn is_headed(plan: &Plan) -> bool {
    plan.kernel.contains("_head_")
}

/// Rows of a matrix whose first column is in all of them.
const LONG: usize = 16_384;

/// Ones in the first column of every row, and in one of the others.
fn long<T: Element>(cols: usize) -> CsrMatrix<T> {
    let offsets = (0..=LONG as u64).map(|row| 2 * row).collect();
    let pair = |row: usize| [0, 1 + (row % (cols - 1)) as u32];
    let indices = (0..LONG).flat_map(pair).collect();
    let x = csr_from_parts((LONG, cols), offsets, indices, vec![T::one(); 2 * LONG]);
    x.expect("ascending columns")
}

/// Xᵀ·p of equal elements, whose sums in f32, one after the other, are 1.5·10⁻⁴ beside the truth: every addition rounds to
/// the same side for long.
fn equal_elements(matrix: &Matrix<f32>) -> Result<(f64, f64)> {
    const P: f32 = 0.1;
    let device = matrix.device();
    let (p, mut w) = (device.upload(&vec![P; LONG])?, device.zeros(matrix.cols())?);
    matrix.transposed(&p, &Terms::default(), &mut w)?;
    Ok((f64::from(w.to_vec()?[0]), LONG as f64 * f64::from(P)))
}

/// A sum with a head is a chain of additions in a warp, of the block's warps, and of blocks; each rounds by half a unit at
/// most.
fn long_column(device: &Device) -> Result<()> {
    let mut matrix = Matrix::new(device, Features::Sparse(long::<f32>(9_000)))?;
    matrix.tell_head(HeadSize::Places(1))?;
    let additions = match matrix.used_plan(Product::Transposed)? {
        Some(plan) => {
            ensure!(is_headed(plan), "{plan}");
            let of_warp = plan.c * u64::from(32 / plan.vs);
            of_warp + u64::from(plan.bs / 32) + u64::from(plan.grid)
        }
        // Added in f64, and rounded.
        None => 1,
    };
    let (found, truth) = equal_elements(&matrix)?;
    let bound = additions as f64 * unit_roundoff(Dtype::F32) * truth;
    let truth = Truth {
        values: vec![truth],
        bounds: vec![bound],
    };
    suite::check(device, "long column", &[found as f32], &truth)
}

/// Integers add without rounding. Each addition is rounded by half a unit of m·P·2⁻⁶², P = ½ being 4 times the power of two above
/// the elements: 2⁻⁴⁵ of an element; then the result is rounded.
fn long_column_reproducible(device: &Device) -> Result<()> {
    let options = MatrixOptions {
        summation: Summation::Reproducible,
        ..MatrixOptions::default()
    };
    let matrix = Matrix::with_options(device, Features::Sparse(long::<f32>(9_000)), options)?;
    let (found, truth) = equal_elements(&matrix)?;
    let bound = (2_f64.powi(-45) + unit_roundoff(Dtype::F32)) * truth;
    let truth = Truth {
        values: vec![truth],
        bounds: vec![bound],
    };
    suite::check(device, "long column, reproducible", &[found as f32], &truth)
}

/// A few products that are announced pay for a head, not for a further form.
fn is_prepared(device: &Device) -> Result<()> {
    let to_come = Preparation::For { evaluations: 60 };
    // An emulated H200: what pays depends on how many multiprocessors there are.
    let device = &match device {
        Device::Emulator(emulator) => Device::emulator(*emulator.options()),
        other => other.clone(),
    };
    // Sums of that many columns lie in no block's shared memory.
    let x = Features::Sparse(long::<f32>(200_000));
    // A GPU would make the transpose in less time.
    let options = MatrixOptions {
        maker: Some(Maker::Host),
        ..MatrixOptions::default()
    };
    let matrix = Matrix::prepared(device, x, options, to_come)?;
    ensure!(matrix.problem().stored == Stored::Rows, "a further form");
    if let Some(plan) = matrix.used_plan(Product::Fused)? {
        ensure!(is_headed(plan), "{plan}");
    }
    Ok(())
}

/// λ of the normal equations.
const L2: f64 = 1e-3;
/// Iterations of f32, and those of f64 that leave no smaller an objective. Rounded vectors lose the directions that were found
/// before, so that they are found again: of 100 iterations on the shape of kddb, a hundredth of its rows, 12 are lost. A diagonal
/// preconditioner leaves few such directions.
const ITERATIONS: usize = 30;
const KEPT: usize = 24;
/// What rounding may add to the objective with a preconditioner: 0.3 % were found, 0.8 % on the shape of kddb.
const PRECONDITIONED: f64 = 1.02;

/// Columns by Zipf's law: XᵀX has eigenvalues from 10³ down to λ.
fn skewed<T: Element>() -> Result<Dataset<T>> {
    let spec = SparseSpec {
        rows: 1_000,
        cols: 3_000,
        row_lengths: RowLengths::LogNormal {
            mean: 29.4,
            sigma: 0.3,
        },
        columns: ColumnDistribution::Zipf { exponent: 1.1 },
        values: SparseValues::Ones,
        noise: 0.1,
        seed: 7,
    };
    Ok(spec.generate::<T>()?.dataset)
}

fn skewed_cg(device: &Device, preconditioned: bool) -> Result<()> {
    let found = objective_after::<f32>(device, ITERATIONS, preconditioned)?;
    let reference = |iterations| objective_after::<f64>(&Device::cpu(), iterations, preconditioned);
    let most = match preconditioned {
        true => PRECONDITIONED * reference(ITERATIONS)?,
        false => reference(KEPT)?,
    };
    ensure!(
        found <= most,
        "expected an objective of {most} at most, found {found}"
    );
    Ok(())
}

/// ½‖X·w − t‖² + ½λ‖w‖² after some iterations from w = 0, in f64.
fn objective_after<T: Number>(
    device: &Device,
    iterations: usize,
    preconditioned: bool,
) -> Result<f64> {
    let data = skewed::<T>()?;
    let targets = data.targets.context("synthetic data have targets")?;
    let mut x = Matrix::new(device, data.features)?;
    x.tell_head(HeadSize::Places(500))?;
    let mut residual = device.zeros(x.cols())?;
    let negative = Terms {
        alpha: number::<T>(-1.0),
        ..Terms::default()
    };
    x.transposed(&device.upload(&targets)?, &negative, &mut residual)?;
    let data = skewed::<f64>()?;
    let inverse = |count: f64| number::<T>(1.0 / (count + L2));
    let inverse: Vec<T> = counts(&data.features).into_iter().map(inverse).collect();
    let inverse = preconditioned
        .then(|| device.upload(&inverse))
        .transpose()?;
    let start = CgStart {
        residual,
        inverse_diagonal: inverse,
        means: None,
    };
    let options = CgOptions {
        l2: L2,
        tolerance: 0.0,
        max_iter: iterations,
    };
    let w = conjugate_gradient(&x, start, &options, |_| {})?
        .w
        .to_vec()?;
    let w: Vec<f64> = w.into_iter().map(Element::to_f64).collect();
    objective(data, &w)
}

fn number<T: Element>(value: f64) -> T {
    <T as Element>::from_f64(value)
}

/// Entries of each column, which are ones.
fn counts(features: &Features<f64>) -> Vec<f64> {
    let Storage::Sparse(x) = features.storage() else {
        unreachable!("made sparse");
    };
    let mut counts = vec![0.0; features.cols()];
    for column in x.indices() {
        counts[*column as usize] += 1.0;
    }
    counts
}

fn objective(data: Dataset<f64>, w: &[f64]) -> Result<f64> {
    let device = Device::cpu();
    let targets = data.targets.context("synthetic data have targets")?;
    let x = Matrix::new(&device, data.features)?;
    let mut errors = device.upload(&targets)?;
    let targets = device.upload(&targets)?;
    let terms = Terms {
        addend: Some((-1.0, &targets)),
        ..Terms::default()
    };
    x.forward(&device.upload(w)?, &terms, &mut errors)?;
    let squares = |numbers: &[f64]| numbers.iter().map(|number| number * number).sum::<f64>();
    Ok(0.5 * (squares(&errors.to_vec()?) + L2 * squares(w)))
}
