//! Folds know nothing of the rows that they hold out.

use ndarray::{Array2, Axis};

use super::{Folds, cross_validate};
use crate::device::Device;
use crate::learning::{Estimator, FitError, FitOptions, Model, ResidentDataset, Ridge, Targets};
use crate::matrix::Features;
use crate::ops::MatrixOptions;

const ROWS: usize = 12;

/// The second half of the rows is a hundred times as large in one column.
fn data() -> (Array2<f64>, Vec<f64>) {
    let x = Array2::from_shape_fn((ROWS, 2), |(i, j)| {
        let large = if i >= ROWS / 2 && j == 0 { 100.0 } else { 1.0 };
        large * (((i * 7 + j * 3) % 5) as f64 - 1.5)
    });
    let t = (0..ROWS).map(|i| x[[i, 1]] + (i % 3) as f64).collect();
    (x, t)
}

fn score(
    estimator: &Estimator,
    resident: &ResidentDataset<f64>,
    t: &[f64],
    folds: &Folds,
) -> Vec<f64> {
    let path = [estimator.clone()];
    let points = cross_validate(resident, Targets::Numbers(t), None, folds, &path, |_| {});
    let points = points.expect("folds of these rows");
    points[0].folds.iter().map(|fold| fold.score()).collect()
}

#[test]
fn columns_are_scaled_by_the_rows_that_are_learnt_from() {
    let ((x, t), device) = (data(), Device::cpu());
    let folds = Folds::consecutive(ROWS, 2).expect("two folds");
    let ridge = Ridge::params()
        .alpha(3.0)
        .standardize(true)
        .tolerance(1e-12);
    let estimator = Estimator::Ridge(ridge);
    let features = Features::Dense(x.clone());
    let options = MatrixOptions::default();
    let resident =
        ResidentDataset::with_folds(&device, features, options, &folds).expect("finite data");
    let found = score(&estimator, &resident, &t, &folds);
    for (fold, found) in found.into_iter().enumerate() {
        let chosen = |held_out: bool| -> Vec<usize> {
            let weights = folds.training_weights(fold, None);
            (0..ROWS)
                .filter(|row| (weights[*row] == 0.0) == held_out)
                .collect()
        };
        let part = |rows: &[usize]| {
            let targets: Vec<f64> = rows.iter().map(|row| t[*row]).collect();
            (Features::Dense(x.select(Axis(0), rows)), targets)
        };
        let ((learnt, b), (held, truth)) = (part(&chosen(false)), part(&chosen(true)));
        let model =
            estimator.fit_with(&device, learnt, Targets::Numbers(&b), FitOptions::default());
        let Ok(Model::Regressor(model)) = model else {
            panic!("a regression of numbers");
        };
        let expected = model.score(&device, held, &truth).expect("as many targets");
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    }
}

#[test]
fn data_without_folds_are_not_standardised() {
    let (x, t) = data();
    let folds = Folds::consecutive(ROWS, 2).expect("two folds");
    let resident =
        ResidentDataset::new(&Device::cpu(), Features::Dense(x), MatrixOptions::default());
    let resident = resident.expect("finite data");
    let path = [Estimator::Ridge(Ridge::params().standardize(true))];
    let found = cross_validate(&resident, Targets::Numbers(&t), None, &folds, &path, |_| {});
    assert!(matches!(found, Err(FitError::Combination { .. })));
}
