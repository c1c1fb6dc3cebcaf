//! How fast data get to a device, as JSON lines: copies of several lengths and kinds, and fits from arrays in memory.
//!
//! ```text
//! placement rates [DEVICE]         copies each way; the default device is cuda:0
//! placement fit [DEVICE] [ROWS]    logistic regression on ROWS × 28 f32 in memory, 11,000,000 rows if not given
//! placement labels IN.npy OUT.npy  the signs of numbers, as -1 and 1
//! ```

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use ndarray::Array2;
use rayon::prelude::*;
use serde_json::json;
use warpfuse::device::buffer::RowLayout;
use warpfuse::device::{Buffer, Device, DeviceError};
use warpfuse::io::{read_vector, write_vector};
use warpfuse::learning::{Estimator, FitOptions, Labels, LogisticRegression, Targets};
use warpfuse::matrix::Features;

/// Copies of each kind and length; the median is what counts.
const REPEATS: usize = 7;
/// Columns of the dense data.
const COLUMNS: usize = 28;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let device = |name: Option<&&str>| name.copied().unwrap_or("cuda:0").parse::<Device>();
    match words[..] {
        ["rates", ..] => rates(&device(words.get(1))?),
        ["fit", ..] => {
            let rows = words.get(2).copied().unwrap_or("11000000").parse();
            fit(&device(words.get(1))?, rows.context("a number of rows")?)
        }
        ["labels", from, to] => labels(Path::new(from), Path::new(to)),
        _ => bail!("expected `rates [DEVICE]`, `fit [DEVICE] [ROWS]` or `labels IN.npy OUT.npy`"),
    }
}

fn rates(device: &Device) -> Result<()> {
    for mebibytes in [1_usize, 4, 16, 64, 512, 4096] {
        let bytes = mebibytes << 20;
        let values: Vec<u32> = (0..bytes / 4).into_par_iter().map(|i| i as u32).collect();
        report("upload", bytes, device, || device.upload(&values))?;
        let wide: Vec<u64> = values.par_iter().map(|value| u64::from(*value)).collect();
        report("upload u64 as u32", bytes, device, || {
            device.upload_with(wide.len(), |range, to: &mut [u32]| {
                let pairs = to.iter_mut().zip(&wide[range]);
                pairs.for_each(|(to, from)| *to = *from as u32);
            })
        })?;
        let (cols, pitch) = (COLUMNS - 1, COLUMNS);
        let rows = values.len() / cols;
        let layout = RowLayout { rows, cols, pitch };
        let packed = &values[..rows * cols];
        report("upload rows of 27 as 28", rows * cols * 4, device, || {
            device.upload_rows(packed, layout)
        })?;
        let resident = device.upload(&values)?;
        let mut back = vec![0; values.len()];
        let seconds = timed(|| Ok(resident.copy_to_slice(&mut back)?))?;
        anyhow::ensure!(back == values, "a copy there and back changed values");
        print("download", bytes, &seconds);
    }
    Ok(())
}

/// Times copies to a buffer of their own, until the device has all of it.
fn report(
    what: &str,
    bytes: usize,
    device: &Device,
    copy: impl Fn() -> Result<Buffer<u32>, DeviceError>,
) -> Result<()> {
    let seconds = timed(|| {
        let copied = copy()?;
        device.synchronize()?;
        drop(copied);
        Ok(())
    })?;
    print(what, bytes, &seconds);
    Ok(())
}

fn timed(mut work: impl FnMut() -> Result<()>) -> Result<Vec<f64>> {
    let mut once = || {
        let begun = Instant::now();
        work()?;
        Ok(begun.elapsed().as_secs_f64())
    };
    (0..REPEATS).map(|_| once()).collect()
}

fn print(what: &str, bytes: usize, seconds: &[f64]) {
    let mut sorted = seconds.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let median = sorted[sorted.len() / 2];
    let rate = bytes as f64 / median / 1e9;
    println!(
        "{}",
        json!({ "what": what, "bytes": bytes, "seconds": seconds, "gb_per_s": rate })
    );
}

/// A number from its place, the same on every machine: the mix of SplitMix64.
fn noise(place: u64) -> f32 {
    let mut word = place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((word ^ (word >> 31)) >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
}

fn fit(device: &Device, rows: usize) -> Result<()> {
    let entries = (0..rows * COLUMNS).into_par_iter();
    let values: Vec<f32> = entries.map(|place| noise(place as u64)).collect();
    let label = |row: usize| {
        let sum: f32 = values[row * COLUMNS..(row + 1) * COLUMNS].iter().sum();
        let drawn = noise((rows * COLUMNS + row) as u64);
        if sum + 4.0 * drawn > 0.0 { 1.0 } else { -1.0 }
    };
    let labels = Labels::Numbers((0..rows).into_par_iter().map(label).collect());
    let x = std::sync::Arc::new(Features::Dense(Array2::from_shape_vec(
        (rows, COLUMNS),
        values,
    )?));
    let estimator = Estimator::from(LogisticRegression::params());
    for run in 0..REPEATS {
        let (before, begun) = (device.usage(), Instant::now());
        let targets: Targets<'_, f32> = Targets::Labels(&labels);
        let resident = estimator.place(device, x.clone(), targets)?;
        device.synchronize()?;
        let placed = begun.elapsed().as_secs_f64();
        let model = estimator.fit_on(&resident, targets, FitOptions::default())?;
        let fitted = begun.elapsed().as_secs_f64();
        let evaluation = model.evaluate_on(resident.matrix(), targets, None)?;
        let evaluated = begun.elapsed().as_secs_f64();
        println!(
            "{}",
            json!({
                "what": "logistic regression from memory", "run": run, "rows": rows, "cols": COLUMNS,
                "place_seconds": placed, "solve_seconds": fitted - placed,
                "evaluate_seconds": evaluated - fitted, "fit_seconds": fitted,
                "phases": resident.phases(), "n_iter": model.n_iter(), "evaluation": evaluation,
                "sent_bytes": device.usage().sent_bytes - before.sent_bytes,
            })
        );
    }
    Ok(())
}

fn labels(from: &Path, to: &Path) -> Result<()> {
    let numbers = read_vector::<f64>(from)?;
    let sign = |number: &f64| if *number < 0.0 { -1.0 } else { 1.0 };
    let signs: Vec<f64> = numbers.par_iter().map(sign).collect();
    Ok(write_vector(to, &signs)?)
}
