//! Vectors around products with `X̃ = [(X − 1·μᵀ)·S, 1]`, which leave X as it is.
//!
//! The formulas are at the head of `gpu_kernels::design`. With k right-hand sides, matrices of k columns are row-major.

use std::ops::Range;

use gpu_kernels::design::{DesignArgs, DesignVariant};
use gpu_kernels::{Family, In, Out};

use super::launch::{slice, slice_mut};
use super::objective::ObjectiveSums;
use super::{Number, OpError, checks, vector};
use crate::cpu::grid::Grid;
use crate::device::{Buffer, Device, Prepared};
use crate::matrix::{ColumnMeans, Element};

/// What is done to the columns of X, in f64.
#[derive(Debug, Clone, Copy)]
pub struct DesignColumns<'a> {
    /// n.
    pub cols: usize,
    /// μ.
    pub means: Option<&'a ColumnMeans<'a>>,
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

/// Whether what comes out is summed up too.
#[derive(Clone, Copy, PartialEq)]
enum Figures {
    Wanted,
    None,
}

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

/// Numbers in T on a device, made on their way.
fn narrowed<T: Number>(
    device: &Device,
    len: usize,
    number: impl Fn(usize) -> f64 + Sync,
) -> Result<Buffer<T>, OpError> {
    Ok(device.upload_with(len, |range, to: &mut [T]| {
        let numbers = to.iter_mut().zip(range);
        numbers.for_each(|(to, j)| *to = <T as Element>::from_f64(number(j)));
    })?)
}

impl<T: Number> DesignVectors<T> {
    /// For a design on `device`.
    ///
    /// # Errors
    /// [`OpError::Device`] when the device fails.
    pub fn new(device: &Device, columns: &DesignColumns<'_>) -> Result<Self, OpError> {
        let scale = |j: usize| columns.scales.map_or(1.0, |scales| scales[j]);
        let centres = columns.means.map(|means| {
            let centre = move |j: usize| match j < means.len() {
                true => -means.at(j) * scale(j),
                false => 1.0,
            };
            narrowed(device, means.len() + 1, centre)
        });
        let scales = columns.scales.map(|s| narrowed(device, s.len(), |j| s[j]));
        let (k, n) = (columns.classes, columns.cols);
        let len = (n + usize::from(columns.intercept)) * k;
        let kernels = if device.is_cpu() {
            None
        } else {
            Some(Kernels::prepare(device, len)?)
        };
        let blocks = Grid::of(len).blocks;
        Ok(DesignVectors {
            y: device.zeros(n * k)?,
            constants: device.zeros(k)?,
            raw: device.zeros(n * k)?,
            sums: device.zeros(ObjectiveSums::LEN.max(1 + k))?,
            cols: n,
            classes: k,
            scales: scales.transpose()?,
            centres: centres.transpose()?,
            partials: device.zeros(blocks * k.max(2))?,
            figures: device.zeros(FIGURES + SLOPES)?,
            slopes: None,
            counter: device.zeros(1)?,
            has_intercept: columns.intercept,
            kernels,
        })
    }

    /// Whether y is θ itself: of one right-hand side, with columns as they are and no intercept. Then X may be multiplied by
    /// θ, and nothing has to [enter](DesignVectors::enter).
    pub fn takes_as_is(&self) -> bool {
        let is_plain = self.scales.is_none() && self.centres.is_none();
        is_plain && !self.has_intercept && self.classes == 1
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
        if self.kernels.is_none() {
            self.leave_on_host(theta, ridge, out);
            return Ok(());
        }
        self.launch_leave(theta, ridge, (out, Figures::Wanted))
    }

    /// [`DesignVectors::leave`] of a Hessian's product with `direction`, of which no figures are wanted; there are none
    /// afterwards.
    ///
    /// # Errors
    /// As [`DesignVectors::enter`].
    pub fn leave_product(
        &mut self,
        direction: &Buffer<T>,
        ridge: Ridge,
        out: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        self.check(direction)?;
        self.check(out)?;
        if self.kernels.is_some() {
            return self.launch_leave(direction, ridge, (out, Figures::None));
        }
        match self.classes {
            1 => self.leave_share_on_host(direction, ridge, (out, 0..direction.len())),
            _ => self.leave_on_host(direction, ridge, out),
        }
        Ok(())
    }

