//! Sums over kernels without the kernel matrix: `f(xᵢ) = Σⱼ k(xᵢ, yⱼ)·wⱼ`, and what follows from it by derivation.

mod launch;
mod points;
mod shared;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex};

use gpu_kernels::kernel_sum::{gradient, tiled};
use ndarray::ArrayView2;

pub use points::Kernel;

use self::launch::Output;
use self::points::{Points, centre, host, host_mut};
pub(crate) use self::shared::points_of_all;
use self::shared::{Shared, expect_whole};
use super::{Number, OpError, checks};
use crate::cpu::kernel_sum as cpu;
use crate::device::{Buffer, Device};
use crate::matrix::Element;
use crate::plan::kernel_sum::{KernelSumPlan, KernelSumPoint, Problem, Work, point as point_of};

/// Two sets of points, or one, between which a kernel is summed; they stay on the device.
///
/// For targets xᵢ (M of them) and sources yⱼ (N) of D dimensions, weights w and u:
///
/// | method | result | shape |
/// |---|---|---|
/// | [`sum`](Self::sum) | `f(xᵢ) = Σⱼ k(xᵢ, yⱼ)·wⱼ` | M, or V vectors of M for V vectors of weights |
/// | [`targets_gradient`](Self::targets_gradient) | `∂f(xᵢ)/∂xᵢ` | M × D, row-major |
/// | [`weights_gradient`](Self::weights_gradient) | `∂(Σᵢ uᵢ·f(xᵢ))/∂wⱼ = Σᵢ uᵢ·k(xᵢ, yⱼ)` | N |
/// | [`sources_gradient`](Self::sources_gradient) | `Σᵢ uᵢ·∂k(xᵢ, yⱼ)/∂yⱼ`; times wⱼ it is the derivative of `Σᵢ uᵢ·f(xᵢ)` | N × D, row-major |
///
/// No matrix of M × N is formed: memory is O(M + N). Sums are accumulated so that f32 results are good to 10⁻⁵ of
/// `Σⱼ |k·wⱼ|` for any N, f64 ones to 10⁻¹². Repeated sums give the same bits, but for those over one set of points
/// on a GPU that computes each pair once: there f64 additions meet in any order.
///
/// **Members of a group** ([`Device::in_group`]) bring targets of their own, which are those of all members, one after the other
/// in the order of the ranks; sources are given whole to each. Every member has all points, and the results of as many of them as
/// the others, each a sum over all other points: on CPUs the bits of one process. Vectors are whole on every member.
///
/// ```
/// use gpu_kernels::kernel_sum::KernelFunction;
/// use ndarray::array;
/// use warpfuse::device::Device;
/// use warpfuse::ops::{Kernel, KernelSum};
///
/// let device = Device::cpu();
/// let kernel = Kernel::new(KernelFunction::Cauchy, 1.0)?;
/// let (x, y) = (array![[0.0], [1.0]], array![[0.0], [1.0], [3.0]]);
/// let sums = KernelSum::new(&device, kernel, x.view(), y.view())?;
/// let w = device.upload(&[1.0, 2.0, 10.0])?;
/// let mut f = device.zeros(2)?;
/// sums.sum(&w, &mut f)?;
/// assert!((f.read_scalar(0)? - 3.0_f64).abs() < 1e-12); // 1/1 + 2/2 + 10/10
/// # Ok::<(), warpfuse::ops::OpError>(())
/// ```
#[derive(Debug)]
pub struct KernelSum<T: Number> {
    device: Device,
    kernel: Kernel,
    dims: usize,
    targets: Arc<Points<T>>,
    /// None: the targets themselves.
    sources: Option<Arc<Points<T>>>,
    /// Kept between calls, as large as the largest needed.
    partials: Mutex<Option<Buffer<f64>>>,
    /// What this member of a group computes.
    shared: Option<Shared<T>>,
}

/// Which points a result belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Targets,
    Sources,
}

