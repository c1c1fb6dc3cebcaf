//! Launches of a table of measured ones.

use super::planner::Planner;
use super::predicted;
use super::reason::Reason;
use super::value::{Model, Plan};
use crate::plan::form::Stored;
use crate::plan::problem::{Problem, Product, Summation};
use crate::plan::tuned::{Launch, Measured, class};

impl Planner<'_> {
    /// The launch that the table has for the problem, or why it is not taken; nothing where the table has none.
    pub(super) fn of_table(
        &self,
        problem: &Problem,
        product: Product,
    ) -> Option<Result<Plan, Reason>> {
        let table = self.tuned.filter(|table| !table.is_empty())?;
        if !self.may_take_measured(problem, product) {
            return None;
        }
        let measured = table.get(&class::fused(problem))?;
        Some(self.measured(problem, measured))
    }

    /// What was measured is the product over the rows of X as it is, without a promise about the bits.
    fn may_take_measured(&self, problem: &Problem, product: Product) -> bool {
        let is_free = self.forced.is_empty() && self.summation == Summation::Free;
        let is_measured = product == Product::Fused && problem.stored == Stored::Rows;
        is_free && is_measured && self.model == Model::Predicted
    }

    fn measured(&self, problem: &Problem, measured: &Measured) -> Result<Plan, Reason> {
        let Launch::Fused(forced) = measured.launch else {
            return Err(Reason::NotTuned {
                launch: "a launch of another family".to_owned(),
            });
        };
        let nowhere = || Reason::NotTuned {
            launch: forced.to_string(),
        };
        let planner = self.forced(forced).tuned(None);
        let plan = predicted::plan(&planner, problem, Product::Fused);
        let mut plan = plan.map_err(|_| nowhere())?;
        plan.validate(problem, self.limits).map_err(|_| nowhere())?;
        // What was compared is one launch: the table's.
        plan.reasons
            .retain(|reason| !matches!(reason, Reason::LeastTime { .. }));
        let &Measured { ns, planned_ns, .. } = measured;
        plan.reasons.insert(0, Reason::Tuned { ns, planned_ns });
        Ok(plan)
    }
}
