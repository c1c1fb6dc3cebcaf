//! From the sums of a block's teams to results.

use super::super::args::{POOL_NONE, SparseConvArgs, finished};
use super::super::element::{Accumulator, Element};
use super::super::pool::Window;
use super::{COLS, ROWS, SUM_PITCH, Sums, TENSOR_TEAM, TILE_CELLS, TILE_FILTERS, Tile, split};
use crate::cta::{Cta, Shared, WARP};
use crate::verbs::{each_of_block, lane};

/// Calls `each(places in the table of sums, sums)` for the sums of this lane, four at a time.
#[inline(always)]
fn each_four<C: Cta, E: Element>(
    cta: &C,
    sums: &Sums,
    mut each: impl FnMut([usize; 4], [E::Acc; 4]),
) {
    let (group, turn) = (lane(cta) / 4, lane(cta) % 4);
    let warp = cta.thread() / WARP % 4;
    for row in 0..ROWS {
        for col in 0..COLS {
            let places = core::array::from_fn(|i| {
                let filter = row as u32 * 16 + group + i as u32 / 2 * 8;
                let cell = warp * 32 + col as u32 * 8 + turn * 2 + i as u32 % 2;
                (filter * SUM_PITCH + cell) as usize
            });
            // Of one piece the only sums are whole.
            let of =
                |i: usize| E::of_pieces(core::array::from_fn(|weight| sums[weight][row][col][i]));
            each(places, [of(0), of(1), of(2), of(3)]);
        }
    }
}

/// The sums of all teams to shared memory, filters × outputs of the tile: the last team's, to which the others add theirs
/// in turn. Four are read before the first is written, so that they are waited for once.
#[inline(always)]
#[track_caller]
pub(super) fn write_sums<C: Cta, E: Element, const TEAMS: u32>(cta: &C, sums: &Sums) {
    let table: Shared<E::Acc> = Shared::at(0, TILE_FILTERS * SUM_PITCH);
    let team = cta.thread() / TENSOR_TEAM;
    let write = |at: [usize; 4], sums: [E::Acc; 4]| {
        for i in 0..4 {
            cta.shared_write(table, at[i], sums[i]);
        }
    };
    if team == TEAMS - 1 {
        each_four::<C, E>(cta, sums, write);
    }
    cta.sync();
    let mut turn = TEAMS - 1;
    while turn > 0 {
        turn -= 1;
        if team == turn {
            each_four::<C, E>(cta, sums, |at, own| {
                let others = at.map(|at| cta.shared_read(table, at));
                write(at, core::array::from_fn(|i| own[i].plus(others[i])));
            });
        }
        cta.sync();
    }
}

/// Bias, rectification and pooling of a tile's sums, and the results to memory.
#[inline(always)]
#[track_caller]
pub(super) fn write_outputs<C: Cta, E: Element>(cta: &C, args: &SparseConvArgs<'_, E>, tile: Tile) {
    if args.geometry.pool.kind == POOL_NONE {
        write_each(cta, args, tile);
    } else {
        write_windows(cta, args, tile);
    }
}

/// Outputs of a thread that are read before the first is written.
const AT_ONCE: usize = 4;

/// Without pooling.
#[inline(always)]
#[track_caller]
fn write_each<C: Cta, E: Element>(cta: &C, args: &SparseConvArgs<'_, E>, tile: Tile) {
    let (g, t) = (&args.geometry, &args.tensor);
    let table: Shared<E::Acc> = Shared::at(0, TILE_FILTERS * SUM_PITCH);
    let first = tile.filters % t.filter_tiles * TILE_FILTERS;
    let mut next = cta.thread();
    while next < TILE_FILTERS * TILE_CELLS {
        let places: [(u32, u32); AT_ONCE] =
            core::array::from_fn(|i| split(next + i as u32 * cta.threads(), TILE_CELLS));
        let sums = places
            .map(|(filter, cell)| cta.shared_read(table, (filter * SUM_PITCH + cell) as usize));
        for i in 0..AT_ONCE {
            let (of_tile, cell) = places[i];
            let (row, col) = split(cell, t.tile[1]);
            let (y, x) = (tile.row + row, tile.col + col);
            if first + of_tile < g.out_per_group && y < g.out[0] && x < g.out[1] {
                let filter = tile.group * g.out_per_group + first + of_tile;
                let result = finished(cta, args, filter, sums[i]);
                cta.write(args.out, g.to.at(tile.image, filter, y, x), result);
            }
        }
        next += AT_ONCE as u32 * cta.threads();
    }
}

/// With pooling.
#[inline(always)]
#[track_caller]
fn write_windows<C: Cta, E: Element>(cta: &C, args: &SparseConvArgs<'_, E>, tile: Tile) {
    let (g, t) = (&args.geometry, &args.tensor);
    let table: Shared<E::Acc> = Shared::at(0, TILE_FILTERS * SUM_PITCH);
    // Numbers one by one: LLVM 22 copies pairs of them to local memory.
    let (down_end, right_end) = (g.pool.window[0], g.pool.window[1]);
    let (rows, _) = split(t.tile[0], down_end);
    let (cols, _) = split(t.tile[1], right_end);
    let ((first_row, _), (first_col, _)) = (split(tile.row, down_end), split(tile.col, right_end));
    let first = tile.filters % t.filter_tiles * TILE_FILTERS;
    each_of_block(cta, TILE_FILTERS * rows * cols, |i| {
        let (rest, col) = split(i as u32, cols);
        let (of_tile, row) = split(rest, rows);
        let (y, x) = (first_row + row, first_col + col);
        if first + of_tile < g.out_per_group && y < g.pool.out[0] && x < g.pool.out[1] {
            let filter = tile.group * g.out_per_group + first + of_tile;
            let mut result = Window::new(g.pool.kind);
            for down in 0..down_end {
                for right in 0..right_end {
                    let cell = (row * down_end + down) * t.tile[1] + col * right_end + right;
                    let sum = cta.shared_read(table, (of_tile * SUM_PITCH + cell) as usize);
                    result.take(finished(cta, args, filter, sum));
                }
            }
            cta.write(args.out, g.to.at(tile.image, filter, y, x), result.result());
        }
    });
}
