//! Conjugate gradients with every vector and scalar on the device: the steps, not the loop.
//!
//! The loop is [`conjugate_gradient`](crate::learning::conjugate_gradient). The method, and why the host may run ahead of what it reads
//! back, is told at the head of `gpu_kernels::cg`.

use gpu_kernels::cg::{self, CgArgs, CgVariant, state};
use gpu_kernels::{Family, In, Out};

use super::{Number, OpError, checks, vector};
use crate::cpu;
use crate::cpu::grid::Grid;
use crate::device::{Buffer, Device, Prepared};
use crate::matrix::Element;

/// The vectors of a conjugate-gradient solve of A·w = b with n unknowns.
pub struct CgVectors<T: Number> {
    /// The solution so far.
    pub w: Buffer<T>,
    /// The residual A·w − b.
    pub r: Buffer<T>,
    /// The direction.
    pub p: Buffer<T>,
    /// A·p, to be filled by the caller before [`CgVectors::advance`].
    pub q: Buffer<T>,
    /// means·p, when there are means: the shift that centres the columns.
    pub shift: Option<Buffer<T>>,
    inverse_diagonal: Option<Buffer<T>>,
    means: Option<Buffer<T>>,
    states: [Buffer<f64>; 2],
    partials: [Buffer<f64>; 4],
    steps: Option<Steps<T>>,
    stop: Stop,
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

/// The most elements that one block takes through a whole iteration: 8 per thread. From there on three
/// launches over the whole GPU are faster.
const ONE_BLOCK: usize = 8192;
/// Threads of that block at most.
const ONE_BLOCK_THREADS: usize = 1024;

/// The launch over n elements.
fn grid(n: usize) -> Grid {
    if n <= ONE_BLOCK {
        Grid::one_block(n, ONE_BLOCK_THREADS)
    } else {
        Grid::of(n)
    }
}

/// The prepared kernels, on a GPU.
enum Steps<T: Number> {
    /// One launch of one block.
    Whole(Prepared<T::Cg>),
    /// Three launches.
    Split(Split<T>),
}

struct Split<T: Number> {
    curvature: Prepared<T::Cg>,
    step: Prepared<T::Cg>,
    direction: Prepared<T::Cg>,
}

/// The scalars of a solve, read back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CgState {
    /// ‖r‖².
    pub residual_squared: f64,
    /// r·D⁻¹r, D being the preconditioner.
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
        let n = r.len();
        let zeros = || device.zeros::<T>(n);
        let partial = || device.zeros::<f64>(grid(n).blocks);
        let shift = means.as_ref().map(|_| device.zeros(1)).transpose()?;
        let mut vectors = CgVectors {
            w: zeros()?,
            p: zeros()?,
            q: zeros()?,
            r,
            shift,
            inverse_diagonal,
            means,
            states: [device.upload(&state::START)?, device.zeros(state::LEN)?],
            partials: [partial()?, partial()?, partial()?, partial()?],
            steps: if device.is_cpu() {
                None
            } else {
                Some(Steps::prepare(device, n)?)
            },
            stop,
        };
        // p and q are zero: the first call moves nothing and takes the direction.
        vectors.advance()?;
        Ok(vectors)
    }

    /// Starts again at w = 0 with residual `r`, in the same memory.
    ///
    /// # Errors
    /// As [`CgVectors::new`], and [`OpError::Length`] when r has another length.
    pub fn restart(&mut self, r: &Buffer<T>, stop: Stop) -> Result<(), OpError> {
        checks::same_length("r", r, self.r.len())?;
        self.stop = stop;
        self.r.copy_from(r)?;
        for vector in [&mut self.w, &mut self.p, &mut self.q] {
            vector.fill_zero()?;
        }
        self.states[0].copy_from_slice(&state::START)?;
        self.advance()
    }

    /// Where the solve ends.
    pub(crate) fn stop(&self) -> Stop {
        self.stop
    }

    /// The state, to be filled together with w, r and p by what they were in another solve that ends there.
    pub(crate) fn resume(&mut self, stop: Stop) -> &mut Buffer<f64> {
        self.stop = stop;
        &mut self.states[0]
    }

    /// p, where q = A·p goes, and the state, which a product may look at to save itself.
    pub fn product(&mut self) -> (&Buffer<T>, &mut Buffer<T>, &Buffer<f64>) {
        (&self.p, &mut self.q, &self.states[0])
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
        if let Some(Steps::Whole(kernel)) = &self.steps {
            let kernel = kernel.clone();
            kernel.launch(self.args())?;
            self.states.swap(0, 1);
            return Ok(());
        }
        self.run(CgVariant::Curvature)?;
        self.step_and_direct()
    }

    fn step_and_direct(&mut self) -> Result<(), OpError> {
        self.run(CgVariant::Step)?;
        self.run(CgVariant::Direction)?;
        self.states.swap(0, 1);
        let blocks = self.partials[3].len() as u32;
        match &mut self.shift {
            // One block, and the host, write the shift themselves.
            Some(shift) if self.steps.is_some() && blocks > 1 => {
                vector::total(&mut self.partials[3], blocks, shift)
            }
            _ => Ok(()),
        }
    }

    /// The current state on the device: what [`CgState`] is read from.
    pub fn state(&self) -> &Buffer<f64> {
        &self.states[0]
    }

    fn run(&mut self, variant: CgVariant) -> Result<(), OpError> {
        let Some(Steps::Split(steps)) = &self.steps else {
            self.run_on_host(variant);
            return Ok(());
        };
        let kernel = match variant {
            CgVariant::Curvature => steps.curvature.clone(),
            CgVariant::Step => steps.step.clone(),
            _ => steps.direction.clone(),
        };
        Ok(kernel.launch(self.args())?)
    }

    fn args(&mut self) -> CgArgs<'_, T> {
        let [pq, rz, rr, shift] = &mut self.partials;
        let [before, after] = &mut self.states;
        CgArgs {
            len: self.q.len() as u64,
            tolerance: self.stop.tolerance,
            radius: self.stop.radius,
            q: self.q.input(),
            inverse_diagonal: self
                .inverse_diagonal
                .as_ref()
                .map_or(In::none(), Buffer::input),
            means: self.means.as_ref().map_or(In::none(), Buffer::input),
            w: self.w.output(),
            r: self.r.output(),
            p: self.p.output(),
            before: before.output(),
            after: after.output(),
            pq_partials: pq.output(),
            rz_partials: rz.output(),
            rr_partials: rr.output(),
            shift_partials: shift.output(),
            shift: self.shift.as_mut().map_or(Out::none(), Buffer::output),
        }
    }
}

