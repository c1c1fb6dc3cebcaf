//! Vectors around products with `X̃ = [(X − 1·μᵀ)·S, 1]`, which leave X as it is.
//!
//! The formulas are at the head of `gpu_kernels::design`. With k right-hand sides, matrices of k columns are row-major.

use gpu_kernels::design::{DesignArgs, DesignVariant};
use gpu_kernels::{Family, In, Launch, Out};

use super::objective::ObjectiveSums;
use super::{Number, OpError, checks, vector};
use crate::device::{Buffer, Device, Prepared};
use crate::matrix::Element;

/// What is done to the columns of X, in f64.
#[derive(Debug, Clone, Copy)]
pub struct DesignColumns<'a> {
    /// n.
    pub cols: usize,
    /// μ.
    pub means: Option<&'a [f64]>,
    /// S.
    pub scales: Option<&'a [f64]>,
    /// Whether a column of ones is appended.
    pub intercept: bool,
    /// k, right-hand sides.
    pub classes: usize,
}

/// λ of `½·λ‖w̃‖² + ½·λ_b·b̃²`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ridge {
    /// Of the coefficients.
    pub coefficients: f64,
    /// Of the intercept.
    pub intercept: f64,
}

/// What an evaluation comes to: loss, ridge, ‖gradient‖².
const FIGURES: usize = 3;
/// Products with a direction, at both ends of a step.
const SLOPES: usize = 2;

/// Buffers and kernels of one design.
pub struct DesignVectors<T: Number> {
    /// y, n × k elements: what X is multiplied by.
    pub y: Buffer<T>,
    /// c, k elements, the constants to be added to the columns of X·y.
    pub constants: Buffer<T>,
    /// Xᵀg, n × k elements, to be filled before [`DesignVectors::leave`].
    pub raw: Buffer<T>,
    /// Σ v·loss, then Σ g of each right-hand side (and, with one of them, Σ d), to be filled before
    /// [`DesignVectors::leave`].
    pub sums: Buffer<f64>,
    /// n.
    cols: usize,
    /// k.
    classes: usize,
    scales: Option<Buffer<T>>,
    centres: Option<Buffer<T>>,
    partials: Buffer<f64>,
    figures: Buffer<f64>,
    slopes: Option<vector::Dots>,
    counter: Buffer<u32>,
    /// Whether θ ends with an intercept; c counts only then.
    pub has_intercept: bool,
    kernels: Option<Kernels<T>>,
}

struct Kernels<T: Number> {
    enter: Prepared<T::Designs>,
    leave: Prepared<T::Designs>,
}

impl<T: Number> DesignVectors<T> {
    /// For a design on `device`.
    ///
    /// # Errors
    /// [`OpError::Device`] when the device fails.
    pub fn new(device: &Device, columns: &DesignColumns<'_>) -> Result<Self, OpError> {
        let narrow = |values: Vec<f64>| -> Result<Buffer<T>, OpError> {
            let values: Vec<T> = values.into_iter().map(<T as Element>::from_f64).collect();
            Ok(device.upload(&values)?)
        };
        let scale = |j: usize| columns.scales.map_or(1.0, |scales| scales[j]);
        let centres = columns.means.map(|means| {
            let centres = means.iter().enumerate().map(|(j, mean)| -mean * scale(j));
            centres.chain([1.0]).collect()
        });
        let (k, n) = (columns.classes, columns.cols);
        let len = (n + usize::from(columns.intercept)) * k;
        let kernels = if device.is_cpu() {
            None
        } else {
            Some(Kernels::prepare(device, len)?)
        };
        let blocks = vector::dot_plan(device, len).grid as usize;
        Ok(DesignVectors {
            y: device.zeros(n * k)?,
            constants: device.zeros(k)?,
            raw: device.zeros(n * k)?,
            sums: device.zeros(ObjectiveSums::LEN.max(1 + k))?,
            cols: n,
            classes: k,
            scales: columns.scales.map(|s| narrow(s.to_vec())).transpose()?,
            centres: centres.map(narrow).transpose()?,
            partials: device.zeros(blocks * k.max(2))?,
            figures: device.zeros(FIGURES + SLOPES)?,
            slopes: None,
            counter: device.zeros(1)?,
            has_intercept: columns.intercept,
            kernels,
        })
    }

