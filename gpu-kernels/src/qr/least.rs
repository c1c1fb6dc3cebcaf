//! Least squares of tiny matrices, one right-hand side each, in one launch: R is made, Qᵀ applied and R·x = y solved without
//! that reflectors or T are ever written.
//!
//! A matrix lies as in [`lanes`](super::lanes), a lane for each column. Its right-hand side c lies across the lanes: lane l has
//! elements l, l + `LANES`, … In step k their part of vᵀc is added up over the lanes, and c += z·v where they are. What is
//! finished of R goes to the staged tile, column by column; from the last unknown to the first, each is subtracted from all
//! elements above, which are one to a lane.
//!
//! Valid for at most `LANES` columns and `ROWS` rows, `ROWS` ≥ columns. The same bits on every device and grid.

use super::args::QrArgs;
use super::lanes::{group, load, step};
use super::reflector::Ranged;
use super::tiny::{Group, write_status};
use crate::cta::{Cta, Shared, Shuffle, WARP};
use crate::verbs::{FULL, max_lanes};

/// Elements of a right-hand side that a lane has: of 32 rows and 8 lanes four.
const MOST: usize = 4;

/// See the head of the file.
#[inline(always)]
pub fn least<C: Cta, T: Ranged, const LANES: usize, const ROWS: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
) {
    const { assert!(ROWS <= MOST * LANES) };
    let group = group::<C, T, LANES, ROWS>(cta, args);
    let mut column = load::<C, T, LANES, ROWS>(cta, args, &group);
    let mut side = side::<C, T, LANES, ROWS>(cta, args, &group);
    let steps = max_lanes(cta, group.site.least());
    let status = factor::<C, T, LANES, ROWS>(cta, &group, &mut column, (&mut side, steps));
    write_status::<C, T, LANES>(cta, args, &group, status);
    cta.sync_warp();
    let x = substitute::<C, T, LANES>(cta, &group, (side[0], steps));
    if group.lane < group.site.cols {
        cta.write(args.c, at(args, &group, group.lane), x);
    }
}

/// Where element `row` of the right-hand side is.
#[inline(always)]
pub(super) fn at<T: Ranged>(args: &QrArgs<'_, T>, group: &Group<T>, row: u32) -> usize {
    (group.number as u64 * args.c_steps.each + row as u64 * args.c_steps.row) as usize
}

/// The lane's elements of the right-hand side, zeros where there are none.
#[inline(always)]
#[track_caller]
fn side<C: Cta, T: Ranged, const LANES: usize, const ROWS: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
    group: &Group<T>,
) -> [T; MOST] {
    core::array::from_fn(|m| {
        let row = group.lane + (m * LANES) as u32;
        match m * LANES < ROWS && row < group.site.rows {
            true => cta.read(args.c, at(args, group, row)),
            false => T::ZERO,
        }
    })
}

/// All steps, as [`lanes`](super::lanes) makes them, with the right-hand side beside; what was met.
#[inline(always)]
#[track_caller]
fn factor<C: Cta, T: Ranged, const LANES: usize, const ROWS: usize>(
    cta: &C,
    group: &Group<T>,
    column: &mut [T; ROWS],
    (side, steps): (&mut [T; MOST], u32),
) -> u32 {
    let mut status = 0;
    let rows = max_lanes(cta, group.site.rows);
    for k in 0..steps {
        // No T, so that nobody needs z.
        let to = (|_| (), &mut status);
        let step = step::<C, T, LANES, ROWS>(cta, group, column, (k, rows), to);
        let of = (step.of.first, step.of.tau);
        reflect::<C, T, LANES, ROWS>(cta, group, (step.x, k), of, side);
    }
    status
}

/// Applies reflector k, whose other components are at `x`, to the right-hand side.
#[inline(always)]
#[track_caller]
fn reflect<C: Cta, T: Ranged, const LANES: usize, const ROWS: usize>(
    cta: &C,
    group: &Group<T>,
    (x, k): ((Shared<T>, usize), u32),
    (first, tau): (T, T),
    side: &mut [T; MOST],
) {
    let mut v = [T::ZERO; MOST];
    let mut sum = T::ZERO;
    for m in 0..ROWS.div_ceil(LANES) {
        let row = group.lane + (m * LANES) as u32;
        if row > k && row < ROWS as u32 {
            v[m] = cta.shared_read(x.0, x.1 + (row - k) as usize);
        } else if row == k {
            v[m] = first;
        }
        sum = v[m].fma(side[m], sum);
    }
    let mut distance = LANES as u32 / 2;
    while distance > 0 {
        sum = sum + cta.shuffle(sum, Shuffle::Xor(distance), WARP, FULL);
        distance /= 2;
    }
    let z = -tau * sum;
    for m in 0..ROWS.div_ceil(LANES) {
        side[m] = v[m].fma(z, side[m]);
    }
}

/// Element `lane` of R⁻¹·y.
#[inline(always)]
#[track_caller]
fn substitute<C: Cta, T: Ranged, const LANES: usize>(
    cta: &C,
    group: &Group<T>,
    (mut y, steps): (T, u32),
) -> T {
    let read = |row: u32, col: u32| cta.shared_read(group.tile, (col * group.pitch + row) as usize);
    let least = group.site.least();
    for i in 0..steps {
        let k = steps - 1 - i;
        // A matrix of fewer columns than another of the warp waits.
        let is_there = k < least;
        let (diagonal, above) = match is_there {
            true => (read(k, k), read(group.lane, k)),
            false => (T::ONE, T::ZERO),
        };
        let of_k = cta.shuffle(y, Shuffle::Index(k), LANES as u32, FULL);
        let x = of_k / diagonal;
        if is_there && group.lane == k {
            y = x;
        } else if is_there && group.lane < k {
            y = (-above).fma(x, y);
        }
    }
    y
}
