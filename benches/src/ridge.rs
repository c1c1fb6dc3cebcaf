//! Ridge and plain least squares of a tall dense X on a GPU: by R of X, and by conjugate gradients.
//!
//! A fit's time is the clock's, of X that is there and targets that are not: median of some fits, after one that loads kernels.
//! Columns are independent, or one is nearly the sum of two others.

use std::time::Instant;

use anyhow::{Result, ensure};
use ndarray::Array2;
use warpfuse::learning::{FitOptions, Regressor, ResidentDataset, Ridge, Solver};
use warpfuse::matrix::{Element, Features};
use warpfuse::ops::{MatrixOptions, Number};

use crate::case::{Case, SEED};
use crate::data;
use crate::gpu::Gpu;
use crate::record::{Measured, Recorder};
use crate::sampling::Times;
use crate::shape::Shape;

const ROWS: usize = 10_000_000;
/// Fits of each solver.
const FITS: usize = 5;
/// What one column differs from the sum of two others by, where it does so little.
const APART: f64 = 1e-3;

/// Columns that are far from depending on each other, or hardly.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Columns {
    Independent,
    Near,
}

/// Records all fits.
///
/// # Errors
/// When a result cannot be written.
pub fn record(gpu: &Gpu, recorder: &Recorder) -> Result<()> {
    fits::<f32>(
        gpu,
        recorder,
        ("ridge_independent", 32, Columns::Independent),
    )?;
    fits::<f32>(
        gpu,
        recorder,
        ("ridge_independent", 28, Columns::Independent),
    )?;
    fits::<f32>(gpu, recorder, ("ridge_near", 32, Columns::Near))?;
    fits::<f32>(gpu, recorder, ("ridge_near", 28, Columns::Near))?;
    fits::<f64>(gpu, recorder, ("ridge_near", 28, Columns::Near))
}

fn fits<T: Number>(
    gpu: &Gpu,
    recorder: &Recorder,
    (work, cols, columns): (&'static str, usize, Columns),
) -> Result<()> {
    let shape = Shape::Dense { rows: ROWS, cols };
    let case = Case {
        family: "qr",
        work,
        shape,
        dtype: T::DTYPE.into(),
        seed: SEED,
    };
    recorder.measure(&case, || {
        let (x, w) = problem::<T>(cols, columns);
        let y: Vec<T> = x
            .rows()
            .into_iter()
            .map(|row| {
                let terms = row.iter().zip(&w).map(|(x, w)| Element::to_f64(*x) * w);
                <T as Element>::from_f64(1.0 + terms.sum::<f64>())
            })
            .collect();
        let resident =
            ResidentDataset::new(&gpu.device, Features::Dense(x), MatrixOptions::default())?;
        let (qr, by_r) = timed(&resident, &y, Solver::Qr)?;
        let (products, by_products) = timed(&resident, &y, Solver::ConjugateGradient)?;
        ensure!(by_r.report().solver == Solver::Qr, "another solver");
        let bytes = ROWS * cols * size_of::<T>();
        let mut measured = Measured::new("R of X", qr, bytes)
            .with_error(error(&by_r, &w))
            .with_ceiling(gpu.ceiling_gbs(bytes)?);
        let details = &mut measured.details;
        details.insert("steps", by_r.report().n_iter as f64);
        details.insert("products_us", products.median_us);
        details.insert("products_error", error(&by_products, &w));
        details.insert("products_steps", by_products.report().n_iter as f64);
        details.insert("gradient_ratio", by_r.report().gradient_ratio);
        details.insert(
            "products_gradient_ratio",
            by_products.report().gradient_ratio,
        );
        Ok(measured)
    })
}

/// X and the coefficients that targets are made of.
fn problem<T: Number>(cols: usize, columns: Columns) -> (Array2<T>, Vec<f64>) {
    let mut values = data::values::<T>(ROWS * cols, SEED + 70);
    if columns == Columns::Near {
        for row in values.chunks_exact_mut(cols) {
            let [a, b, c] = [row[0], row[1], row[2]].map(Element::to_f64);
            row[2] = <T as Element>::from_f64(a + b + APART * c);
        }
    }
    let x = Array2::from_shape_vec((ROWS, cols), values).expect("as many as the shape has");
    let w = (0..cols).map(|j| [1.0, -2.0, 0.5][j % 3]).collect();
    (x, w)
}

fn timed<T: Number>(
    resident: &ResidentDataset<T>,
    y: &[T],
    solver: Solver,
) -> Result<(Times, Regressor)> {
    let params = Ridge::params().alpha(1e-3).solver(solver);
    let mut model = params.fit_on(resident, y, FitOptions::default())?;
    let mut samples = Vec::new();
    for _ in 0..FITS {
        let begun = Instant::now();
        model = params.fit_on(resident, y, FitOptions::default())?;
        samples.push(1e6 * begun.elapsed().as_secs_f64());
    }
    Ok((Times::of(samples), model))
}

/// ‖w − truth‖ / ‖truth‖.
fn error(model: &Regressor, truth: &[f64]) -> f64 {
    let norm = |x: &dyn Fn(usize) -> f64| (0..truth.len()).map(|j| x(j).powi(2)).sum::<f64>();
    let apart = norm(&|j| model.coef()[j] - truth[j]);
    (apart / norm(&|j| truth[j])).sqrt()
}
