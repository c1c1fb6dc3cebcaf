//! What members that share the rows can fit, and what they refuse by name: whatever is added has to be given a place here.

use super::{Known, With, dense, fit, needs_all_rows};
use crate::device::Device;
use crate::device::group::run_threads;
use crate::learning::{
    Estimator, FitError, FitOptions, LinearSvc, LinearSvr, Quantile, Ridge, Solver, SvmLoss,
    Targets,
};
use crate::matrix::Features;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Shared {
    Fits,
    /// It needs all rows in one place.
    Refused,
}

/// Of a ridge regression.
fn of_solver(solver: Solver) -> Shared {
    match solver {
        Solver::Auto | Solver::NewtonCg | Solver::Lbfgs | Solver::ConjugateGradient => Shared::Fits,
        Solver::NewtonCholesky
        | Solver::CoordinateDescent
        | Solver::Qr
        | Solver::Svd
        | Solver::InteriorPoint => Shared::Refused,
    }
}

const SOLVERS: [Solver; 9] = [
    Solver::Auto,
    Solver::NewtonCg,
    Solver::Lbfgs,
    Solver::ConjugateGradient,
    Solver::NewtonCholesky,
    Solver::CoordinateDescent,
    Solver::Qr,
    Solver::Svd,
    Solver::InteriorPoint,
];

fn of_loss(loss: SvmLoss) -> Shared {
    match loss {
        SvmLoss::Squared => Shared::Fits,
        SvmLoss::Linear => Shared::Refused,
    }
}

/// The rows of a member of two.
fn half(rank: usize) -> Features<f64> {
    dense::<f64>().select_rows(75 * rank..75 * (rank + 1))
}

/// Has two members fit it, and checks that both do, or both refuse and say what to do.
fn judge(estimator: &Estimator, expected: Shared) {
    let known = Known::<f64>::new();
    let found = run_threads(2, |group| {
        let (device, own) = (Device::cpu_of(&group), half(group.rank()));
        fit(&device, (estimator, &known), own, With::Nothing).map(|_| ())
    });
    for found in found {
        is_as_expected(found, expected, &format!("{estimator:?}"));
    }
}

fn is_as_expected(found: Result<(), FitError>, expected: Shared, what: &str) {
    match (expected, found) {
        (Shared::Fits, found) => assert_eq!(found, Ok(()), "{what}"),
        (Shared::Refused, Err(error @ FitError::Combination { .. })) => {
            let text = error.to_string();
            let says = text.contains("rows that several processes share");
            assert!(says && text.contains("run one process"), "{what}: {text}");
        }
        (Shared::Refused, found) => panic!("{what}: {found:?}"),
    }
}

#[test]
fn every_estimator_fits_or_is_refused_by_name() {
    for estimator in Estimator::all() {
        let expected = match needs_all_rows(&estimator) {
            true => Shared::Refused,
            false => Shared::Fits,
        };
        judge(&estimator, expected);
    }
}

#[test]
fn every_solver_fits_or_is_refused_by_name() {
    for solver in SOLVERS {
        // Only losses with kinks have an interior point.
        let estimator = match solver {
            Solver::InteriorPoint => Estimator::from(Quantile::params()),
            _ => Ridge::params().into(),
        };
        judge(&estimator.solver(solver), of_solver(solver));
    }
}

#[test]
fn losses_with_kinks_and_signs_are_refused_by_name() {
    for loss in [SvmLoss::Squared, SvmLoss::Linear] {
        judge(&LinearSvc::params().loss(loss).into(), of_loss(loss));
        judge(&LinearSvr::params().loss(loss).into(), of_loss(loss));
    }
    judge(&Ridge::params().non_negative(true).into(), Shared::Refused);
}

#[test]
fn penalties_of_columns_fit_where_they_scale_them_and_are_refused_elsewhere() {
    let known = Known::<f64>::new();
    let all = [0.5, 1.0, 2.0, 3.0];
    let some = [0.0, 1.0, 2.0, 3.0];
    for (factors, expected) in [(all, Shared::Fits), (some, Shared::Refused)] {
        let found = run_threads(2, |group| {
            let options = FitOptions {
                penalty_factors: Some(&factors),
                ..FitOptions::default()
            };
            let (device, own) = (Device::cpu_of(&group), half(group.rank()));
            let estimator = Estimator::from(Ridge::params());
            let targets = Targets::Numbers(&known.numbers);
            estimator
                .fit_with(&device, own, targets, options)
                .map(|_| ())
        });
        for found in found {
            is_as_expected(found, expected, &format!("{factors:?}"));
        }
    }
}
