//! Tiny matrices: a lane for each column, all of it in registers; 32 / `LANES` matrices of a warp.
//!
//! | what | where |
//! |---|---|
//! | column l, from the first row that is not finished | registers of lane l |
//! | the column that becomes a reflector | shared, two in turns, read by all lanes |
//! | finished rows, then T | shared, column by column (row by row), from where whole lines go to memory |
//!
//! Step k: lane k shows its column x; every lane has d = xᵀa without the first row, and from lane k's, which is the sum of
//! squares, the reflector; z = −τ·(d + v₁·a₀). Lanes after k add z·v. Lanes before k have columns of V, and their z is what T
//! needs: no lane does anything else than the others. Row k leaves the registers, which move up.
//!
//! Valid for at most `LANES` columns and `ROWS` rows. The same bits on every device and grid.

use super::args::{NOT_FINITE, PACKS, QrArgs, ZERO_PIVOT};
use super::pieces::{dot_tail, read_chunk, read_live, shift_and_add, write_piece};
use super::reflector::{Ranged, Reflector, Scale, is_finite, is_safe, reflector, square};
use super::tiny::{
    Group, load_column, own_lane, own_site, stage, write_factors, write_status, write_triangle,
};
use super::{pieces, triangle};
use crate::cta::{Cta, Shared, Shuffle};
use crate::math::abs;
use crate::verbs::{FULL, max_lanes};

/// Threads of a block.
pub const LANES_BLOCK: u32 = 128;

/// Elements from a staged column to the next: a pack more than its rows.
const fn pitch(rows: u32, bytes: u32) -> u32 {
    rows + 16 / bytes
}

/// Elements of shared memory of a matrix: the staged tile, z, and two columns.
const fn elements(lanes: u32, rows: u32, bytes: u32) -> u32 {
    let tall = if rows > lanes { rows } else { lanes };
    lanes * pitch(tall, bytes) + lanes * lanes + 2 * rows
}

/// Shared memory of a block.
pub const fn lanes_shared_bytes(lanes: u32, rows: u32, bytes: u32) -> u32 {
    LANES_BLOCK / lanes * elements(lanes, rows, bytes) * bytes
}

/// See the head of the file.
#[inline(always)]
pub fn lanes<C: Cta, T: Ranged, const LANES: usize, const ROWS: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
) {
    let group = group::<C, T, LANES, ROWS>(cta, args);
    let mut column = load::<C, T, LANES, ROWS>(cta, args, &group);
    triangle::clear::<C, T, LANES>(cta, group.z, group.lane);
    cta.sync_warp();
    let steps = max_lanes(cta, group.site.least());
    let made = factor::<C, T, LANES, ROWS>(cta, &group, &mut column, steps);
    finish::<C, T, LANES, ROWS>(cta, args, &group, &column, (steps, made));
}

/// What lane k has of reflector k, and what was met on the way.
#[derive(Clone, Copy)]
struct Made<T> {
    first: T,
    tau: T,
    status: u32,
}

/// Tile, z and columns in turns of a matrix, one behind the other.
#[inline(always)]
#[track_caller]
pub(super) fn group<C: Cta, T: Ranged, const LANES: usize, const ROWS: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
) -> Group<T> {
    let (lanes, rows) = (LANES as u32, ROWS as u32);
    let (in_block, number, site) = own_site(cta, args, lanes);
    let pitch = pitch(rows.max(lanes), T::SIZE);
    let byte = in_block * elements(lanes, rows, T::SIZE) * T::SIZE;
    let tile = Shared::at(byte, lanes * pitch);
    let z = Shared::at(tile.end(), lanes * lanes);
    Group {
        site,
        number,
        lane: own_lane(cta, lanes),
        tile,
        pitch,
        z,
        x: Shared::at(z.end(), 2 * rows),
        turn: rows,
    }
}

/// The lane's column, zeros where there is none.
#[inline(always)]
#[track_caller]
pub(super) fn load<C: Cta, T: Ranged, const LANES: usize, const ROWS: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
    group: &Group<T>,
) -> [T; ROWS] {
    if !args.has(PACKS) && group.site.a_col == 1 {
        let column = load_column(cta, args, group, group.lane);
        cta.sync_warp();
        return column;
    }
    stage::<C, T, LANES, LANES, ROWS>(cta, args, group);
    cta.sync_warp();
    let mut column = [T::ZERO; ROWS];
    for c in 0..ROWS / pieces::CHUNK {
        let at = (group.lane * group.pitch) as usize + c * pieces::CHUNK;
        let chunk: [T; pieces::CHUNK] = read_chunk(cta, group.tile, at);
        for (r, value) in chunk.into_iter().enumerate() {
            column[c * pieces::CHUNK + r] = value;
        }
    }
    column
}

/// All steps; afterwards `column` begins with row `steps`.
#[inline(always)]
#[track_caller]
fn factor<C: Cta, T: Ranged, const LANES: usize, const ROWS: usize>(
    cta: &C,
    group: &Group<T>,
    column: &mut [T; ROWS],
    steps: u32,
) -> Made<T> {
    let mut made = Made {
        first: T::ZERO,
        tau: T::ZERO,
        status: 0,
    };
    let rows = max_lanes(cta, group.site.rows);
    for k in 0..steps {
        let keep = |z| triangle::keep::<C, T, LANES>(cta, group.z, (k, group.lane), z);
        let status = &mut made.status;
        let step = step::<C, T, LANES, ROWS>(cta, group, column, (k, rows), (keep, status));
        if step.is_own {
            (made.first, made.tau) = (step.of.first, step.of.tau);
        }
    }
    made
}

