//! Cross-validation on one matrix against fits to parts of it, on every device.

use anyhow::{Context, Result, ensure};
use ndarray::{Array1, Array2, Axis};
use warpfuse::device::Device;
use warpfuse::learning::{
    Estimator, Family, FitOptions, Folds, Glm, Labels, Lasso, LinearSvc, LinearSvr,
    LogisticRegression, Model, Penalty, ResidentDataset, Ridge, Targets, cross_validate,
};
use warpfuse::matrix::Features;
use warpfuse::ops::MatrixOptions;
use warpfuse_tests::Subset;
use warpfuse_tests::generate::Random;
use warpfuse_tests::tolerance::Truth;

use super::suite::{self, Suite, Test};

/// Fits stop at gradients of 1e-11 of the first; their scores are this close.
const AGREEMENT: f64 = 1e-7;
const FOLDS: usize = 3;

/// Adds all cases.
pub fn add(suite: &mut Suite) {
    suite.add(
        Test::new("model_selection/numbers/f64").within(Subset::Full),
        numbers,
    );
    suite.add(
        Test::new("model_selection/labels/f64").within(Subset::Full),
        labels,
    );
    suite.add(
        Test::new("model_selection/numbers_together/f64").within(Subset::Full),
        numbers_together,
    );
    suite.add(
        Test::new("model_selection/labels_together/f64").within(Subset::Full),
        labels_together,
    );
    suite.add(
        Test::new("model_selection/warm_start/f64").within(Subset::Full),
        warm_start,
    );
}

struct Sample {
    x: Array2<f64>,
    targets: Vec<f64>,
    weights: Vec<f64>,
}

/// A plane with noise, off the centre, with uneven weights.
fn sample() -> Sample {
    let random = &mut Random::new(17);
    let x = Array2::from_shape_simple_fn((61, 5), || random.signed() + 0.3);
    let plane = Array1::from_shape_simple_fn(5, || random.signed());
    let noisy = (x.dot(&plane) + 1.0).mapv(|t| t + 0.3 * random.signed());
    let weights = (0..61).map(|row| f64::from(1 + row % 3)).collect();
    Sample {
        x,
        targets: noisy.to_vec(),
        weights,
    }
}

/// The rows that are held out or not, of everything.
fn part(all: &Sample, rows: &[usize]) -> Sample {
    let pick = |values: &[f64]| rows.iter().map(|row| values[*row]).collect();
    Sample {
        x: all.x.select(Axis(0), rows),
        targets: pick(&all.targets),
        weights: pick(&all.weights),
    }
}

fn known(sample: &Sample) -> Labels {
    let class = |t: &f64| (t * 1.5).floor().clamp(0.0, 2.0);
    Labels::Numbers(sample.targets.iter().map(class).collect())
}

/// The score of a fit to the rows that a fold leaves in, on those that it holds out, with matrices of their own.
fn apart(device: &Device, all: &Sample, estimator: &Estimator, held_out: &[usize]) -> Result<f64> {
    let kept: Vec<usize> = (0..all.x.nrows())
        .filter(|row| !held_out.contains(row))
        .collect();
    let (train, test) = (part(all, &kept), part(all, held_out));
    let (train_labels, test_labels) = (known(&train), known(&test));
    let (fit, score) = if estimator.is_classifier() {
        (
            Targets::Labels(&train_labels),
            Targets::Labels(&test_labels),
        )
    } else {
        (
            Targets::Numbers(&train.targets[..]),
            Targets::Numbers(&test.targets[..]),
        )
    };
    let options = FitOptions {
        sample_weight: Some(&train.weights),
        ..FitOptions::default()
    };
    let model: Model = estimator.fit_with(device, Features::Dense(train.x), fit, options)?;
    let x = Features::Dense(test.x);
    Ok(model
        .evaluate(device, x, score, Some(&test.weights))?
        .score())
}

fn agree(
    device: &Device,
    targets: Targets<'_, f64>,
    folds: &Folds,
    path: &[Estimator],
) -> Result<()> {
    agree_with(device, targets, folds, path, &|_| {})
}

/// With targets that `change` makes of the sample's.
fn agree_with(
    device: &Device,
    targets: Targets<'_, f64>,
    folds: &Folds,
    path: &[Estimator],
    change: &dyn Fn(&mut Sample),
) -> Result<()> {
    let mut all = sample();
    change(&mut all);
    let x = Features::Dense(all.x.clone());
    let resident = ResidentDataset::new(device, x, MatrixOptions::default())?;
    let mut watched = 0;
    let points = cross_validate(&resident, targets, Some(&all.weights), folds, path, |_| {
        watched += 1;
    })?;
    ensure!(watched == FOLDS * path.len(), "watched {watched} fits");
    for (estimator, point) in path.iter().zip(&points) {
        ensure!(point.converged, "{estimator:?} did not converge");
        for (fold, found) in point.folds.iter().enumerate() {
            let expected = apart(device, &all, estimator, &folds.held_out(fold))?;
            let truth = Truth {
                values: vec![expected],
                bounds: vec![AGREEMENT],
            };
            suite::check(device, "cross-validation", &[found.score()], &truth)
                .with_context(|| format!("fold {fold} of {estimator:?}"))?;
        }
    }
    Ok(())
}

