//! Fits with reproducible sums: every device computes the coefficients of the CPU, bit by bit.

use anyhow::{Context, Result, ensure};
use ndarray::Array2;
use warpfuse::device::Device;
use warpfuse::learning::{
    ElasticNet, Estimator, Family, FitOptions, Glm, Huber, Labels, Lasso, LinearRegression,
    LinearSvc, LinearSvr, Link, LogisticRegression, Model, Penalty, Ridge, Solver, Targets,
};
use warpfuse::matrix::{Dtype, Element, Features, csr_from_parts};
use warpfuse::ops::{MatrixOptions, Number};
use warpfuse::plan::fused::Summation;

use super::suite::{Suite, Test};

/// How X is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Storage {
    Sparse,
    Dense,
    /// Sparse, with more columns than one block of a GPU takes through an iteration.
    Wide,
}

/// What targets are.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Numbers,
    Counts,
    Classes(usize),
}

/// Adds every estimator that iterates on a device.
pub fn add(suite: &mut Suite) {
    for (name, ..) in estimators() {
        for storage in [Storage::Sparse, Storage::Dense] {
            add_one(suite, name, storage);
        }
    }
    for name in ["ridge", "logistic_lbfgs"] {
        suite.add_in_both(
            |dtype| named(name, Storage::Wide, dtype),
            move |device| same::<f32>(device, name, Storage::Wide),
            move |device| same::<f64>(device, name, Storage::Wide),
        );
    }
}

fn named(name: &str, storage: Storage, dtype: Dtype) -> Test {
    Test::new(format!("same_fits/{name}_{storage:?}/{dtype}").to_lowercase())
}

fn add_one(suite: &mut Suite, name: &'static str, storage: Storage) {
    // Emulators run both element types: the promise is made of each.
    suite.add(named(name, storage, Dtype::F32), move |device| {
        same::<f32>(device, name, storage)
    });
    suite.add(named(name, storage, Dtype::F64), move |device| {
        same::<f64>(device, name, storage)
    });
}

fn options() -> MatrixOptions {
    MatrixOptions {
        summation: Summation::Reproducible,
        ..MatrixOptions::default()
    }
}

fn estimators() -> Vec<(&'static str, Estimator, Kind)> {
    let same = options();
    let logistic = || LogisticRegression::params().matrix_options(same);
    let glm = || Glm::params().matrix_options(same);
    let poisson = glm().family(Family::Poisson).alpha(0.01);
    vec![
        (
            "linreg",
            LinearRegression::params().matrix_options(same).into(),
            Kind::Numbers,
        ),
        (
            "ridge",
            Ridge::params().matrix_options(same).into(),
            Kind::Numbers,
        ),
        (
            "ridge_standardised",
            Ridge::params()
                .standardize(true)
                .fit_intercept(false)
                .matrix_options(same)
                .into(),
            Kind::Numbers,
        ),
        (
            "lasso",
            Lasso::params().alpha(0.02).matrix_options(same).into(),
            Kind::Numbers,
        ),
        (
            "elastic_net",
            ElasticNet::params().alpha(0.02).matrix_options(same).into(),
            Kind::Numbers,
        ),
        (
            "huber",
            Huber::params().matrix_options(same).into(),
            Kind::Numbers,
        ),
        (
            "svr",
            LinearSvr::params().matrix_options(same).into(),
            Kind::Numbers,
        ),
        ("poisson", poisson.clone().into(), Kind::Counts),
        (
            "poisson_lbfgs",
            poisson.solver(Solver::Lbfgs).into(),
            Kind::Counts,
        ),
        (
            "gamma",
            glm()
                .family(Family::Gamma)
                .link(Link::Log)
                .alpha(0.1)
                .into(),
            Kind::Counts,
        ),
        ("logistic", logistic().into(), Kind::Classes(2)),
        (
            "logistic_lbfgs",
            logistic().solver(Solver::Lbfgs).into(),
            Kind::Classes(2),
        ),
        (
            "logistic_l1",
            logistic().penalty(Penalty::L1).into(),
            Kind::Classes(2),
        ),
        ("multinomial", logistic().into(), Kind::Classes(3)),
        (
            "one_vs_rest",
            logistic().one_vs_rest(true).into(),
            Kind::Classes(3),
        ),
        (
            "svc",
            LinearSvc::params().matrix_options(same).into(),
            Kind::Classes(2),
        ),
    ]
}

