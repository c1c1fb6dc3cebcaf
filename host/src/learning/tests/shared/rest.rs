//! What surrounds a fit, over rows that several members share: folds, paths, figures, standard errors, judges of iterations.

use std::fmt::Debug;

use super::{Known, SHARES, dense, with_summation};
use crate::device::Device;
use crate::device::group::run_threads;
use crate::learning::{
    ClassWeight, Estimator, Family, FitOptions, Folds, Glm, Labels, Lasso, LinearRegression,
    LogisticRegression, PathPoint, ResidentDataset, Ridge, Targets, Validation, cross_validate,
};
use crate::matrix::Features;
use crate::ops::{Matrix, MatrixOptions};
use crate::plan::fused::Summation;

const SUMMATIONS: [Summation; 2] = [Summation::Free, Summation::Reproducible];

/// What every member finds, against what one process does.
fn compare<R: Debug + Send>(
    of: impl Fn(&Device, Features<f64>) -> R + Sync,
    judge: impl Fn(&R, &R, &str),
) {
    let x = dense::<f64>();
    let expected = of(&Device::cpu(), x.clone());
    for shares in SHARES {
        let found = run_threads(shares.len(), |group| {
            let first: usize = shares[..group.rank()].iter().sum();
            let own = x.select_rows(first..first + shares[group.rank()]);
            of(&Device::cpu_of(&group), own)
        });
        for found in found {
            judge(&found, &expected, &format!("{shares:?}"));
        }
    }
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * (1.0 + b.abs())
}

fn path_points(
    (device, own): (&Device, Features<f64>),
    (path, known): (&[Estimator], &Known<f64>),
    summation: Summation,
) -> Vec<PathPoint> {
    let options = MatrixOptions {
        summation,
        ..MatrixOptions::default()
    };
    let folds = Folds::shuffled(super::ROWS, 3, 5).expect("three folds");
    let data = ResidentDataset::with_folds(device, own, options, &folds).expect("rows");
    let (targets, weights) = (known.targets(&path[0]), Some(&known.weights[..]));
    cross_validate(&data, targets, weights, &folds, path, |_| {}).expect("fits")
}

#[test]
fn folds_are_of_all_rows() {
    let known = Known::<f64>::new();
    let of = |summation| {
        let with = |estimator: Estimator| {
            let estimator = estimator.standardize(true).tolerance(1e-11);
            with_summation(&estimator, summation)
        };
        [
            [0.1, 3.0].map(|alpha| with(Ridge::params().alpha(alpha).into())),
            [0.1, 3.0].map(|c| with(LogisticRegression::params().c(c).into())),
            [0.1, 0.01].map(|alpha| with(Lasso::params().alpha(alpha).into())),
        ]
    };
    for (path, exact) in [(of(SUMMATIONS[0]), false), (of(SUMMATIONS[1]), true)] {
        let summation = SUMMATIONS[usize::from(exact)];
        for path in path {
            compare(
                |device, own| path_points((device, own), (&path, &known), summation),
                |found, expected, what| {
                    for (found, expected) in found.iter().zip(expected) {
                        if exact {
                            assert_eq!(found, expected, "{what} {path:?}");
                        }
                        let all = found.mean_coef.iter().zip(&expected.mean_coef);
                        assert!(all.clone().all(|(a, b)| near(*a, *b)), "{what} {path:?}");
                        assert!(near(found.mean_score(), expected.mean_score()), "{what}");
                    }
                },
            );
        }
    }
}

#[test]
fn penalties_worth_comparing_are_those_of_all_rows() {
    let known = Known::<f64>::new();
    for summation in SUMMATIONS {
        let options = MatrixOptions {
            summation,
            ..MatrixOptions::default()
        };
        let lasso = with_summation(&Lasso::params().into(), summation);
        compare(
            |device, own| {
                let data = ResidentDataset::new(device, own, options).expect("rows");
                let targets = Targets::Numbers(&known.numbers);
                lasso.penalty_path(&data, targets, None, 4).expect("a path")
            },
            |found, expected, what| {
                let all = found.iter().zip(expected);
                assert!(all.clone().all(|(a, b)| near(*a, *b)), "{what}");
                assert!(summation == Summation::Free || found == expected, "{what}");
            },
        );
    }
}

