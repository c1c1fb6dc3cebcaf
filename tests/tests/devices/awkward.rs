//! Data that have no solution, more than one, or none that is finite, for every estimator: a defined result or a clear
//! error. And what fits may be given besides: other solvers, scaled columns, masks, starts.

use std::collections::HashSet;
use std::mem::discriminant;

use anyhow::{Result, ensure};
use ndarray::Array2;
use warpfuse::device::Device;
use warpfuse::learning::{
    ElasticNet, Estimator, Family, FitError, FitOptions, Glm, Huber, Labels, Lasso,
    LinearRegression, LinearSvc, LinearSvr, LogisticRegression, Model, Penalty, Quantile, Ridge,
    RidgeClassifier, Solver, Targets,
};
use warpfuse::matrix::Features;
use warpfuse::ops::{Matrix, MatrixOptions, Number};
use warpfuse::plan::fused::Summation;
use warpfuse_tests::Subset;
use warpfuse_tests::generate::Random;

use super::suite::{Suite, Test};

/// A test of one estimator on a device.
type Run = fn(&Device, &Estimator) -> Result<()>;

/// Adds every kind of data for every estimator.
pub fn add(suite: &mut Suite) {
    let cases: [(&str, Run); 12] = [
        ("constant_column", constant_column),
        ("duplicate_columns", duplicate_columns),
        ("wide", wide),
        ("no_rows", no_rows),
        ("no_columns", no_columns),
        ("not_a_number", not_a_number),
        ("infinite", infinite),
        ("one_row_or_class", one_class),
        ("weight_on_one_row", weight_on_one_row),
        ("masked_column", masked_column),
        ("warm_start", warm_start),
        ("standardised", standardised),
    ];
    for (name, estimator) in estimators() {
        for (what, run) in cases {
            let estimator = estimator.clone();
            let test = Test::new(format!("awkward/{name}_{what}/f64"));
            suite.add(test, move |device| run(device, &estimator));
        }
    }
    suite.add(Test::new("awkward/lbfgs_agrees_with_newton/f64"), lbfgs);
    let many_classes = Test::new("awkward/more_classes_than_one_pass_takes/f64");
    suite.add(many_classes.within(Subset::Full), many_classes_agree);
    suite.add(Test::new("awkward/reproducible/f32"), reproducible);
}

fn estimators() -> Vec<(&'static str, Estimator)> {
    let logreg_l1 = LogisticRegression::params().penalty(Penalty::L1);
    let poisson = Glm::params().family(Family::Poisson).alpha(0.1);
    let gamma = Glm::params().family(Family::Gamma).alpha(0.1);
    let all: [(&str, Estimator); 13] = [
        ("linreg", LinearRegression::params().l2(0.5).into()),
        ("ridge", Ridge::params().alpha(0.5).into()),
        ("lasso", Lasso::params().alpha(0.05).into()),
        ("elasticnet", ElasticNet::params().alpha(0.05).into()),
        ("logreg", LogisticRegression::params().into()),
        ("logreg_l1", logreg_l1.into()),
        ("poisson", poisson.into()),
        ("gamma", gamma.into()),
        ("svc", LinearSvc::params().into()),
        ("ridge_classifier", RidgeClassifier::params().into()),
        ("svr", LinearSvr::params().into()),
        ("huber", Huber::params().alpha(5.0).into()),
        ("quantile", Quantile::params().alpha(0.1).into()),
    ];
    let kinds = all.iter().map(|(_, estimator)| discriminant(estimator));
    let kinds: HashSet<_> = kinds.collect();
    assert_eq!(
        kinds.len(),
        Estimator::all().len(),
        "an estimator is missing here"
    );
    all.map(|(name, estimator)| (name, estimator.tolerance(1e-10)))
        .into()
}

/// Numbers that every family takes, or labels of three classes.
struct Known {
    numbers: Vec<f64>,
    labels: Labels,
}

impl Known {
    fn new(rows: usize) -> Known {
        let of = |row: usize| (row * 7 % 11 % 3) as f64;
        Known {
            numbers: (0..rows)
                .map(|row| 0.5 + of(row) + 0.1 * (row % 5) as f64)
                .collect(),
            labels: Labels::Numbers((0..rows).map(of).collect()),
        }
    }

    fn targets(&self, estimator: &Estimator) -> Targets<'_, f64> {
        if estimator.is_classifier() {
            Targets::Labels(&self.labels)
        } else {
            Targets::Numbers(&self.numbers)
        }
    }
}

