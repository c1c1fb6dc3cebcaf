//! Whether storing X in a further form pays.

use serde::{Deserialize, Serialize};

use super::planner::Planner;
use super::problem::{Problem, Product, Stored};
use super::value::Summation;
use crate::plan::error::PlanError;

/// Nanoseconds of the host for each entry that is put into a further form, all copies made and uploaded.
const PANELS_NS_PER_ENTRY: f64 = 20.0;
const HOT_COLUMNS_NS_PER_ENTRY: f64 = 20.0;
const TRANSPOSE_NS_PER_ENTRY: f64 = 20.0;

/// The forms that are weighed.
const FORMS: [Stored; 3] = [
    Stored::RowsAndPanels,
    Stored::RowsAndHotColumns,
    Stored::RowsAndTranspose,
];

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
        self.saved(evaluations) > 0
    }

    /// Nanoseconds that are saved over so many evaluations, beyond what the form costs.
    pub fn saved(&self, evaluations: u64) -> u64 {
        let each = self.before_ns.saturating_sub(self.after_ns);
        each.saturating_mul(evaluations)
            .saturating_sub(self.cost_ns)
    }
}

impl Planner<'_> {
    /// What a further form of a sparse X would cost and save; `None` where it cannot be used: for a dense X, and where
    /// the bits of results are promised.
    ///
    /// # Errors
    /// As [`Planner::plan`].
    pub fn weigh(&self, problem: &Problem, stored: Stored) -> Result<Option<Weighing>, PlanError> {
        let Some(nnz) = problem.nnz.filter(|_| self.sums() == Summation::Free) else {
            return Ok(None);
        };
        let time = |stored| -> Result<u64, PlanError> {
            let plan = self.plan(&problem.with_stored(stored), Product::Fused)?;
            let next = plan.then.as_ref().and_then(|next| next.prediction);
            let parts = [plan.prediction, next].into_iter().flatten();
            Ok(parts.map(|part| part.total_ns).sum())
        };
        let of_entry = match stored {
            Stored::Rows => return Ok(None),
            Stored::RowsAndPanels => PANELS_NS_PER_ENTRY,
            Stored::RowsAndHotColumns => HOT_COLUMNS_NS_PER_ENTRY,
            Stored::RowsAndTranspose => TRANSPOSE_NS_PER_ENTRY,
        };
        Ok(Some(Weighing {
            stored,
            cost_ns: (nnz as f64 * of_entry) as u64,
            before_ns: time(Stored::Rows)?,
            after_ns: time(stored)?,
        }))
    }

    /// The form that is expected to save most over so many evaluations of the fused product; `None` where none pays.
    ///
    /// # Errors
    /// As [`Planner::plan`].
    pub fn best_form(
        &self,
        problem: &Problem,
        evaluations: u64,
    ) -> Result<Option<Weighing>, PlanError> {
        let mut best: Option<Weighing> = None;
        for stored in FORMS {
            let Some(weighing) = self.weigh(problem, stored)? else {
                continue;
            };
            let saves_most =
                best.is_none_or(|best| weighing.saved(evaluations) > best.saved(evaluations));
            if weighing.pays_for(evaluations) && saves_most {
                best = Some(weighing);
            }
        }
        Ok(best)
    }
}
