//! Objectives as users call them: the common cases with losses that take turns, all sums and all vectors.

mod refusals;

use anyhow::{Context, Result, ensure};
use warpfuse::device::{Buffer, Device};
use warpfuse::matrix::{Dtype, Element, Features, Storage};
use warpfuse::ops::objective::{
    Distribution, Evaluation, HeadSize, Intercept, Link, Loss, ObjectiveOut, ObjectiveSums,
};
use warpfuse::ops::{Matrix, Number};
use warpfuse::reference::objective as reference;
use warpfuse_tests::Subset;
use warpfuse_tests::cases::{self, Case};
use warpfuse_tests::generate::{Pattern, Random};
use warpfuse_tests::sample::{Sample, Values};
use warpfuse_tests::tolerance::{Truth, growth, smallest_normal, unit_roundoff};

use super::streamed::{self, Repeating};
use super::suite::{self, Suite, Test};

/// One of each kind of evaluation, with predictors around 0 or around 2.
const LOSSES: [(Loss, f64); 15] = [
    (Loss::Squared, 0.0),
    (Loss::Logistic, 0.0),
    (Loss::SquaredHinge, 0.0),
    (Loss::EpsilonInsensitive { epsilon: 0.125 }, 0.0),
    (Loss::Huber { delta: 0.75 }, 0.0),
    (model(Distribution::Poisson, Link::Log), 0.0),
    (model(Distribution::Poisson, Link::Sqrt), 2.0),
    (model(Distribution::Gamma, Link::Inverse), 2.0),
    (model(Distribution::Gamma, Link::Log), 0.0),
    (model(Distribution::InverseGaussian, Link::Power(-2.0)), 2.0),
    (model(Distribution::Tweedie { power: 1.5 }, Link::Log), 0.0),
    (model(Distribution::Binomial, Link::Probit), 0.0),
    (model(Distribution::Binomial, Link::Cloglog), 0.0),
    (model(Distribution::Gaussian, Link::Log), 0.0),
    (model(Distribution::Poisson, Link::Identity), 2.0),
];

/// Losses that each case is tried with, neighbouring cases with others.
const PER_CASE: usize = 1;

const fn model(distribution: Distribution, link: Link) -> Loss {
    Loss::Glm { distribution, link }
}

/// Which optional arguments are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parts {
    /// Target and gradient alone.
    Few,
    /// Weights, offset, the intercept as the last coefficient, β·z, g and d.
    All,
    /// As `All`, with an intercept of its own and without a gradient.
    NoGradient,
}

/// Adds every case of ordinary numbers in both element types.
pub fn add(suite: &mut Suite) {
    let ordinary = |case: &Case| case.values == Values::Uniform;
    for (i, case) in cases::all().into_iter().filter(ordinary).enumerate() {
        for turn in 0..PER_CASE {
            let (loss, center) = LOSSES[(i * PER_CASE + turn) % LOSSES.len()];
            let test = |dtype: Dtype| {
                Test::new(format!("objective/{case}/{}/{dtype}", name(loss))).within(case.subset())
            };
            let of_f32 = move |device: &Device| run::<f32>(device, &case, loss, center);
            let of_f64 = move |device: &Device| run::<f64>(device, &case, loss, center);
            suite.add_in_both(test, of_f32, of_f64);
        }
    }
    add_heads(suite);
    suite.add(Test::new("objective/masked_rows/f32"), masked_rows::<f32>);
    suite.add(
        Test::new("objective/outside_the_domain/f64"),
        refusals::outside_the_domain,
    );
    suite.add(
        Test::new("objective/lengths_that_differ/f64"),
        refusals::refuses_lengths,
    );
}

/// Columns that are told apart: one, fewer and more than a warp has sums of its own for.
const PLACES: [u32; 3] = [200, 1, 5];

/// Sparse matrices whose most frequent columns lie in a head; a few of the small ones on emulators too.
fn add_heads(suite: &mut Suite) {
    let sparse = |case: &Case| case.values == Values::Uniform && case.pattern != Pattern::Dense;
    for (i, case) in cases::all().into_iter().filter(sparse).enumerate() {
        let (loss, center) = LOSSES[i % LOSSES.len()];
        let places = PLACES[i % PLACES.len()];
        let subset = if i % 8 == 0 {
            case.subset()
        } else {
            Subset::Full
        };
        let name = format!("objective/head{places}/{case}/{}", name(loss));
        suite.add_in_both(
            |dtype| Test::new(format!("{name}/{dtype}")).within(subset),
            move |device| run_with_head::<f32>(device, &case, (loss, center), Some(places)),
            move |device| run_with_head::<f64>(device, &case, (loss, center), Some(places)),
        );
    }
}

