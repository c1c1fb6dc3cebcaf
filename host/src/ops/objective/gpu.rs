//! Objectives on a GPU: plan, arguments, launch.

use gpu_kernels::cg::state;
use gpu_kernels::objective::{LossClass, ObjectiveArgs, SparseObjectiveArgs};

use super::super::blocks::{Part, SparseBlock};
use super::super::catalog::{candidates_for, candidates_on, objectives_for, objectives_on};
use super::super::forms::halves::Halves;
use super::super::forms::head::{HeadPass, without_head};
use super::super::forms::{Call, Rows};
use super::super::launch::{prepare, slice, slice_mut};
use super::super::matrix::Matrix;
use super::super::terms::{Terms, begin};
use super::super::{Number, OpError};
use super::bounds::{bounds, one_of};
use super::launches::{Planned, Step};
use super::row_args::{GRADIENT, row_args};
use super::row_kernel::RowKernel;
use super::{Evaluation, Intercept, ObjectiveOut};
use crate::device::{Buffer, Device};
use crate::plan::fused::{Plan, Product, Summation};
use crate::plan::objective as planning;

impl<T: Number> Matrix<T> {
    /// The plan that this matrix uses for an objective with this loss on a GPU, `None` on the CPU.
    ///
    /// # Errors
    /// [`OpError::Plan`] when no launch fits the device, [`OpError::Device`] when a kernel cannot be loaded.
    pub fn objective_plan(&self, loss: super::Loss) -> Result<Option<&Plan>, OpError> {
        if self.device().is_cpu() {
            return Ok(None);
        }
        if let Some(members) = &self.members {
            return members.own.objective_plan(loss);
        }
        let planned = self.planned(loss.class())?;
        Ok(Some(planned.prepared.as_ref().unwrap_or(&planned.plan)))
    }

    /// Evaluates a part of the rows; shapes and devices have been checked.
    pub(in crate::ops) fn objective_on_gpu(
        &self,
        part: Part,
        evaluation: &Evaluation<'_, T>,
        y: &Buffer<T>,
        out: &mut ObjectiveOut<'_, T>,
    ) -> Result<(), OpError> {
        out.sums.fill_zero()?;
        let addend = out.addend;
        if !self.writes_gradient(part, evaluation, out)?
            && let Some(gradient) = &mut out.gradient
        {
            begin(
                gradient,
                &Terms {
                    addend,
                    ..Terms::default()
                },
            )?;
        }
        if self.rows() == 0 || self.is_unwanted(out.solve)? {
            return Ok(());
        }
        if self.repeats(evaluation, out) || out.gradient.is_none() || self.cols() == 0 {
            return self.objective_by_products(part, (evaluation, y), out);
        }
        let planned = self.planned(evaluation.loss.class())?;
        if planned.prepared.is_some() && is_plain(evaluation, out) {
            return self.objective_by_products(part, (evaluation, y), out);
        }
        match (&planned.step, &self.forms.rows) {
            (Step::Sparse(kernel), Rows::Sparse(rows)) => rows.each(part, |_, block| {
                let args = self.sparse_objective_args(&block, None, evaluation, y, out)?;
                Ok(kernel.launch(args)?)
            }),
            (Step::Headed(kernel), Rows::Sparse(rows)) => {
                let (head, _) = self.forms.head.as_ref().expect(HEADED);
                let mut head = head.pass();
                rows.each(part, |number, block| {
                    let marked = Some((&mut head, number));
                    let args = self.sparse_objective_args(&block, marked, evaluation, y, out)?;
                    Ok(kernel.launch(args)?)
                })
            }
            (Step::Dense(kernel), Rows::Dense(rows)) => rows.each(part, |block| {
                let (rows, gradient) = row_args(evaluation, y, out, block.range());
                let gradient = gradient.expect(GRADIENT);
                let x = block.args(self.cols(), fused(y, gradient));
                Ok(kernel.launch(ObjectiveArgs { x, rows })?)
            }),
            _ => self.objective_by_products(part, (evaluation, y), out),
        }
    }

    /// Whether launches write all of the gradient, which need not hold anything before.
    fn writes_gradient(
        &self,
        part: Part,
        evaluation: &Evaluation<'_, T>,
        out: &ObjectiveOut<'_, T>,
    ) -> Result<bool, OpError> {
        let has_all = matches!(part, Part::All) && self.rows() > 0 && self.cols() > 0;
        if !has_all || out.gradient.is_none() || out.solve.is_some() {
            return Ok(false);
        }
        let is_by_products = is_plain(evaluation, out)
            && !self.repeats(evaluation, out)
            && self.planned(evaluation.loss.class())?.prepared.is_some()
            && self.halves()?.is_none();
        Ok(is_by_products && self.writes_all(Product::Transposed)?)
    }

