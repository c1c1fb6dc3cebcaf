//! How good plans are: the launch that the planner chooses beside the quickest of those that it could have chosen,
//! and how long choosing takes.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use warpfuse::matrix::Features;
use warpfuse::ops::measure::{Comparison, Measured as Launched, Selection};
use warpfuse::ops::{Matrix, Number, Preparation, candidates};
use warpfuse::plan::fused::{Plan, Planner, Problem, Product};
use warpfuse::plan::limits::DeviceLimits;

use crate::case::{Case, SEED};
use crate::gpu::Gpu;
use crate::record::{Choice, Measured, Recorder, TimedLaunch};
use crate::sampling::Times;
use crate::shape::{DRAWN, MATRICES, SPARSE_WIDTHS, Shape};

/// Of all launches that the planner weighs, the quickest by prediction, and some of every kernel.
const SELECTION: Selection = Selection {
    quickest: 30,
    of_each_kernel: 2,
};
/// Plans behind every sample of the time of choosing.
const PLANS: usize = 50;
const SAMPLES: usize = 21;

/// Columns up to which no further form is of use.
const FEW_COLUMNS: usize = 4_000;

/// The further forms.
const FORMS: [Preparation; 3] = [
    Preparation::Panels,
    Preparation::HotColumns { most: None },
    Preparation::Transpose,
];

/// Products by the names that records have for them.
const PRODUCTS: [(Product, &str); 3] = [
    (Product::Fused, "fused"),
    (Product::Forward, "forward"),
    (Product::Transposed, "transposed"),
];

/// Shapes with as many of the [`PRODUCTS`] as are compared on them: X·y where row lengths make a difference.
fn shapes() -> impl Iterator<Item = (Shape, usize)> {
    let all = MATRICES.into_iter().map(|shape| (shape, PRODUCTS.len()));
    let drawn = SPARSE_WIDTHS.into_iter().chain(DRAWN);
    all.chain(drawn.map(|shape| (shape, 1 + usize::from(shape.is_uneven()))))
}

/// Records all cases of the family on a GPU.
///
/// # Errors
/// When a result cannot be written.
pub fn record(gpu: &Gpu, recorder: &Recorder) -> Result<()> {
    for (shape, products) in shapes() {
        record_matrix::<f32>(gpu, recorder, (shape, products))?;
        record_matrix::<f64>(gpu, recorder, (shape, products))?;
    }
    Ok(())
}

/// The products of one matrix, which is made and uploaded once.
fn record_matrix<T: Number>(
    gpu: &Gpu,
    recorder: &Recorder,
    (shape, products): (Shape, usize),
) -> Result<()> {
    let wanted: Vec<(Product, Case)> = PRODUCTS[..products]
        .iter()
        .map(|&(product, work)| (product, case::<T>(work, shape)))
        .filter(|(_, case)| recorder.wants(case))
        .collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let features = Arc::new(shape.features::<T>(SEED)?);
    for (product, case) in wanted {
        recorder.measure(&case, || compare(gpu, &features, product, shape))?;
    }
    Ok(())
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
        dtype: T::DTYPE,
        seed: SEED,
    }
}

/// Launches over X as it came, and for the fused product of a sparse one over its further forms.
fn compare<T: Number>(
    gpu: &Gpu,
    features: &Arc<Features<T>>,
    product: Product,
    shape: Shape,
) -> Result<Measured> {
    let (rows, choice) = compare_form(gpu, features, product, None)?;
    let mut measured = measured(&rows, shape.bytes::<T>(4))?;
    measured.choices.push(choice);
    if shape.is_sparse() && product == Product::Fused && shape.cols() > FEW_COLUMNS {
        for form in FORMS {
            let (_, choice) = compare_form(gpu, features, product, Some(form))?;
            measured.choices.push(choice);
        }
    }
    Ok(measured)
}

fn compare_form<T: Number>(
    gpu: &Gpu,
    features: &Arc<Features<T>>,
    product: Product,
    form: Option<Preparation>,
) -> Result<(Comparison, Choice)> {
    let mut matrix = Matrix::new(&gpu.device, features.clone())?;
    if let Some(form) = form {
        matrix.prepare(form)?;
    }
    let comparison = matrix.compare_launches(product, SELECTION)?;
    for candidate in &comparison.candidates {
        println!("  {}", line(candidate));
    }
    let launches = comparison.candidates.iter().map(|launched| TimedLaunch {
        variant: variant(&launched.plan),
        predicted_us: launched.predicted_us,
        measured_us: launched.measured_us,
    });
    let choice = Choice {
        problem: *matrix.problem(),
        launches: launches.collect(),
    };
    Ok((comparison, choice))
}

fn line(launched: &Launched) -> String {
    format!(
        "{:>9.1} us, predicted {:>9.1}  {}",
        launched.measured_us,
        launched.predicted_us,
        variant(&launched.plan)
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
    let mut measured = Measured::new(variant(&chosen.plan), times, bytes);
    measured.details.extend([
        ("predicted_us", chosen.predicted_us),
        ("best_us", best.measured_us),
        ("best_predicted_us", best.predicted_us),
        ("above_best_percent", 100.0 * comparison.regret()),
        ("launches", candidates.len() as f64),
    ]);
    Ok(measured)
}

/// The entry and its launch, of both kernels where there are two.
fn variant(plan: &Plan) -> String {
    let own = format!("{} bs{} grid{}", plan.kernel, plan.bs, plan.grid);
    let next = plan.then.as_deref().map(variant);
    next.map_or(own.clone(), |next| format!("{own} + {next}"))
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
    let mut measured = Measured::new(variant(&plan), Times::of(samples.collect()), 0);
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
