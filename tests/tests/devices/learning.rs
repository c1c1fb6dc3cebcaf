//! Linear regression on every device: scikit-learn's coefficients, awkward columns, prediction.

use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use ndarray::{Array1, Array2, s};
use warpfuse::device::Device;
use warpfuse::learning::{Evaluation, LinearRegression, Model, Regressor, Targets};
use warpfuse::matrix::{Element, Features};
use warpfuse::ops::Number;
use warpfuse::reference::fused::{Terms, forward, forward_magnitude};
use warpfuse_tests::Subset;
use warpfuse_tests::diabetes::{self, CONDITION, Reference, Storage};
use warpfuse_tests::generate::{Pattern, Random, matrix};
use warpfuse_tests::ridge::{Intercept, Ridge, ridge};
use warpfuse_tests::tolerance::{Truth, growth, unit_roundoff};

use super::suite::{self, Suite, Test};

/// The agreement with scikit-learn that is promised for f64.
const AGREEMENT: f64 = 1e-8;

/// Adds all cases.
pub fn add(suite: &mut Suite) {
    for storage in [Storage::Sparse, Storage::Dense] {
        let name = |dtype: &str| format!("learning/diabetes_{storage:?}/{dtype}").to_lowercase();
        suite.add(Test::new(name("f64")), move |device| {
            diabetes_f64(device, storage)
        });
        suite.add(Test::new(name("f32")), move |device| {
            diabetes_f32(device, storage)
        });
    }
    for (name, shape, pattern) in SYNTHETIC {
        let name = format!("learning/cholesky_{name}/f64");
        let test = Test::new(name).within(fit_subset(*shape));
        suite.add(test, move |device| {
            against_cholesky(device, *shape, *pattern)
        });
    }
    suite.add(
        Test::new("learning/duplicate_columns/f64"),
        duplicate_columns,
    );
    suite.add(Test::new("learning/constant_column/f64"), constant_column);
    suite.add(Test::new("learning/zero_column/f64"), zero_column);
    suite.add(Test::new("learning/predict/f32"), predict::<f32>);
    suite.add(Test::new("learning/predict/f64"), predict::<f64>);
}

/// Fits are long for emulators, whose kernels have tests of their own: they get the smallest.
pub fn fit_subset((rows, cols): (usize, usize)) -> Subset {
    if rows * cols <= 1_000 {
        Subset::Small
    } else {
        Subset::Full
    }
}

/// All fits of others, or the first and the last where little is to be run.
fn references(device: &Device) -> Result<Vec<Reference>> {
    let mut all = diabetes::references()?;
    if Subset::of(device) == Subset::Small && all.len() > 2 {
        all.drain(1..all.len() - 1);
    }
    Ok(all)
}

