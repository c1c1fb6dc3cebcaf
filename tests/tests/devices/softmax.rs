//! Softmax objectives and the products of their Hessians, of every case that there is a kernel for.

use anyhow::{Context, Result, ensure};
use warpfuse::device::Device;
use warpfuse::matrix::{Dtype, Element, Features, Storage};
use warpfuse::ops::objective::{Softmax, SoftmaxOut};
use warpfuse::ops::{Matrix, Number, OpError, Preparation};
use warpfuse::plan::fused::Stored;
use warpfuse::reference::softmax as reference;
use warpfuse_tests::Subset;
use warpfuse_tests::cases::{self, Case};
use warpfuse_tests::generate::Random;
use warpfuse_tests::sample::{Sample, Values};
use warpfuse_tests::tolerance::{Truth, growth, smallest_normal, unit_roundoff};

use super::streamed;
use super::suite::{self, Suite, Test};

/// Around the lanes of a team, and what a lane has several of.
const CLASSES: [usize; 9] = [3, 2, 4, 5, 8, 10, 17, 32, 40];

/// Adds every case of ordinary numbers in both element types, with one number of classes each.
pub fn add(suite: &mut Suite) {
    let ordinary = |case: &Case| case.values == Values::Uniform && case.cols <= 1_025;
    for (i, case) in cases::all().into_iter().filter(ordinary).enumerate() {
        let k = CLASSES[i % CLASSES.len()];
        let subset = subset(&case, k);
        let test = |dtype: Dtype| Test::new(format!("softmax/{case}/k{k}/{dtype}")).within(subset);
        suite.add_in_both(
            test,
            move |device| run::<f32>(device, &case, k),
            move |device| run::<f64>(device, &case, k),
        );
    }
    suite.add(Test::new("softmax/masked_rows/f32"), masked_rows);
    suite.add(Test::new("softmax/overflow/f32"), overflow);
    suite.add(
        Test::new("softmax/lengths_that_differ/f64"),
        refuses_lengths,
    );
}

/// Classes are columns of their own: emulators get the cases with few rows times classes.
fn subset(case: &Case, classes: usize) -> Subset {
    match case.rows * classes {
        0..=5_000 => case.subset(),
        _ => Subset::Full,
    }
}

/// Everything that a softmax objective takes, on the host.
struct Inputs<T> {
    classes: usize,
    y: Vec<T>,
    target: Vec<T>,
    weights: Vec<T>,
    constants: Vec<T>,
}

impl<T: Number> Inputs<T> {
    fn new(features: &Features<T>, classes: usize) -> Self {
        let random = &mut Random::new(78 + classes as u64);
        let shrink = 2.0 / (longest_row(features).max(1) as f64).sqrt();
        let (rows, elements) = (features.rows(), features.cols() * classes);
        let weight = |random: &mut Random| match random.below(5) {
            0 => 0.0,
            _ => random.unit(),
        };
        Inputs {
            classes,
            y: (0..elements)
                .map(|_| number(shrink * random.signed()))
                .collect(),
            target: (0..rows)
                .map(|_| number(random.below(classes) as f64))
                .collect(),
            weights: (0..rows).map(|_| number(weight(random))).collect(),
            constants: (0..classes).map(|_| number(random.signed())).collect(),
        }
    }

    fn reference(&self, all: bool) -> reference::Softmax<'_, T> {
        reference::Softmax {
            classes: self.classes,
            target: &self.target,
            weights: all.then_some(&self.weights),
            constants: all.then_some(&self.constants),
        }
    }
}

fn longest_row<T: Number>(features: &Features<T>) -> usize {
    match features.storage() {
        Storage::Sparse(x) => (0..x.rows())
            .map(|row| x.indptr().nnz_in_outer_sz(row))
            .max()
            .unwrap_or(0),
        Storage::Dense(x) => x.ncols(),
    }
}

/// Sums, XᵀS and probabilities as a device left them.
struct Computed<T> {
    sums: Vec<f64>,
    gradient: Vec<T>,
    probabilities: Vec<T>,
}

fn run<T: Number>(device: &Device, case: &Case, classes: usize) -> Result<()> {
    let sample = case.sample::<T>();
    let mut matrix = Matrix::new(device, sample.features.clone())?;
    check_matrix(&matrix, &sample, classes)?;
    if matrix.prepare(Preparation::Transpose)? != Stored::RowsAndTranspose {
        return Ok(());
    }
    check_matrix(&matrix, &sample, classes).context("by the rows of the transpose")
}

