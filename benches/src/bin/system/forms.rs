//! Hot columns made on the device, step by step, and a product over them beside one over those that the host makes.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::json;
use warpfuse::device::Device;
use warpfuse::io::synth::NamedShape;
use warpfuse::matrix::Features;
use warpfuse::ops::{Matrix, MatrixOptions, Preparation, Terms};
use warpfuse::plan::fused::Maker;
use warpfuse_benches::case::SEED;

use super::noise;

/// Times a form is made on the device.
const REPEATS: usize = 3;
/// Products of which the median counts.
const PRODUCTS: usize = 7;
/// How far products may be apart, of the largest element: both are sums in f32 of up to 20 million terms.
const APART: f64 = 1e-3;

/// `Xᵀ(X·y)` over a form, and how long it takes.
struct Product {
    w: Vec<f32>,
    us: f64,
}

/// Makes the forms of a named shape, rows times `scale`.
pub(super) fn run(
    device: &Device,
    (shape, scale): (NamedShape, f64),
    with_host: bool,
) -> Result<()> {
    let features = shape.spec(scale, SEED)?.generate::<f32>()?.dataset.features;
    let features = Arc::new(features);
    let mut own = None;
    for repeat in 0..REPEATS {
        own = Some(made(device, &features, (shape, repeat), Maker::Device)?);
    }
    let (Some(own), true) = (own, with_host) else {
        return Ok(());
    };
    let hosts = made(device, &features, (shape, 0), Maker::Host)?;
    let largest = hosts
        .w
        .iter()
        .fold(0.0_f64, |most, w| most.max(f64::from(w.abs())));
    let pairs = own.w.iter().zip(&hosts.w);
    let apart = pairs.fold(0.0_f64, |most, (a, b)| most.max(f64::from((a - b).abs())));
    println!(
        "{}",
        json!({
            "what": "products over both forms", "shape": shape.to_string(), "device_made_us": own.us, "host_made_us": hosts.us,
            "apart": apart / largest,
        })
    );
    ensure!(
        apart <= APART * largest,
        "products are {apart} apart, of {largest}"
    );
    Ok(())
}

fn made(
    device: &Device,
    features: &Arc<Features<f32>>,
    (shape, repeat): (NamedShape, usize),
    maker: Maker,
) -> Result<Product> {
    let options = MatrixOptions {
        maker: Some(maker),
        ..MatrixOptions::default()
    };
    let mut x = Matrix::with_options(device, features.clone(), options)?;
    device.synchronize()?;
    let begun = Instant::now();
    let stored = x.prepare(Preparation::HotColumns { most: None })?;
    device.synchronize()?;
    let seconds = begun.elapsed().as_secs_f64();
    let product = product(device, &x)?;
    println!(
        "{}",
        json!({
            "what": "hot columns", "maker": maker, "repeat": repeat, "shape": shape.to_string(), "problem": x.problem().to_string(),
            "stored": stored.to_string(), "ms": 1e3 * seconds, "steps": x.steps_of_hot_columns(), "product_us": product.us,
        })
    );
    Ok(product)
}

fn product(device: &Device, x: &Matrix<f32>) -> Result<Product> {
    let y: Vec<f32> = (0..x.cols()).map(|column| noise(column as u64)).collect();
    let (y, mut w) = (device.upload(&y)?, device.zeros(x.cols())?);
    let mut times = Vec::new();
    for _ in 0..=PRODUCTS {
        device.synchronize()?;
        let begun = Instant::now();
        x.fused(&y, &Terms::default(), &mut w)?;
        device.synchronize()?;
        times.push(1e6 * begun.elapsed().as_secs_f64());
    }
    // The first one loads kernels.
    let times = &mut times[1..];
    times.sort_by(f64::total_cmp);
    Ok(Product {
        w: w.to_vec()?,
        us: times[PRODUCTS / 2],
    })
}
