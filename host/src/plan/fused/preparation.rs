//! Whether storing X in a further form pays.

use serde::{Deserialize, Serialize};

use super::planner::Planner;
use super::problem::{Problem, Product, Stored};
use super::value::Summation;
use crate::plan::error::PlanError;

/// Nanoseconds of the host for each entry that is put into panels, both copies made and uploaded.
const PANELS_NS_PER_ENTRY: f64 = 20.0;

/// What a further form of storage costs once and saves in each evaluation of the fused product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weighing {
    /// The form.
    pub stored: Stored,
    /// Nanoseconds to make it.
    pub cost_ns: u64,
    /// Nanoseconds of an evaluation as X is stored now.
    pub before_ns: u64,
    /// Nanoseconds of an evaluation with the form.
    pub after_ns: u64,
}

impl Weighing {
    /// Whether so many evaluations pay for it.
    pub fn pays_for(&self, evaluations: u64) -> bool {
        let saved = self.before_ns.saturating_sub(self.after_ns);
        saved.saturating_mul(evaluations) > self.cost_ns
    }
}

impl Planner<'_> {
    /// What panels of a sparse X would cost and save; `None` where they cannot be used: for a dense X, and where the
    /// bits of results are promised.
    ///
    /// # Errors
    /// As [`Planner::plan`].
    pub fn weigh_panels(&self, problem: &Problem) -> Result<Option<Weighing>, PlanError> {
        let Some(nnz) = problem.nnz.filter(|_| self.sums() == Summation::Free) else {
            return Ok(None);
        };
        let time = |stored| -> Result<u64, PlanError> {
            let plan = self.plan(&problem.with_stored(stored), Product::Fused)?;
            let next = plan.then.as_ref().and_then(|next| next.prediction);
            let parts = [plan.prediction, next].into_iter().flatten();
            Ok(parts.map(|part| part.total_ns).sum())
        };
        Ok(Some(Weighing {
            stored: Stored::RowsAndPanels,
            cost_ns: (nnz as f64 * PANELS_NS_PER_ENTRY) as u64,
            before_ns: time(Stored::Rows)?,
            after_ns: time(Stored::RowsAndPanels)?,
        }))
    }
}