    fn launch_leave(
        &mut self,
        theta: &Buffer<T>,
        ridge: Ridge,
        (out, wanted): (&mut Buffer<T>, Figures),
    ) -> Result<(), OpError> {
        let leave = self.kernels.as_ref().map(|kernels| kernels.leave.clone());
        let leave = leave.expect("kernels of a GPU");
        Ok(leave.launch(DesignArgs {
            l2: <T as Element>::from_f64(ridge.coefficients),
            intercept_l2: <T as Element>::from_f64(ridge.intercept),
            theta: theta.input(),
            raw: self.raw.input(),
            sums: self.sums.input(),
            out: out.output(),
            figures: match wanted {
                Figures::Wanted => self.figures.output(),
                Figures::None => Out::none(),
            },
            ..args(
                (self.cols, self.classes, self.has_intercept),
                (&self.scales, &self.centres),
                &mut self.partials,
                &mut self.counter,
            )
        })?)
    }

    /// The elements `own` of [`DesignVectors::leave`], from those of θ and raw, of one right-hand side; there are no figures
    /// afterwards.
    ///
    /// # Errors
    /// As [`DesignVectors::enter`].
    pub fn leave_share(
        &mut self,
        theta: &Buffer<T>,
        ridge: Ridge,
        (out, own): (&mut Buffer<T>, Range<usize>),
    ) -> Result<(), OpError> {
        self.check(theta)?;
        self.check(out)?;
        checks::length("right-hand sides", 1, self.classes)?;
        if own.is_empty() {
            return Ok(());
        }
        let Some(Kernels { leave, .. }) = &self.kernels else {
            self.leave_share_on_host(theta, ridge, (out, own));
            return Ok(());
        };
        let leave = leave.clone();
        let columns = own.start.min(self.cols)..own.end.min(self.cols);
        let centres = |all| slice(all, &own);
        let scales = |all| slice(all, &columns);
        Ok(leave.launch(DesignArgs {
            l2: <T as Element>::from_f64(ridge.coefficients),
            intercept_l2: <T as Element>::from_f64(ridge.intercept),
            theta: slice(theta, &own),
            raw: slice(&self.raw, &columns),
            sums: self.sums.input(),
            out: slice_mut(out, &own),
            cols: columns.len() as u64,
            len: own.len() as u64,
            scales: self.scales.as_ref().map_or(In::none(), scales),
            centres: self.centres.as_ref().map_or(In::none(), centres),
            ..args(
                (self.cols, self.classes, self.has_intercept),
                (&None, &None),
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
        let prepare = |variant: DesignVariant| {
            let entries = T::Designs::entries();
            let entry = entries.iter().find(|entry| entry.variant == variant);
            let launch = vector::launch_of(Grid::of(len), |block| variant.shared_bytes(block));
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

/// The same on the CPU, element by element as the kernels do it, and with one right-hand side in the order of their sums.
impl<T: Number> DesignVectors<T> {
    fn enter_on_host(&mut self, theta: &Buffer<T>) {
        let (theta, k) = (host(theta), self.classes);
        let scales = self.scales.as_ref().map(host);
        for (i, y) in host_mut(&mut self.y).iter_mut().enumerate() {
            *y = scales.map_or(theta[i], |scales| scales[i / k] * theta[i]);
        }
        let centre = Centres {
            given: self.centres.as_ref().map(host),
            cols: self.cols,
        };
        for c in 0..k {
            let len = theta.len() / k;
            if self.centres.is_none() {
                if self.has_intercept {
                    host_mut(&mut self.constants)[c] = theta[self.cols * k + c];
                }
                continue;
            }
            let add = |j: usize, [sum]: &mut [f64; 1]| {
                let theta = Element::to_f64(theta[j * k + c]);
                *sum = Element::to_f64(centre.at(j)).mul_add(theta, *sum);
            };
            let [constant] = Grid::of(len).sums(len, add);
            host_mut(&mut self.constants)[c] = <T as Element>::from_f64(constant);
        }
    }

    fn leave_share_on_host(
        &self,
        theta: &Buffer<T>,
        ridge: Ridge,
        (out, own): (&mut Buffer<T>, Range<usize>),
    ) {
        let slope = <T as Element>::from_f64(host(&self.sums)[1]);
        let (theta, raw) = (host(theta), host(&self.raw));
        let scales = self.scales.as_ref().map(host);
        let centre = Centres {
            given: self.centres.as_ref().map(host),
            cols: self.cols,
        };
        let [l2, intercept_l2] =
            [ridge.coefficients, ridge.intercept].map(<T as Element>::from_f64);
        let one = <T as Element>::from_f64(1.0);
        let start = own.start;
        crate::cpu::vector::update(&mut host_mut(out)[own], |i, _| {
            let j = start + i;
            let value = centre.at(j) * slope;
            match j < raw.len() {
                true => scales.map_or(one, |s| s[j]).fma(raw[j], value) + l2 * theta[j],
                false => value + intercept_l2 * theta[j],
            }
        });
    }

    fn leave_on_host(&mut self, theta: &Buffer<T>, ridge: Ridge, out: &mut Buffer<T>) {
        let k = self.classes;
        let sums = host(&self.sums);
        let slopes: Vec<T> = sums[1..]
            .iter()
            .map(|slope| <T as Element>::from_f64(*slope))
            .collect();
        let (theta, raw) = (host(theta), host(&self.raw));
        let scales = self.scales.as_ref().map(host);
        let centre = Centres {
            given: self.centres.as_ref().map(host),
            cols: self.cols,
        };
        let [l2, intercept_l2] =
            [ridge.coefficients, ridge.intercept].map(<T as Element>::from_f64);
        let (out, one) = (host_mut(out), <T as Element>::from_f64(1.0));
        let add = |i: usize, [ridge, squares]: &mut [f64; 2]| {
            let mut value = centre.at(i / k) * slopes[i % k];
            let mut pull = intercept_l2 * theta[i];
            if i < raw.len() {
                let scale = scales.map_or(one, |scales| scales[i / k]);
                value = scale.fma(raw[i], value);
                pull = l2 * theta[i];
            }
            out[i] = value + pull;
            let (half, out) = (0.5 * Element::to_f64(theta[i]), Element::to_f64(out[i]));
            *ridge = half.mul_add(Element::to_f64(pull), *ridge);
            *squares = out.mul_add(out, *squares);
        };
        let grid = Grid::of(theta.len());
        let partials = grid.partials(theta.len(), add);
        let [sum, squares] = in_pairs(&partials, grid.threads);
        host_mut(&mut self.figures)[..FIGURES].copy_from_slice(&[sums[0], sum, squares]);
    }
}

/// a = (−μ ⊙ S, 1), zeros before the 1 where nothing is given.
#[derive(Clone, Copy)]
struct Centres<'a, T> {
    given: Option<&'a [T]>,
    cols: usize,
}

impl<T: Number> Centres<'_, T> {
    #[inline(always)]
    fn at(&self, j: usize) -> T {
        match self.given {
            Some(centres) => centres[j],
            None if j == self.cols => <T as Element>::from_f64(1.0),
            None => T::default(),
        }
    }
}

/// Two sums over blocks, as a block of this many threads adds them: threads alternate between the two, and their sums are
/// added one after the other.
fn in_pairs(partials: &[[f64; 2]], threads: usize) -> [f64; 2] {
    let mut lanes = vec![[0.0; 2]; threads / 2];
    for (block, partial) in partials.iter().enumerate() {
        let lane = &mut lanes[block % (threads / 2)];
        lane.iter_mut().zip(partial).for_each(|(a, b)| *a += b);
    }
    lanes.iter().fold([0.0; 2], |sums, lane| {
        [sums[0] + lane[0], sums[1] + lane[1]]
    })
}
