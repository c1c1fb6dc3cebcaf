//! From a kernel, a block size and a number of blocks per SM to the numbers of a launch.

use gpu_kernels::describe::Walk;
use gpu_kernels::fused::Held;

use super::candidate::Candidate;
use super::launch::{Blocks, Launch, Surplus};
use super::{balanced, even, hot, scanned};
use crate::plan::error::PlanError;
use crate::plan::limits::{DeviceLimits, MAX_GRID};
use crate::plan::occupancy::{RegisterRule, Usage, occupancy_with};
use crate::plan::problem::Problem;

/// The block sizes of the published scan: 32, 64, … up to `max`.
pub(super) fn block_sizes(
    limits: &DeviceLimits,
    max: u32,
) -> impl DoubleEndedIterator<Item = u32> + use<> {
    let warp = limits.warp_size.max(1);
    let largest = max.min(limits.max_threads_per_block);
    (1..=largest / warp).map(move |warps| warps * warp)
}

/// Warps of a vector of `vs` threads with `tl` elements each that have nothing to load: `⌊(vs·tl − cols)/32⌋`.
///
/// ```
/// use warpfuse::plan::fused::wasted_warps;
/// assert_eq!((wasted_warps(200, 128, 2), wasted_warps(200, 32, 7)), (1, 0));
/// ```
pub fn wasted_warps(cols: u64, vs: u32, tl: u32) -> u64 {
    (u64::from(vs) * u64::from(tl)).saturating_sub(cols) / 32
}

/// What `kernel` needs on `problem` in blocks of `bs` threads that add to this number of windows of columns: the vector size and
/// shared memory.
///
/// `None` when the kernel cannot run so at all: vectors that do not divide the block, or a row that
/// registers do not hold.
pub(super) fn footprint(
    kernel: &Candidate,
    problem: &Problem,
    (bs, windows): (u32, u32),
) -> Option<(u32, u64)> {
    let vs = kernel.team.size(bs);
    let is_possible = match kernel.walk {
        Walk::MergePartitions | Walk::ScannedPartitions => bs == kernel.max_block,
        _ => true,
    };
    if !is_possible {
        return None;
    }
    let even = bs >= vs && bs.is_multiple_of(vs) && bs <= kernel.max_block;
    // Whole rows are kept with what lies between them.
    let width = match (kernel.walk, kernel.held) {
        (Walk::EvenShares, _) => problem.cols.div_ceil(u64::from(windows.max(1))),
        (_, Held::Tiles) => problem.pitch,
        _ => problem.cols,
    };
    (even && kernel.holds_row(problem.cols, vs)).then(|| (vs, kernel.shared.bytes(width, bs, vs)))
}

/// How many blocks of `bs` threads with `shared_bytes` an SM holds.
pub(super) fn blocks(
    limits: &DeviceLimits,
    kernel: &Candidate,
    (vs, bs): (u32, u32),
    shared_bytes: u64,
    rule: RegisterRule,
) -> Blocks {
    let usage = Usage {
        block_size: bs,
        registers: kernel.registers,
        shared_bytes,
    };
    Blocks {
        vs,
        bs,
        shared_bytes,
        occupancy: occupancy_with(limits, usage, rule),
    }
}

/// Tiles of columns that the grid is divided into: one, but for [`Walk::ColumnTiles`], and for clusters that share a
/// row, of which each block owns one.
pub(super) fn column_tiles(
    kernel: &Candidate,
    problem: &Problem,
    vs: u32,
) -> Result<u32, PlanError> {
    if kernel.walk != Walk::ColumnTiles {
        return Ok(kernel.blocks_per_row());
    }
    let tile = u64::from(vs.max(1)) * u64::from(kernel.tl.max(1));
    let tiles = problem.cols.div_ceil(tile).max(1);
    let tiles = u32::try_from(tiles).ok().filter(|&tiles| tiles <= MAX_GRID);
    let Problem { rows, cols, .. } = *problem;
    tiles.ok_or(PlanError::TooLarge {
        what: "the grid",
        rows,
        cols,
        bits: 31,
    })
}

