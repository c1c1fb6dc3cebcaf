//! The predicted-time model: every launch of every kernel, the fastest wins.
//!
//! Launches are weighed on the stack; only [`trials`] keeps them. Equal times go to the smaller grid. A lower bound
//! of a time is faster to compute than the time: what cannot be the fastest of its strategy by its bound is left.

use std::borrow::Cow;
use std::fmt;

use gpu_kernels::describe::{Number, Walk};
use gpu_kernels::fused::Place;
use serde::{Deserialize, Serialize};

use super::candidate::Candidate;
use super::cost::{CostModel, KernelCost};
use super::forced::Forced;
use super::geometry;
use super::judge::{Below, Fastest, Judge, Known, Weighed};
use super::launch::{Blocks, Launch, Surplus};
use super::planner::Planner;
use super::prediction::{Prediction, nanoseconds};
use super::reason::Reason;
use super::strategy::Strategy;
use super::value::Plan;
use crate::plan::error::PlanError;
use crate::plan::occupancy::RegisterRule;
use crate::plan::problem::{Problem, Product};

/// Block sizes that are tried when none is forced.
const BLOCK_SIZES: [u32; 4] = [128, 256, 512, 1_024];

/// One more for kernels with fixed-point sums, whose registers leave room for two such blocks on an SM but not for
/// two of 1,024 threads: on an H200 0.220 ms against 0.230 for n = 1,000. Those for hot columns in f64 have room for one.
const FIXED_BLOCK_SIZE: u32 = 768;

/// One launch that was weighed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// The entry of the kernel.
    pub kernel: Cow<'static, str>,
    /// What it computes.
    pub product: Product,
    /// How.
    pub strategy: Strategy,
    /// Vector size.
    pub vs: u32,
    /// Block size.
    pub bs: u32,
    /// Elements of a row per thread.
    pub tl: u32,
    /// Rows that a vector loads before it uses the first.
    pub rows_in_flight: u32,
    /// Elements per load.
    pub width: u32,
    /// Blocks of this launch on an SM.
    pub blocks_per_sm: u32,
    /// Blocks.
    pub grid: u32,
    /// Dynamic shared memory of a block, bytes.
    pub shared_bytes: u64,
    /// The predicted time and what bounds it.
    pub prediction: Prediction,
}

impl Trial {
    /// The parts of a plan by which a planner is made to choose this launch.
    pub fn forced(&self) -> Forced {
        Forced {
            strategy: Some(self.strategy),
            vs: Some(self.vs),
            bs: Some(self.bs),
            tl: Some(self.tl),
            rows_in_flight: Some(self.rows_in_flight),
            width: Some(self.width),
            blocks_per_sm: Some(self.blocks_per_sm),
        }
    }
}

/// A plan with everything that it was compared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explained {
    /// The plan.
    pub chosen: Plan,
    /// All launches that were weighed, the fastest first.
    pub candidates: Vec<Trial>,
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.chosen)?;
        writeln!(
            f,
            "{:>10}  {:<16} {:>4} {:>5} {:>3} {:>4} {:>6} {:>7} {:>10}  bound by",
            "µs", "strategy", "VS", "BS", "TL", "rows", "blocks", "grid", "in flight"
        )?;
        self.candidates.iter().try_for_each(|t| {
            writeln!(
                f,
                "{:>10.1}  {:<16} {:>4} {:>5} {:>3} {:>4} {:>6} {:>7} {:>10}  {}",
                t.prediction.total_ns as f64 / 1e3,
                t.strategy,
                t.vs,
                t.bs,
                t.tl,
                t.rows_in_flight,
                t.blocks_per_sm,
                t.grid,
                t.prediction.in_flight_bytes,
                t.prediction.bound
            )
        })
    }
}

// What was seen on the way, for the error when nothing could run.
#[derive(Default)]
struct Seen<'a> {
    launches: u64,
    misfit: Option<(&'a Candidate, Blocks)>,
    overflow: Option<PlanError>,
}

/// The plan with the least predicted time.
pub(super) fn plan(
    planner: &Planner<'_>,
    problem: &Problem,
    product: Product,
) -> Result<Plan, PlanError> {
    let mut best = Fastest::default();
    let seen = weigh(planner, problem, product, &mut best);
    let Some(chosen) = best.chosen() else {
        return Err(nothing_fits(planner, problem, product, seen));
    };
    let others = best
        .all()
        .filter(|known| known.strategy != chosen.kernel.strategy)
        .filter_map(Known::reason);
    let reasons = reasons(planner, problem, &chosen, seen.launches, others);
    Ok(assembled(planner, &chosen, reasons))
}

/// The plan with the least predicted time, if that is below this many nanoseconds: faster to find than [`plan`], as nothing
/// is told of other strategies.
pub(super) fn plan_below(
    planner: &Planner<'_>,
    problem: &Problem,
    product: Product,
    ns: u64,
) -> Option<Plan> {
    let mut below = Below { ns, held: None };
    let seen = weigh(planner, problem, product, &mut below);
    let chosen = below.held?;
    let others = std::iter::empty();
    let reasons = reasons(planner, problem, &chosen, seen.launches, others);
    Some(assembled(planner, &chosen, reasons))
}

