//! Kernel sums on a GPU: partial sums of slices, then their total.

use gpu_kernels::kernel_sum::{KernelSumArgs, KernelSumVariant};
use gpu_kernels::{Entry, Family, In, Launch};

use super::super::{Number, OpError};
use super::{At, KernelSum};
use crate::device::{Buffer, Device};
use crate::parallel::locked;
use crate::plan::kernel_sum::{KernelSumPlan, Problem, plan};
use crate::plan::limits::DeviceLimits;
use crate::plan::vector as vector_plan;

/// Where a launch's sums go: value v of target i to `α·sum + β·z` at `i · row + (first + v) · column`.
pub(super) struct Output<'a, T: Number> {
    pub first: usize,
    pub alpha: T,
    /// β and z, laid out as `out`.
    pub addend: Option<(T, &'a Buffer<T>)>,
    pub row: usize,
    pub column: usize,
    pub out: &'a mut Buffer<T>,
}

impl<T: Number> KernelSum<T> {
    /// One launch over the sources and one over their slices. Lengths and devices have been checked.
    pub(super) fn launch(
        &self,
        at: At,
        problem: &Problem,
        w: In<'_, T>,
        output: Output<'_, T>,
    ) -> Result<(), OpError> {
        if problem.targets == 0 {
            return Ok(());
        }
        let plan = self.planned(problem)?;
        self.launch_by(&plan, at, problem, w, output)
    }

    /// The launch that the device's table of tuned launches has, or else the planner's.
    pub(super) fn planned(&self, problem: &Problem) -> Result<KernelSumPlan, OpError> {
        let limits = self.limits();
        let tuned = self.device.tuned();
        let tuned = tuned.and_then(|table| table.kernel_sum(problem, limits));
        match tuned {
            Some(plan) => Ok(plan),
            None => Ok(plan(problem, limits)?),
        }
    }

    pub(super) fn limits(&self) -> &DeviceLimits {
        let limits = self.device.limits();
        limits.expect("a device that launches has limits")
    }

    /// [`launch`](Self::launch) by one of the points of the problem's space, which has targets.
    pub(super) fn launch_by(
        &self,
        plan: &KernelSumPlan,
        at: At,
        problem: &Problem,
        w: In<'_, T>,
        output: Output<'_, T>,
    ) -> Result<(), OpError> {
        let len = plan.slices as usize * problem.vectors as usize * problem.targets as usize;
        let mut kept = locked(&self.partials);
        let partials = at_least(&self.device, &mut kept, len)?;
        if let KernelSumVariant::Symmetric { .. }
        | KernelSumVariant::Products { .. }
        | KernelSumVariant::Folded { .. } = plan.variant
        {
            partials.fill_zero()?;
        }
        let shape = Launch {
            grid: plan.grid,
            block: plan.bs,
            shared_bytes: plan.shared_bytes,
        };
        let args = KernelSumArgs {
            targets: problem.targets as u32,
            sources: problem.sources as u32,
            dims: problem.dims,
            vectors: problem.vectors,
            slices: plan.slices,
            first: output.first as u32,
            alpha: output.alpha,
            beta: output.addend.map_or(T::default(), |(beta, _)| beta),
            x: self.points(at).coordinates.input(),
            y: self.points(at.other()).coordinates.input(),
            w,
            z: output.addend.map_or(In::none(), |(_, z)| z.input()),
            partials: partials.output(),
            out: output.out.output(),
            out_row: output.row as u64,
            out_column: output.column as u64,
        };
        self.device
            .prepare(entry::<T>(plan.variant), shape)?
            .launch(args)?;
        let sums = problem.targets * u64::from(problem.vectors);
        let elements = vector_plan::elementwise(sums, self.limits());
        let shape = Launch {
            grid: elements.grid,
            block: elements.bs,
            shared_bytes: 0,
        };
        let finish = entry::<T>(KernelSumVariant::Finish);
        Ok(self.device.prepare(finish, shape)?.launch(args)?)
    }
}

/// `len` elements of a buffer from `start` on, as an argument. Both have been checked.
pub(super) fn part<T: Number>(buffer: &Buffer<T>, start: usize, len: usize) -> In<'_, T> {
    let all = buffer.input();
    assert!(
        (start + len) as u64 <= all.len(),
        "a vector beyond the weights"
    );
    let pointer = all.pointer().wrapping_add(start);
    // SAFETY: a piece of an argument that holds, borrowed for as long. It need not start at a multiple of 16 bytes,
    // but no body of this family reads weights from global memory in packs.
    unsafe { In::new(pointer, len as u64) }
}

/// The kept buffer, grown if it is shorter than `len`.
fn at_least<'a>(
    device: &Device,
    kept: &'a mut Option<Buffer<f64>>,
    len: usize,
) -> Result<&'a mut Buffer<f64>, OpError> {
    if kept.as_ref().is_none_or(|buffer| buffer.len() < len) {
        *kept = None;
        *kept = Some(device.zeros(len)?);
    }
    Ok(kept.as_mut().expect("it was just made"))
}

fn entry<T: Number>(variant: KernelSumVariant) -> &'static Entry<T::KernelSums> {
    let mut entries = T::KernelSums::entries().iter();
    let found = entries.find(|entry| entry.variant == variant);
    found.expect("the table has every kernel that is planned")
}
