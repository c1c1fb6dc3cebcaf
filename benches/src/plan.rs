//! How good plans are: the launch that the planner chooses beside the fastest of those that it could have chosen,
//! and how long choosing takes.

pub mod drawn;
#[cfg(test)]
mod tests;

use std::hint::black_box;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Instant;

use anyhow::{Context, Result};
use rayon::prelude::*;
use warpfuse::device::Device;
use warpfuse::matrix::Features;
use warpfuse::ops::measure::{Comparison, Measured as Launched, Selection};
use warpfuse::ops::{Matrix, MatrixOptions, Number, Preparation, candidates};
use warpfuse::plan::Summation;
use warpfuse::plan::fused::{Planner, Problem, Processor, Product, Stored};
use warpfuse::plan::limits::DeviceLimits;

use crate::case::{Case, SEED};
use crate::gpu::Gpu;
use crate::record::{Choice, Measured, Recorder, TimedLaunch};
use crate::sampling::Times;
use crate::shape::{DENSE_WIDTHS, DRAWN, MATRICES, SPARSE_WIDTHS, Shape};

/// Of all launches that the planner weighs, the fastest by prediction, and one of every kernel.
const SELECTION: Selection = Selection {
    fastest: 12,
    of_each_kernel: 1,
};
/// Plans behind every sample of the time of choosing.
const PLANS: usize = 50;
const SAMPLES: usize = 21;

/// Columns up to which no further form is of use.
const FEW_COLUMNS: usize = 250;

/// Products by the names that records have for them.
const PRODUCTS: [(Product, &str); 3] = [
    (Product::Fused, "fused"),
    (Product::Forward, "forward"),
    (Product::Transposed, "transposed"),
];

/// Shapes with as many of the [`PRODUCTS`] as are compared on them: X·y where row lengths make a difference.
fn shapes() -> impl Iterator<Item = (Shape, usize)> {
    let drawn = DRAWN.into_iter().chain(SPARSE_WIDTHS);
    let drawn = drawn.map(|shape| (shape, 1 + usize::from(shape.is_uneven())));
    let all = MATRICES.map(|shape| (shape, PRODUCTS.len()));
    drawn.chain(DENSE_WIDTHS.map(|shape| (shape, 1))).chain(all)
}

/// Records all cases of the family on a GPU.
///
/// # Errors
/// When a result cannot be written.
pub fn record(gpu: &Gpu, recorder: &Recorder) -> Result<()> {
    record_dtype::<f32>(gpu, recorder)?;
    record_dtype::<f64>(gpu, recorder)
}

/// A matrix, and the cases that are wanted of it.
struct Wanted {
    shape: Shape,
    summation: Summation,
    selection: Selection,
    cases: Vec<(Product, Case)>,
}

/// All matrices of one element type, each made while the one before is measured.
fn record_dtype<T: Number>(gpu: &Gpu, recorder: &Recorder) -> Result<()> {
    let wanted = shapes().map(|(shape, products)| {
        let cases = PRODUCTS[..products].iter();
        let cases = cases.map(|&(product, work)| (product, case::<T>(work, shape)));
        let cases = cases.filter(|(_, case)| recorder.wants(case));
        Wanted {
            shape,
            summation: Summation::Free,
            selection: SELECTION,
            cases: cases.collect(),
        }
    });
    let wanted: Vec<Wanted> = wanted.filter(|wanted| !wanted.cases.is_empty()).collect();
    std::thread::scope(|scope| {
        let (ready, matrices) = sync_channel(0);
        let shapes = wanted.iter().map(|wanted| wanted.shape);
        scope.spawn(move || {
            // Nobody takes them any more where a result could not be written.
            shapes
                .map(|shape| shape.features::<T>(SEED))
                .all(|features| ready.send(features).is_ok())
        });
        for wanted in &wanted {
            let features = matrices.recv().context("making the next matrix")?;
            record_matrix(gpu, recorder, wanted, features)?;
        }
        Ok(())
    })
}

/// The products of one matrix.
fn record_matrix<T: Number>(
    gpu: &Gpu,
    recorder: &Recorder,
    wanted: &Wanted,
    features: Result<Features<T>>,
) -> Result<()> {
    let forms = features.and_then(|features| forms(&gpu.device, Arc::new(features), wanted));
    let mut forms = match forms {
        Ok(forms) => forms,
        Err(reason) => {
            let cases = wanted.cases.iter().map(|(_, case)| case.clone());
            return recorder.fail(&cases.collect::<Vec<Case>>(), &reason);
        }
    };
    for (product, case) in &wanted.cases {
        recorder.measure(case, || compare(&mut forms, *product, wanted))?;
    }
    Ok(())
}

