//! A layer of a trained network, dense and pruned: what its output and the network lose, what is multiplied, which kernel the
//! planner takes.
//!
//! `cargo run --release -p warpfuse --example pruned_layer`. The network reads 8 × 8 digits: 16 filters of 3 × 3, 32 filters of
//! 3 × 3 with 2 × 2 max pooling, ten sums over what is left (`data/digits_network.py` trains it in numpy). The second layer is
//! pruned by magnitude, without training again, and runs over 297 images that the network has not seen. Runs on the GPU where
//! there is one.

use std::time::Instant;

use warpfuse::device::Device;
use warpfuse::matrix::filters::{CooFilters, SparseFilters, magnitude, n_of_m};
use warpfuse::ops::sparse_conv::{ConvShape, Layer, Maps, Pool, SparseConv, SparseConvError};

const NETWORK: &[u8] = include_bytes!("data/digits_network.f32");
const DIGITS: &[u8] = include_bytes!("data/digits_test.u8");
const IMAGES: usize = 297;
const CELLS: usize = 64;
const CLASSES: usize = 10;

/// Weights and biases of three layers.
struct Network {
    weights: [Vec<f32>; 3],
    biases: [Vec<f32>; 3],
}

impl Network {
    fn read() -> Network {
        let mut numbers = NETWORK.chunks_exact(4).map(|bytes| {
            let bytes = bytes.try_into().expect("chunks of four bytes");
            f32::from_le_bytes(bytes)
        });
        let mut take = |len: usize| -> Vec<f32> { numbers.by_ref().take(len).collect() };
        let layers = [(16 * 9, 16), (32 * 144, 32), (10 * 512, 10)]
            .map(|(weights, biases)| (take(weights), take(biases)));
        let [first, second, third] = layers;
        Network {
            weights: [first.0, second.0, third.0],
            biases: [first.1, second.1, third.1],
        }
    }

    /// How many digits the last layer reads rightly from the second one's output.
    fn right(&self, features: &[f32]) -> usize {
        let labels = &DIGITS[IMAGES * CELLS..];
        let (weights, biases) = (&self.weights[2], &self.biases[2]);
        let of = features.len() / IMAGES;
        let read = |image: &[f32]| {
            let score = |class: usize| -> f32 {
                let row = &weights[class * of..][..of];
                biases[class] + row.iter().zip(image).map(|(w, x)| w * x).sum::<f32>()
            };
            (0..CLASSES).max_by(|a, b| score(*a).total_cmp(&score(*b)))
        };
        let images = features.chunks_exact(of).zip(labels);
        images
            .filter(|(image, label)| read(image) == Some(usize::from(**label)))
            .count()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::auto();
    let network = Network::read();
    let first = ConvShape {
        batch: IMAGES,
        padding: [1; 2],
        ..ConvShape::new(1, [8; 2], 16, [3; 2])
    };
    let second = ConvShape {
        channels: 16,
        filters: 32,
        pool: Some(Pool::max(2)),
        ..first
    };
    let x: Vec<f32> = DIGITS[..IMAGES * CELLS]
        .iter()
        .map(|x| f32::from(*x) / 16.0)
        .collect();
    let filters = SparseFilters::from_dense(first.filter_shape(), &network.weights[0])?;
    let x = result(&device, &first, &filters, (&network.biases[0], 0), &x)?.0;
    let zeros = x.iter().filter(|x| **x == 0.0).count() * 1_000 / x.len();
    let of = second.filter_shape();
    let weights = &network.weights[1];
    let dense = SparseFilters::from_dense(of, weights)?;
    let layer = (network.biases[1].as_slice(), zeros as u16);
    let truth = result(&device, &second, &dense, layer, &x)?.0;
    let mut pruned = vec![
        ("dense".to_owned(), dense),
        ("2:4".into(), n_of_m(of, weights, (2, 4))?),
    ];
    for percent in [50, 30, 20, 10, 5] {
        let kept = magnitude(of, weights, f64::from(percent) / 100.0)?;
        pruned.push((format!("{percent} %"), kept));
    }
    let share = zeros as f64 / 10.0;
    println!(
        "16 channels, 32 filters 3 x 3, 8 x 8, {IMAGES} images, {share} % of inputs zero, on {device}"
    );
    println!("filters      density  bytes (COO)      ms  relative error  digits right  plan");
    for (name, filters) in &pruned {
        let (out, ms, plan) = result(&device, &second, filters, layer, &x)?;
        let bytes = CooFilters::from(filters).bytes();
        let (density, error) = (filters.density(), relative_error(&out, &truth));
        let right = network.right(&out);
        println!(
            "{name:<12} {density:>7.3} {bytes:>12} {ms:>7.2} {error:>15.2e} {right:>13}  {plan}"
        );
    }
    Ok(())
}

/// The layer's result, the median of five times in milliseconds, and its plan.
fn result(
    device: &Device,
    shape: &ConvShape,
    filters: &SparseFilters<f32>,
    (bias, zeros): (&[f32], u16),
    x: &[f32],
) -> Result<(Vec<f32>, f64, String), SparseConvError> {
    let layer = Layer {
        bias: Some(bias),
        rectify: true,
        zeros,
        strategy: None,
    };
    let conv = SparseConv::<f32>::new(device, shape, filters, layer)?;
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
