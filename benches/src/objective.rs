//! Objectives: Σ loss and gradient in one pass over X, beside the fused pattern and two products of other libraries.
//!
//! The peers compute Xᵀ(X·y) in two passes: what an objective on their operators takes at least, without the losses
//! in between.

use std::sync::Arc;

use anyhow::Result;
use warpfuse::device::Buffer;
use warpfuse::matrix::{Element, Features};
use warpfuse::ops::objective::{
    Distribution, Evaluation, Intercept, Link, Loss, ObjectiveOut, ObjectiveSums,
};
use warpfuse::ops::{Matrix, Number, OpError, Terms};
use warpfuse::plan::fused::{Plan, Product};

use crate::case::{Case, SEED};
use crate::data;
use crate::gpu::Gpu;
use crate::peers::{self, Inputs};
use crate::record::{Measured, Recorder};
use crate::shape::Shape;
use crate::truth::{self, HostTerms};

const fn sparse(cols: usize) -> Shape {
    Shape::Sparse {
        rows: 4_000_000,
        cols,
        per_row: 20,
    }
}

/// HIGGS, a wider dense matrix, and sparse ones with the gradient in shared and in global memory.
const SHAPES: [Shape; 5] = [
    Shape::Dense {
        rows: 11_000_000,
        cols: 28,
    },
    Shape::Dense {
        rows: 2_000_000,
        cols: 512,
    },
    sparse(1_000),
    sparse(40_000),
    sparse(1_000_000),
];

/// What is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// Logistic loss and gradient: a kernel of its own.
    Logistic,
    /// Poisson loss with its logarithm, and gradient: the kernel for any loss.
    Poisson,
    /// The Hessian of logistic regression with an intercept, times a vector.
    Hessian,
}

const TASKS: [Task; 3] = [Task::Logistic, Task::Poisson, Task::Hessian];

impl Task {
    fn name(self) -> &'static str {
        match self {
            Task::Logistic => "logistic",
            Task::Poisson => "poisson",
            Task::Hessian => "hessian_product",
        }
    }

    fn loss(self) -> Loss {
        match self {
            Task::Logistic => Loss::Logistic,
            Task::Poisson => Loss::Glm {
                distribution: Distribution::Poisson,
                link: Link::Log,
            },
            Task::Hessian => Loss::Squared,
        }
    }
}

/// Measures all objectives.
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
    let cases = TASKS.map(|task| Case {
        family: "objective",
        work: task.name(),
        shape,
        dtype: T::DTYPE.into(),
        seed: SEED,
    });
    if !cases.iter().any(|case| recorder.wants(case)) {
        return Ok(());
    }
    let subject = match Subject::<T>::new(gpu, shape) {
        Ok(subject) => subject,
        Err(reason) => return recorder.fail(&cases, &reason),
    };
    for (case, task) in cases.iter().zip(TASKS) {
        recorder.measure(case, || subject.measure(task))?;
    }
    Ok(())
}

/// A matrix with the vectors of its objectives.
struct Subject<'a, T: Number> {
    gpu: &'a Gpu,
    shape: Shape,
    features: Arc<Features<T>>,
    matrix: Matrix<T>,
    /// n + 1 elements, the intercept last.
    y: Vec<T>,
    /// 0 or 1 per row.
    target: Vec<T>,
    /// As of logistic regression: above 0, up to ¼.
    curvature: Vec<T>,
    /// y, target and curvature.
    on_device: [Buffer<T>; 3],
}

impl<'a, T: Number> Subject<'a, T> {
    fn new(gpu: &'a Gpu, shape: Shape) -> Result<Self> {
        let features = Arc::new(shape.features::<T>(SEED)?);
        // Predictors of a size that losses are made for.
        let shrink = 1.0 / (shape.entries() as f64 / shape.rows() as f64).sqrt();
        let y: Vec<T> = data::values::<T>(shape.cols() + 1, SEED + 10)
            .iter()
            .map(|y| <T as Element>::from_f64(shrink * Element::to_f64(*y)))
            .collect();
        let label = |row| f64::from(u8::from(data::uniform(SEED + 30, row) < 0.4));
        let target: Vec<T> = (0..shape.rows())
            .map(|row| <T as Element>::from_f64(label(row)))
            .collect();
        let weight = |row| 0.25 * (1.0 - data::uniform(SEED + 31, row));
        let curvature: Vec<T> = (0..shape.rows())
            .map(|row| <T as Element>::from_f64(weight(row)))
            .collect();
        let device = &gpu.device;
        let upload = |values: &[T]| device.upload(values);
        Ok(Subject {
            matrix: Matrix::new(device, features.clone())?,
            on_device: [upload(&y)?, upload(&target)?, upload(&curvature)?],
            gpu,
            shape,
            features,
            y,
            target,
            curvature,
        })
    }

