//! The published model for sparse matrices, and for the single products of dense ones.
//!
//! VS from the mean row, BS by the most resident warps, C so that all vectors get the same number of
//! rows. Register counts come from the candidates.

use super::candidate::{Candidate, Team};
use super::geometry;
use super::launch::{Blocks, ONE_WINDOW, Surplus};
use super::planner::Planner;
use super::reason::Reason;
use super::strategy::Strategy;
use super::value::Plan;
use crate::plan::error::PlanError;
use crate::plan::occupancy::RegisterRule;
use crate::plan::problem::{Problem, Product};

/// The vector size of the published model: 32 if μ > 32, the power of two with 2·VS ≥ μ > VS, and 1
/// if μ ≤ 2, for μ = `nnz / rows`.
///
/// ```
/// use warpfuse::plan::fused::vector_size;
/// assert_eq!(vector_size(5_000_000, 500_000), 8);
/// assert_eq!([vector_size(2, 1), vector_size(3, 1), vector_size(33, 1)], [1, 2, 32]);
/// ```
pub fn vector_size(nnz: u64, rows: u64) -> u32 {
    let (nnz, rows) = (u128::from(nnz), u128::from(rows));
    let above = |vs: u32| nnz > u128::from(vs) * rows;
    [32, 16, 8, 4, 2]
        .into_iter()
        .find(|&vs| above(vs))
        .unwrap_or(1)
}

/// The plan for a sparse product, or for one product of a dense matrix.
pub(super) fn plan(
    planner: &Planner<'_>,
    problem: &Problem,
    product: Product,
) -> Result<Plan, PlanError> {
    let nnz = problem
        .nnz
        .unwrap_or_else(|| problem.rows.saturating_mul(problem.cols));
    let wanted = vector_size(nnz, problem.rows);
    let mut reasons = vec![Reason::MeanRow {
        nnz,
        rows: problem.rows,
        vs: wanted,
    }];
    let mut failure = None;
    for &strategy in strategies(problem, product) {
        let kernels = nearest(planner, problem, product, strategy, wanted);
        match most_warps(planner, problem, &kernels) {
            Ok(scan) => {
                reasons.extend(nearest_reason(planner, wanted, &scan));
                return finish(planner, problem, &scan, reasons);
            }
            Err(Some((kernel, blocks))) => {
                reasons.extend(too_small(planner, problem, kernel, &blocks));
                failure = Some(planner.does_not_fit(kernel, &blocks));
            }
            Err(None) => {}
        }
    }
    Err(failure.unwrap_or_else(|| planner.no_kernel(problem, product)))
}

// In the order of preference.
fn strategies(problem: &Problem, product: Product) -> &'static [Strategy] {
    match (product, problem.is_dense()) {
        (Product::Forward, _) => &[Strategy::RowDot],
        (_, false) => &[Strategy::SharedW, Strategy::GlobalW],
        (_, true) => &[Strategy::DenseRegisters, Strategy::DenseColumns],
    }
}

// The kernels of a strategy whose vectors are nearest to the wanted size; of two equally near sizes the
// longer.
fn nearest<'a>(
    planner: &Planner<'a>,
    problem: &Problem,
    product: Product,
    strategy: Strategy,
    wanted: u32,
) -> Vec<&'a Candidate> {
    let distance = |kernel: &Candidate| match kernel.team {
        Team::Lanes(lanes) => (
            lanes.max(1).ilog2().abs_diff(wanted.ilog2()),
            u32::MAX - lanes,
        ),
        Team::Block => (u32::MAX, 0),
    };
    let usable = |kernel: &&Candidate| {
        kernel.strategy == strategy
            && kernel.accepts(problem, product)
            && kernel.holds_row(problem.cols, kernel.team.size(kernel.max_block))
            && planner.forced.allows_team(kernel.team)
            && planner.forced.allows_kernel(kernel)
    };
    let kernels: Vec<_> = planner.kernels.iter().filter(usable).collect();
    let least = kernels.iter().map(|kernel| distance(kernel)).min();
    kernels
        .into_iter()
        .filter(|kernel| Some(distance(kernel)) == least)
        .collect()
}

/// The outcome of the scan over block sizes.
#[derive(Clone, Copy)]
pub(super) struct Scan<'a> {
    pub kernel: &'a Candidate,
    pub blocks: Blocks,
    /// The largest smaller block with as many warps.
    pub tie: Option<u32>,
}

