//! Rows that the CPU computes while a GPU computes the others: of an X that streams.
//!
//! The blocks of the CPU's rows stay on the host; a matrix of its own, over the same memory, computes what the GPU does of
//! its rows, at the same time. Vectors with an element per column cross in both directions, and those parts of vectors with
//! an element per row that belong to the CPU's rows. Products and objectives with their gradients are shared; everything
//! else has all blocks stream, as without a share. Sums that are promised to repeat are never shared.

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use gpu_kernels::Real;

use super::blocks::Part;
use super::matrix::{Beside, Matrix};
use super::objective::{Evaluation, Intercept, ObjectiveOut, ObjectiveSums};
use super::terms::{Terms, begin};
use super::{MatrixOptions, Number, OpError, vector};
use crate::device::{Buffer, Device};
use crate::matrix::Features;
use crate::plan::fused::Product;

impl<T: Number> Matrix<T> {
    /// The rows that the CPU computes, if it has a share.
    pub(super) fn beside(&self) -> Result<Option<&Beside<T>>, OpError> {
        if !self.forms.rows.is_shared() {
            return Ok(None);
        }
        let beside = self.beside.get_or_init(|| {
            let rows = self.forms.rows.of_host()?;
            rows.map(Beside::new).transpose()
        });
        Ok(beside.as_ref().map_err(OpError::clone)?.as_ref())
    }

    /// A product of which the CPU computes its rows; shapes and devices have been checked.
    pub(super) fn product_beside(
        &self,
        beside: &Beside<T>,
        (product, input): (Product, &Buffer<T>),
        terms: &Terms<'_, T>,
        output: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        let of_rows = |vector: Option<&Buffer<T>>| beside.fetch_rows(vector);
        let (weights, shift) = (of_rows(terms.weights)?, beside.fetch(terms.shift)?);
        let is_forward = product == Product::Forward;
        // β·z of a vector with an element per column is added once, by the GPU.
        let z = terms.addend.filter(|_| is_forward);
        let addend = of_rows(z.map(|(_, z)| z))?;
        let own = Terms {
            alpha: terms.alpha,
            weights: weights.as_ref(),
            shift: shift.as_ref(),
            addend: z.map(|(beta, _)| beta).zip(addend.as_ref()),
            solve: None,
        };
        let input_there = match product {
            Product::Transposed => of_rows(Some(input))?,
            _ => beside.fetch(Some(input))?,
        };
        let input_there = input_there.expect("it is there");
        let result = if is_forward {
            beside.rows.len()
        } else {
            self.cols()
        };
        let mut result = beside.device.zeros(result)?;
        let on_host = || {
            beside
                .matrix
                .product(product, &input_there, &own, &mut result)
        };
        at_once(on_host, || {
            if !is_forward && !self.writes_all(product)? {
                begin(output, terms)?;
            }
            self.launch(Part::OfDevice, product, (input, terms), output)
        })?;
        match is_forward {
            true => beside.put_rows(&result, output),
            false => add(&result, output),
        }
    }

    /// [`Matrix::product_beside`] of an objective.
    pub(super) fn objective_beside(
        &self,
        beside: &Beside<T>,
        (evaluation, y): (&Evaluation<'_, T>, &Buffer<T>),
        out: &mut ObjectiveOut<'_, T>,
    ) -> Result<(), OpError> {
        if self.is_unwanted(out.solve)? {
            return self.objective_on_gpu(Part::OfDevice, evaluation, y, out);
        }
        let of_rows = |vector: Option<&Buffer<T>>| beside.fetch_rows(vector);
        let target = of_rows(evaluation.target)?;
        let weights = of_rows(evaluation.weights)?;
        let offset = of_rows(evaluation.offset)?;
        let given = match evaluation.intercept {
            Intercept::Given(c) => beside.fetch(Some(c))?,
            Intercept::Absent | Intercept::Last => None,
        };
        let own = Evaluation {
            loss: evaluation.loss,
            target: target.as_ref(),
            weights: weights.as_ref(),
            offset: offset.as_ref(),
            intercept: match evaluation.intercept {
                Intercept::Given(_) => Intercept::Given(given.as_ref().expect("it was fetched")),
                Intercept::Absent => Intercept::Absent,
                Intercept::Last => Intercept::Last,
            },
            scale: evaluation.scale,
        };
        let own_y = beside.fetch(Some(y))?.expect("it is there");
        let mut result = Results::new(beside, out)?;
        let on_host = || beside.matrix.objective(&own, &own_y, result.out());
        at_once(on_host, || {
            self.objective_on_gpu(Part::OfDevice, evaluation, y, out)
        })?;
        result.merge(beside, out)
    }
}

/// What the CPU finds of an objective.
struct Results<T: Number> {
    sums: Buffer<f64>,
    gradient: Option<Buffer<T>>,
    residual: Option<Buffer<T>>,
    curvature: Option<Buffer<T>>,
}

impl<T: Number> Results<T> {
    /// Room for what is wanted.
    fn new(beside: &Beside<T>, out: &ObjectiveOut<'_, T>) -> Result<Self, OpError> {
        let device = &beside.device;
        let like = |wanted: Option<&Buffer<T>>| {
            let made = wanted.map(|wanted| device.zeros(wanted.len()));
            made.transpose()
        };
        let of_rows = |wanted: Option<&Buffer<T>>| {
            let made = wanted.map(|_| device.zeros(beside.rows.len()));
            made.transpose()
        };
        Ok(Results {
            sums: device.zeros(ObjectiveSums::LEN)?,
            gradient: like(out.gradient.as_deref())?,
            residual: of_rows(out.residual.as_deref())?,
            curvature: of_rows(out.curvature.as_deref())?,
        })
    }