impl<T: Number> KernelSum<T> {
    /// Sums at `targets` (M × D) over `sources` (N × D).
    ///
    /// # Errors
    /// [`OpError::Length`] when D differs or is zero, [`OpError::NotFinite`] when a coordinate is not finite,
    /// [`OpError::TooLarge`] for more points than a kernel counts, [`OpError::Device`] when the device has no room;
    /// [`OpError::Shares`] when members of a group have other columns or sources than rank 0, [`OpError::Group`] when they
    /// cannot be reached.
    pub fn new(
        device: &Device,
        kernel: Kernel,
        targets: ArrayView2<'_, T>,
        sources: ArrayView2<'_, T>,
    ) -> Result<Self, OpError> {
        expect_whole(device, sources)?;
        let targets = points_of_all(device, targets)?;
        Self::with(device, kernel, targets.view(), Some(sources))
    }

    /// Sums over one set of points (N × D), targets and sources at once: k(xᵢ, xⱼ) is a symmetric matrix, of which
    /// a GPU computes half; the GPUs of a group compute all of it together.
    ///
    /// # Errors
    /// As [`KernelSum::new`].
    pub fn symmetric(
        device: &Device,
        kernel: Kernel,
        points: ArrayView2<'_, T>,
    ) -> Result<Self, OpError> {
        Self::symmetric_of_all(device, kernel, points_of_all(device, points)?.view())
    }

    /// [`symmetric`](Self::symmetric) where every member of a group has all points.
    ///
    /// # Errors
    /// As [`KernelSum::new`].
    pub(crate) fn symmetric_of_all(
        device: &Device,
        kernel: Kernel,
        points: ArrayView2<'_, T>,
    ) -> Result<Self, OpError> {
        Self::with(device, kernel, points, None)
    }

    fn with(
        device: &Device,
        kernel: Kernel,
        targets: ArrayView2<'_, T>,
        sources: Option<ArrayView2<'_, T>>,
    ) -> Result<Self, OpError> {
        let (dims, centre) = (targets.ncols(), centre(sources.unwrap_or(targets)));
        if dims != centre.len() || dims == 0 {
            return Err(OpError::Length {
                what: "a target",
                expected: centre.len().max(1),
                found: dims,
            });
        }
        let sources = sources
            .map(|sources| Points::new(device, kernel, sources, &centre, "sources"))
            .transpose()?;
        let targets = Points::new(device, kernel, targets, &centre, "targets")?;
        let mut sums = Self::between(
            device,
            (kernel, dims),
            targets.into(),
            sources.map(Arc::new),
        );
        if let Some(group) = device.group() {
            sums.shared = Some(Shared::new(group, &sums)?);
        }
        Ok(sums)
    }

    /// Sums between points that lie on the device.
    fn between(
        device: &Device,
        (kernel, dims): (Kernel, usize),
        targets: Arc<Points<T>>,
        sources: Option<Arc<Points<T>>>,
    ) -> Self {
        KernelSum {
            device: device.clone(),
            kernel,
            dims,
            targets,
            sources,
            partials: Mutex::new(None),
            shared: None,
        }
    }

    /// The device that the points lie on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// k with its length scale.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// M.
    pub fn targets(&self) -> usize {
        self.targets.len
    }

    /// N.
    pub fn sources(&self) -> usize {
        self.points(At::Sources).len
    }

    /// D.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// `f(xᵢ) = Σⱼ k(xᵢ, yⱼ)·wⱼ`. For V vectors of weights, one after the other, V vectors of sums.
    ///
    /// # Errors
    /// [`OpError::Length`] when `weights` is no multiple of N long, or `out` not as many times M;
    /// [`OpError::Device`] when a buffer lies elsewhere or the device fails.
    pub fn sum(&self, weights: &Buffer<T>, out: &mut Buffer<T>) -> Result<(), OpError> {
        self.sum_at(At::Targets, weights, None, out)
    }