fn numbers(device: &Device) -> Result<()> {
    let path = [
        Estimator::Ridge(Ridge::params().alpha(10.0).tolerance(1e-11)),
        Estimator::Ridge(Ridge::params().alpha(0.1).tolerance(1e-11)),
        Estimator::Lasso(Lasso::params().alpha(0.05).tolerance(1e-11)),
    ];
    let folds = Folds::shuffled(61, FOLDS, 5)?;
    agree(device, Targets::Numbers(&sample().targets), &folds, &path)
}

/// Seven points of three folds: more problems than one read of X serves, of several losses, with and without an l1 penalty.
fn numbers_together(device: &Device) -> Result<()> {
    let poisson = Glm::params().family(Family::Poisson).alpha(0.1);
    let path = [
        Estimator::Ridge(Ridge::params().alpha(10.0).tolerance(1e-11)),
        Estimator::Ridge(Ridge::params().alpha(0.1).tolerance(1e-11)),
        Estimator::Ridge(
            Ridge::params()
                .alpha(1.0)
                .fit_intercept(false)
                .tolerance(1e-11),
        ),
        Estimator::LinearSvr(LinearSvr::params().c(0.5).epsilon(0.1).tolerance(1e-11)),
        Estimator::Lasso(Lasso::params().alpha(0.2).tolerance(1e-11)),
        Estimator::Lasso(Lasso::params().alpha(0.02).tolerance(1e-11)),
        Estimator::Glm(poisson.tolerance(1e-11)),
    ];
    let folds = Folds::shuffled(61, FOLDS, 5)?;
    let positive: Vec<f64> = sample().targets.iter().map(|t| t.abs()).collect();
    agree_with(
        device,
        Targets::Numbers(&positive),
        &folds,
        &path,
        &|sample| sample.targets.iter_mut().for_each(|t| *t = t.abs()),
    )
}

fn two_classes(sample: &mut Sample) {
    let class = |t: &f64| f64::from(u8::from(*t > 1.0));
    sample.targets = sample.targets.iter().map(class).collect();
}

fn labels_together(device: &Device) -> Result<()> {
    let path = [
        Estimator::LogisticRegression(LogisticRegression::params().c(0.1).tolerance(1e-11)),
        Estimator::LogisticRegression(
            LogisticRegression::params()
                .c(5.0)
                .fit_intercept(false)
                .tolerance(1e-11),
        ),
        Estimator::LogisticRegression(
            LogisticRegression::params()
                .penalty(Penalty::ElasticNet { l1_ratio: 0.7 })
                .tolerance(1e-11),
        ),
        Estimator::LinearSvc(LinearSvc::params().c(0.5).tolerance(1e-11)),
    ];
    let mut all = sample();
    two_classes(&mut all);
    let labels = known(&all);
    let (_, codes) = warpfuse::learning::Classes::encode(&labels)?;
    let folds = Folds::stratified(&codes.to_vec(), FOLDS, 5)?;
    agree_with(
        device,
        Targets::Labels(&labels),
        &folds,
        &path,
        &two_classes,
    )
}

fn labels(device: &Device) -> Result<()> {
    let path = [
        Estimator::LogisticRegression(LogisticRegression::params().c(0.1).tolerance(1e-11)),
        Estimator::LogisticRegression(LogisticRegression::params().c(5.0).tolerance(1e-11)),
        Estimator::LinearSvc(LinearSvc::params().c(0.5).tolerance(1e-11)),
    ];
    let labels = known(&sample());
    let (_, codes) = warpfuse::learning::Classes::encode(&labels)?;
    let folds = Folds::stratified(&codes.to_vec(), FOLDS, 5)?;
    agree(device, Targets::Labels(&labels), &folds, &path)
}

/// The same penalty again starts where it ended. Its tolerance is relative to the gradient there, so that some
/// steps are left, but fewer.
fn warm_start(device: &Device) -> Result<()> {
    let all = sample();
    let resident = ResidentDataset::new(
        device,
        Features::Dense(all.x.clone()),
        MatrixOptions::default(),
    )?;
    let once = Estimator::LogisticRegression(LogisticRegression::params().tolerance(1e-6));
    let labels = known(&all);
    let folds = Folds::shuffled(61, FOLDS, 5)?;
    let path = [once.clone(), once];
    let points = cross_validate(
        &resident,
        Targets::Labels(&labels),
        None,
        &folds,
        &path,
        |_| {},
    )?;
    let (cold, warm) = (&points[0].n_iter, &points[1].n_iter);
    let total = |n_iter: &[usize]| n_iter.iter().sum::<usize>();
    ensure!(
        total(warm) < total(cold),
        "{cold:?} iterations, then {warm:?}"
    );
    Ok(())
}
