//! The published model for sparse matrices, and for the single products of dense ones.
//!
//! VS from the mean row, BS by the most resident warps, C so that all vectors get the same number of
//! rows (`pattern: launch-parameter model`). Register counts come from the candidates.

use super::candidate::{Candidate, Strategy, Team};
use super::geometry::{self, Launch, Surplus};
use super::planner::Planner;
use super::problem::{Problem, Product};
use super::reason::Reason;
use super::value::Plan;
use crate::plan::error::PlanError;
use crate::plan::occupancy::{Occupancy, RegisterRule};

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
        let kernels = nearest(planner, problem, product, (strategy, wanted));
        match most_warps(planner, problem, &kernels) {
            Ok(scan) => {
                explain(planner, problem, wanted, &scan, &mut reasons);
                return finish(planner, problem, &scan, reasons);
            }
            Err(Some(misfit)) => {
                reasons.extend(misfit.reason(planner, problem));
                failure = Some(misfit.error(planner));
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

// The kernels of a strategy whose vectors are nearest to the wanted size; the longer of two equally near.
fn nearest<'a>(
    planner: &Planner<'a>,
    problem: &Problem,
    product: Product,
    (strategy, wanted): (Strategy, u32),
) -> Vec<&'a Candidate> {
    let usable = |k: &&Candidate| {
        k.strategy == strategy && k.accepts(problem, product) && planner.forced.allows_kernel(k)
    };
    let distance = |k: &Candidate| match k.team {
        Team::Lanes(lanes) => (
            lanes.max(1).ilog2().abs_diff(wanted.ilog2()),
            u32::MAX - lanes,
        ),
        Team::Block => (u32::MAX, 0),
    };
    let wanted_team = |k: &&Candidate| match (planner.forced.vs, k.team) {
        (Some(vs), Team::Lanes(lanes)) => vs == lanes,
        _ => k.holds_row(problem.cols, k.team.size(k.max_block)),
    };
    let kernels: Vec<_> = planner
        .kernels
        .iter()
        .filter(usable)
        .filter(wanted_team)
        .collect();
    let least = kernels.iter().map(|k| distance(k)).min();
    kernels
        .into_iter()
        .filter(|k| Some(distance(k)) == least)
        .collect()
}

/// The outcome of the scan over block sizes.
pub(super) struct Scan<'a> {
    pub kernel: &'a Candidate,
    pub vs: u32,
    pub bs: u32,
    pub shared_bytes: u64,
    pub occupancy: Occupancy,
    /// The largest smaller block with as many warps.
    pub tie: Option<u32>,
}

/// The smallest block that still did not fit.
struct Misfit<'a> {
    kernel: &'a Candidate,
    bs: u32,
    shared_bytes: u64,
    occupancy: Occupancy,
}

impl Misfit<'_> {
    fn reason(&self, planner: &Planner<'_>, problem: &Problem) -> Option<Reason> {
        let available = planner.limits.shared_per_block;
        (self.kernel.strategy == Strategy::SharedW).then_some(Reason::SharedTooSmall {
            cols: problem.cols,
            bytes: self.shared_bytes,
            available,
        })
    }

    fn error(&self, planner: &Planner<'_>) -> PlanError {
        PlanError::DoesNotFit {
            kernel: self.kernel.name.to_string(),
            bs: self.bs,
            registers: self.kernel.registers,
            shared_bytes: self.shared_bytes,
            device: planner.limits.name.clone(),
            limiter: self.occupancy.limiter,
        }
    }
}

