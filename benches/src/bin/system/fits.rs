//! A model for each of many groups: checked beside the CPU first, then timed from arrays on the device, beside one plain read of
//! X there, and end to end from arrays in host memory, beside scikit-learn on all cores where `WARPFUSE_BENCH_PYTHON` names an
//! interpreter that has it.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use ndarray::Array2;
use rayon::prelude::*;
use serde_json::{Value, json};
use warpfuse::device::Device;
use warpfuse::learning::{Classes, GroupedClassifier, LogisticRegression};
use warpfuse::matrix::Features;
use warpfuse::ops::fits::{FitRows, FitRules, Minima, SmallFit, minimise_each};
use warpfuse::ops::objective::Loss;
use warpfuse::ops::reduce::Reducer;

use super::noise;

/// Rows and columns of a group.
const ROWS: usize = 1_000;
const COLS: usize = 20;
const REPEATS: usize = 7;
/// Groups that the CPU fits too.
const CHECKED: usize = 64;
/// How far the coefficients of both may be from each other: both take a last step from a gradient of 10⁻⁶ of the first.
const NEAR: f64 = 1e-8;
const SCRIPT: &str = include_str!("fits.py");

/// Labels by a model of each group, one row in eight wrong.
fn labels(x: &[f32]) -> Vec<u8> {
    let rows = x.par_chunks_exact(COLS).enumerate();
    let label = |(row, x): (usize, &[f32])| {
        let w = |j: usize| noise((row / ROWS * COLS + j) as u64 + (1 << 60));
        let t: f32 = x.iter().enumerate().map(|(j, x)| x * w(j)).sum();
        u8::from(t > 0.0) ^ u8::from(noise(row as u64 + (1 << 61)) > 0.75)
    };
    rows.map(label).collect()
}

