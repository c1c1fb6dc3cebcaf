//! The published model of the dense fused kernel.
//!
//! The smallest block without wasted registers (128 threads) keeps barriers cheap; the elements per
//! thread TL are those that leave the most warps resident, less the warps of a vector that have
//! nothing to load. Up to a warp of columns needs no barrier: the largest block, one element a thread.

use std::cmp::Reverse;

use super::candidate::{Candidate, Team};
use super::geometry::{self, wasted_warps};
use super::launch::ONE_WINDOW;
use super::planner::Planner;
use super::published::{Scan, finish};
use super::reason::Reason;
use super::strategy::Strategy;
use super::value::Plan;
use crate::plan::error::PlanError;
use crate::plan::occupancy::RegisterRule;
use crate::plan::problem::{Problem, Product};

const WARP: u64 = 32;

/// The block sizes to try, in order; the model names the first, the others are for kernels whose
/// registers or rows do not fit it.
const USUAL: [u32; 4] = [128, 256, 512, 1_024];
const NARROW: [u32; 4] = [1_024, 512, 256, 128];

/// The vector size of the published dense model: a whole block if `cols / tl` exceeds a warp, else the
/// smallest power of two with `vs · tl ≥ cols`.
///
/// ```
/// use warpfuse::plan::fused::dense_vector_size;
/// assert_eq!(dense_vector_size(200, 2, 128), 128);
/// assert_eq!(dense_vector_size(200, 7, 128), 32);
/// assert_eq!(dense_vector_size(32, 2, 128), 16);
/// ```
pub fn dense_vector_size(cols: u64, tl: u32, block_size: u32) -> u32 {
    let tl = u64::from(tl.max(1));
    if cols > WARP * tl {
        return block_size;
    }
    // At most 32 by the test above.
    let lanes = cols.div_ceil(tl).max(1).next_power_of_two();
    u32::try_from(lanes).unwrap_or(32)
}

// Whether a kernel's vectors are those that the model wants, or any that hold a row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fit {
    Published,
    Any,
}

/// The plan for `product` of a dense matrix.
pub(super) fn plan(
    planner: &Planner<'_>,
    problem: &Problem,
    product: Product,
) -> Result<Plan, PlanError> {
    if product != Product::Fused {
        return super::published::plan(planner, problem, product);
    }
    let narrow = problem.cols <= WARP;
    let usual = if narrow { NARROW } else { USUAL };
    let sizes = usual
        .into_iter()
        .filter(|_| planner.forced.bs.is_none())
        .chain(planner.forced.bs);
    let attempts = [Fit::Published, Fit::Any].into_iter();
    let mut attempts = attempts.flat_map(|fit| sizes.clone().map(move |bs| (fit, bs)));
    let best = attempts.find_map(|(fit, bs)| best_load(planner, problem, bs, fit));
    let Some(scan) = best else {
        return Err(planner.no_kernel(problem, product));
    };
    let reason = Reason::Narrow { cols: problem.cols };
    let reasons = if narrow { vec![reason] } else { vec![] };
    finish(planner, problem, &scan, reasons)
}

// The kernel with the most warps left; on a tie the larger TL, whose vectors are shorter. Up to a warp
// of columns the smallest TL counts first.
fn best_load<'a>(planner: &Planner<'a>, problem: &Problem, bs: u32, fit: Fit) -> Option<Scan<'a>> {
    let kernels = planner.kernels.iter().filter(|kernel| {
        kernel.strategy == Strategy::DenseRegisters
            && kernel.accepts(problem, Product::Fused)
            && planner.forced.allows(kernel, bs)
    });
    let scans = kernels.filter_map(|kernel| scan(planner, problem, kernel, bs, fit));
    scans.max_by_key(|scan| {
        let tl = scan.kernel.tl;
        let wasted = wasted_warps(problem.cols, scan.blocks.vs, tl);
        let warps = i64::from(scan.blocks.occupancy.warps_per_sm);
        let left = warps.saturating_sub_unsigned(wasted);
        let first = if problem.cols <= WARP {
            Reverse(tl)
        } else {
            Reverse(0)
        };
        (first, left, tl, Reverse(scan.kernel.registers))
    })
}

fn scan<'a>(
    planner: &Planner<'a>,
    problem: &Problem,
    kernel: &'a Candidate,
    bs: u32,
    fit: Fit,
) -> Option<Scan<'a>> {
    let wanted = if problem.cols > WARP * u64::from(kernel.tl) {
        Team::Block
    } else {
        Team::Lanes(dense_vector_size(problem.cols, kernel.tl, bs))
    };
    if fit == Fit::Published && kernel.team != wanted {
        return None;
    }
    let (vs, shared_bytes) = geometry::footprint(kernel, problem, (bs, ONE_WINDOW))?;
    let rule = RegisterRule::RoundedBlocks;
    let held = geometry::blocks(planner.limits, kernel, (vs, bs), shared_bytes, rule);
    let blocks = held.with_forced(planner.forced.blocks_per_sm)?;
    Some(Scan {
        kernel,
        blocks,
        tie: None,
    })
}
