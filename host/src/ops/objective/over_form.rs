//! Whether objectives and products of their Hessians read a further form of X.

use gpu_kernels::objective::LossClass;

use super::super::matrix::Matrix;
use super::super::{Number, OpError};
use super::Loss;
use crate::plan::Problem;
use crate::plan::fused::{Plan, Processor, Product, Stored, Summation, Weighing};
use crate::plan::limits::DeviceLimits;
use crate::plan::objective::{self as planning, Constant, OverForm};

impl<T: Number> Matrix<T> {
    /// Whether [`Matrix::fused`], with the curvature as weights, is expected to be the fastest way to the products of a
    /// Hessian, so that [`Matrix::hessian_product`] need not be called: over a further form of X ([`Matrix::prepare`]), whose
    /// fused product takes about as long as one of its halves. The sums of [`Matrix::hessian_product`] are not computed then.
    /// Σ d·t, which an intercept needs, is `s·Xᵀd + c·Σ d`.
    ///
    /// Always `false` on the CPU, for X alone without a further form, for sums that are promised to repeat, and where members
    /// of a [group](crate::device::group) share the rows.
    ///
    /// ```
    /// use ndarray::array;
    /// use warpfuse::device::Device;
    /// use warpfuse::matrix::Features;
    /// use warpfuse::ops::Matrix;
    /// use warpfuse::plan::objective::Constant;
    ///
    /// let x = Matrix::new(&Device::cpu(), Features::Dense(array![[1.0, 2.0], [0.0, 3.0]]))?;
    /// assert!(!x.hessian_in_one_product(Constant::Absent)?);
    /// # Ok::<(), warpfuse::ops::OpError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Matrix::objective_plan`].
    pub fn hessian_in_one_product(&self, constant: Constant) -> Result<bool, OpError> {
        let slot = &self.plans.objectives.in_one_product[constant as usize];
        let found = slot.get_or_init(|| self.expect_one_product(constant));
        found.clone()
    }

    /// Whether products of a Hessian may be submitted before it is known that the solve which wants them goes on: where kernels
    /// look at its state by themselves, and where one too many takes less than the device would wait for news.
    ///
    /// Always `false` on the CPU.
    ///
    /// ```
    /// use ndarray::array;
    /// use warpfuse::device::Device;
    /// use warpfuse::matrix::Features;
    /// use warpfuse::ops::Matrix;
    /// use warpfuse::plan::objective::Constant;
    ///
    /// let x = Matrix::new(&Device::cpu(), Features::Dense(array![[1.0, 2.0], [0.0, 3.0]]))?;
    /// assert!(!x.hessian_runs_ahead(Constant::Present)?);
    /// # Ok::<(), warpfuse::ops::OpError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Matrix::objective_plan`].
    pub fn hessian_runs_ahead(&self, constant: Constant) -> Result<bool, OpError> {
        let is_fused = self.hessian_in_one_product(constant)?;
        if !is_fused && self.objective_in_one_pass(Loss::Squared)? {
            return Ok(true);
        }
        let is_free = self.options.summation == Summation::Free;
        if !is_free || self.members.is_some() || self.forms.rows.stream() {
            return Ok(false);
        }
        let plan = match is_fused {
            true => self.used_plan(Product::Fused)?,
            false => self.objective_plan(Loss::Squared)?,
        };
        let ns = plan.and_then(Plan::predicted_ns);
        Ok(ns.is_some_and(planning::runs_ahead))
    }

    fn expect_one_product(&self, constant: Constant) -> Result<bool, OpError> {
        let has_form = self.members.is_none() && self.problem().stored != Stored::Rows;
        let is_free = self.options.summation == Summation::Free;
        let limits = self.device().limits();
        let Some(limits) = limits.filter(|_| has_form && is_free) else {
            return Ok(false);
        };
        let planned = self.planned(LossClass::Squared)?;
        let rows_ns = self.over_rows_ns(limits, &planned.plan);
        let over = self.over_form(limits, self.problem(), (rows_ns, constant))?;
        Ok(over.is_some_and(|over| over.takes_one_product()))
    }