/// X as it came, and in every further form that could be of use.
fn forms<T: Number>(
    device: &Device,
    features: Arc<Features<T>>,
    wanted: &Wanted,
) -> Result<Vec<Matrix<T>>> {
    let is_free = wanted.summation == Summation::Free;
    let is_of_use = is_free && wanted.shape.is_sparse() && wanted.shape.cols() > FEW_COLUMNS;
    let further = Stored::further(Processor::Gpu).filter(|_| is_of_use);
    let options = MatrixOptions {
        summation: wanted.summation,
        ..MatrixOptions::default()
    };
    let make = |form: Option<Preparation>| -> Result<Matrix<T>> {
        let mut matrix = Matrix::with_options(device, features.clone(), options)?;
        if let Some(form) = form {
            matrix.prepare(form)?;
        }
        Ok(matrix)
    };
    // The host makes them, some of it by one thread.
    let forms: Vec<_> = std::iter::once(None)
        .chain(further.map(Preparation::of))
        .collect();
    forms.into_par_iter().map(make).collect()
}

/// Records how long choosing takes, for an H200: no GPU is needed.
///
/// # Errors
/// When a result cannot be written.
pub fn record_choosing(recorder: &Recorder) -> Result<()> {
    for (shape, _) in shapes() {
        recorder.measure(&case::<f32>("choose", shape), || choose::<f32>(shape))?;
        recorder.measure(&case::<f64>("choose", shape), || choose::<f64>(shape))?;
    }
    Ok(())
}

fn case<T: Number>(work: &'static str, shape: Shape) -> Case {
    Case {
        family: "plan",
        work,
        shape,
        dtype: T::DTYPE.into(),
        seed: SEED,
    }
}

/// Launches over every form, the chosen one over X as it came first.
fn compare<T: Number>(
    forms: &mut [Matrix<T>],
    product: Product,
    wanted: &Wanted,
) -> Result<Measured> {
    let mut comparisons = Vec::new();
    for matrix in forms.iter_mut() {
        let comparison = matrix.compare_launches(product, wanted.selection)?;
        for candidate in &comparison.candidates {
            println!("  {}", line(candidate));
        }
        comparisons.push((*matrix.problem(), comparison));
    }
    let (_, rows) = comparisons.first().context("X as it came")?;
    let mut measured = measured(rows, wanted.shape.bytes::<T>(4))?;
    let choices = comparisons
        .iter()
        .map(|(problem, comparison)| choice(*problem, comparison));
    measured.choices.extend(choices);
    Ok(measured)
}

fn choice(problem: Problem, comparison: &Comparison) -> Choice {
    let launches = comparison.candidates.iter().map(|launched| TimedLaunch {
        variant: launched.plan.launch_line(),
        predicted_us: launched.predicted_us,
        measured_us: launched.measured_us,
    });
    Choice {
        problem,
        launches: launches.collect(),
    }
}

fn line(launched: &Launched) -> String {
    format!(
        "{:>9.1} us, predicted {:>9.1}  {}",
        launched.measured_us,
        launched.predicted_us,
        launched.plan.launch_line()
    )
}

fn measured(comparison: &Comparison, bytes: usize) -> Result<Measured> {
    let Comparison { chosen, candidates } = comparison;
    let best = candidates.first().context("the chosen launch was timed")?;
    let us = chosen.measured_us;
    let times = Times {
        median_us: us,
        min_us: us,
        max_us: us,
    };
    let mut measured = Measured::new(chosen.plan.launch_line(), times, bytes);
    measured.details.extend([
        ("predicted_us", chosen.predicted_us),
        ("best_us", best.measured_us),
        ("best_predicted_us", best.predicted_us),
        ("above_best_percent", 100.0 * comparison.regret()),
        ("launches", candidates.len() as f64),
    ]);
    Ok(measured)
}

fn choose<T: Number>(shape: Shape) -> Result<Measured> {
    let limits = DeviceLimits::known("h200").context("a listed device")?;
    let kernels = candidates::<T>("sm_90");
    let planner = Planner::new(&limits, &kernels);
    let problem = problem::<T>(shape);
    let plan = planner.plan(&problem, Product::Fused)?;
    let samples = (0..SAMPLES).map(|_| {
        let start = Instant::now();
        for _ in 0..PLANS {
            // It succeeded before.
            let _ = black_box(planner.plan(black_box(&problem), Product::Fused));
        }
        start.elapsed().as_secs_f64() * 1e6 / PLANS as f64
    });
    let mut measured = Measured::new(plan.launch_line(), Times::of(samples.collect()), 0);
    measured.details.insert("kernels", kernels.len() as f64);
    Ok(measured)
}

fn problem<T: Number>(shape: Shape) -> Problem {
    let (rows, cols) = (shape.rows() as u64, shape.cols() as u64);
    if shape.is_sparse() {
        Problem::sparse(rows, cols, shape.entries() as u64, T::PRECISION)
    } else {
        Problem::dense(rows, cols, T::PRECISION).as_stored()
    }
}
