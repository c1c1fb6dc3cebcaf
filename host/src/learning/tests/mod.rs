//! What holds for every estimator of the list.

mod columns;
mod everyday;
mod faults;
mod losses;
mod near_minimum;
mod odd;
mod shared;
pub(super) mod stored;
mod tight;

use std::cell::Cell;
use std::rc::Rc;

use ndarray::Array2;

use super::{
    Estimator, FitError, FitOptions, Labels, LinearRegression, LogisticRegression, Model,
    RegressorParams, SavedModel, Solver, Targets,
};
use crate::device::Device;
use crate::matrix::Features;
use crate::ops::{OpError, interruptible};

const ROWS: usize = 24;

/// Two columns that overlap between the classes.
fn features() -> Features<f64> {
    Features::Dense(Array2::from_shape_fn((ROWS, 2), |(i, j)| {
        ((i * (7 + 4 * j)) % 11) as f64 / 11.0 - 0.4
    }))
}

fn numbers() -> Vec<f64> {
    (0..ROWS).map(|i| 1.0 + (i % 5) as f64 / 4.0).collect()
}

fn labels() -> Labels {
    Labels::Numbers((0..ROWS).map(|i| (i % 3) as f64).collect())
}

fn fit(estimator: &Estimator) -> Result<Model, FitError> {
    let (numbers, labels) = (numbers(), labels());
    let targets = match estimator.is_classifier() {
        true => Targets::Labels(&labels),
        false => Targets::Numbers(&numbers),
    };
    estimator.fit_with(&Device::cpu(), features(), targets, FitOptions::default())
}

#[test]
fn every_estimator_fits_and_its_model_comes_back_from_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    for estimator in Estimator::all() {
        let model = fit(&estimator).unwrap_or_else(|error| panic!("{estimator:?}: {error}"));
        assert!(model.converged(), "{estimator:?}: {:?}", model.report());
        let path = folder.path().join("model.safetensors");
        model.save(&path).expect("written");
        assert_eq!(Model::load(&path).expect("read"), model, "{estimator:?}");
        let saved = SavedModel::load(&path).expect("read");
        assert_eq!(saved.cols(), 2);
    }
}

/// Fits while somebody counts how often they are asked whether to end, and says yes at the given time.
fn fit_until(estimator: &Estimator, end: Option<usize>) -> (Result<Model, FitError>, usize) {
    let asked = Rc::new(Cell::new(0));
    let counted = asked.clone();
    let is_wanted = move || {
        counted.set(counted.get() + 1);
        Some(counted.get()) == end
    };
    (interruptible(is_wanted, || fit(estimator)), asked.get())
}

#[test]
fn every_estimator_can_be_interrupted_in_every_iteration() {
    for estimator in Estimator::all() {
        let (model, asked) = fit_until(&estimator, None);
        let iterations = model.expect("fitted").report().history.len();
        assert!(asked > iterations, "{estimator:?}: {asked} of {iterations}");
        for end in [1, asked] {
            let (ended, asked) = fit_until(&estimator, Some(end));
            assert_eq!(ended.unwrap_err(), FitError::Op(OpError::Interrupted));
            assert_eq!(asked, end, "{estimator:?}");
        }
    }
}

#[test]
fn an_inner_solve_can_be_interrupted_before_every_product() {
    let newton = LogisticRegression::params().solver(Solver::NewtonCg);
    let (model, asked) = fit_until(&newton.into(), None);
    let history = model.expect("fitted").report().history.clone();
    let products: usize = history.iter().map(|iteration| iteration.inner).sum();
    assert!(
        products > history.len() && asked >= products,
        "{asked} of {products}"
    );
}

#[test]
fn every_estimator_refuses_the_targets_of_the_others() {
    let (numbers, labels) = (numbers(), labels());
    for estimator in Estimator::all() {
        let targets = match estimator.is_classifier() {
            true => Targets::Numbers(&numbers[..]),
            false => Targets::Labels(&labels),
        };
        let found = estimator.fit_with(&Device::cpu(), features(), targets, FitOptions::default());
        assert!(
            matches!(found, Err(FitError::Combination { .. })),
            "{estimator:?}: {found:?}"
        );
    }
}

#[test]
fn setters_of_the_list_are_those_of_the_estimators() {
    for estimator in Estimator::all() {
        let strict = estimator.clone().tolerance(-1.0);
        assert!(
            matches!(fit(&strict), Err(FitError::Parameter { name: "tol", .. })),
            "{estimator:?}"
        );
        assert!(estimator.standardize(true).standardizes());
    }
}

/// A file of version 0.1, from when linear regression had a kind of its own.
#[test]
fn files_of_kind_linreg_are_read() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/learning/tests/linreg-0.1.safetensors");
    let model = Model::load(&path).expect("a model");
    let Model::Regressor(model) = &model else {
        panic!("{model:?}");
    };
    let expected = LinearRegression::params()
        .l2(0.5)
        .tolerance(1e-6)
        .max_iter(1000);
    assert_eq!(model.params(), &RegressorParams::from(expected));
    assert_eq!((model.cols(), model.n_iter()), (10, model.report().n_iter));
    assert!(model.converged() && model.report().objective > 0.0);
}
