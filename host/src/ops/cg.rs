//! Conjugate gradients with every vector and scalar on the device: the steps, not the loop.
//!
//! The loop is [`conjugate_gradient`](crate::learning::conjugate_gradient). The method, and why the host may run ahead of what it reads
//! back, is told at the head of `gpu_kernels::cg`.

mod on_host;

use std::ops::Range;

use gpu_kernels::cg::{CgArgs, CgVariant, Sums, state};
use gpu_kernels::{Family, In, Out};

use super::launch::{slice, slice_mut};
use super::spread::{Spread, copy_part};
use super::{Number, OpError, checks, vector};
use crate::cpu::grid::{Grid, Pieces};
use crate::device::group::Summand;
use crate::device::{Buffer, Device, Prepared};
use crate::matrix::Element;

/// The vectors of a conjugate-gradient solve of A·w = b with n unknowns, of which members of a group may have a
/// [share](Spread) each: then every call is collective.
pub struct CgVectors<T: Number> {
    /// The solution so far: of this member's share.
    pub w: Buffer<T>,
    /// The residual A·w − b, of this member's share.
    pub r: Buffer<T>,
    /// The direction, all of it.
    pub p: Buffer<T>,
    /// A·p, to be filled by the caller before [`CgVectors::advance`]: of n elements, of which this member's share counts.
    pub q: Buffer<T>,
    /// means·p, when there are means: the shift that centres the columns.
    pub shift: Option<Buffer<T>>,
    inverse_diagonal: Option<Buffer<T>>,
    means: Option<Buffer<T>>,
    states: [Buffer<f64>; 2],
    /// [`Sums`] of each piece, and what each has of means·p.
    sums: Buffer<f64>,
    shifts: Buffer<f64>,
    steps: Option<Box<Steps<T>>>,
    stop: Stop,
    /// n, also while p and q are lent.
    len: usize,
    pieces: Pieces,
    spread: Option<Spread>,
}

/// Where a solve ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stop {
    /// It ends at ‖r‖ ≤ tolerance · ‖r₀‖.
    pub tolerance: f64,
    /// It ends on the border of ‖w‖_D ≤ radius, D being the preconditioner; infinite for no border.
    pub radius: f64,
}

impl Stop {
    /// No border.
    pub fn at(tolerance: f64) -> Stop {
        Stop {
            tolerance,
            radius: f64::INFINITY,
        }
    }
}

/// The prepared kernels, on a GPU.
enum Steps<T: Number> {
    /// One launch of one block, which takes one piece through all steps. Where there are more, launches over the whole GPU are
    /// faster.
    Whole(Whole<T>),
    /// A launch for each step.
    Split(Split<T>),
}

struct Whole<T: Number> {
    opening: Prepared<T::Cg>,
    iteration: Prepared<T::Cg>,
}

struct Split<T: Number> {
    begin: Prepared<T::Cg>,
    measure: Prepared<T::Cg>,
    advance: Prepared<T::Cg>,
}

/// The product that an iteration begins with.
#[derive(Debug)]
pub struct CgProduct<'a, T: Number> {
    /// The direction.
    pub p: &'a Buffer<T>,
    /// Where A·p goes.
    pub q: &'a mut Buffer<T>,
    /// [`CgVectors::shift`].
    pub shift: Option<&'a Buffer<T>>,
    /// The state, which a product may look at to save itself.
    pub state: &'a Buffer<f64>,
}

/// The scalars of a solve, read back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CgState {
    /// ‖r‖², as the step foretold it that led there: exact to rounding, and not below 10⁻¹⁴ of the one before.
    pub residual_squared: f64,
    /// r·D⁻¹r, D being the preconditioner, in the same way.
    pub preconditioned_squared: f64,
    /// The value of ‖r‖² at which the solve stops.
    pub stop: f64,
    /// Iterations that changed the solution.
    pub iterations: usize,
    /// pᵀ·A·p of the last iteration, 1 before the first.
    pub curvature: f64,
    /// ‖w‖_D.
    pub norm: f64,
    /// r₀·w.
    pub slope: f64,
    /// −(½·wᵀ·A·w + r₀·w).
    pub decrease: f64,
    /// Whether the last step ended on the border of the trust region.
    pub border: bool,
}