    fn out(&mut self) -> ObjectiveOut<'_, T> {
        ObjectiveOut {
            sums: &mut self.sums,
            gradient: self.gradient.as_mut(),
            // The GPU adds it, and knows whether a solve has ended.
            addend: None,
            residual: self.residual.as_mut(),
            curvature: self.curvature.as_mut(),
            solve: None,
        }
    }

    /// Adds what both have found, and completes vectors of rows.
    fn merge(self, beside: &Beside<T>, out: &mut ObjectiveOut<'_, T>) -> Result<(), OpError> {
        let (own, mut sums) = (self.sums.to_vec()?, out.sums.to_vec()?);
        sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        out.sums.copy_from_slice(&sums)?;
        if let Some((own, gradient)) = self.gradient.as_ref().zip(out.gradient.as_deref_mut()) {
            add(own, gradient)?;
        }
        if let Some((own, residual)) = self.residual.as_ref().zip(out.residual.as_deref_mut()) {
            beside.put_rows(own, residual)?;
        }
        if let Some((own, curvature)) = self.curvature.as_ref().zip(out.curvature.as_deref_mut()) {
            beside.put_rows(own, curvature)?;
        }
        Ok(())
    }
}

impl<T: Number> Beside<T> {
    /// These rows of X.
    fn new((x, rows): (Arc<Features<T>>, Range<usize>)) -> Result<Self, OpError> {
        let device = Device::cpu();
        let own = x.share_rows(rows.clone());
        Ok(Beside {
            matrix: Box::new(Matrix::with_options(
                &device,
                own,
                MatrixOptions::default(),
            )?),
            rows,
            device,
        })
    }

    /// A vector, on the CPU.
    fn fetch(&self, vector: Option<&Buffer<T>>) -> Result<Option<Buffer<T>>, OpError> {
        let fetch = |vector: &Buffer<T>| self.fetch_range(vector, 0..vector.len());
        vector.map(fetch).transpose()
    }

    /// The elements of the CPU's rows of a vector with one for each row, on the CPU.
    fn fetch_rows(&self, vector: Option<&Buffer<T>>) -> Result<Option<Buffer<T>>, OpError> {
        let fetch = |vector: &Buffer<T>| self.fetch_range(vector, self.rows.clone());
        vector.map(fetch).transpose()
    }

    fn fetch_range(&self, vector: &Buffer<T>, range: Range<usize>) -> Result<Buffer<T>, OpError> {
        let mut copy = self.device.zeros(range.len())?;
        let values = copy.as_host_slice_mut().expect(ON_HOST);
        vector.read(range.start, values)?;
        Ok(copy)
    }

    /// Puts the elements of the CPU's rows where they belong.
    fn put_rows(&self, own: &Buffer<T>, all: &mut Buffer<T>) -> Result<(), OpError> {
        let values = own.as_host_slice().expect(ON_HOST);
        Ok(all.write(self.rows.start, values)?)
    }
}

const ON_HOST: &str = "a vector of the CPU";

/// Adds a vector of the CPU to one of a GPU.
fn add<T: Number>(own: &Buffer<T>, sum: &mut Buffer<T>) -> Result<(), OpError> {
    let one = <T as Real>::ONE;
    let own = sum.device().upload(own.as_host_slice().expect(ON_HOST))?;
    vector::axpby(one, &own, one, sum)
}

/// Does both at the same time: what the CPU does on a thread of its own, what launches on this one.
fn at_once(
    on_host: impl FnOnce() -> Result<(), OpError> + Send,
    on_gpu: impl FnOnce() -> Result<(), OpError>,
) -> Result<(), OpError> {
    thread::scope(|scope| {
        let host = scope.spawn(on_host);
        let gpu = on_gpu();
        let host = host.join().unwrap_or_else(|panic| resume_unwind(panic));
        gpu.and(host)
    })
}

#[cfg(test)]
mod tests;
