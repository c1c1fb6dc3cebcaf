//! Conjugate gradients: what an iteration costs, and how much of it is not the pass over X.

use anyhow::{Result, ensure};
use warpfuse::device::{Buffer, Timer};
use warpfuse::learning::{CgOptions, CgStart, conjugate_gradient};
use warpfuse::matrix::{ColumnMoments, Element};
use warpfuse::ops::{Matrix, Number, Terms};

use crate::case::{Case, SEED};
use crate::data;
use crate::gpu::Gpu;
use crate::record::{Measured, Recorder};
use crate::sampling::Times;
use crate::shape::Shape;

const SHAPES: [Shape; 2] = [
    Shape::Dense {
        rows: 11_000_000,
        cols: 28,
    },
    Shape::Dense {
        rows: 1_000_000,
        cols: 1_024,
    },
];
/// Iterations of a short and of a long solve: what a solve costs once is in both, and cancels.
const SHORT: usize = 8;
const LONG: usize = 32;
const SAMPLES: usize = 21;
const L2: f64 = 1.0;

/// Whether the columns are centred, which costs a dot product more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Intercept {
    Fitted,
    Absent,
}

/// Records all cases of the family.
///
/// # Errors
/// When a result cannot be written.
pub fn record(gpu: &Gpu, recorder: &Recorder) -> Result<()> {
    for shape in SHAPES {
        record_matrix::<f32>(gpu, recorder, shape)?;
        record_matrix::<f64>(gpu, recorder, shape)?;
    }
    Ok(())
}

fn record_matrix<T: Number>(gpu: &Gpu, recorder: &Recorder, shape: Shape) -> Result<()> {
    let case = |work| Case {
        family: "cg",
        work,
        shape,
        dtype: T::DTYPE.into(),
        seed: SEED,
    };
    let cases = [case("iteration_with_intercept"), case("iteration")];
    if !cases.iter().any(|case| recorder.wants(case)) {
        return Ok(());
    }
    let solve = match Solve::<T>::new(gpu, shape) {
        Ok(solve) => solve,
        Err(reason) => return recorder.fail(&cases, &reason),
    };
    for (case, intercept) in cases.iter().zip([Intercept::Fitted, Intercept::Absent]) {
        recorder.measure(case, || solve.measure(intercept))?;
    }
    Ok(())
}

/// A system to be solved as often as samples are wanted.
struct Solve<'a, T: Number> {
    gpu: &'a Gpu,
    shape: Shape,
    matrix: Matrix<T>,
    residual: Buffer<T>,
    inverse_diagonal: Buffer<T>,
    means: Buffer<T>,
}

impl<'a, T: Number> Solve<'a, T> {
    fn new(gpu: &'a Gpu, shape: Shape) -> Result<Solve<'a, T>> {
        let features = shape.features::<T>(SEED)?;
        let means = ColumnMoments::of(&features).means(shape.rows());
        let device = &gpu.device;
        Ok(Solve {
            residual: device.upload(&data::values::<T>(shape.cols(), SEED + 20))?,
            inverse_diagonal: device.upload(&scattered_scales::<T>(&shape))?,
            means: device.upload(&narrow::<T>(&means))?,
            matrix: Matrix::new(device, features)?,
            gpu,
            shape,
        })
    }

    fn measure(&self, intercept: Intercept) -> Result<Measured> {
        let fused = self.fused(intercept)?;
        for _ in 0..2 {
            self.solve_us(LONG, intercept)?;
        }
        let per_iteration = || -> Result<f64> {
            let difference = self.solve_us(LONG, intercept)? - self.solve_us(SHORT, intercept)?;
            Ok(difference / (LONG - SHORT) as f64)
        };
        let samples = (0..SAMPLES)
            .map(|_| per_iteration())
            .collect::<Result<_>>()?;
        let times = Times::of(samples);
        let bytes = self.shape.bytes::<T>(4);
        let variant = format!("solves of {LONG} and of {SHORT} iterations");
        let mut measured =
            Measured::new(variant, times, bytes).with_ceiling(self.gpu.ceiling_gbs(bytes)?);
        measured.details.insert("fused_us", fused.median_us);
        measured
            .details
            .insert("over_fused_us", times.median_us - fused.median_us);
        Ok(measured)
    }

    /// The product of an iteration alone.
    fn fused(&self, intercept: Intercept) -> Result<Times> {
        let mut q = self.gpu.device.zeros(self.shape.cols())?;
        let shift = self.gpu.device.upload(&[<T as Element>::from_f64(0.1)])?;
        let terms = Terms {
            shift: (intercept == Intercept::Fitted).then_some(&shift),
            addend: Some((<T as Element>::from_f64(L2), &self.residual)),
            ..Terms::default()
        };
        let product = || self.matrix.fused(&self.residual, &terms, &mut q);
        Ok(self.gpu.sampler.time(&self.gpu.device, product)?)
    }

    /// Microseconds of a solve with this many iterations.
    fn solve_us(&self, max_iter: usize, intercept: Intercept) -> Result<f64> {
        let means = match intercept {
            Intercept::Fitted => Some(self.means.try_clone()?),
            Intercept::Absent => None,
        };
        let residual = self.residual.try_clone()?;
        let start = CgStart {
            residual,
            inverse_diagonal: Some(self.inverse_diagonal.try_clone()?),
            means,
        };
        let options = CgOptions {
            l2: L2,
            tolerance: 0.0,
            max_iter,
        };
        let mut timer = Timer::new(&self.gpu.device)?;
        timer.start()?;
        let solution = conjugate_gradient(&self.matrix, start, &options, |_| {})?;
        let microseconds = timer.stop()?;
        let done = solution.iterations;
        ensure!(
            done == max_iter,
            "the solve ended after {done} iterations, expected {max_iter}"
        );
        Ok(microseconds)
    }
}

/// A preconditioner that spreads the eigenvalues over three decades: without it random columns are so nearly
/// orthogonal that the residual would vanish before the last iteration.
fn scattered_scales<T: Number>(shape: &Shape) -> Vec<T> {
    let scale = |index| 10_f64.powf(-3.0 * data::uniform(SEED + 21, index)) / shape.rows() as f64;
    narrow(&(0..shape.cols()).map(scale).collect::<Vec<_>>())
}

fn narrow<T: Number>(values: &[f64]) -> Vec<T> {
    values
        .iter()
        .map(|value| <T as Element>::from_f64(*value))
        .collect()
}
