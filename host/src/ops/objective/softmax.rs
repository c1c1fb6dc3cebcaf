//! Softmax objectives: multinomial logistic regression in one pass over X.
//!
//! With T = X·Y + 1·cᵀ (m × k), p the softmax of a row t of T, b the row's class and v its weight, the objective is
//! Σ v·(ln Σ exp t − t_b), and its gradient by Y is XᵀS, S = v·(p − e_b). The Hessian at P times a direction has
//! S = v·p ⊙ (t − p·t) instead. All n × k and m × k matrices are row-major.
//!
//! On a GPU one pass over X does it for up to 128 columns of sparse X, and for dense X of so few columns that registers
//! hold them (256 for k ≤ 4, 128 for k ≤ 8, 64 for k ≤ 16, 32 for k ≤ 32; half of that in f64), unless sums are promised
//! to repeat; see [`Matrix::has_softmax`].

use std::ops::Range;
use std::sync::Arc;

use gpu_kernels::cta::WARP;
use gpu_kernels::objective::{DenseSoftmaxArgs, SoftmaxRows, SparseSoftmaxArgs};
use gpu_kernels::{Entry, Family, In, Launch, Out};

use super::super::blocks::Part;
use super::super::catalog::registers_on;
use super::super::forms::Rows;
use super::super::host::{HostRows, with_rows};
use super::super::launch::slice;
use super::super::matrix::Matrix;
use super::super::members::Members;
use super::super::share::{part_mut, part_of};
use super::super::{Number, OpError};
use super::gpu::fused;
use super::launches::{Gradient, SoftmaxStep};
use crate::cpu::objective as cpu;
use crate::device::{Buffer, Device, Prepared};
use crate::parallel::locked;
use crate::plan::fused::Summation;
use crate::plan::objective::{SoftmaxKernel, SoftmaxPlan, softmax as plan};

/// What a softmax objective is made of besides X and Y.
#[derive(Debug, Clone, Copy)]
pub struct Softmax<'a, T: Number> {
    /// k.
    pub classes: usize,
    /// v, one per row; ones when absent. A row of weight 0 takes no part.
    pub weights: Option<&'a Buffer<T>>,
    /// c, k elements; zeros when absent.
    pub constants: Option<&'a Buffer<T>>,
}

/// Where a softmax objective goes.
#[derive(Debug)]
pub struct SoftmaxOut<'a, T: Number> {
    /// Σ v·loss, and the k sums of the columns of S: 1 + k elements.
    pub sums: &'a mut Buffer<f64>,
    /// XᵀS, n · k elements.
    pub gradient: &'a mut Buffer<T>,
}

/// What is computed of the rows.
enum Work<'a, T: Number> {
    Evaluation {
        target: &'a Buffer<T>,
        probabilities: Option<&'a mut Buffer<T>>,
    },
    Curvature {
        given: &'a Buffer<T>,
        solve: Option<&'a Buffer<f64>>,
    },
}

impl<'a, T: Number> Work<'a, T> {
    /// The solve that it is for.
    fn solve(&self) -> In<'a, f64> {
        match self {
            Work::Evaluation { .. } => In::none(),
            Work::Curvature { solve, .. } => solve.map_or(In::none(), Buffer::input),
        }
    }
}

impl<T: Number> Matrix<T> {
    /// Whether softmax objectives of `classes` columns can be had of this matrix in one pass: never where sums are promised to
    /// repeat, so that all devices take the same way.
    ///
    /// # Errors
    /// [`OpError::Device`] when a kernel cannot be loaded.
    pub fn has_softmax(&self, classes: usize) -> Result<bool, OpError> {
        if let Some(members) = &self.members {
            return members.all(members.own.has_softmax(classes)?);
        }
        Ok(match self.options.summation {
            Summation::Reproducible => false,
            Summation::Free if self.device().is_cpu() => true,
            Summation::Free => !matches!(*self.softmax_step(classes)?, SoftmaxStep::Absent),
        })
    }