impl<T: Number> Steps<T> {
    fn prepare(device: &Device, n: usize) -> Result<Self, OpError> {
        let prepared = |variant| prepare(device, variant, grid(n));
        if n <= ONE_BLOCK {
            return Ok(Steps::Whole(prepared(CgVariant::Iteration)?));
        }
        Ok(Steps::Split(Split {
            curvature: prepared(CgVariant::Curvature)?,
            step: prepared(CgVariant::Step)?,
            direction: prepared(CgVariant::Direction)?,
        }))
    }
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

/// The same steps on the CPU, element by element as the kernels do them, and in the order of their sums.
impl<T: Number> CgVectors<T> {
    fn run_on_host(&mut self, variant: CgVariant) {
        match variant {
            CgVariant::Curvature => {
                let pq = host_dot(host(&self.p), host(&self.q));
                host_mut(&mut self.partials[0])[0] = pq;
            }
            CgVariant::Step => self.step_on_host(),
            CgVariant::Direction | CgVariant::Iteration => self.direct_on_host(),
        }
    }

    fn scalars(&self) -> ([f64; state::LEN], [f64; 3]) {
        let mut before = [0.0; state::LEN];
        before.copy_from_slice(host(&self.states[0]));
        (before, [0, 1, 2].map(|i| host(&self.partials[i])[0]))
    }

    fn step_on_host(&mut self) {
        let (before, [pq, ..]) = self.scalars();
        let length = cg::stride(&before, pq, self.stop.radius).length;
        if length > 0.0 {
            let a = <T as Element>::from_f64(length);
            cpu::vector::axpy(a, host(&self.p), host_mut(&mut self.w));
            cpu::vector::axpy(a, host(&self.q), host_mut(&mut self.r));
        }
        let (rz, rr) = squares(host(&self.r), self.inverse_diagonal.as_ref().map(host));
        host_mut(&mut self.partials[1])[0] = rz;
        host_mut(&mut self.partials[2])[0] = rr;
    }

    fn direct_on_host(&mut self) {
        let (before, [pq, rz, rr]) = self.scalars();
        let is_first = before[state::ITERATIONS] < 0.0;
        let stride = cg::stride(&before, pq, self.stop.radius);
        if is_first || stride.length > 0.0 {
            let b = if is_first {
                0.0
            } else {
                rz / before[state::RZ]
            };
            self.redirect(<T as Element>::from_f64(b));
        }
        if let (Some(means), Some(shift)) = (&self.means, &mut self.shift) {
            let sum = host_dot(host(means), host(&self.p));
            host_mut(shift)[0] = <T as Element>::from_f64(sum);
        }
        let after = cg::next_state(&before, [rz, rr, pq], stride, self.stop.tolerance);
        host_mut(&mut self.states[1]).copy_from_slice(&after);
    }

    fn redirect(&mut self, b: T) {
        let (r, p) = (host(&self.r), host_mut(&mut self.p));
        match self.inverse_diagonal.as_ref().map(host) {
            Some(d) => cpu::vector::update(
                p,
                #[inline(always)]
                |i, p| b.fma(p, -(r[i] * d[i])),
            ),
            None => cpu::vector::update(
                p,
                #[inline(always)]
                |i, p| b.fma(p, -r[i]),
            ),
        }
    }
}

const ON_HOST: &str = "vectors of a solve on the CPU are host memory";

fn host<T: bytemuck::Pod>(buffer: &Buffer<T>) -> &[T] {
    buffer.as_host_slice().expect(ON_HOST)
}

fn host_mut<T: bytemuck::Pod>(buffer: &mut Buffer<T>) -> &mut [T] {
    buffer.as_host_slice_mut().expect(ON_HOST)
}

fn host_dot<T: Number>(a: &[T], b: &[T]) -> f64 {
    let add = |i: usize, [sum]: &mut [f64; 1]| {
        *sum = f64::mul_add(Element::to_f64(a[i]), Element::to_f64(b[i]), *sum);
    };
    match a.len() {
        len @ 0..=ONE_BLOCK => grid(len).sums(len, add)[0],
        _ => cpu::vector::dot(a, b),
    }
}

/// r·D⁻¹r, and ‖r‖² without the coordinates that are held.
fn squares<T: Number>(r: &[T], inverse_diagonal: Option<&[T]>) -> (f64, f64) {
    let Some(d) = inverse_diagonal else {
        let rr = host_dot(r, r);
        return (rr, rr);
    };
    let add = |i: usize, [rz, rr]: &mut [f64; 2]| {
        let z = r[i] * d[i];
        let r = Element::to_f64(r[i]);
        *rz = r.mul_add(Element::to_f64(z), *rz);
        let counted = if z == T::default() { 0.0 } else { r };
        *rr = counted.mul_add(counted, *rr);
    };
    let [rz, rr] = grid(r.len()).sums(r.len(), add);
    (rz, rr)
}
