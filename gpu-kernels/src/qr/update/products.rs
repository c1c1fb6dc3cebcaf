//! W = VᵀC for any V and C: a warp has every fourth group of eight rows, a thread 64 sums over them.
//!
//! Chunks of 32 rows lie in shared memory row by row, so that a thread reads four reflectors and four columns as packs: four
//! packs for 64 products. The sums of the four warps are added up in shared memory afterwards.

use super::super::pieces::{four, read_chunk, write_piece};
use super::super::reflector::Ranged;
use super::{SUMS, UPDATE_BLOCK, own};
use crate::cta::{Cta, Shared, WARP};
use crate::verbs::lane;

/// Warps of a block.
const WARPS: u32 = UPDATE_BLOCK / WARP;
/// Rows of a chunk that a warp adds up.
const ROWS: u32 = WARP / WARPS;

/// Columns that all warps store together, four each.
const GROUP: u32 = 4 * WARPS;

/// Elements from a row of a chunk to the next: fours of eight neighbouring rows lie in different banks.
const fn pitch(columns: u32) -> u32 {
    columns + 4
}

/// Elements of shared memory: two chunks, or the sums of all warps.
pub const fn elements(width: u32, columns: u32) -> u32 {
    let chunks = WARP * (pitch(width) + pitch(columns));
    if chunks > WARPS * SUMS {
        chunks
    } else {
        WARPS * SUMS
    }
}

/// Fours of reflectors and of columns whose products a thread adds up: two and two, or one and four of four reflectors.
struct Tile {
    reflectors: [usize; 2],
    columns: [usize; 4],
}

impl Tile {
    #[inline(always)]
    fn of<C: Cta, const WIDTH: usize, const COLUMNS: usize>(cta: &C) -> Tile {
        let lane = cta.fresh(lane(cta)) as usize;
        let groups = COLUMNS / if WIDTH < 8 { 16 } else { 8 };
        let step = groups * 4;
        let (column, reflector) = (lane % groups * 4, lane / groups * 4);
        Tile {
            reflectors: [reflector, reflector + WIDTH / 2],
            columns: four(|i| column + i * step),
        }
    }

    /// The fours of block `b` of the sums.
    #[inline(always)]
    const fn block<const WIDTH: usize>(b: usize) -> (usize, usize) {
        if WIDTH < 8 { (0, b) } else { (b / 2, b % 2) }
    }
}

/// Where V and C come from.
pub trait Factors<T> {
    /// Element (row, column) of V, 0 where there is none.
    fn v(&self, row: u32, col: u32) -> T;
    /// Element (row, column) of C, 0 where there is none.
    fn c(&self, row: u32, col: u32) -> T;
    /// Whether V and C have all elements of the 32 rows from `base` on: they are read without a check then.
    fn is_whole(&self, _base: u32) -> bool {
        false
    }
    /// As [`v`](Self::v), of rows that are whole.
    fn whole_v(&self, row: u32, col: u32) -> T {
        self.v(row, col)
    }
    /// As [`c`](Self::c), of rows that are whole.
    fn whole_c(&self, row: u32, col: u32) -> T {
        self.c(row, col)
    }
}

/// The thread's four by four elements of W, as [`own`] says which, over rows `first` to `end`, of which there is one at least.
/// Shared memory is free afterwards, but not before a barrier.
#[inline(always)]
#[track_caller]
pub fn products<C: Cta, T: Ranged, const WIDTH: usize, const COLUMNS: usize>(
    cta: &C,
    (first, end): (u32, u32),
    factors: &impl Factors<T>,
) -> [[T; 4]; 4] {
    let v = Shared::at(0, WARP * pitch(WIDTH as u32));
    let c = Shared::at(v.end(), WARP * pitch(COLUMNS as u32));
    let mut sums = [[[T::ZERO; 4]; 4]; 4];
    let mut base = first;
    // A loop that ends below keeps the sums in one set of registers.
    loop {
        stage::<C, T, WIDTH, COLUMNS>(cta, base, factors, (v, c));
        cta.sync();
        add_chunk::<C, T, WIDTH, COLUMNS>(cta, (v, c), &mut sums);
        cta.sync();
        base += WARP;
        if base >= end {
            break;
        }
    }
    of_all_warps::<C, T, WIDTH, COLUMNS>(cta, &sums)
}