fn assembled(planner: &Planner<'_>, chosen: &Weighed<'_>, reasons: Vec<Reason>) -> Plan {
    let plan = planner.assemble(chosen.kernel, &chosen.launch, reasons);
    Plan {
        prediction: Some(chosen.parts.prediction()),
        ..plan
    }
}

/// All launches with their times, in the order of the kernels.
pub(super) fn trials(planner: &Planner<'_>, problem: &Problem, product: Product) -> Vec<Trial> {
    let mut all = Vec::new();
    weigh(planner, problem, product, &mut all);
    all.iter().map(trial).collect()
}

fn trial(weighed: &Weighed<'_>) -> Trial {
    let Weighed {
        kernel,
        launch,
        parts,
        ..
    } = weighed;
    Trial {
        kernel: kernel.name.clone(),
        product: kernel.product,
        strategy: kernel.strategy,
        vs: launch.blocks.vs,
        bs: launch.blocks.bs,
        tl: kernel.tl,
        rows_in_flight: kernel.rows_in_flight,
        width: kernel.width,
        blocks_per_sm: launch.blocks.occupancy.blocks_per_sm,
        grid: launch.grid,
        shared_bytes: launch.blocks.shared_bytes,
        prediction: parts.prediction(),
    }
}

fn weigh<'a>(
    planner: &Planner<'a>,
    problem: &Problem,
    product: Product,
    judge: &mut impl Judge<'a>,
) -> Seen<'a> {
    let order = planner.order(problem, product);
    let model = CostModel::new(planner.limits, problem, product).in_order(order);
    let mut seen = Seen::default();
    let is_kernel = |kernel: &&Candidate| {
        let accepts = kernel.accepts(problem, product) && planner.can_launch(kernel);
        accepts && planner.suits(kernel, problem) && planner.is_promised(kernel, problem)
    };
    let kernels = planner.kernels.iter().filter(is_kernel);
    let bounded = kernels.map(|kernel| Bounded::of(planner, &model, kernel));
    let mut bounded: Vec<Bounded<'_>> = bounded.collect();
    if !judge.wants_all() {
        bounded.sort_by(|a, b| a.least().total_cmp(&b.least()));
    }
    for kernel in bounded {
        weigh_kernel(planner, &model, kernel, &mut seen, judge);
    }
    seen
}

// A kernel with what its blocks do not change, for vectors of a size; nothing where it has no such launch.
struct Bounded<'a> {
    kernel: &'a Candidate,
    known: Option<(u32, KernelCost<'a>)>,
}

impl<'a> Bounded<'a> {
    fn of(planner: &Planner<'_>, model: &CostModel<'_>, kernel: &'a Candidate) -> Self {
        let bs = block_sizes(planner, kernel, model.block_size()).next();
        let cost = |bs| {
            let vs = kernel.team.size(bs);
            let tiles = geometry::column_tiles(kernel, model.problem(), vs).ok()?;
            Some((vs, model.of_kernel(kernel, vs, tiles)))
        };
        Bounded {
            kernel,
            known: bs.and_then(cost),
        }
    }

    // Kernels that take least at best come first: most others are then left soon. In the order of the table choosing took
    // up to 68 µs on an H200's host.
    fn least(&self) -> f64 {
        self.known.map_or(f64::INFINITY, |(_, cost)| cost.least())
    }
}

// All launches of a kernel. What its blocks do not change is computed once, and is often enough to leave it.
fn weigh_kernel<'a>(
    planner: &Planner<'a>,
    model: &CostModel<'_>,
    Bounded { kernel, mut known }: Bounded<'a>,
    seen: &mut Seen<'a>,
    judge: &mut impl Judge<'a>,
) {
    let of_order = model.block_size();
    let sizes = block_sizes(planner, kernel, of_order);
    for bs in sizes.filter(|&bs| planner.forced.allows(kernel, bs)) {
        let vs = kernel.team.size(bs);
        let cost = match known {
            Some((size, cost)) if size == vs => cost,
            _ => match geometry::column_tiles(kernel, model.problem(), vs) {
                Ok(tiles) => model.of_kernel(kernel, vs, tiles),
                Err(error) => {
                    seen.overflow = Some(error);
                    continue;
                }
            },
        };
        known = Some((vs, cost));
        if !judge.wants(kernel.strategy, nanoseconds(cost.least())) {
            continue;
        }
        weigh_blocks(planner, model, (&cost, bs), seen, |launch| {
            let parts = model.parts(&cost, &launch);
            if judge.wants(kernel.strategy, parts.least_ns()) {
                let total_ns = parts.total_ns();
                judge.judge(Weighed {
                    kernel,
                    launch,
                    parts,
                    total_ns,
                });
            }
        });
    }
}

