//! Softmax objectives: the loss of k classes and the gradient in one pass over X, and a product of the Hessian, beside two products
//! of cuSPARSE with k vectors.
//!
//! The peer computes Xᵀ(X·Y) over a stored transpose, without what lies between.

use std::sync::Arc;

use anyhow::Result;
use warpfuse::device::Buffer;
use warpfuse::matrix::{Element, Features};
use warpfuse::ops::objective::{Softmax, SoftmaxOut};
use warpfuse::ops::{Matrix, Number, OpError};
use warpfuse::plan::fused::Product;

use crate::case::{Case, SEED};
use crate::data;
use crate::gpu::Gpu;
use crate::peers;
use crate::record::{Measured, Recorder};
use crate::shape::{Lengths, Shape};
use crate::truth::{self, HostTerms};

const ROWS: usize = 1_000_000;
const CLASSES: usize = 10;
/// Evaluations before those that are timed.
const BEFORE: usize = 6;

const fn sparse(cols: usize, lengths: Lengths, zipf_percent: u32) -> Shape {
    Shape::Drawn {
        rows: ROWS,
        cols,
        per_row: 20,
        lengths,
        zipf_percent,
    }
}

/// Even rows, the gradient in shared and in global memory; texts, whose words follow Zipf's law; and a dense matrix.
const SHAPES: [Shape; 4] = [
    sparse(1_000, Lengths::Constant, 0),
    sparse(40_000, Lengths::Constant, 0),
    sparse(100_000, Lengths::LogNormal, 110),
    Shape::Dense {
        rows: ROWS,
        cols: 28,
    },
];

/// What is computed at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// Loss, gradient and probabilities.
    Evaluation,
    /// The Hessian of the probabilities times a matrix.
    Curvature,
}

const TASKS: [Task; 2] = [Task::Evaluation, Task::Curvature];

impl Task {
    fn name(self) -> &'static str {
        match self {
            Task::Evaluation => "softmax_10",
            Task::Curvature => "softmax_product_10",
        }
    }
}

/// Measures both tasks over all shapes.
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
    /// n × k.
    y: Vec<T>,
    /// The class of each row.
    target: Vec<T>,
    /// m × k, as of classes that are all as probable.
    given: Vec<T>,
    /// y, target and given.
    on_device: [Buffer<T>; 3],
}

impl<'a, T: Number> Subject<'a, T> {
    fn new(gpu: &'a Gpu, shape: Shape) -> Result<Self> {
        let features = Arc::new(shape.features::<T>(SEED)?);
        let y = data::values::<T>(shape.cols() * CLASSES, SEED + 10);
        let class = |row| (CLASSES as f64 * data::uniform(SEED + 30, row)).floor();
        let target: Vec<T> = (0..shape.rows())
            .map(|row| <T as Element>::from_f64(class(row)))
            .collect();
        let given = vec![<T as Element>::from_f64(1.0 / CLASSES as f64); shape.rows() * CLASSES];
        let device = &gpu.device;
        let upload = |values: &[T]| device.upload(values);
        Ok(Subject {
            matrix: Matrix::new(device, features.clone())?,
            on_device: [upload(&y)?, upload(&target)?, upload(&given)?],
            gpu,
            shape,
            features,
            y,
            target,
            given,
        })
    }

    fn measure(&self, task: Task) -> Result<Measured> {
        let (device, sampler) = (&self.gpu.device, &self.gpu.sampler);
        let mut sums = device.zeros(1 + CLASSES)?;
        let mut gradient = device.zeros(self.y.len())?;
        let mut kept = device.zeros(self.given.len())?;
        // The matrix may go over to the rows of its transpose, which is what is timed, and checked.
        for _ in 0..BEFORE {
            self.run(task, (&mut sums, &mut gradient), &mut kept)?;
        }
        let error = truth::checked_error(&gradient.to_vec()?, &self.gradient(task))?;
        let run = || self.run(task, (&mut sums, &mut gradient), &mut kept);
        let times = sampler.time(device, run)?;
        // X once, Y and the gradient, the classes or nothing, and the probabilities.
        let vectors = self.shape.rows() * usize::from(task == Task::Evaluation)
            + 2 * self.y.len()
            + self.given.len();
        let bytes = self.shape.bytes::<T>(4) + vectors * size_of::<T>();
        let ceiling = self.gpu.ceiling_gbs(self.shape.bytes::<T>(4))?;
        let mut measured = Measured::new("softmax", times, bytes)
            .with_ceiling(ceiling)
            .with_error(error);
        if let Some(us) = self.peer_us() {
            let name = peers::Method::SpmvStored.name().to_owned();
            measured.peers.insert(name, us);
        }
        Ok(measured)
    }