impl CgState {
    /// Reads the scalars from a copy of [`CgVectors::state`].
    pub fn of(values: &[f64]) -> CgState {
        CgState {
            residual_squared: values[state::RR],
            preconditioned_squared: values[state::RZ],
            stop: values[state::STOP],
            iterations: values[state::ITERATIONS].max(0.0) as usize,
            curvature: values[state::CURVATURE],
            norm: values[state::NORM].max(0.0).sqrt(),
            slope: values[state::SLOPE],
            decrease: values[state::DECREASE],
            border: values[state::BORDER] != 0.0,
        }
    }

    /// Whether the residual has reached the stopping value.
    pub fn is_converged(&self) -> bool {
        self.residual_squared <= self.stop
    }
}

impl<T: Number> CgVectors<T> {
    /// Starts at w = 0 with residual `r` = −b, and takes the first direction.
    ///
    /// `inverse_diagonal` is D⁻¹ of the preconditioner, with 0 for coordinates to be held at 0; `means`, when
    /// given, keeps [`CgVectors::shift`] up to date.
    ///
    /// # Errors
    /// [`OpError::Device`] when the device fails.
    pub fn new(
        device: &Device,
        r: Buffer<T>,
        inverse_diagonal: Option<Buffer<T>>,
        means: Option<Buffer<T>>,
        stop: Stop,
    ) -> Result<Self, OpError> {
        Self::spread_over(None, device, r, inverse_diagonal, means, stop)
    }

    /// [`CgVectors::new`], of which each member of a group keeps a share. The vectors that are given have all elements, the
    /// same on every member.
    ///
    /// # Errors
    /// As [`CgVectors::new`], and when the group fails.
    pub fn spread_over(
        spread: Option<Spread>,
        device: &Device,
        r: Buffer<T>,
        inverse_diagonal: Option<Buffer<T>>,
        means: Option<Buffer<T>>,
        stop: Stop,
    ) -> Result<Self, OpError> {
        let n = r.len();
        let pieces = Pieces::of(n);
        let own = spread.as_ref().map_or(0..n, Spread::own);
        let part = |all: Buffer<T>| match &spread {
            Some(_) => all.copy_of(&own),
            None => Ok(all),
        };
        let zeros = |len: usize| device.zeros::<T>(len);
        let shift = means.as_ref().map(|_| device.zeros(1)).transpose()?;
        let mut vectors = CgVectors {
            r: zeros(own.len())?,
            inverse_diagonal: inverse_diagonal.map(part).transpose()?,
            means: means.map(part).transpose()?,
            w: zeros(own.len())?,
            p: zeros(n)?,
            q: zeros(n)?,
            shift,
            states: [device.upload(&state::START)?, device.zeros(state::LEN)?],
            sums: device.zeros(Sums::COUNT * pieces.count)?,
            shifts: device.zeros(pieces.count)?,
            steps: if device.is_cpu() {
                None
            } else {
                Some(Box::new(Steps::prepare(device, pieces, own.len())?))
            },
            stop,
            len: n,
            pieces,
            spread,
        };
        vectors.restart(&r, stop)?;
        Ok(vectors)
    }

    /// Starts again at w = 0 with residual `r`, all of it, in the same memory; what q holds does not count.
    ///
    /// # Errors
    /// As [`CgVectors::new`], and [`OpError::Length`] when r has another length.
    pub fn restart(&mut self, r: &Buffer<T>, stop: Stop) -> Result<(), OpError> {
        checks::same_length("r", r, self.len)?;
        self.stop = stop;
        let own = self.own();
        match self.steps.as_deref() {
            Some(Steps::Whole(whole)) => {
                let (opening, q) = (whole.opening.clone(), slice(r, &own));
                opening.launch(CgArgs { q, ..self.args() })?;
                self.states.swap(0, 1);
                return Ok(());
            }
            Some(Steps::Split(split)) => {
                let (begin, q) = (split.begin.clone(), slice(r, &own));
                begin.launch(CgArgs { q, ..self.args() })?;
            }
            None => self.begin_on_host(r),
        }
        self.turn()
    }

