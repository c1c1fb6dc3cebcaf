//! Vectors of an l1 penalty: the least subgradient, and steps that stay in one orthant.
//!
//! The formulas are at the head of `gpu_kernels::design::orthant`.

use gpu_kernels::design::orthant::{OrthantArgs, OrthantVariant, least, step_to};
use gpu_kernels::{Family, In, Out};

use super::{Number, OpError, checks, vector};
use crate::cpu::grid::Grid;
use crate::device::{Buffer, Device, Prepared};
use crate::matrix::Element;

/// Buffers and kernels of one penalty κ·Σ|θ| over the first coordinates of θ.
pub struct OrthantVectors<T: Number> {
    /// κ.
    l1: T,
    /// Coordinates that it belongs to.
    penalised: usize,
    /// D⁻¹, 0 for coordinates to be held.
    inverse_diagonal: Buffer<T>,
    figures: Buffer<f64>,
    partials: Buffer<f64>,
    counter: Buffer<u32>,
    kernels: Option<[Prepared<T::Orthants>; 2]>,
}

/// A least subgradient v.
pub struct Subgradient<T: Number> {
    /// v.
    pub vector: Buffer<T>,
    /// D⁻¹ of the coordinates that are free: θ or v is not 0.
    pub free: Buffer<T>,
}

impl<T: Number> Subgradient<T> {
    /// Of `len` coordinates, zeros.
    ///
    /// # Errors
    /// [`OpError::Device`] when the device has too little memory.
    pub fn new(device: &Device, len: usize) -> Result<Self, OpError> {
        Ok(Subgradient {
            vector: device.zeros(len)?,
            free: device.zeros(len)?,
        })
    }
}

impl<T: Number> OrthantVectors<T> {
    /// For vectors as long as `inverse_diagonal`, of which the first `penalised` have an l1 weight.
    ///
    /// # Errors
    /// [`OpError::Device`] when the device fails.
    pub fn new(
        inverse_diagonal: Buffer<T>,
        (l1, penalised): (f64, usize),
    ) -> Result<Self, OpError> {
        let device = inverse_diagonal.device();
        let grid = Grid::of(inverse_diagonal.len());
        let prepare = |variant: OrthantVariant| {
            let mut entries = T::Orthants::entries().iter();
            let entry = entries.find(|entry| entry.variant == variant);
            let launch = vector::launch_of(grid, |block| variant.shared_bytes(block));
            device.prepare(entry.expect("the table has both kernels"), launch)
        };
        let kernels = if device.is_cpu() {
            None
        } else {
            Some([
                prepare(OrthantVariant::Subgradient)?,
                prepare(OrthantVariant::Project)?,
            ])
        };
        Ok(OrthantVectors {
            l1: <T as Element>::from_f64(l1),
            penalised,
            figures: device.zeros(2)?,
            partials: device.zeros(2 * grid.blocks)?,
            counter: device.zeros(1)?,
            kernels,
            inverse_diagonal,
        })
    }

    /// The least subgradient at θ, where f has this gradient.
    ///
    /// # Errors
    /// [`OpError::Length`] when lengths differ, [`OpError::Device`] when the device fails.
    pub fn subgradient(
        &mut self,
        theta: &Buffer<T>,
        gradient: &Buffer<T>,
        out: &mut Subgradient<T>,
    ) -> Result<(), OpError> {
        let len = self.inverse_diagonal.len();
        for (what, vector) in [("θ", theta), ("the gradient", gradient), ("v", &out.vector)] {
            checks::same_length(what, vector, len)?;
        }
        let Some([kernel, _]) = self.kernels.clone() else {
            self.subgradient_on_host(theta, gradient, out);
            return Ok(());
        };
        Ok(kernel.launch(OrthantArgs {
            gradient: gradient.input(),
            out: out.vector.output(),
            free: out.free.output(),
            ..self.args(theta)
        })?)
    }

    /// Σ κ·|θ| and ‖v‖² of the last [`OrthantVectors::subgradient`]. Waits.
    ///
    /// # Errors
    /// [`OpError::Device`] when the device fails.
    pub fn figures(&self) -> Result<[f64; 2], OpError> {
        let figures = self.figures.to_vec()?;
        Ok([figures[0], figures[1]])
    }

