//! Gradients and Hessians of every loss against central differences of the device's own values.

use anyhow::{Context, Result, ensure};
use ndarray::Array2;
use warpfuse::device::Device;
use warpfuse::matrix::{CsrMatrix, Features};
use warpfuse::ops::Matrix;
use warpfuse::ops::objective::{
    Distribution, Evaluation, Intercept, Link, Loss, ObjectiveOut, ObjectiveSums, Softmax,
    SoftmaxOut,
};
use warpfuse_tests::generate::Random;

use super::suite::{Suite, Test};

const ROWS: usize = 45;
const COLS: usize = 6;
/// The step of a difference, and how near it comes: h² times the third derivative, and roundoff over h.
const STEP: f64 = 1e-5;
const NEAR: f64 = 1e-6;

/// Whether the curvature is the second derivative itself, rather than its expectation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Curvature {
    Exact,
    Expected,
}

/// A link, where predictors lie, and what the curvature is.
type Case = (Link, f64, Curvature);

/// Distributions with their links.
const MODELS: [(Distribution, &[Case]); 6] = {
    use Curvature::{Exact, Expected};
    use Link::{Cloglog, Identity, Inverse, Log, Logit, Power, Probit, Sqrt};
    [
        (
            Distribution::Gaussian,
            &[
                (Identity, 0.0, Exact),
                (Log, 0.0, Expected),
                (Inverse, 2.0, Expected),
            ],
        ),
        (
            Distribution::Binomial,
            &[
                (Logit, 0.0, Exact),
                (Probit, 0.0, Expected),
                (Cloglog, 0.0, Expected),
            ],
        ),
        (
            Distribution::Poisson,
            &[
                (Log, 0.0, Exact),
                (Sqrt, 2.0, Expected),
                (Identity, 2.0, Expected),
            ],
        ),
        (
            Distribution::Gamma,
            &[
                (Inverse, 2.0, Exact),
                (Log, 0.0, Expected),
                (Identity, 2.0, Expected),
            ],
        ),
        (
            Distribution::InverseGaussian,
            &[
                (Power(-2.0), 2.0, Exact),
                (Log, 0.0, Expected),
                (Inverse, 2.0, Expected),
            ],
        ),
        (
            Distribution::Tweedie { power: 1.5 },
            &[
                (Log, 0.0, Expected),
                (Power(-0.5), 2.0, Exact),
                (Sqrt, 2.0, Expected),
            ],
        ),
    ]
};

/// Adds a test per loss.
pub fn add(suite: &mut Suite) {
    let plain = [
        (Loss::Squared, Curvature::Exact),
        (Loss::Logistic, Curvature::Exact),
        // The second derivative jumps where a row meets its margin, which no row here comes near.
        (Loss::SquaredHinge, Curvature::Exact),
        (
            Loss::EpsilonInsensitive { epsilon: 0.125 },
            Curvature::Exact,
        ),
    ];
    for (loss, curvature) in plain {
        add_loss(suite, loss, 0.0, curvature);
    }
    for (distribution, links) in MODELS {
        for &(link, center, curvature) in links {
            add_loss(suite, Loss::Glm { distribution, link }, center, curvature);
        }
    }
    for classes in [3, 10] {
        let test = Test::new(format!("derivatives/softmax_{classes}/f64"));
        suite.add(test, move |device| {
            each_storage(|features| softmax(device, features, classes))
        });
    }
}

fn add_loss(suite: &mut Suite, loss: Loss, center: f64, curvature: Curvature) {
    let name = format!("derivatives/{loss:?}/f64")
        .to_lowercase()
        .replace(' ', "");
    suite.add(Test::new(name), move |device| {
        each_storage(|features| single(device, features, (loss, center), curvature))
    });
}

fn each_storage(check: impl Fn(Features<f64>) -> Result<()>) -> Result<()> {
    let random = &mut Random::new(5);
    let dense = Array2::from_shape_fn((ROWS, COLS), |_| random.signed());
    let offsets = (0..=ROWS as u64).map(|row| 3 * row).collect();
    let first = |row: usize| row % (COLS - 2);
    let indices = (0..3 * ROWS)
        .map(|i| (first(i / 3) + i % 3) as u32)
        .collect();
    let values = (0..3 * ROWS)
        .map(|i| dense[[i / 3, first(i / 3) + i % 3]])
        .collect();
    let sparse = CsrMatrix::new((ROWS, COLS), offsets, indices, values);
    check(Features::Dense(dense)).context("dense")?;
    check(Features::Sparse(sparse)).context("sparse")
}

/// A function with its gradient, by its argument.
type Evaluate<'a> = dyn Fn(&[f64]) -> Result<(f64, Vec<f64>)> + 'a;

/// H·u by u.
type Product<'a> = dyn Fn(&[f64]) -> Result<Vec<f64>> + 'a;