/// Numbers in [−½, ½) whose sums depend on their order.
fn noise(i: usize) -> f64 {
    let mixed = (i as u64)
        .wrapping_add(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 11) as f64 / (1u64 << 53) as f64
        - 0.5
}

fn features<T: Number>(storage: Storage) -> Features<T> {
    let value = |i: usize| <T as Element>::from_f64(3.0 * noise(i) + 0.1);
    let sparse = |rows: usize, cols: usize, per_row: usize| {
        let stratum = cols / per_row;
        let column = |i: usize| {
            let within = ((noise(i + 7_000_003) + 0.5) * stratum as f64) as usize;
            (i % per_row * stratum + within) as u32
        };
        let entries = rows * per_row;
        let offsets = (0..=rows).map(|row| (row * per_row) as u64).collect();
        let indices = (0..entries).map(column).collect();
        let values = (0..entries).map(value).collect();
        let parts = csr_from_parts((rows, cols), offsets, indices, values);
        Features::Sparse(parts.expect("a matrix"))
    };
    match storage {
        Storage::Dense => {
            Features::Dense(Array2::from_shape_fn((150, 9), |(i, j)| value(i * 9 + j)))
        }
        Storage::Sparse => sparse(170, 30, 6),
        Storage::Wide => sparse(40, 8_400, 12),
    }
}

fn fit<T: Number>(
    device: &Device,
    (estimator, kind): (&Estimator, Kind),
    x: Features<T>,
) -> Result<Model> {
    let rows = 0..x.rows();
    let number = |i: usize| 2.0 * noise(i + 99_991);
    let options = FitOptions::default();
    Ok(match kind {
        Kind::Classes(k) => {
            let labels = rows
                .map(|i| ((number(i) + 1.0) * 0.5 * k as f64).floor())
                .collect();
            let labels = Labels::Numbers(labels);
            estimator.fit_with(device, x, Targets::Labels(&labels), options)?
        }
        Kind::Numbers | Kind::Counts => {
            let target = |i: usize| match kind {
                Kind::Counts => (4.0 * (number(i) + 1.0)).floor() + 1.0,
                _ => number(i),
            };
            let targets: Vec<T> = rows.map(|i| <T as Element>::from_f64(target(i))).collect();
            estimator.fit_with(device, x, Targets::Numbers(&targets), options)?
        }
    })
}

fn same<T: Number>(device: &Device, name: &str, storage: Storage) -> Result<()> {
    let mut all = estimators().into_iter();
    let (_, estimator, kind) = all.find(|(of, ..)| *of == name).context("a known name")?;
    let of = |device: &Device| fit::<T>(device, (&estimator, kind), features(storage));
    let (expected, found) = (of(&Device::cpu())?, of(device)?);
    let first = |model: &Model| {
        model
            .report()
            .history
            .first()
            .map(|at| at.objective.to_bits())
    };
    ensure!(
        first(&found) == first(&expected),
        "the first iteration is another: {:?} and {:?}",
        found.report().history.first(),
        expected.report().history.first()
    );
    let steps = |model: &Model| (model.report().n_iter, model.report().solver);
    ensure!(
        steps(&found) == steps(&expected),
        "{:?} and {:?}",
        steps(&found),
        steps(&expected)
    );
    ensure!(found.report().n_iter > 0, "nothing was fitted");
    let differ = numbers(&found).into_iter().zip(numbers(&expected));
    let differ = differ
        .enumerate()
        .find(|(_, (a, b))| a.to_bits() != b.to_bits());
    ensure!(
        differ.is_none(),
        "coefficient (number, (found, on the CPU)) {differ:?}"
    );
    Ok(())
}

/// Coefficients and intercepts.
fn numbers(model: &Model) -> Vec<f64> {
    let mut all: Vec<f64> = model.coef().into_iter().flatten().copied().collect();
    all.extend(model.intercept());
    all
}
