//! Kernel ridge regression, whose predictions are the mean of a Gaussian process.

mod direct;
mod model;
mod model_file;
mod preconditioner;
mod solve;

use std::time::Instant;

use ndarray::ArrayView2;

pub use model::{KernelFitReport, KernelModel};
pub(super) use model_file::holds_kernel_model;

use self::preconditioner::Preconditioner;
use self::solve::{Goal, System};
use super::checkpoint::{Checkpoint, Identity};
use super::identity::{digest, with_checkpoint_of};
use super::{Convergence, FitError, Progress};
use crate::device::Device;
use crate::matrix::{Element, Storage};
use crate::ops::{Kernel, KernelFunction, KernelSum, Number, points_of_all};

/// Kernel ridge regression: `f(x) = Σᵢ aᵢ·k(x, xᵢ)` with `(K + λI)·a = t`, K the N × N matrix of all k(xᵢ, xⱼ).
///
/// f is also the posterior mean of a Gaussian process with covariance k and noise of variance λ. λ is scikit-learn's
/// `alpha` of `KernelRidge`; there is no intercept, so centre the targets.
///
/// **Solver.** On the CPU, up to 6,000 samples, a Cholesky factor of K + λI in f64 ([`KernelRidge::solver`]). Else K is
/// never formed: memory is O(N·rank), an iteration costs one sum over all pairs. Iterations run in the element type of
/// the features, preconditioned by a partial Cholesky factorisation. Both are refined until the residual, computed in f64,
/// is as small as requested.
///
/// | parameter | default | scikit-learn |
/// |---|---|---|
/// | `kernel` | Gaussian, length scale ℓ = 1 | `kernel='linear'`; `'rbf'` with `gamma` = 1/(2ℓ²) |
/// | `alpha` (λ) | 1 | `alpha=1` |
/// | `tolerance` | 1e-6, of ‖t − (K + λI)·a‖ over ‖t‖ | – (a direct solve) |
/// | `max_iter` | 1000 | – |
/// | `rank` | 64, of the preconditioner | – |
/// | `solver` | by size and device | – |
///
/// ```
/// use gpu_kernels::kernel_sum::KernelFunction;
/// use ndarray::array;
/// use warpfuse::device::Device;
/// use warpfuse::learning::KernelRidge;
///
/// let x = array![[0.0], [1.0], [2.0], [3.0]];
/// let params = KernelRidge::params().kernel(KernelFunction::Gaussian, 1.0).alpha(1e-6);
/// let model = params.fit(&Device::auto(), x.view(), &[0.0, 1.0, 4.0, 9.0])?;
/// let f = model.predict(&Device::auto(), array![[2.0]].view())?;
/// assert!((f[0] - 4.0_f64).abs() < 1e-3);
/// # Ok::<(), warpfuse::learning::FitError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KernelRidge {
    function: KernelFunction,
    length_scale: f64,
    alpha: f64,
    tolerance: f64,
    max_iter: usize,
    rank: usize,
    solver: KernelSolver,
}

/// How [`KernelRidge`] solves its linear system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelSolver {
    /// By a factor on the CPU where that is small enough, else by iterations.
    #[default]
    Auto,
    /// Conjugate gradients on the device; K is never formed.
    ConjugateGradient,
    /// A Cholesky factor of K + λI, in f64 on the host.
    Cholesky,
}

impl KernelSolver {
    /// As the command line names it.
    pub fn name(self) -> &'static str {
        match self {
            KernelSolver::Auto => "auto",
            KernelSolver::ConjugateGradient => "conjugate-gradient",
            KernelSolver::Cholesky => "cholesky",
        }
    }

    /// What solves a system of this many samples on `device`, and why.
    pub(in crate::learning) fn choose(
        self,
        device: &Device,
        samples: usize,
    ) -> (KernelSolver, &'static str) {
        let small = samples <= direct::MOST_SAMPLES;
        match self {
            KernelSolver::Auto if !device.is_cpu() => (
                KernelSolver::ConjugateGradient,
                "sums over K are fast on a GPU",
            ),
            KernelSolver::Auto if small => (KernelSolver::Cholesky, "few enough samples to form K"),
            KernelSolver::Auto => (
                KernelSolver::ConjugateGradient,
                "too many samples to form K",
            ),
            asked => (asked, "requested"),
        }
    }
}