fn random(rows: usize, cols: usize) -> Array2<f64> {
    let random = &mut Random::new(rows as u64);
    Array2::from_shape_fn((rows, cols), |_| random.signed())
}

fn fit(device: &Device, estimator: &Estimator, x: Array2<f64>) -> Result<Model, FitError> {
    fit_with(device, estimator, x, FitOptions::default())
}

fn fit_with(
    device: &Device,
    estimator: &Estimator,
    x: Array2<f64>,
    options: FitOptions<'_>,
) -> Result<Model, FitError> {
    let known = Known::new(x.nrows());
    estimator.fit_with(
        device,
        Features::Dense(x),
        known.targets(estimator),
        options,
    )
}

fn finite(model: &Model) -> Result<()> {
    let all = model.coef().concat().into_iter().chain(model.intercept());
    ensure!(
        all.into_iter().all(f64::is_finite),
        "coefficients that are not finite"
    );
    let report = model.report();
    ensure!(report.convergence.is_success(), "{:?}", report.convergence);
    Ok(())
}

/// No less than 1 where coefficients are all small.
fn near(found: &[f64], expected: &[f64], relative: f64) -> Result<()> {
    let size = expected.iter().fold(1e-3, |a: f64, b| a.max(b.abs()));
    ensure!(found.len() == expected.len(), "{} numbers", found.len());
    for (found, expected) in found.iter().zip(expected) {
        let off = (found - expected).abs();
        ensure!(off <= relative * size, "{found} instead of {expected}");
    }
    Ok(())
}

/// A constant column next to an intercept says nothing: coefficient 0, and the others as without it. An intercept that is
/// penalised, as that of support vector machines, shares the constant with it.
fn constant_column(device: &Device, estimator: &Estimator) -> Result<()> {
    let plain = random(30, 3);
    let mut x = Array2::from_elem((30, 4), 2.5);
    x.slice_mut(ndarray::s![.., ..3]).assign(&plain);
    let model = fit(device, estimator, x)?;
    finite(&model)?;
    if matches!(estimator, Estimator::LinearSvc(_) | Estimator::LinearSvr(_)) {
        return Ok(());
    }
    let without = fit(device, estimator, plain)?;
    for (coef, expected) in model.coef().iter().zip(without.coef()) {
        ensure!(coef[3] == 0.0, "{coef:?}");
        near(&coef[..3], expected, 1e-5)?;
    }
    Ok(())
}

/// Equal columns: the sum of their coefficients is what counts, and a ridge shares it out evenly.
fn duplicate_columns(device: &Device, estimator: &Estimator) -> Result<()> {
    let mut x = random(30, 3);
    let first = x.column(0).to_owned();
    x.column_mut(2).assign(&first);
    let model = fit(device, estimator, x)?;
    finite(&model)?;
    let has_l1 = match estimator {
        Estimator::Lasso(_) => true,
        Estimator::LogisticRegression(params) => {
            *params
                == LogisticRegression::params()
                    .penalty(Penalty::L1)
                    .tolerance(1e-10)
        }
        _ => false,
    };
    for coef in model.coef() {
        let apart = (coef[0] - coef[2]).abs();
        ensure!(has_l1 || apart <= 1e-6 * (1.0 + coef[0].abs()), "{coef:?}");
    }
    Ok(())
}

/// More columns than rows.
fn wide(device: &Device, estimator: &Estimator) -> Result<()> {
    finite(&fit(device, estimator, random(7, 11))?)
}

fn no_rows(device: &Device, estimator: &Estimator) -> Result<()> {
    let result = fit(device, estimator, Array2::zeros((0, 3)));
    ensure!(matches!(result, Err(FitError::NoRows)), "{result:?}");
    Ok(())
}

/// An intercept alone: the constant that fits best.
fn no_columns(device: &Device, estimator: &Estimator) -> Result<()> {
    let model = fit(device, estimator, Array2::zeros((12, 0)))?;
    finite(&model)?;
    ensure!(
        model.coef().iter().all(|coef| coef.is_empty()),
        "{:?}",
        model.coef()
    );
    Ok(())
}

fn not_a_number(device: &Device, estimator: &Estimator) -> Result<()> {
    refuses(device, estimator, f64::NAN)
}

fn infinite(device: &Device, estimator: &Estimator) -> Result<()> {
    refuses(device, estimator, f64::NEG_INFINITY)
}

/// The column is named.
fn refuses(device: &Device, estimator: &Estimator, value: f64) -> Result<()> {
    let mut x = random(20, 4);
    x[[7, 2]] = value;
    let result = fit(device, estimator, x);
    let named = matches!(result, Err(FitError::ColumnNotFinite { column: 2 }));
    ensure!(named, "{result:?}");
    Ok(())
}