    /// Writes where the step t leads from θ along d, or along −D⁻¹·v; v·(θ' − θ). Waits.
    ///
    /// # Errors
    /// As [`OrthantVectors::subgradient`].
    pub fn project(
        &mut self,
        theta: &Buffer<T>,
        subgradient: &Buffer<T>,
        (direction, step): (Option<&Buffer<T>>, f64),
        out: &mut Buffer<T>,
    ) -> Result<f64, OpError> {
        let len = self.inverse_diagonal.len();
        let d = direction.unwrap_or(theta);
        for (what, vector) in [("θ", theta), ("v", subgradient), ("d", d), ("θ'", &*out)] {
            checks::same_length(what, vector, len)?;
        }
        let step = <T as Element>::from_f64(step);
        let Some([_, kernel]) = self.kernels.clone() else {
            return Ok(self.project_on_host(theta, subgradient, (direction, step), out));
        };
        kernel.launch(OrthantArgs {
            step,
            subgradient: subgradient.input(),
            direction: direction.map_or(In::none(), Buffer::input),
            out: out.output(),
            ..self.args(theta)
        })?;
        Ok(self.figures.read_scalar(0)?)
    }

    fn args<'a>(&'a mut self, theta: &'a Buffer<T>) -> OrthantArgs<'a, T> {
        OrthantArgs {
            len: self.inverse_diagonal.len() as u64,
            penalised: self.penalised as u64,
            l1: self.l1,
            step: T::ZERO,
            theta: theta.input(),
            gradient: In::none(),
            subgradient: In::none(),
            inverse_diagonal: self.inverse_diagonal.input(),
            direction: In::none(),
            out: Out::none(),
            free: Out::none(),
            figures: self.figures.output(),
            partials: self.partials.output(),
            counter: self.counter.output(),
        }
    }
}

/// The same on the CPU, element by element as the kernels do it, and in the order of their sums.
impl<T: Number> OrthantVectors<T> {
    fn l1(&self, i: usize) -> T {
        if i < self.penalised {
            self.l1
        } else {
            T::default()
        }
    }

    fn subgradient_on_host(
        &mut self,
        theta: &Buffer<T>,
        gradient: &Buffer<T>,
        out: &mut Subgradient<T>,
    ) {
        let (theta, gradient) = (host(theta), host(gradient));
        let (vector, free) = (host_mut(&mut out.vector), host_mut(&mut out.free));
        let inverse = host(&self.inverse_diagonal);
        let (weight, penalised) = (self.l1, self.penalised);
        let add = |i: usize, [absolute, squares]: &mut [f64; 2]| {
            let l1 = if i < penalised { weight } else { T::default() };
            let (x, v) = (theta[i], least(theta[i], gradient[i], l1));
            let is_free = x != T::default() || v != T::default();
            free[i] = if is_free { inverse[i] } else { T::default() };
            vector[i] = v;
            let size = Element::to_f64(x).abs();
            *absolute = Element::to_f64(l1).mul_add(size, *absolute);
            let v = Element::to_f64(v);
            *squares = v.mul_add(v, *squares);
        };
        let figures = Grid::of(theta.len()).sums(theta.len(), add);
        host_mut(&mut self.figures).copy_from_slice(&figures);
    }

    fn project_on_host(
        &self,
        theta: &Buffer<T>,
        subgradient: &Buffer<T>,
        (direction, step): (Option<&Buffer<T>>, T),
        out: &mut Buffer<T>,
    ) -> f64 {
        let (theta, subgradient) = (host(theta), host(subgradient));
        let direction = direction.map(host);
        let (out, inverse) = (host_mut(out), host(&self.inverse_diagonal));
        let add = |i: usize, [slope]: &mut [f64; 1]| {
            let (x, v) = (theta[i], subgradient[i]);
            let d = direction.map(|direction| direction[i]);
            let to = step_to(x, v, inverse[i], d, (self.l1(i), step));
            out[i] = to;
            let moved = Element::to_f64(to) - Element::to_f64(x);
            *slope = Element::to_f64(v).mul_add(moved, *slope);
        };
        Grid::of(theta.len()).sums(theta.len(), add)[0]
    }
}

const ON_HOST: &str = "vectors of a penalty on the CPU are host memory";

fn host<T: bytemuck::Pod>(buffer: &Buffer<T>) -> &[T] {
    buffer.as_host_slice().expect(ON_HOST)
}

fn host_mut<T: bytemuck::Pod>(buffer: &mut Buffer<T>) -> &mut [T] {
    buffer.as_host_slice_mut().expect(ON_HOST)
}