/// Directions `u`, several of them: `g·u` is the slope along u; where there are products, `H·u` is that of g.
fn check(at: &[f64], evaluate: &Evaluate<'_>, product: Option<&Product<'_>>) -> Result<()> {
    let (_, gradient) = evaluate(at)?;
    let random = &mut Random::new(6);
    for turn in 0..3 {
        let u: Vec<f64> = at.iter().map(|_| random.signed()).collect();
        let moved = |h: f64| -> Vec<f64> { at.iter().zip(&u).map(|(x, u)| x + h * u).collect() };
        let (above, below) = (evaluate(&moved(STEP))?, evaluate(&moved(-STEP))?);
        let slope = (above.0 - below.0) / (2.0 * STEP);
        let found: f64 = gradient.iter().zip(&u).map(|(g, u)| g * u).sum();
        let size: f64 = gradient.iter().zip(&u).map(|(g, u)| (g * u).abs()).sum();
        let off = (slope - found).abs();
        ensure!(
            off <= NEAR * (1.0 + size),
            "direction {turn}: slope {found}, difference {slope}"
        );
        let Some(product) = product else { continue };
        let products = product(&u)?;
        let size = products.iter().fold(1.0, |a: f64, b| a.max(b.abs()));
        for (i, found) in products.iter().enumerate() {
            let bent = (above.1[i] - below.1[i]) / (2.0 * STEP);
            let off = (bent - found).abs();
            ensure!(
                off <= NEAR * size,
                "direction {turn}, element {i}: {found}, difference {bent}"
            );
        }
    }
    Ok(())
}

fn target(loss: Loss, random: &mut Random) -> f64 {
    match loss {
        Loss::SquaredHinge => [-1.0, 1.0][random.below(2)],
        Loss::Logistic => random.below(2) as f64,
        Loss::Glm {
            distribution: Distribution::Binomial,
            ..
        } => random.below(5) as f64 / 4.0,
        Loss::Squared | Loss::EpsilonInsensitive { .. } | Loss::Huber { .. } => {
            2.0 * random.signed()
        }
        Loss::Glm { .. } => 0.5 + 2.0 * random.unit(),
    }
}

fn single(
    device: &Device,
    features: Features<f64>,
    (loss, center): (Loss, f64),
    curvature: Curvature,
) -> Result<()> {
    let matrix = Matrix::new(device, features)?;
    let random = &mut Random::new(7);
    let targets: Vec<f64> = (0..ROWS).map(|_| target(loss, random)).collect();
    let target = device.upload(&targets)?;
    let mut at: Vec<f64> = (0..COLS).map(|_| 0.3 * random.signed()).collect();
    at.push(center + 0.1);
    let evaluation = Evaluation {
        intercept: Intercept::Last,
        scale: 0.7,
        ..Evaluation::new(loss, &target)
    };
    let evaluate = |y: &[f64]| -> Result<(f64, Vec<f64>)> {
        let y = device.upload(y)?;
        let (mut sums, mut gradient) = (device.zeros(3)?, device.zeros(COLS + 1)?);
        matrix.objective(&evaluation, &y, ObjectiveOut::new(&mut sums, &mut gradient))?;
        let sums = ObjectiveSums::of(&sums.to_vec()?);
        Ok((sums.loss, gradient.to_vec()?))
    };
    let mut bend = device.zeros(ROWS)?;
    let (mut sums, mut gradient) = (device.zeros(3)?, device.zeros(COLS + 1)?);
    let out = ObjectiveOut {
        curvature: Some(&mut bend),
        ..ObjectiveOut::new(&mut sums, &mut gradient)
    };
    matrix.objective(&evaluation, &device.upload(&at)?, out)?;
    let product = |u: &[f64]| -> Result<Vec<f64>> {
        let (mut sums, mut product) = (device.zeros(3)?, device.zeros(COLS + 1)?);
        let out = ObjectiveOut::new(&mut sums, &mut product);
        matrix.hessian_product(&bend, Intercept::Last, &device.upload(u)?, out)?;
        Ok(product.to_vec()?)
    };
    let exact = curvature == Curvature::Exact;
    check(&at, &evaluate, exact.then_some(&product))
}

fn softmax(device: &Device, features: Features<f64>, classes: usize) -> Result<()> {
    let matrix = Matrix::new(device, features)?;
    let random = &mut Random::new(8);
    let targets: Vec<f64> = (0..ROWS).map(|_| random.below(classes) as f64).collect();
    let target = device.upload(&targets)?;
    let at: Vec<f64> = (0..COLS * classes).map(|_| random.signed()).collect();
    let softmax = Softmax {
        classes,
        weights: None,
        constants: None,
    };
    let mut given = device.zeros(ROWS * classes)?;
    let evaluate = |y: &[f64]| -> Result<(f64, Vec<f64>)> {
        let (mut sums, mut gradient) = (device.zeros(1 + classes)?, device.zeros(y.len())?);
        let out = SoftmaxOut {
            sums: &mut sums,
            gradient: &mut gradient,
        };
        matrix.softmax_objective(&softmax, &target, &device.upload(y)?, out, None)?;
        Ok((sums.to_vec()?[0], gradient.to_vec()?))
    };
    let (mut sums, mut gradient) = (device.zeros(1 + classes)?, device.zeros(at.len())?);
    let out = SoftmaxOut {
        sums: &mut sums,
        gradient: &mut gradient,
    };
    let kept = Some(&mut given);
    matrix.softmax_objective(&softmax, &target, &device.upload(&at)?, out, kept)?;
    let product = |u: &[f64]| -> Result<Vec<f64>> {
        let (mut sums, mut product) = (device.zeros(1 + classes)?, device.zeros(u.len())?);
        let out = SoftmaxOut {
            sums: &mut sums,
            gradient: &mut product,
        };
        matrix.softmax_product(&softmax, &given, &device.upload(u)?, out, None)?;
        Ok(product.to_vec()?)
    };
    check(&at, &evaluate, Some(&product))
}