/// Labels that are all the same are refused; numbers that are all the same need no coefficients.
fn one_class(device: &Device, estimator: &Estimator) -> Result<()> {
    let x = Features::Dense(random(12, 3));
    let (labels, numbers) = (Labels::Numbers(vec![3.0; 12]), vec![3.0; 12]);
    if estimator.is_classifier() {
        let result = estimator.fit_with(
            device,
            x,
            Targets::<f64>::Labels(&labels),
            FitOptions::default(),
        );
        let refused = matches!(result, Err(FitError::Classes { found: 1 }));
        ensure!(refused, "{result:?}");
        return Ok(());
    }
    let model = estimator.fit_with(device, x, Targets::Numbers(&numbers), FitOptions::default())?;
    finite(&model)?;
    if !matches!(estimator, Estimator::LinearSvr(_)) {
        near(model.coef()[0], &[0.0; 3], 1e-4)?;
    }
    Ok(())
}

/// Rows without weight take no part, whatever they hold.
fn weight_on_one_row(device: &Device, estimator: &Estimator) -> Result<()> {
    let x = random(24, 3);
    let mut other = x.clone();
    other.row_mut(5).fill(10.0);
    let mut weights = vec![1.0; 24];
    weights[5] = 0.0;
    let fit = |x: Array2<f64>| {
        let options = FitOptions {
            sample_weight: Some(&weights),
            ..FitOptions::default()
        };
        fit_with(device, estimator, x, options)
    };
    let (found, expected) = (fit(other)?, fit(x)?);
    for (found, expected) in found.coef().iter().zip(expected.coef()) {
        near(found, expected, 1e-3)?;
    }
    Ok(())
}

/// A masked column has coefficient 0, and the others are as without it.
fn masked_column(device: &Device, estimator: &Estimator) -> Result<()> {
    let x = random(30, 4);
    let kept = x.slice(ndarray::s![.., 1..]).to_owned();
    let options = FitOptions {
        columns: Some(&[false, true, true, true]),
        ..FitOptions::default()
    };
    let (found, expected) = (
        fit_with(device, estimator, x, options)?,
        fit(device, estimator, kept)?,
    );
    for (found, expected) in found.coef().iter().zip(expected.coef()) {
        ensure!(found[0] == 0.0, "{found:?}");
        near(&found[1..], expected, 1e-5)?;
    }
    Ok(())
}

/// A fit from where another ended has next to nothing left to do, as the tolerance is not relative to its own start. An
/// interior point begins away from every bound, and ends at the same minimum.
fn warm_start(device: &Device, estimator: &Estimator) -> Result<()> {
    let x = random(30, 4);
    let cold = fit(device, estimator, x.clone())?;
    let coef: Vec<Vec<f64>> = cold.coef().iter().map(|coef| coef.to_vec()).collect();
    let intercepts = cold.intercept();
    let options = FitOptions {
        start: Some((&coef, &intercepts)),
        ..FitOptions::default()
    };
    let warm = fit_with(device, estimator, x, options)?;
    finite(&warm)?;
    let is_interior = matches!(estimator, Estimator::Quantile(_));
    ensure!(
        is_interior || warm.n_iter() <= 1,
        "{} iterations, {} cold",
        warm.n_iter(),
        cold.n_iter()
    );
    for (found, expected) in warm.coef().iter().zip(cold.coef()) {
        near(found, expected, 1e-6)?;
    }
    Ok(())
}

/// Scaled by powers of 2, the columns' scaled fit is the same.
fn standardised(device: &Device, estimator: &Estimator) -> Result<()> {
    let estimator = estimator.clone().standardize(true);
    let x = random(30, 3);
    let mut scaled = x.clone();
    for (j, mut column) in scaled.columns_mut().into_iter().enumerate() {
        column.mapv_inplace(|value| value * [4.0, 0.125, 64.0][j]);
    }
    let (found, expected) = (
        fit(device, &estimator, scaled)?,
        fit(device, &estimator, x)?,
    );
    for (found, expected) in found.coef().iter().zip(expected.coef()) {
        let back = [4.0 * found[0], 0.125 * found[1], 64.0 * found[2]];
        near(&back, expected, 1e-6)?;
    }
    Ok(())
}

