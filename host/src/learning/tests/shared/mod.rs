//! Every estimator over rows that several members share, against one process.

mod checkpoints;
mod choices;
mod kernel_ridge;
mod rest;
mod spectral;
mod spread;

use std::mem::discriminant;

use ndarray::Array2;

use crate::device::group::run_threads;
use crate::device::{Device, EmulatorOptions};
use crate::learning::{
    ElasticNet, Estimator, Family, FitError, FitOptions, Glm, Huber, Labels, Lasso,
    LogisticRegression, Model, Penalty, Ridge, Targets,
};
use crate::matrix::{Features, csr_from_parts};
use crate::ops::{MatrixOptions, Number, OpError};
use crate::plan::fused::Summation;

const ROWS: usize = 150;
const COLS: usize = 4;
const SHARES: [&[usize]; 4] = [&[ROWS], &[0, ROWS], &[50, 1, 99], &[60, 40, 0, 50]];

fn value(i: usize, j: usize) -> f64 {
    ((i * (7 + 4 * j) + j) % 29) as f64 / 29.0 - 0.4
}

fn dense<T: Number>() -> Features<T> {
    let of = |(i, j)| <T as crate::cpu::Scalar>::narrow(value(i, j));
    Features::Dense(Array2::from_shape_fn((ROWS, COLS), of))
}

/// Every other entry.
fn sparse<T: Number>() -> Features<T> {
    let entries = |i: usize| (0..COLS).filter(move |j| (i + j).is_multiple_of(2));
    let offsets = (0..=ROWS)
        .map(|row| (0..row).map(|i| entries(i).count() as u64).sum())
        .collect();
    let indices = (0..ROWS).flat_map(|i| entries(i).map(|j| j as u32));
    let values = (0..ROWS)
        .flat_map(|i| entries(i).map(move |j| <T as crate::cpu::Scalar>::narrow(value(i, j))));
    let parts = (offsets, indices.collect(), values.collect());
    Features::Sparse(csr_from_parts((ROWS, COLS), parts.0, parts.1, parts.2).expect("rows"))
}

/// Numbers that every family takes, and labels.
struct Known<T> {
    numbers: Vec<T>,
    labels: Labels,
    weights: Vec<f64>,
    offset: Vec<f64>,
}

impl<T: Number> Known<T> {
    fn new() -> Known<T> {
        let noise = |i: usize| (i * 31 % 17) as f64 / 17.0;
        let number = |i| 0.6 + value(i, 0) + noise(i);
        let label = |i: usize| ((2.9 * noise(i) + value(i, 1)).abs() as usize % 3) as f64;
        Known {
            numbers: (0..ROWS)
                .map(|i| <T as crate::cpu::Scalar>::narrow(number(i)))
                .collect(),
            labels: Labels::Numbers((0..ROWS).map(label).collect()),
            weights: (0..ROWS).map(|i| (i % 4) as f64 / 2.0).collect(),
            offset: (0..ROWS).map(|i| noise(i + 3) / 8.0).collect(),
        }
    }

    fn targets(&self, estimator: &Estimator) -> Targets<'_, T> {
        match estimator.is_classifier() {
            true => Targets::Labels(&self.labels),
            false => Targets::Numbers(&self.numbers),
        }
    }
}

/// Whether the host alone can solve it, which needs all rows in one place.
fn needs_all_rows(estimator: &Estimator) -> bool {
    estimator.stated().needs_host()
}

/// All that can be fitted to rows that are shared: some with parameters that suit the targets, every other one of the list
/// as it is.
fn estimators() -> Vec<Estimator> {
    let poisson = || Glm::params().family(Family::Poisson);
    let mut all: Vec<Estimator> = vec![
        Ridge::params().alpha(0.5).into(),
        Lasso::params().alpha(0.01).into(),
        ElasticNet::params().alpha(0.01).into(),
        LogisticRegression::params().into(),
        LogisticRegression::params().penalty(Penalty::L1).into(),
        poisson().alpha(0.1).into(),
        Glm::params().family(Family::Gamma).alpha(0.1).into(),
        Huber::params().alpha(5.0).into(),
        poisson().alpha(0.0).into(),
    ];
    let kinds: Vec<_> = all.iter().map(discriminant).collect();
    let others = Estimator::all().into_iter();
    let others = others.filter(|of| !kinds.contains(&discriminant(of)) && !needs_all_rows(of));
    all.extend(others);
    all
}

/// What is given besides targets.
#[derive(Debug, Clone, Copy)]
enum With {
    Nothing,
    Weights,
    Offset,
}

fn fit<T: Number>(
    device: &Device,
    (estimator, known): (&Estimator, &Known<T>),
    own: Features<T>,
    with: With,
) -> Result<Model, FitError> {
    let options = FitOptions {
        sample_weight: matches!(with, With::Weights).then_some(&known.weights[..]),
        offset: matches!(with, With::Offset).then_some(&known.offset[..]),
        ..FitOptions::default()
    };
    estimator.fit_with(device, own, known.targets(estimator), options)
}