fn name(loss: Loss) -> String {
    let Loss::Glm { distribution, link } = loss else {
        return format!("{loss:?}").to_lowercase();
    };
    format!("{distribution:?}_{link:?}").to_lowercase()
}

/// Everything that an objective takes, on the host.
struct Inputs<T> {
    y: Vec<T>,
    target: Vec<T>,
    weights: Vec<T>,
    offset: Vec<T>,
    intercept: T,
    scale: T,
    beta: T,
}

impl<T: Number> Inputs<T> {
    /// Predictors lie within 1 of `center`.
    fn new(sample: &Sample<T>, loss: Loss, center: f64) -> Self {
        let random = &mut Random::new(77);
        let rows = sample.weights.len();
        let longest = longest_row(&sample.features).max(1) as f64;
        let mut draw = |value: &mut dyn FnMut(&mut Random) -> f64| -> Vec<T> {
            (0..rows).map(|_| number(value(random))).collect()
        };
        let shrink = |y: &T| number(Element::to_f64(*y) * 0.75 / longest.sqrt().min(longest));
        let y: Vec<T> = sample.y.iter().map(shrink).collect();
        Inputs {
            target: draw(&mut |random| target(loss, random)),
            weights: draw(&mut |random| {
                if random.below(5) == 0 {
                    0.0
                } else {
                    random.unit()
                }
            }),
            offset: draw(&mut |random| 0.125 * random.signed()),
            intercept: number(center + 0.0625),
            scale: number(0.75),
            beta: sample.beta,
            y,
        }
    }

    /// As the reference takes them.
    fn evaluation(&self, loss: Loss, parts: Parts) -> reference::Evaluation<'_, T> {
        let all = parts != Parts::Few;
        reference::Evaluation {
            loss,
            target: Some(&self.target),
            weights: all.then_some(&self.weights),
            offset: all.then_some(&self.offset),
            intercept: Element::to_f64(self.intercept),
            scale: if all {
                Element::to_f64(self.scale)
            } else {
                1.0
            },
        }
    }
}

fn longest_row<T>(features: &Features<T>) -> usize
where
    T: Number,
{
    match features.storage() {
        Storage::Sparse(x) => (0..x.rows())
            .map(|row| x.indptr().nnz_in_outer_sz(row))
            .max()
            .unwrap_or(0),
        Storage::Dense(x) => x.ncols(),
    }
}

/// A target that suits the loss.
fn target(loss: Loss, random: &mut Random) -> f64 {
    match loss {
        Loss::SquaredHinge => [-1.0, 1.0][random.below(2)],
        Loss::Logistic => random.below(2) as f64,
        Loss::Glm {
            distribution: Distribution::Binomial,
            ..
        } => random.below(5) as f64 / 4.0,
        Loss::Glm {
            distribution: Distribution::Poisson,
            ..
        } => random.below(5) as f64,
        Loss::Squared | Loss::EpsilonInsensitive { .. } | Loss::Huber { .. } => {
            2.0 * random.signed()
        }
        Loss::Glm { .. } => 0.5 + 2.0 * random.unit(),
    }
}

fn run<T: Number>(device: &Device, case: &Case, loss: Loss, center: f64) -> Result<()> {
    run_with_head::<T>(device, case, (loss, center), None)
}

/// The case with an X that streams, a sparse one with a head in every other turn.
pub fn run_streamed<T: Number>(device: &Device, case: &Case, turn: usize) -> Result<()> {
    let (sample, (loss, center)) = (case.sample::<T>(), LOSSES[turn % LOSSES.len()]);
    let inputs = Inputs::new(&sample, loss, center);
    let mut matrix = streamed::matrix(device, &sample.features, turn)?;
    if turn % 2 == 1 {
        matrix.tell_head(HeadSize::Places(3))?;
    }
    check_matrix(&matrix, &sample, (loss, center))?;
    let bits = |x: &Matrix<T>| Ok(compute(x, &inputs, loss, Parts::Few)?.bits());
    Repeating::new(device, &sample.features, turn)?.same_bits(bits)
}