/// The case with an X that streams.
pub fn run_streamed<T: Number>(device: &Device, case: &Case, turn: usize) -> Result<()> {
    let sample = case.sample::<T>();
    let matrix = streamed::matrix(device, &sample.features, turn)?;
    check_matrix(&matrix, &sample, CLASSES[turn % 4])
}

fn check_matrix<T: Number>(matrix: &Matrix<T>, sample: &Sample<T>, classes: usize) -> Result<()> {
    let device = matrix.device();
    if !matrix.has_softmax(classes)? {
        return refuses(matrix, classes);
    }
    let inputs = Inputs::new(&sample.features, classes);
    let unit = unit_roundoff(T::DTYPE);
    let growth = |k| growth(k, unit);
    for all in [false, true] {
        let computed = evaluate(matrix, &inputs, all)?;
        let rows = inputs.reference(all);
        let (values, bounds) = rows.at(&*sample.features, &inputs.y, growth);
        compare(device, "objective", &computed, values, bounds).context("objective")?;
        // The probabilities that a device found are what its curvature is made of.
        let given = match all {
            true => computed.probabilities,
            false => even(matrix.rows(), classes),
        };
        let product = multiply(matrix, &inputs, all, &given)?;
        let (values, bounds) = rows.product(&*sample.features, &given, &inputs.y, growth);
        compare(device, "product", &product, values, bounds).context("product")?;
    }
    Ok(())
}

fn even<T: Number>(rows: usize, classes: usize) -> Vec<T> {
    vec![number(1.0 / classes as f64); rows * classes]
}

/// Uploads what the evaluation takes, and computes it into results that were full of NaN.
fn evaluate<T: Number>(matrix: &Matrix<T>, inputs: &Inputs<T>, all: bool) -> Result<Computed<T>> {
    let device = matrix.device();
    let (weights, constants) = (
        device.upload(&inputs.weights)?,
        device.upload(&inputs.constants)?,
    );
    let softmax = Softmax {
        classes: inputs.classes,
        weights: all.then_some(&weights),
        constants: all.then_some(&constants),
    };
    let (y, target) = (device.upload(&inputs.y)?, device.upload(&inputs.target)?);
    let nan = |len| device.upload(&vec![number::<T>(f64::NAN); len]);
    let mut sums = device.upload(&vec![f64::NAN; 1 + inputs.classes])?;
    let mut gradient = nan(inputs.y.len())?;
    let mut probabilities = nan(matrix.rows() * inputs.classes)?;
    let out = SoftmaxOut {
        sums: &mut sums,
        gradient: &mut gradient,
    };
    let kept = all.then_some(&mut probabilities);
    matrix.softmax_objective(&softmax, &target, &y, out, kept)?;
    Ok(Computed {
        sums: sums.to_vec()?,
        gradient: gradient.to_vec()?,
        probabilities: if all {
            probabilities.to_vec()?
        } else {
            Vec::new()
        },
    })
}

/// The Hessian at `given` times y.
fn multiply<T: Number>(
    matrix: &Matrix<T>,
    inputs: &Inputs<T>,
    all: bool,
    given: &[T],
) -> Result<Computed<T>> {
    let device = matrix.device();
    let (weights, constants) = (
        device.upload(&inputs.weights)?,
        device.upload(&inputs.constants)?,
    );
    let softmax = Softmax {
        classes: inputs.classes,
        weights: all.then_some(&weights),
        constants: all.then_some(&constants),
    };
    let (s, given) = (device.upload(&inputs.y)?, device.upload(given)?);
    let mut sums = device.upload(&vec![f64::NAN; 1 + inputs.classes])?;
    let mut gradient = device.upload(&vec![number::<T>(f64::NAN); inputs.y.len()])?;
    let out = SoftmaxOut {
        sums: &mut sums,
        gradient: &mut gradient,
    };
    matrix.softmax_product(&softmax, &given, &s, out, None)?;
    Ok(Computed {
        sums: sums.to_vec()?,
        gradient: gradient.to_vec()?,
        probabilities: Vec::new(),
    })
}

