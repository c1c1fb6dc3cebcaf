//! The predicted-time model: every launch of every kernel, the quickest wins.
//!
//! Launches are weighed on the stack; only [`trials`] keeps them. Equal times go to the smaller grid.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::candidate::{Candidate, Strategy};
use super::cost::{CostModel, Prediction};
use super::geometry::{self, Launch, Surplus};
use super::planner::Planner;
use super::problem::{Problem, Product};
use super::reason::Reason;
use super::value::Plan;
use crate::plan::error::PlanError;
use crate::plan::occupancy::{Occupancy, RegisterRule};

/// Block sizes that are tried when none is forced.
const BLOCK_SIZES: [u32; 4] = [128, 256, 512, 1_024];

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
    /// Blocks of this launch on an SM.
    pub blocks_per_sm: u32,
    /// Blocks.
    pub grid: u32,
    /// Dynamic shared memory of a block, bytes.
    pub shared_bytes: u64,
    /// The predicted time and what bounds it.
    pub prediction: Prediction,
}

/// A plan with everything that it was compared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explained {
    /// The plan.
    pub chosen: Plan,
    /// All launches that were weighed, the quickest first.
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

// A launch on the stack: which kernel, how, how long.
#[derive(Clone, Copy)]
struct Weighed<'a> {
    kernel: &'a Candidate,
    launch: Launch,
    prediction: Prediction,
}

impl Weighed<'_> {
    fn rank(&self) -> (u64, u32) {
        (self.prediction.total_ns, self.launch.grid)
    }
}

// What was seen on the way, for the error when nothing could run.
#[derive(Default)]
struct Seen<'a> {
    launches: u64,
    too_large: Option<(&'a Candidate, u32, u64, Occupancy)>,
}

/// The plan with the least predicted time.
pub(super) fn plan(
    planner: &Planner<'_>,
    problem: &Problem,
    product: Product,
) -> Result<Plan, PlanError> {
    let mut best: Option<Weighed<'_>> = None;
    // The best of each other strategy, for the reasons: as many slots as one product has strategies.
    let mut others: [Option<Weighed<'_>>; 4] = [None; 4];
    let seen = weigh(planner, problem, product, |weighed| {
        let slot = others
            .iter_mut()
            .find(|o| o.is_none_or(|o| o.kernel.strategy == weighed.kernel.strategy));
        if let Some(slot) = slot
            && slot.is_none_or(|held| weighed.rank() < held.rank())
        {
            *slot = Some(weighed);
        }
        if best.is_none_or(|held| weighed.rank() < held.rank()) {
            best = Some(weighed);
        }
    })?;
    let Some(best) = best else {
        return Err(nothing_fits(planner, problem, product, &seen));
    };
    let runners_up = others
        .into_iter()
        .flatten()
        .filter(|o| o.kernel.strategy != best.kernel.strategy);
    let reasons = reasons(planner, problem, &best, seen.launches, runners_up);
    let mut plan = planner.assemble(best.kernel, &best.launch, reasons);
    plan.prediction = Some(best.prediction);
    Ok(plan)
}

/// All launches with their times, in the order of the kernels.
pub(super) fn trials(
    planner: &Planner<'_>,
    problem: &Problem,
    product: Product,
) -> Result<Vec<Trial>, PlanError> {
    let mut trials = Vec::new();
    weigh(planner, problem, product, |weighed| {
        let Weighed {
            kernel,
            launch,
            prediction,
        } = weighed;
        trials.push(Trial {
            kernel: kernel.name.clone(),
            product: kernel.product,
            strategy: kernel.strategy,
            vs: launch.vs,
            bs: launch.bs,
            tl: kernel.tl,
            rows_in_flight: kernel.rows_in_flight,
            blocks_per_sm: launch.occupancy.blocks_per_sm,
            grid: launch.grid,
            shared_bytes: launch.shared_bytes,
            prediction,
        });
    })?;
    Ok(trials)
}

fn weigh<'a>(
    planner: &Planner<'a>,
    problem: &Problem,
    product: Product,
    mut visit: impl FnMut(Weighed<'a>),
) -> Result<Seen<'a>, PlanError> {
    let model = CostModel::new(planner.limits, problem, product);
    let mut seen = Seen::default();
    let forced_size = planner.forced.bs.into_iter();
    let sizes = if planner.forced.bs.is_some() {
        [].iter()
    } else {
        BLOCK_SIZES.iter()
    };
    let sizes = forced_size.chain(
        sizes
            .copied()
            .filter(|&bs| bs <= planner.limits.max_threads_per_block),
    );
    for kernel in planner
        .kernels
        .iter()
        .filter(|k| k.accepts(problem, product))
    {
        for bs in sizes
            .clone()
            .filter(|&bs| planner.forced.allows(kernel, bs))
        {
            weigh_blocks(
                planner,
                problem,
                &model,
                (kernel, bs),
                &mut seen,
                &mut visit,
            )?;
        }
    }
    Ok(seen)
}

