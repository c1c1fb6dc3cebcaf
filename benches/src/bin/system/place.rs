//! What it takes until a product may begin, step by step: what the planner is told of X, its arrays on the device, and the
//! first product with its plan and its kernel.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::json;
use warpfuse::device::Device;
use warpfuse::matrix::{Features, Storage, Values};
use warpfuse::ops::{Matrix, MatrixOptions, Preparation, Terms, problem_on_gpu};

use super::{dense, plain_bytes, sparse};

/// Times each shape is placed.
const REPEATS: usize = 4;

/// Times all steps for shapes of 0.3 MB to 1 GB.
pub(super) fn run(device: &Device) -> Result<()> {
    let shapes = [
        sparse(2_000, 1_000, 16, false)?,
        sparse(50_000, 25_000, 16, true)?,
        dense(500_000, 48)?,
        sparse(800_000, 300_000, 16, false)?,
        sparse(8_000_000, 1_500_000, 16, false)?,
        sparse(5_000_000, 50_000, 16, true)?,
    ];
    for features in shapes.map(Arc::new) {
        for repeat in 0..REPEATS {
            steps(device, &features, repeat)?;
        }
    }
    Ok(())
}

fn steps(device: &Device, features: &Arc<Features<f32>>, repeat: usize) -> Result<()> {
    let mut begun = Instant::now();
    let mut lap = || -> f64 {
        let seconds = begun.elapsed().as_secs_f64();
        begun = Instant::now();
        1e3 * seconds
    };
    let limits = device.limits().context("expected a GPU, found the CPU")?;
    let problem = problem_on_gpu(limits, features, Values::Exact);
    let problem_ms = lap();
    copy(device, features)?;
    let copy_ms = lap();
    let options = MatrixOptions::default();
    let x = Matrix::with_options(device, features.clone(), options)?;
    device.synchronize()?;
    let matrix_ms = lap();
    drop(x);
    let free_ms = lap();
    let once = Preparation::For { evaluations: 1 };
    let x = Matrix::prepared(device, features.clone(), options, once)?;
    device.synchronize()?;
    let prepared_ms = lap();
    let (y, mut w) = (
        device.upload(&vec![0.5; x.cols()])?,
        device.zeros(x.cols())?,
    );
    let vectors_ms = lap();
    let mut product = || -> Result<()> {
        x.fused(&y, &Terms::default(), &mut w)?;
        Ok(device.synchronize()?)
    };
    product()?;
    let first_ms = lap();
    product()?;
    let second_ms = lap();
    println!(
        "{}",
        json!({
            "what": "steps of placing", "problem": problem.to_string(), "bytes": plain_bytes(features), "repeat": repeat,
            "problem_ms": problem_ms, "copy_ms": copy_ms, "matrix_ms": matrix_ms, "free_ms": free_ms,
            "prepared_ms": prepared_ms, "vectors_ms": vectors_ms, "first_product_ms": first_ms,
            "second_product_ms": second_ms,
        })
    );
    Ok(())
}

/// The arrays alone, to the device and away.
fn copy(device: &Device, features: &Features<f32>) -> Result<()> {
    match features.storage() {
        Storage::Dense(x) => drop(device.upload(x.as_slice().unwrap_or_default())?),
        Storage::Sparse(x) => {
            let kept = (device.upload(x.indices())?, device.upload(x.data())?);
            device.synchronize()?;
            drop(kept);
        }
    }
    Ok(device.synchronize()?)
}
