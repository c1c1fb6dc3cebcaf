//! The way in: what is known about a device, requested plans.

use gpu_kernels::describe::{Number, Walk};
use gpu_kernels::fused::fixed_point::lanes_per_row;
use gpu_kernels::fused::{DenseOrder, Held};

use super::candidate::{Candidate, Team};
use super::even::{tells_frequent, windows};
use super::forced::Forced;
use super::geometry::wasted_warps;
use super::launch::{Blocks, Launch};
use super::reason::Reason;
use super::scanned;
use super::strategy::Strategy;
use super::value::{Model, Plan};
use crate::plan::error::PlanError;
use crate::plan::form::Maker;
use crate::plan::limits::DeviceLimits;
use crate::plan::problem::{Problem, Product, Summation};
use crate::plan::rates::RateSource;
use crate::plan::tuned::Table;

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
    pub(super) model: Model,
    pub(super) summation: Summation,
    pub(super) tuned: Option<&'a Table>,
    pub(super) maker: Maker,
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
            tuned: None,
            maker: Maker::Host,
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

    /// The same with measured launches. The predicted model takes the one of a problem's class, where the user fixes nothing and
    /// sums need not repeat bit by bit.
    pub fn tuned(self, tuned: Option<&'a Table>) -> Self {
        Self { tuned, ..self }
    }

    /// The same where this maker makes further forms.
    pub fn maker(self, maker: Maker) -> Self {
        Self { maker, ..self }
    }

    /// Streaming reads of the device's memory, 10⁹ bytes per second.
    pub fn stream_gbs(&self) -> f64 {
        self.limits.rates.stream_gbs
    }

    /// Seconds to read and write `bytes` in order while a word is read for each of `gathers`, from `from` bytes of them.
    pub(in crate::plan) fn gathered_seconds(&self, bytes: u64, (gathers, from): (u64, u64)) -> f64 {
        let rates = &self.limits.rates;
        let in_order = bytes as f64 / rates.stream_gbs;
        in_order.max(gathers as f64 / rates.gather.at(from as f64)) / 1e9
    }

    /// What is promised of the bits.
    pub(crate) fn sums(&self) -> Summation {
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
        let is_of_lanes = match kernel.walk {
            Walk::Rows => kernel.team == team,
            // Of `Xᵀ·p` lanes add up nothing.
            Walk::EvenShares => kernel.team == team || kernel.product == Product::Transposed,
            _ => false,
        };
        is_free || has_order && is_of_lanes
    }

    /// Whether X has what `kernel` is made for, or it is forced. Where no column is frequent all integers go to global memory, from rows
    /// as from even shares, and the model does not tell the two apart, unless even shares add to a window of columns at a time.
    pub(super) fn suits(&self, kernel: &Candidate, problem: &Problem) -> bool {
        let is_forced = self.forced.strategy == Some(kernel.strategy);
        let needs_frequent = kernel.strategy == Strategy::FixedEvenFrequent;
        let in_windows = || windows(self.limits, kernel, problem) > 1;
        let finds_columns = !needs_frequent || tells_frequent(problem) || in_windows();
        let finds_rows = kernel.walk != Walk::ScannedPartitions || scanned::suits(kernel, problem);
        is_forced || finds_columns && finds_rows
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

    /// Whether the device can launch `kernel` at all.
    pub(super) fn can_launch(&self, kernel: &Candidate) -> bool {
        kernel.cluster == 1 || self.limits.has_clusters()
    }

    /// What shared memory or registers say about `kernel` in such blocks.
    pub(super) fn fit_reason(
        &self,
        problem: &Problem,
        kernel: &Candidate,
        blocks: &Blocks,
    ) -> Option<Reason> {
        if kernel.walk != Walk::Rows || !kernel.has_own_sums() {
            return None;
        }
        let (bytes, available) = (blocks.shared_bytes, self.limits.shared_per_block);
        let vs = blocks.vs * kernel.blocks_per_row();
        Some(match kernel.cluster {
            _ if kernel.keeps_row() => Reason::ThreadLoad {
                tl: kernel.tl,
                vs: blocks.vs,
                wasted_warps: wasted_warps(problem.cols, vs, kernel.tl),
                registers: kernel.registers,
            },
            ..=1 => Reason::SharedFits { bytes, available },
            _ => Reason::ClusterFits {
                cols: problem.cols,
                blocks: kernel.cluster,
                bytes,
                available,
            },
        })
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
            windows: launch.windows,
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

// Whether a kernel's sums have that order.
fn adds_in(kernel: &Candidate, order: &DenseOrder) -> bool {
    let same_rows = kernel.rows_in_flight == order.rows || order.held == Held::Ring;
    let own = (kernel.held, kernel.team, kernel.tl, kernel.width);
    let wanted = (order.held, order.team.into(), order.tl, order.width);
    kernel.cluster == 1 && same_rows && own == wanted
}
