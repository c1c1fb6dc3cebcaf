//! Kernel ridge regression over rows that members share.

use std::cell::Cell;
use std::time::Duration;

use ndarray::{Array2, ArrayView2, s};

use super::*;
use crate::device::group::Group;
use crate::learning::{Checkpoint, KernelModel, KernelRidge, KernelSolver};
use crate::ops::{KernelFunction, interruptible};

/// λ.
const ALPHA: f64 = 0.1;

fn rows<T: Number>() -> Array2<T> {
    dense().to_dense().expect("small").into_owned()
}

/// By a factor, and by iterations with and without a preconditioner; in f32 several solves refine each other.
fn fits() -> [KernelRidge; 3] {
    let params = KernelRidge::params()
        .kernel(KernelFunction::Matern32, 0.5)
        .alpha(ALPHA)
        .tolerance(1e-9);
    let iterations = params.solver(KernelSolver::ConjugateGradient);
    [params, iterations.rank(7), iterations.rank(0)]
}

fn own<'a, T>(group: &Group, shares: &[usize], all: &'a Array2<T>) -> ArrayView2<'a, T> {
    let first: usize = shares[..group.rank()].iter().sum();
    all.slice(s![first..first + shares[group.rank()], ..])
}

/// Every member's model, and its predictions for its rows.
fn by_all<T: Number>(
    kind: &Device,
    (params, shares): (&KernelRidge, &[usize]),
) -> Vec<(KernelModel, Vec<T>)> {
    let (all, known) = (rows::<T>(), Known::<T>::new());
    let found = run_threads(shares.len(), |group| {
        let (device, own) = (
            kind.in_group(&group).expect("joins"),
            own(&group, shares, &all),
        );
        let model = params.fit(&device, own, &known.numbers)?;
        let predicted = model.predict(&device, own)?;
        Ok::<_, FitError>((model, predicted))
    });
    let each = found.into_iter();
    each.map(|found| found.unwrap_or_else(|error| panic!("{params:?} {shares:?}: {error}")))
        .collect()
}

fn on_cpus<T: Number>() {
    for params in fits() {
        let (expected, predicted) = by_all::<T>(&Device::cpu(), (&params, &[ROWS])).remove(0);
        for shares in SHARES {
            for (found, found_predicted) in by_all::<T>(&Device::cpu(), (&params, shares)) {
                assert_eq!(
                    found.dual_coef(),
                    expected.dual_coef(),
                    "{params:?} {shares:?}"
                );
                assert_eq!(found.points(), expected.points(), "{shares:?}");
                assert_eq!(found.report().n_iter, expected.report().n_iter);
                assert!(found_predicted == predicted, "{params:?} {shares:?}");
            }
        }
    }
}

#[test]
fn members_have_the_bits_of_one_process() {
    on_cpus::<f32>();
    on_cpus::<f64>();
}

/// Emulated GPUs, whose sums have other slices for fewer samples; every member has the same bits.
#[test]
fn emulated_members_solve_the_same_system() {
    let params = fits()[1].tolerance(1e-10);
    let (expected, _) = by_all::<f64>(&Device::cpu(), (&params, &[ROWS])).remove(0);
    let emulator = Device::small_emulator(EmulatorOptions::default());
    let found = by_all::<f64>(&emulator, (&params, &[60, 0, 90]));
    for (model, predicted) in &found {
        assert_eq!(model.dual_coef(), found[0].0.dual_coef());
        assert!(*predicted == found[0].1);
        assert!(model.converged());
        // ‖a − b‖ ≤ ‖(K + λI)⁻¹‖·(‖r‖ + ‖s‖), both residuals at most 1e-10 of the targets, the inverse at most 1/λ.
        let targets = Known::<f64>::new().numbers;
        let norm = targets.iter().map(|t| t * t).sum::<f64>().sqrt();
        let both = model.dual_coef().iter().zip(expected.dual_coef());
        let apart = both.map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
        assert!(apart <= 2e-10 * norm / ALPHA, "{apart}");
    }
}

/// Ended again and again, members go on from where the first one has written.
#[test]
fn shared_fits_go_on_from_their_checkpoints() {
    let params = fits()[1];
    let (all, known) = (rows::<f32>(), Known::<f32>::new());
    let (expected, _) = by_all::<f32>(&Device::cpu(), (&params, &[ROWS])).remove(0);
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoint = Checkpoint::new(folder.path().join("checkpoint")).every(Duration::ZERO);
    for part in 0..1_000 {
        let found = run_threads(3, |group| {
            let (device, own) = (Device::cpu_of(&group), own(&group, &[50, 1, 99], &all));
            let questions = Cell::new(0);
            let is_over = move || {
                questions.set(questions.get() + 1);
                questions.get() > 1 + part
            };
            interruptible(is_over, || {
                params.fit_with_checkpoint(&device, own, &known.numbers, &checkpoint, |_| {})
            })
        });
        let mut ended = 0;
        for found in found {
            match found {
                Err(FitError::Op(OpError::Interrupted)) => ended += 1,
                Err(error) => panic!("{error}"),
                Ok(found) => assert_eq!(found.dual_coef(), expected.dual_coef()),
            }
        }
        if ended == 0 {
            assert!(part > 3, "ended {part} times");
            return;
        }
        assert_eq!(ended, 3, "all of them or none");
    }
    panic!("it gets nowhere");
}
