//! Columns whose rows the blocks of a cluster share (compute capability 9.0): each has whole chunks of rows, tells the others
//! its part of VᵀC, and subtracts the product from its rows.
//!
//! Two barriers of the cluster: every block has read its chunks, whose place the sums of all blocks take; and these are there.
//! Every block adds them in the same order.

use super::subtract::ROWS;
use super::{SUMS, UPDATE_BLOCK, columns_of};
use crate::cta::{Cta, Shared};
use crate::qr::args::QrArgs;
use crate::qr::pieces::four;
use crate::qr::reflector::Ranged;

/// Blocks of a cluster: as many sums as four warps have.
pub const UPDATE_BLOCKS: u32 = 4;

/// See the head of the file, and of [`update`](super).
#[inline(always)]
pub fn shared_update<C: Cta, T: Ranged, const WIDTH: usize, const COLUMNS: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
) {
    if !C::CLUSTERS {
        return;
    }
    if T::SIZE == 4 {
        cta.launch_bounds::<UPDATE_BLOCK, 4>();
    } else {
        cta.launch_bounds::<UPDATE_BLOCK, 2>();
    }
    columns_of::<C, T, WIDTH, COLUMNS, { UPDATE_BLOCKS as usize }>(cta, args);
}

/// The block's rows of `rows`: from the first to the end.
#[inline(always)]
pub fn rows<C: Cta, const BLOCKS: usize>(cta: &C, rows: u32) -> (u32, u32) {
    if BLOCKS == 1 {
        return (0, rows);
    }
    let each = rows.div_ceil(ROWS * BLOCKS as u32) * ROWS;
    let first = (cta.fresh(cta.cluster_rank()) * each).min(rows);
    (first, (first + each).min(rows))
}

/// The sums of all blocks, of which the thread has 16 in each.
#[inline(always)]
#[track_caller]
pub fn of_all_blocks<C: Cta, T: Ranged, const BLOCKS: usize>(
    cta: &C,
    sums: &[[T; 4]; 4],
) -> [[T; 4]; 4] {
    let told = Shared::at(0, BLOCKS as u32 * SUMS);
    let at = |block: u32, i: usize, j: usize| {
        (block * SUMS + (4 * i + j) as u32 * UPDATE_BLOCK + cta.thread()) as usize
    };
    cta.sync_cluster();
    let own = cta.cluster_rank();
    let (mut to, end) = (0, cta.fresh(BLOCKS as u32));
    while to < end {
        four(|i| four(|j| cta.shared_write_to(to, told, at(own, i, j), sums[i][j])));
        to += 1;
    }
    cta.sync_cluster();
    let mut all = [[T::ZERO; 4]; 4];
    let mut block = 0;
    while block < end {
        four(|i| four(|j| all[i][j] = all[i][j] + cta.shared_read(told, at(block, i, j))));
        block += 1;
    }
    all
}
