//! A matrix on the GPU with the vectors of all tasks.

use std::cell::{OnceCell, RefCell};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use warpfuse::device::{Buffer, DeviceError};
use warpfuse::matrix::{Element, Features};
use warpfuse::ops::{Matrix, MatrixOptions, Number, OpError, Preparation, Terms, vector};
use warpfuse::plan::form::FORMS;
use warpfuse::plan::fused::{Plan, Product, Summation};

use super::task::{Entries, Task, TermSet};
use crate::case::SEED;
use crate::data;
use crate::gpu::Gpu;
use crate::peers::{self, Inputs, Peer};
use crate::record::Measured;
use crate::shape::Shape;
use crate::truth::{self, HostTerms};

const ALPHA: f64 = 0.5;
const BETA: f64 = 2.0;
const SHIFT: f64 = 0.1;

/// A matrix with its vectors, ready for every [`Task`].
pub struct Subject<'a, T: Number> {
    gpu: &'a Gpu,
    shape: Shape,
    features: Arc<Features<T>>,
    matrix: Matrix<T>,
    /// The same in further forms, in the order of [`Stored`](warpfuse::plan::fused::Stored), and milliseconds to make each; made
    /// when first measured.
    prepared: [OnceCell<(Matrix<T>, f64)>; FORMS.len()],
    /// The same with sums whose bits are promised; made when first measured.
    reproducible: OnceCell<Matrix<T>>,
    host: HostVectors<T>,
    vectors: Vectors<T>,
    ceiling_gbs: f64,
    /// A copy of X in the hands of another library, made when a result is first compared with it.
    peer: OnceCell<Option<RefCell<Box<dyn Peer<T>>>>>,
}

/// y and z have n elements, p and v have m.
struct HostVectors<T> {
    y: Vec<T>,
    p: Vec<T>,
    weights: Vec<T>,
    addend: Vec<T>,
}

struct Vectors<T> {
    y: Buffer<T>,
    p: Buffer<T>,
    weights: Buffer<T>,
    addend: Buffer<T>,
    shift: Buffer<T>,
}

impl<'a, T: Number> Subject<'a, T> {
    /// Generates and uploads the matrix, and measures what a plain read of as many bytes reaches.
    ///
    /// # Errors
    /// When memory does not suffice or the device fails.
    pub fn new(gpu: &'a Gpu, shape: Shape, entries: Entries) -> Result<Subject<'a, T>> {
        let ceiling_gbs = gpu.ceiling_gbs(shape.bytes::<T>(4))?;
        let features = Arc::new(with_entries(shape.features::<T>(SEED)?, entries));
        let matrix = Matrix::new(&gpu.device, features.clone())?;
        let host = HostVectors::new(&shape);
        let vectors = host.upload(gpu)?;
        Ok(Subject {
            gpu,
            shape,
            features,
            matrix,
            prepared: Default::default(),
            reproducible: OnceCell::new(),
            host,
            vectors,
            ceiling_gbs,
            peer: OnceCell::new(),
        })
    }

    /// Checks, then times a task.
    ///
    /// # Errors
    /// When the result is wrong or the device fails.
    pub fn measure(&self, task: Task) -> Result<Measured> {
        let truth = self.truth(task);
        let (matrix, preparation_ms) = self.matrix(task)?;
        let mut output = self.output(task)?;
        vector::fill(<T as Element>::from_f64(f64::NAN), &mut output)?;
        self.multiply(matrix, task, &mut output)?;
        let error = truth::checked_error(&output.to_vec()?, &truth)?;
        let times = self.gpu.sampler.time(&self.gpu.device, || {
            self.multiply(matrix, task, &mut output)
        })?;
        let bytes = self.shape.bytes::<T>(4) + task.vector_elements(&self.shape) * size_of::<T>();
        let plan = matrix.used_plan(task.product)?;
        let mut measured = Measured::new(
            plan.map(Plan::launch_line).unwrap_or_default(),
            times,
            bytes,
        )
        .with_ceiling(self.ceiling_gbs)
        .with_error(error);
        measured
            .details
            .extend(preparation_ms.map(|ms| ("preparation_ms", ms)));
        let predicted = plan.and_then(predicted_us);
        measured
            .details
            .extend(predicted.map(|us| ("predicted_us", us)));
        Ok(self.with_peers(measured, task, &truth))
    }

    /// Libraries have the products alone, and promise nothing of bits.
    fn with_peers(&self, mut measured: Measured, task: Task, truth: &[f64]) -> Measured {
        if (task.terms, task.sums) == (TermSet::Alone, Summation::Free)
            && let Some(peer) = self.peer.get_or_init(|| self.make_peer().map(RefCell::new))
        {
            let peer = &mut **peer.borrow_mut();
            measured.peers = peers::measure(peer, task.product, truth, &self.gpu.sampler);
            measured.details.extend(peer.once());
        }
        measured
    }

    fn make_peer(&self) -> Option<Box<dyn Peer<T>>> {
        let inputs = Inputs {
            y: &self.host.y,
            p: &self.host.p,
        };
        self.gpu
            .libraries()
            .peer(&self.gpu.device, &self.features, inputs)
    }

    /// A result vector for a task.
    ///
    /// # Errors
    /// When memory does not suffice.
    pub fn output(&self, task: Task) -> Result<Buffer<T>, DeviceError> {
        let forward = task.product == Product::Forward;
        self.gpu.device.zeros(if forward {
            self.shape.rows()
        } else {
            self.shape.cols()
        })
    }

    /// Submits a task as users do.
    ///
    /// # Errors
    /// When the device fails.
    pub fn run(&self, task: Task, output: &mut Buffer<T>) -> Result<()> {
        let (matrix, _) = self.matrix(task)?;
        Ok(self.multiply(matrix, task, output)?)
    }

    /// The matrix as a task wants it, with what it took to prepare it.
    fn matrix(&self, task: Task) -> Result<(&Matrix<T>, Option<f64>)> {
        if task.sums == Summation::Reproducible {
            return Ok((self.reproducible()?, None));
        }
        let Some(preparation) = Preparation::of(task.stored) else {
            return Ok((&self.matrix, None));
        };
        let slot = &self.prepared[task.stored as usize];
        if slot.get().is_none() {
            let mut matrix = Matrix::new(&self.gpu.device, self.features.clone())?;
            let start = Instant::now();
            matrix.prepare(preparation)?;
            self.gpu.device.synchronize()?;
            let _ = slot.set((matrix, 1e3 * start.elapsed().as_secs_f64()));
        }
        let (matrix, ms) = slot.get().context("it was made above")?;
        Ok((matrix, Some(*ms)))
    }

    fn reproducible(&self) -> Result<&Matrix<T>> {
        if self.reproducible.get().is_none() {
            let options = MatrixOptions {
                summation: Summation::Reproducible,
                ..MatrixOptions::default()
            };
            let features = self.features.clone();
            let matrix = Matrix::with_options(&self.gpu.device, features, options)?;
            let _ = self.reproducible.set(matrix);
        }
        self.reproducible.get().context("it was made above")
    }

    fn multiply(
        &self,
        matrix: &Matrix<T>,
        task: Task,
        output: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        let terms = self.terms(task.terms);
        match task.product {
            Product::Fused => matrix.fused(&self.vectors.y, &terms, output),
            Product::Forward => matrix.forward(&self.vectors.y, &terms, output),
            Product::Transposed => matrix.transposed(&self.vectors.p, &terms, output),
        }
    }

    fn terms(&self, terms: TermSet) -> Terms<'_, T> {
        match terms {
            TermSet::Alone => Terms::default(),
            TermSet::All => Terms {
                alpha: <T as Element>::from_f64(ALPHA),
                weights: Some(&self.vectors.weights),
                shift: Some(&self.vectors.shift),
                addend: Some((<T as Element>::from_f64(BETA), &self.vectors.addend)),
                ..Terms::default()
            },
        }
    }