impl Scan<'_> {
    fn rank(&self) -> (u32, u32) {
        (self.blocks.occupancy.warps_per_sm, self.blocks.bs)
    }
}

// Scans the block sizes: the most resident warps, on a tie the larger block. When nothing fits, the
// first launch that did not.
fn most_warps<'a>(
    planner: &Planner<'a>,
    problem: &Problem,
    kernels: &[&'a Candidate],
) -> Result<Scan<'a>, Option<(&'a Candidate, Blocks)>> {
    let mut best: Option<Scan<'a>> = None;
    let mut misfit = None;
    for &kernel in kernels {
        let sizes = geometry::block_sizes(planner.limits, kernel.max_block);
        for bs in sizes.filter(|&bs| planner.forced.allows(kernel, bs)) {
            let Some(held) = blocks(planner, problem, kernel, bs) else {
                continue;
            };
            let Some(blocks) = held.with_forced(planner.forced.blocks_per_sm) else {
                misfit = misfit.or(Some((kernel, held)));
                continue;
            };
            best = better(
                best,
                Scan {
                    kernel,
                    blocks,
                    tie: None,
                },
            );
        }
    }
    best.ok_or(misfit)
}

fn better<'a>(held: Option<Scan<'a>>, scan: Scan<'a>) -> Option<Scan<'a>> {
    match held {
        Some(held) if held.rank() >= scan.rank() => Some(held),
        Some(held) if held.rank().0 == scan.rank().0 => Some(Scan {
            tie: Some(held.blocks.bs),
            ..scan
        }),
        _ => Some(scan),
    }
}

// Beside w, the source's kernel keeps a partial sum per vector in shared memory.
fn blocks(planner: &Planner<'_>, problem: &Problem, kernel: &Candidate, bs: u32) -> Option<Blocks> {
    let (vs, needed) = geometry::footprint(kernel, problem, (bs, ONE_WINDOW))?;
    let elements = problem.cols.saturating_add(u64::from(bs / vs));
    let published = match kernel.strategy {
        Strategy::SharedW => elements.saturating_mul(u64::from(problem.dtype.bytes())),
        _ => 0,
    };
    let shared_bytes = published.max(needed);
    let rule = RegisterRule::RoundedBlocks;
    Some(geometry::blocks(
        planner.limits,
        kernel,
        (vs, bs),
        shared_bytes,
        rule,
    ))
}

fn nearest_reason(planner: &Planner<'_>, wanted: u32, scan: &Scan<'_>) -> Option<Reason> {
    let vs = scan.blocks.vs;
    let lanes = matches!(scan.kernel.team, Team::Lanes(_));
    (lanes && vs != wanted && planner.forced.vs.is_none())
        .then_some(Reason::NearestVector { wanted, vs })
}

fn too_small(
    planner: &Planner<'_>,
    problem: &Problem,
    kernel: &Candidate,
    blocks: &Blocks,
) -> Option<Reason> {
    (kernel.strategy == Strategy::SharedW).then_some(Reason::SharedTooSmall {
        cols: problem.cols,
        bytes: blocks.shared_bytes,
        available: planner.limits.shared_per_block,
    })
}

/// The plan of a scan's outcome: C rows for each vector, and a grid that fills the device.
pub(super) fn finish(
    planner: &Planner<'_>,
    problem: &Problem,
    scan: &Scan<'_>,
    mut reasons: Vec<Reason>,
) -> Result<Plan, PlanError> {
    let Scan {
        kernel,
        blocks,
        tie,
    } = *scan;
    let launch = geometry::spread(
        planner.limits,
        kernel,
        problem,
        blocks,
        (Surplus::Keep, ONE_WINDOW),
    )?;
    let warps = blocks.occupancy.warps_per_sm;
    reasons.extend(planner.fit_reason(problem, kernel, &blocks));
    reasons.push(Reason::MostWarps {
        bs: blocks.bs,
        warps,
        max_warps: planner.limits.max_warps_per_sm,
        limiter: blocks.occupancy.limiter,
    });
    reasons.extend(tie.map(|bs| Reason::Tie { bs, warps }));
    let vectors = launch.vectors();
    reasons.push(Reason::RowsPerVector {
        rows: problem.rows,
        vectors,
        c: launch.c,
    });
    Ok(planner.assemble(kernel, &launch, reasons))
}
