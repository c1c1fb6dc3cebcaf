//! Figures that are computed where predictions lie, against those of the host, which come by other formulas.

use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use ndarray::Array2;
use warpfuse::device::Device;
use warpfuse::learning::metrics::{
    Average, ClassificationSummary, ConfusionMatrix, DEVICE_ROWS, Deviance, RegressionSummary,
    ResidentClasses, ResidentTargets, Scores, log_loss,
};
use warpfuse::learning::{
    Estimator, Evaluation, Family, Labels, Link, LogisticRegression, Model, Ridge, Targets,
    Validation,
};
use warpfuse::matrix::{Dtype, Element, Features};
use warpfuse::ops::Number;
use warpfuse::ops::objective::Probabilities;
use warpfuse_tests::Subset;
use warpfuse_tests::generate::Random;
use warpfuse_tests::tolerance::{Truth, growth, unit_roundoff};

use super::suite::{self, Suite, Test};

/// Operations of a row that round, more than enough for two logarithms and three powers.
const OF_A_ROW: usize = 100;

/// Family, link, rows and whether there are weights: around warps, blocks and chunks of rows.
const NUMBERS: [(Family, Link, usize, bool); 10] = [
    (Family::Gaussian, Link::Identity, 1, false),
    (Family::Gaussian, Link::Identity, 2_049, true),
    (Family::Binomial, Link::Logit, 33, false),
    (Family::Poisson, Link::Log, 257, true),
    (Family::Gamma, Link::Inverse, 31, false),
    (Family::InverseGaussian, Link::Power(-2.0), 65, true),
    (Family::Tweedie { power: 1.5 }, Link::Sqrt, 100, false),
    (Family::Poisson, Link::Log, 100_003, false),
    (Family::Tweedie { power: 2.5 }, Link::Log, 200_003, true),
    (Family::Gaussian, Link::Identity, 200_003, false),
];

/// Classes, rows, how they get probabilities, and whether there are weights.
const CLASSES: [(usize, usize, Probabilities, bool); 7] = [
    (2, 1, Probabilities::Softmax, false),
    (2, 2_049, Probabilities::Softmax, true),
    (2, 33, Probabilities::None, false),
    (3, 257, Probabilities::Softmax, false),
    (11, 40, Probabilities::OneVersusRest, true),
    (2, 200_003, Probabilities::Softmax, true),
    (10, 100_001, Probabilities::Softmax, false),
];

/// Adds every case in both element types.
pub fn add(suite: &mut Suite) {
    for case @ (family, _, rows, _) in NUMBERS {
        let name = format!("metrics/{family}/{rows}").replace(' ', "_");
        let test = move |dtype: Dtype| test(format!("{name}/{dtype}"), rows);
        let run = move |device: &Device| numbers::<f32>(device, case);
        suite.add_in_both(test, run, move |device| numbers::<f64>(device, case));
    }
    for case @ (k, rows, ..) in CLASSES {
        let name = format!("metrics/{k}_classes/{rows}");
        let test = move |dtype: Dtype| test(format!("{name}/{dtype}"), rows);
        let run = move |device: &Device| classes::<f32>(device, case);
        suite.add_in_both(test, run, move |device| classes::<f64>(device, case));
    }
    let test = |name| Test::new(format!("metrics/{name}"));
    suite.add(test("nan/f32"), not_numbers::<f32>);
    let models = test("models/f64").within(Subset::Full);
    suite.add(models, models_take_the_device);
}

fn test(name: String, rows: usize) -> Test {
    let subset = if rows > 10_000 {
        Subset::Full
    } else {
        Subset::Small
    };
    Test::new(name).within(subset)
}

fn number<T: Number>(value: f64) -> T {
    <T as Element>::from_f64(value)
}

fn wide<T: Number>(values: &[T]) -> Vec<f64> {
    values.iter().map(|value| Element::to_f64(*value)).collect()
}

/// Weights from 0 to 3, every fifth 0.
fn weights(random: &mut Random, rows: usize) -> Vec<f64> {
    let weight = |row: usize| match row % 5 {
        3 => 0.0,
        _ => 1.5 + 1.5 * random.signed(),
    };
    (0..rows).map(weight).collect()
}