    fn over_form(
        &self,
        limits: &DeviceLimits,
        problem: &Problem,
        of_rows: (u64, Constant),
    ) -> Result<Option<OverForm>, OpError> {
        let over =
            self.planning(|planner| Ok(OverForm::of(&planner, limits, problem, of_rows)?))?;
        Ok(over.flatten())
    }

    /// What `plan` takes over the rows, nanoseconds.
    fn over_rows_ns(&self, limits: &DeviceLimits, plan: &Plan) -> u64 {
        let products = match &self.forms.head {
            Some(_) => planning::one_pass_ns(limits, self.problem(), plan),
            None => planning::without_head_ns(self.problem(), plan),
        };
        products.saturating_add(self.losses_ns(limits, plan))
    }

    /// What the losses take by themselves, nanoseconds: between two products.
    fn losses_ns(&self, limits: &DeviceLimits, plan: &Plan) -> u64 {
        match &plan.then {
            Some(_) => planning::row_losses_ns(limits, self.problem()),
            None => 0,
        }
    }

    /// The plan over the further forms in which X is stored, if that is expected to beat `plan`.
    pub(super) fn plan_by_products(&self, plan: &Plan) -> Result<Option<Plan>, OpError> {
        let problem = self.problem();
        let Some(limits) = self
            .device()
            .limits()
            .filter(|_| problem.stored != Stored::Rows)
        else {
            return Ok(None);
        };
        let by_products =
            self.planning(|planner| Ok(planning::by_products(&planner, limits, problem)?))?;
        let one_pass = self.over_rows_ns(limits, plan);
        let faster = by_products.flatten().filter(|(_, ns)| *ns < one_pass);
        Ok(faster.map(|(plan, _)| plan))
    }

    /// The further form that is expected to save most over this many evaluations of a fit, of which
    /// [`PRODUCTS_PER_POINT`](planning::PRODUCTS_PER_POINT) are products of a Hessian for each point; `None` where none pays.
    pub(in crate::ops) fn best_for_objectives(
        &self,
        evaluations: u64,
    ) -> Result<Option<Weighing>, OpError> {
        let problem = self.problem();
        let is_asked = evaluations > 0 && self.options.summation == Summation::Free;
        let Some((limits, nnz)) = self.device().limits().zip(problem.nnz).filter(|_| is_asked)
        else {
            return Ok(None);
        };
        let plan = &self.planned(LossClass::Any)?.plan;
        let one_pass_ns = planning::one_pass_ns(limits, problem, plan);
        let before_ns = one_pass_ns.saturating_add(self.losses_ns(limits, plan));
        // Most fits have an intercept.
        let of_rows = (self.over_rows_ns(limits, plan), Constant::Present);
        let mut weighings = Vec::new();
        for stored in Stored::further(Processor::Gpu) {
            let over = self.over_form(limits, &problem.with_stored(stored), of_rows)?;
            let after = over.map(|over| over.mean_ns());
            let weighing = after.and_then(|ns| Weighing::of(stored, nnz, before_ns, ns));
            weighings.extend(weighing.map(|one| one.made_by(self.maker(), problem)));
        }
        Ok(Weighing::best(weighings, evaluations))
    }
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use super::*;
    use crate::device::{Device, EmulatorOptions};
    use crate::matrix::{Features, csr_from_parts};

    /// What a plan of two products takes beyond what it was planned to: forms are weighed against it.
    #[test]
    fn losses_between_two_products_are_a_pass_of_their_own() {
        let device = Device::emulator(EmulatorOptions::default());
        let x = csr_from_parts((3, 5), vec![0, 1, 2, 3], vec![0, 4, 2], vec![1.0_f32; 3]);
        let x = Features::Sparse(x.expect("columns ascend"));
        let x = Matrix::new(&device, x).expect("a matrix");
        let limits = device.limits().expect("those of an emulated GPU");
        let alone = x.planned(LossClass::Squared).expect("plans").plan.clone();
        assert!(alone.then.is_none(), "{alone}");
        let of_two = Plan {
            then: Some(Box::new(alone.clone())),
            ..alone.clone()
        };
        let losses = planning::row_losses_ns(limits, x.problem());
        assert!(losses > 0);
        let products = of_two.predicted_ns().expect("of two products");
        assert!(alone.predicted_ns().is_some_and(|one| one < products));
        assert_eq!(x.over_rows_ns(limits, &of_two), products + losses);
    }
}
