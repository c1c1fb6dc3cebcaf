//! How often X is read: once per objective with its gradient, and once per Hessian product, by what the emulator counts
//! of each line of the kernels.
//!
//! Rows are no longer than registers hold; what a thread has not kept of a longer row comes a second time from cache.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use ndarray::Array2;
use warpfuse::device::Device;
use warpfuse::device::emulator::{Action, Counting, Emulator, EmulatorOptions, Profile, Space};
use warpfuse::learning::{
    Estimator, FitOptions, FitReport, Folds, Labels, LogisticRegression, ResidentDataset, Ridge,
    Solver, Targets, cross_validate,
};
use warpfuse::matrix::{CsrMatrix, Features};
use warpfuse::ops::MatrixOptions;
use warpfuse::plan::limits::DeviceLimits;

use super::suite::{Suite, Test};

const ROWS: usize = 512;
/// Rows of problems that are solved together.
pub const FEW_ROWS: usize = 96;
/// Loads per entry of X that belong to rows and vectors are fewer than this, relative to those of X.
pub const REST: f64 = 0.6;

/// Adds the fits that are counted; the emulator is the test's own.
pub fn add(suite: &mut Suite) {
    type Case = (&'static str, fn() -> Features<f32>, usize, &'static [f64]);
    // Loads per entry and pass, line by line: packs of 4; values, indices and y; packs of 4 in 4 lanes; Y of 3 columns,
    // of which the last of 4 lanes loads the first once more.
    let cases: [Case; 4] = [
        ("dense", dense, 2, &[0.25]),
        ("sparse", || sparse(ROWS), 2, &[1.0, 1.0, 1.0]),
        ("dense", dense, 3, &[1.0]),
        ("sparse", || sparse(ROWS), 3, &[4.0, 1.0, 1.0]),
    ];
    for (storage, features, classes, expected) in cases {
        let name = format!("passes/logreg_{classes}_classes_{storage}/f32");
        suite.add(Test::new(name).of_entries(), move |_| {
            counted(features(), classes, expected)
        });
    }
    let folds = Test::new("passes/ridge_of_folds_sparse/f32");
    suite.add(folds.of_entries(), |_| counted_folds());
}

/// The fits to two folds read X as often together as the longer of them does alone, which the CPU tells.
fn counted_folds() -> Result<()> {
    let device = counting();
    let resident = ResidentDataset::new(&device, sparse(FEW_ROWS), MatrixOptions::default())?;
    let fit = Ridge::params().alpha(0.1).fit_intercept(false);
    let fit = fit.tolerance(0.3).solver(Solver::NewtonCg);
    let folds = Folds::consecutive(FEW_ROWS, 2)?;
    let targets: Vec<f32> = (0..FEW_ROWS).map(|row| value(row, row % 7)).collect();
    let path = [Estimator::Ridge(fit.clone())];
    let numbers = Targets::Numbers(&targets);
    cross_validate(&resident, numbers, None, &folds, &path, |_| {})?;
    let counts = by_line(&profiles(&device), |name| {
        name.starts_with("sparse_many_fused")
    });
    let entries = 20 * FEW_ROWS as u64;
    let of_entries = |loads: &u64| loads.is_multiple_of(entries);
    let together = counts.into_values().filter(of_entries).min().unwrap_or(0) / entries;
    let on_host = ResidentDataset::new(&Device::cpu(), sparse(FEW_ROWS), MatrixOptions::default())?;
    let mut longest = 0;
    for fold in 0..2 {
        let options = FitOptions {
            sample_weight: Some(&folds.training_weights(fold, None)),
            ..FitOptions::default()
        };
        let history = fit.fit_on(&on_host, &targets, options)?;
        let inner = history.history().iter().map(|i| i.inner as u64);
        longest = longest.max(inner.sum());
    }
    ensure!(
        together == longest && longest > 0,
        "two folds read X {together} times, the longer of them alone {longest} times"
    );
    Ok(())
}

