//! What products of sparse X take by every kernel, predicted and timed, with numbers of columns that no line of `stream` has: what
//! figures of the model are taken from.

use std::sync::Arc;

use anyhow::Result;
use serde_json::json;
use warpfuse::device::Device;
use warpfuse::matrix::Features;
use warpfuse::ops::measure::{Measured, Selection};
use warpfuse::ops::{Matrix, MatrixOptions};
use warpfuse::plan::fused::{Product, Summation};

use super::limits::{PROBED, at_limits};
use super::{PER_ROW, sparse};

/// Columns; of the largest X fixed-point sums are spread over two blocks, too.
const COLS: [usize; 4] = [10_000, 30_000, 44_000, 56_000];
/// Launches of each product that are printed, the fastest by prediction.
const FASTEST: usize = 6;
/// One X is large: that of this many columns, at limits.
const LARGE: (usize, usize) = (30_000, 3);

pub(super) fn run(device: &Device, entries: usize) -> Result<()> {
    for cols in COLS {
        let features = Arc::new(sparse(entries / PER_ROW, cols, PER_ROW, true)?);
        for summation in [Summation::Free, Summation::Reproducible] {
            compare(device, &features, summation)?;
        }
    }
    let probe = device.probe_link(PROBED.min(entries * 4))?;
    let (cols, times) = LARGE;
    let features = Arc::new(sparse(times * entries / PER_ROW, cols, PER_ROW, true)?);
    at_limits(
        device,
        ("sparse, 30,000 columns, equal values", &features),
        &probe,
    )
}

fn compare(device: &Device, features: &Arc<Features<f32>>, summation: Summation) -> Result<()> {
    let options = MatrixOptions {
        summation,
        ..MatrixOptions::default()
    };
    let mut x = Matrix::with_options(device, features.clone(), options)?;
    let selection = Selection {
        fastest: FASTEST,
        of_each_kernel: 1,
    };
    for product in [Product::Fused, Product::Forward, Product::Transposed] {
        let found = x.compare_launches(product, selection)?;
        print((features.cols(), product, summation), &found.chosen, true);
        for launch in &found.candidates {
            print((features.cols(), product, summation), launch, false);
        }
    }
    Ok(())
}

fn print(
    (cols, product, summation): (usize, Product, Summation),
    launch: &Measured,
    is_chosen: bool,
) {
    let plan = &launch.plan;
    let then = plan.then.as_ref().map(|next| next.kernel.to_string());
    println!(
        "{}",
        json!({
            "what": "launch", "cols": cols, "product": product, "sums": summation, "kernel": plan.kernel, "then": then, "bs": plan.bs,
            "grid": plan.grid, "chosen": is_chosen, "predicted_us": launch.predicted_us, "measured_us": launch.measured_us,
            "parts": plan.prediction,
        })
    );
}
