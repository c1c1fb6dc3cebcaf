//! Trials with fixed-point sums, which take several launches: through the library's own matrix.

use anyhow::Result;
use warpfuse::device::Buffer;
use warpfuse::ops::{Matrix, MatrixOptions, Number, Terms};
use warpfuse::plan::fused::{Forced, Product, Strategy};
use warpfuse_benches::gpu::Gpu;
use warpfuse_benches::sampling::Sampler;

use crate::trial::Trial;

const VECTOR_SIZES: [u32; 3] = [4, 8, 32];
const BLOCK_SIZES: [u32; 5] = [256, 512, 640, 768, 1024];
const BLOCKS_PER_SM: [u32; 5] = [1, 2, 3, 4, 5];

/// Times all launches that the device allows; leaves the matrix planned as before.
pub fn trials<T: Number>(
    gpu: &Gpu,
    matrix: &mut Matrix<T>,
    product: Product,
    input: &Buffer<T>,
) -> Result<Vec<Trial>> {
    let (input, mut output) = vectors(gpu, matrix, product, input)?;
    let mut found = Vec::new();
    if product == Product::Forward || matrix.problem().is_dense() {
        return Ok(found);
    }
    for forced in launches() {
        matrix.replan(MatrixOptions {
            forced,
            ..MatrixOptions::default()
        });
        found.extend(trial(gpu, matrix, product, &input, &mut output));
    }
    gpu.device.synchronize()?;
    matrix.replan(MatrixOptions::default());
    Ok(found)
}

/// The planner's own launch.
pub fn planned<T: Number>(
    gpu: &Gpu,
    matrix: &Matrix<T>,
    product: Product,
    input: &Buffer<T>,
) -> Result<Option<Trial>> {
    let (input, mut output) = vectors(gpu, matrix, product, input)?;
    Ok(trial(gpu, matrix, product, &input, &mut output))
}

/// The start of `input` that the product takes, and a result.
fn vectors<T: Number>(
    gpu: &Gpu,
    matrix: &Matrix<T>,
    product: Product,
    input: &Buffer<T>,
) -> Result<(Buffer<T>, Buffer<T>)> {
    let len = match product {
        Product::Transposed => matrix.rows(),
        _ => matrix.cols(),
    };
    let input = gpu.device.upload(&input.to_vec()?[..len])?;
    Ok((input, gpu.device.zeros(matrix.cols())?))
}

fn launches() -> impl Iterator<Item = Forced> {
    let fixed = Strategy::ALL.iter().filter(|strategy| strategy.is_fixed());
    fixed.flat_map(|&strategy| {
        VECTOR_SIZES.into_iter().flat_map(move |vs| {
            BLOCK_SIZES.into_iter().flat_map(move |bs| {
                BLOCKS_PER_SM.into_iter().map(move |blocks| Forced {
                    strategy: Some(strategy),
                    vs: Some(vs),
                    bs: Some(bs),
                    blocks_per_sm: Some(blocks),
                    ..Forced::default()
                })
            })
        })
    })
}

/// `None` where the device has no room for the launch.
fn trial<T: Number>(
    gpu: &Gpu,
    matrix: &Matrix<T>,
    product: Product,
    input: &Buffer<T>,
    output: &mut Buffer<T>,
) -> Option<Trial> {
    let plan = matrix.used_plan(product).ok()??.clone();
    let terms = Terms::default();
    let run = || match product {
        Product::Transposed => matrix.transposed(input, &terms, output),
        _ => matrix.fused(input, &terms, output),
    };
    let times = Sampler::brief().time(&gpu.device, run).ok()?;
    Some(Trial {
        kernel: plan.kernel,
        block: plan.bs,
        grid: plan.grid,
        shared_bytes: plan.shared_bytes,
        median_us: times.median_us,
    })
}
