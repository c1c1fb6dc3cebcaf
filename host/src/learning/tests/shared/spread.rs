//! Fits whose solvers' vectors members keep a share of each, against one process.

use std::time::Duration;

use super::checkpoints::fit_in_parts;
use super::*;
use crate::learning::{CgOptions, CgStart, Checkpoint, Solver, conjugate_gradient};
use crate::ops::{Matrix, Vectors};

/// More than one block of a GPU takes through an iteration: vectors of 10 pieces, 11 with an intercept.
const WIDE: usize = 9_920;

/// Five entries a row, of which two columns are frequent.
fn wide<T: Number>() -> Features<T> {
    let columns = |i: usize| {
        [
            i % 2,
            3 + i % 3,
            10 + i * 61,
            200 + i * 63 % 5_000,
            WIDE - 1 - i,
        ]
    };
    let mut indices: Vec<u32> = Vec::new();
    for i in 0..ROWS {
        let mut own = columns(i);
        own.sort_unstable();
        indices.extend(own.map(|j| j as u32));
    }
    let values = (0..indices.len()).map(|k| <T as crate::cpu::Scalar>::narrow(value(k, 1)));
    let offsets = (0..=ROWS).map(|i| 5 * i as u64).collect();
    Features::Sparse(
        csr_from_parts((ROWS, WIDE), offsets, indices, values.collect()).expect("rows"),
    )
}

/// Every solver that has such vectors; in f64 what has converged is finished by another.
fn spread_estimators() -> Vec<Estimator> {
    let ridge = || Ridge::params().alpha(0.5);
    let poisson = Glm::params().family(Family::Poisson).alpha(0.1);
    vec![
        ridge().solver(Solver::ConjugateGradient).into(),
        ridge().solver(Solver::NewtonCg).fit_intercept(false).into(),
        LogisticRegression::params().solver(Solver::NewtonCg).into(),
        poisson.solver(Solver::NewtonCg).into(),
        Huber::params().alpha(5.0).into(),
        // Several elements of a column, and those of lbfgs: replicated whatever is wanted.
        LogisticRegression::params().solver(Solver::Lbfgs).into(),
    ]
}

fn with_vectors(estimator: &Estimator, summation: Summation, vectors: Vectors) -> Estimator {
    let options = MatrixOptions {
        summation,
        vectors,
        ..MatrixOptions::default()
    };
    estimator.clone().matrix_options(options)
}

fn all(model: &Model) -> Vec<f64> {
    [model.coef().concat(), model.intercept()].concat()
}

fn spread_fits_have_the_bits_of_one<T: Number>(estimators: &[Estimator], with: With) {
    let (x, known) = (wide::<T>(), Known::new());
    for estimator in estimators {
        let of = |vectors| with_vectors(estimator, Summation::Reproducible, vectors);
        let (one, spread) = (of(Vectors::Replicated), of(Vectors::Spread));
        let expected = fit(&Device::cpu(), (&one, &known), x.clone(), with).expect("a fit");
        for shares in &SHARES[2..] {
            for found in shared((&spread, &known), &x, shares, with) {
                let what = format!("{estimator:?} {with:?} {shares:?}");
                assert_eq!(all(&found), all(&expected), "{what}");
                let of = |model: &Model| (model.report().n_iter, model.report().objective);
                assert_eq!(of(&found), of(&expected), "{what}");
            }
        }
    }
}

#[test]
fn fits_with_spread_vectors_have_the_bits_of_one_process() {
    let estimators = spread_estimators();
    spread_fits_have_the_bits_of_one::<f64>(&estimators, With::Weights);
    spread_fits_have_the_bits_of_one::<f32>(&estimators[..4], With::Nothing);
    let standardised = estimators[..2].iter().cloned();
    let standardised: Vec<_> = standardised.map(|one| one.standardize(true)).collect();
    spread_fits_have_the_bits_of_one::<f64>(&standardised, With::Nothing);
}

