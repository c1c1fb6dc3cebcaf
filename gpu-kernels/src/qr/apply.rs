//! Q and Qᵀ of tiny matrices times columns.
//!
//! A lane for each column of C, all of it in registers; the reflectors of a matrix are staged in shared
//! memory, with their first components and zeros above. Reflectors follow each other: first to last for Qᵀ, last to first
//! for Q.

use super::args::{IDENTITY, QrArgs, Site, TRANSPOSED};
use super::pieces::{add_scaled, dot};
use super::reflector::Ranged;
use crate::cta::{Cta, Shared};
use crate::verbs::lane;

/// Threads of a block.
pub const APPLY_BLOCK: u32 = 128;

const fn pitch(rows: u32, bytes: u32) -> u32 {
    rows + 16 / bytes
}

/// Elements of shared memory of a matrix: V, columns of C, and the diagonal of T.
const fn elements(lanes: u32, rows: u32, bytes: u32) -> u32 {
    2 * lanes * pitch(rows, bytes) + lanes
}

/// Shared memory of a block.
pub const fn apply_shared_bytes(lanes: u32, rows: u32, bytes: u32) -> u32 {
    APPLY_BLOCK / lanes * elements(lanes, rows, bytes) * bytes
}

/// See the head of the file.
#[inline(always)]
pub fn apply_lanes<C: Cta, T: Ranged, const LANES: usize, const ROWS: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
) {
    let (lanes, rows) = (LANES as u32, ROWS as u32);
    let in_block = cta.thread() / lanes;
    let own = lane(cta) % lanes;
    let number = cta.block() * (cta.threads() / lanes) + in_block;
    let pitch = pitch(rows, T::SIZE);
    let byte = in_block * elements(lanes, rows, T::SIZE) * T::SIZE;
    let v = Shared::at(byte, lanes * pitch);
    let staged = Shared::at(v.end(), lanes * pitch);
    let taus = Shared::at(staged.end(), lanes);
    let is_there = number < args.count;
    let site = if is_there {
        Site::of(cta, args, number)
    } else {
        Site::NONE
    };
    stage_v::<C, T, LANES, ROWS>(cta, args, &site, own, (v, pitch));
    if own < site.least() {
        let tau = cta.read(args.t, site.in_t(own, own));
        cta.shared_write(taus, own as usize, tau);
    }
    let base = number as u64 * args.c_steps.each;
    let mut first = 0;
    while first < args.c_cols {
        let at = |row: u32, col: u32| {
            let (row, col) = (row as u64, (first + col) as u64);
            (base + row * args.c_steps.row + col * args.c_steps.col) as usize
        };
        let cols = (args.c_cols - first).min(lanes);
        each(&site, (own, lanes), cols, args, |row, col| {
            let value = if !args.has(IDENTITY) {
                cta.read(args.c, at(row, col))
            } else if row == first + col {
                T::ONE
            } else {
                T::ZERO
            };
            cta.shared_write(staged, (col * pitch + row) as usize, value);
        });
        cta.sync_warp();
        if own < cols {
            apply::<C, T, ROWS>(cta, args, &site, (v, staged, own, pitch), taus);
        }
        cta.sync_warp();
        each(&site, (own, lanes), cols, args, |row, col| {
            let value = cta.shared_read(staged, (col * pitch + row) as usize);
            cta.write(args.c, at(row, col), value);
        });
        cta.sync_warp();
        first += lanes;
    }
}

/// Every element of the first `cols` columns once, lanes along what lies side by side.
#[inline(always)]
fn each<T: Ranged>(
    site: &Site,
    (own, lanes): (u32, u32),
    cols: u32,
    args: &QrArgs<'_, T>,
    mut what: impl FnMut(u32, u32),
) {
    let is_by_row = args.c_steps.col == 1;
    let [inner, outer] = if is_by_row {
        [cols, site.rows]
    } else {
        [site.rows, cols]
    };
    for j in 0..outer {
        let mut i = own;
        while i < inner {
            let (row, col) = if is_by_row { (j, i) } else { (i, j) };
            what(row, col);
            i += lanes;
        }
    }
}

/// Columns of V that are on their way at once.
const AHEAD: usize = 8;

/// V with its first components, zeros above and beyond.
#[inline(always)]
#[track_caller]
fn stage_v<C: Cta, T: Ranged, const LANES: usize, const ROWS: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
    site: &Site,
    own: u32,
    (v, pitch): (Shared<T>, u32),
) {
    for part in 0..ROWS.div_ceil(LANES) {
        let row = own + (part * LANES) as u32;
        for some in 0..LANES / AHEAD {
            let column = |i: usize| (some * AHEAD + i) as u32;
            let values: [T; AHEAD] = core::array::from_fn(|i| {
                let col = column(i);
                match row > col && row < site.rows && col < site.least() {
                    true => cta.read(args.f, site.in_f(row, col)),
                    false => T::ZERO,
                }
            });
            if row < ROWS as u32 {
                for (i, value) in values.into_iter().enumerate() {
                    cta.shared_write(v, (column(i) * pitch + row) as usize, value);
                }
            }
        }
    }
    // The same lane has written a zero there.
    if own < site.least() {
        let first = cta.read(args.first, (site.first + own as u64) as usize);
        cta.shared_write(v, (own * pitch + own) as usize, first);
    }
}

/// All reflectors to column `own`.
#[inline(always)]
#[track_caller]
fn apply<C: Cta, T: Ranged, const ROWS: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
    site: &Site,
    (v, staged, own, pitch): (Shared<T>, Shared<T>, u32, u32),
    taus: Shared<T>,
) {
    let place = |row: usize| (own * pitch) as usize + row;
    let mut column: [T; ROWS] = core::array::from_fn(|row| match (row as u32) < site.rows {
        true => cta.shared_read(staged, place(row)),
        false => T::ZERO,
    });
    let steps = site.least();
    for i in 0..steps {
        let k = if args.has(TRANSPOSED) {
            i
        } else {
            steps - 1 - i
        };
        let x = (v, (k * pitch) as usize);
        let tau = cta.shared_read(taus, k as usize);
        let z = -tau * dot(cta, x, &column, site.rows, false);
        add_scaled(cta, x, &mut column, site.rows, z);
    }
    for (row, value) in column.iter().enumerate() {
        if (row as u32) < site.rows {
            cta.shared_write(staged, place(row), *value);
        }
    }
}