fn weigh_blocks<'a>(
    planner: &Planner<'a>,
    problem: &Problem,
    model: &CostModel<'_>,
    (kernel, bs): (&'a Candidate, u32),
    seen: &mut Seen<'a>,
    visit: &mut impl FnMut(Weighed<'a>),
) -> Result<(), PlanError> {
    let limits = planner.limits;
    let Some((vs, shared_bytes)) = geometry::footprint(kernel, problem, bs) else {
        return Ok(());
    };
    let held = geometry::resident(limits, kernel, bs, shared_bytes, RegisterRule::Partitions);
    if held.blocks_per_sm == 0 {
        seen.too_large = Some((kernel, bs, shared_bytes, held));
        return Ok(());
    }
    let warps = held.warps_per_sm / held.blocks_per_sm;
    for blocks_per_sm in blocks_to_try(held.blocks_per_sm, planner.forced.blocks_per_sm) {
        let (grid, column_tiles, c) = geometry::spread(
            limits,
            kernel,
            problem,
            (vs, bs),
            blocks_per_sm,
            Surplus::Drop,
        )?;
        let occupancy = Occupancy {
            blocks_per_sm,
            warps_per_sm: blocks_per_sm * warps,
            ..held
        };
        let launch = Launch {
            vs,
            bs,
            grid,
            column_tiles,
            c,
            shared_bytes,
            occupancy,
        };
        seen.launches += 1;
        visit(Weighed {
            kernel,
            launch,
            prediction: model.predict(kernel, &launch, blocks_per_sm),
        });
    }
    Ok(())
}

// One to four blocks, then doublings, then as many as an SM holds; a forced number alone if it fits.
fn blocks_to_try(held: u32, forced: Option<u32>) -> impl Iterator<Item = u32> {
    let free = [1, 2, 3, 4, 6, 8, 12, 16]
        .into_iter()
        .filter(move |&blocks| blocks < held)
        .chain([held]);
    free.filter(move |_| forced.is_none())
        .chain(forced.filter(|&blocks| (1..=held).contains(&blocks)))
}

fn reasons<'a>(
    planner: &Planner<'_>,
    problem: &Problem,
    best: &Weighed<'_>,
    compared: u64,
    runners_up: impl Iterator<Item = Weighed<'a>>,
) -> Vec<Reason> {
    let Weighed {
        kernel,
        launch,
        prediction,
    } = best;
    let mut reasons = vec![Reason::LeastTime {
        ns: prediction.total_ns,
        bound: prediction.bound,
        compared,
    }];
    reasons.extend(runners_up.map(|o| Reason::RunnerUp {
        strategy: o.kernel.strategy,
        ns: o.prediction.total_ns,
        bound: o.prediction.bound,
    }));
    if kernel.strategy == Strategy::SharedW {
        let available = planner.limits.shared_per_block;
        reasons.push(Reason::SharedFits {
            bytes: launch.shared_bytes,
            available,
        });
    }
    if kernel.strategy == Strategy::DenseRegisters {
        let wasted_warps = super::wasted_warps(problem.cols, launch.vs, kernel.tl);
        let registers = kernel.registers;
        reasons.push(Reason::ThreadLoad {
            tl: kernel.tl,
            vs: launch.vs,
            wasted_warps,
            registers,
        });
    }
    reasons.push(Reason::Resident {
        blocks: launch.occupancy.blocks_per_sm,
        bs: launch.bs,
        warps: launch.occupancy.warps_per_sm,
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
    seen: &Seen<'_>,
) -> PlanError {
    match seen.too_large {
        Some((kernel, bs, shared_bytes, held)) => PlanError::DoesNotFit {
            kernel: kernel.name.to_string(),
            bs,
            registers: kernel.registers,
            shared_bytes,
            device: planner.limits.name.clone(),
            limiter: held.limiter,
        },
        None => planner.no_kernel(problem, product),
    }
}
