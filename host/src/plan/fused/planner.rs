//! The way in: what is known about a device, asked for plans.

use gpu_kernels::describe::{Number, Walk};
use gpu_kernels::fused::fixed_point::lanes_per_row;
use gpu_kernels::fused::{DenseOrder, Held, Place};

use super::candidate::{Candidate, Team};
use super::forced::Forced;
use super::geometry::{Blocks, Launch};
use super::predicted::{self, Explained, Trial};
use super::problem::{Problem, Product};
use super::published;
use super::published_dense::{self, wasted_warps};
use super::reason::Reason;
use super::strategy::Strategy;
use super::value::{Model, Plan, Summation, check_block_size};
use crate::plan::error::PlanError;
use crate::plan::limits::DeviceLimits;
use crate::plan::rates::RateSource;

/// How often the stream of X's rows is read at least in two products: one of them may be over a shorter form.
const LEAST_READS: f64 = 1.8;

/// Makes plans for one device and one set of compiled kernels.
///
/// ```
/// use warpfuse::plan::fused::{Candidate, Planner, Precision, Problem, Product, Strategy};
/// use warpfuse::plan::limits::DeviceLimits;
///
/// let h200 = DeviceLimits::known("h200").expect("a listed device");
/// let kernels = Candidate::of_the_source(Precision::F32);
/// let problem = Problem::sparse(4_000_000, 1_000, 80_000_000, Precision::F32);
/// let plan = Planner::new(&h200, &kernels).plan(&problem, Product::Fused)?;
/// assert_eq!(plan.strategy, Strategy::SharedW);
/// # Ok::<(), warpfuse::plan::PlanError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Planner<'a> {
    pub(super) limits: &'a DeviceLimits,
    pub(super) kernels: &'a [Candidate],
    pub(super) forced: Forced,
    model: Model,
    summation: Summation,
}

impl<'a> Planner<'a> {
    /// A planner of the predicted-time model that is free in all its choices.
    pub fn new(limits: &'a DeviceLimits, kernels: &'a [Candidate]) -> Self {
        Self {
            limits,
            kernels,
            forced: Forced::default(),
            model: Model::default(),
            summation: Summation::default(),
        }
    }

    /// The same with another model.
    pub fn model(self, model: Model) -> Self {
        Self { model, ..self }
    }

    /// The same with a promise about the bits of results. Reproducible sums are planned by the predicted model: the
    /// published one knows no kernel for them.
    pub fn summation(self, summation: Summation) -> Self {
        let model = match summation {
            Summation::Free => self.model,
            Summation::Reproducible => Model::Predicted,
        };
        Self {
            summation,
            model,
            ..self
        }
    }

    /// The same with some parts of the plan fixed.
    pub fn forced(self, forced: Forced) -> Self {
        Self { forced, ..self }
    }