    /// Where the solve ends.
    pub(crate) fn stop(&self) -> Stop {
        self.stop
    }

    /// The state, to be filled together with p, [w](CgVectors::resume_w) and [r](CgVectors::resume_r) by what they were in
    /// another solve that ends there.
    pub(crate) fn resume(&mut self, stop: Stop) -> &mut Buffer<f64> {
        self.stop = stop;
        &mut self.states[0]
    }

    /// Makes a solution of n elements the one so far.
    pub(crate) fn resume_w(&mut self, w: &Buffer<T>) -> Result<(), OpError> {
        let own = self.own();
        Ok(copy_part(w, &own, &mut self.w)?)
    }

    /// The same of a residual.
    pub(crate) fn resume_r(&mut self, r: &Buffer<T>) -> Result<(), OpError> {
        let own = self.own();
        Ok(copy_part(r, &own, &mut self.r)?)
    }

    /// How members of a group keep the vectors, unless each has all elements.
    pub fn spread(&self) -> Option<&Spread> {
        self.spread.as_ref()
    }

    /// The elements of this member.
    fn own(&self) -> Range<usize> {
        self.spread.as_ref().map_or(0..self.len, Spread::own)
    }

    /// All elements of w or r.
    ///
    /// # Errors
    /// As [`CgVectors::new`].
    pub(crate) fn whole(&self, own: &Buffer<T>) -> Result<Buffer<T>, OpError> {
        let Some(spread) = &self.spread else {
            return Ok(own.try_clone()?);
        };
        let mut all = own.device().zeros(self.len)?;
        all.put(spread.own().start, own)?;
        spread.gather(&mut all)?;
        Ok(all)
    }

    /// All elements of the solution.
    ///
    /// # Errors
    /// As [`CgVectors::new`].
    pub fn into_solution(self) -> Result<Buffer<T>, OpError> {
        match self.spread {
            Some(_) => self.whole(&self.w),
            None => Ok(self.w),
        }
    }

    /// `θ = θ + w`, of n elements.
    ///
    /// # Errors
    /// As [`CgVectors::new`], and [`OpError::Length`] when θ has another length.
    pub fn add_to(&self, theta: &mut Buffer<T>) -> Result<(), OpError> {
        let one = <T as Element>::from_f64(1.0);
        let Some(spread) = &self.spread else {
            return vector::axpby(one, &self.w, one, theta);
        };
        checks::same_length("θ", theta, self.len)?;
        let own = spread.own();
        match theta.window_mut(&own) {
            Some(mut part) => vector::axpby(one, &self.w, one, &mut part)?,
            None => {
                let mut part = theta.copy_of(&own)?;
                vector::axpby(one, &self.w, one, &mut part)?;
                theta.put(own.start, &part)?;
            }
        }
        spread.gather(theta)
    }