    fn measure(&self, task: Task) -> Result<Measured> {
        let device = &self.gpu.device;
        let mut sums = device.zeros(ObjectiveSums::LEN)?;
        let mut gradient = device.zeros(self.y.len())?;
        self.run(task, &mut sums, &mut gradient)?;
        let error = truth::checked_error(&gradient.to_vec()?, &self.gradient(task))?;
        let sampler = &self.gpu.sampler;
        let times = sampler.time(device, || self.run(task, &mut sums, &mut gradient))?;
        // X once, y and the gradient, b or d.
        let vectors = (self.shape.rows() + 2 * self.y.len()) * size_of::<T>();
        let bytes = self.shape.bytes::<T>(4) + vectors;
        let plan = self.matrix.objective_plan(task.loss())?;
        let variant = plan.map(Plan::launch_line);
        let ceiling = self.gpu.ceiling_gbs(self.shape.bytes::<T>(4))?;
        let mut measured = Measured::new(variant.unwrap_or_default(), times, bytes)
            .with_ceiling(ceiling)
            .with_error(error);
        measured.details.insert("fused_us", self.fused_us()?);
        if task == Task::Logistic {
            self.add_peers(&mut measured);
        }
        Ok(measured)
    }

    fn run(
        &self,
        task: Task,
        sums: &mut Buffer<f64>,
        gradient: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        let [y, target, curvature] = &self.on_device;
        let out = ObjectiveOut::new(sums, gradient);
        if task == Task::Hessian {
            return self
                .matrix
                .hessian_product(curvature, Intercept::Last, y, out);
        }
        let evaluation = Evaluation {
            intercept: Intercept::Last,
            ..Evaluation::new(task.loss(), target)
        };
        self.matrix.objective(&evaluation, y, out)
    }

    /// The pattern on the same matrix.
    fn fused_us(&self) -> Result<f64> {
        let device = &self.gpu.device;
        let y = device.upload(&self.y[..self.shape.cols()])?;
        let mut w = device.zeros(self.shape.cols())?;
        let fused = || self.matrix.fused(&y, &Terms::default(), &mut w);
        Ok(self.gpu.sampler.time(device, fused)?.median_us)
    }

    fn add_peers(&self, measured: &mut Measured) {
        let (y, p) = (&self.y[..self.shape.cols()], &self.target[..]);
        let inputs = Inputs { y, p };
        let libraries = self.gpu.libraries();
        if let Some(mut peer) = libraries.peer(&self.gpu.device, &self.features, inputs) {
            let plain = HostTerms::default();
            let truth = truth::product(&self.features, Product::Fused, y, &plain);
            measured.peers = peers::measure(&mut *peer, Product::Fused, &truth, &self.gpu.sampler);
        }
    }

    /// The true gradient with its last element, Σ g.
    fn gradient(&self, task: Task) -> Vec<f64> {
        let n = self.shape.cols();
        let plain = HostTerms::default();
        let products = truth::product(&self.features, Product::Forward, &self.y[..n], &plain);
        let intercept = Element::to_f64(self.y[n]);
        let slopes: Vec<f64> = products
            .iter()
            .zip(self.target.iter().zip(&self.curvature))
            .map(|(p, (b, d))| {
                let t = p + intercept;
                match task {
                    Task::Hessian => Element::to_f64(*d) * t,
                    _ => task.loss().at(t, Element::to_f64(*b)).slope,
                }
            })
            .collect();
        let p: Vec<T> = slopes
            .iter()
            .map(|slope| <T as Element>::from_f64(*slope))
            .collect();
        let mut gradient = truth::product(&self.features, Product::Transposed, &p, &plain);
        gradient.push(slopes.iter().sum());
        gradient
    }
}