/// The chunks that begin at row `base`: a lane has a row, a warp every fourth four of columns. Bytes in flight decide how fast
/// they come: 64 columns are on their way before the first is stored.
#[inline(always)]
#[track_caller]
fn stage<C: Cta, T: Ranged, const WIDTH: usize, const COLUMNS: usize>(
    cta: &C,
    base: u32,
    factors: &impl Factors<T>,
    (v, c): (Shared<T>, Shared<T>),
) {
    if factors.is_whole(base) {
        fill::<C, T, WIDTH>(cta, v, |row, col| factors.whole_v(base + row, col));
        fill::<C, T, COLUMNS>(cta, c, |row, col| factors.whole_c(base + row, col));
    } else {
        fill::<C, T, WIDTH>(cta, v, |row, col| factors.v(base + row, col));
        fill::<C, T, COLUMNS>(cta, c, |row, col| factors.c(base + row, col));
    }
}

/// A chunk of `COLUMNS` columns.
#[inline(always)]
#[track_caller]
fn fill<C: Cta, T: Ranged, const COLUMNS: usize>(
    cta: &C,
    to: Shared<T>,
    element: impl Fn(u32, u32) -> T,
) {
    let thread = cta.fresh(cta.thread());
    let (row, mut col) = (thread % WARP, thread / WARP * 4);
    let mut at = (row * pitch(COLUMNS as u32) + col) as usize;
    let columns = |col: u32| four(|k| element(row, col + k as u32));
    if COLUMNS as u32 <= GROUP {
        if col < COLUMNS as u32 {
            write_piece(cta, to, at, &columns(col));
        }
        return;
    }
    if COLUMNS as u32 == 2 * GROUP {
        let (low, high) = (columns(col), columns(col + GROUP));
        write_piece(cta, to, at, &low);
        write_piece(cta, to, at + GROUP as usize, &high);
        return;
    }
    let end = cta.fresh(COLUMNS as u32);
    loop {
        let values = four(|i| columns(col + GROUP * i as u32));
        four(|i| write_piece(cta, to, at + i * GROUP as usize, &values[i]));
        (col, at) = (col + 4 * GROUP, at + 4 * GROUP as usize);
        if COLUMNS as u32 <= 4 * GROUP || col >= end {
            break;
        }
    }
}

/// Adds the products of the warp's rows of a chunk.
#[inline(always)]
#[track_caller]
fn add_chunk<C: Cta, T: Ranged, const WIDTH: usize, const COLUMNS: usize>(
    cta: &C,
    (v, c): (Shared<T>, Shared<T>),
    sums: &mut [[[T; 4]; 4]; 4],
) {
    let tile = Tile::of::<C, WIDTH, COLUMNS>(cta);
    let mut row = cta.thread() / WARP * ROWS;
    let end = cta.fresh(row + ROWS);
    loop {
        let (of_v, of_c) = (
            (row * pitch(WIDTH as u32)) as usize,
            (row * pitch(COLUMNS as u32)) as usize,
        );
        let vs = [0, 1].map(|i| match i == 0 || WIDTH >= 8 {
            true => read_chunk(cta, v, of_v + tile.reflectors[i]),
            false => [T::ZERO; 4],
        });
        let cs = four(|i| match i < 2 || WIDTH < 8 {
            true => read_chunk(cta, c, of_c + tile.columns[i]),
            false => [T::ZERO; 4],
        });
        four(|b| {
            let (of, with): ([T; 4], [T; 4]) = {
                let (p, col) = Tile::block::<WIDTH>(b);
                (vs[p], cs[col])
            };
            four(|i| four(|j| sums[b][i][j] = of[i].fma(with[j], sums[b][i][j])));
        });
        row += 1;
        if row >= end {
            break;
        }
    }
}

/// The sums of all warps, those of neighbours first.
#[inline(always)]
#[track_caller]
fn of_all_warps<C: Cta, T: Ranged, const WIDTH: usize, const COLUMNS: usize>(
    cta: &C,
    sums: &[[[T; 4]; 4]; 4],
) -> [[T; 4]; 4] {
    let all = Shared::at(0, WARPS * SUMS);
    let tile = Tile::of::<C, WIDTH, COLUMNS>(cta);
    let of_warp = (cta.thread() / WARP * SUMS) as usize;
    four(|b| {
        let (p, col) = Tile::block::<WIDTH>(b);
        four(|i| {
            let at = of_warp + (tile.reflectors[p] + i) * COLUMNS + tile.columns[col];
            write_piece(cta, all, at, &sums[b][i]);
        })
    });
    cta.sync();
    let (first, part) = own::<C, COLUMNS>(cta);
    four(|i| {
        four(|j| {
            let at = (part as usize * 4 + i) * COLUMNS + first as usize + j * COLUMNS / 4;
            let [a, b, c, d] = four(|warp| cta.shared_read(all, warp * SUMS as usize + at));
            (a + b) + (c + d)
        })
    })
}