    /// Evaluates Σ v·(ln Σ exp t − t_b) and its gradient at `y` (n × k), b the numbers of the rows' classes in `target`;
    /// writes the probabilities (m × k) where wanted. X is read once.
    ///
    /// # Errors
    /// [`OpError::Length`] and [`OpError::OtherDevice`] when a vector does not fit, [`OpError::NoVariant`] when there is
    /// no kernel for this many classes or columns (see [`Matrix::has_softmax`]), [`OpError::Device`] when the device
    /// fails.
    ///
    /// ```
    /// use ndarray::array;
    /// use warpfuse::device::Device;
    /// use warpfuse::matrix::Features;
    /// use warpfuse::ops::Matrix;
    /// use warpfuse::ops::objective::{Softmax, SoftmaxOut};
    ///
    /// let device = Device::cpu();
    /// let x = Matrix::new(&device, Features::Dense(array![[3.0], [0.0]]))?;
    /// let (y, target) = (device.zeros(3)?, device.upload(&[2.0, 0.0])?);
    /// let (mut sums, mut gradient) = (device.zeros(4)?, device.zeros(3)?);
    /// let softmax = Softmax { classes: 3, weights: None, constants: None };
    /// let out = SoftmaxOut { sums: &mut sums, gradient: &mut gradient };
    /// x.softmax_objective(&softmax, &target, &y, out, None)?;
    /// assert_eq!(gradient.to_vec()?, [1.0, 1.0, -2.0]);
    /// # Ok::<(), warpfuse::ops::OpError>(())
    /// ```
    pub fn softmax_objective(
        &self,
        softmax: &Softmax<'_, T>,
        target: &Buffer<T>,
        y: &Buffer<T>,
        out: SoftmaxOut<'_, T>,
        probabilities: Option<&mut Buffer<T>>,
    ) -> Result<(), OpError> {
        self.check_vector("the target", self.rows(), target)?;
        let work = Work::Evaluation {
            target,
            probabilities,
        };
        self.run_softmax(softmax, y, out, work)
    }

    /// `w = XᵀS`, the Hessian at the probabilities `given` (m × k) times `s` (n × k), and ½·sᵀHs and the sums of the
    /// columns of S. Nothing is computed when the solve whose state `solve` is has ended.
    ///
    /// # Errors
    /// As [`Matrix::softmax_objective`].
    pub fn softmax_product(
        &self,
        softmax: &Softmax<'_, T>,
        given: &Buffer<T>,
        s: &Buffer<T>,
        out: SoftmaxOut<'_, T>,
        solve: Option<&Buffer<f64>>,
    ) -> Result<(), OpError> {
        self.run_softmax(softmax, s, out, Work::Curvature { given, solve })
    }

    fn run_softmax(
        &self,
        softmax: &Softmax<'_, T>,
        y: &Buffer<T>,
        out: SoftmaxOut<'_, T>,
        work: Work<'_, T>,
    ) -> Result<(), OpError> {
        self.check_softmax(softmax, y, &out, &work)?;
        if let Rows::Host(x) = &self.forms.rows {
            return x.reading(|| self.softmax_on_host(x, softmax, y, out, work))?;
        }
        if let Some(members) = &self.members {
            return softmax_of_members(members, softmax, y, out, work);
        }
        out.sums.fill_zero()?;
        out.gradient.fill_zero()?;
        if let Work::Curvature { solve, .. } = &work
            && self.is_unwanted(*solve)?
        {
            return Ok(());
        }
        match (&*self.softmax_step(softmax.classes)?, &self.forms.rows) {
            (SoftmaxStep::Sparse { rows, gradient }, Rows::Sparse(_)) => {
                let mut gradient = locked(gradient);
                gradient.advance(self, softmax.classes)?;
                self.softmax_of_rows((rows, &mut gradient), softmax, (y, out), work)
            }
            (SoftmaxStep::Dense(kernel), Rows::Dense(stored)) => {
                let SoftmaxOut { sums, gradient } = out;
                let mut work = work;
                stored.each(Part::All, |block| {
                    let rows = softmax_rows(softmax, &mut *sums, &mut work, block.range());
                    let x = block.args(self.cols(), fused(y, &mut *gradient));
                    Ok(kernel.launch(DenseSoftmaxArgs { x, rows })?)
                })
            }
            _ => Err(OpError::NoVariant {
                what: "softmax objective",
                wanted: format!("{} classes of {self:?}", softmax.classes),
            }),
        }
    }