/// Two solvers, one minimum.
fn lbfgs(device: &Device) -> Result<()> {
    let fit_by = |solver: Solver| {
        let logreg = LogisticRegression::params().solver(solver).tolerance(1e-9);
        let poisson = Glm::params().family(Family::Poisson).alpha(0.1);
        let poisson = poisson.solver(solver).tolerance(1e-9);
        [
            Estimator::LogisticRegression(logreg),
            Estimator::Glm(poisson),
        ]
    };
    let pairs = fit_by(Solver::NewtonCg)
        .into_iter()
        .zip(fit_by(Solver::Lbfgs));
    for (newton, lbfgs) in pairs {
        let x = random(40, 4);
        let (expected, found) = (fit(device, &newton, x.clone())?, fit(device, &lbfgs, x)?);
        finite(&found)?;
        near(&found.coef().concat(), &expected.coef().concat(), 1e-6)?;
        near(&found.intercept(), &expected.intercept(), 1e-6)?;
    }
    Ok(())
}

/// Softmax by products with several right-hand sides, against the CPU's one pass.
fn many_classes_agree(device: &Device) -> Result<()> {
    let (rows, classes) = (70, 33);
    let features = Features::Dense(random(rows, 20));
    let matrix = Matrix::new(device, features.clone())?;
    ensure!(
        device.is_cpu() || !matrix.has_softmax(classes)?,
        "there is a kernel for {classes} classes"
    );
    let labels = Labels::Numbers((0..rows).map(|row| (row * 7 % classes) as f64).collect());
    let logreg = LogisticRegression::params().c(0.05).tolerance(1e-9);
    let found = logreg.fit(device, features.clone(), &labels)?;
    let expected = logreg.fit(&Device::cpu(), features, &labels)?;
    near(&found.coef().concat(), &expected.coef().concat(), 1e-6)?;
    near(found.intercept(), expected.intercept(), 1e-6)
}

/// The same bits on every run, of every estimator, sparse and dense.
fn reproducible(device: &Device) -> Result<()> {
    reproducible_in::<f32>(device)?;
    reproducible_in::<f64>(device)
}

fn reproducible_in<T: Number>(device: &Device) -> Result<()> {
    let random = &mut Random::new(9);
    let (rows, cols) = (60, 40);
    let offsets = (0..=rows as u64).map(|row| 5 * row).collect();
    let indices = (0..5 * rows)
        .map(|i| (i % 5 * 8 + i / 5 % 8) as u32)
        .collect();
    let values = (0..5 * rows)
        .map(|_| T::from_f64(random.signed()))
        .collect();
    let x = warpfuse::matrix::CsrMatrix::new((rows, cols), offsets, indices, values);
    let forms = [Features::Dense(x.to_dense()), Features::Sparse(x)];
    let labels =
        |k: usize| Labels::Numbers((0..rows).map(|row| (row * 7 % 11 % k) as f64).collect());
    let (two, three) = (labels(2), labels(3));
    let counts: Vec<T> = (0..rows)
        .map(|row| T::from_f64((row * 7 % 5) as f64))
        .collect();
    let logreg =
        |penalty| Estimator::LogisticRegression(LogisticRegression::params().penalty(penalty));
    let fits = [
        (
            "ridge",
            Estimator::Ridge(Ridge::params()),
            Targets::Numbers(&counts),
        ),
        (
            "lasso",
            Estimator::Lasso(Lasso::params().alpha(0.01)),
            Targets::Numbers(&counts),
        ),
        (
            "poisson",
            Estimator::Glm(Glm::params().family(Family::Poisson)),
            Targets::Numbers(&counts),
        ),
        ("two classes", logreg(Penalty::L2), Targets::Labels(&two)),
        (
            "two classes, l1",
            logreg(Penalty::L1),
            Targets::Labels(&two),
        ),
        (
            "three classes",
            logreg(Penalty::L2),
            Targets::Labels(&three),
        ),
    ];
    let options = MatrixOptions {
        summation: Summation::Reproducible,
        ..MatrixOptions::default()
    };
    for ((name, estimator, targets), x) in fits
        .iter()
        .flat_map(|fit| forms.iter().map(move |x| (fit, x)))
    {
        let fit = || {
            let estimator = estimator.clone().max_iter(4).matrix_options(options);
            estimator.fit_with(device, x.clone(), *targets, FitOptions::default())
        };
        let (first, second) = (fit()?, fit()?);
        let same = first.coef() == second.coef() && first.intercept() == second.intercept();
        let form = if x.is_sparse() { "sparse" } else { "dense" };
        ensure!(same, "{name}, {form} {}: two runs differ", T::DTYPE);
    }
    Ok(())
}
