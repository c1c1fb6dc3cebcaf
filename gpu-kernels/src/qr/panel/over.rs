//! Panels of 32 columns over the blocks of a cluster, `ROWS` · warps rows each (compute capability 9.0).
//!
//! A step adds up xᵀa in two stages: a block's warps behind its barrier, of which warp b tells block b the sum, and the first
//! block's row k with it; then the blocks' sums behind the barrier of the cluster, in every block in the same order. So a step
//! moves 32 numbers from each block to each, and every block computes the same reflector.
//!
//! | what | where |
//! |---|---|
//! | xᵀa of each block, two in turns | shared |
//! | the largest magnitude of each block | shared |

use super::{Panel, QrArgs, factor, finish};
use crate::cta::{Cache, Cta, WARP};
use crate::qr::pieces::four;
use crate::qr::reflector::Ranged;
use crate::qr::triangle;
use crate::verbs::lane;

/// Columns whose elements are on their way together.
const AHEAD: u32 = 16;

/// Elements of shared memory for what blocks tell each other; none where a block is by itself.
pub const fn elements(lanes: u32, blocks: u32) -> u32 {
    match blocks {
        1 => 0,
        _ => (2 * lanes + 1) * blocks,
    }
}

/// See the head of the file.
#[inline(always)]
pub fn spread<
    C: Cta,
    T: Ranged,
    const ROWS: usize,
    const WARPS: usize,
    const BLOCKS: usize,
    const THREADS: u32,
>(
    cta: &C,
    args: &QrArgs<'_, T>,
) {
    const LANES: usize = WARP as usize;
    if !C::CLUSTERS {
        return;
    }
    cta.launch_bounds::<THREADS, 1>();
    let place = (cta.block() / BLOCKS as u32, cta.cluster_rank());
    let Some(panel) = Panel::<T>::of::<C, LANES, ROWS, WARPS, BLOCKS>(cta, args, place) else {
        return;
    };
    let mut piece = load::<C, T, ROWS>(cta, args, &panel);
    if panel.part == 0 && args.t.is_some() {
        triangle::clear::<C, T, LANES>(cta, panel.z, panel.lane);
    }
    // All blocks have begun.
    cta.sync_cluster();
    let made = factor::<C, T, LANES, ROWS, WARPS, BLOCKS>(cta, args, &panel, &mut piece);
    finish::<C, T, LANES, ROWS>(cta, args, &panel, &piece, made);
}

/// Tells block `warp` the sum of this block, and row k if this is the first.
#[inline(always)]
#[track_caller]
pub fn tell<C: Cta, T: Ranged, const BLOCKS: usize>(
    cta: &C,
    panel: &Panel<T>,
    (turn, sum): (u32, T),
) {
    let to = panel.warp;
    let at = (turn * BLOCKS as u32 + panel.rank) * WARP + panel.lane;
    cta.shared_write_to(to, panel.told, at as usize, sum);
    if panel.rank == 0 && to > 0 {
        let at = (turn * WARP + panel.lane) as usize;
        let value = cta.shared_read(panel.row, at);
        cta.shared_write_to(to, panel.row, at, value);
    }
}

/// The sum over all blocks, when they have told theirs. The whole cluster calls.
#[inline(always)]
#[track_caller]
pub fn total<C: Cta, T: Ranged, const BLOCKS: usize>(cta: &C, panel: &Panel<T>, turn: u32) -> T {
    cta.sync_cluster();
    let first = (turn * BLOCKS as u32 * WARP + panel.lane) as usize;
    let mut sum = T::ZERO;
    for block in 0..BLOCKS {
        sum = sum + cta.shared_read(panel.told, first + block * WARP as usize);
    }
    sum
}

/// The largest magnitude of all blocks, of which this one has `largest`. The whole cluster calls.
#[inline(always)]
#[track_caller]
pub fn largest<C: Cta, T: Ranged, const BLOCKS: usize>(cta: &C, panel: &Panel<T>, largest: T) -> T {
    let first = 2 * BLOCKS * WARP as usize;
    if panel.warp < BLOCKS as u32 && lane(cta) == 0 {
        let at = first + panel.rank as usize;
        cta.shared_write_to(panel.warp, panel.told, at, largest);
    }
    cta.sync_cluster();
    let mut all = T::ZERO;
    for block in 0..BLOCKS {
        let of_block = cta.shared_read(panel.told, first + block);
        if of_block > all {
            all = of_block;
        }
    }
    all
}

/// [`load`](super::load) with [`AHEAD`] columns on their way together.
#[inline(always)]
#[track_caller]
pub fn load<C: Cta, T: Ranged, const ROWS: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
    panel: &Panel<T>,
) -> [T; ROWS] {
    let mut piece = [T::ZERO; ROWS];
    let (tile, lane) = (panel.tile(WARP), lane(cta));
    for half in 0..ROWS as u32 / WARP {
        let row = panel.first_row(WARP, ROWS as u32, half) + lane;
        let mut first = 0;
        while first < WARP {
            let values = columns(cta, args, panel, (row, first));
            four(|i| {
                four(|j| {
                    let at = (first + (4 * i + j) as u32) * super::PITCH + lane;
                    cta.shared_write(tile, at as usize, values[i][j]);
                })
            });
            first += AHEAD;
        }
        cta.sync_warp();
        for r in 0..WARP as usize {
            let at = (lane * super::PITCH) as usize + r;
            piece[(half * WARP) as usize + r] = cta.shared_read(tile, at);
        }
        cta.sync_warp();
    }
    piece
}

/// The elements of a row in the columns from `first` on, zeros where there are none.
#[inline(always)]
#[track_caller]
fn columns<C: Cta, T: Ranged>(
    cta: &C,
    args: &QrArgs<'_, T>,
    panel: &Panel<T>,
    (row, first): (u32, u32),
) -> [[T; 4]; 4] {
    let (site, first) = (&panel.site, (row, first));
    match args.a.is_some() {
        true => each(panel, first, |row, col| {
            cta.load(args.a, site.in_a(row, col), Cache::Once)
        }),
        false => each(panel, first, |row, col| {
            cta.read(args.f, site.in_f(row, col))
        }),
    }
}

/// What `read` has for these elements, by row and column of the matrix.
#[inline(always)]
fn each<T: Ranged>(
    panel: &Panel<T>,
    (row, first): (u32, u32),
    read: impl Fn(u32, u32) -> T,
) -> [[T; 4]; 4] {
    four(|i| {
        four(|j| {
            let col = first + (4 * i + j) as u32;
            match row < panel.rows && col < panel.cols {
                true => read(panel.start + row, panel.start + col),
                false => T::ZERO,
            }
        })
    })
}
