//! Whether objectives and products of their Hessians read a further form of X.

use gpu_kernels::objective::LossClass;

use super::super::matrix::Matrix;
use super::super::{Number, OpError};
use crate::plan::Problem;
use crate::plan::fused::{Plan, Processor, Stored, Summation, Weighing};
use crate::plan::limits::DeviceLimits;
use crate::plan::objective::{self as planning, OverForm};

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
    ///
    /// let x = Matrix::new(&Device::cpu(), Features::Dense(array![[1.0, 2.0], [0.0, 3.0]]))?;
    /// assert!(!x.hessian_in_one_product()?);
    /// # Ok::<(), warpfuse::ops::OpError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Matrix::objective_plan`].
    pub fn hessian_in_one_product(&self) -> Result<bool, OpError> {
        let slot = &self.plans.objectives.in_one_product;
        let found = slot.get_or_init(|| self.expect_one_product());
        found.clone()
    }

    fn expect_one_product(&self) -> Result<bool, OpError> {
        let has_form = self.members.is_none() && self.problem().stored != Stored::Rows;
        let is_free = self.options.summation == Summation::Free;
        let limits = self.device().limits();
        let Some(limits) = limits.filter(|_| has_form && is_free) else {
            return Ok(false);
        };
        let planned = self.planned(LossClass::Squared)?;
        let rows_ns = self.over_rows_ns(limits, &planned.plan);
        let over = self.over_form(limits, self.problem(), rows_ns)?;
        Ok(over.is_some_and(|over| over.takes_one_product()))
    }

    fn over_form(
        &self,
        limits: &DeviceLimits,
        problem: &Problem,
        rows_ns: u64,
    ) -> Result<Option<OverForm>, OpError> {
        let over =
            self.planning(|planner| Ok(OverForm::of(&planner, limits, problem, rows_ns)?))?;
        Ok(over.flatten())
    }

    /// What `plan` takes over the rows, nanoseconds.
    fn over_rows_ns(&self, limits: &DeviceLimits, plan: &Plan) -> u64 {
        match &self.forms.head {
            Some(_) => planning::one_pass_ns(limits, self.problem(), plan),
            None => planning::without_head_ns(self.problem(), plan),
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
        let before_ns = planning::one_pass_ns(limits, problem, plan);
        let rows_ns = self.over_rows_ns(limits, plan);
        let mut weighings = Vec::new();
        for stored in Stored::further(Processor::Gpu) {
            let over = self.over_form(limits, &problem.with_stored(stored), rows_ns)?;
            let after = over.map(|over| over.mean_ns());
            let weighing = after.and_then(|ns| Weighing::of(stored, nnz, before_ns, ns));
            weighings.extend(weighing.map(|one| one.made_by(self.maker(), nnz)));
        }
        Ok(Weighing::best(weighings, evaluations))
    }
}
