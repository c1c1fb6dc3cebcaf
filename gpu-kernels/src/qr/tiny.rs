//! What kernels of tiny matrices share: where a matrix of a warp lies, and its way between memory and a staged tile.
//!
//! `LANES` lanes have a matrix of at most `ROWS` rows and `COLS` columns. Its tile in shared memory is column by column, so
//! that whole lines go to memory and come from it however the lanes hold the matrix.

use super::args::{PACKS, QrArgs, Site};
use super::reflector::Ranged;
use crate::cta::{Cache, Cta, Shared, Shuffle, WARP};
use crate::scalar::Words;
use crate::verbs::{FULL, lane, max_lanes};

/// One matrix of a warp as one of its lanes sees it.
pub(super) struct Group<T> {
    pub site: Site,
    /// Number of the matrix; not below the count where there is none.
    pub number: u32,
    /// Number of the lane.
    pub lane: u32,
    /// The staged columns.
    pub tile: Shared<T>,
    /// Elements from a staged column to the next.
    pub pitch: u32,
    /// The products that T is made of.
    pub z: Shared<T>,
    /// Columns that become reflectors, one behind the other.
    pub x: Shared<T>,
    /// Elements from one of these columns to the next.
    pub turn: u32,
}

/// Number of this thread's matrix in its block, in the batch, and the matrix.
#[inline(always)]
#[track_caller]
pub(super) fn own_site<C: Cta, T: Ranged>(
    cta: &C,
    args: &QrArgs<'_, T>,
    lanes: u32,
) -> (u32, u32, Site) {
    let in_block = cta.thread() / lanes;
    let number = cta.block() * (cta.threads() / lanes) + in_block;
    (in_block, number, site_of(cta, args, number))
}

/// The most that any matrix of the warp has of what this lane's has `own` of; without a list of shapes what none exceeds. The whole
/// warp calls.
#[inline(always)]
#[track_caller]
pub(super) fn most<C: Cta, T: Ranged>(cta: &C, args: &QrArgs<'_, T>, own: u32, any: u32) -> u32 {
    match args.table.is_some() {
        true => max_lanes(cta, own),
        false => any,
    }
}

/// Matrix `number`, or none where there is none.
#[inline(always)]
#[track_caller]
pub(super) fn site_of<C: Cta, T: Ranged>(cta: &C, args: &QrArgs<'_, T>, number: u32) -> Site {
    if number < args.count {
        Site::of(cta, args, number)
    } else {
        Site::NONE
    }
}

/// Pack number `i` of this lane of a matrix without gaps: where it is there, and in the tile.
#[inline(always)]
fn place<T: Ranged, const LANES: usize, const ROWS: usize>(
    group: &Group<T>,
    i: usize,
) -> (usize, usize) {
    let lanes = <T::Pack as Words<T>>::LANES;
    let at = (i * LANES + group.lane as usize) * lanes;
    (at, at / ROWS * group.pitch as usize + at % ROWS)
}

/// Column `col` from memory, zeros where there is none.
#[inline(always)]
#[track_caller]
pub(super) fn load_column<C: Cta, T: Ranged, const ROWS: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
    group: &Group<T>,
    col: u32,
) -> [T; ROWS] {
    core::array::from_fn(|row| {
        let row = row as u32;
        match row < group.site.rows && col < group.site.cols {
            true => cta.load(args.a, group.site.in_a(row, col), Cache::Once),
            false => T::ZERO,
        }
    })
}

/// The matrix to the tile, zeros where it has nothing.
#[inline(always)]
#[track_caller]
pub(super) fn stage<C: Cta, T: Ranged, const LANES: usize, const COLS: usize, const ROWS: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
    group: &Group<T>,
) {
    let Site { rows, cols, .. } = group.site;
    let lanes = <T::Pack as Words<T>>::LANES;
    if args.has(PACKS) {
        for i in 0..COLS * ROWS / (LANES * lanes) {
            let (at, to) = place::<T, LANES, ROWS>(group, i);
            let pack: T::Pack = match rows > 0 {
                true => cta.load_pack(args.a, group.site.a as usize + at, Cache::Once),
                false => T::Pack::from_words([T::ZERO.to_bits(); 4]),
            };
            cta.shared_write_pack(group.tile, to, pack);
        }
        return;
    }
    for col in 0..COLS as u32 {
        let mut row = group.lane;
        while row < ROWS as u32 {
            let value = match row < rows && col < cols {
                true => cta.load(args.a, group.site.in_a(row, col), Cache::Once),
                false => T::ZERO,
            };
            cta.shared_write(group.tile, (col * group.pitch + row) as usize, value);
            row += LANES as u32;
        }
    }
}

/// The tile to the factors.
#[inline(always)]
#[track_caller]
pub(super) fn write_factors<
    C: Cta,
    T: Ranged,
    const LANES: usize,
    const COLS: usize,
    const ROWS: usize,
>(
    cta: &C,
    args: &QrArgs<'_, T>,
    group: &Group<T>,
) {
    let site = &group.site;
    let lanes = <T::Pack as Words<T>>::LANES;
    if args.has(PACKS) {
        for i in 0..COLS * ROWS / (LANES * lanes) {
            let (at, from) = place::<T, LANES, ROWS>(group, i);
            let pack = cta.shared_read_pack(group.tile, from);
            if site.rows > 0 {
                cta.write_pack(args.f, site.f as usize + at, pack);
            }
        }
        return;
    }
    for col in 0..site.cols {
        let mut row = group.lane;
        while row < site.rows {
            let value = cta.shared_read(group.tile, (col * group.pitch + row) as usize);
            cta.write(args.f, site.in_f(row, col), value);
            row += LANES as u32;
        }
    }
}

/// The tile, row by row, to T.
#[inline(always)]
#[track_caller]
pub(super) fn write_triangle<C: Cta, T: Ranged, const LANES: usize, const COLS: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
    group: &Group<T>,
) {
    let (site, least) = (&group.site, group.site.least());
    let lanes = <T::Pack as Words<T>>::LANES;
    if args.has(PACKS) && least == COLS as u32 {
        for i in 0..COLS * COLS / (LANES * lanes) {
            let (at, from) = place::<T, LANES, COLS>(group, i);
            let pack = cta.shared_read_pack(group.tile, from);
            cta.write_pack(args.t, site.t as usize + at, pack);
        }
        return;
    }
    for row in 0..least {
        let mut col = group.lane;
        while col < least {
            let value = cta.shared_read(group.tile, (row * group.pitch + col) as usize);
            cta.write(args.t, site.in_t(row, col), value);
            col += LANES as u32;
        }
    }
}

/// The status of a matrix from that of its lanes.
#[inline(always)]
#[track_caller]
pub(super) fn write_status<C: Cta, T: Ranged, const LANES: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
    group: &Group<T>,
    status: u32,
) {
    let mut all = status;
    let mut distance = LANES as u32 / 2;
    while distance > 0 {
        all |= cta.shuffle(all, Shuffle::Xor(distance), WARP, FULL);
        distance /= 2;
    }
    if group.lane == 0 && group.number < args.count {
        cta.write(args.status, group.number as usize, all);
    }
}

/// Number of this thread among the lanes of its matrix.
#[inline(always)]
pub(super) fn own_lane<C: Cta>(cta: &C, lanes: u32) -> u32 {
    lane(cta) % lanes
}
