//! What holds for every estimator of the list.

use ndarray::Array2;

use super::{
    Estimator, FitError, FitOptions, Labels, LinearRegression, Model, RegressorParams, SavedModel,
    Targets,
};
use crate::device::Device;
use crate::matrix::Features;

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
