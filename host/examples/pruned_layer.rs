//! A convolutional layer, dense and pruned: what is lost, what is multiplied, what the planner would choose on a GPU.
//!
//! `cargo run --release -p warpfuse --example pruned_layer [-- CHANNELS FILTERS SIDE]`. Weights are drawn as layers are
//! initialised (He et al., 2015), not those of a trained network, whose small weights matter less: errors here are the worst
//! that magnitude pruning makes. Runs on the GPU where there is one.

use std::time::Instant;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use warpfuse::device::Device;
use warpfuse::matrix::filters::{CooFilters, SparseFilters, magnitude, n_of_m};
use warpfuse::ops::sparse_conv::{ConvShape, Layer, Maps, SparseConv, SparseConvError};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sizes: Vec<usize> = std::env::args()
        .skip(1)
        .map(|size| size.parse())
        .collect::<Result<_, _>>()?;
    let [channels, filters, side] = *sizes.as_slice() else {
        return run(64, 64, 28);
    };
    run(channels, filters, side)
}

fn run(channels: usize, filters: usize, side: usize) -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::auto();
    let shape = ConvShape {
        padding: [1; 2],
        ..ConvShape::new(channels, [side; 2], filters, [3; 2])
    };
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut normal = |scale: f32| -> f32 {
        let sum: f32 = (0..12)
            .map(|_| (random.next_u32() >> 8) as f32 / (1 << 24) as f32)
            .sum();
        (sum - 6.0) * scale
    };
    let of = shape.filter_shape();
    let scale = (2.0 / (channels * 9) as f32).sqrt();
    let weights: Vec<f32> = (0..of.weights()).map(|_| normal(scale)).collect();
    let x: Vec<f32> = (0..shape.inputs()).map(|_| normal(1.0).max(0.0)).collect();
    println!("{channels} channels, {filters} filters 3 x 3, {side} x {side}, on {device}");
    println!("filters      density  bytes (COO)      ms  relative error  plan");
    let dense = SparseFilters::from_dense(of, &weights)?;
    let truth = result(&device, &shape, &dense, &x)?.0;
    let mut pruned = vec![
        ("dense".to_owned(), dense),
        ("2:4".into(), n_of_m(of, &weights, (2, 4))?),
    ];
    for percent in [50, 20, 10, 5] {
        let kept = magnitude(of, &weights, f64::from(percent) / 100.0)?;
        pruned.push((format!("{percent} %"), kept));
    }
    for (name, filters) in &pruned {
        let (out, ms, plan) = result(&device, &shape, filters, &x)?;
        let bytes = CooFilters::from(filters).bytes();
        let (density, error) = (filters.density(), relative_error(&out, &truth));
        println!("{name:<12} {density:>7.3} {bytes:>12} {ms:>7.2} {error:>15.2e}  {plan}");
    }
    Ok(())
}

/// The layer's result, the median of five times in milliseconds, and its plan.
fn result(
    device: &Device,
    shape: &ConvShape,
    filters: &SparseFilters<f32>,
    x: &[f32],
) -> Result<(Vec<f32>, f64, String), SparseConvError> {
    let conv = SparseConv::<f32>::new(device, shape, filters, Layer::default())?;
    let (x, mut out) = (Maps::upload(device, x)?, device.zeros(shape.results())?);
    let mut times = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        conv.run(&x, &mut out)?;
        device.synchronize()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let plan = conv.plan().map_or("the CPU's".into(), ToString::to_string);
    Ok((out.to_vec()?, times[2], plan))
}

/// ‖found − truth‖ / ‖truth‖.
fn relative_error(found: &[f32], truth: &[f32]) -> f64 {
    let square = |x: f32| f64::from(x) * f64::from(x);
    let error: f64 = found.iter().zip(truth).map(|(a, b)| square(a - b)).sum();
    let norm: f64 = truth.iter().map(|x| square(*x)).sum();
    (error / norm).sqrt()
}
