//! How often X is read: once per objective with its gradient, and once per Hessian product, by what the emulator counts
//! of each line of the kernels.
//!
//! Rows are no longer than registers hold; what a thread has not kept of a longer row comes a second time from cache.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use ndarray::Array2;
use warpfuse::device::Device;
use warpfuse::device::emulator::{Action, Counting, EmulatorOptions, Profile, Space};
use warpfuse::learning::{Extras, Labels, LogisticRegression, Placed, SolveReport};
use warpfuse::matrix::{CsrMatrix, Features};
use warpfuse::ops::MatrixOptions;
use warpfuse::plan::limits::DeviceLimits;

use super::suite::{Suite, Test};

const ROWS: usize = 1_024;
/// Loads per entry of X that belong to rows and vectors are fewer than this, relative to those of X.
const REST: f64 = 0.6;

/// Adds the fits that are counted; the emulator is the test's own.
pub fn add(suite: &mut Suite) {
    type Case = (&'static str, fn() -> Features<f32>, usize, &'static [f64]);
    // Loads per entry and pass, line by line: packs of 4; values, indices and y; packs of 4 in 4 lanes; Y of 3 columns.
    let cases: [Case; 4] = [
        ("dense", dense, 2, &[0.25]),
        ("sparse", sparse, 2, &[1.0, 1.0, 1.0]),
        ("dense", dense, 3, &[1.0]),
        ("sparse", sparse, 3, &[3.0, 1.0, 1.0]),
    ];
    for (storage, features, classes, expected) in cases {
        let name = format!("passes/logreg_{classes}_classes_{storage}/f32");
        suite.add(Test::new(name).of_entries(), move |_| {
            counted(features(), classes, expected)
        });
    }
}

fn value(row: usize, column: usize) -> f32 {
    let bits = (row * 31 + column * 17 + row * column) % 101;
    bits as f32 / 50.0 - 1.0
}

fn dense() -> Features<f32> {
    Features::Dense(Array2::from_shape_fn((ROWS, 128), |(i, j)| value(i, j)))
}

/// 20 entries in each row, next to one another.
fn sparse() -> Features<f32> {
    let offsets = (0..=ROWS as u64).map(|row| 20 * row).collect();
    let column = |i: usize| i / 20 % 11 + i % 20;
    let indices = (0..20 * ROWS).map(|i| column(i) as u32).collect();
    let values = (0..20 * ROWS).map(|i| value(i / 20, column(i))).collect();
    Features::Sparse(CsrMatrix::new((ROWS, 30), offsets, indices, values))
}

/// Fits, and compares what each line of the kernels loaded, per entry of X, evaluation and Hessian product.
fn counted(features: Features<f32>, classes: usize, expected: &[f64]) -> Result<()> {
    let usual = EmulatorOptions::default();
    // A grid so small that each of its threads has many rows.
    let limits = DeviceLimits {
        sms: 1,
        ..usual.limits.clone()
    };
    let device = Device::emulator(EmulatorOptions {
        counting: Counting::Sites,
        limits,
        ..usual
    });
    let entries = features.nnz();
    let labels = (0..ROWS)
        .map(|row| (row * 7 % 13 % classes) as f64)
        .collect();
    let placed = Placed::new(&device, features, MatrixOptions::default())?;
    let fit = LogisticRegression::params().max_iter(2).tolerance(1e-3);
    let model = fit.fit_on(&placed, &Labels::Numbers(labels), Extras::default())?;
    let Device::Emulator(emulator) = &device else {
        unreachable!("an emulator was made");
    };
    let wanted = products(model.report()) * entries;
    let mut loads: Vec<f64> = by_line(&emulator.profiles())
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
fn products(report: &SolveReport) -> usize {
    1 + report
        .history
        .iter()
        .map(|iteration| 1 + iteration.inner)
        .sum::<usize>()
}

/// Loads of the kernels that read X, all launches together.
fn by_line(profiles: &BTreeMap<&'static str, Profile>) -> BTreeMap<(String, u32), u64> {
    let reads_x = |name: &str| name.starts_with("objective_") || name.starts_with("softmax_");
    let mut all = BTreeMap::new();
    for (_, profile) in profiles.iter().filter(|(name, _)| reads_x(name)) {
        for (key, counts) in &profile.sites {
            if key.space == Space::Global && key.action == Action::Load {
                let line = (key.site.file.clone(), key.site.line);
                *all.entry(line).or_default() += counts.accesses;
            }
        }
    }
    all
}
