//! X larger than what a device may hold of it, as JSON lines: products and fits at several limits, beside what the link
//! carries in the same run.
//!
//! ```text
//! system stream [DEVICE] [ENTRIES]     fused products of a dense and of sparse X; 400,000,000 entries if not given
//! system launches [DEVICE] [ENTRIES]   launches of products of sparse X with other numbers of columns, predicted and timed,
//!                                      and products of it at several limits; 80,000,000 entries if not given
//! system fit [DEVICE] [ROWS] [LIMIT] [COLS]   logistic regression on ROWS × COLS, 30 a row, all of it on the device and
//!                                      under a limit of the device; 10,000,000 rows, 1GiB and 1,000,000 if not given
//! system kddb [DEVICE] [LIMIT] [SCALE] the same on the shape of kddb, 19,264,097 × 29,890,095 with 566 million entries in columns
//!                                      of a power law, rows times SCALE; 2GiB and 1 if not given
//! system large [DEVICE] [ENTRIES]      products of more entries than 32 bits count, most of them in host memory, beside
//!                                      sums that are known; 5,000,000,000 if not given
//! system choice [DEVICE] [SECONDS] [PART] passes over problems of all sizes, predicted and timed on the CPU, on the device
//!                                      and on both; rows divided by PART; 120 seconds and 1 if not given
//! system fits [DEVICE] [GROUPS]        a model for each of GROUPS groups of 1,000 × 20, beside a plain read and beside scikit-learn; 10,000
//!                                      if not given
//! system forms [DEVICE] [SHAPE] [SCALE] [host]   hot columns made on the device, step by step; with `host` beside those that the
//!                                      host makes; kddb and 1 if not given
//! system by-form [DEVICE] [SHAPE] [SCALE]   every form of a shape: what it takes to make, and products over it; rcv1 and 1 if
//!                                      not given
//! system place [DEVICE]                what it takes until a product may begin, step by step
//! system table4 [DEVICE]               table 4 of the source: conjugate gradients from host memory, beside cuBLAS and cuSPARSE
//! system uneven [DEVICE]               reproducible products of log-normal rows and of the shape of rcv1 by every strategy, f32 and f64
//! system soak [DEVICE] [SECONDS]       matrices of twice the memory allowed, vectors that come and go, and faults: every
//!                                      result beside the CPU's; 20 seconds if not given
//! ```

mod by_form;
mod choice;
mod fits;
mod forms;
mod launches;
mod limits;
mod place;
mod soak;
mod table4;
mod uneven;

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use ndarray::Array2;
use rayon::prelude::*;
use serde_json::{Value, json};
use warpfuse::device::{Device, MemoryOptions};
use warpfuse::io::synth::NamedShape;
use warpfuse::learning::{Estimator, FitOptions, Labels, LogisticRegression, Targets};
use warpfuse::matrix::{Features, csr_from_parts};
use warpfuse::ops::{Matrix, MatrixOptions, Terms};
use warpfuse::plan::fused::{Product, Summation};
use warpfuse_benches::case::SEED;

/// Entries of a sparse row.
const PER_ROW: usize = 20;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let device = |name: Option<&&str>| name.copied().unwrap_or("cuda:0").parse::<Device>();
    let number = |at: usize, usual: usize| -> Result<usize> {
        let word = words.get(at).map(|word| word.parse());
        Ok(word.transpose().context("a number")?.unwrap_or(usual))
    };
    let scale = |at: usize| -> Result<f64> {
        let word = words.get(at).map(|word| word.parse());
        Ok(word.transpose().context("a number")?.unwrap_or(1.0))
    };
    match words[..] {
        ["stream", ..] => limits::run(&device(words.get(1))?, number(2, 400_000_000)?),
        ["launches", ..] => launches::run(&device(words.get(1))?, number(2, 80_000_000)?),
        ["fit", ..] => {
            let limit = words.get(3).copied().unwrap_or("1GiB").parse()?;
            let shape = (number(2, 10_000_000)?, number(4, 1_000_000)?);
            let features = sparse(shape.0, shape.1, 30, true)?;
            fit(&device(words.get(1))?, features, limit)
        }
        ["kddb", ..] => {
            let limit = words.get(2).copied().unwrap_or("2GiB").parse()?;
            let shape = NamedShape::Kddb.spec(scale(3)?, SEED)?;
            let features = shape.generate::<f32>()?.dataset.features;
            fit(&device(words.get(1))?, features, limit)
        }
        ["large", ..] => large(&device(words.get(1))?, number(2, 5_000_000_000)?),
        ["choice", ..] => {
            let seconds = number(2, 120)? as f64;
            choice::run(&device(words.get(1))?, seconds, number(3, 1)?)
        }
        ["fits", ..] => fits::run(&device(words.get(1))?, number(2, 10_000)?),
        ["forms", ..] => {
            let shape = words.get(2).copied().unwrap_or("kddb").parse()?;
            let with_host = words.get(4) == Some(&"host");
            forms::run(&device(words.get(1))?, (shape, scale(3)?), with_host)
        }
        ["by-form", ..] => {
            let shape = words.get(2).copied().unwrap_or("rcv1").parse()?;
            by_form::run(&device(words.get(1))?, (shape, scale(3)?))
        }
        ["place", ..] => place::run(&device(words.get(1))?),
        ["uneven", ..] => uneven::run(&device(words.get(1))?),
        ["table4", ..] => table4::run(&device(words.get(1))?),
        ["soak", ..] => soak::run(&device(words.get(1))?, number(2, 20)? as f64),
        _ => bail!(
            "expected `launches`, `fits`, `forms`, `by-form`, `soak`, `table4`, `uneven`, `place`, `choice`, `large`, `kddb [DEVICE] [LIMIT] [SCALE]`, `stream [DEVICE] [ENTRIES]` or `fit [DEVICE] [ROWS] [LIMIT]`"
        ),
    }
}

