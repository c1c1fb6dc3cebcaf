//! Lanczos iteration on XᵀX with full reorthogonalisation and thick restarts.
//!
//! The basis grows by `w = XᵀX·vⱼ`, one fused pass over X, made orthogonal to all earlier vectors ("twice is
//! enough"). The coefficients are a column of the projected matrix H = Vᵀ(XᵀX)V. When the basis is full, the
//! eigenvectors of H give approximations V·s with residual β·|s_last|; while these are too large, the best are
//! kept as the beginning of the next basis.
//!
//! Source: Wu and Simon 2000, "Thick-restart Lanczos method for large symmetric eigenvalue problems"; Parlett,
//! "The Symmetric Eigenvalue Problem", section 6.9.

use ndarray::Array2;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::checkpoint::{Record, session};
use super::spectral::{Course, norm, upload};
use super::symmetric_eigen::{Eigen, symmetric_eigen};
use super::{FitError, Operator};
use crate::device::Buffer;
use crate::matrix::{Dtype, Element};
use crate::ops::{Number, OpError, Terms, interrupt, vector};

/// What is wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LanczosOptions {
    /// Eigenvectors wanted, k.
    pub(super) wanted: usize,
    /// Vectors of the basis, k < size ≤ n, or k = n.
    pub(super) size: usize,
    /// Stop when each residual is at most this part of its eigenvalue.
    pub(super) tolerance: f64,
    /// The most products with XᵀX.
    pub(super) max_iter: usize,
    /// Of the random start.
    pub(super) seed: u64,
}

/// The basis, and what the products showed.
struct Basis<'a, T: Number, X> {
    x: &'a X,
    /// x̄, where columns are centred.
    means: Option<&'a Buffer<T>>,
    vectors: Vec<Buffer<T>>,
    /// H.
    projected: Array2<f64>,
    random: Xoshiro256PlusPlus,
    /// Vectors that were drawn.
    drawn: usize,
}

/// A column of H and what is left of the product.
struct Step<T: Number> {
    rest: Buffer<T>,
    length: f64,
}

/// The `wanted` leading eigenvectors of XᵀX, orthonormal, largest eigenvalue first.
///
/// # Errors
/// [`FitError::NotFinite`] when the iteration breaks down, [`FitError::Op`] when the device fails.
pub(super) fn leading_eigenvectors<T: Number, X: Operator<T>>(
    x: &X,
    means: Option<&Buffer<T>>,
    options: &LanczosOptions,
    mut watch: impl FnMut(Course),
) -> Result<(Vec<Buffer<T>>, Course), FitError> {
    let size = options.size;
    let mut basis = Basis {
        x,
        means,
        vectors: Vec::with_capacity(size),
        projected: Array2::zeros((size, size)),
        random: Xoshiro256PlusPlus::seed_from_u64(options.seed),
        drawn: 0,
    };
    let mut course = Course::START;
    match session::begin("lanczos")? {
        Some(found) => basis.restore(&found, &mut course)?,
        None => {
            let first = basis.random_vector()?;
            basis.vectors.push(first);
        }
    }
    loop {
        let step = basis.fill(options, &mut course)?;
        let eigen = symmetric_eigen(basis.projected.clone());
        course.change = residual(&eigen, step.length, options.wanted);
        course.converged = course.change <= tolerance::<T>(options, &eigen);
        watch(course);
        if course.converged || course.n_iter >= options.max_iter {
            return Ok((basis.combine(&eigen, options.wanted)?, course));
        }
        basis.restart(&eigen, step, options)?;
    }
}

/// The largest residual ‖XᵀX·v − λv‖ / λ₁ of the wanted vectors, from the last row of the eigenvectors of H.
fn residual(eigen: &Eigen, length: f64, wanted: usize) -> f64 {
    let Some(last) = eigen.vectors.nrows().checked_sub(1) else {
        return 0.0;
    };
    let largest = eigen.values[0].max(f64::MIN_POSITIVE);
    let of = |column: usize| length * eigen.vectors[[last, column]].abs() / largest;
    (0..wanted).map(of).fold(0.0, f64::max)
}

