//! Fits that store X in a further form because the planner expects it to pay: on emulated GPUs whose gathers are so slow
//! that a small matrix is worth it.

use anyhow::{Result, ensure};
use warpfuse::device::{Device, Emulator, EmulatorOptions, Usage};
use warpfuse::learning::{
    FitOptions, Labels, LogisticRegression, Penalty, ResidentDataset, Ridge, Solver,
};
use warpfuse::matrix::{Features, csr_from_parts};
use warpfuse::ops::{Matrix, MatrixOptions, Preparation};
use warpfuse::plan::fused::{Stored, Summation};
use warpfuse::plan::limits::DeviceLimits;
use warpfuse::plan::objective::Constant;
use warpfuse::plan::rates::SizeTable;

use super::suite::{Suite, Test};

const ROWS: usize = 600;
/// More than y and sums in shared memory have room for.
const COLS: usize = 20_000;
const PER_ROW: usize = 20;
/// Of the penalty; without it every solution would do.
const ALPHA: f64 = 10.0;
const TOLERANCE: f64 = 1e-9;
/// Bytes of what iterations look at, which need not be as many.
const FIGURES: u64 = 8 << 10;
/// The place of each column in the head.
const PLACES: u64 = (COLS * size_of::<u32>()) as u64;
/// The part of a penalty that is not smooth.
const L1_RATIO: f64 = 0.2;
/// Gathers of such a device, 10⁹ per second.
const SLOW: f64 = 1e-4;

/// Adds fits with and without a further form, and what is stored then; emulators are the tests' own.
pub fn add(suite: &mut Suite) {
    let tests = [
        ("ridge", ridge as fn() -> Result<()>),
        ("logistic", logistic),
        ("elastic_net", elastic_net),
        ("hot_columns", hot_columns),
        ("reproducible", reproducible),
        ("uploads", uploads),
    ];
    for (name, run) in tests {
        let test = Test::new(format!("prepared_fits/{name}")).of_entries();
        suite.add(test, move |_| run());
    }
}

/// A GPU with two processors, which gathers slowly.
fn device() -> Device {
    let mut limits = DeviceLimits::known("h200").expect("a listed device");
    limits.sms = 2;
    limits.rates.gather_l1 = SLOW;
    limits.rates.gather = SizeTable::new([(4e3, SLOW)]);
    Device::Emulator(Emulator::of(limits, EmulatorOptions::default()))
}

/// The first column in every row, the others the rarer the further they are from the beginning of a stratum.
fn skewed() -> Features<f64> {
    rows_of(PER_ROW)
}