#[test]
fn emulated_gpus_fit_with_spread_vectors() {
    let (x, known) = (wide::<f64>(), Known::new());
    for (estimator, summation) in [
        (&spread_estimators()[0], Summation::Reproducible),
        (&spread_estimators()[2], Summation::Free),
    ] {
        let one = with_vectors(estimator, summation, Vectors::Replicated);
        let spread = with_vectors(estimator, summation, Vectors::Spread);
        let expected = fit(&Device::cpu(), (&one, &known), x.clone(), With::Weights);
        let expected = all(&expected.expect("a fit"));
        let found = run_threads(2, |group| {
            let own = x.select_rows([0..64, 64..ROWS][group.rank()].clone());
            let emulator = Device::small_emulator(EmulatorOptions::default());
            let device = emulator.in_group(&group).map_err(OpError::from)?;
            fit(&device, (&spread, &known), own, With::Weights)
        });
        for model in found {
            let found = all(&model.expect("a fit"));
            if summation == Summation::Reproducible {
                assert_eq!(found, expected, "{spread:?}");
            }
            for (found, expected) in found.iter().zip(&expected) {
                // Solvers end at a gradient of 1e-4 of the first one, wherever they come from.
                let error = (found - expected).abs();
                assert!(error <= 1e-3 * (1.0 + expected.abs()), "{spread:?}");
            }
        }
    }
}

/// Whole vectors are written: what has a share of them each, or all, goes on.
#[test]
fn spread_fits_that_were_interrupted_have_the_bits_of_others() {
    let (x, known) = (wide::<f64>(), Known::new());
    let folder = tempfile::tempdir().expect("a folder");
    let mut ended = 0;
    for (number, estimator) in spread_estimators()[..3].iter().enumerate() {
        let estimator = estimator.clone().tolerance(1e-9);
        let spread = with_vectors(&estimator, Summation::Reproducible, Vectors::Spread);
        let task = (&spread, &known);
        let expected = fit(&Device::cpu(), task, x.clone(), With::Weights).expect("a fit");
        let checkpoint = Checkpoint::new(folder.path().join(number.to_string()));
        let checkpoint = checkpoint.every(Duration::ZERO);
        let (found, parts) = fit_in_parts(&[2, 1, 3], task, &x, &checkpoint);
        assert_eq!(all(&found), all(&expected), "{spread:?}");
        ended += parts;
    }
    assert!(ended > 10, "{ended} ends");
}

/// The solve itself, with columns that are centred.
#[test]
fn a_solve_by_itself_is_spread() {
    let x = wide::<f64>();
    let solve = |x: &Matrix<f64>| -> Result<Vec<f64>, OpError> {
        let device = x.device();
        let upload = |of: fn(usize) -> f64| {
            let values: Vec<f64> = (0..WIDE).map(of).collect();
            device.upload(&values)
        };
        let start = CgStart {
            residual: upload(|j| value(j, 2))?,
            inverse_diagonal: Some(upload(|j| 1.0 / (1 + j % 4) as f64)?),
            means: Some(upload(|j| value(j, 3) / 64.0)?),
        };
        let options = CgOptions {
            l2: 0.5,
            tolerance: 1e-6,
            max_iter: 40,
        };
        let solution = conjugate_gradient(x, start, &options, |_| {})?;
        let mut found = solution.w.to_vec()?;
        found.push(solution.iterations as f64);
        found.push(solution.residual_ratio);
        Ok(found)
    };
    let options = MatrixOptions {
        summation: Summation::Reproducible,
        vectors: Vectors::Spread,
        ..MatrixOptions::default()
    };
    let alone = Matrix::with_options(&Device::cpu(), x.clone(), options).expect("a matrix");
    let expected = solve(&alone).expect("a solution");
    for shares in SHARES {
        let found = run_threads(shares.len(), |group| {
            let first: usize = shares[..group.rank()].iter().sum();
            let own = x.select_rows(first..first + shares[group.rank()]);
            solve(&Matrix::with_options(
                &Device::cpu_of(&group),
                own,
                options,
            )?)
        });
        for found in found {
            assert_eq!(found.as_ref(), Ok(&expected), "{shares:?}");
        }
    }
}