    /// Whether what a solve submitted ahead of the news that it has ended would stream X for nothing. Kernels find out by
    /// themselves, but not before X has crossed the link.
    pub(in crate::ops) fn is_unwanted(&self, solve: Option<&Buffer<f64>>) -> Result<bool, OpError> {
        let Some(solve) = solve.filter(|_| self.forms.rows.stream()) else {
            return Ok(false);
        };
        let left = solve.read_scalar(state::RR)?;
        Ok(left <= solve.read_scalar(state::STOP)?)
    }

    fn sparse_objective_args<'a>(
        &self,
        block: &SparseBlock<'a, T>,
        marked: Option<(&'a mut HeadPass<'_, T>, usize)>,
        evaluation: &Evaluation<'a, T>,
        y: &'a Buffer<T>,
        out: &'a mut ObjectiveOut<'_, T>,
    ) -> Result<SparseObjectiveArgs<'a, T>, OpError> {
        let (rows, gradient) = row_args(evaluation, y, out, block.range());
        let gradient = gradient.expect(GRADIENT);
        let x = block.args(self.cols(), fused(y, gradient));
        let x = match marked {
            Some((head, number)) => head.args(number, x)?,
            None => without_head(x),
        };
        Ok(ObjectiveArgs { x, rows })
    }

    /// Whether the bits of this objective are promised.
    pub(super) fn repeats(
        &self,
        evaluation: &Evaluation<'_, T>,
        out: &ObjectiveOut<'_, T>,
    ) -> bool {
        self.options.summation == Summation::Reproducible && is_plain(evaluation, out)
    }

    /// Whether an objective with this loss and its gradient reads X once on a GPU: not where X is too wide, nor where
    /// sums are promised to repeat.
    ///
    /// # Errors
    /// As [`Matrix::objective_plan`].
    pub fn objective_in_one_pass(&self, loss: super::Loss) -> Result<bool, OpError> {
        if let Some(members) = &self.members {
            return members.in_one_pass(members.own.objective_in_one_pass(loss)?);
        }
        let reproducible = self.options.summation == Summation::Reproducible;
        let plan = self.objective_plan(loss)?;
        Ok(!reproducible && plan.is_some_and(|plan| plan.then.is_none()))
    }

    /// X·y, the losses of the rows, Xᵀg: for X that is multiplied twice, for the loss alone, for sums that repeat, and
    /// over further forms of X.
    fn objective_by_products(
        &self,
        part: Part,
        (evaluation, y): (&Evaluation<'_, T>, &Buffer<T>),
        out: &mut ObjectiveOut<'_, T>,
    ) -> Result<(), OpError> {
        self.site.with_row_vectors(|between| {
            self.objective_between((part, between), (evaluation, y), out)
        })
    }

    /// The same with vectors for X·y and for slopes that nobody wants.
    fn objective_between(
        &self,
        (part, [products, residual]): (Part, [&mut Buffer<T>; 2]),
        (evaluation, y): (&Evaluation<'_, T>, &Buffer<T>),
        out: &mut ObjectiveOut<'_, T>,
    ) -> Result<(), OpError> {
        let plain = Terms::default();
        let repeats = self.repeats(evaluation, out);
        if !repeats
            && out.gradient.is_some()
            && self.cols() > 0
            && let Some(halves) = self.halves()?
        {
            let between = [products, residual];
            return self.objective_by_blocks((halves, part), (evaluation, y), out, between);
        }
        if repeats
            && out.gradient.is_some()
            && let Some(launches) = self.in_order()?
        {
            let between = [products, residual];
            return self.objective_carried(launches, (evaluation, y), out, between);
        }
        let one = match repeats {
            true => one_of::<T>(self.device(), evaluation.loss)?,
            false => None,
        };
        let within = bounds(evaluation, y, one.as_ref()).filter(|_| repeats);
        if out.gradient.is_some()
            && let Some(within) = within
            && let Some(launches) = self.in_scale()?
        {
            let (launches, between) = ((launches, within), [products, residual]);
            return self.objective_in_scale(launches, (evaluation, y), out, between);
        }
        if repeats {
            self.forward(y, &plain, products)?;
        } else {
            self.launch(part, Product::Forward, (y, &plain), products)?;
        }
        let keeps_own = out.residual.is_none() && out.gradient.is_some();
        let range = self.forms.rows.range(part, self.rows())?;
        let (mut rows, _) = row_args(evaluation, y, out, range.clone());
        if keeps_own {
            rows.residual = slice_mut(residual, &range);
        }
        self.row_kernel()?.launch(slice(products, &range), rows)?;
        let slopes = out.residual.as_deref().unwrap_or(residual);
        match &mut out.gradient {
            Some(gradient) if repeats => match within {
                Some(within) => self.transposed_within(slopes, &within, gradient),
                None => self.transposed(slopes, &plain, gradient),
            },
            Some(gradient) if self.cols() > 0 => {
                // Launches that add find the addend there, others write it.
                let addend = out.addend;
                let terms = Terms { addend, ..plain };
                self.launch(part, Product::Transposed, (slopes, &terms), gradient)
            }
            _ => Ok(()),
        }
    }

    fn halves(&self) -> Result<Option<&Halves<T>>, OpError> {
        let halves = &self.plans.objectives.halves;
        let made = halves.get_or_init(|| self.make_halves());
        Ok(made.as_ref().map_err(OpError::clone)?.as_ref())
    }

    /// X·y, the losses of the rows, Xᵀg of each block that streams while it is on the device.
    fn objective_by_blocks(
        &self,
        (halves, part): (&Halves<T>, Part),
        (evaluation, y): (&Evaluation<'_, T>, &Buffer<T>),
        out: &mut ObjectiveOut<'_, T>,
        [products, residual]: [&mut Buffer<T>; 2],
    ) -> Result<(), OpError> {
        let kernel = self.row_kernel()?;
        let keeps_own = out.residual.is_none();
        halves.each(part, |block| {
            let range = block.range();
            block.multiply(&self.site, Call::plain(Product::Forward, y, &mut *products))?;
            let (mut rows, _) = row_args(evaluation, y, out, range.clone());
            if keeps_own {
                rows.residual = slice_mut(residual, &range);
            }
            kernel.launch(slice(products, &range), rows)?;
            let slopes = out.residual.as_deref().unwrap_or(residual);
            let gradient = out.gradient.as_deref_mut().expect(GRADIENT);
            block.multiply(
                &self.site,
                Call::plain(Product::Transposed, slopes, gradient),
            )
        })
    }

    pub(super) fn planned(&self, class: LossClass) -> Result<&Planned<T>, OpError> {
        let slot = &self.plans.objectives.by_class[class as usize];
        slot.get_or_init(|| self.prepare_objective(class))
            .as_ref()
            .map_err(OpError::clone)
    }

    fn prepare_objective(&self, class: LossClass) -> Result<Planned<T>, OpError> {
        let (limits, own, pattern) = match self.device() {
            Device::Cuda(device) => {
                device.check_kernels()?;
                let own = objectives_on::<T>(device, class);
                (device.limits(), own, candidates_on::<T>(device).to_vec())
            }
            device => {
                let limits = device.limits().expect("an emulated GPU has limits");
                let capability = limits.compute_capability;
                (
                    limits,
                    objectives_for::<T>(capability, class),
                    candidates_for::<T>(capability).to_vec(),
                )
            }
        };
        let plan = planning::plan(limits, own, pattern, self.options.model, self.problem())?;
        tracing::debug!(%plan, "planned");
        let prepared = self.plan_by_products(&plan)?;
        if let Some(plan) = self.plan_with_head(&plan, class) {
            let step = Step::Headed(prepare::<T::SparseObjective>(self.device(), &plan)?);
            return Ok(Planned {
                plan,
                step,
                prepared,
            });
        }
        let step = match &self.forms.rows {
            _ if plan.then.is_some() => Step::TwoProducts,
            Rows::Sparse(_) => Step::Sparse(prepare::<T::SparseObjective>(self.device(), &plan)?),
            _ => Step::Dense(prepare::<T::DenseObjective>(self.device(), &plan)?),
        };
        Ok(Planned {
            plan,
            step,
            prepared,
        })
    }

    pub(super) fn row_kernel(&self) -> Result<&RowKernel<T>, OpError> {
        self.plans
            .objectives
            .rows
            .get_or_init(|| RowKernel::new(self.device(), self.rows(), self.options.summation))
            .as_ref()
            .map_err(OpError::clone)
    }
}

/// Whether products by themselves give the gradient: they have n elements, and no addend where they write all of it.
fn is_plain<T: Number>(evaluation: &Evaluation<'_, T>, out: &ObjectiveOut<'_, T>) -> bool {
    out.addend.is_none() && !matches!(evaluation.intercept, Intercept::Last)
}

/// The pattern without terms, whose vectors an objective has.
pub(super) fn fused<'a, 'w, T: Number>(
    y: &'a Buffer<T>,
    gradient: &'w mut Buffer<T>,
) -> Call<'a, 'w, T> {
    Call::plain(Product::Fused, y, gradient)
}

const HEADED: &str = "a plan with a head is made where there is one";