/// A predictor in the domain of the link, its mean, and a target that the family can have.
fn sample<T: Number>(random: &mut Random, family: Family, link: Link) -> (T, f64, T) {
    let u = random.signed();
    let (t, mean): (T, fn(f64) -> f64) = match link {
        Link::Identity => (number(100.0 + u), |t| t),
        Link::Logit => (number(3.0 * u), |t| 1.0 / (1.0 + (-t).exp())),
        Link::Log => (number(u), f64::exp),
        Link::Sqrt => (number(1.5 + u), |t| t * t),
        Link::Inverse => (number(1.5 + u), |t| 1.0 / t),
        _ => (number(1.5 + u), |t| 1.0 / t.sqrt()),
    };
    let noise = random.signed();
    let b = match family {
        Family::Gaussian => 100.0 + noise,
        Family::Binomial => (0.5 + noise).clamp(0.0, 1.0),
        Family::Poisson => (3.0 * noise).round().max(0.0),
        Family::Tweedie { power } if power < 2.0 => noise.max(0.0),
        _ => 1.01 + noise,
    };
    (t, mean(Element::to_f64(t)), number(b))
}

fn numbers<T: Number>(
    device: &Device,
    (family, link, rows, weighted): (Family, Link, usize, bool),
) -> Result<()> {
    let random = &mut Random::new(rows as u64);
    let weights = weighted.then(|| weights(random, rows));
    let drawn = (0..rows).map(|_| sample::<T>(random, family, link));
    let (mut t, mut means, mut b) = (Vec::new(), Vec::new(), Vec::new());
    for (predictor, mean, target) in drawn {
        t.push(predictor);
        means.push(mean);
        b.push(target);
    }
    let (predictors, targets) = (device.upload(&t)?, wide(&b));
    let resident = ResidentTargets::new(device, &b, weights.as_deref())?;
    let found = resident.score(&predictors, family, link)?;
    let again = resident.score(&predictors, family, link)?;
    let same = |a: f64, b: f64| a.to_bits() == b.to_bits();
    ensure!(
        same(found.mean_deviance, again.mean_deviance)
            && same(found.summary.mae, again.summary.mae),
        "two runs differ: {found:?}, {again:?}"
    );
    let weights = weights.as_deref();
    let summary = RegressionSummary::of(&targets, &means, weights)?;
    let deviance = Deviance::from(family);
    let mean_deviance = deviance.mean(&targets, &means, weights)?;
    let explained = deviance.explained(&targets, &means, weights)?;
    let relative = growth(rows.min(20_000) + OF_A_ROW, unit_roundoff(Dtype::F64));
    // Targets, means and the terms of deviances are all of this size at most.
    let size = targets
        .iter()
        .chain(&means)
        .fold(1.0_f64, |size, v| size.max(v.abs()));
    let absolute = relative * size * size;
    // 1 − a / b, of a and b with such errors.
    let share = |one_minus: f64, a: f64| {
        let b = if one_minus == 1.0 {
            1.0
        } else {
            a / (1.0 - one_minus)
        };
        (absolute + absolute * (1.0 - one_minus).abs()) / b.abs().max(f64::MIN_POSITIVE)
    };
    // R² of one sample is not defined, and NaN is never equal to a truth.
    ensure!(
        summary.r2.is_nan() == found.summary.r2.is_nan(),
        "{found:?}"
    );
    let r2 = |summary: &RegressionSummary| match summary.r2.is_nan() {
        true => 0.0,
        false => summary.r2,
    };
    let truth = Truth {
        values: vec![
            summary.mae,
            summary.rmse,
            r2(&summary),
            mean_deviance,
            explained,
        ],
        bounds: vec![
            relative * size,
            absolute / summary.rmse.max(1e-3),
            share(r2(&summary), summary.rmse.powi(2)),
            absolute,
            share(explained, mean_deviance),
        ],
    };
    let computed = [
        found.summary.mae,
        found.summary.rmse,
        r2(&found.summary),
        found.mean_deviance,
        found.explained_deviance,
    ];
    suite::check(device, "metrics of numbers", &computed, &truth)
}