// Scans the block sizes: the most resident warps, on a tie the larger block.
fn most_warps<'a>(
    planner: &Planner<'a>,
    problem: &Problem,
    kernels: &[&'a Candidate],
) -> Result<Scan<'a>, Option<Misfit<'a>>> {
    let mut best: Option<Scan<'a>> = None;
    let mut misfit: Option<Misfit<'a>> = None;
    for &kernel in kernels {
        let sizes = geometry::block_sizes(planner.limits, kernel.max_block);
        for bs in sizes.filter(|&bs| planner.forced.allows(kernel, bs)) {
            let Some((vs, bytes)) = geometry::footprint(kernel, problem, bs) else {
                continue;
            };
            let shared_bytes = published_shared(kernel, problem, (vs, bs)).max(bytes);
            let held = geometry::resident(
                planner.limits,
                kernel,
                bs,
                shared_bytes,
                RegisterRule::RoundedBlocks,
            );
            let Some(occupancy) = forced_blocks(held, planner.forced.blocks_per_sm) else {
                misfit = misfit.or(Some(Misfit {
                    kernel,
                    bs,
                    shared_bytes,
                    occupancy: held,
                }));
                continue;
            };
            let tie = match &best {
                Some(b) if b.occupancy.warps_per_sm > occupancy.warps_per_sm => continue,
                Some(b) if b.occupancy.warps_per_sm == occupancy.warps_per_sm && b.bs >= bs => {
                    continue;
                }
                Some(b) if b.occupancy.warps_per_sm == occupancy.warps_per_sm => Some(b.bs),
                _ => None,
            };
            best = Some(Scan {
                kernel,
                vs,
                bs,
                shared_bytes,
                occupancy,
                tie,
            });
        }
    }
    best.ok_or(misfit)
}

// The source's kernel keeps a partial sum per vector beside w.
fn published_shared(kernel: &Candidate, problem: &Problem, (vs, bs): (u32, u32)) -> u64 {
    if kernel.strategy != Strategy::SharedW {
        return 0;
    }
    let elements = problem.cols.saturating_add(u64::from(bs / vs));
    elements.saturating_mul(u64::from(problem.dtype.bytes()))
}

/// What an SM holds when the user fixes the number of blocks; `None` when that does not fit.
pub(super) fn forced_blocks(held: Occupancy, forced: Option<u32>) -> Option<Occupancy> {
    let blocks = forced.unwrap_or(held.blocks_per_sm);
    if blocks == 0 || blocks > held.blocks_per_sm {
        return None;
    }
    let warps_per_sm = held.warps_per_sm / held.blocks_per_sm * blocks;
    Some(Occupancy {
        blocks_per_sm: blocks,
        warps_per_sm,
        limiter: held.limiter,
    })
}

fn explain(
    planner: &Planner<'_>,
    problem: &Problem,
    wanted: u32,
    scan: &Scan<'_>,
    reasons: &mut Vec<Reason>,
) {
    if scan.vs != wanted
        && planner.forced.vs.is_none()
        && matches!(scan.kernel.team, Team::Lanes(_))
    {
        reasons.push(Reason::NearestVector {
            wanted,
            vs: scan.vs,
        });
    }
    if scan.kernel.strategy == Strategy::SharedW {
        let available = planner.limits.shared_per_block;
        reasons.push(Reason::SharedFits {
            bytes: scan.shared_bytes,
            available,
        });
    }
    if scan.kernel.strategy == Strategy::DenseRegisters {
        reasons.push(Reason::ThreadLoad {
            tl: scan.kernel.tl,
            vs: scan.vs,
            wasted_warps: super::wasted_warps(problem.cols, scan.vs, scan.kernel.tl),
            registers: scan.kernel.registers,
        });
    }
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
        vs,
        bs,
        shared_bytes,
        occupancy,
        tie,
    } = *scan;
    let (grid, column_tiles, c) = geometry::spread(
        planner.limits,
        kernel,
        problem,
        (vs, bs),
        occupancy.blocks_per_sm,
        Surplus::Keep,
    )?;
    let launch = Launch {
        vs,
        bs,
        grid,
        column_tiles,
        c,
        shared_bytes,
        occupancy,
    };
    reasons.push(Reason::MostWarps {
        bs,
        warps: occupancy.warps_per_sm,
        max_warps: planner.limits.max_warps_per_sm,
        limiter: occupancy.limiter,
    });
    reasons.extend(tie.map(|smaller| Reason::Tie {
        bs: smaller,
        warps: occupancy.warps_per_sm,
    }));
    reasons.push(Reason::RowsPerVector {
        rows: problem.rows,
        vectors: launch.vectors(),
        c,
    });
    Ok(planner.assemble(kernel, &launch, reasons))
}