impl Default for KernelRidge {
    fn default() -> Self {
        KernelRidge {
            function: KernelFunction::Gaussian,
            length_scale: 1.0,
            alpha: 1.0,
            tolerance: 1e-6,
            max_iter: 1000,
            rank: 64,
            solver: KernelSolver::Auto,
        }
    }
}

impl KernelRidge {
    /// Gaussian kernel with length scale 1, λ = 1, tolerance 1e-6, at most 1000 iterations, rank 64.
    pub fn params() -> Self {
        Self::default()
    }

    /// Sets k and its length scale ℓ > 0.
    pub fn kernel(self, function: KernelFunction, length_scale: f64) -> Self {
        Self {
            function,
            length_scale,
            ..self
        }
    }

    /// Sets λ > 0, the weight of ‖f‖² or the variance of the noise.
    pub fn alpha(self, alpha: f64) -> Self {
        Self { alpha, ..self }
    }

    /// Sets ‖t − (K + λI)·a‖ / ‖t‖, computed in f64, at which to stop.
    pub fn tolerance(self, tolerance: f64) -> Self {
        Self { tolerance, ..self }
    }

    /// Sets the most iterations: sums over all pairs.
    pub fn max_iter(self, max_iter: usize) -> Self {
        Self { max_iter, ..self }
    }

    /// Sets the columns of K that the preconditioner is made of; 0 for no preconditioner.
    pub fn rank(self, rank: usize) -> Self {
        Self { rank, ..self }
    }

    /// Sets what solves it (default: by size and device).
    pub fn solver(self, solver: KernelSolver) -> Self {
        Self { solver, ..self }
    }

    /// Fits to `features` (N × D; of a member of a group its rows of them) and `targets` (N) on `device`.
    ///
    /// # Errors
    /// [`FitError`] when shapes, values or parameters do not fit, the device fails, or members of a group cannot go on. Not converging is not an
    /// error: see [`KernelModel::report`].
    pub fn fit<T: Number>(
        &self,
        device: &Device,
        features: ArrayView2<'_, T>,
        targets: &[T],
    ) -> Result<KernelModel, FitError> {
        self.fit_watched(device, features, targets, |_| {})
    }

    /// [`KernelRidge::fit`], calling `watch` after each iteration.
    ///
    /// # Errors
    /// As [`KernelRidge::fit`].
    pub fn fit_watched<T: Number>(
        &self,
        device: &Device,
        features: ArrayView2<'_, T>,
        targets: &[T],
        watch: impl FnMut(Progress),
    ) -> Result<KernelModel, FitError> {
        self.solve(device, features, targets, watch)
    }

    /// [`KernelRidge::fit_watched`] that writes how far conjugate gradients have got, and goes on from there where the file
    /// exists, with the bits of a fit that was never interrupted. A Cholesky factor is computed again.
    ///
    /// # Errors
    /// As [`KernelRidge::fit`], and [`FitError::Checkpoint`].
    pub fn fit_with_checkpoint<T: Number>(
        &self,
        device: &Device,
        features: ArrayView2<'_, T>,
        targets: &[T],
        checkpoint: &Checkpoint,
        watch: impl FnMut(Progress),
    ) -> Result<KernelModel, FitError> {
        let facts = |identity: &mut Identity| {
            identity.fact("method", "kernel ridge");
            identity.fact("kernel", format_args!("{:?}", self.function));
            identity.fact("length_scale", self.length_scale);
            identity.fact("alpha", self.alpha);
            identity.fact("tolerance", self.tolerance);
            identity.fact("max_iter", self.max_iter);
            identity.fact("rank", self.rank);
            let solver = self.solver.choose(device, targets.len()).0;
            identity.fact("solver", solver.name());
            let targets = targets.iter().map(|target| Element::to_f64(*target));
            identity.fact("a digest of the targets", digest(targets));
        };
        let x = Storage::Dense(features.view());
        with_checkpoint_of(checkpoint, (device, &x), facts, || {
            self.solve(device, features, targets, watch)
        })
    }