    fn truth(&self, task: Task) -> Vec<f64> {
        let HostVectors {
            y,
            p,
            weights,
            addend,
        } = &self.host;
        let input = if task.product == Product::Transposed {
            p
        } else {
            y
        };
        let terms = match task.terms {
            TermSet::Alone => HostTerms::default(),
            TermSet::All => HostTerms {
                alpha: ALPHA,
                weights: Some(&weights[..]),
                shift: Element::to_f64(<T as Element>::from_f64(SHIFT)),
                addend: Some((BETA, &addend[..])),
            },
        };
        truth::product(&self.features, task.product, input, &terms)
    }
}

impl<T: Number> HostVectors<T> {
    fn new(shape: &Shape) -> HostVectors<T> {
        let (m, n) = (shape.rows(), shape.cols());
        HostVectors {
            y: data::values(n, SEED + 10),
            p: data::values(m, SEED + 11),
            weights: data::values(m, SEED + 12),
            addend: data::values(n, SEED + 13),
        }
    }

    fn upload(&self, gpu: &Gpu) -> Result<Vectors<T>, DeviceError> {
        Ok(Vectors {
            y: gpu.device.upload(&self.y)?,
            p: gpu.device.upload(&self.p)?,
            weights: gpu.device.upload(&self.weights)?,
            addend: gpu.device.upload(&self.addend)?,
            shift: gpu.device.upload(&[<T as Element>::from_f64(SHIFT)])?,
        })
    }
}

/// With other values in a sparse matrix.
fn with_entries<T: Number>(mut features: Features<T>, entries: Entries) -> Features<T> {
    if let Features::Sparse(x) = &mut features
        && entries != Entries::Drawn
    {
        *x = warpfuse::matrix::with_entries(x, |row, drawn| {
            <T as Element>::from_f64(entries.value(row, Element::to_f64(drawn)))
        });
    }
    features
}

/// What the planner expected of all launches.
fn predicted_us(plan: &Plan) -> Option<f64> {
    let next = plan.then.as_deref().map_or(Some(0.0), predicted_us)?;
    Some(plan.prediction?.total_ns as f64 / 1e3 + next)
}