/// Rare classes that one member alone has, weighted by how rare they are.
#[test]
fn classes_and_their_weights_are_those_of_all_rows() {
    let label = |i: usize| match i {
        148 => "rare".to_owned(),
        _ => ["a", "b"][i * i % 5 % 2].to_owned(),
    };
    let labels = Labels::Text((0..super::ROWS).map(label).collect());
    let params = LogisticRegression::params().class_weight(ClassWeight::Balanced);
    let estimator = with_summation(&params.into(), Summation::Reproducible);
    compare(
        |device, own| {
            let targets = Targets::Labels(&labels);
            let model = estimator.fit_with(device, own.clone(), targets, FitOptions::default());
            let model = model.expect("a fit");
            let classes = model.classifier().expect("classes").classes().clone();
            let figures = model.evaluate(device, own, targets, None).expect("figures");
            (classes, model.coef().concat(), model.intercept(), figures)
        },
        |found, expected, what| assert_eq!(found, expected, "{what}"),
    );
}

#[test]
fn figures_and_standard_errors_are_of_all_rows() {
    let known = Known::<f64>::new();
    let poisson = Glm::params().family(Family::Poisson).alpha(0.0);
    for estimator in [LinearRegression::params().into(), Estimator::from(poisson)] {
        let estimator = with_summation(&estimator, Summation::Reproducible);
        let (targets, weights) = (Targets::Numbers(&known.numbers), Some(&known.weights[..]));
        let model = super::fit(
            &Device::cpu(),
            (&estimator, &known),
            dense(),
            super::With::Weights,
        );
        let model = model.expect("a fit");
        compare(
            |device, own| {
                let x = Matrix::new(device, own).expect("rows");
                let figures = model.evaluate_on(&x, targets, weights).expect("figures");
                let errors = model.infer(&x, targets, weights).expect("errors");
                let of = |estimate: &Option<crate::learning::Estimate>| {
                    estimate.map_or(f64::NAN, |estimate| estimate.standard_error)
                };
                let errors: Vec<f64> = errors
                    .columns
                    .iter()
                    .chain([&errors.intercept])
                    .map(of)
                    .collect();
                (figures, errors)
            },
            |found, expected, what| {
                assert_eq!(found.0, expected.0, "{what}");
                let all = found.1.iter().zip(&expected.1);
                assert!(
                    all.clone().all(|(a, b)| (a - b).abs() <= 1e-9 * b),
                    "{what}"
                );
            },
        );
    }
}

/// Each member judges by data of its own, all of them alike.
#[test]
fn iterations_are_judged_alike_and_a_start_is_taken() {
    let known = Known::<f64>::new();
    let estimator = Estimator::from(Glm::params().family(Family::Poisson).alpha(0.1));
    let estimator = with_summation(&estimator, Summation::Reproducible);
    let start = (vec![vec![0.1, -0.2, 0.3, 0.0]], vec![0.2]);
    compare(
        |device, own| {
            let targets = Targets::Numbers(&known.numbers);
            let mut during =
                Validation::new(&Device::cpu(), dense::<f64>(), &estimator, targets, None)
                    .expect("data");
            let mut evaluate =
                |coef: &[Vec<f64>], intercepts: &[f64]| during.score(coef, intercepts);
            let options = FitOptions {
                evaluate: Some(&mut evaluate),
                start: Some((&start.0, &start.1)),
                ..FitOptions::default()
            };
            let model = estimator
                .fit_with(device, own, targets, options)
                .expect("a fit");
            let history = model.report().history.iter();
            let judged: Vec<Option<f64>> = history.map(|step| step.validation).collect();
            (judged, model.coef().concat())
        },
        |found, expected, what| assert_eq!(found, expected, "{what}"),
    );
}