    fn solve<T: Number>(
        &self,
        device: &Device,
        features: ArrayView2<'_, T>,
        targets: &[T],
        mut watch: impl FnMut(Progress),
    ) -> Result<KernelModel, FitError> {
        let start = Instant::now();
        let all = points_of_all(device, features)?;
        let features = all.view();
        self.check(features, targets)?;
        let kernel = Kernel::new(self.function, self.length_scale)?;
        let wide = features.mapv(Element::to_f64);
        let targets: Vec<f64> = targets.iter().map(|t| Element::to_f64(*t)).collect();
        let (mut solver, mut reason) = self.solver.choose(device, targets.len());
        let mut solved = None;
        let mut setup_seconds = 0.0;
        if solver == KernelSolver::Cholesky {
            let host = device.group().map_or_else(Device::cpu, Device::cpu_of);
            let exact = KernelSum::symmetric_of_all(&host, kernel, wide.view())?;
            setup_seconds = start.elapsed().as_secs_f64();
            solved = direct::solve(&exact, &targets, &self.goal(), &mut watch)?;
        }
        let solved = match solved {
            Some(solved) => solved,
            None => {
                if solver == KernelSolver::Cholesky {
                    solver = KernelSolver::ConjugateGradient;
                    reason = "K + alpha is not positive definite to rounding";
                }
                let working = KernelSum::symmetric_of_all(device, kernel, features)?;
                let exact = KernelSum::symmetric_of_all(device, kernel, wide.view())?;
                let preconditioner =
                    Preconditioner::new(device, kernel, features, self.alpha, self.rank)?;
                setup_seconds = start.elapsed().as_secs_f64();
                let mut system = System {
                    working: &working,
                    exact: &exact,
                    preconditioner,
                };
                system.solve(&targets, &self.goal(), watch)?
            }
        };
        if solved.convergence == Convergence::NotFinite {
            return Err(FitError::NotFinite {
                iterations: solved.iterations,
            });
        }
        let report = KernelFitReport {
            n_iter: solved.iterations,
            convergence: solved.convergence,
            solver,
            solver_reason: reason.to_owned(),
            residual_ratio: solved.residual_ratio,
            device: device.name().to_owned(),
            setup_seconds,
            seconds: start.elapsed().as_secs_f64(),
            peak_device_bytes: device.usage().peak_bytes as u64,
        };
        Ok(KernelModel::new(
            T::DTYPE,
            kernel,
            self.alpha,
            wide,
            solved.dual,
            report,
        ))
    }

    fn goal(&self) -> Goal {
        Goal {
            tolerance: self.tolerance,
            max_iter: self.max_iter,
            alpha: self.alpha,
        }
    }

    fn check<T: Number>(&self, features: ArrayView2<'_, T>, targets: &[T]) -> Result<(), FitError> {
        let rows = features.nrows();
        if rows == 0 {
            return Err(FitError::NoRows);
        }
        if targets.len() != rows {
            let targets = targets.len();
            return Err(FitError::Targets { rows, targets });
        }
        if let Some(at) = features.iter().position(|x| !Element::is_finite(*x)) {
            let column = at % features.ncols();
            return Err(FitError::ColumnNotFinite { column });
        }
        if let Some(row) = targets.iter().position(|t| !Element::is_finite(*t)) {
            let value = Element::to_f64(targets[row]);
            return Err(FitError::TargetNotFinite { row, value });
        }
        let finite = |value: f64| value.is_finite();
        let parameter = |name, expected, found| FitError::Parameter {
            name,
            expected,
            found,
        };
        if !(self.alpha > 0.0 && finite(self.alpha)) {
            return Err(parameter("alpha", "finite and above zero", self.alpha));
        }
        if !(self.tolerance >= 0.0 && finite(self.tolerance)) {
            return Err(parameter("tol", "finite and not negative", self.tolerance));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_and_targets_that_are_not_finite_are_named() {
        let (params, targets) = (KernelRidge::params(), [1.0, 2.0, 3.0]);
        let points = ndarray::array![[0.0, 1.0], [1.0, 0.5], [2.0, -1.0]];
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut x = points.clone();
            x[[1, 1]] = bad;
            let error = params.fit(&Device::cpu(), x.view(), &targets);
            assert!(
                matches!(error, Err(FitError::ColumnNotFinite { column: 1 })),
                "{error:?}"
            );
            let error = params.fit(&Device::cpu(), points.view(), &[1.0, bad, 3.0]);
            assert!(
                matches!(error, Err(FitError::TargetNotFinite { row: 1, .. })),
                "{error:?}"
            );
        }
    }
}