fn classes<T: Number>(
    device: &Device,
    (k, rows, probabilities, weighted): (usize, usize, Probabilities, bool),
) -> Result<()> {
    let random = &mut Random::new((k * rows) as u64);
    let weights = weighted.then(|| weights(random, rows));
    let columns = if k == 2 { 1 } else { k };
    // Some predictors tie, some leave no doubt.
    let draw = |_| number::<T>((random.signed() * 40.0).round() * 0.5);
    let t: Vec<T> = (0..rows * columns).map(draw).collect();
    let codes: Vec<u32> = (0..rows).map(|row| (row * 7 % 13 % k) as u32).collect();
    let resident = ResidentClasses::new(device, &codes, k, weights.as_deref())?;
    let found = resident.score(&device.upload(&t)?, probabilities)?;
    let again = resident.score(&device.upload(&t)?, probabilities)?;
    ensure!(found == again, "two runs differ");
    let decisions = Array2::from_shape_vec((rows, columns), wide(&t))?;
    let predicted: Vec<u32> = decisions.rows().into_iter().map(first_greatest).collect();
    let expected = ConfusionMatrix::of(&codes, &predicted, k, weights.as_deref())?;
    let relative = growth(rows.min(20_000) + OF_A_ROW, unit_roundoff(Dtype::F64));
    let bound = if weighted {
        relative * rows as f64
    } else {
        0.0
    };
    let cells: Vec<f64> = found.confusion.weights().iter().copied().collect();
    let values: Vec<f64> = expected.weights().iter().copied().collect();
    let truth = Truth {
        bounds: vec![bound; values.len()],
        values,
    };
    suite::check(device, "confusion matrix", &cells, &truth)?;
    let f1 = |confusion: &ConfusionMatrix| confusion.scores(Average::Macro).f1;
    ensure!((f1(&found.confusion) - f1(&expected)).abs() <= 1e-9, "F1");
    if probabilities == Probabilities::None {
        ensure!(found.log_loss == 0.0, "no probabilities, no log-loss");
        return Ok(());
    }
    let table = table(&decisions, probabilities);
    let truth = Truth {
        values: vec![log_loss(&codes, table.view(), weights.as_deref())?],
        // No loss is greater than −ln ε; near 1 − ε the logarithm keeps what the probability has.
        bounds: vec![relative * 40.0],
    };
    suite::check(device, "log-loss", &[found.log_loss], &truth)
}

fn first_greatest(row: ndarray::ArrayView1<'_, f64>) -> u32 {
    if row.len() == 1 {
        return u32::from(row[0] > 0.0);
    }
    let greatest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    row.iter().position(|t| *t == greatest).unwrap_or(0) as u32
}

/// Probabilities of classes, from linear predictors.
fn table(decisions: &Array2<f64>, probabilities: Probabilities) -> Array2<f64> {
    let sigmoid = |t: f64| 1.0 / (1.0 + (-t).exp());
    if decisions.ncols() == 1 {
        return Array2::from_shape_fn((decisions.nrows(), 2), |(row, class)| {
            let t = decisions[[row, 0]];
            sigmoid(if class == 1 { t } else { -t })
        });
    }
    let mut table = decisions.clone();
    for mut row in table.rows_mut() {
        let greatest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        row.mapv_inplace(|t| match probabilities {
            Probabilities::OneVersusRest => sigmoid(t),
            _ => (t - greatest).exp(),
        });
        let total = row.sum();
        row.mapv_inplace(|p| p / total);
    }
    table
}

