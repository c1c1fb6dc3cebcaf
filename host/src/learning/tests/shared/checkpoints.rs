//! Fits that are ended again and again and go on from a checkpoint, against fits that are left alone.

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use super::*;
use crate::learning::{Checkpoint, CheckpointError, LinearSvc, Patience, RidgeClassifier, Solver};
use crate::ops::interruptible;

/// What is fitted, and by which solver.
fn fits() -> Vec<Estimator> {
    let poisson = || Glm::params().family(Family::Poisson).alpha(0.01);
    let logistic = LogisticRegression::params;
    let ridge = || Ridge::params().alpha(0.01);
    let tight = |estimator: Estimator| estimator.tolerance(1e-9);
    let all: Vec<Estimator> = vec![
        ridge().into(),
        ridge().solver(Solver::ConjugateGradient).into(),
        ridge().solver(Solver::NewtonCg).into(),
        Lasso::params().alpha(0.003).into(),
        logistic().into(),
        logistic().solver(Solver::NewtonCg).into(),
        logistic().solver(Solver::Lbfgs).into(),
        logistic()
            .penalty(Penalty::L1)
            .solver(Solver::NewtonCg)
            .into(),
        poisson().into(),
        poisson().solver(Solver::Lbfgs).into(),
        LinearSvc::params().into(),
        LinearSvc::params().solver(Solver::NewtonCg).into(),
        RidgeClassifier::params().into(),
        Huber::params().alpha(0.1).into(),
    ];
    all.into_iter().map(tight).collect()
}

/// One fit that ends before the given number of questions whether to go on.
fn fit_until<T: Number>(
    (device, end): (&Device, usize),
    (estimator, known): (&Estimator, &Known<T>),
    own: Features<T>,
    checkpoint: &Checkpoint,
) -> Result<Model, FitError> {
    let questions = Cell::new(0);
    let is_wanted = move || {
        questions.set(questions.get() + 1);
        questions.get() >= end
    };
    let options = FitOptions {
        checkpoint: Some(checkpoint),
        sample_weight: Some(&known.weights),
        ..FitOptions::default()
    };
    let targets = known.targets(estimator);
    interruptible(is_wanted, || {
        estimator.fit_with(device, own, targets, options)
    })
}

/// A fit that is ended ever later until it comes to its end, and how often it was ended. Members share the rows, another
/// number of them each time.
pub(super) fn fit_in_parts<T: Number>(
    members: &[usize],
    task: (&Estimator, &Known<T>),
    x: &Features<T>,
    checkpoint: &Checkpoint,
) -> (Model, usize) {
    for part in 0..10_000 {
        let (size, end) = (members[part % members.len()], 3 + part);
        let found = run_threads(size, |group| {
            let rows = group.rank() * ROWS / size..(group.rank() + 1) * ROWS / size;
            let device = match size {
                1 => Device::cpu(),
                _ => Device::cpu_of(&group),
            };
            fit_until((&device, end), task, x.select_rows(rows), checkpoint)
        });
        let mut models = Vec::new();
        for found in found {
            match found {
                Ok(model) => models.push(model),
                Err(FitError::Op(OpError::Interrupted)) => {}
                Err(error) => panic!("{:?}: {error}", task.0),
            }
        }
        if let Some(model) = models.pop() {
            assert_eq!(models.len() + 1, size, "all members end together");
            return (model, part);
        }
    }
    panic!("{:?} gets nowhere", task.0);
}