/// Milliseconds of each of some runs.
fn timed(mut run: impl FnMut() -> Result<()>) -> Result<Vec<f64>> {
    let mut all = Vec::with_capacity(REPEATS);
    for _ in 0..REPEATS {
        let begun = Instant::now();
        run()?;
        all.push(1e3 * begun.elapsed().as_secs_f64());
    }
    Ok(all)
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

pub(super) fn run(device: &Device, groups: usize) -> Result<()> {
    let places = (0..groups * ROWS * COLS).into_par_iter();
    let x: Vec<f32> = places.map(|place| noise(place as u64)).collect();
    let y = labels(&x);
    on_device(device, groups, (&x, &y))?;
    crossing(device, groups, &x)?;
    let x = Features::Dense(Array2::from_shape_vec((groups * ROWS, COLS), x)?);
    end_to_end(device, groups, (&x, &y))?;
    scikit(groups)
}

/// Fits of groups that are on the device.
fn on_device(device: &Device, groups: usize, (x, y): (&[f32], &[u8])) -> Result<()> {
    let targets: Vec<f32> = y.par_iter().map(|y| f32::from(*y)).collect();
    let fits: Vec<SmallFit> = (0..groups)
        .map(|group| SmallFit {
            row: group * ROWS,
            rows: ROWS,
            target: group * ROWS,
            weight: 0,
            scale: 1.0 / ROWS as f64,
            l2: 1.0 / ROWS as f64,
            intercept_l2: 0.0,
        })
        .collect();
    let rules = FitRules::new(Loss::Logistic);
    let (there, x_there) = (device.upload(&targets)?, device.upload(x)?);
    let rows = FitRows {
        x: &x_there,
        rows: groups * ROWS,
        cols: COLS,
        pitch: COLS,
        targets: &there,
        weights: None,
        offset: None,
    };
    let start = vec![0.0; groups * (COLS + 1)];
    let fit = |rules: &FitRules<'_>| minimise_each(&rows, rules, &fits, &start);
    let found = fit(&rules)?;
    check(&found, (x, &targets), &fits)?;
    let whole = median(timed(|| fit(&rules).map(drop).map_err(Into::into))?);
    let once = FitRules {
        max_iter: 0,
        ..rules
    };
    let one_pass = median(timed(|| fit(&once).map(drop).map_err(Into::into))?);
    let mut reducer = Reducer::new(device)?;
    let read = median(timed(|| {
        reducer.sum(&x_there).map(|_| ()).map_err(Into::into)
    })?);
    let steps: u32 = found.outcomes.iter().map(|outcome| outcome.n_iter).sum();
    println!(
        "{}",
        json!({
            "what": "fits from arrays on the device", "groups": groups, "rows": ROWS, "cols": COLS, "ms": whole,
            "without_steps_ms": one_pass, "plain_read_ms": read, "steps": f64::from(steps) / groups as f64,
        })
    );
    Ok(())
}

/// Fails unless the first and last groups are as the CPU fits them.
fn check(found: &Minima, (x, targets): (&[f32], &[f32]), fits: &[SmallFit]) -> Result<()> {
    let cpu = Device::cpu();
    let (x, targets) = (cpu.upload(x)?, cpu.upload(targets)?);
    let rows = FitRows {
        x: &x,
        rows: fits.len() * ROWS,
        cols: COLS,
        pitch: COLS,
        targets: &targets,
        weights: None,
        offset: None,
    };
    let step = fits.len().div_ceil(CHECKED);
    let some: Vec<SmallFit> = fits.iter().copied().step_by(step).collect();
    let start = vec![0.0; some.len() * (COLS + 1)];
    let truth = minimise_each(&rows, &FitRules::new(Loss::Logistic), &some, &start)?;
    for i in 0..some.len() {
        let (own, other) = (found.theta(i * step), truth.theta(i));
        let errors = own.iter().zip(other).map(|(a, b)| (a - b).abs());
        let worst = errors.fold(0.0, f64::max);
        ensure!(worst <= NEAR, "group {} is off by {worst:e}", i * step);
    }
    Ok(())
}

/// What fits of host arrays cannot be faster than: X crosses the link, and labels of groups are numbered.
fn crossing(device: &Device, groups: usize, x: &[f32]) -> Result<()> {
    let upload = median(timed(|| Ok(device.upload(x).map(drop)?))?);
    let [in_order, mixed] = labels_of_groups(groups);
    let encode = |labels: &[u32]| timed(|| Ok(Classes::encode(labels).map(drop)?)).map(median);
    println!(
        "{}",
        json!({
            "what": "X crosses, labels of groups are numbered", "device": device.to_string(), "groups": groups, "rows": ROWS,
            "cols": COLS, "upload_ms": upload, "labels_in_order_ms": encode(&in_order)?, "labels_in_no_order_ms": encode(&mixed)?,
        })
    );
    Ok(())
}

/// The group of each row: rows in order, and in none.
fn labels_of_groups(groups: usize) -> [Vec<u32>; 2] {
    let all = 0..groups * ROWS;
    let in_order = all.clone().map(|row| (row / ROWS) as u32).collect();
    [in_order, all.map(|row| (row % groups) as u32).collect()]
}

/// `fit_groups` from host memory: rows in the order of their groups, and in none.
fn end_to_end(device: &Device, groups: usize, (x, y): (&Features<f32>, &[u8])) -> Result<()> {
    let params = LogisticRegression::params();
    let [in_order, mixed] = labels_of_groups(groups);
    for (device, name, labels) in [
        (device, "rows in order", &in_order),
        (device, "rows in no order", &mixed),
        (&Device::cpu(), "rows in order", &in_order),
    ] {
        let fit =
            || -> Result<GroupedClassifier> { Ok(params.fit_groups(device, x, y, &labels[..])?) };
        let model = fit()?;
        let all = model.members().iter();
        let fitted = all.filter(|member| member.ending().is_success()).count();
        ensure!(fitted == groups, "{fitted} of {groups} groups have a model");
        let ms = timed(|| fit().map(drop))?;
        println!(
            "{}",
            json!({
                "what": format!("fit_groups, {name}"), "device": device.to_string(), "groups": groups, "rows": ROWS,
                "cols": COLS, "all_ms": ms.clone(), "ms": median(ms),
            })
        );
    }
    Ok(())
}

/// The same shape by scikit-learn, all cores.
fn scikit(groups: usize) -> Result<()> {
    let Some(python) = std::env::var_os("WARPFUSE_BENCH_PYTHON") else {
        return Ok(());
    };
    let output = Command::new(python)
        .args(["-c", SCRIPT])
        .args([groups, ROWS, COLS].map(|size| size.to_string()))
        .output()
        .context("starting the interpreter")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}", errors.trim_end());
    let told: Value = serde_json::from_slice(&output.stdout).context("what it printed")?;
    println!("{told}");
    Ok(())
}