    /// y and c of X̃·θ = X·y + c.
    ///
    /// # Errors
    /// [`OpError::Length`] when θ has another length, [`OpError::Device`] when the device fails.
    pub fn enter(&mut self, theta: &Buffer<T>) -> Result<(), OpError> {
        self.check(theta)?;
        let Some(Kernels { enter, .. }) = &self.kernels else {
            self.enter_on_host(theta);
            return Ok(());
        };
        let enter = enter.clone();
        Ok(enter.launch(DesignArgs {
            theta: theta.input(),
            out: self.y.output(),
            constants: self.constants.output(),
            ..args(
                (self.cols, self.classes, self.has_intercept),
                (&self.scales, &self.centres),
                &mut self.partials,
                &mut self.counter,
            )
        })?)
    }

    /// `out = S ⊙ raw + a·Σ g + λ ⊙ θ`, the gradient by θ.
    ///
    /// # Errors
    /// As [`DesignVectors::enter`].
    pub fn leave(
        &mut self,
        theta: &Buffer<T>,
        ridge: Ridge,
        out: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        self.check(theta)?;
        self.check(out)?;
        let Some(Kernels { leave, .. }) = &self.kernels else {
            self.leave_on_host(theta, ridge, out);
            return Ok(());
        };
        let leave = leave.clone();
        Ok(leave.launch(DesignArgs {
            l2: <T as Element>::from_f64(ridge.coefficients),
            intercept_l2: <T as Element>::from_f64(ridge.intercept),
            theta: theta.input(),
            raw: self.raw.input(),
            sums: self.sums.input(),
            out: out.output(),
            figures: self.figures.output(),
            ..args(
                (self.cols, self.classes, self.has_intercept),
                (&self.scales, &self.centres),
                &mut self.partials,
                &mut self.counter,
            )
        })?)
    }

    /// Σ v·loss, and ½·Σ λ·θ² and ‖out‖² of the last [`DesignVectors::leave`]. Waits.
    ///
    /// # Errors
    /// [`OpError::Device`] when the device fails.
    pub fn figures(&self) -> Result<[f64; FIGURES], OpError> {
        let mut figures = [0.0; FIGURES];
        self.figures.read(0, &mut figures)?;
        Ok(figures)
    }

    /// [`DesignVectors::figures`], and the products of `direction` with both gradients. Waits, once for all.
    ///
    /// # Errors
    /// As [`DesignVectors::enter`].
    pub fn slopes(
        &mut self,
        gradients: [&Buffer<T>; SLOPES],
        direction: &Buffer<T>,
    ) -> Result<([f64; FIGURES], [f64; SLOPES]), OpError> {
        let mut dots = match self.slopes.take() {
            Some(dots) => dots,
            None => vector::Dots::new(&direction.device(), direction.len())?,
        };
        for (i, gradient) in gradients.into_iter().enumerate() {
            dots.dot(gradient, direction, &mut self.figures, FIGURES + i)?;
        }
        self.slopes = Some(dots);
        let all = self.figures.to_vec()?;
        Ok(([all[0], all[1], all[2]], [all[3], all[4]]))
    }

    fn check(&self, theta: &Buffer<T>) -> Result<(), OpError> {
        let rows = self.cols + usize::from(self.has_intercept);
        checks::same_length("θ", theta, rows * self.classes)
    }
}