    /// What the next product takes and gives.
    pub fn product(&mut self) -> CgProduct<'_, T> {
        CgProduct {
            p: &self.p,
            q: &mut self.q,
            shift: self.shift.as_ref(),
            state: &self.states[0],
        }
    }

    /// Changes p and q for two vectors of any length, for as long as nothing is done with these ones: what they hold is not
    /// needed between an inner solve and the next start.
    pub fn lend(&mut self, p: &mut Buffer<T>, q: &mut Buffer<T>) {
        std::mem::swap(&mut self.p, p);
        std::mem::swap(&mut self.q, q);
    }

    /// Replaces D⁻¹, for the next start.
    pub fn precondition(&mut self, inverse_diagonal: Option<Buffer<T>>) {
        self.inverse_diagonal = inverse_diagonal;
    }

    /// One iteration, from p and q = A·p.
    ///
    /// # Errors
    /// As [`CgVectors::new`].
    pub fn advance(&mut self) -> Result<(), OpError> {
        if let Some(Steps::Whole(whole)) = self.steps.as_deref() {
            let iteration = whole.iteration.clone();
            iteration.launch(self.args())?;
            self.states.swap(0, 1);
            return Ok(());
        }
        match self.steps.as_deref() {
            Some(Steps::Split(split)) => split.measure.clone().launch(self.args())?,
            _ => self.measure_on_host(),
        }
        self.turn()
    }

    /// The step, the next direction and state, from the partial sums.
    fn turn(&mut self) -> Result<(), OpError> {
        join(&self.spread, &mut self.sums)?;
        match self.steps.as_deref() {
            Some(Steps::Split(split)) => split.advance.clone().launch(self.args())?,
            _ => self.advance_on_host(),
        }
        self.states.swap(0, 1);
        if let Some(spread) = &self.spread {
            spread.gather(&mut self.p)?;
        }
        let Some(shift) = &mut self.shift else {
            return Ok(());
        };
        join(&self.spread, &mut self.shifts)?;
        vector::total(&mut self.shifts, self.pieces.count as u32, shift)
    }

    /// The current state on the device: what [`CgState`] is read from.
    pub fn state(&self) -> &Buffer<f64> {
        &self.states[0]
    }

    fn args(&mut self) -> CgArgs<'_, T> {
        let own = self.own();
        let [before, after] = &mut self.states;
        CgArgs {
            len: own.len() as u64,
            piece: self.pieces.elements as u64,
            first: (own.start / self.pieces.elements) as u32,
            pieces: self.pieces.count as u32,
            tolerance: self.stop.tolerance,
            radius: self.stop.radius,
            q: slice(&self.q, &own),
            inverse_diagonal: self
                .inverse_diagonal
                .as_ref()
                .map_or(In::none(), Buffer::input),
            means: self.means.as_ref().map_or(In::none(), Buffer::input),
            w: self.w.output(),
            r: self.r.output(),
            p: slice_mut(&mut self.p, &own),
            before: before.output(),
            after: after.output(),
            partials: self.sums.output(),
            shift_partials: self.shifts.output(),
            shift: self.shift.as_mut().map_or(Out::none(), Buffer::output),
        }
    }
}

impl<T: Number> Steps<T> {
    fn prepare(device: &Device, pieces: Pieces, len: usize) -> Result<Self, OpError> {
        let prepared = |variant| prepare(device, variant, pieces.grid(len));
        if pieces.count == 1 {
            return Ok(Steps::Whole(Whole {
                opening: prepared(CgVariant::Opening)?,
                iteration: prepared(CgVariant::Iteration)?,
            }));
        }
        Ok(Steps::Split(Split {
            begin: prepared(CgVariant::Begin)?,
            measure: prepared(CgVariant::Measure)?,
            advance: prepared(CgVariant::Move)?,
        }))
    }
}

/// Adds the partial sums that members have, zeros for pieces of others: those of all pieces.
fn join(spread: &Option<Spread>, sums: &mut Buffer<f64>) -> Result<(), OpError> {
    let Some(spread) = spread else {
        return Ok(());
    };
    Ok(spread
        .group()
        .sum_together(&mut [sums as &mut dyn Summand])?)
}

fn prepare<F: Family<Variant = CgVariant>>(
    device: &Device,
    variant: CgVariant,
    grid: Grid,
) -> Result<Prepared<F>, OpError> {
    let entry = F::entries().iter().find(|entry| entry.variant == variant);
    let launch = vector::launch_of(grid, |block| variant.shared_bytes(block));
    Ok(device.prepare(entry.expect("the table has every step"), launch)?)
}

#[cfg(all(test, feature = "emulator"))]
mod tests;