pub fn value(row: usize, column: usize) -> f32 {
    let bits = (row * 31 + column * 17 + row * column) % 101;
    bits as f32 / 50.0 - 1.0
}

pub fn dense() -> Features<f32> {
    Features::Dense(Array2::from_shape_fn((ROWS, 128), |(i, j)| value(i, j)))
}

/// 20 entries in each row, next to one another.
pub fn sparse(rows: usize) -> Features<f32> {
    let offsets = (0..=rows as u64).map(|row| 20 * row).collect();
    let column = |i: usize| i / 20 % 11 + i % 20;
    let indices = (0..20 * rows).map(|i| column(i) as u32).collect();
    let values = (0..20 * rows).map(|i| value(i / 20, column(i))).collect();
    Features::Sparse(CsrMatrix::new((rows, 30), offsets, indices, values))
}

/// Fits, and compares what each line of the kernels loaded, per entry of X, evaluation and Hessian product.
fn counted(features: Features<f32>, classes: usize, expected: &[f64]) -> Result<()> {
    let device = counting();
    let entries = features.nnz();
    let labels = (0..ROWS)
        .map(|row| (row * 7 % 13 % classes) as f64)
        .collect();
    let resident = ResidentDataset::new(&device, features, MatrixOptions::default())?;
    let fit = LogisticRegression::params().max_iter(2).tolerance(1e-3);
    let model = fit.fit_on(&resident, &Labels::Numbers(labels), FitOptions::default())?;
    let wanted = products(model.report()) * entries;
    let mut loads: Vec<f64> = by_line(&profiles(&device), reads_x)
        .into_values()
        .map(|accesses| accesses as f64 / wanted as f64)
        .collect();
    loads.sort_by(|a, b| b.total_cmp(a));
    let (of_x, rest) = loads.split_at(expected.len().min(loads.len()));
    let near = |(found, expected): (&f64, &f64)| (found / expected - 1.0).abs() <= 0.05;
    let least = expected.last().copied().unwrap_or_default();
    let once = of_x.len() == expected.len() && of_x.iter().zip(expected).all(near);
    ensure!(
        once && rest.iter().all(|loads| *loads <= REST * least),
        "loads per entry and pass, line by line: {loads:.3?}, expected {expected:?} and less"
    );
    Ok(())
}

/// The first evaluation, one per iteration, and the Hessian products.
fn products(report: &FitReport) -> usize {
    1 + report
        .history
        .iter()
        .map(|iteration| 1 + iteration.inner)
        .sum::<usize>()
}

/// An emulator that counts, with a grid so small that each of its threads has many rows.
pub fn counting() -> Device {
    let counted = EmulatorOptions {
        counting: Counting::Sites,
        ..EmulatorOptions::default()
    };
    let limits = DeviceLimits {
        sms: 1,
        ..Emulator::new(counted).limits().clone()
    };
    Device::Emulator(Emulator::of(limits, counted))
}

pub fn profiles(device: &Device) -> BTreeMap<&'static str, Profile> {
    match device {
        Device::Emulator(emulator) => emulator.profiles(),
        _ => BTreeMap::new(),
    }
}

/// Whether a kernel of a single fit reads X.
fn reads_x(name: &str) -> bool {
    name.starts_with("objective_") || name.starts_with("softmax_")
}

/// Loads of the kernels that are wanted, all launches together.
pub fn by_line(
    profiles: &BTreeMap<&'static str, Profile>,
    wanted: impl Fn(&str) -> bool,
) -> BTreeMap<(String, u32), u64> {
    let mut all = BTreeMap::new();
    for (_, profile) in profiles.iter().filter(|(name, _)| wanted(name)) {
        for (key, counts) in &profile.sites {
            if key.space == Space::Global && key.action == Action::Load {
                let line = (key.site.file.clone(), key.site.line);
                *all.entry(line).or_default() += counts.accesses;
            }
        }
    }
    all
}