    /// Over the rows of a sparse X.
    fn softmax_of_rows(
        &self,
        (kernel, gradient): (&Prepared<T::SparseSoftmax>, &mut Gradient<T>),
        softmax: &Softmax<'_, T>,
        (y, out): (&Buffer<T>, SoftmaxOut<'_, T>),
        mut work: Work<'_, T>,
    ) -> Result<(), OpError> {
        let Rows::Sparse(stored) = &self.forms.rows else {
            unreachable!("the kernel is one of sparse rows");
        };
        let SoftmaxOut { sums, gradient: w } = out;
        stored.each(Part::All, |_, block| {
            let rows = softmax_rows(softmax, &mut *sums, &mut work, block.range());
            let x = block.args(self.cols(), fused(y, &mut *w));
            let (kernel, slopes) = gradient.of_rows(kernel);
            Ok(kernel.launch(SparseSoftmaxArgs { x, rows, slopes })?)
        })?;
        gradient.add_up((self.rows(), softmax.classes), work.solve(), w)
    }

    fn check_softmax(
        &self,
        softmax: &Softmax<'_, T>,
        y: &Buffer<T>,
        out: &SoftmaxOut<'_, T>,
        work: &Work<'_, T>,
    ) -> Result<(), OpError> {
        let (m, n, k) = (self.rows(), self.cols(), softmax.classes);
        if k == 0 {
            return Err(OpError::Parameter {
                name: "the number of classes",
                expected: "at least 1",
                found: 0.0,
            });
        }
        let times = |rows: usize| {
            rows.checked_mul(k).ok_or(OpError::TooLarge {
                what: "elements of a matrix of k columns",
                limit: usize::MAX as u64,
                found: rows as u64,
            })
        };
        self.check_vector("y", times(n)?, y)?;
        self.check_vector("the gradient", times(n)?, out.gradient)?;
        self.check_vector("the sums", 1 + k, out.sums)?;
        let (probabilities, target): (Option<&Buffer<T>>, _) = match work {
            Work::Evaluation {
                target,
                probabilities,
            } => (probabilities.as_deref(), Some(*target)),
            Work::Curvature { given, .. } => (Some(given), None),
        };
        let optional = [
            ("the target", m, target),
            ("the weights", m, softmax.weights),
            ("the constants", k, softmax.constants),
            ("the probabilities", times(m)?, probabilities),
        ];
        optional.into_iter().try_for_each(|(what, len, vector)| {
            vector.map_or(Ok(()), |vector| self.check_vector(what, len, vector))
        })
    }

    fn softmax_on_host(
        &self,
        x: &HostRows<T>,
        softmax: &Softmax<'_, T>,
        y: &Buffer<T>,
        out: SoftmaxOut<'_, T>,
        work: Work<'_, T>,
    ) -> Result<(), OpError> {
        let (share, k) = (x.share.as_ref(), softmax.classes);
        let (work, probabilities) = match work {
            Work::Evaluation {
                target,
                probabilities,
            } => (
                cpu::SoftmaxWork::Evaluation(part_of(share, target, 1)),
                probabilities.map(|p| part_mut(share, host_mut(p), k)),
            ),
            Work::Curvature { given, .. } => {
                (cpu::SoftmaxWork::Curvature(part_of(share, given, k)), None)
            }
        };
        let rows = cpu::Softmax {
            classes: k,
            weights: softmax.weights.map(|v| part_of(share, v, 1)),
            constants: softmax.constants.map(host),
            work,
        };
        let mut workspace = locked(&x.workspace);
        let gradient = host_mut(out.gradient);
        let results = (&mut *gradient, probabilities);
        let mut sums = with_rows!(&*x.features, |x| cpu::softmax(
            &x,
            host(y),
            &rows,
            results,
            &mut workspace
        ));
        if let Some(share) = share {
            share.group().sum(&mut sums)?;
            share.sum(gradient, None)?;
        }
        host_mut(out.sums).copy_from_slice(&sums);
        Ok(())
    }

    fn softmax_step(&self, classes: usize) -> Result<Arc<SoftmaxStep<T>>, OpError> {
        let slot = &self.plans.objectives.softmax.0;
        let mut slot = slot.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some((known, step)) = &*slot
            && *known == classes
        {
            return Ok(step.clone());
        }
        let step = Arc::new(self.prepare_softmax(classes)?);
        *slot = Some((classes, step.clone()));
        Ok(step)
    }

    fn prepare_softmax(&self, classes: usize) -> Result<SoftmaxStep<T>, OpError> {
        let (Ok(k), Summation::Free) = (u32::try_from(classes), self.options.summation) else {
            return Ok(SoftmaxStep::Absent);
        };
        match &self.forms.rows {
            Rows::Host(_) | Rows::Elsewhere(_) => Ok(SoftmaxStep::Absent),
            Rows::Sparse(_) => self.prepare_sparse_softmax(k),
            Rows::Dense(_) => self.prepare_dense_softmax(k),
        }
    }

    fn prepare_dense_softmax(&self, k: u32) -> Result<SoftmaxStep<T>, OpError> {
        let entries = T::DenseSoftmax::entries().iter();
        let fits = |entry: &&Entry<T::DenseSoftmax>| {
            entry.variant.vs >= k && entry.variant.columns() as usize >= self.cols()
        };
        let lanes = |entry: &&Entry<T::DenseSoftmax>| entry.variant.vs * entry.variant.groups;
        let Some(entry) = entries.filter(fits).min_by_key(lanes) else {
            return Ok(SoftmaxStep::Absent);
        };
        let elements = self.cols() as u64 * u64::from(k);
        let kernel = SoftmaxKernel {
            registers: registers_on(self.device(), entry.name),
            shared_bytes: entry
                .variant
                .shared_bytes(0, elements, T::PRECISION.bytes()),
            rows_per_warp: WARP / lanes(&entry),
        };
        let limits = self.device().limits().expect("a GPU has limits");
        match plan(self.rows() as u64, kernel, limits) {
            Some(plan) => Ok(SoftmaxStep::Dense(self.prepare_planned(entry, plan)?)),
            None => Ok(SoftmaxStep::Absent),
        }
    }

    pub(super) fn prepare_planned<F: Family>(
        &self,
        entry: &'static Entry<F>,
        plan: SoftmaxPlan,
    ) -> Result<Prepared<F>, OpError> {
        tracing::debug!(kernel = entry.name, ?plan, "planned");
        if let Device::Cuda(device) = self.device() {
            device.check_kernels()?;
        }
        let launch = Launch {
            grid: plan.grid,
            block: plan.bs,
            shared_bytes: plan.shared_bytes,
        };
        Ok(self.device().prepare(entry, launch)?)
    }
}

/// Each member's rows, and the sums of all.
fn softmax_of_members<T: Number>(
    members: &Members<Matrix<T>>,
    softmax: &Softmax<'_, T>,
    y: &Buffer<T>,
    out: SoftmaxOut<'_, T>,
    work: Work<'_, T>,
) -> Result<(), OpError> {
    let (k, SoftmaxOut { sums, gradient }) = (softmax.classes, out);
    let (target, given, probabilities, solve) = match work {
        Work::Evaluation {
            target,
            probabilities,
        } => (Some(target), None, probabilities, None),
        Work::Curvature { given, solve } => (None, Some(given), None, solve),
    };
    let weights = members.optional_part(softmax.weights, 1)?;
    let (target, given) = (
        members.optional_part(target, 1)?,
        members.optional_part(given, k)?,
    );
    let own = Softmax {
        weights: weights.as_deref(),
        ..*softmax
    };
    members.writing(probabilities, k, |probabilities| {
        let work = match (target.as_deref(), given.as_deref()) {
            (Some(target), _) => Work::Evaluation {
                target,
                probabilities,
            },
            (_, given) => Work::Curvature {
                given: given.expect("one of them is there"),
                solve,
            },
        };
        let out = SoftmaxOut {
            sums: &mut *sums,
            gradient: &mut *gradient,
        };
        members.own.run_softmax(&own, y, out, work)
    })?;
    members.sum(&mut [sums, gradient])
}

/// The rows `range` of the arguments.
fn softmax_rows<'a, T: Number>(
    softmax: &Softmax<'a, T>,
    sums: &'a mut Buffer<f64>,
    work: &'a mut Work<'_, T>,
    range: Range<usize>,
) -> SoftmaxRows<'a, T> {
    let k = softmax.classes;
    let wide = range.start * k..range.end * k;
    let mut rows = SoftmaxRows {
        classes: k as u32,
        target: In::none(),
        weights: softmax.weights.map_or(In::none(), |v| slice(v, &range)),
        constants: softmax.constants.map_or(In::none(), Buffer::input),
        given: In::none(),
        probabilities: Out::none(),
        sums: sums.output(),
        solve: In::none(),
    };
    match work {
        Work::Evaluation {
            target,
            probabilities,
        } => {
            rows.target = slice(target, &range);
            if let Some(probabilities) = probabilities {
                rows.probabilities = super::super::launch::slice_mut(probabilities, &wide);
            }
        }
        Work::Curvature { given, solve } => {
            rows.given = slice(given, &wide);
            rows.solve = solve.map_or(In::none(), Buffer::input);
        }
    }
    rows
}

const ON_HOST: &str = "the operation has checked that its buffers lie on the CPU";

fn host<T: bytemuck::Pod>(buffer: &Buffer<T>) -> &[T] {
    buffer.as_host_slice().expect(ON_HOST)
}

fn host_mut<T: bytemuck::Pod>(buffer: &mut Buffer<T>) -> &mut [T] {
    buffer.as_host_slice_mut().expect(ON_HOST)
}