    /// The plan for `product` of `problem`.
    ///
    /// # Errors
    /// When the problem or the limits contradict themselves, when no kernel computes the product, when
    /// none of its launches fits on the device, or when the forced parts allow none.
    pub fn plan(&self, problem: &Problem, product: Product) -> Result<Plan, PlanError> {
        self.check(problem)?;
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

    /// The plan of the predicted model with all launches that it was compared with, the quickest first
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

    /// All launches by which one kernel computes `product` of `problem`, the quickest by prediction first; none when
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

    /// What is promised of the bits.
    pub(super) fn sums(&self) -> Summation {
        self.summation
    }

    /// Whether `kernel` keeps what is promised of the bits. Its sums must not depend on their order, and the
    /// threads that share a row must be as many on every device.
    pub(super) fn is_promised(&self, kernel: &Candidate, problem: &Problem) -> bool {
        let Some(nnz) = problem.nnz else {
            let order = self.order(problem, kernel.product);
            return self.summation == Summation::Free
                || order.is_some_and(|order| adds_in(kernel, &order));
        };
        let longest = problem.longest_row;
        let longest = longest.unwrap_or(nnz.div_ceil(problem.rows.max(1)));
        let team = Team::Lanes(lanes_per_row(problem.rows, nnz, longest));
        let is_free = self.summation == Summation::Free;
        let has_order = kernel.sums.number == Number::Fixed || kernel.product == Product::Forward;
        is_free || kernel.walk == Walk::Rows && has_order && kernel.team == team
    }

    /// The order of the sums of a dense matrix, where bits are promised and a kernel computes the product.
    pub(super) fn order(&self, problem: &Problem, product: Product) -> Option<DenseOrder> {
        if self.summation == Summation::Free || !problem.is_dense() {
            return None;
        }
        DenseOrder::of(
            product.into(),
            problem.rows,
            problem.cols,
            problem.dtype.bytes(),
        )
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

    /// Whether the device can launch `kernel` at all.
    pub(super) fn can_launch(&self, kernel: &Candidate) -> bool {
        kernel.cluster == 1 || self.limits.has_clusters()
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

    // Two products of a sparse X, where they are quicker than `plan`, which is of one kernel: there is a quicker kernel for
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

    /// What shared memory or registers say about `kernel` in such blocks.
    pub(super) fn fit_reason(
        &self,
        problem: &Problem,
        kernel: &Candidate,
        blocks: &Blocks,
    ) -> Option<Reason> {
        match kernel.sums.place {
            _ if !matches!(kernel.walk, Walk::Rows) => None,
            Place::Shared | Place::Private => Some(Reason::SharedFits {
                bytes: blocks.shared_bytes,
                available: self.limits.shared_per_block,
            }),
            Place::Spread | Place::Split => Some(Reason::ClusterFits {
                cols: problem.cols,
                blocks: kernel.cluster,
                bytes: blocks.shared_bytes,
                available: self.limits.shared_per_block,
            }),
            Place::Registers => Some(Reason::ThreadLoad {
                tl: kernel.tl,
                vs: blocks.vs,
                wasted_warps: wasted_warps(
                    problem.cols,
                    blocks.vs * kernel.blocks_per_row(),
                    kernel.tl,
                ),
                registers: kernel.registers,
            }),
            Place::Global | Place::Absent => None,
        }
    }

    /// The error for `kernel` in blocks of which an SM does not hold as many as wanted.
    pub(super) fn does_not_fit(&self, kernel: &Candidate, blocks: &Blocks) -> PlanError {
        PlanError::DoesNotFit {
            kernel: kernel.name.to_string(),
            bs: blocks.bs,
            registers: kernel.registers,
            shared_bytes: blocks.shared_bytes,
            device: self.limits.name.clone(),
            limiter: blocks.occupancy.limiter,
        }
    }

    /// Puts a launch of `kernel` together with why it was chosen.
    pub(super) fn assemble(
        &self,
        kernel: &Candidate,
        launch: &Launch,
        mut reasons: Vec<Reason>,
    ) -> Plan {
        if self.model == Model::Predicted && self.limits.rates.source == RateSource::Estimated {
            reasons.push(Reason::EstimatedRates {
                device: self.limits.name.clone(),
            });
        }
        let blocks = launch.blocks;
        Plan {
            model: self.model,
            product: kernel.product,
            strategy: kernel.strategy,
            kernel: kernel.name.clone(),
            precision: kernel.precision,
            team: kernel.team,
            vs: blocks.vs,
            bs: blocks.bs,
            c: launch.c,
            tl: kernel.tl,
            rows_in_flight: kernel.rows_in_flight,
            width: kernel.width,
            grid: launch.grid,
            column_tiles: launch.column_tiles,
            // A launch that an SM holds has less shared memory than 32 bits count.
            shared_bytes: u32::try_from(blocks.shared_bytes).unwrap_or(u32::MAX),
            registers: kernel.registers,
            blocks_per_sm: blocks.occupancy.blocks_per_sm,
            warps_per_sm: blocks.occupancy.warps_per_sm,
            prediction: None,
            reasons,
            then: None,
        }
    }

    /// The error for a product that no kernel, or none that is allowed, computes.
    pub(super) fn no_kernel(&self, problem: &Problem, product: Product) -> PlanError {
        let storage = if problem.is_dense() {
            " (dense)"
        } else {
            " (sparse)"
        };
        let (forced, remedy) = if self.forced.is_empty() {
            (
                String::new(),
                "build the kernels for this device, or use another product or precision",
            )
        } else {
            (
                format!(" with {}", self.forced),
                "list the compiled variants, and force only what they have",
            )
        };
        PlanError::NoKernel {
            product,
            precision: problem.dtype,
            wanted: format!("{storage}{forced}"),
            considered: self.kernels.len(),
            remedy,
        }
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

// Whether a kernel's sums have that order.
fn adds_in(kernel: &Candidate, order: &DenseOrder) -> bool {
    let same_rows = kernel.rows_in_flight == order.rows || order.held == Held::Ring;
    let own = (kernel.held, kernel.team, kernel.tl, kernel.width);
    let wanted = (order.held, order.team.into(), order.tl, order.width);
    kernel.cluster == 1 && same_rows && own == wanted
}