/// A NaN shows in every figure that it takes part in; rows without weight take none.
fn not_numbers<T: Number>(device: &Device) -> Result<()> {
    let t = device.upload(&[number::<T>(1.0), number(f64::NAN), number(2.0)])?;
    let b = [number::<T>(1.0), number(1.0), number(3.0)];
    let all = ResidentTargets::new(device, &b, None)?.score(&t, Family::Poisson, Link::Identity)?;
    let figures = [all.summary.r2, all.summary.mae, all.mean_deviance];
    ensure!(figures.iter().all(|f| f.is_nan()), "{all:?}");
    let two = [1.0, 0.0, 1.0];
    let resident = ResidentTargets::new(device, &b, Some(&two))?;
    let some = resident.score(&t, Family::Poisson, Link::Identity)?;
    ensure!(
        some.summary.mae == 0.5 && !some.mean_deviance.is_nan(),
        "{some:?}"
    );
    // Poisson has no negative mean.
    let outside = device.upload(&[number::<T>(1.0), number(-1.0), number(2.0)])?;
    let score =
        |family| ResidentTargets::new(device, &b, None)?.score(&outside, family, Link::Identity);
    ensure!(score(Family::Poisson)?.mean_deviance.is_nan());
    ensure!(score(Family::Gaussian)?.mean_deviance == 5.0 / 3.0);
    let classes = ResidentClasses::new(device, &[1, 0, 1], 2, None)?;
    ensure!(classes.score(&t, Probabilities::Softmax)?.log_loss.is_nan());
    ensure!(
        ResidentClasses::new(device, &[1, 2], 2, None).is_err(),
        "class 2 of 2"
    );
    Ok(())
}

/// Models of as many rows as are judged on the device have the host's figures, and so has validation.
fn models_take_the_device(device: &Device) -> Result<()> {
    let rows = DEVICE_ROWS;
    let value = |i: usize, j: usize| ((i * 37 + j * 11 + i * j) % 97) as f64 / 48.0 - 1.0;
    let x = Arc::new(Features::Dense(Array2::from_shape_fn(
        (rows, 3),
        |(i, j)| value(i, j),
    )));
    let y: Vec<f64> = (0..rows)
        .map(|i| value(i, 0) - 2.0 * value(i, 2) + 0.3 * value(i * i % 71, 5))
        .collect();
    let near = |found: f64, expected: f64| {
        ensure!(
            (found - expected).abs() <= 1e-9,
            "found {found}, expected {expected}"
        );
        Ok(())
    };

    let ridge = Ridge::params();
    let model = ridge.fit(device, x.clone(), &y)?;
    let expected = RegressionSummary::of(&y, &wide(&model.predict(device, x.clone())?), None)?;
    near(model.score(device, x.clone(), &y)?, expected.r2)?;
    let (estimator, targets) = (Estimator::Ridge(ridge), Targets::Numbers(&y[..]));
    let mut validation = Validation::new(device, x.clone(), &estimator, targets, None)?;
    near(
        validation.score(&[model.coef().to_vec()], &[model.intercept()]),
        expected.r2,
    )?;

    let positive = |y: &f64| f64::from(u8::from(*y > 0.2));
    let labels = Labels::Numbers(y.iter().map(positive).collect());
    let logreg = LogisticRegression::params();
    let model = logreg.fit(device, x.clone(), &labels)?;
    let codes = model.classes().codes(&labels)?;
    let table = model.predict_proba(device, x.clone())?;
    let predicted = model.predict_codes(device, x.clone())?;
    let scores = Scores::Probabilities(table.view());
    let expected = ClassificationSummary::of(&codes, &predicted, 2, scores, None)?;
    near(model.score(device, x.clone(), &labels)?, expected.accuracy)?;
    let found = Model::Classifier(model.clone());
    match found.evaluate(device, x.clone(), Targets::Labels(&labels), None)? {
        Evaluation::Classification(found) => {
            ensure!(found.confusion == expected.confusion, "confusion");
            near(found.auc.unwrap_or(0.0), expected.auc.unwrap_or(1.0))?;
            near(
                found.log_loss.unwrap_or(0.0),
                expected.log_loss.unwrap_or(1.0),
            )?;
        }
        other => bail!("a classifier's figures are {other:?}"),
    }
    let (estimator, targets) = (
        Estimator::LogisticRegression(logreg),
        Targets::Labels(&labels),
    );
    let classes = Some(model.classes());
    let mut validation = Validation::new(device, x, &estimator, targets, classes)?;
    let loss = validation.score(model.coef(), model.intercept());
    near(loss, expected.log_loss.unwrap_or(0.0))
}