fn run_with_head<T: Number>(
    device: &Device,
    case: &Case,
    (loss, center): (Loss, f64),
    places: Option<u32>,
) -> Result<()> {
    let sample = case.sample::<T>();
    let mut matrix = Matrix::new(device, sample.features.clone())?;
    if let Some(places) = places {
        let told = matrix.tell_head(HeadSize::Places(places))?;
        let plan = matrix.objective_plan(loss)?;
        let has_head = plan.is_some_and(|plan| plan.kernel.contains("_head_"));
        ensure!(has_head == (told > 0), "{told} columns told apart");
    }
    check_matrix(&matrix, &sample, (loss, center))
}

fn check_matrix<T: Number>(
    matrix: &Matrix<T>,
    sample: &Sample<T>,
    (loss, center): (Loss, f64),
) -> Result<()> {
    let device = matrix.device();
    let inputs = Inputs::new(sample, loss, center);
    for parts in [Parts::Few, Parts::All, Parts::NoGradient] {
        let computed =
            compute(matrix, &inputs, loss, parts).with_context(|| format!("{parts:?}"))?;
        compare(matrix, sample, &inputs, (loss, parts), &computed)
            .with_context(|| format!("{parts:?}"))?;
        if device.is_cpu() {
            let again = compute(matrix, &inputs, loss, parts)?;
            ensure!(
                computed.bits() == again.bits(),
                "two runs differ in their bits"
            );
        }
    }
    Ok(())
}

/// What an evaluation left; empty where it was not requested.
struct Computed<T> {
    sums: Vec<f64>,
    gradient: Vec<T>,
    residual: Vec<T>,
    curvature: Vec<T>,
}

impl<T: Number> Computed<T> {
    fn bits(&self) -> Vec<u64> {
        let vectors = [&self.gradient, &self.residual, &self.curvature];
        let bits = vectors
            .into_iter()
            .flatten()
            .map(|value| gpu_kernels::Word::to_bits(*value));
        self.sums
            .iter()
            .map(|sum| sum.to_bits())
            .chain(bits)
            .collect()
    }
}

/// Uploads what the evaluation takes, and computes it into results that were full of NaN.
fn compute<T: Number>(
    matrix: &Matrix<T>,
    inputs: &Inputs<T>,
    loss: Loss,
    parts: Parts,
) -> Result<Computed<T>> {
    let device = matrix.device();
    let (all, last) = (parts != Parts::Few, parts == Parts::All);
    let mut y = inputs.y.clone();
    y.extend(last.then_some(inputs.intercept));
    let z = device.upload(&y)?;
    let y = device.upload(&y)?;
    let target = device.upload(&inputs.target)?;
    let weights = device.upload(&inputs.weights)?;
    let offset = device.upload(&inputs.offset)?;
    let intercept = device.upload(&[inputs.intercept])?;
    let nan = |len| device.upload(&vec![number::<T>(f64::NAN); len]);
    let mut sums = device.upload(&[f64::NAN; ObjectiveSums::LEN])?;
    let mut gradient = nan(y.len())?;
    let (mut residual, mut curvature) = (nan(matrix.rows())?, nan(matrix.rows())?);
    let evaluation = Evaluation {
        weights: all.then_some(&weights),
        offset: all.then_some(&offset),
        intercept: if last {
            Intercept::Last
        } else {
            Intercept::Given(&intercept)
        },
        scale: if all { inputs.scale } else { number(1.0) },
        ..Evaluation::new(loss, &target)
    };
    let out = ObjectiveOut {
        sums: &mut sums,
        gradient: (parts != Parts::NoGradient).then_some(&mut gradient),
        addend: all.then_some((inputs.beta, &z)),
        residual: all.then_some(&mut residual),
        curvature: all.then_some(&mut curvature),
        solve: None,
    };
    if parts == Parts::NoGradient {
        matrix.objective(
            &evaluation,
            &y,
            ObjectiveOut {
                addend: None,
                ..out
            },
        )?;
        gradient = device.zeros(0)?;
    } else {
        matrix.objective(&evaluation, &y, out)?;
    }
    let filled = |vector: &Buffer<T>| if all { vector.to_vec() } else { Ok(Vec::new()) };
    Ok(Computed {
        sums: sums.to_vec()?,
        gradient: gradient.to_vec()?,
        residual: filled(&residual)?,
        curvature: filled(&curvature)?,
    })
}

