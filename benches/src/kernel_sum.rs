//! Sums over kernels: all pairs of two clouds of points in the unit cube.

use anyhow::{Context, Result};
use gpu_kernels::kernel_sum::{KernelFunction, KernelSumVariant};
use rayon::prelude::*;
use warpfuse::device::Buffer;
use warpfuse::learning::KernelRidge;
use warpfuse::matrix::{Dtype, Element};
use warpfuse::ops::{Kernel, KernelSum, Number};
use warpfuse::plan::kernel_sum::{KernelSumPoint, points};
use warpfuse::reference::kernel_sum as reference;

use crate::case::{Case, SEED};
use crate::data;
use crate::gpu::Gpu;
use crate::record::{Measured, Recorder};
use crate::sampling::Times;
use crate::shape::Shape;
use crate::truth;

/// Length scale: a tenth of the cube, as in a regression.
const LENGTH: f64 = 0.1;
/// Targets whose truth is computed.
const JUDGED: usize = 128;

/// What is computed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Sum,
    Symmetric,
    /// The same by products of coordinates, whether or not the planner takes them.
    Products,
    Gradient,
}

/// One measurement.
#[derive(Clone, Copy)]
struct Spec {
    name: &'static str,
    work: Work,
    function: KernelFunction,
    points: usize,
    dims: usize,
    dtype: Dtype,
}

const fn spec(
    name: &'static str,
    work: Work,
    function: KernelFunction,
    (points, dims): (usize, usize),
    dtype: Dtype,
) -> Spec {
    Spec {
        name,
        work,
        function,
        points,
        dims,
        dtype,
    }
}

const MILLION: usize = 1_000_000;
const QUARTER: usize = 1 << 18;

const SPECS: [Spec; 19] = {
    use Dtype::{F32, F64};
    use KernelFunction::{
        Cauchy, Gaussian, InverseMultiquadric, Laplace, Matern12, Matern32, Matern52,
    };
    use Work::{Gradient, Products, Sum, Symmetric};
    [
        spec("gaussian", Sum, Gaussian, (MILLION, 3), F32),
        spec("gaussian_symmetric", Symmetric, Gaussian, (MILLION, 3), F32),
        spec("gaussian_products", Products, Gaussian, (MILLION, 3), F32),
        spec("gaussian", Sum, Gaussian, (QUARTER, 1), F32),
        spec("gaussian", Sum, Gaussian, (QUARTER, 2), F32),
        spec("gaussian_symmetric", Symmetric, Gaussian, (QUARTER, 1), F32),
        spec("gaussian_products", Products, Gaussian, (QUARTER, 2), F32),
        spec("laplace", Sum, Laplace, (QUARTER, 3), F32),
        spec("matern12", Sum, Matern12, (QUARTER, 3), F32),
        spec("matern32", Sum, Matern32, (QUARTER, 3), F32),
        spec("matern52_symmetric", Symmetric, Matern52, (QUARTER, 3), F32),
        spec("cauchy", Sum, Cauchy, (QUARTER, 3), F32),
        spec(
            "inverse_multiquadric",
            Sum,
            InverseMultiquadric,
            (QUARTER, 3),
            F32,
        ),
        spec("gaussian", Sum, Gaussian, (QUARTER, 16), F32),
        spec(
            "gaussian_symmetric",
            Symmetric,
            Gaussian,
            (QUARTER, 16),
            F32,
        ),
        spec("gaussian_symmetric", Symmetric, Gaussian, (QUARTER, 5), F32),
        spec("gaussian_gradient", Gradient, Gaussian, (QUARTER, 3), F32),
        spec("gaussian", Sum, Gaussian, (QUARTER, 3), F64),
        spec("gaussian_symmetric", Symmetric, Gaussian, (QUARTER, 3), F64),
    ]
};

impl Spec {
    fn case(&self) -> Case {
        Case {
            family: "kernel_sum",
            work: self.name,
            shape: Shape::Points {
                targets: self.points,
                sources: self.points,
                dims: self.dims,
            },
            dtype: self.dtype.into(),
            seed: SEED,
        }
    }
}

/// Records all cases of the family.
///
/// # Errors
/// When a result cannot be written.
pub fn record(gpu: &Gpu, recorder: &Recorder) -> Result<()> {
    for spec in SPECS {
        recorder.measure(&spec.case(), || match spec.dtype {
            Dtype::F32 => measure::<f32>(gpu, &spec),
            Dtype::F64 => measure::<f64>(gpu, &spec),
        })?;
    }
    let case = Case {
        work: "ridge_100_steps",
        ..SPECS[1].case()
    };
    recorder.measure(&case, || ridge(gpu))
}