fn same_bits<T: Number>(x: &Features<T>, summation: Summation, members: &[usize]) -> usize {
    let (known, folder) = (Known::new(), tempfile::tempdir().expect("a folder"));
    let mut ended = 0;
    for (number, estimator) in fits().into_iter().enumerate() {
        let task = (&with_summation(&estimator, summation), &known);
        let expected = fit(&Device::cpu(), task, x.clone(), With::Weights).expect("a fit");
        let checkpoint = Checkpoint::new(folder.path().join(number.to_string()));
        let checkpoint = checkpoint.every(Duration::ZERO);
        let (found, parts) = fit_in_parts(members, task, x, &checkpoint);
        let what = format!("{:?} {summation:?} {members:?}", task.0);
        assert_eq!(found.coef(), expected.coef(), "{what}");
        assert_eq!(found.intercept(), expected.intercept(), "{what}");
        let report = |model: &Model| model.report().without_times();
        assert_eq!(report(&found).history, report(&expected).history, "{what}");
        assert_eq!(
            report(&found).objective,
            report(&expected).objective,
            "{what}"
        );
        ended += parts;
    }
    ended
}

/// By the solvers of the devices, and by those of the host, which go on alone.
#[test]
fn fits_that_were_interrupted_have_the_bits_of_others() {
    for x in [dense::<f64>(), sparse::<f64>()] {
        assert!(same_bits(&x, Summation::Reproducible, &[1]) > 50);
        assert!(same_bits(&x, Summation::Free, &[1]) > 20);
    }
    assert!(same_bits(&sparse::<f32>(), Summation::Reproducible, &[1]) > 50);
}

#[test]
fn members_go_on_from_the_checkpoints_of_others() {
    let members = [1, 3, 2];
    assert!(same_bits(&dense::<f64>(), Summation::Reproducible, &members) > 50);
    assert!(same_bits(&sparse::<f32>(), Summation::Reproducible, &members) > 50);
}

/// Coefficients that were best before the checkpoint are still known after it.
#[test]
fn patience_outlives_a_checkpoint() {
    let (x, known) = (dense::<f64>(), Known::new());
    let folder = tempfile::tempdir().expect("a folder");
    let patience = Patience {
        iterations: 3,
        larger_is_better: false,
    };
    // Of every solver: on the device, and on the host.
    for summation in [Summation::Reproducible, Summation::Free] {
        let estimator = LogisticRegression::params().tolerance(1e-12);
        let estimator = with_summation(&estimator.into(), summation);
        // Worse from the fourth iteration on.
        let score = |coef: &[Vec<f64>]| {
            let size: f64 = coef.iter().flatten().map(|w| w * w).sum();
            (size - 0.2).abs()
        };
        let checkpoint = Checkpoint::new(folder.path().join(format!("{summation:?}")));
        let checkpoint = checkpoint.every(Duration::ZERO);
        let fit = |end: usize, checkpoint: Option<&Checkpoint>| {
            let mut evaluate = |coef: &[Vec<f64>], _: &[f64]| score(coef);
            let questions = Cell::new(0);
            let is_wanted = move || {
                questions.set(questions.get() + 1);
                questions.get() >= end
            };
            let options = FitOptions {
                checkpoint,
                evaluate: Some(&mut evaluate),
                patience: Some(patience),
                ..FitOptions::default()
            };
            let targets = known.targets(&estimator);
            interruptible(is_wanted, || {
                estimator.fit_with(&Device::cpu(), x.clone(), targets, options)
            })
        };
        let expected = fit(usize::MAX, None).expect("a fit");
        let mut parts = (3..1000).map(|end| fit(end, Some(&checkpoint)));
        let found = parts.find_map(Result::ok).expect("a fit");
        assert_eq!(found.coef(), expected.coef());
        let report = |model: &Model| model.report().without_times();
        assert_eq!(report(&found), report(&expected));
    }
}

/// A checkpoint of a ridge regression that was ended on its way.
fn checkpoint_in(folder: &Path) -> Checkpoint {
    let checkpoint = Checkpoint::new(folder.join("checkpoint")).every(Duration::ZERO);
    let ended = go_on(&checkpoint, &ridge(), &dense::<f64>(), 4);
    assert_eq!(ended.unwrap_err(), FitError::Op(OpError::Interrupted));
    assert!(checkpoint.path().exists());
    checkpoint
}

fn ridge() -> Estimator {
    let ridge = Ridge::params().alpha(0.01).solver(Solver::NewtonCg);
    with_summation(&ridge.into(), Summation::Reproducible)
}

