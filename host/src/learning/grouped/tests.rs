//! Models of groups beside the same estimator fitted to each group's rows alone.

use ndarray::{Array2, Axis};

use super::{Ending, GroupedModel};
use crate::device::Device;
use crate::learning::{
    Classes, Convergence, Estimator, Family, FitError, FitOptions, Glm, Labels, Lasso,
    LinearRegression, LogisticRegression, Model, Penalty, Ridge, Targets,
};
use crate::matrix::{Features, csr_from_parts};

const ROWS: usize = 240;
const COLS: usize = 4;
/// Groups in no order, of 20 to 80 rows.
fn group(row: usize) -> usize {
    [3, 1, 1, 0, 2, 3, 3][row * 5 % 7] * 10
}

/// Numbers between −1 and 1 that look like chance.
fn number(i: usize) -> f64 {
    let bits = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((bits ^ bits >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 11) as f64 / 2f64.powi(52) - 1.0
}

fn features() -> Array2<f64> {
    Array2::from_shape_fn((ROWS, COLS), |(i, j)| number(i * COLS + j) + 0.2 * j as f64)
}

fn groups() -> Vec<i64> {
    (0..ROWS).map(|row| group(row) as i64).collect()
}

/// Targets that every estimator takes: 0 and 1, in every group both.
fn targets() -> Vec<f64> {
    let t = |i: usize| number(i * COLS) + 0.7 * number(7_000 + i);
    (0..ROWS).map(|i| f64::from(u8::from(t(i) > 0.0))).collect()
}

fn estimators() -> Vec<Estimator> {
    vec![
        LinearRegression::params().into(),
        Ridge::params().alpha(0.5).standardize(true).into(),
        Ridge::params().alpha(0.5).fit_intercept(false).into(),
        Lasso::params().alpha(0.01).into(),
        Glm::params().family(Family::Poisson).alpha(0.01).into(),
        LogisticRegression::params().into(),
    ]
}

fn members(model: &GroupedModel) -> &[super::Member] {
    match model {
        GroupedModel::Regressor(model) => model.members(),
        GroupedModel::Classifier(model) => model.members(),
    }
}

/// The fit of one group's rows alone, as precisely as it gets.
fn alone(estimator: &Estimator, label: usize, weights: Option<&[f64]>) -> Model {
    let rows: Vec<usize> = (0..ROWS).filter(|row| group(*row) == label).collect();
    let x = features().select(Axis(0), &rows);
    let y: Vec<f64> = rows.iter().map(|row| targets()[*row]).collect();
    let weights: Option<Vec<f64>> = weights.map(|w| rows.iter().map(|row| w[*row]).collect());
    let labels = Labels::Numbers(y.clone());
    let targets = match estimator.is_classifier() {
        true => Targets::Labels(&labels),
        false => Targets::Numbers(&y),
    };
    let options = FitOptions {
        sample_weight: weights.as_deref(),
        ..FitOptions::default()
    };
    let fit = estimator.fit_with(&Device::cpu(), Features::Dense(x), targets, options);
    fit.expect("a fit of its own")
}

fn grouped(estimator: &Estimator, x: &Features<f64>, weights: Option<&[f64]>) -> GroupedModel {
    let (y, groups) = (targets(), groups());
    let labels = Labels::Numbers(y.clone());
    let targets = match estimator.is_classifier() {
        true => Targets::Labels(&labels),
        false => Targets::Numbers(&y),
    };
    let options = FitOptions {
        sample_weight: weights,
        ..FitOptions::default()
    };
    let model = estimator.fit_groups(&Device::cpu(), x, targets, &groups[..], options);
    model.expect("a fit of groups")
}

/// Both are within √ε of the minimum at a tolerance of 10⁻¹²: columns are far from depending on each other.
const NEAR: f64 = 1e-7;

#[test]
fn every_group_has_the_model_of_its_rows_alone() {
    let weights: Vec<f64> = (0..ROWS).map(|i| (i % 4) as f64).collect();
    for estimator in estimators() {
        let estimator = estimator.tolerance(1e-12);
        for weights in [None, Some(&weights[..])] {
            let model = grouped(&estimator, &Features::Dense(features()), weights);
            for (i, member) in members(&model).iter().enumerate() {
                let truth = alone(&estimator, 10 * i, weights);
                let name = format!("{estimator:?}, group {i}");
                assert!(
                    member.ending().is_success(),
                    "{name}: {:?}",
                    member.ending()
                );
                let size = truth.coef()[0].iter().fold(1.0_f64, |a, w| a.max(w.abs()));
                let pairs = member.coef().iter().zip(truth.coef()[0]);
                let errors = pairs.map(|(a, b)| (a - b).abs());
                let of_intercept = (member.intercept() - truth.intercept()[0]).abs();
                let worst = errors.fold(of_intercept, f64::max);
                assert!(worst <= NEAR * size, "{name}: off by {worst:e}");
            }
        }
    }
}

#[test]
fn sparse_rows_and_columns_by_columns_are_the_same() {
    let estimator = Estimator::from(LogisticRegression::params());
    let x = features();
    let truth = grouped(&estimator, &Features::Dense(x.clone()), None);
    let entries: Vec<f64> = x.iter().copied().collect();
    let offsets = (0..=ROWS).map(|i| (i * COLS) as u64).collect();
    let columns = (0..ROWS * COLS).map(|i| (i % COLS) as u32).collect();
    let sparse = csr_from_parts((ROWS, COLS), offsets, columns, entries).expect("rows");
    assert_eq!(grouped(&estimator, &Features::Sparse(sparse), None), truth);
    let mut by_columns = Array2::zeros((COLS, ROWS)).reversed_axes();
    by_columns.assign(&x);
    assert_eq!(
        grouped(&estimator, &Features::Dense(by_columns), None),
        truth
    );
}

#[test]
fn numbers_of_groups_and_classes_are_not_encoded_again() {
    let x = Features::Dense(features());
    let (groups, numbers) = Classes::encode(&groups()[..]).expect("groups");
    let (classes, codes) = Classes::encode(&targets()[..]).expect("two classes");
    let device = Device::cpu();
    for estimator in estimators() {
        let (of, options) = ((&groups, numbers.clone()), FitOptions::default());
        let model = match estimator.is_classifier() {
            true => {
                let labels = (&classes, codes.clone());
                estimator.fit_encoded_labels_of_groups(&device, &x, labels, of, options)
            }
            false => estimator.fit_encoded_groups(&device, &x, &targets(), of, options),
        };
        assert_eq!(model, Ok(grouped(&estimator, &x, None)));
    }
    let ridge = Estimator::from(Ridge::params());
    let unknown = (&groups, vec![9_u32; ROWS]);
    let found = ridge.fit_encoded_groups(&device, &x, &targets(), unknown, FitOptions::default());
    assert!(matches!(found, Err(FitError::Labels(_))));
    let labels = (&classes, codes);
    let of = (&groups, numbers);
    let found = ridge.fit_encoded_labels_of_groups(&device, &x, labels, of, FitOptions::default());
    assert!(matches!(found, Err(FitError::Combination { .. })));
}

#[test]
fn groups_predict_by_their_label() {
    let x = Features::Dense(features());
    let groups = groups();
    let estimator = Estimator::from(LogisticRegression::params());
    let GroupedModel::Classifier(model) = grouped(&estimator, &x, None) else {
        panic!("a classifier")
    };
    let proba = model.predict_proba(&x, &groups[..]).expect("probabilities");
    let labels = model.predict(&x, &groups[..]).expect("labels");
    let alone = alone(&estimator, 20, None);
    let alone = alone.classifier().expect("a classifier");
    let expected = alone
        .predict_proba(&Device::cpu(), x.clone())
        .expect("probabilities");
    for row in (0..ROWS).filter(|row| group(*row) == 20) {
        assert!((proba[[row, 1]] - expected[[row, 1]]).abs() < 1e-5);
        let Labels::Numbers(labels) = &labels else {
            panic!("numbers")
        };
        assert_eq!(labels[row] == 1.0, proba[[row, 1]] > 0.5);
    }
    let unknown = model.decision_function(&x, &vec![7_i64; ROWS][..]);
    let error = unknown.expect_err("no group of that name").to_string();
    assert!(error.contains("found 7 for sample 0"), "{error}");
    assert!(model.member(&[20_i64][..]).is_ok());
    assert!(matches!(
        model.decision_function(&x, &groups[1..]),
        Err(FitError::Length { expected: ROWS, .. })
    ));
}

#[test]
fn what_is_wrong_with_a_group_is_its_own() {
    let (mut x, groups, mut y) = (features(), groups(), targets());
    let estimator = Estimator::from(LogisticRegression::params());
    let fit = |x: &Array2<f64>, y: &[f64]| {
        let labels = Labels::Numbers(y.to_vec());
        let x = Features::Dense(x.clone());
        let targets = Targets::Labels(&labels);
        let options = FitOptions::default();
        let model = estimator.fit_groups(&Device::cpu(), &x, targets, &groups[..], options);
        let Ok(GroupedModel::Classifier(model)) = model else {
            panic!("a classifier, not {model:?}")
        };
        model
    };
    let truth = fit(&x, &y);
    let first = |label: usize| (0..ROWS).find(|row| group(*row) == label).expect("a row");
    x[[first(10), 2]] = f64::NAN;
    // Columns that depend on each other in one group, one class in another.
    for row in 0..ROWS {
        match group(row) {
            20 => x[[row, 3]] = x[[row, 0]],
            30 => y[row] = 1.0,
            _ => (),
        }
    }
    let model = fit(&x, &y);
    assert_eq!(model.members()[0], truth.members()[0]);
    assert!(matches!(model.members()[1].ending(), Ending::Failed(why) if why.contains("column 2")));
    assert_eq!(model.members()[3].ending(), &Ending::OneClass);
    let x = Features::Dense(x);
    let error = model
        .predict(&x, &groups[..])
        .expect_err("a group without a model");
    assert!(error.to_string().contains("group 10"), "{error}");
    let of_one_class = vec![30_i64; ROWS];
    let proba = model.predict_proba(&x, &of_one_class[..]).expect("a class");
    assert!(
        proba
            .column(1)
            .iter()
            .skip(first(10) + 1)
            .all(|p| *p == 1.0 || p.is_nan())
    );
}

#[test]
fn what_groups_do_not_have_is_refused() {
    let x = Features::Dense(features());
    let (y, groups) = (targets(), groups());
    let three = Labels::Numbers((0..ROWS).map(|i| (i % 3) as f64).collect());
    let options = FitOptions::default();
    let logistic = Estimator::from(LogisticRegression::params());
    let of_three = logistic.fit_groups(
        &Device::cpu(),
        &x,
        Targets::Labels(&three),
        &groups[..],
        options,
    );
    assert!(matches!(of_three, Err(FitError::Combination { .. })));
    let ridge = Estimator::from(Ridge::params());
    let fit = |groups: &[i64], options| {
        ridge.fit_groups(&Device::cpu(), &x, Targets::Numbers(&y), groups, options)
    };
    let coef = [vec![0.0; COLS]];
    let started = FitOptions {
        start: Some((&coef, &[0.0])),
        ..FitOptions::default()
    };
    assert!(matches!(
        fit(&groups, started),
        Err(FitError::Combination { .. })
    ));
    let short = fit(&groups[1..], FitOptions::default());
    assert!(matches!(short, Err(FitError::Length { .. })));
}

#[test]
fn classes_that_no_penalty_holds_are_told() {
    let x = Array2::from_shape_fn((40, 1), |(i, _)| (i / 2) as f64 - 9.5);
    let y: Vec<f64> = (0..40)
        .map(|i| f64::from(u8::from(i >= 20 || i == 7)))
        .collect();
    let (labels, groups) = (
        Labels::Numbers(y),
        (0..40).map(|i| i % 2).collect::<Vec<i64>>(),
    );
    let estimator = Estimator::from(LogisticRegression::params().penalty(Penalty::None));
    let (x, targets) = (Features::Dense(x), Targets::Labels(&labels));
    let options = FitOptions::default();
    let model = estimator.fit_groups(&Device::cpu(), &x, targets, &groups[..], options);
    let model = model.expect("a fit of groups");
    let endings: Vec<_> = members(&model).iter().map(super::Member::ending).collect();
    assert_eq!(endings[0], &Ending::Fitted(Convergence::Separable));
    assert_eq!(endings[1], &Ending::Fitted(Convergence::Converged));
}
