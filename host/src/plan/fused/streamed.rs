//! Products over rows that stream: what is launched for each block, and what that takes.

use gpu_kernels::describe::{Number, Walk};

use super::candidate::{Candidate, Storage};
use super::planner::Planner;
use super::predicted::Trial;
use super::value::Plan;
use crate::plan::error::PlanError;
use crate::plan::problem::{Problem, Product, Summation};

impl Planner<'_> {
    /// `X·y` and `Xᵀ·p` of a block by kernels that add without anything before or after: both are launched while it is on the
    /// device, so that it crosses the link once.
    ///
    /// # Errors
    /// As [`Planner::plan`].
    pub fn halves(&self, block: &Problem) -> Result<[Plan; 2], PlanError> {
        let kernels = self.kernels.iter().filter(|kernel| adds_alone(kernel));
        let kernels: Vec<Candidate> = kernels.cloned().collect();
        let planner = Planner {
            limits: self.limits,
            kernels: &kernels,
            forced: self.forced,
            model: self.model,
            summation: self.summation,
            tuned: None,
            maker: self.maker,
        };
        let plan = |product| planner.plan(block, product);
        Ok([plan(Product::Forward)?, plan(Product::Transposed)?])
    }

    /// What is launched for a fused product of rows that stream in this many blocks, one launch after the other: what is
    /// planned for all of them, but that two products are [halves](Planner::halves) where sums need not repeat.
    ///
    /// # Errors
    /// As [`Planner::plan`].
    pub fn streamed(&self, problem: &Problem, blocks: u64) -> Result<Vec<Plan>, PlanError> {
        let mut plan = self.plan(problem, Product::Fused)?;
        let is_free = self.summation == Summation::Free;
        Ok(match plan.then.take() {
            None => vec![plan],
            Some(_) if is_free => self.halves(&problem.part(blocks))?.into(),
            Some(then) => vec![
                Plan {
                    product: Product::Forward,
                    ..plan
                },
                *then,
            ],
        })
    }

    /// Predicted nanoseconds of the kernel of `plan` over a block, without its launch: what the plan itself says where its
    /// kernel is none of these.
    pub(in crate::plan) fn ns_of_block(&self, plan: &Plan, block: &Problem) -> u64 {
        // Whoever may have chosen it: bits are promised of all rows.
        let planner = self.summation(Summation::Free);
        let is_same = |trial: &Trial| {
            trial.kernel == plan.kernel
                && (trial.bs, trial.blocks_per_sm) == (plan.bs, plan.blocks_per_sm)
        };
        let trials = planner.launches(block, plan.product).unwrap_or_default();
        let found = trials.iter().find(|trial| is_same(trial));
        let prediction = found.map(|trial| trial.prediction).or(plan.prediction);
        prediction.map_or(0, |own| own.total_ns.saturating_sub(own.launch_ns))
    }

    /// 10⁹ bytes a second of threads that each request this number of bytes and wait for them: of all that the device holds, by
    /// Little's law.
    pub(in crate::plan) fn requested_gbs(&self, bytes: u32) -> f64 {
        let limits = self.limits;
        let threads = f64::from(limits.sms) * f64::from(limits.max_threads_per_sm);
        let in_flight = threads * f64::from(bytes);
        (in_flight / (limits.rates.latency_us * 1e3)).min(limits.rates.stream_gbs)
    }

    /// Seconds of one more kernel in a stream.
    pub(in crate::plan) fn launch_seconds(&self) -> f64 {
        self.limits.rates.launch_us * 1e-6
    }
}

// Kernels over rows as they came that add to w as they go. Fixed-point sums are begun and finished by others.
fn adds_alone(kernel: &Candidate) -> bool {
    match kernel.storage {
        Storage::Dense => true,
        Storage::Sparse => {
            kernel.sums.number == Number::Float
                && matches!(kernel.walk, Walk::Rows | Walk::EvenShares)
        }
        _ => false,
    }
}
