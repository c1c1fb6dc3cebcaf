//! What the device spends on one inner iteration, without the host.

use std::time::Instant;

use anyhow::Result;
use warpfuse::device::{Buffer, Readback, Timer};
use warpfuse::matrix::Element;
use warpfuse::ops::cg::{CgProduct, CgVectors, Stop};
use warpfuse::ops::design::{DesignColumns, DesignVectors, Ridge};
use warpfuse::ops::objective::{Intercept, ObjectiveOut};
use warpfuse::ops::{Matrix, Number, OpError, Terms, vector};
use warpfuse::plan::objective::Constant;

use crate::gpu::Gpu;
use crate::sampling::Times;

/// Iterations between two events.
const ITERATIONS: usize = 32;
const SAMPLES: usize = 11;
/// Elements and fills of the work that the device is given first, so that everything after it is submitted before the
/// device comes to it: some milliseconds.
const GATE: (usize, usize) = (1 << 28, 12);

/// An iteration as the estimator's solver submits it: into the design, the Hessian's product, out of it, and the
/// vectors of conjugate gradients.
pub struct Step<'a, T: Number> {
    gpu: &'a Gpu,
    matrix: &'a Matrix<T>,
    design: DesignVectors<T>,
    solve: CgVectors<T>,
    curvature: Buffer<T>,
    ridge: Ridge,
    gate: Buffer<T>,
}

impl<'a, T: Number> Step<'a, T> {
    /// With a curvature of ¼ in each row.
    ///
    /// # Errors
    /// When the device fails.
    pub fn new(gpu: &'a Gpu, matrix: &'a Matrix<T>, inverse: &[T], l2: f64) -> Result<Self> {
        let device = &gpu.device;
        let columns = DesignColumns {
            cols: matrix.cols(),
            means: None,
            scales: None,
            intercept: false,
            classes: 1,
        };
        let constant = |len: usize, value: f64| -> Result<Buffer<T>> {
            let mut all = device.zeros(len)?;
            vector::fill(<T as Element>::from_f64(value), &mut all)?;
            Ok(all)
        };
        // The tolerance is never reached, so that no iteration is one that does nothing.
        let (residual, stop) = (constant(matrix.cols(), -1.0)?, Stop::at(0.0));
        Ok(Step {
            design: DesignVectors::new(device, &columns)?,
            solve: CgVectors::new(device, residual, Some(device.upload(inverse)?), None, stop)?,
            curvature: constant(matrix.rows(), 0.25 / matrix.rows() as f64)?,
            ridge: Ridge {
                coefficients: l2,
                intercept: 0.0,
            },
            gate: device.zeros(GATE.0)?,
            gpu,
            matrix,
        })
    }

    /// Microseconds of an iteration by the clock, as the solver goes through them: the next one is submitted before the
    /// scalars of the last are waited for.
    ///
    /// # Errors
    /// When the device fails.
    pub fn clock_us(&mut self) -> Result<Times> {
        let mut readback = Readback::new(&self.gpu.device, self.solve.state().len())?;
        let mut sample = || -> Result<f64> {
            readback.submit(self.solve.state())?;
            readback.wait()?;
            let begun = Instant::now();
            for iteration in 0..ITERATIONS {
                let given = (&self.curvature, self.ridge);
                iterate(self.matrix, &mut self.design, &mut self.solve, given)?;
                readback.submit_beside(self.solve.state())?;
                if iteration > 0 {
                    readback.wait()?;
                }
            }
            readback.wait()?;
            Ok(1e6 * begun.elapsed().as_secs_f64() / ITERATIONS as f64)
        };
        sample()?;
        let samples = (0..SAMPLES).map(|_| sample()).collect::<Result<_>>()?;
        Ok(Times::of(samples))
    }

    /// Microseconds of an iteration, all of whose launches were in the queue before the first of them began.
    ///
    /// # Errors
    /// When the device fails.
    pub fn device_us(&mut self) -> Result<Times> {
        let mut timer = Timer::new(&self.gpu.device)?;
        let mut sample = || -> Result<f64> {
            for _ in 0..GATE.1 {
                vector::fill(T::default(), &mut self.gate)?;
            }
            timer.start()?;
            for _ in 0..ITERATIONS {
                iterate(
                    self.matrix,
                    &mut self.design,
                    &mut self.solve,
                    (&self.curvature, self.ridge),
                )?;
            }
            Ok(timer.stop()? / ITERATIONS as f64)
        };
        sample()?;
        let samples = (0..SAMPLES).map(|_| sample()).collect::<Result<_>>()?;
        Ok(Times::of(samples))
    }
}

fn iterate<T: Number>(
    matrix: &Matrix<T>,
    design: &mut DesignVectors<T>,
    solve: &mut CgVectors<T>,
    (curvature, ridge): (&Buffer<T>, Ridge),
) -> Result<()> {
    let CgProduct { p, q, state, .. } = solve.product();
    let as_is = design.takes_as_is();
    if !as_is {
        design.enter(p)?;
    }
    let out = ObjectiveOut {
        solve: Some(state),
        ..ObjectiveOut::new(&mut design.sums, &mut design.raw)
    };
    let y = if as_is { p } else { &design.y };
    multiply((matrix, curvature), y, out)?;
    design.leave_product(p, ridge, q)?;
    Ok(solve.advance()?)
}

/// The product of a Hessian in the way of a fit without an intercept.
///
/// # Errors
/// When the device fails.
pub fn multiply<T: Number>(
    (matrix, curvature): (&Matrix<T>, &Buffer<T>),
    s: &Buffer<T>,
    out: ObjectiveOut<'_, T>,
) -> Result<(), OpError> {
    if !matrix.hessian_in_one_product(Constant::Absent)? {
        return matrix.hessian_product(curvature, Intercept::Absent, s, out);
    }
    // The sums are clear since the point was accepted.
    let ObjectiveOut { gradient, .. } = out;
    let terms = Terms {
        weights: Some(curvature),
        ..Terms::default()
    };
    matrix.fused(s, &terms, gradient.expect("products have a place"))
}
