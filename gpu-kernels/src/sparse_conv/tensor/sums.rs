//! From the sums of a block's teams to results.

use super::super::args::{POOL_NONE, SparseConvArgs, finished};
use super::super::element::{Accumulator, Element};
use super::super::pool::Window;
use super::tile::{COLS, ROWS, Sums, TENSOR_TEAM, TILE_CELLS, TILE_FILTERS, Tile, split};
use crate::cta::{Cta, Shared, WARP};
use crate::verbs::{each_of_block, lane};

/// From one filter's sums to the next in shared memory.
const PITCH: u32 = TILE_CELLS + 12;

/// Bytes of the sums of a tile by one team.
pub const fn sum_bytes(acc: u32) -> u32 {
    TILE_FILTERS * PITCH * acc
}

/// Where a tile's output lies among a filter's: even ones of eight before odd ones, and four more from one warp's to the
/// next one's. The sums that a warp's lanes write at once lie in different banks, and those of windows in two or more.
#[inline(always)]
fn place(cell: u32) -> u32 {
    cell / 8 * 8 + cell % 2 * 4 + cell % 8 / 2 + cell / 32 * 4
}

/// Tables of sums by team, filter and output.
#[inline(always)]
fn tables<E: Element>(teams: u32) -> Shared<E::Acc> {
    Shared::at(0, teams * TILE_FILTERS * PITCH)
}

/// The sums of each team to a table of its own.
#[inline(always)]
#[track_caller]
pub(super) fn write_sums<C: Cta, E: Element>(cta: &C, sums: &Sums<E::Part>) {
    let (group, turn) = (lane(cta) / 4, lane(cta) % 4);
    let (team, warp) = (cta.thread() / TENSOR_TEAM, cta.thread() / WARP % 4);
    let teams = cta.threads() / TENSOR_TEAM;
    for row in 0..ROWS {
        for col in 0..COLS {
            for i in 0..4 {
                let filter = row as u32 * 16 + group + i as u32 / 2 * 8;
                let cell = warp * 32 + col as u32 * 8 + turn * 2 + i as u32 % 2;
                let at = (team * TILE_FILTERS + filter) * PITCH + place(cell);
                // Of one piece the only sums are whole.
                let of_weights = core::array::from_fn(|weight| sums[weight][row][col][i]);
                let sum = E::of_pieces(of_weights);
                cta.shared_write(tables::<E>(teams), at as usize, sum);
            }
        }
    }
}

/// The sum of all teams, the first one's first.
#[inline(always)]
#[track_caller]
fn sum_of<C: Cta, E: Element, const TEAMS: u32>(cta: &C, filter: u32, cell: u32) -> E::Acc {
    let at = filter * PITCH + place(cell);
    let of = |team: u32| {
        let at = team * TILE_FILTERS * PITCH + at;
        cta.shared_read(tables::<E>(TEAMS), at as usize)
    };
    let (first, second) = (of(0), of(1));
    if TEAMS == 2 {
        return first.plus(second);
    }
    let (third, fourth) = (of(2), of(3));
    first.plus(second).plus(third).plus(fourth)
}

/// Bias, rectification and pooling of a tile's sums, and the results to memory.
#[inline(always)]
#[track_caller]
pub(super) fn write_outputs<C: Cta, E: Element, const TEAMS: u32>(
    cta: &C,
    args: &SparseConvArgs<'_, E>,
    tile: Tile,
) {
    if args.geometry.pool.kind == POOL_NONE {
        write_each::<C, E, TEAMS>(cta, args, tile);
    } else {
        write_windows::<C, E, TEAMS>(cta, args, tile);
    }
}

/// Outputs of a thread that are read before the first is written.
const AT_ONCE: usize = 4;

/// Without pooling.
#[inline(always)]
#[track_caller]
fn write_each<C: Cta, E: Element, const TEAMS: u32>(
    cta: &C,
    args: &SparseConvArgs<'_, E>,
    tile: Tile,
) {
    let (g, t) = (&args.geometry, &args.tensor);
    let first = tile.filters % t.filter_tiles * TILE_FILTERS;
    let mut next = cta.thread();
    while next < TILE_FILTERS * TILE_CELLS {
        let places: [(u32, u32); AT_ONCE] =
            core::array::from_fn(|i| split(next + i as u32 * cta.threads(), TILE_CELLS));
        let sums = places.map(|(filter, cell)| sum_of::<C, E, TEAMS>(cta, filter, cell));
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
fn write_windows<C: Cta, E: Element, const TEAMS: u32>(
    cta: &C,
    args: &SparseConvArgs<'_, E>,
    tile: Tile,
) {
    let (g, t) = (&args.geometry, &args.tensor);
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
                    let sum = sum_of::<C, E, TEAMS>(cta, of_tile, cell);
                    result.take(finished(cta, args, filter, sum));
                }
            }
            cta.write(args.out, g.to.at(tile.image, filter, y, x), result.result());
        }
    });
}