fn go_on<T: Number>(
    checkpoint: &Checkpoint,
    estimator: &Estimator,
    x: &Features<T>,
    end: usize,
) -> Result<Model, FitError> {
    let known = Known::<T>::new();
    fit_until(
        (&Device::cpu(), end),
        (estimator, &known),
        x.clone(),
        checkpoint,
    )
}

#[test]
fn checkpoints_of_other_fits_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoint = checkpoint_in(folder.path());
    let bytes = std::fs::read(checkpoint.path()).expect("there");
    let differs = |found: Result<Model, FitError>| match found {
        Err(FitError::Checkpoint(CheckpointError::Foreign { what, .. })) => what,
        other => panic!("{other:?}"),
    };
    let of = |estimator: &Estimator| differs(go_on(&checkpoint, estimator, &dense::<f64>(), 99));
    let other = Ridge::params().alpha(0.02).solver(Solver::NewtonCg);
    let other = with_summation(&other.into(), Summation::Reproducible);
    assert_eq!(of(&other), "alpha");
    assert_eq!(of(&ridge().tolerance(1e-3)), "controls.tolerance");
    let lasso = with_summation(&Lasso::params().into(), Summation::Reproducible);
    assert!(of(&lasso).contains("alpha"), "{}", of(&lasso));
    let single = differs(go_on(&checkpoint, &ridge(), &dense::<f32>(), 99));
    assert_eq!(single, "element type");
    let zeros = sparse::<f64>();
    let found = differs(go_on(&checkpoint, &ridge(), &zeros, 99));
    assert_eq!(found, "a sum over the squares of X");
    let after = std::fs::read(checkpoint.path()).expect("there");
    assert_eq!(after, bytes, "what is refused is not written over");
    let known = Known::<f64>::new();
    let options = || FitOptions {
        checkpoint: Some(&checkpoint),
        ..FitOptions::default()
    };
    let x = dense::<f64>();
    let targets = Targets::Numbers(&known.numbers[..]);
    let unweighted = ridge().fit_with(&Device::cpu(), x, targets, options());
    assert_eq!(differs(unweighted), "a digest of the weights");
    checkpoint.remove().expect("removed");
    checkpoint.remove().expect("nothing is left to remove");
    let found = go_on(&checkpoint, &other, &dense::<f64>(), 1_000_000);
    assert!(found.is_ok(), "{found:?}");
}

#[test]
fn damaged_checkpoints_and_places_for_none_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoint = checkpoint_in(folder.path());
    let mut bytes = std::fs::read(checkpoint.path()).expect("there");
    let last = bytes.len() - 20;
    bytes[last] ^= 4;
    std::fs::write(checkpoint.path(), &bytes).expect("written");
    let alone = go_on(&checkpoint, &ridge(), &dense::<f64>(), 99);
    let is_damaged =
        |found: &FitError| matches!(found, FitError::Checkpoint(CheckpointError::Damaged { .. }));
    assert!(is_damaged(&alone.unwrap_err()));
    let (x, known) = (dense::<f64>(), Known::new());
    let found = run_threads(2, |group| {
        let own = x.select_rows(75 * group.rank()..75 * (group.rank() + 1));
        let device = Device::cpu_of(&group);
        fit_until((&device, 99), (&ridge(), &known), own, &checkpoint)
    });
    let [first, second] = &found[..] else {
        panic!("{found:?}");
    };
    assert!(first.as_ref().is_err_and(is_damaged), "{first:?}");
    let said = second.as_ref().expect_err("no member goes on").to_string();
    assert!(
        said.contains("rank 0") && said.contains("whole checkpoint"),
        "{said}"
    );
    let nowhere = Checkpoint::new(folder.path().join("missing").join("checkpoint"));
    let found = go_on(&nowhere, &ridge(), &dense::<f64>(), 99);
    let is_refused = matches!(
        found,
        Err(FitError::Checkpoint(CheckpointError::Io {
            action: "write",
            ..
        }))
    );
    assert!(is_refused, "{found:?}");
}