// Sums that have an order are those of one size of blocks.
fn block_sizes(
    planner: &Planner<'_>,
    kernel: &Candidate,
    of_order: Option<u32>,
) -> impl Iterator<Item = u32> + use<> {
    let forced = of_order.or(planner.forced.bs);
    let (sizes, more) = match kernel.walk {
        // What a block has in shared memory decides, or how many registers a thread has.
        Walk::EvenShares | Walk::MergePartitions | Walk::ScannedPartitions => {
            (&[][..], Some(kernel.max_block))
        }
        _ => {
            let is_fixed = kernel.sums.number == Number::Fixed;
            (&BLOCK_SIZES[..], is_fixed.then_some(FIXED_BLOCK_SIZE))
        }
    };
    let largest = planner.limits.max_threads_per_block;
    let free = sizes
        .iter()
        .copied()
        .chain(more)
        .filter(move |&bs| forced.is_none() && bs <= largest);
    free.chain(forced)
}

fn weigh_blocks<'a>(
    planner: &Planner<'a>,
    model: &CostModel<'_>,
    (cost, bs): (&KernelCost<'a>, u32),
    seen: &mut Seen<'a>,
    mut visit: impl FnMut(Launch),
) {
    let (limits, problem, surplus) = (planner.limits, model.problem(), model.surplus());
    let (kernel, windows) = (cost.kernel(), cost.windows());
    let Some((vs, shared_bytes)) = geometry::footprint(kernel, problem, (bs, windows)) else {
        return;
    };
    let held = geometry::blocks(
        limits,
        kernel,
        (vs, bs),
        shared_bytes,
        RegisterRule::Partitions,
    );
    let Some(most) = held.with_forced(planner.forced.blocks_per_sm) else {
        seen.misfit = Some((kernel, held));
        return;
    };
    let least = planner.forced.blocks_per_sm.unwrap_or(1);
    let sizes = match surplus {
        // Whether chunks come out even matters more than any other number.
        Surplus::Chunks(_) => &[1, 2, 3, 4, 5, 6][..],
        // Fewer blocks have less to add to w at the end, and leave more of the L1 cache; without sums of their own they
        // only have less in flight.
        _ if problem.is_dense() || kernel.has_own_sums() => &[1, 2, 4],
        _ => &[],
    };
    for resident in blocks_to_try(sizes, least, most.occupancy.blocks_per_sm) {
        let blocks = held.with_resident(resident);
        match geometry::spread(limits, kernel, problem, blocks, (surplus, windows)) {
            Ok(launch) => {
                seen.launches += 1;
                visit(launch);
            }
            Err(error) => seen.overflow = Some(error),
        }
    }
}

// As many as an SM holds, which is the fastest more often than not, then four blocks, two, one: what lies between, a
// larger block reaches with less to add to w at the end.
fn blocks_to_try(steps: &[u32], least: u32, most: u32) -> impl Iterator<Item = u32> {
    let steps = steps.iter().rev().copied();
    [most]
        .into_iter()
        .chain(steps.filter(move |&blocks| least <= blocks && blocks < most))
}

fn reasons(
    planner: &Planner<'_>,
    problem: &Problem,
    best: &Weighed<'_>,
    compared: u64,
    others: impl Iterator<Item = Reason>,
) -> Vec<Reason> {
    let Weighed {
        kernel,
        launch,
        parts,
        ..
    } = best;
    let prediction = parts.prediction();
    let mut reasons = vec![Reason::LeastTime {
        ns: prediction.total_ns,
        bound: prediction.bound,
        compared,
    }];
    reasons.extend(others);
    reasons.extend(planner.fit_reason(problem, kernel, &launch.blocks));
    let blocks = kernel.blocks_per_row();
    let cols = problem.cols;
    let shares_row = blocks > 1 && problem.is_dense();
    reasons.extend(shares_row.then_some(Reason::Cluster { cols, blocks }));
    let windows = launch.windows;
    let in_windows = match kernel.sums.place {
        Place::Shared => Reason::SharedWindows { cols, windows },
        _ => Reason::Windows { cols, windows },
    };
    reasons.extend((windows > 1).then_some(in_windows));
    reasons.push(Reason::Resident {
        blocks: launch.blocks.occupancy.blocks_per_sm,
        bs: launch.blocks.bs,
        warps: launch.blocks.occupancy.warps_per_sm,
        in_flight_bytes: prediction.in_flight_bytes,
    });
    reasons.push(Reason::RowsPerVector {
        rows: problem.rows,
        vectors: launch.vectors(),
        c: launch.c,
    });
    reasons
}

fn nothing_fits(
    planner: &Planner<'_>,
    problem: &Problem,
    product: Product,
    seen: Seen<'_>,
) -> PlanError {
    match (seen.overflow, seen.misfit) {
        (Some(overflow), _) => overflow,
        (None, Some((kernel, blocks))) => planner.does_not_fit(kernel, &blocks),
        (None, None) => planner.no_kernel(problem, product),
    }
}
