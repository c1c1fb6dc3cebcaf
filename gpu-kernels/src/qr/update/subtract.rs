//! C −= V·W: a lane has four rows and a warp sixteen columns at a time, so that C is read and written line by line, W is read
//! by all lanes at once, and four elements of V and four packs of W make 64 products.

use super::super::args::QrArgs;
use super::super::pieces::{four, read_chunk};
use super::super::reflector::Ranged;
use super::{Target, UPDATE_BLOCK};
use crate::cta::{Cta, Shared, WARP};
use crate::verbs::lane;

/// Rows of a chunk: four of a lane.
pub const ROWS: u32 = 4 * WARP;
/// Columns that a warp has at a time.
const COLS: u32 = 16;

/// Elements of a chunk of V.
pub const fn staged(width: u32) -> u32 {
    width * ROWS
}

/// Step 3, with −W in shared memory, for rows `first` to `end` from the panel's first.
#[inline(always)]
#[track_caller]
pub fn subtract<C: Cta, T: Ranged, const WIDTH: usize, const COLUMNS: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
    target: &Target<'_, T>,
    (v, w, (first, last)): (Shared<T>, Shared<T>, (u32, u32)),
) {
    let step = COLS * UPDATE_BLOCK / WARP;
    let mut base = first;
    while base < last {
        let (mut col, end) = (cta.thread() / WARP * COLS, cta.fresh(COLUMNS as u32));
        // On their way while V is stored.
        let mut tile = read::<C, T>(cta, target, (base, col));
        stage::<C, T, WIDTH>(cta, args, target, (base, v));
        cta.sync();
        loop {
            add::<C, T, WIDTH, COLUMNS>(cta, col, (v, w), &mut tile);
            write::<C, T>(cta, target, (base, col), &tile);
            col += step;
            if COLUMNS as u32 <= step || col >= end {
                break;
            }
            tile = read::<C, T>(cta, target, (base, col));
        }
        cta.sync();
        base += ROWS;
    }
}

/// The rows of V from `base` on, reflector by reflector: a thread has a row.
#[inline(always)]
#[track_caller]
fn stage<C: Cta, T: Ranged, const WIDTH: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
    target: &Target<'_, T>,
    (base, to): (u32, Shared<T>),
) {
    let row = cta.fresh(cta.thread());
    let (mut p, end) = (0, cta.fresh(WIDTH as u32));
    while p < end {
        let values = four(|i| target.component(cta, args, (base + row, p + i as u32)));
        four(|i| cta.shared_write(to, ((p + i as u32) * ROWS + row) as usize, values[i]));
        p += 4;
    }
}

/// Sixteen columns by four, and four rows of each.
type Tile<T> = [[[T; 4]; 4]; 4];

/// Whether the block's columns have all of a tile, side by side.
#[inline(always)]
fn is_whole<T>(target: &Target<'_, T>, (base, col): (u32, u32)) -> bool {
    base + ROWS <= target.rows && col + COLS <= target.cols && target.row_step == 1
}

/// Calls `f` with the places of a tile: column by four columns and number of its group, row, and where it is.
#[inline(always)]
#[track_caller]
fn places<T>(target: &Target<'_, T>, (row, col): (u64, u32), mut f: impl FnMut([usize; 3], usize)) {
    let first = target.first + row + col as u64 * target.col_step;
    four(|g| {
        four(|j| {
            let column = first + (4 * g + j) as u64 * target.col_step;
            four(|i| f([g, j, i], (column + i as u64 * WARP as u64) as usize))
        })
    });
}

/// The lane's elements of the columns from `col` on, of the rows from `base` on.
#[inline(always)]
#[track_caller]
fn read<C: Cta, T: Ranged>(cta: &C, target: &Target<'_, T>, (base, col): (u32, u32)) -> Tile<T> {
    let first = base + lane(cta);
    if is_whole(target, (base, col)) {
        let mut tile = [[[T::ZERO; 4]; 4]; 4];
        places(target, (first as u64, col), |[g, j, i], at| {
            tile[g][j][i] = cta.read(target.columns, at);
        });
        return tile;
    }
    four(|g| {
        four(|j| four(|i| target.read(cta, first + i as u32 * WARP, col + (4 * g + j) as u32)))
    })
}

/// Writes what [`read`] has read. Its addresses do not wait in registers meanwhile.
#[inline(always)]
#[track_caller]
fn write<C: Cta, T: Ranged>(
    cta: &C,
    target: &Target<'_, T>,
    (base, col): (u32, u32),
    tile: &Tile<T>,
) {
    let (first, col) = (base + cta.fresh(lane(cta)), cta.fresh(col));
    if is_whole(target, (base, col)) {
        places(target, (first as u64, col), |[g, j, i], at| {
            cta.write(target.columns, at, tile[g][j][i]);
        });
        return;
    }
    four(|g| {
        four(|j| {
            four(|i| {
                let (row, col) = (first + i as u32 * WARP, col + (4 * g + j) as u32);
                if target.has(row, col) {
                    cta.write(target.columns, target.at(row, col), tile[g][j][i]);
                }
            })
        })
    });
}

/// Adds V·W of the columns from `col` on.
#[inline(always)]
#[track_caller]
fn add<C: Cta, T: Ranged, const WIDTH: usize, const COLUMNS: usize>(
    cta: &C,
    col: u32,
    (v, w): (Shared<T>, Shared<T>),
    tile: &mut Tile<T>,
) {
    let lane = cta.fresh(lane(cta));
    let (mut p, end) = (0, cta.fresh(WIDTH as u32));
    loop {
        let vs = four(|i| cta.shared_read(v, (p * ROWS + lane) as usize + i * WARP as usize));
        let of_w = (p * COLUMNS as u32 + col) as usize;
        four(|g| {
            let ws: [T; 4] = read_chunk(cta, w, of_w + 4 * g);
            four(|j| four(|i| tile[g][j][i] = vs[i].fma(ws[j], tile[g][j][i])));
        });
        p += 1;
        if p >= end {
            break;
        }
    }
}
