//! One matrix, its products and their trials.

use std::marker::PhantomData;

use anyhow::{Context, Result};
use gpu_kernels::Launch;
use warpfuse::device::Buffer;
use warpfuse::matrix::Features;
use warpfuse::ops::{Matrix, Number};
use warpfuse::plan::fused::{Plan, Product};
use warpfuse_benches::case::{Case, SEED};
use warpfuse_benches::data;
use warpfuse_benches::gpu::Gpu;
use warpfuse_benches::options::Filter;
use warpfuse_benches::shape::Shape;

use crate::dense::DenseArrays;
use crate::fixed;
use crate::report::Outcome;
use crate::sparse::SparseArrays;
use crate::trial::Trial;

/// A matrix in the layout that kernels take.
pub trait Arrays<T: Number> {
    /// All launches of `product` from `input` to `output`.
    fn trials(
        &self,
        gpu: &Gpu,
        product: Product,
        input: &Buffer<T>,
        output: &mut Buffer<T>,
    ) -> Result<Vec<Trial>>;

    /// The launch of a plan.
    fn planned(
        &self,
        gpu: &Gpu,
        plan: &Plan,
        input: &Buffer<T>,
        output: &mut Buffer<T>,
    ) -> Option<Trial>;
}

/// A matrix to be swept.
pub struct Bench<T> {
    shape: Shape,
    element: PhantomData<T>,
}

const PRODUCTS: [(Product, &str); 3] = [
    (Product::Fused, "fused"),
    (Product::Forward, "forward"),
    (Product::Transposed, "transposed"),
];

impl<T: Number> Bench<T> {
    /// A bench for a shape.
    pub fn of(shape: Shape) -> Bench<T> {
        Bench {
            shape,
            element: PhantomData,
        }
    }

    /// Whether a product of it was requested.
    pub fn is_wanted(&self, filter: &Filter) -> bool {
        PRODUCTS
            .iter()
            .any(|(_, work)| filter.wants(&self.case(work).to_string()))
    }

    /// Sweeps the products that were requested.
    pub fn run(&self, gpu: &Gpu, filter: &Filter) -> Result<Vec<Outcome>> {
        let bytes = self.shape.bytes::<T>(4);
        let floor_us = bytes as f64 / gpu.ceiling_gbs(bytes)? / 1e3;
        let features = self.shape.features::<T>(SEED)?;
        let (arrays, mut matrix) = upload(gpu, features)?;
        let length = self.shape.rows().max(self.shape.cols());
        let input = gpu.device.upload(&data::values::<T>(length, SEED + 10))?;
        let mut output = gpu.device.zeros::<T>(length)?;
        let mut outcomes = Vec::new();
        for (product, work) in PRODUCTS {
            let case = self.case(work);
            if filter.wants(&case.to_string()) {
                let mut trials = arrays.trials(gpu, product, &input, &mut output)?;
                trials.extend(fixed::trials(gpu, &mut matrix, product, &input)?);
                let planned = planned(gpu, &*arrays, &matrix, product, (&input, &mut output))?;
                outcomes.push(Outcome::new(case, floor_us, trials, planned));
            }
        }
        Ok(outcomes)
    }

    fn case(&self, work: &'static str) -> Case {
        Case {
            family: "sweep",
            work,
            shape: self.shape,
            dtype: T::DTYPE.into(),
            seed: SEED,
        }
    }
}

/// The arrays for trials, and the matrix as users have it, for its plans.
fn upload<T: Number>(gpu: &Gpu, features: Features<T>) -> Result<(Box<dyn Arrays<T>>, Matrix<T>)> {
    let features = std::sync::Arc::new(features);
    let matrix = Matrix::new(&gpu.device, features.clone())?;
    let arrays: Box<dyn Arrays<T>> = match &*features {
        Features::Dense(x) => Box::new(DenseArrays::upload(
            gpu,
            x,
            matrix.problem().pitch as usize,
        )?),
        Features::Sparse(x) => Box::new(SparseArrays::upload(gpu, x)?),
        Features::Narrow(_) | Features::Shared(_) => {
            unreachable!("the sweep makes its own matrices")
        }
    };
    Ok((arrays, matrix))
}

/// The planner's launch, timed like all others; `None` where it plans two.
fn planned<T: Number>(
    gpu: &Gpu,
    arrays: &dyn Arrays<T>,
    matrix: &Matrix<T>,
    product: Product,
    (input, output): (&Buffer<T>, &mut Buffer<T>),
) -> Result<Option<Trial>> {
    let plan = matrix
        .used_plan(product)?
        .context("a matrix on a GPU has plans")?;
    Ok(match plan.then {
        Some(_) => None,
        None if plan.strategy.is_fixed() => fixed::planned(gpu, matrix, product, input)?,
        None => arrays.planned(gpu, plan, input, output),
    })
}

/// The launch that a plan describes.
pub fn launch(plan: &Plan) -> Launch {
    Launch {
        grid: plan.grid,
        block: plan.bs,
        shared_bytes: plan.shared_bytes,
    }
}