/// The model of every member.
fn shared<T: Number>(
    (estimator, known): (&Estimator, &Known<T>),
    x: &Features<T>,
    shares: &[usize],
    with: With,
) -> Vec<Model> {
    let found = run_threads(shares.len(), |group| {
        let first: usize = shares[..group.rank()].iter().sum();
        let own = x.select_rows(first..first + shares[group.rank()]);
        fit(&Device::cpu_of(&group), (estimator, known), own, with)
    });
    let each = found.into_iter();
    each.map(|model| model.unwrap_or_else(|error| panic!("{estimator:?} {shares:?}: {error}")))
        .collect()
}

fn with_summation(estimator: &Estimator, summation: Summation) -> Estimator {
    let options = MatrixOptions {
        summation,
        ..MatrixOptions::default()
    };
    estimator.clone().matrix_options(options)
}

fn cases(estimator: &Estimator) -> Vec<(Estimator, With)> {
    let standardised = estimator.clone().standardize(true);
    let mut cases = vec![
        (estimator.clone(), With::Nothing),
        (estimator.clone(), With::Weights),
        (standardised, With::Nothing),
    ];
    if matches!(estimator, Estimator::Glm(_)) {
        cases.push((estimator.clone(), With::Offset));
    }
    cases
}

fn have_the_same_bits<T: Number>(x: &Features<T>) {
    let known = Known::new();
    for estimator in estimators() {
        for (estimator, with) in cases(&with_summation(&estimator, Summation::Reproducible)) {
            let task = (&estimator, &known);
            let expected = fit(&Device::cpu(), task, x.clone(), with).expect("a fit");
            for shares in SHARES {
                for found in shared(task, x, shares, with) {
                    let what = format!("{estimator:?} {with:?} {shares:?}");
                    assert_eq!(found.coef(), expected.coef(), "{what}");
                    assert_eq!(found.intercept(), expected.intercept(), "{what}");
                    let of = |model: &Model| (model.report().n_iter, model.report().objective);
                    assert_eq!(of(&found), of(&expected), "{what}");
                }
            }
        }
    }
}

#[test]
fn reproducible_fits_have_the_bits_of_one_process() {
    have_the_same_bits(&dense::<f64>());
    have_the_same_bits(&sparse::<f32>());
}

#[test]
fn fits_agree_with_one_process() {
    let known = Known::<f64>::new();
    for x in [dense::<f64>(), sparse::<f64>()] {
        for estimator in estimators() {
            for (estimator, with) in cases(&estimator.tolerance(1e-11)) {
                let task = (&estimator, &known);
                let expected = fit(&Device::cpu(), task, x.clone(), with).expect("a fit");
                let all = |model: &Model| [model.coef().concat(), model.intercept()].concat();
                for shares in SHARES {
                    let found = shared(task, &x, shares, with);
                    for model in &found {
                        assert_eq!(all(model), all(&found[0]), "one model on every member");
                        for (a, b) in all(model).iter().zip(all(&expected)) {
                            let what = || format!("{estimator:?} {with:?} {shares:?}: {a} {b}");
                            assert!((a - b).abs() <= 1e-6 * (1.0 + b.abs()), "{}", what());
                        }
                    }
                }
            }
        }
    }
}

/// Ridge, logistic regression and a Poisson model of emulated GPUs: the bits of the CPU where they are promised, else the
/// same minimum.
#[test]
fn emulated_gpus_fit_together() {
    let known = Known::<f64>::new();
    let estimators: [Estimator; 3] = [
        Ridge::params().alpha(0.5).into(),
        LogisticRegression::params().into(),
        Glm::params().family(Family::Poisson).alpha(0.1).into(),
    ];
    for x in [dense::<f64>(), sparse::<f64>()] {
        for estimator in &estimators {
            for summation in [Summation::Reproducible, Summation::Free] {
                let estimator = with_summation(estimator, summation);
                let task = (&estimator, &known);
                let expected = fit(&Device::cpu(), task, x.clone(), With::Weights).expect("a fit");
                let found = run_threads(2, |group| {
                    let rows = [0..64, 64..ROWS][group.rank()].clone();
                    let own = x.select_rows(rows);
                    let emulator = Device::small_emulator(EmulatorOptions::default());
                    let device = emulator.in_group(&group).map_err(OpError::from)?;
                    fit(&device, task, own, With::Weights)
                });
                for model in found {
                    let model = model.expect("a fit");
                    let what = format!("{estimator:?}");
                    let all = |model: &Model| [model.coef().concat(), model.intercept()].concat();
                    for (found, expected) in all(&model).iter().zip(all(&expected)) {
                        match summation {
                            Summation::Reproducible => assert_eq!(*found, expected, "{what}"),
                            Summation::Free => {
                                // Solvers end at a gradient of 1e-4 of the first one, wherever they come from.
                                let error = (found - expected).abs();
                                assert!(error <= 1e-3 * (1.0 + expected.abs()), "{what}");
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn predictions_are_of_all_rows() {
    let known = Known::<f64>::new();
    let x = dense::<f64>();
    let model = Ridge::params()
        .fit(&Device::cpu(), x.clone(), &known.numbers)
        .expect("a fit");
    let expected: Vec<f64> = model.predict(&Device::cpu(), x.clone()).expect("numbers");
    let found = run_threads(3, |group| {
        let own = x.select_rows(50 * group.rank()..50 * (group.rank() + 1));
        model
            .predict(&Device::cpu_of(&group), own)
            .expect("numbers")
    });
    for found in found {
        assert_eq!(found, expected);
    }
}
