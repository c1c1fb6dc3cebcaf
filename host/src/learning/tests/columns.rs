//! Fits over the columns that have entries, beside the same fits over all columns.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::learning::{
    Checkpoint, Folds, Lasso, ResidentDataset, Ridge, RowMoments, cross_validate,
};
use crate::matrix::csr_from_parts;
use crate::ops::MatrixOptions;
use crate::plan::fused::Summation;

const COLUMNS: usize = 144;
/// Every twelfth column has entries.
const SEEN: usize = COLUMNS / 12;
/// Relative to the gradient at the start: as near to the minimum as f64 allows of all of them.
const TOLERANCE: f64 = 1e-10;

fn is_seen(j: usize) -> bool {
    j % 12 == 5
}

/// Four entries a row, whose values are of both signs.
fn sparse() -> Features<f64> {
    let offsets = (0..=ROWS as u64).map(|row| 4 * row).collect();
    let entries = || (0..ROWS).flat_map(|row| (0..4).map(move |i| (row, i)));
    let column = |(row, i): (usize, usize)| (12 * ((row / 2 + i) % 3 + 3 * i) + 5) as u32;
    let value = |(row, i): (usize, usize)| ((row * 29 + i * 17) % 23) as f64 / 11.0 - 0.9;
    let (indices, values) = (
        entries().map(column).collect(),
        entries().map(value).collect(),
    );
    let x = csr_from_parts((ROWS, COLUMNS), offsets, indices, values);
    Features::Sparse(x.expect("columns ascend"))
}

/// On a device, for fits over the columns with entries, and for fits over all.
fn both(device: &Device, options: MatrixOptions) -> [ResidentDataset<f64>; 2] {
    let x = Arc::new(sparse());
    let policies: [fn(usize, u64, usize) -> bool; 2] = [|_, _, _| true, |_, _, _| false];
    policies.map(|policy| {
        let x = (device, x.clone());
        ResidentDataset::by_policy(x, options, 0, policy).expect("finite data")
    })
}

fn on_cpu() -> [ResidentDataset<f64>; 2] {
    both(&Device::cpu(), MatrixOptions::default())
}

fn targets_of(estimator: &Estimator) -> (Vec<f64>, Labels, bool) {
    (numbers(), labels(), estimator.is_classifier())
}

fn fit_on(
    estimator: &Estimator,
    data: &ResidentDataset<f64>,
    options: FitOptions<'_>,
) -> Result<Model, FitError> {
    let (numbers, labels, is_classifier) = targets_of(estimator);
    let targets = match is_classifier {
        true => Targets::Labels(&labels),
        false => Targets::Numbers(&numbers),
    };
    estimator.fit_on(data, targets, options)
}

/// The largest difference of coefficients, relative to the largest of them.
fn apart(found: &Model, expected: &Model) -> f64 {
    let all = |model: &Model| -> Vec<f64> {
        let coef = model.coef().into_iter().flatten().copied();
        coef.chain(model.intercept()).collect()
    };
    let (found, expected) = (all(found), all(expected));
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(0.0_f64, |most, w| most.max(w.abs()));
    let pairs = found.iter().zip(&expected);
    let most = pairs.fold(0.0_f64, |most, (a, b)| {
        assert!(a.is_finite() && b.is_finite());
        most.max((a - b).abs())
    });
    most / largest
}

fn is_0_without_entries(model: &Model) -> bool {
    let mut all = model.coef().into_iter();
    all.all(|coef| {
        let each = coef.iter().enumerate();
        coef.len() == COLUMNS && each.filter(|(j, _)| !is_seen(*j)).all(|(_, w)| *w == 0.0)
    })
}

/// Objectives alone of losses with kinks: their coefficients need not be the only ones.
#[test]
fn every_estimator_has_the_coefficients_of_a_fit_over_all_columns() {
    let [few, all] = on_cpu();
    assert_eq!(few.for_fits().0.matrix().cols(), SEEN);
    assert_eq!(few.matrix().cols(), COLUMNS);
    for estimator in Estimator::all() {
        let estimator = estimator.tolerance(TOLERANCE);
        let fit = |data| fit_on(&estimator, data, FitOptions::default()).expect("fitted");
        let (found, expected) = (fit(&few), fit(&all));
        let (f, g) = (found.report().objective, expected.report().objective);
        assert!(
            (f - g).abs() <= 1e-7 * (1.0 + g.abs()),
            "{estimator:?}: {f} {g}"
        );
        assert!(is_0_without_entries(&found), "{estimator:?}");
        if !estimator.stated().needs_host() {
            let apart = apart(&found, &expected);
            assert!(apart <= 1e-5, "{estimator:?}: {apart:e}");
        }
    }
}

#[test]
fn whatever_a_fit_is_given_counts_as_over_all_columns() {
    let [few, all] = on_cpu();
    let flags: Vec<bool> = (0..COLUMNS).map(|j| j % 5 != 0).collect();
    let factors: Vec<f64> = (0..COLUMNS).map(|j| 0.5 + (j % 3) as f64).collect();
    let weights: Vec<f64> = (0..ROWS).map(|row| (row % 4) as f64).collect();
    let offset: Vec<f64> = (0..ROWS).map(|row| (row % 3) as f64 / 5.0).collect();
    let moments = RowMoments::of(&sparse(), &weights);
    for estimator in [
        Estimator::from(Ridge::params().standardize(true)),
        Lasso::params().alpha(0.01).into(),
        LogisticRegression::params().solver(Solver::Lbfgs).into(),
    ] {
        let estimator = estimator.tolerance(TOLERANCE);
        let fit = |data| {
            let mut evaluate = |coef: &[Vec<f64>], _: &[f64]| coef[0].len() as f64;
            let options = FitOptions {
                sample_weight: Some(&weights),
                columns: Some(&flags),
                moments: Some(&moments),
                offset: (!estimator.is_classifier()).then_some(&offset[..]),
                penalty_factors: Some(&factors),
                evaluate: Some(&mut evaluate),
                ..FitOptions::default()
            };
            let model = fit_on(&estimator, data, options).expect("fitted");
            let figure = Some(COLUMNS as f64);
            let mut seen = model.report().history.iter();
            assert!(seen.all(|iteration| iteration.validation == figure));
            assert_eq!(model.coef()[0][5], 0.0, "masked");
            model
        };
        let (found, expected) = (fit(&few), fit(&all));
        let apart = apart(&found, &expected);
        assert!(apart <= 1e-5, "{estimator:?}: {apart:e}");
    }
}

