//! Q and Qᵀ of tiny matrices times columns, and systems with R.
//!
//! `apply_lanes`: a lane for each column of C, all of it in registers; the reflectors of a matrix are staged in shared
//! memory, with their first components and zeros above. Reflectors follow each other: first to last for Qᵀ, last to first
//! for Q.
//!
//! `solve`: a warp for each right-hand side, which is in shared memory; from the last unknown to the first, each of which is
//! subtracted from all rows above.

use super::args::{IDENTITY, QrArgs, Site, TRANSPOSED};
use super::pieces::{add_scaled, dot};
use super::reflector::Ranged;
use crate::cta::{Cta, Shared, WARP};
use crate::verbs::lane;

/// Threads of a block of `apply_lanes`.
pub const APPLY_BLOCK: u32 = 128;

const fn pitch(rows: u32, bytes: u32) -> u32 {
    rows + 16 / bytes
}

/// Elements of shared memory of a matrix: V, and columns of C.
const fn elements(lanes: u32, rows: u32, bytes: u32) -> u32 {
    2 * lanes * pitch(rows, bytes)
}

/// Shared memory of a block of `apply_lanes`.
pub const fn apply_shared_bytes(lanes: u32, rows: u32, bytes: u32) -> u32 {
    APPLY_BLOCK / lanes * elements(lanes, rows, bytes) * bytes
}

/// Shared memory of a block of `solve`, which is one warp.
pub const fn solve_shared_bytes(unknowns: u32, bytes: u32) -> u32 {
    unknowns * bytes
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
    let is_there = number < args.count;
    let site = if is_there {
        Site::of(cta, args, number)
    } else {
        Site::NONE
    };
    stage_v::<C, T>(cta, args, &site, (own, lanes), (v, pitch, rows));
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
            apply::<C, T, ROWS>(cta, args, &site, (v, staged, own, pitch));
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

/// V with its first components, zeros above and beyond.
#[inline(always)]
#[track_caller]
fn stage_v<C: Cta, T: Ranged>(
    cta: &C,
    args: &QrArgs<'_, T>,
    site: &Site,
    (own, lanes): (u32, u32),
    (v, pitch, rows): (Shared<T>, u32, u32),
) {
    for p in 0..site.least() {
        let mut row = own;
        while row < rows {
            let value = if row < p || row >= site.rows {
                T::ZERO
            } else if row == p {
                cta.read(args.first, (site.first + p as u64) as usize)
            } else {
                cta.read(args.f, site.in_f(row, p))
            };
            cta.shared_write(v, (p * pitch + row) as usize, value);
            row += lanes;
        }
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
        let tau = cta.read(args.t, site.in_t(k, k));
        let z = -tau * dot(cta, x, &column, site.rows, false);
        add_scaled(cta, x, &mut column, site.rows, z);
    }
    for (row, value) in column.iter().enumerate() {
        if (row as u32) < site.rows {
            cta.shared_write(staged, place(row), *value);
        }
    }
}

/// See the head of the file.
#[inline(always)]
pub fn solve<C: Cta, T: Ranged>(cta: &C, args: &QrArgs<'_, T>) {
    let (matrix, side) = (cta.block() / args.c_cols, cta.block() % args.c_cols);
    let site = Site::of(cta, args, matrix);
    let steps = &args.c_steps;
    let base = matrix as u64 * steps.each + side as u64 * steps.col;
    let at = |i: u32| (base + i as u64 * steps.row) as usize;
    let x = Shared::at(0, site.cols);
    let mut i = lane(cta);
    while i < site.cols {
        cta.shared_write(x, i as usize, cta.read(args.c, at(i)));
        i += WARP;
    }
    cta.sync_warp();
    let mut k = site.cols;
    while k > 0 {
        k -= 1;
        let value = cta.shared_read(x, k as usize) / cta.read(args.f, site.in_f(k, k));
        cta.sync_warp();
        let mut i = lane(cta);
        while i < k {
            let r = cta.read(args.f, site.in_f(i, k));
            let old = cta.shared_read(x, i as usize);
            cta.shared_write(x, i as usize, (-r).fma(value, old));
            i += WARP;
        }
        if lane(cta) == 0 {
            cta.shared_write(x, k as usize, value);
        }
        cta.sync_warp();
    }
    let mut i = lane(cta);
    while i < site.cols {
        cta.write(args.c, at(i), cta.shared_read(x, i as usize));
        i += WARP;
    }
}
