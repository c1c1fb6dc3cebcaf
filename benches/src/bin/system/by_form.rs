//! A sparse matrix in every form: what it takes to make, by the device and by the host, and products over it, predicted and
//! timed.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use serde_json::{Value, json};
use warpfuse::device::{Buffer, Device};
use warpfuse::io::synth::NamedShape;
use warpfuse::matrix::Features;
use warpfuse::ops::objective::{Intercept, ObjectiveOut, ObjectiveSums};
use warpfuse::ops::{Matrix, MatrixOptions, Preparation, Terms};
use warpfuse::plan::fused::{Maker, Plan, Product};
use warpfuse_benches::case::SEED;
use warpfuse_benches::sampling::Sampler;

use super::noise;

/// Times a form is made; the first one loads kernels.
const REPEATS: usize = 4;

/// All forms of a named shape, rows times `scale`.
pub(super) fn run(device: &Device, (shape, scale): (NamedShape, f64)) -> Result<()> {
    let features = shape.spec(scale, SEED)?.generate::<f32>()?.dataset.features;
    let features = Arc::new(features);
    let once = Preparation::For { evaluations: 0 };
    let hot = Preparation::HotColumns { most: None };
    for preparation in [once, Preparation::Transpose, Preparation::Panels, hot] {
        for maker in [Maker::Device, Maker::Host] {
            of_form(device, &features, (preparation, maker))?;
        }
    }
    Ok(())
}

fn of_form(
    device: &Device,
    features: &Arc<Features<f32>>,
    (preparation, maker): (Preparation, Maker),
) -> Result<()> {
    let options = MatrixOptions {
        maker: Some(maker),
        ..MatrixOptions::default()
    };
    let mut made_ms = Vec::new();
    let mut made = || -> Result<Matrix<f32>> {
        let mut x = Matrix::with_options(device, features.clone(), options)?;
        device.synchronize()?;
        let begun = Instant::now();
        x.prepare(preparation)?;
        device.synchronize()?;
        made_ms.push(1e3 * begun.elapsed().as_secs_f64());
        Ok(x)
    };
    let mut x = made()?;
    for _ in 1..REPEATS {
        x = made()?;
    }
    println!(
        "{}",
        json!({
            "what": "form", "problem": x.problem().to_string(), "maker": maker, "made_ms": made_ms,
            "products": products(&x)?, "hessian_us": hessian_us(&x)?,
        })
    );
    Ok(())
}

/// Each product, by the plan for it.
fn products(x: &Matrix<f32>) -> Result<Value> {
    let device = x.device();
    let vector = |len: usize| -> Result<Buffer<f32>> {
        let all: Vec<f32> = (0..len).map(|at| noise(at as u64)).collect();
        Ok(device.upload(&all)?)
    };
    let (y, p) = (vector(x.cols())?, vector(x.rows())?);
    let (mut w, mut of_rows) = (device.zeros(x.cols())?, device.zeros(x.rows())?);
    let mut found = Vec::new();
    for product in [Product::Fused, Product::Forward, Product::Transposed] {
        let terms = Terms::default();
        let times = Sampler::brief().time(device, || match product {
            Product::Fused => x.fused(&y, &terms, &mut w),
            Product::Forward => x.forward(&y, &terms, &mut of_rows),
            Product::Transposed => x.transposed(&p, &terms, &mut w),
        })?;
        let plan = x.used_plan(product)?;
        found.push(json!({
            "product": product.to_string(), "us": times.median_us,
            "predicted_us": plan.and_then(Plan::predicted_ns).map(|ns| ns as f64 / 1e3),
            "plan": plan.map(|plan| plan.strategy.to_string()),
        }));
    }
    Ok(Value::Array(found))
}

/// The product of a Hessian, in one pass over the rows or as the form has it.
fn hessian_us(x: &Matrix<f32>) -> Result<f64> {
    let device = x.device();
    let curvature = device.upload(&vec![0.25; x.rows()])?;
    let s = device.upload(&vec![0.01; x.cols()])?;
    let (mut sums, mut product) = (device.zeros(ObjectiveSums::LEN)?, device.zeros(x.cols())?);
    let times = Sampler::brief().time(device, || {
        let out = ObjectiveOut::new(&mut sums, &mut product);
        x.hessian_product(&curvature, Intercept::Absent, &s, out)
    })?;
    Ok(times.median_us)
}