/// The tolerance relative to the smallest wanted eigenvalue, but not below what rounding leaves.
fn tolerance<T: Number>(options: &LanczosOptions, eigen: &Eigen) -> f64 {
    let roundoff = match T::DTYPE {
        Dtype::F32 => f64::from(f32::EPSILON),
        Dtype::F64 => f64::EPSILON,
    };
    let largest = eigen.values[0].max(f64::MIN_POSITIVE);
    let smallest = eigen.values[options.wanted - 1].max(0.0);
    (options.tolerance * smallest / largest).max(8.0 * roundoff)
}

impl<T: Number, X: Operator<T>> Basis<'_, T, X> {
    /// Extends the basis until it is full; the product with the last vector is left over.
    fn fill(&mut self, options: &LanczosOptions, course: &mut Course) -> Result<Step<T>, FitError> {
        loop {
            if session::is_due() {
                session::save(|record| self.save(*course, record))?;
            }
            interrupt::proceed()?;
            let step = self.step()?;
            course.n_iter += 1;
            if !step.length.is_finite() {
                let iterations = course.n_iter;
                return Err(FitError::NotFinite { iterations });
            }
            if self.vectors.len() == options.size {
                // A basis of the whole space leaves nothing but rounding.
                let whole = options.size == self.x.cols();
                let length = if whole { 0.0 } else { step.length };
                return Ok(Step { length, ..step });
            }
            let next = self.next(step)?;
            self.vectors.push(next);
        }
    }

    /// Adds everything to a record, before a product.
    fn save(&self, course: Course, to: &mut Record) -> Result<(), OpError> {
        course.save(to);
        let [count, drawn] = [self.vectors.len(), self.drawn].map(|count| count as f64);
        to.numbers("basis", &[count, drawn]);
        let projected: Vec<f64> = self.projected.iter().copied().collect();
        to.numbers("projected", &projected);
        for (i, vector) in self.vectors.iter().enumerate() {
            to.vector(&format!("v.{i}"), vector)?;
        }
        Ok(())
    }

    /// Puts everything back to where it was recorded.
    fn restore(&mut self, from: &Record, course: &mut Course) -> Result<(), OpError> {
        course.restore(from)?;
        let [count, drawn] = from.array("basis")?;
        let projected = from.list_of("projected")?;
        self.projected
            .iter_mut()
            .zip(projected)
            .for_each(|(h, recorded)| *h = recorded);
        for i in 0..count as usize {
            let mut vector = self.x.device().zeros(self.x.cols())?;
            from.restore(&format!("v.{i}"), &mut vector)?;
            self.vectors.push(vector);
        }
        for _ in 0..drawn as usize {
            self.draw();
        }
        Ok(())
    }

    /// The product with the last vector, projected.
    fn step(&mut self) -> Result<Step<T>, FitError> {
        let last = self.vectors.len() - 1;
        let mut rest = self.x.device().zeros(self.x.cols())?;
        self.product(&self.vectors[last], &mut rest)?;
        let coefficients = self.orthogonalise(&mut rest)?;
        for (i, value) in coefficients.into_iter().enumerate() {
            self.projected[[i, last]] = value;
            self.projected[[last, i]] = value;
        }
        let length = norm(&rest)?;
        Ok(Step { rest, length })
    }

    /// `w = XᵀX·v`, X centred if wanted: Σᵢ (xᵢ·v − x̄·v) is 0, so that shifting X·v is enough.
    fn product(&self, v: &Buffer<T>, w: &mut Buffer<T>) -> Result<(), OpError> {
        let shift = match self.means {
            Some(means) => Some(upload::<T>(self.x.device(), &[vector::dot(means, v)?])?),
            None => None,
        };
        let terms = Terms {
            shift: shift.as_ref(),
            ..Terms::default()
        };
        self.x.fused(v, &terms, w)
    }

    /// Subtracts from `w` its part in the basis, twice, and returns the coefficients.
    fn orthogonalise(&self, w: &mut Buffer<T>) -> Result<Vec<f64>, OpError> {
        let one = <T as Element>::from_f64(1.0);
        let mut coefficients = vec![0.0; self.vectors.len()];
        for _ in 0..2 {
            for (q, coefficient) in self.vectors.iter().zip(&mut coefficients) {
                let along = vector::dot(q, w)?;
                vector::axpby(<T as Element>::from_f64(-along), q, one, w)?;
                *coefficient += along;
            }
        }
        Ok(coefficients)
    }

    /// The next unit vector: the rest of the product, or a random one where only rounding is left of it.
    fn next(&mut self, step: Step<T>) -> Result<Buffer<T>, FitError> {
        let scale = self
            .projected
            .iter()
            .fold(0.0_f64, |most, h| most.max(h.abs()));
        let noise = match T::DTYPE {
            Dtype::F32 => f64::from(f32::EPSILON),
            Dtype::F64 => f64::EPSILON,
        };
        if step.length > 4.0 * noise * scale {
            return Ok(normalised(&step.rest, step.length)?);
        }
        self.random_vector()
    }

    /// Numbers between −1 and 1.
    fn draw(&mut self) -> Vec<f64> {
        self.drawn += 1;
        let unit = |word: u64| (word >> 11) as f64 * (2.0 / (1_u64 << 53) as f64) - 1.0;
        let numbers = 0..self.x.cols();
        numbers.map(|_| unit(self.random.next_u64())).collect()
    }

    /// A random unit vector orthogonal to the basis.
    fn random_vector(&mut self) -> Result<Buffer<T>, FitError> {
        let mut vector = upload(self.x.device(), &self.draw())?;
        // The second round makes up for what the first one cancelled.
        for _ in 0..2 {
            self.orthogonalise(&mut vector)?;
            let length = norm(&vector)?;
            vector = normalised(&vector, length.max(f64::MIN_POSITIVE))?;
        }
        Ok(vector)
    }

    /// V·S for the first `count` eigenvectors.
    fn combine(&self, eigen: &Eigen, count: usize) -> Result<Vec<Buffer<T>>, FitError> {
        let one = <T as Element>::from_f64(1.0);
        let mut combined = Vec::with_capacity(count);
        for column in 0..count {
            let mut sum = self.x.device().zeros(self.x.cols())?;
            for (row, v) in self.vectors.iter().enumerate() {
                let weight = <T as Element>::from_f64(eigen.vectors[[row, column]]);
                vector::axpby(weight, v, one, &mut sum)?;
            }
            combined.push(sum);
        }
        Ok(combined)
    }

    /// Keeps the best approximations, and goes on with what the last product left.
    fn restart(
        &mut self,
        eigen: &Eigen,
        step: Step<T>,
        options: &LanczosOptions,
    ) -> Result<(), FitError> {
        let spare = options.size - options.wanted;
        let kept = (options.wanted + spare / 2).min(options.size - 1);
        let best = self.combine(eigen, kept)?;
        let next = self.next(step)?;
        self.vectors = best;
        self.vectors.push(next);
        self.projected.fill(0.0);
        for (i, value) in eigen.values[..kept].iter().enumerate() {
            self.projected[[i, i]] = *value;
        }
        Ok(())
    }
}

fn normalised<T: Number>(v: &Buffer<T>, length: f64) -> Result<Buffer<T>, OpError> {
    let mut unit = v.device().zeros(v.len())?;
    vector::scaled_copy(<T as Element>::from_f64(1.0 / length), v, &mut unit)?;
    Ok(unit)
}
