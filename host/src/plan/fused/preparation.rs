//! Whether storing X in a further form pays.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::planner::Planner;
use crate::plan::error::PlanError;
use crate::plan::form::Maker;
use crate::plan::problem::Summation;
use crate::plan::problem::{Problem, Processor, Product, Stored};

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

impl fmt::Display for Weighing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Weighing { stored, .. } = self;
        let [before, after] = [self.before_ns, self.after_ns].map(|ns| ns as f64 / 1e3);
        let cost = self.cost_ns as f64 / 1e9;
        write!(
            f,
            "{stored}: {before:.1} to {after:.1} µs an evaluation for {cost:.2} s"
        )
    }
}

impl Weighing {
    /// Of a form that the host makes of this many entries; `None` for X as it is stored anyway.
    pub fn of(stored: Stored, nnz: u64, before_ns: u64, after_ns: u64) -> Option<Weighing> {
        if !stored.is_further() {
            return None;
        }
        Some(Weighing {
            stored,
            // No column counts where the host makes it.
            cost_ns: stored.making_ns((nnz, 0), Maker::Host),
            before_ns,
            after_ns,
        })
    }

    /// The same where this maker makes the form of this problem.
    pub fn made_by(self, maker: Maker, problem: &Problem) -> Weighing {
        let size = (problem.nnz.unwrap_or(0), problem.cols);
        let cost_ns = self.stored.making_ns(size, maker);
        Weighing { cost_ns, ..self }
    }

    /// The one of these that saves most over this many evaluations; `None` where none pays.
    pub fn best(
        weighings: impl IntoIterator<Item = Weighing>,
        evaluations: u64,
    ) -> Option<Weighing> {
        let saved = |weighing: &Weighing| weighing.saved(evaluations);
        let paying = weighings.into_iter();
        let paying = paying.filter(|weighing| weighing.pays_for(evaluations));
        paying.max_by_key(saved)
    }

    /// The fewest evaluations that pay for it; `None` where it saves nothing.
    ///
    /// ```
    /// use warpfuse::plan::fused::{Stored, Weighing};
    /// // 3.8 ms to make it, 10 µs saved by each evaluation.
    /// let panels = Weighing::of(Stored::RowsAndPanels, 100_000, 50_000, 40_000);
    /// assert_eq!(panels.and_then(|panels| panels.pays_from()), Some(381));
    /// ```
    pub fn pays_from(&self) -> Option<u64> {
        let each = self.before_ns.saturating_sub(self.after_ns);
        (each > 0).then(|| self.cost_ns / each + 1)
    }

    /// Whether this many evaluations pay for it.
    pub fn pays_for(&self, evaluations: u64) -> bool {
        self.saved(evaluations) > 0
    }

    /// Nanoseconds that are saved over this many evaluations, beyond what the form costs.
    pub fn saved(&self, evaluations: u64) -> u64 {
        let each = self.before_ns.saturating_sub(self.after_ns);
        each.saturating_mul(evaluations)
            .saturating_sub(self.cost_ns)
    }
}

impl Planner<'_> {
    /// What a further form of a sparse X would cost and save in one of its products; `None` where it cannot be used:
    /// for a dense X, and where the bits of results are promised.
    ///
    /// # Errors
    /// As [`Planner::plan`].
    pub fn weigh(
        &self,
        problem: &Problem,
        product: Product,
        stored: Stored,
    ) -> Result<Option<Weighing>, PlanError> {
        let Some(nnz) = problem.nnz.filter(|_| self.sums() == Summation::Free) else {
            return Ok(None);
        };
        let time = |stored| -> Result<u64, PlanError> {
            let plan = self.plan(&problem.with_stored(stored), product)?;
            Ok(plan.predicted_ns().unwrap_or(0))
        };
        let (before_ns, after_ns) = (time(Stored::Rows)?, time(stored)?);
        let weighing = Weighing::of(stored, nnz, before_ns, after_ns);
        Ok(weighing.map(|weighing| weighing.made_by(self.maker, problem)))
    }

    /// [`Planner::weigh`] for every further form; none where none can be used.
    ///
    /// # Errors
    /// As [`Planner::plan`].
    pub fn weighings(
        &self,
        problem: &Problem,
        product: Product,
    ) -> Result<Vec<Weighing>, PlanError> {
        let mut weighings = Vec::new();
        for stored in Stored::further(Processor::Gpu) {
            weighings.extend(self.weigh(problem, product, stored)?);
        }
        Ok(weighings)
    }

    /// The form that is expected to save most over this many evaluations of a product; `None` where none pays.
    ///
    /// # Errors
    /// As [`Planner::plan`].
    pub fn best_form(
        &self,
        problem: &Problem,
        product: Product,
        evaluations: u64,
    ) -> Result<Option<Weighing>, PlanError> {
        let weighings = self.weighings(problem, product)?;
        Ok(Weighing::best(weighings, evaluations))
    }
}
