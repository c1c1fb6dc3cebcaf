//! Vectors on the GPU: dot product and linear combination.

use anyhow::Result;
use warpfuse::device::Buffer;
use warpfuse::matrix::Element;
use warpfuse::ops::{Number, vector};

use crate::case::{Case, SEED};
use crate::data;
use crate::gpu::Gpu;
use crate::record::{Measured, Recorder};
use crate::shape::Shape;
use crate::truth;

/// A GiB for each vector of f32, several times the L2 cache.
const SHAPE: Shape = Shape::Vector { len: 1 << 28 };
const ALPHA: f64 = 0.5;
const BETA: f64 = 0.25;

/// Records all cases of the family.
///
/// # Errors
/// When a result cannot be written.
pub fn record(gpu: &Gpu, recorder: &Recorder) -> Result<()> {
    record_dtype::<f32>(gpu, recorder)?;
    record_dtype::<f64>(gpu, recorder)
}

fn record_dtype<T: Number>(gpu: &Gpu, recorder: &Recorder) -> Result<()> {
    let case = |work| Case {
        family: "vector",
        work,
        shape: SHAPE,
        dtype: T::DTYPE.into(),
        seed: SEED,
    };
    let cases = [case("dot"), case("axpby")];
    if !cases.iter().any(|case| recorder.wants(case)) {
        return Ok(());
    }
    let pair = match Pair::<T>::new(gpu) {
        Ok(pair) => pair,
        Err(reason) => return recorder.fail(&cases, &reason),
    };
    recorder.measure(&cases[0], || pair.dot())?;
    recorder.measure(&cases[1], || pair.axpby())
}

/// Two vectors in host memory and on the GPU.
struct Pair<'a, T: Number> {
    gpu: &'a Gpu,
    host: [Vec<T>; 2],
    vectors: [Buffer<T>; 2],
    ceiling_gbs: f64,
}

impl<'a, T: Number> Pair<'a, T> {
    fn new(gpu: &'a Gpu) -> Result<Pair<'a, T>> {
        let ceiling_gbs = gpu.ceiling_gbs(2 * SHAPE.bytes::<T>(0))?;
        let host = [SEED + 30, SEED + 31].map(|seed| data::values(SHAPE.cols(), seed));
        let vectors = [gpu.device.upload(&host[0])?, gpu.device.upload(&host[1])?];
        Ok(Pair {
            gpu,
            host,
            vectors,
            ceiling_gbs,
        })
    }

    /// x·x, so that nothing cancels and the relative error means something.
    fn dot(&self) -> Result<Measured> {
        let [x, y] = &self.vectors;
        let squares: Vec<f64> = self.host[0]
            .iter()
            .map(|x| Element::to_f64(*x).powi(2))
            .collect();
        let error = truth::checked_error(&[vector::dot(x, x)?], &[squares.iter().sum()])?;
        let times = self
            .gpu
            .sampler
            .time(&self.gpu.device, || vector::dot(x, y).map(drop))?;
        let bytes = 2 * SHAPE.bytes::<T>(0);
        Ok(Measured::new("dot", times, bytes)
            .with_ceiling(self.ceiling_gbs)
            .with_error(error))
    }

    fn axpby(&self) -> Result<Measured> {
        let [x, y] = &self.vectors;
        let mut result = y.try_clone()?;
        let [alpha, beta] = [ALPHA, BETA].map(<T as Element>::from_f64);
        vector::axpby(alpha, x, beta, &mut result)?;
        let pairs = self.host[0].iter().zip(&self.host[1]);
        let combine = |(x, y): (&T, &T)| ALPHA * Element::to_f64(*x) + BETA * Element::to_f64(*y);
        let truth: Vec<f64> = pairs.map(combine).collect();
        let error = truth::checked_error(&result.to_vec()?, &truth)?;
        let update = || vector::axpby(alpha, x, beta, &mut result);
        let times = self.gpu.sampler.time(&self.gpu.device, update)?;
        let bytes = 3 * SHAPE.bytes::<T>(0);
        Ok(Measured::new("axpby", times, bytes)
            .with_ceiling(self.ceiling_gbs)
            .with_error(error))
    }
}
