//! R·x = y, a block for each right-hand side, which is in shared memory.
//!
//! From the last 32 unknowns to the first: their triangle is in the registers of the first warp, a row to a lane; then they are
//! subtracted from all rows above, a row to a thread, from the last of the 32 to the first. So what is read of R is loaded 32
//! columns at a time, and sums have one order however many warps there are.

use super::args::{BEHIND, QrArgs, Site};
use super::reflector::Ranged;
use crate::cta::{Cta, Shared, Shuffle, WARP};
use crate::verbs::{FULL, each_of_block, lane};

/// Unknowns that are found together.
const SOME: usize = WARP as usize;

/// Shared memory of a block.
pub const fn solve_shared_bytes(unknowns: u32, bytes: u32) -> u32 {
    unknowns.next_multiple_of(WARP) * bytes
}

/// See the head of the file.
#[inline(always)]
pub fn solve<C: Cta, T: Ranged, const THREADS: u32>(cta: &C, args: &QrArgs<'_, T>) {
    cta.launch_bounds::<THREADS, 1>();
    let (matrix, side) = (cta.block() / args.c_cols, cta.block() % args.c_cols);
    let site = Site::of(cta, args, matrix);
    let steps = &args.c_steps;
    let base = matrix as u64 * steps.each + side as u64 * steps.col;
    let at = |row: usize| (base + row as u64 * steps.row) as usize;
    let x = Shared::<T>::at(0, site.cols.next_multiple_of(WARP));
    each_of_block(cta, x.len(), |row| {
        let value = match row < site.cols as usize {
            true if args.has(BEHIND) => cta.read(args.f, site.in_f(row as u32, site.cols + side)),
            true => cta.read(args.c, at(row)),
            false => T::ZERO,
        };
        cta.shared_write(x, row, value);
    });
    cta.sync();
    let mut first = x.len();
    while first > 0 {
        first -= WARP;
        if cta.thread() < WARP {
            triangle(cta, args, &site, x, first);
        }
        cta.sync();
        above(cta, args, &site, x, first);
        cta.sync();
    }
    each_of_block(cta, site.cols, |row| {
        let value = cta.shared_read(x, row);
        cta.write(args.c, at(row), value);
    });
}

/// An element of R; of the identity past its last column.
#[inline(always)]
#[track_caller]
fn element<C: Cta, T: Ranged>(
    cta: &C,
    args: &QrArgs<'_, T>,
    site: &Site,
    (row, col): (u32, u32),
) -> T {
    if col < site.cols && row <= col {
        cta.read(args.f, site.in_f(row, col))
    } else if row == col {
        T::ONE
    } else {
        T::ZERO
    }
}

/// The unknowns from `first` on. One warp calls.
#[inline(always)]
#[track_caller]
fn triangle<C: Cta, T: Ranged>(
    cta: &C,
    args: &QrArgs<'_, T>,
    site: &Site,
    x: Shared<T>,
    first: u32,
) {
    let row = first + lane(cta);
    let of_row: [T; SOME] =
        core::array::from_fn(|k| element(cta, args, site, (row, first + k as u32)));
    let diagonal = element(cta, args, site, (row, row));
    let mut y = cta.shared_read(x, row as usize);
    for i in 0..SOME {
        let k = SOME - 1 - i;
        let from = Shuffle::Index(k as u32);
        let value = cta.shuffle(y, from, WARP, FULL) / cta.shuffle(diagonal, from, WARP, FULL);
        if lane(cta) == k as u32 {
            y = value;
        } else if lane(cta) < k as u32 {
            y = (-of_row[k]).fma(value, y);
        }
    }
    cta.shared_write(x, row as usize, y);
}

/// Subtracts them from the rows above.
#[inline(always)]
#[track_caller]
fn above<C: Cta, T: Ranged>(cta: &C, args: &QrArgs<'_, T>, site: &Site, x: Shared<T>, first: u32) {
    each_of_block(cta, first, |row| {
        let of_row: [T; SOME] =
            core::array::from_fn(|k| element(cta, args, site, (row as u32, first + k as u32)));
        let mut y = cta.shared_read(x, row);
        for i in 0..SOME {
            let k = SOME - 1 - i;
            y = (-of_row[k]).fma(cta.shared_read(x, first as usize + k), y);
        }
        cta.shared_write(x, row, y);
    });
}