#[test]
fn starts_are_where_they_were_and_those_of_other_columns_are_kept() {
    let [few, all] = on_cpu();
    let ridge = Estimator::from(Ridge::params().solver(Solver::ConjugateGradient));
    let ridge = ridge.tolerance(TOLERANCE);
    let first = fit_on(&ridge, &all, FitOptions::default()).expect("fitted");
    let mut coef: Vec<Vec<f64>> = first.coef().into_iter().map(<[f64]>::to_vec).collect();
    let go_on = |data, coef: &[Vec<f64>]| {
        let options = FitOptions {
            start: Some((coef, &first.intercept())),
            ..FitOptions::default()
        };
        fit_on(&ridge, data, options).expect("fitted")
    };
    assert!(go_on(&few, &coef).n_iter() <= 1, "it begins at its end");
    assert!(apart(&go_on(&few, &coef), &first) <= 1e-9);
    coef[0][0] = 2.5;
    let (found, expected) = (go_on(&few, &coef), go_on(&all, &coef));
    assert_eq!(found.coef(), expected.coef(), "all columns are read");
    let short = [vec![0.0; SEEN]];
    let options = FitOptions {
        start: Some((&short, &[0.0])),
        ..FitOptions::default()
    };
    let error = fit_on(&ridge, &few, options).unwrap_err();
    let is_of_all = matches!(
        error,
        FitError::Length {
            expected: COLUMNS,
            found: SEEN,
            ..
        }
    );
    assert!(is_of_all, "{error}");
}

#[test]
fn folds_have_the_scores_of_fits_over_all_columns() {
    let (numbers, folds) = (numbers(), Folds::consecutive(ROWS, 3).expect("three folds"));
    let path: Vec<Estimator> = [1.0, 0.1]
        .map(|alpha| Ridge::params().alpha(alpha).tolerance(TOLERANCE).into())
        .to_vec();
    let scores = |solver: Solver, data: &ResidentDataset<f64>| -> Vec<f64> {
        let path: Vec<Estimator> = path.iter().map(|of| of.clone().solver(solver)).collect();
        let targets = Targets::Numbers(&numbers);
        let points = cross_validate(data, targets, None, &folds, &path, |_| {}).expect("folds");
        let each = points.iter().flat_map(|point| &point.folds);
        each.map(|fold| fold.score()).collect()
    };
    let [few, all] = on_cpu();
    // One by one, and in batches.
    for solver in [Solver::Auto, Solver::NewtonCg] {
        let (found, expected) = (scores(solver, &few), scores(solver, &all));
        for (found, expected) in found.iter().zip(&expected) {
            let apart = (found - expected).abs();
            assert!(apart <= 1e-6, "{solver:?}: {found} {expected}");
        }
    }
}

#[test]
fn a_checkpoint_of_some_columns_is_none_of_all() {
    let [few, all] = on_cpu();
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoint = Checkpoint::new(folder.path().join("fit.checkpoint")).every(Duration::ZERO);
    let newton = Estimator::from(LogisticRegression::params().solver(Solver::NewtonCg));
    let fit = |data: &ResidentDataset<f64>| {
        let options = FitOptions {
            checkpoint: Some(&checkpoint),
            ..FitOptions::default()
        };
        fit_on(&newton, data, options)
    };
    let until = |end: Option<usize>| {
        let asked = Rc::new(Cell::new(0));
        let counted = asked.clone();
        let is_wanted = move || {
            counted.set(counted.get() + 1);
            Some(counted.get()) == end
        };
        (interruptible(is_wanted, || fit(&few)), asked.get())
    };
    let (expected, asked) = until(None);
    checkpoint.remove().expect("there may be one");
    let (ended, _) = until(Some(asked / 2));
    assert_eq!(ended.unwrap_err(), FitError::Op(OpError::Interrupted));
    let error = fit(&all).unwrap_err().to_string();
    assert!(error.contains("columns with entries"), "{error}");
    let found = fit(&few).expect("it goes on");
    assert_eq!(found.coef(), expected.expect("fitted").coef());
}

#[test]
fn a_gpu_fits_the_columns_with_entries() {
    let device = Device::emulator(crate::device::EmulatorOptions::default());
    let [few, all] = both(&device, MatrixOptions::default());
    let newton = Estimator::from(LogisticRegression::params()).tolerance(TOLERANCE);
    let fit = |data| fit_on(&newton, data, FitOptions::default()).expect("fitted");
    let (found, expected) = (fit(&few), fit(&all));
    assert!(is_0_without_entries(&found));
    assert!(apart(&found, &expected) <= 1e-5);
}

#[test]
fn sums_that_repeat_on_every_device_are_over_all_columns() {
    let options = MatrixOptions {
        summation: Summation::Reproducible,
        ..MatrixOptions::default()
    };
    let [few, _] = both(&Device::cpu(), options);
    assert_eq!(few.for_fits().0.matrix().cols(), COLUMNS);
}