/// A number from its place, the same on every machine: the mix of SplitMix64.
fn noise(place: u64) -> f32 {
    let mut word = place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((word ^ (word >> 31)) >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
}

fn dense(rows: usize, cols: usize) -> Result<Features<f32>> {
    let places = (0..rows * cols).into_par_iter();
    let values: Vec<f32> = places.map(|place| noise(place as u64)).collect();
    Ok(Features::Dense(Array2::from_shape_vec(
        (rows, cols),
        values,
    )?))
}

/// Rows of entries in columns of their own ranges, all equal or not.
fn sparse(rows: usize, cols: usize, per_row: usize, is_equal: bool) -> Result<Features<f32>> {
    let of_range = cols / per_row;
    let places = (0..rows * per_row).into_par_iter();
    let column = |place: usize| {
        let drawn = (f64::from(noise(place as u64)) + 1.0) / 2.0;
        let within = (drawn * of_range as f64) as usize;
        (place % per_row * of_range + within.min(of_range - 1)) as u32
    };
    let indices: Vec<u32> = places.clone().map(column).collect();
    let value = |place: usize| if is_equal { 1.0 } else { noise(!place as u64) };
    let values: Vec<f32> = places.map(value).collect();
    let offsets = (0..=rows).map(|row| (row * per_row) as u64).collect();
    Ok(Features::Sparse(csr_from_parts(
        (rows, cols),
        offsets,
        indices,
        values,
    )?))
}

fn plain_bytes(features: &Features<f32>) -> u64 {
    let bytes = match features.is_sparse() {
        true => features.nnz() * 8 + 4 * (features.rows() + 1),
        false => features.nnz() * 4,
    };
    bytes as u64
}

/// Fused products, one after the other.
struct Passes {
    seconds: Vec<f64>,
    /// Bytes to the device in each.
    crossed: u64,
    found: Vec<f32>,
}

impl Passes {
    /// This many products with a vector of noise.
    fn of(matrix: &Matrix<f32>, count: usize) -> Result<Passes> {
        let device = matrix.device();
        let y = (0..matrix.cols()).map(|place| noise(place as u64));
        let y = device.upload(&y.collect::<Vec<f32>>())?;
        let mut w = device.zeros(matrix.cols())?;
        let mut once = || -> Result<f64> {
            device.synchronize()?;
            let begun = Instant::now();
            matrix.fused(&y, &Terms::default(), &mut w)?;
            device.synchronize()?;
            Ok(begun.elapsed().as_secs_f64())
        };
        // Plans, kernels, page-locked memory.
        for _ in 0..2 {
            once()?;
        }
        let before = device.usage().sent_bytes;
        let seconds = (0..count).map(|_| once()).collect::<Result<Vec<_>>>()?;
        Ok(Passes {
            seconds,
            crossed: (device.usage().sent_bytes - before) / count as u64,
            found: w.to_vec()?,
        })
    }

    fn median(&self) -> f64 {
        let mut sorted = self.seconds.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }
}

/// Rows whose entries are all one, each in a column of its own range: sums that are known without adding.
fn large(device: &Device, entries: usize) -> Result<()> {
    const COLS: usize = 40_000;
    let per_row = 250;
    let rows = entries / per_row;
    let features = Arc::new(sparse(rows, COLS, per_row, true)?);
    let options = MatrixOptions {
        device_bytes: Some(plain_bytes(&features) / 5),
        ..MatrixOptions::default()
    };
    let begun = Instant::now();
    let x = Matrix::with_options(device, features.clone(), options)?;
    let (y, mut p) = (device.upload(&vec![1.0_f32; COLS])?, device.zeros(rows)?);
    x.forward(&y, &Terms::default(), &mut p)?;
    let placed = begun.elapsed().as_secs_f64();
    let is_right = |p: &[f32]| p.par_iter().all(|p| *p == per_row as f32);
    ensure!(is_right(&p.to_vec()?), "X·1 is not {per_row} everywhere");
    let begun = Instant::now();
    let (ones, mut w) = (device.upload(&vec![1.0_f32; rows])?, device.zeros(COLS)?);
    x.transposed(&ones, &Terms::default(), &mut w)?;
    let counted: f64 = w.to_vec()?.into_iter().map(f64::from).sum();
    let (seconds, nnz) = (begun.elapsed().as_secs_f64(), features.nnz());
    // Counts below 2^24 are exact in f32.
    ensure!(
        counted == nnz as f64,
        "Xᵀ·1 adds up to {counted}, expected {nnz}"
    );
    println!(
        "{}",
        json!({
            "what": "large", "rows": rows, "cols": COLS, "nnz": nnz, "place_seconds": placed, "pass_seconds": seconds,
            "residency": x.residency(), "peak_bytes": device.usage().peak_bytes,
        })
    );
    Ok(())
}

fn fit(device: &Device, features: Features<f32>, limit: MemoryOptions) -> Result<()> {
    let (rows, features) = (features.rows(), Arc::new(features));
    let label = |row: usize| if noise(!row as u64) > 0.0 { 1.0 } else { -1.0 };
    let labels = Labels::Numbers((0..rows).into_par_iter().map(label).collect());
    let mut expected: Option<Vec<u64>> = None;
    for (limit, summation) in [
        (MemoryOptions::default(), Summation::Free),
        (limit, Summation::Free),
        (MemoryOptions::default(), Summation::Reproducible),
        (limit, Summation::Reproducible),
    ] {
        device.limit_memory(limit);
        let (bits, line) = fit_once(device, &features, &labels, summation)?;
        let is_same = expected
            .replace(bits.clone())
            .is_some_and(|known| known == bits);
        let limit = json!({ "limit_bytes": limit.limit_bytes, "bits_as_before": is_same });
        println!("{}", merged(line, limit));
    }
    Ok(())
}

/// The bits of the coefficients, and what the fit took.
fn fit_once(
    device: &Device,
    features: &Arc<Features<f32>>,
    labels: &Labels,
    summation: Summation,
) -> Result<(Vec<u64>, Value)> {
    let options = MatrixOptions {
        summation,
        ..MatrixOptions::default()
    };
    let estimator = Estimator::from(LogisticRegression::params().matrix_options(options));
    let (before, begun) = (device.usage(), Instant::now());
    let targets: Targets<'_, f32> = Targets::Labels(labels);
    let resident = estimator.place(device, features.clone(), targets)?;
    let placed = begun.elapsed().as_secs_f64();
    let model = estimator.fit_on(&resident, targets, FitOptions::default())?;
    let (seconds, usage) = (begun.elapsed().as_secs_f64(), device.usage());
    let inner = model.report().history.iter().map(|one| one.inner);
    let products: usize = inner.sum();
    let residency = resident.matrix().residency();
    let passes = Passes::of(resident.matrix(), 3)?;
    let plan = resident.matrix().used_plan(Product::Fused)?;
    let kernel = plan.map(|plan| plan.kernel.to_string());
    let line = json!({
        "what": "logistic regression", "rows": features.rows(), "cols": features.cols(), "sums": summation,
        "place_seconds": placed, "phases": resident.phases(), "seconds": seconds, "residency": residency,
        "n_iter": model.n_iter(), "products": products, "sent_bytes": usage.sent_bytes - before.sent_bytes,
        "peak_bytes": usage.peak_bytes, "evictions": usage.evictions - before.evictions,
        "pass_seconds": passes.median(), "pass_bytes": passes.crossed, "kernel": kernel,
    });
    let bits = model.coef()[0].iter().map(|c| c.to_bits()).collect();
    Ok((bits, line))
}

/// The fields of both.
fn merged(mut all: Value, further: Value) -> Value {
    if let (Value::Object(all), Value::Object(further)) = (&mut all, further) {
        all.extend(further);
    }
    all
}