type Shape = (&'static str, (usize, usize), Pattern);

const SYNTHETIC: &[Shape] = &[
    ("tall_dense", (300, 17), Pattern::Dense),
    ("wide_dense", (20, 50), Pattern::Dense),
    ("tall_sparse", (900, 60), Pattern::PerRow(9)),
    ("wide_sparse", (60, 130), Pattern::Zipf(20)),
    ("one_column", (50, 1), Pattern::Dense),
    ("one_row", (1, 4), Pattern::Dense),
];

fn params(l2: f64, intercept: Intercept) -> LinearRegression {
    let fitted = intercept == Intercept::Fitted;
    LinearRegression::params()
        .l2(l2)
        .tolerance(1e-14)
        .max_iter(1000)
        .fit_intercept(fitted)
}

/// As far as `relative` of each true value.
fn near(values: Vec<f64>, relative: f64) -> Truth {
    let bounds = values.iter().map(|value| relative * value.abs()).collect();
    Truth { values, bounds }
}

fn diabetes_f64(device: &Device, storage: Storage) -> Result<()> {
    let data = diabetes::data(storage)?;
    let targets = data.targets.context("the data have targets")?;
    let features = Arc::new(data.features);
    for Reference {
        l2,
        intercept,
        model,
        r2,
        rmse,
    } in references(device)?
    {
        let fit = params(l2, intercept).fit(device, features.clone(), &targets)?;
        let [r2_found, rmse_found] = r2_and_rmse(device, &fit, &features, &targets)?;
        let found = [fit.coef(), &[fit.intercept(), r2_found, rmse_found]].concat();
        let expected = [&model.coef[..], &[model.intercept, r2, rmse]].concat();
        suite::check(
            device,
            "linreg diabetes",
            &found,
            &near(expected, AGREEMENT),
        )
        .with_context(|| format!("λ = {l2}, intercept {intercept:?}, {:?}", fit.report()))?;
        ensure!(
            fit.n_iter() <= 60,
            "{} iterations for 10 unknowns",
            fit.n_iter()
        );
        if device.is_cpu() {
            let again = params(l2, intercept).fit(device, features.clone(), &targets)?;
            ensure!(
                fit.coef() == again.coef(),
                "two fits on the CPU differ in their bits"
            );
        }
    }
    Ok(())
}

fn r2_and_rmse(
    device: &Device,
    fit: &Regressor,
    features: &Arc<Features<f64>>,
    targets: &[f64],
) -> Result<[f64; 2]> {
    let model = Model::Regressor(fit.clone());
    match model.evaluate(device, features.clone(), Targets::Numbers(targets), None)? {
        Evaluation::Regression { summary, .. } => Ok([summary.r2, summary.rmse]),
        Evaluation::Classification(_) => bail!("numbers were predicted"),
    }
}

/// In f32 a product is off by γ of its magnitude, and the solution by the condition number times that:
/// ‖δw‖ ≤ κ · (γ + tolerance) · ‖w‖, to first order.
fn diabetes_f32(device: &Device, storage: Storage) -> Result<()> {
    let data = diabetes::data(storage)?.cast::<f32>()?;
    let targets = data.targets.context("the data have targets")?;
    let features = Arc::new(data.features);
    let tolerance = 1e-6;
    let roundings = features.rows() + features.cols() + 8;
    let relative = CONDITION * (growth(roundings, unit_roundoff(f32::DTYPE)) + tolerance);
    for Reference {
        l2,
        intercept,
        model,
        ..
    } in references(device)?
    {
        let params = params(l2, intercept).tolerance(tolerance);
        let fit = params.fit(device, features.clone(), &targets)?;
        let bound = relative * norm(&model.coef);
        let bounds = vec![bound; model.coef.len()];
        let truth = Truth {
            values: model.coef,
            bounds,
        };
        suite::check(device, "linreg diabetes", &narrow(fit.coef()), &truth)
            .with_context(|| format!("λ = {l2}, intercept {intercept:?}, {:?}", fit.report()))?;
        let truth = near(vec![model.intercept], relative);
        suite::check(
            device,
            "linreg diabetes",
            &narrow(&[fit.intercept()]),
            &truth,
        )
        .context("intercept")?;
    }
    Ok(())
}

fn narrow(values: &[f64]) -> Vec<f32> {
    values.iter().map(|value| *value as f32).collect()
}

fn norm(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum::<f64>().sqrt()
}

/// Targets with a plane and noise in them, and features off the centre.
fn against_cholesky(device: &Device, shape: (usize, usize), pattern: Pattern) -> Result<()> {
    let random = &mut Random::new(11);
    let features = matrix::<f64>(random, shape, pattern, |random| random.signed() + 0.5);
    let dense = features.to_dense()?.into_owned();
    let plane = Array1::from_shape_simple_fn(shape.1, || random.signed());
    let targets = (dense.dot(&plane) + 2.0)
        .mapv(|t| t + 0.1 * random.signed())
        .to_vec();
    let features = Arc::new(features);
    for intercept in [Intercept::Fitted, Intercept::Zero] {
        let expected = ridge(&dense, &targets, 0.7, intercept);
        let fit = params(0.7, intercept).fit(device, features.clone(), &targets)?;
        same_model(device, &fit, &expected).with_context(|| format!("intercept {intercept:?}"))?;
        let most = 4 * shape.0.min(shape.1) + 20;
        ensure!(
            fit.n_iter() <= most,
            "{} iterations, expected at most {most}",
            fit.n_iter()
        );
    }
    Ok(())
}

/// All coefficients as close as the promise, relative to the largest.
fn same_model(device: &Device, fit: &Regressor, expected: &Ridge) -> Result<()> {
    let values = [&expected.coef[..], &[expected.intercept]].concat();
    let bounds = vec![AGREEMENT * norm(&values); values.len()];
    let found = [fit.coef(), &[fit.intercept()]].concat();
    suite::check(
        device,
        "linreg synthetic",
        &found,
        &Truth { values, bounds },
    )
}

/// X with one column replaced, and t = X·(1, 2, 3, 4) + 5 from X as it is then.
fn planted(change: impl Fn(&mut Array2<f64>)) -> (Array2<f64>, Vec<f64>) {
    let random = &mut Random::new(13);
    let mut x = Array2::from_shape_simple_fn((120, 4), || random.signed());
    change(&mut x);
    let targets = x.dot(&Array1::from(vec![1.0, 2.0, 3.0, 4.0])) + 5.0;
    (x, targets.to_vec())
}

fn fit_planted(device: &Device, x: Array2<f64>, targets: &[f64]) -> Result<Regressor> {
    let fit = params(0.0, Intercept::Fitted).tolerance(1e-12);
    let x = Arc::new(Features::Dense(x));
    let fit = fit.fit(device, x.clone(), targets)?;
    let [_, rmse] = r2_and_rmse(device, &fit, &x, targets)?;
    ensure!(
        rmse < AGREEMENT,
        "root mean squared error {rmse:e}, {:?}",
        fit.report()
    );
    Ok(fit)
}

/// By symmetry two equal columns share what one of them would get.
fn duplicate_columns(device: &Device) -> Result<()> {
    let (x, targets) = planted(|x| {
        let first = x.column(0).to_owned();
        x.column_mut(2).assign(&first);
    });
    let fit = fit_planted(device, x, &targets)?;
    let expected = near(vec![2.0, 2.0, 2.0, 4.0], AGREEMENT);
    suite::check(device, "linreg synthetic", fit.coef(), &expected)
}

/// The intercept takes the part of a constant column, or shares it.
fn constant_column(device: &Device) -> Result<()> {
    let (x, targets) = planted(|x| x.column_mut(1).fill(3.0));
    let fit = fit_planted(device, x, &targets)?;
    let total = fit.intercept() + 3.0 * fit.coef()[1];
    let found = [fit.coef()[0], fit.coef()[2], fit.coef()[3], total];
    suite::check(
        device,
        "linreg synthetic",
        &found,
        &near(vec![1.0, 3.0, 4.0, 11.0], AGREEMENT),
    )
}

/// A column of zeros gets the coefficient 0, not NaN.
fn zero_column(device: &Device) -> Result<()> {
    let (x, targets) = planted(|x| x.slice_mut(s![.., 3]).fill(0.0));
    let fit = fit_planted(device, x, &targets)?;
    let found = [fit.coef(), &[fit.intercept()]].concat();
    let expected = near(vec![1.0, 2.0, 3.0, 0.0, 5.0], AGREEMENT);
    suite::check(device, "linreg synthetic", &found, &expected)
}

fn predict<T: Number>(device: &Device) -> Result<()> {
    for storage in [Storage::Sparse, Storage::Dense] {
        let data = diabetes::data(storage)?.cast::<T>()?;
        let targets = data.targets.context("the data have targets")?;
        let features = Arc::new(data.features);
        let fit = params(0.1, Intercept::Fitted).tolerance(1e-5).fit(
            device,
            features.clone(),
            &targets,
        )?;
        let predicted = fit.predict(device, features.clone())?;
        let coef: Vec<T> = fit
            .coef()
            .iter()
            .map(|w| <T as Element>::from_f64(*w))
            .collect();
        let shift = <T as Element>::from_f64(-fit.intercept());
        let one = <T as Element>::from_f64(1.0);
        let terms = Terms {
            shift: Some(shift),
            ..Terms::scaled(one, one)
        };
        let relative = growth(features.cols() + 8, unit_roundoff(T::DTYPE));
        let magnitudes = forward_magnitude(&*features, &coef, &terms);
        let truth = Truth {
            values: forward(&*features, &coef, &terms),
            bounds: magnitudes
                .iter()
                .map(|magnitude| relative * magnitude)
                .collect(),
        };
        suite::check(device, "linreg predict", &predicted, &truth)?;
    }
    Ok(())
}