/// What a step has made.
pub(super) struct Step<T> {
    /// Reflector k, in every lane.
    pub(super) of: Reflector<T>,
    /// Where its other components lie, from the first on.
    pub(super) x: (Shared<T>, usize),
    /// Whether it is made of this lane's column.
    pub(super) is_own: bool,
}

/// Step `k` of `rows` rows: row k is finished and staged, the others move up; `keep` takes z, and `status` what is met. The
/// whole warp calls.
#[inline(always)]
#[track_caller]
pub(super) fn step<C: Cta, T: Ranged, const LANES: usize, const ROWS: usize>(
    cta: &C,
    group: &Group<T>,
    column: &mut [T; ROWS],
    (k, rows): (u32, u32),
    (keep, status): (impl FnOnce(T), &mut u32),
) -> Step<T> {
    let x = (group.x, (k % 2 * group.turn) as usize);
    let is_own = group.lane == k;
    if is_own {
        write_piece(cta, x.0, x.1, column);
    }
    cta.sync_warp();
    let live = rows - k;
    let mut shown: [T; ROWS] = read_live(cta, x, live);
    let mut d = dot_tail(&shown, column, live);
    let mut tail = cta.shuffle(d, Shuffle::Index(k), LANES as u32, FULL);
    let mut factor = Scale::ONE;
    let is_odd = !is_safe(square(shown[0], tail));
    if cta.ballot(is_odd, FULL) != 0 {
        factor = rescaled::<C, T, ROWS>(cta, x, column, (is_own, is_odd));
        shown = read_live(cta, x, live);
        d = dot_tail(&shown, column, live);
        tail = cta.shuffle(d, Shuffle::Index(k), LANES as u32, FULL);
    }
    let of = reflector(shown[0], square(shown[0], tail), factor);
    let z = -of.tau * of.first.fma(column[0], d);
    keep(z);
    let later = if group.lane > k { z } else { T::ZERO };
    let finished = if is_own {
        of.diagonal
    } else {
        of.first.fma(later, column[0])
    };
    let to = (group.lane * group.pitch + k) as usize;
    cta.shared_write(group.tile, to, finished);
    let is_one = k < group.site.least();
    if is_own && is_one && of.diagonal == T::ZERO {
        *status |= ZERO_PIVOT;
    }
    if !(is_finite(z) && is_finite(finished)) {
        *status |= NOT_FINITE;
    }
    shift_and_add(&shown, column, live, later);
    Step { of, x, is_own }
}

/// Brings x, and the column that it is, near 1 where its square is out of range. The whole warp calls.
#[inline(always)]
#[track_caller]
pub(super) fn rescaled<C: Cta, T: Ranged, const ROWS: usize>(
    cta: &C,
    x: (Shared<T>, usize),
    column: &mut [T; ROWS],
    (is_own, is_odd): (bool, bool),
) -> Scale<T> {
    let factor = scale_of::<T, ROWS>(is_odd, |i| cta.shared_read(x.0, x.1 + i));
    cta.sync_warp();
    if is_own {
        column.iter_mut().for_each(|x| *x = factor.up(*x));
        write_piece(cta, x.0, x.1, column);
    }
    cta.sync_warp();
    factor
}

/// The scale of a column of which `row` gives the elements; one where its square is in range.
#[inline(always)]
pub(super) fn scale_of<T: Ranged, const ROWS: usize>(
    is_odd: bool,
    row: impl Fn(usize) -> T,
) -> Scale<T> {
    let mut largest = T::ZERO;
    for i in 0..ROWS {
        let value = abs(row(i));
        // A NaN is not larger: it stays out of the scale, and in the column.
        if value > largest {
            largest = value;
        }
    }
    match is_odd {
        true => Scale::of(largest),
        false => Scale::ONE,
    }
}

/// Writes the factors, first components, T and status.
#[inline(always)]
#[track_caller]
fn finish<C: Cta, T: Ranged, const LANES: usize, const ROWS: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
    group: &Group<T>,
    column: &[T; ROWS],
    (steps, made): (u32, Made<T>),
) {
    let (site, own) = (&group.site, (group.lane * group.pitch) as usize);
    for (r, value) in column.iter().enumerate() {
        let row = steps as usize + r;
        if row < ROWS {
            cta.shared_write(group.tile, own + row, *value);
        }
    }
    cta.sync_warp();
    write_factors::<C, T, LANES, LANES, ROWS>(cta, args, group);
    if group.lane < site.least() {
        cta.write(
            args.first,
            (site.first + group.lane as u64) as usize,
            made.first,
        );
    }
    write_status::<C, T, LANES>(cta, args, group, made.status);
    if !args.t.is_some() {
        return;
    }
    cta.sync_warp();
    let to = (group.tile, group.pitch);
    triangle::rows::<C, T, LANES>(cta, group.z, (group.lane, steps), made.tau, to);
    cta.sync_warp();
    write_triangle::<C, T, LANES, LANES>(cta, args, group);
}