/// The same with this many entries in each row.
fn rows_of(per_row: usize) -> Features<f64> {
    let stratum = COLS / per_row;
    let hash =
        |i: usize| ((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64 / (1 << 24) as f64;
    let column = |i: usize| match i % per_row {
        0 => 0,
        k => (k * stratum + (hash(i).powi(8) * stratum as f64) as usize) as u32,
    };
    let entries = ROWS * per_row;
    let offsets = (0..=ROWS).map(|row| (row * per_row) as u64).collect();
    let indices = (0..entries).map(column).collect();
    let values = (0..entries).map(|i| hash(i + entries) - 0.5).collect();
    Features::Sparse(csr_from_parts((ROWS, COLS), offsets, indices, values).expect("a matrix"))
}

fn target(row: usize) -> f64 {
    ((row * 37 % 101) as f64 / 50.0 - 1.0) + 0.5
}

/// X with a further form as announced: hot columns, over which a product of a Hessian is one fused product.
fn resident(device: &Device) -> Result<ResidentDataset<f64>> {
    let resident =
        ResidentDataset::for_evaluations(device, skewed(), MatrixOptions::default(), 1_000)?;
    let stored = resident.matrix().problem().stored;
    ensure!(stored == Stored::RowsAndHotColumns, "stored as {stored}");
    ensure!(
        resident
            .matrix()
            .hessian_in_one_product(Constant::Present)?,
        "products of a Hessian are those of objectives"
    );
    Ok(resident)
}

/// Both fits end with a gradient of at most TOLERANCE times that at the start, and the objective is convex by `convexity`
/// at least: they are twice their quotient apart at most. f64's rounding is far below.
fn near(found: &[f64], expected: &[f64], (start, convexity): (f64, f64)) -> Result<()> {
    let squares = found.iter().zip(expected).map(|(a, b)| (a - b) * (a - b));
    let apart = squares.sum::<f64>().sqrt();
    let most = 2.0 * TOLERANCE * start / convexity;
    ensure!(
        apart <= most,
        "coefficients are {apart:e} apart, expected {most:e} at most"
    );
    let length = expected.iter().map(|w| w * w).sum::<f64>().sqrt();
    ensure!(
        length > 1e3 * most,
        "coefficients are {length:e} long: nothing is told by {most:e}"
    );
    Ok(())
}

/// ‖Xᵀr‖ for r at most 1 in size: the gradient at the start, and a constant column's.
fn most_gradient(size: f64) -> f64 {
    let Features::Sparse(x) = skewed() else {
        return f64::NAN;
    };
    let mut sums = vec![0.0; COLS];
    for (column, value) in x.indices().iter().zip(x.data()) {
        sums[*column as usize] += value.abs() * size;
    }
    let length = |values: &[f64]| values.iter().map(|v| v * v).sum::<f64>().sqrt();
    length(&sums).hypot(ROWS as f64 * size)
}

fn ridge() -> Result<()> {
    let targets: Vec<f64> = (0..ROWS).map(target).collect();
    let fit = Ridge::params()
        .alpha(ALPHA)
        .tolerance(TOLERANCE)
        .fit_intercept(false);
    let fitted = fit.fit_on(&resident(&device())?, &targets, FitOptions::default())?;
    let expected = fit.fit(&Device::cpu(), skewed(), &targets)?;
    ensure!(
        fitted.converged() && expected.converged(),
        "no fit ends too soon"
    );
    near(fitted.coef(), expected.coef(), (most_gradient(1.5), ALPHA))
}

fn logistic() -> Result<()> {
    let labels = (0..ROWS).map(|row| f64::from(target(row) > 0.5)).collect();
    let labels = Labels::Numbers(labels);
    let fit = LogisticRegression::params()
        .c(1.0 / ALPHA)
        .tolerance(TOLERANCE)
        .fit_intercept(false);
    let fitted = fit.fit_on(&resident(&device())?, &labels, FitOptions::default())?;
    let expected = fit.fit(&Device::cpu(), skewed(), &labels)?;
    ensure!(
        fitted.converged() && expected.converged(),
        "no fit ends too soon"
    );
    near(
        &fitted.coef()[0],
        &expected.coef()[0],
        (most_gradient(1.0), ALPHA),
    )
}

/// With an intercept, whose sums no product over a form gives: rows that weigh 0, 1 or 2, one in eight of the class, and a
/// penalty that is not smooth.
fn elastic_net() -> Result<()> {
    let labels = (0..ROWS).map(|row| f64::from(row * 37 % 101 % 8 == 0));
    let labels = Labels::Numbers(labels.collect());
    let weights: Vec<f64> = (0..ROWS).map(|row| (row % 3) as f64).collect();
    let options = || FitOptions {
        sample_weight: Some(&weights),
        ..FitOptions::default()
    };
    let penalty = Penalty::ElasticNet { l1_ratio: L1_RATIO };
    let fit = LogisticRegression::params()
        .penalty(penalty)
        .tolerance(TOLERANCE);
    let fitted = fit.fit_on(&resident(&device())?, &labels, options())?;
    let expected = fit.fit_with(&Device::cpu(), skewed(), &labels, options())?;
    ensure!(
        fitted.converged() && expected.converged(),
        "no fit ends too soon"
    );
    // Less the weighted mean of the rows, whose norm is at most a row's, the intercept has no part in the coefficients.
    let row = 0.5 * (PER_ROW as f64).sqrt();
    let gradient = (1.0 + row) * most_gradient(2.0);
    near(
        &fitted.coef()[0],
        &expected.coef()[0],
        (gradient, 1.0 - L1_RATIO),
    )
}

/// Where the whole pattern counts, the few columns that have nearly all entries need no gathers from global memory.
fn hot_columns() -> Result<()> {
    let mut x = Matrix::new(&device(), skewed())?;
    let nothing = x.prepare(Preparation::For { evaluations: 0 })?;
    ensure!(nothing == Stored::Rows, "stored as {nothing} for nothing");
    let stored = x.prepare(Preparation::For { evaluations: 1_000 })?;
    ensure!(stored == Stored::RowsAndHotColumns, "stored as {stored}");
    Ok(())
}

/// Promised bits are those of the rows.
fn reproducible() -> Result<()> {
    let options = MatrixOptions {
        summation: Summation::Reproducible,
        ..MatrixOptions::default()
    };
    let resident = ResidentDataset::for_evaluations(&device(), skewed(), options, 1_000)?;
    let stored = resident.matrix().problem().stored;
    ensure!(stored == Stored::Rows, "stored as {stored}");
    Ok(())
}

/// Bytes that a fit has sent up and down, after X was placed with a form that this many evaluations pay for.
struct Traffic {
    /// Before the fit.
    placed: Usage,
    up: u64,
    down: u64,
    /// Whether the fit was the first to need the rows on the device.
    uploaded_rows: bool,
}

fn traffic(per_row: usize, evaluations: u64) -> Result<Traffic> {
    let (device, options) = (device(), MatrixOptions::default());
    let data = ResidentDataset::for_evaluations(&device, rows_of(per_row), options, evaluations)?;
    let (placed, had_rows) = (device.usage(), data.matrix().has_rows());
    let is_prepared = data.matrix().problem().stored != Stored::Rows;
    ensure!(is_prepared == (evaluations > 0), "{:?}", data.matrix());
    ensure!(had_rows != is_prepared, "rows lie beside a further form");
    let targets: Vec<f64> = (0..ROWS).map(target).collect();
    let fit = Ridge::params().alpha(ALPHA).fit_intercept(false);
    let fit = fit.solver(Solver::NewtonCg);
    fit.fit_on(&data, &targets, FitOptions::default())?;
    let after = device.usage();
    Ok(Traffic {
        placed,
        up: after.sent_bytes - placed.sent_bytes,
        down: after.received_bytes,
        uploaded_rows: data.matrix().has_rows() && !had_rows,
    })
}

/// X crosses the link once in each form and never comes back: what comes back does not grow with the entries, nor does
/// what goes up in a fit, but for rows that a product needs beside a further form.
fn uploads() -> Result<()> {
    for evaluations in [1_000, 0] {
        let [few, many] = [PER_ROW, 2 * PER_ROW].map(|per_row| traffic(per_row, evaluations));
        let (few, many) = (few?, many?);
        for Traffic { placed, .. } in [&few, &many] {
            ensure!(placed.received_bytes == 0, "{placed:?}");
            // All that was uploaded is still there, but for the places of columns from which indices are marked on the device:
            // nothing went up twice.
            let kept = placed.live_bytes as u64 + PLACES;
            ensure!(placed.sent_bytes <= kept, "{placed:?}");
        }
        let entries = (ROWS * PER_ROW * (size_of::<u32>() + size_of::<f64>())) as u64;
        ensure!(PLACES < entries, "places would hide X");
        let of_rows = |fit: &Traffic| if fit.uploaded_rows { entries } else { 0 };
        let up = many.up.saturating_sub(few.up);
        ensure!(up <= of_rows(&many) + FIGURES, "{up} bytes more went up");
        let down = many.down.abs_diff(few.down);
        ensure!(down <= FIGURES, "{down} bytes more came back");
        ensure!(FIGURES < entries / 4, "figures would hide X");
    }
    Ok(())
}