    /// [`sum`](Self::sum) of one vector of weights by a launch of the caller's choice, on a GPU or an emulator: one of
    /// [`points`](crate::plan::kernel_sum::points) for this [problem](Self::problem_of_sum).
    ///
    /// # Errors
    /// As [`KernelSum::sum`]; [`OpError::Strategy`] for any other launch, on the CPU, and for a member of a group.
    pub fn sum_by(
        &self,
        point: &KernelSumPoint,
        weights: &Buffer<T>,
        out: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        checks::same_length("weights", weights, self.sources())?;
        checks::same_length("the result", out, self.targets())?;
        self.expect_here([Some(weights), Some(&*out), None])?;
        let problem = self.problem_of_sum();
        let limits = self.device.limits().filter(|_| self.shared.is_none());
        let known = limits.and_then(|limits| point_of(&problem, limits, &point.values));
        if known.as_ref() != Some(point) {
            return Err(OpError::Strategy {
                strategy: format!("{:?}", point.plan.variant),
                device: self.device.to_string(),
            });
        }
        if problem.targets == 0 {
            return Ok(());
        }
        let output = Output {
            first: 0,
            alpha: <T as Element>::from_f64(1.0),
            addend: None,
            row: 1,
            column: self.targets(),
            out,
        };
        self.launch_by(&point.plan, At::Targets, &problem, weights.input(), output)
    }

    /// The sum of one vector of weights at the targets, or at those that are this member's of a group, as its planner sees it.
    pub fn problem_of_sum(&self) -> Problem {
        match &self.shared {
            Some(shared) => shared.at(At::Targets).problem_of_sum(),
            None => self.problem(self.work(), At::Targets, 1),
        }
    }

    /// `Σⱼ k(xᵢ, yⱼ)·wⱼ + β·zᵢ`: with one set of points and z = w the product of K + β·I and w.
    ///
    /// # Errors
    /// As [`KernelSum::sum`], and [`OpError::Length`] when z is not as long as `out`.
    pub fn sum_and_add(
        &self,
        weights: &Buffer<T>,
        (beta, z): (T, &Buffer<T>),
        out: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        checks::same_length("z", z, out.len())?;
        self.sum_at(At::Targets, weights, Some((beta, z)), out)
    }

    /// `Σᵢ uᵢ·k(xᵢ, yⱼ)` at every source: the derivative of `Σᵢ uᵢ·f(xᵢ)` with respect to wⱼ.
    ///
    /// # Errors
    /// As [`KernelSum::sum`], with M and N in each other's place.
    pub fn weights_gradient(&self, u: &Buffer<T>, out: &mut Buffer<T>) -> Result<(), OpError> {
        self.sum_at(At::Sources, u, None, out)
    }

    /// `∂f(xᵢ)/∂xᵢ`, M × D row-major, for one vector of weights. Where k has no derivative (coincident points of
    /// Laplace and Matérn 1/2), that pair counts as zero.
    ///
    /// # Errors
    /// [`OpError::Length`] when `weights` has not N elements or `out` not M·D.
    pub fn targets_gradient(
        &self,
        weights: &Buffer<T>,
        out: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        self.gradient_at(At::Targets, weights, out)
    }

    /// `Σᵢ uᵢ·∂k(xᵢ, yⱼ)/∂yⱼ`, N × D row-major: times wⱼ, the derivative of `Σᵢ uᵢ·f(xᵢ)` with respect to yⱼ.
    ///
    /// # Errors
    /// [`OpError::Length`] when `u` has not M elements or `out` not N·D.
    pub fn sources_gradient(&self, u: &Buffer<T>, out: &mut Buffer<T>) -> Result<(), OpError> {
        self.gradient_at(At::Sources, u, out)
    }

    /// All k(xᵢ, xⱼ) with i ≥ j of one set of N points, N × N column by column; the others are 0. For few points:
    /// computed on the host.
    ///
    /// # Errors
    /// [`OpError::Device`] when the points cannot be copied from the device.
    ///
    /// # Panics
    /// When there are two sets of points.
    pub fn lower_triangle(&self) -> Result<Vec<T>, OpError> {
        assert!(self.sources.is_none(), "one set of points");
        let points = self.targets.coordinates.to_vec()?;
        let points = cpu::Points {
            coordinates: &points,
            len: self.targets.len,
        };
        Ok(cpu::lower_triangle(self.kernel.function(), points))
    }

    /// How a GPU with the device's limits would launch the sum of one vector; `None` on the CPU.
    ///
    /// # Errors
    /// [`OpError::Plan`] when it would not.
    pub fn plan(&self) -> Result<Option<KernelSumPlan>, OpError> {
        match self.device.limits() {
            Some(_) => Ok(Some(self.planned(&self.problem_of_sum())?)),
            None => Ok(None),
        }
    }

    fn points(&self, at: At) -> &Arc<Points<T>> {
        match (at, &self.sources) {
            (At::Sources, Some(sources)) => sources,
            _ => &self.targets,
        }
    }