fn compare<T: Number>(
    matrix: &Matrix<T>,
    sample: &Sample<T>,
    inputs: &Inputs<T>,
    (loss, parts): (Loss, Parts),
    computed: &Computed<T>,
) -> Result<()> {
    let evaluation = inputs.evaluation(loss, parts);
    let unit = unit_roundoff(T::DTYPE);
    let mut truth = evaluation.at(&*sample.features, &inputs.y);
    let mut bounds = evaluation.bounds(&*sample.features, &inputs.y, |k| growth(k, unit));
    if parts == Parts::All {
        truth.gradient.push(truth.sums[1]);
        bounds.gradient.push(bounds.sums[1]);
        let beta = Element::to_f64(inputs.beta);
        let z = inputs
            .y
            .iter()
            .chain([&inputs.intercept])
            .map(|z| beta * Element::to_f64(*z));
        for ((value, bound), z) in truth.gradient.iter_mut().zip(&mut bounds.gradient).zip(z) {
            *value += z;
            *bound += growth(4, unit) * (z.abs() + value.abs());
        }
    }
    let storage = if sample.features.is_sparse() {
        "sparse"
    } else {
        "dense"
    };
    let check = |what: &str, found: &[T], values: Vec<f64>, mut bounds: Vec<f64>| {
        bounds
            .iter_mut()
            .for_each(|bound| *bound += smallest_normal(T::DTYPE));
        let family = format!("{storage} objective {what}");
        suite::check(matrix.device(), &family, found, &Truth { values, bounds })
            .context(what.to_owned())
    };
    let (values, bounds_of_sums) = (truth.sums.to_vec(), bounds.sums.to_vec());
    let family = format!("{storage} objective sums of {}", T::DTYPE);
    let sums = Truth {
        values,
        bounds: bounds_of_sums,
    };
    suite::check(matrix.device(), &family, &computed.sums, &sums).context("sums")?;
    if parts != Parts::NoGradient {
        check(
            "gradient",
            &computed.gradient,
            truth.gradient,
            bounds.gradient,
        )?;
    }
    if parts != Parts::Few {
        check(
            "residual",
            &computed.residual,
            truth.residual,
            bounds.residual,
        )?;
        check(
            "curvature",
            &computed.curvature,
            truth.curvature,
            bounds.curvature,
        )?;
    }
    Ok(())
}

/// A row of weight 0 takes no part, though its predictor lies outside the domain.
fn masked_rows<T: Number>(device: &Device) -> Result<()> {
    let mut dense = ndarray::Array2::from_elem((70, 37), number::<T>(0.5));
    dense.row_mut(3).fill(number(-2.0));
    let values = [-1.0, -4.0, 1.0, 2.0].map(number::<T>).to_vec();
    let sparse = warpfuse::matrix::csr_from_parts((2, 3), vec![0, 2, 4], vec![0, 2, 0, 1], values)?;
    for (features, masked) in [(Features::Dense(dense), 3), (Features::Sparse(sparse), 0)] {
        let matrix = Matrix::new(device, features)?;
        let mut weights = vec![number::<T>(1.0); matrix.rows()];
        weights[masked] = number(0.0);
        let ones = |len| device.upload(&vec![number::<T>(1.0); len]);
        let (target, weights, y) = (
            ones(matrix.rows())?,
            device.upload(&weights)?,
            ones(matrix.cols())?,
        );
        let (mut sums, mut gradient) = (device.zeros(3)?, device.zeros(matrix.cols())?);
        let loss = model(Distribution::Poisson, Link::Identity);
        let evaluation = Evaluation {
            weights: Some(&weights),
            ..Evaluation::new(loss, &target)
        };
        matrix.objective(&evaluation, &y, ObjectiveOut::new(&mut sums, &mut gradient))?;
        ensure!(
            sums.to_vec()?.iter().all(|sum| sum.is_finite()),
            "sums of {matrix:?}"
        );
        let finite = gradient
            .to_vec()?
            .iter()
            .all(|w| Element::to_f64(*w).is_finite());
        ensure!(finite, "gradient of {matrix:?}");
    }
    Ok(())
}

fn number<T: Number>(value: f64) -> T {
    <T as Element>::from_f64(value)
}