/// The most blocks that a form of storage has work for, whatever its number of rows; `None` where rows are shared out.
fn shares_of_form(
    limits: &DeviceLimits,
    kernel: &Candidate,
    problem: &Problem,
    bs: u32,
) -> Option<u32> {
    match kernel.walk {
        // A block or a warp for each partition; several may have parts of one row.
        Walk::MergePartitions => Some(balanced::most_tiles(problem)),
        Walk::ScannedPartitions => Some(scanned::most_blocks(limits, problem, bs)),
        // Chunks are shared out evenly, to as many blocks as are resident.
        Walk::Chunks => Some(u32::MAX),
        Walk::Slices => Some(hot::most_blocks(limits, problem, bs)),
        Walk::EvenShares => Some(even::most_blocks(problem, bs)),
        Walk::Rows | Walk::ColumnTiles => None,
    }
}

/// Of this many clusters those for which there is no room, although the device has as many SMs: a cluster's are of one group of SMs,
/// whose number is seldom a multiple of four. An H200 of 132 runs 66 clusters of two blocks at a time, 30 of four
/// (`cuOccupancyMaxActiveClusters`); one more would begin when the others have ended.
fn left_over(kernel: &Candidate, clusters: u32) -> u32 {
    const GROUPS_LEAVE: u32 = 11;
    match kernel.cluster {
        ..=2 => 0,
        _ => clusters.div_ceil(GROUPS_LEAVE),
    }
}

/// Spreads the rows over the resident blocks of every SM.
///
/// C is the least number of rows per vector that covers all, at least one, so that an empty problem
/// still has a launch (w = β·z has to be written).
pub(super) fn spread(
    limits: &DeviceLimits,
    kernel: &Candidate,
    problem: &Problem,
    blocks: Blocks,
    (surplus, windows): (Surplus, u32),
) -> Result<Launch, PlanError> {
    let too_large = |what, bits| {
        let Problem { rows, cols, .. } = *problem;
        PlanError::TooLarge {
            what,
            rows,
            cols,
            bits,
        }
    };
    let column_tiles = column_tiles(kernel, problem, blocks.vs)?;
    let resident = blocks
        .occupancy
        .blocks_per_sm
        .max(1)
        .checked_mul(limits.sms);
    let resident = resident.ok_or(too_large("the grid", 32))?;
    // Blocks of a cluster that have rows of their own.
    let together = kernel.cluster.max(1) / kernel.blocks_per_row();
    let at_once = resident / column_tiles / together;
    let most = (at_once - left_over(kernel, at_once)).max(1) * together;
    let per_block = u64::from((blocks.bs / blocks.vs.max(1)).max(1));
    let even = problem.rows.div_ceil(u64::from(most) * per_block).max(1);
    let shared_out = |blocks: u32| {
        let c = problem.rows.div_ceil(u64::from(blocks) * per_block);
        (blocks, c.max(1))
    };
    let (row_blocks, c) = match surplus {
        _ if let Some(shares) = shares_of_form(limits, kernel, problem, blocks.bs) => {
            shared_out(most.min(shares).max(1))
        }
        Surplus::Keep => (most, even),
        Surplus::Chunks(chunks) => shared_out(most.min(chunks)),
        Surplus::Drop => {
            // Rows are taken `rows_in_flight` at a time: a share that is no multiple leaves loads idle.
            let step = u64::from(kernel.rows_in_flight.max(1)).min(problem.rows.max(1));
            let c = even.checked_next_multiple_of(step);
            let c = c.ok_or(too_large("the rows per vector", 64))?;
            let needed = problem.rows.div_ceil(c).div_ceil(per_block).max(1);
            let needed = needed.next_multiple_of(u64::from(together));
            (most.min(u32::try_from(needed).unwrap_or(u32::MAX)), c)
        }
    };
    let grid = row_blocks
        .checked_mul(column_tiles)
        .filter(|&grid| grid <= MAX_GRID);
    let grid = grid.ok_or(too_large("the grid", 31))?;
    Ok(Launch {
        blocks,
        grid,
        column_tiles,
        windows,
        c,
    })
}
