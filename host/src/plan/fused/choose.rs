//! Which model plans a product, and when two products are planned instead of one.

use super::forced::Forced;
use super::planner::Planner;
use super::predicted::{self, Explained, Trial};
use super::published;
use super::published_dense;
use super::reason::Reason;
use super::strategy::Strategy;
use super::value::{Model, Plan, check_block_size};
use crate::plan::error::PlanError;
use crate::plan::problem::{Problem, Product, Summation};

/// How often the stream of X's rows is read at least in two products: one of them may be over a shorter form.
const LEAST_READS: f64 = 1.8;

impl Planner<'_> {
    /// The plan for `product` of `problem`.
    ///
    /// # Errors
    /// When the problem or the limits contradict themselves, when no kernel computes the product, when
    /// none of its launches fits on the device, or when the forced parts allow none.
    pub fn plan(&self, problem: &Problem, product: Product) -> Result<Plan, PlanError> {
        self.check(problem)?;
        let unusable = match self.of_table(problem, product) {
            Some(Ok(plan)) => return Ok(plan),
            Some(Err(reason)) => Some(reason),
            None => None,
        };
        let mut plan = self.own_plan(problem, product)?;
        plan.reasons.splice(..0, unusable);
        Ok(plan)
    }

    fn own_plan(&self, problem: &Problem, product: Product) -> Result<Plan, PlanError> {
        if self.takes_two_products(problem, product) {
            return self.two_products(problem);
        }
        let mut plan = match self.one_product(problem, product) {
            Err(_) if self.may_split(problem, product) => return self.two_products(problem),
            other => other?,
        };
        if let Some(apart) = self.apart(problem, &plan) {
            return Ok(apart);
        }
        plan.reasons.extend(self.forced.reasons());
        plan.validate(problem, self.limits)?;
        Ok(plan)
    }

    /// The plan of the predicted model with all launches that it was compared with, the fastest first
    /// (for two products, first those of `X·y`, then those of `Xᵀ·p`).
    ///
    /// # Errors
    /// As [`Planner::plan`].
    pub fn explain(&self, problem: &Problem, product: Product) -> Result<Explained, PlanError> {
        let planner = self.model(Model::Predicted);
        let chosen = planner.plan(problem, product)?;
        let products = match &chosen.then {
            None => vec![product],
            Some(next) => vec![Product::Forward, next.product],
        };
        let mut candidates = Vec::new();
        for product in products {
            candidates.extend(planner.launches(problem, product)?);
        }
        Ok(Explained { chosen, candidates })
    }

    /// All launches by which one kernel computes `product` of `problem`, the fastest by prediction first; none when
    /// no kernel does.
    ///
    /// # Errors
    /// When the problem or the limits contradict themselves.
    pub fn launches(&self, problem: &Problem, product: Product) -> Result<Vec<Trial>, PlanError> {
        let planner = self.model(Model::Predicted);
        planner.check(problem)?;
        let mut trials = predicted::trials(&planner, problem, product);
        trials.sort_by_key(|trial| (trial.prediction.total_ns, trial.grid));
        Ok(trials)
    }

    fn check(&self, problem: &Problem) -> Result<(), PlanError> {
        self.limits.validate()?;
        problem.validate()?;
        match self.forced.bs {
            Some(bs) => check_block_size(bs, self.limits.max_threads_per_block, self.limits),
            None => Ok(()),
        }
    }

    fn one_product(&self, problem: &Problem, product: Product) -> Result<Plan, PlanError> {
        match self.model {
            Model::Predicted => predicted::plan(self, problem, product),
            Model::Published if problem.is_dense() => published_dense::plan(self, problem, product),
            Model::Published => published::plan(self, problem, product),
        }
    }

    // When nothing is forced, a dense kernel that does not fit is no reason to give up.
    fn may_split(&self, problem: &Problem, product: Product) -> bool {
        let is_free = self.forced.is_empty() && self.summation == Summation::Free;
        product == Product::Fused && problem.is_dense() && is_free
    }

    // A dense matrix too wide for the registers of every kernel, or two products forced.
    fn takes_two_products(&self, problem: &Problem, product: Product) -> bool {
        if product != Product::Fused {
            return false;
        }
        if !problem.is_dense() {
            return self.forced.strategy == Some(Strategy::two_products(false));
        }
        if self.summation == Summation::Reproducible {
            return self.order(problem, product).is_none();
        }
        let held = self.columns_held(problem);
        match self.forced.strategy {
            Some(strategy) => strategy == Strategy::two_products(true),
            None => held < problem.cols,
        }
    }

    // Two products of a sparse X, where they are faster than `plan`, which is of one kernel: there is a faster kernel for
    // one of them than for both, or y and w in one pass do not fit in the L2 cache together.
    fn apart(&self, problem: &Problem, plan: &Plan) -> Option<Plan> {
        let is_sparse = plan.product == Product::Fused && !problem.is_dense();
        let may_choose = self.forced.is_empty() && is_sparse;
        let fused_ns = plan.predicted_ns().filter(|_| may_choose)?;
        let twice = LEAST_READS * problem.matrix_bytes() / self.limits.rates.stream_gbs;
        if (fused_ns as f64) < twice {
            return None;
        }
        let first = predicted::plan_below(self, problem, Product::Forward, fused_ns)?;
        let left = fused_ns.saturating_sub(first.predicted_ns()?);
        let next = predicted::plan_below(self, problem, Product::Transposed, left)?;
        let mut apart = one_after_the_other(problem, first, next);
        let ns = apart.predicted_ns()?;
        apart
            .reasons
            .insert(0, Reason::QuickerApart { ns, fused_ns });
        apart.validate(problem, self.limits).ok()?;
        Some(apart)
    }

    // Columns that the widest dense kernel in registers holds.
    fn columns_held(&self, problem: &Problem) -> u64 {
        let fused = self
            .kernels
            .iter()
            .filter(|k| k.accepts(problem, Product::Fused) && self.can_launch(k));
        let block = self.limits.max_threads_per_block;
        fused
            .map(|k| k.columns(k.team.size(block.min(k.max_block))))
            .max()
            .unwrap_or(0)
    }

    fn two_products(&self, problem: &Problem) -> Result<Plan, PlanError> {
        // A size that was meant for one kernel need not suit the other two.
        let strategy = None;
        let parts = self.forced(Forced {
            strategy,
            ..self.forced
        });
        let mut plan = parts.plan(problem, Product::Forward)?;
        let next = parts.plan(problem, Product::Transposed)?;
        let why = match self.forced.strategy {
            Some(strategy) => Some(Reason::Forced {
                field: "strategy".to_owned(),
                value: strategy.to_string(),
            }),
            None => problem.is_dense().then(|| Reason::BeyondRegisters {
                cols: problem.cols,
                held: self.columns_held(problem),
            }),
        };
        plan.reasons.splice(..0, why);
        Ok(one_after_the_other(problem, plan, next))
    }
}

// `X·y`, then `Xᵀ·p`.
fn one_after_the_other(problem: &Problem, first: Plan, next: Plan) -> Plan {
    Plan {
        strategy: Strategy::two_products(problem.is_dense()),
        product: Product::Fused,
        then: Some(Box::new(next)),
        ..first
    }
}
