//! Folds know nothing of the rows that they hold out.

use ndarray::{Array2, Axis};

use super::together::{self, Path};
use super::{FoldOptions, Folds, cross_validate, cross_validate_with};
use crate::device::Device;
use crate::learning::{
    Estimator, Family, FitError, FitOptions, Glm, Labels, LogisticRegression, Model,
    ResidentDataset, Ridge, Solver, Targets,
};
use crate::matrix::Features;
use crate::ops::MatrixOptions;
use crate::plan::fused::Summation;

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

/// Numbers between −1 and 1 that look like chance.
fn number(i: usize) -> f64 {
    let bits = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((bits ^ bits >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 11) as f64 / 2f64.powi(52) - 1.0
}

/// Rows of three columns, of which each fit is one of many in a launch.
fn small() -> (Array2<f64>, Vec<f64>) {
    let x = Array2::from_shape_fn((90, 3), |(i, j)| number(3 * i + j) + 0.3 * j as f64);
    let t = (0..90).map(|i| f64::from(u8::from(x[[i, 0]] + number(1_000 + i) > 0.2)));
    let t = t.collect();
    (x, t)
}

fn path(estimator: impl Fn(f64) -> Estimator) -> Vec<Estimator> {
    let penalties = [0.3, 3.0, 30.0].into_iter();
    penalties.map(|of| estimator(of).tolerance(1e-12)).collect()
}

/// Both are within √ε of the minimum at a tolerance of 10⁻¹²: columns are far from depending on each other.
const NEAR: f64 = 1e-7;

#[test]
fn small_fits_in_one_launch_are_those_by_themselves() {
    let ((x, t), folds) = (small(), Folds::shuffled(90, 5, 3).expect("five folds"));
    let labels = Labels::Numbers(t.clone());
    let weights: Vec<f64> = (0..90).map(|i| 1.0 + (i % 3) as f64).collect();
    let offset: Vec<f64> = (0..90).map(|i| 0.1 * (i % 4) as f64).collect();
    let factors = [1.0, 2.0, 0.5];
    let paths = [
        path(|of| Ridge::params().alpha(of).standardize(true).into()),
        path(|of| {
            Glm::params()
                .family(Family::Poisson)
                .alpha(0.01 * of)
                .into()
        }),
        path(|of| LogisticRegression::params().c(of).into()),
    ];
    for has_more in [false, true] {
        let features = Features::Dense(x.clone());
        let data =
            ResidentDataset::with_folds(&Device::cpu(), features, Default::default(), &folds);
        let data = data.expect("finite data");
        for path in paths
            .iter()
            .filter(|path| !(has_more && path[0].standardizes()))
        {
            let targets = match path[0].is_classifier() {
                true => Targets::Labels(&labels),
                false => Targets::Numbers(&t),
            };
            let given = FoldOptions {
                sample_weight: has_more.then_some(&weights[..]),
                offset: has_more.then_some(&offset[..]),
                penalty_factors: has_more.then_some(&factors[..]),
                checkpoint: None,
            };
            let found = cross_validate_with(&data, targets, given, &folds, path, |_| {});
            // One after the other, by products with X.
            let alone: Vec<Estimator> = path.iter().cloned().map(by_products).collect();
            let truth = cross_validate_with(&data, targets, given, &folds, &alone, |_| {});
            let (found, truth) = (found.expect("fits"), truth.expect("fits"));
            for (found, truth) in found.iter().zip(&truth) {
                let pairs = found.mean_coef.iter().zip(&truth.mean_coef);
                let errors = pairs.map(|(a, b)| (a - b).abs() / b.abs().max(1.0));
                let worst = errors.fold(0.0, f64::max);
                assert!(worst <= NEAR, "{path:?}: off by {worst:e}");
                let score = (found.mean_score() - truth.mean_score()).abs();
                assert!(score <= NEAR && found.converged, "{path:?}: {score:e}");
            }
            let training: Vec<Vec<f64>> = (0..folds.count())
                .map(|fold| folds.training_weights(fold, given.sample_weight))
                .collect();
            let path = Path {
                estimators: path,
                targets,
                training: &training,
                sample_weight: given.sample_weight,
                offset: given.offset,
                penalty_factors: given.penalty_factors,
            };
            let models = together::fit(&data, &path);
            let models = models.expect("fits").expect("one launch");
            let reason = |model: &Option<Model>| model.as_ref().map(|model| model.report().solver);
            let solvers: Vec<_> = models.iter().map(reason).collect();
            assert_eq!(solvers, [Some(Solver::NewtonCholesky); 15]);
        }
    }
}

fn by_products(estimator: Estimator) -> Estimator {
    estimator.solver(Solver::NewtonCg)
}

/// Their bits are the same on every device, which those of a launch are not.
#[test]
fn reproducible_fits_are_not_made_in_one_launch() {
    let ((x, t), folds) = (small(), Folds::consecutive(90, 2).expect("two folds"));
    let path = path(|of| {
        Ridge::params()
            .alpha(of)
            .solver(Solver::NewtonCholesky)
            .into()
    });
    let training: Vec<_> = (0..2)
        .map(|fold| folds.training_weights(fold, None))
        .collect();
    for (summation, is_one_launch) in [(Summation::Free, true), (Summation::Reproducible, false)] {
        let options = MatrixOptions {
            summation,
            ..MatrixOptions::default()
        };
        let data = ResidentDataset::new(&Device::cpu(), Features::Dense(x.clone()), options);
        let path = Path {
            estimators: &path,
            targets: Targets::Numbers(&t),
            training: &training,
            sample_weight: None,
            offset: None,
            penalty_factors: None,
        };
        let models = together::fit(&data.expect("finite data"), &path).expect("fits");
        assert_eq!(models.is_some(), is_one_launch);
    }
}