    fn run(
        &self,
        task: Task,
        (sums, gradient): (&mut Buffer<f64>, &mut Buffer<T>),
        kept: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        let [y, target, given] = &self.on_device;
        let softmax = Softmax {
            classes: CLASSES,
            weights: None,
            constants: None,
        };
        let (matrix, out) = (&self.matrix, SoftmaxOut { sums, gradient });
        match task {
            Task::Evaluation => matrix.softmax_objective(&softmax, target, y, out, Some(kept)),
            Task::Curvature => matrix.softmax_product(&softmax, given, y, out, None),
        }
    }

    fn peer_us(&self) -> Option<f64> {
        let truth = self.spread(|class| {
            let y = self.column(class);
            truth::product(&self.features, Product::Fused, &y, &HostTerms::default())
        });
        let (gpu, libraries) = (self.gpu, self.gpu.libraries());
        let on = (&gpu.device, &gpu.sampler);
        peers::wide_us(libraries, on, &self.features, (&self.y, CLASSES), &truth)
    }

    /// Column `class` of Y.
    fn column(&self, class: usize) -> Vec<T> {
        self.y[class..].iter().step_by(CLASSES).copied().collect()
    }

    /// Row-major, from columns.
    fn spread(&self, column: impl Fn(usize) -> Vec<f64>) -> Vec<f64> {
        let columns: Vec<Vec<f64>> = (0..CLASSES).map(column).collect();
        let of_row = |row| columns.iter().map(move |column| column[row]);
        (0..columns[0].len()).flat_map(of_row).collect()
    }

    /// XᵀS, in f64.
    fn gradient(&self, task: Task) -> Vec<f64> {
        let plain = HostTerms::default();
        let mut slopes = self.spread(|class| {
            let y = self.column(class);
            truth::product(&self.features, Product::Forward, &y, &plain)
        });
        for (t, class) in slopes.chunks_mut(CLASSES).zip(&self.target) {
            match task {
                Task::Evaluation => evaluate(t, Element::to_f64(*class) as usize),
                Task::Curvature => bend(t, 1.0 / CLASSES as f64),
            }
        }
        self.spread(|class| {
            let of_class = slopes[class..].iter().step_by(CLASSES);
            let p: Vec<T> = of_class.map(|s| <T as Element>::from_f64(*s)).collect();
            truth::product(&self.features, Product::Transposed, &p, &plain)
        })
    }
}

/// The softmax of a row, less 1 at its class.
fn evaluate(t: &mut [f64], class: usize) {
    let top = t.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = t.iter().map(|t| (t - top).exp()).collect();
    let sum: f64 = powers.iter().sum();
    for (t, power) in t.iter_mut().zip(powers) {
        *t = power / sum;
    }
    t[class] -= 1.0;
}

/// `p ⊙ (t − p·t)`, every class being as probable.
fn bend(t: &mut [f64], p: f64) {
    let mean: f64 = t.iter().map(|t| p * t).sum();
    for t in t {
        *t = p * (*t - mean);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_of_a_row_add_up_to_nothing() {
        let mut t = [0.0, f64::ln(3.0)];
        evaluate(&mut t, 0);
        assert!((t[0] + 0.75).abs() < 1e-15 && (t[1] - 0.75).abs() < 1e-15);
        let mut t = [1.0, 3.0];
        bend(&mut t, 0.5);
        assert_eq!(t, [-0.5, 0.5]);
    }
}