/// What both kernels are given.
fn args<'a, T: Number>(
    (cols, classes, has_intercept): (usize, usize, bool),
    (scales, centres): (&'a Option<Buffer<T>>, &'a Option<Buffer<T>>),
    partials: &'a mut Buffer<f64>,
    counter: &'a mut Buffer<u32>,
) -> DesignArgs<'a, T> {
    DesignArgs {
        cols: cols as u64,
        len: cols as u64 + u64::from(has_intercept),
        classes: classes as u32,
        l2: T::ZERO,
        intercept_l2: T::ZERO,
        theta: In::none(),
        scales: scales.as_ref().map_or(In::none(), Buffer::input),
        centres: centres.as_ref().map_or(In::none(), Buffer::input),
        raw: In::none(),
        sums: In::none(),
        out: Out::none(),
        constants: Out::none(),
        figures: Out::none(),
        partials: partials.output(),
        counter: counter.output(),
    }
}

impl<T: Number> Kernels<T> {
    fn prepare(device: &Device, len: usize) -> Result<Self, OpError> {
        let plan = vector::dot_plan(device, len);
        let prepare = |variant: DesignVariant| {
            let entries = T::Designs::entries();
            let entry = entries.iter().find(|entry| entry.variant == variant);
            let launch = Launch {
                grid: plan.grid,
                block: plan.bs,
                shared_bytes: variant.shared_bytes(plan.bs) as u32,
            };
            device.prepare(entry.expect("the table has both kernels"), launch)
        };
        Ok(Kernels {
            enter: prepare(DesignVariant::Enter)?,
            leave: prepare(DesignVariant::Leave)?,
        })
    }
}

const ON_HOST: &str = "vectors of a design on the CPU are host memory";

fn host<T: bytemuck::Pod>(buffer: &Buffer<T>) -> &[T] {
    buffer.as_host_slice().expect(ON_HOST)
}

fn host_mut<T: bytemuck::Pod>(buffer: &mut Buffer<T>) -> &mut [T] {
    buffer.as_host_slice_mut().expect(ON_HOST)
}

/// The same on the CPU, element by element as the kernels do it.
impl<T: Number> DesignVectors<T> {
    fn enter_on_host(&mut self, theta: &Buffer<T>) {
        let (theta, k) = (host(theta), self.classes);
        let scales = self.scales.as_ref().map(host);
        for (i, y) in host_mut(&mut self.y).iter_mut().enumerate() {
            *y = scales.map_or(theta[i], |scales| scales[i / k] * theta[i]);
        }
        for c in 0..k {
            let column = theta.iter().skip(c).step_by(k);
            let constant = match &self.centres {
                Some(centres) => host(centres)
                    .iter()
                    .zip(column)
                    .map(|(a, b)| Element::to_f64(*a) * Element::to_f64(*b))
                    .sum(),
                None if self.has_intercept => column.last().map_or(0.0, |b| Element::to_f64(*b)),
                None => 0.0,
            };
            host_mut(&mut self.constants)[c] = <T as Element>::from_f64(constant);
        }
    }

    fn leave_on_host(&mut self, theta: &Buffer<T>, ridge: Ridge, out: &mut Buffer<T>) {
        let k = self.classes;
        let slopes = &host(&self.sums)[1..];
        let (theta, raw) = (host(theta), host(&self.raw));
        let scales = self.scales.as_ref().map(host);
        let centres = self.centres.as_ref().map(host);
        let one = <T as Element>::from_f64(1.0);
        let (mut sum, mut squares) = (0.0, 0.0);
        for (i, out) in host_mut(out).iter_mut().enumerate() {
            let is_coefficient = i < raw.len();
            let absent = if is_coefficient { T::default() } else { one };
            let slope = <T as Element>::from_f64(slopes[i % k]);
            let mut value = centres.map_or(absent, |centres| centres[i / k]) * slope;
            let mut l2 = ridge.intercept;
            if is_coefficient {
                value = scales
                    .map_or(one, |scales| scales[i / k])
                    .fma(raw[i], value);
                l2 = ridge.coefficients;
            }
            let pull = <T as Element>::from_f64(l2) * theta[i];
            *out = value + pull;
            sum += 0.5 * Element::to_f64(theta[i]) * Element::to_f64(pull);
            squares += Element::to_f64(*out).powi(2);
        }
        let loss = host(&self.sums)[0];
        host_mut(&mut self.figures)[..FIGURES].copy_from_slice(&[loss, sum, squares]);
    }
}