/// Kernel ridge regression on a million points, stopped after 100 iterations.
fn ridge(gpu: &Gpu) -> Result<Measured> {
    let spec = SPECS[1];
    let points = data::dense::<f32>(spec.points, spec.dims, SEED + 40);
    let noise = data::values::<f32>(spec.points, SEED + 43);
    let target = |(point, noise): (ndarray::ArrayView1<'_, f32>, &f32)| {
        (6.0 * point[0]).sin() * (5.0 * point[1]).cos() + point[2] + 0.2 * noise
    };
    let targets: Vec<f32> = points.rows().into_iter().zip(&noise).map(target).collect();
    let params = KernelRidge::params()
        .kernel(spec.function, LENGTH)
        .alpha(1.0);
    let params = params.tolerance(0.0).max_iter(100).rank(100);
    let model = params.fit(&gpu.device, points.view(), &targets)?;
    let report = model.report();
    let times = Times::of(vec![report.seconds * 1e6]);
    let bytes = spec.case().shape.bytes::<f32>(0);
    let mut measured = Measured::new("KernelRidge, rank 100", times, bytes);
    let figures = [
        ("iterations", report.n_iter as f64),
        ("setup_s", report.setup_seconds),
        // In units of 10⁻⁹, as figures are printed with one decimal.
        ("residual_1e9", report.residual_ratio * 1e9),
        ("peak_device_mb", report.peak_device_bytes as f64 / 1e6),
    ];
    measured.details.extend(figures);
    Ok(measured)
}

fn measure<T: Number>(gpu: &Gpu, spec: &Spec) -> Result<Measured> {
    let targets = data::dense::<T>(spec.points, spec.dims, SEED + 40);
    // Of one sign, so that the relative error of a sum means something.
    let weights: Vec<T> = data::values::<T>(spec.points, SEED + 41)
        .into_iter()
        .map(|w| w + <T as Element>::from_f64(0.5))
        .collect();
    let sources = match spec.work {
        Work::Symmetric | Work::Products => targets.clone(),
        _ => data::dense::<T>(spec.points, spec.dims, SEED + 42),
    };
    let kernel = Kernel::new(spec.function, LENGTH)?;
    let device = &gpu.device;
    let sums = match spec.work {
        Work::Symmetric | Work::Products => KernelSum::symmetric(device, kernel, targets.view())?,
        _ => KernelSum::new(device, kernel, targets.view(), sources.view())?,
    };
    let values = match spec.work {
        Work::Gradient => spec.dims,
        _ => 1,
    };
    let w = device.upload(&weights)?;
    let mut out: Buffer<T> = device.zeros(spec.points * values)?;
    let forced = match spec.work {
        Work::Products => Some(by_products(&sums)?),
        _ => None,
    };
    let mut run = || match (spec.work, &forced) {
        (Work::Gradient, _) => sums.targets_gradient(&w, &mut out),
        (_, Some(point)) => sums.sum_by(point, &w, &mut out),
        _ => sums.sum(&w, &mut out),
    };
    run()?;
    let times = gpu.sampler.time(device, &mut run)?;
    let error = error(
        spec,
        &out.to_vec()?,
        (&wide(&targets), &wide(&sources)),
        &weights,
    )?;
    let planned = match forced {
        Some(point) => Some(point.plan),
        None => sums.plan()?,
    };
    let variant = match (spec.work, planned) {
        (Work::Gradient, _) | (_, None) => spec.name.to_owned(),
        (_, Some(plan)) => format!(
            "{:?} bs{} grid{} slices{}",
            plan.variant, plan.bs, plan.grid, plan.slices
        ),
    };
    let bytes = spec.case().shape.bytes::<T>(0) + 2 * spec.points * size_of::<T>();
    let pairs = (spec.points as f64).powi(2);
    let mut measured = Measured::new(variant, times, bytes).with_error(error);
    measured
        .details
        .insert("gpairs_per_s", pairs / times.median_us / 1e3);
    Ok(measured)
}

/// The launch by products with the largest block.
fn by_products<T: Number>(sums: &KernelSum<T>) -> Result<KernelSumPoint> {
    let limits = sums.device().limits().context("a GPU has limits")?;
    let all = points(&sums.problem_of_sum(), limits);
    let products = all
        .into_iter()
        .filter(|point| matches!(point.plan.variant, KernelSumVariant::Products { .. }));
    products
        .max_by_key(|point| point.plan.bs)
        .context("points that are near enough for products")
}

fn wide<T: Element>(points: &ndarray::Array2<T>) -> Vec<f64> {
    points.iter().map(|value| value.to_f64()).collect()
}

/// The relative error over some targets, spread over all.
fn error<T: Element>(
    spec: &Spec,
    out: &[T],
    (x, y): (&[f64], &[f64]),
    weights: &[T],
) -> Result<f64> {
    let w: Vec<f64> = weights.iter().map(|w| w.to_f64()).collect();
    let values = out.len() / spec.points;
    let judged: Vec<usize> = (0..JUDGED)
        .map(|i| i * (spec.points - 1) / (JUDGED - 1))
        .collect();
    let truth_of = |&i: &usize| -> Vec<f64> {
        let x = &x[i * spec.dims..][..spec.dims];
        match spec.work {
            Work::Gradient => (0..spec.dims)
                .map(|d| reference::gradient(spec.function, LENGTH, x, y, &w, d))
                .collect(),
            _ => vec![reference::sum(spec.function, LENGTH, x, y, &w)],
        }
    };
    let truth: Vec<f64> = judged.par_iter().flat_map(truth_of).collect();
    let found = judged
        .iter()
        .flat_map(|i| out[i * values..][..values].iter().copied());
    truth::checked_error(&found.collect::<Vec<T>>(), &truth)
}
