//! Reproducible products of sparse X with uneven rows by every strategy that has them, beside each other in one run; their bits are
//! compared on the way.

use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::json;
use warpfuse::device::{Buffer, Device};
use warpfuse::ops::{Matrix, MatrixOptions, Number, OpError, Preparation, Terms};
use warpfuse::plan::fused::{Forced, Product, Strategy, Summation};
use warpfuse_benches::case::SEED;
use warpfuse_benches::sampling::Sampler;
use warpfuse_benches::shape::{DRAWN, Lengths, Shape};

/// Places of the shapes in [`DRAWN`]: log-normal rows with 10,000 columns, and the shape of rcv1.
const SHAPES: [usize; 2] = [8, 11];
const PRODUCTS: [Product; 2] = [Product::Fused, Product::Transposed];

pub(super) fn run(device: &Device) -> Result<()> {
    for shape in SHAPES.map(|place| DRAWN[place]) {
        ensure!(
            matches!(
                shape,
                Shape::Drawn {
                    lengths: Lengths::LogNormal,
                    ..
                }
            ),
            "expected log-normal rows, found {shape}"
        );
        of_type::<f32>(device, &shape)?;
        of_type::<f64>(device, &shape)?;
    }
    Ok(())
}

fn options(strategy: Option<Strategy>) -> MatrixOptions {
    MatrixOptions {
        summation: Summation::Reproducible,
        forced: Forced {
            strategy,
            ..Forced::default()
        },
        ..MatrixOptions::default()
    }
}

fn of_type<T: Number>(device: &Device, shape: &Shape) -> Result<()> {
    let features = Arc::new(shape.features::<T>(SEED)?);
    let mut x = Matrix::with_options(device, features, options(None))?;
    let of_rows = Strategy::ALL.iter().filter(|strategy| strategy.is_fixed());
    let of_rows = of_rows.map(|strategy| Some(*strategy));
    for product in PRODUCTS {
        let mut vectors = Vectors::of(&x, product)?;
        let expected = vectors.timed(&x, shape, None)?;
        for strategy in of_rows.clone() {
            x.replan(options(strategy));
            // Some have no room for all columns, and some are of the other product.
            if x.used_plan(product).is_err() {
                continue;
            }
            let found = vectors.timed(&x, shape, strategy)?;
            ensure!(found == expected, "{strategy:?}: expected the same bits");
        }
        x.replan(options(None));
    }
    x.prepare(Preparation::HotColumns { most: None })?;
    for product in PRODUCTS {
        Vectors::of(&x, product)?.timed(&x, shape, None)?;
    }
    Ok(())
}

/// What a product takes and gives.
struct Vectors<T: Number> {
    product: Product,
    input: Buffer<T>,
    output: Buffer<T>,
}

impl<T: Number> Vectors<T> {
    fn of(x: &Matrix<T>, product: Product) -> Result<Self> {
        let len = match product {
            Product::Transposed => x.rows(),
            _ => x.cols(),
        };
        let input: Vec<T> = (0..len)
            .map(|place| T::from_f64(f64::from(super::noise(place as u64))))
            .collect();
        Ok(Vectors {
            product,
            input: x.device().upload(&input)?,
            output: x.device().zeros(x.cols())?,
        })
    }

    /// Prints what the product takes; returns its bits.
    fn timed(
        &mut self,
        x: &Matrix<T>,
        shape: &Shape,
        strategy: Option<Strategy>,
    ) -> Result<Vec<u64>> {
        let (terms, product) = (Terms::default(), self.product);
        let (input, output) = (&self.input, &mut self.output);
        let times = Sampler::brief().time(x.device(), || -> Result<(), OpError> {
            match product {
                Product::Transposed => x.transposed(input, &terms, output),
                _ => x.fused(input, &terms, output),
            }
        })?;
        let plan = x.used_plan(product)?;
        let plan = plan.as_ref();
        println!(
            "{}",
            json!({
                "what": "uneven rows", "shape": shape.to_string(), "type": std::any::type_name::<T>(), "product": product,
                "strategy": plan.map(|plan| plan.strategy), "forced": strategy.is_some(),
                "kernel": plan.map(|plan| plan.kernel.to_string()), "bs": plan.map(|plan| plan.bs), "grid": plan.map(|plan| plan.grid),
                "predicted_us": plan.and_then(|plan| plan.prediction.as_ref()).map(|one| one.total_ns as f64 / 1e3),
                "median_us": times.median_us,
            })
        );
        Ok(self
            .output
            .to_vec()?
            .into_iter()
            .map(|w| w.to_bits())
            .collect())
    }
}