    fn work(&self) -> Work {
        match self.sources {
            Some(_) => Work::Sum,
            None => Work::SymmetricSum,
        }
    }

    fn sum_at(
        &self,
        at: At,
        weights: &Buffer<T>,
        addend: Option<(T, &Buffer<T>)>,
        out: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        let (own, others) = (self.points(at).len, self.points(at.other()).len);
        let vectors = match others {
            0 => 1,
            _ => (weights.len() / others).max(1),
        };
        checks::same_length("weights", weights, vectors * others)?;
        checks::same_length("the result", out, vectors * own)?;
        self.expect_here([Some(weights), Some(&*out), addend.map(|(_, z)| z)])?;
        if let Some(shared) = &self.shared {
            return shared.sum(at, weights, addend, out);
        }
        if self.device.is_cpu() {
            self.sum_on_host(at, weights, addend, out);
            return Ok(());
        }
        for first in (0..vectors).step_by(tiled::VECTORS) {
            let count = (vectors - first).min(tiled::VECTORS);
            let w = launch::part(weights, first * others, count * others);
            let output = Output {
                first,
                alpha: <T as Element>::from_f64(1.0),
                addend,
                row: 1,
                column: own,
                out: &mut *out,
            };
            self.launch(at, &self.problem(self.work(), at, count), w, output)?;
        }
        Ok(())
    }

    fn gradient_at(&self, at: At, w: &Buffer<T>, out: &mut Buffer<T>) -> Result<(), OpError> {
        let (own, others) = (self.points(at), self.points(at.other()));
        checks::same_length("weights", w, others.len)?;
        checks::same_length("the gradient", out, own.len * self.dims)?;
        self.expect_here([Some(w), Some(&*out), None])?;
        if let Some(shared) = &self.shared {
            return shared.gradient(at, w, out);
        }
        let alpha = self.kernel.scale();
        if self.device.is_cpu() {
            let (x, y) = (own.on_host(), others.on_host());
            cpu::gradient(self.kernel.function(), x, y, host(w), alpha, host_mut(out));
            return Ok(());
        }
        for first in (0..self.dims).step_by(gradient::WINDOW as usize) {
            let count = (self.dims - first).min(gradient::WINDOW as usize);
            let output = Output {
                first,
                alpha: <T as Element>::from_f64(alpha),
                addend: None,
                row: self.dims,
                column: 1,
                out: &mut *out,
            };
            self.launch(
                at,
                &self.problem(Work::Gradient, at, count),
                w.input(),
                output,
            )?;
        }
        Ok(())
    }

    fn expect_here(&self, buffers: [Option<&Buffer<T>>; 3]) -> Result<(), OpError> {
        let mut given = buffers.into_iter().flatten();
        Ok(given.try_for_each(|buffer| buffer.expect_on(&self.device, "sum over a kernel"))?)
    }

    fn sum_on_host(
        &self,
        at: At,
        weights: &Buffer<T>,
        addend: Option<(T, &Buffer<T>)>,
        out: &mut Buffer<T>,
    ) {
        let (own, others) = (self.points(at), self.points(at.other()));
        let (x, y) = (own.on_host(), others.on_host());
        let (weights, out) = (host(weights), host_mut(out));
        for vector in 0..out.len().checked_div(own.len).unwrap_or(0) {
            let (from, to) = (vector * others.len, vector * own.len);
            let w = &weights[from..from + others.len];
            let addend =
                addend.map(|(beta, z)| (Element::to_f64(beta), &host(z)[to..to + own.len]));
            let out = &mut out[to..to + own.len];
            cpu::sum(self.kernel.function(), x, y, w, addend, out);
        }
    }

    fn problem(&self, work: Work, at: At, vectors: usize) -> Problem {
        Problem {
            function: self.kernel.function(),
            work,
            targets: self.points(at).len as u64,
            sources: self.points(at.other()).len as u64,
            dims: self.dims as u32,
            vectors: vectors as u32,
            precision: T::PRECISION,
            extent: self.points(at).extent,
        }
    }
}

impl At {
    fn other(self) -> At {
        match self {
            At::Targets => At::Sources,
            At::Sources => At::Targets,
        }
    }
}