fn compare<T: Number>(
    device: &Device,
    what: &str,
    computed: &Computed<T>,
    values: reference::SoftmaxResult,
    bounds: reference::SoftmaxResult,
) -> Result<()> {
    let check = |part: &str, found: &[T], values: Vec<f64>, mut bounds: Vec<f64>| {
        bounds
            .iter_mut()
            .for_each(|bound| *bound += smallest_normal(T::DTYPE));
        let truth = Truth { values, bounds };
        suite::check(device, &format!("softmax {what} {part}"), found, &truth)
            .context(part.to_owned())
    };
    let sums = Truth {
        values: values.sums,
        bounds: bounds
            .sums
            .iter()
            .map(|bound| bound + f64::MIN_POSITIVE)
            .collect(),
    };
    let family = format!("softmax {what} sums of {}", T::DTYPE);
    suite::check(device, &family, &computed.sums, &sums).context("sums")?;
    check(
        "gradient",
        &computed.gradient,
        values.gradient,
        bounds.gradient,
    )?;
    if !computed.probabilities.is_empty() {
        let (values, bounds) = (values.probabilities, bounds.probabilities);
        check("probabilities", &computed.probabilities, values, bounds)?;
    }
    Ok(())
}

/// Where there is no kernel the operation says so.
fn refuses<T: Number>(matrix: &Matrix<T>, classes: usize) -> Result<()> {
    let device = matrix.device();
    let (y, target) = (
        device.zeros(matrix.cols() * classes)?,
        device.zeros(matrix.rows())?,
    );
    let (mut sums, mut gradient) = (device.zeros(1 + classes)?, device.zeros(y.len())?);
    let softmax = Softmax {
        classes,
        weights: None,
        constants: None,
    };
    let out = SoftmaxOut {
        sums: &mut sums,
        gradient: &mut gradient,
    };
    let result = matrix.softmax_objective(&softmax, &target, &y, out, None);
    ensure!(
        matches!(result, Err(OpError::NoVariant { .. })),
        "{result:?}"
    );
    Ok(())
}

fn small(rows: usize) -> Features<f32> {
    Features::Dense(ndarray::Array2::from_elem((rows, 2), 1.0))
}

fn objective(
    device: &Device,
    features: Features<f32>,
    (y, target): (&[f32], &[f32]),
    weights: Option<&[f32]>,
) -> Result<Computed<f32>> {
    let matrix = Matrix::new(device, features)?;
    let weights = weights.map(|weights| device.upload(weights)).transpose()?;
    let softmax = Softmax {
        classes: 3,
        weights: weights.as_ref(),
        constants: None,
    };
    let (y, target) = (device.upload(y)?, device.upload(target)?);
    let (mut sums, mut gradient) = (device.zeros(4)?, device.zeros(y.len())?);
    let out = SoftmaxOut {
        sums: &mut sums,
        gradient: &mut gradient,
    };
    matrix.softmax_objective(&softmax, &target, &y, out, None)?;
    Ok(Computed {
        sums: sums.to_vec()?,
        gradient: gradient.to_vec()?,
        probabilities: Vec::new(),
    })
}

/// A row of weight 0 takes no part, though its predictors are not finite.
fn masked_rows(device: &Device) -> Result<()> {
    let Features::Dense(mut x) = small(70) else {
        unreachable!("dense by construction");
    };
    x.row_mut(3).fill(f32::MAX);
    let mut weights = vec![1.0; 70];
    weights[3] = 0.0;
    let (y, target) = (vec![2.0; 6], vec![1.0; 70]);
    let found = objective(device, Features::Dense(x), (&y, &target), Some(&weights))?;
    let finite = found.gradient.iter().all(|g| g.is_finite());
    ensure!(
        finite && found.sums.iter().all(|s| s.is_finite()),
        "{:?}",
        found.sums
    );
    Ok(())
}

/// Predictors whose exponentials would overflow do not show.
fn overflow(device: &Device) -> Result<()> {
    let y = [500.0, -500.0, 0.0, 500.0, -500.0, 0.0];
    let found = objective(device, small(33), (&y, &[1.0; 33]), None)?;
    ensure!(found.sums[0] == 33.0 * 2_000.0, "loss {}", found.sums[0]);
    ensure!(
        found.gradient == [33.0, -33.0, 0.0, 33.0, -33.0, 0.0],
        "{:?}",
        found.gradient
    );
    Ok(())
}

fn refuses_lengths(device: &Device) -> Result<()> {
    let short = objective(device, small(4), (&[0.0; 5], &[0.0; 4]), None);
    ensure!(
        short.is_err(),
        "y of 5 elements for 2 columns and 3 classes"
    );
    let short = objective(device, small(4), (&[0.0; 6], &[0.0; 3]), None);
    ensure!(short.is_err(), "3 targets for 4 rows");
    Ok(())
}

fn number<T: Number>(value: f64) -> T {
    <T as Element>::from_f64(value)
}
