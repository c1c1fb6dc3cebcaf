//! A panel: up to `LANES` columns of one matrix, from a row on, in the registers of one block.
//!
//! | what | where |
//! |---|---|
//! | `ROWS` consecutive rows of a part in column l | registers of lane l of the part; 32 / `LANES` parts of a warp |
//! | the column that becomes a reflector | shared, two in turns: a part reads its own rows |
//! | xᵀa of each warp, row k | shared, two in turns |
//! | z, T | shared, of the first warp |
//! | tiles of 32 rows on their way | shared, of each warp |
//!
//! Steps are those of [`lanes`](super::lanes), with one barrier of the block each: between the sums of parts and their
//! total, which every warp adds up in the same order. Row k is of the first part, whose registers move up when it has left.
//!
//! Valid for at most `ROWS` · parts rows from the panel's first, `ROWS` a multiple of 32. The same bits on every device.
//!
//! Where one block has no room for the rows of 32 columns, the blocks of a [cluster](over) share them.

mod load;
mod over;

pub(super) use load::load;
pub use over::spread;

use super::args::{NOT_FINITE, QrArgs, R_ONLY, Site, ZERO_PIVOT};
use super::pieces::{add_and_shift, add_scaled, dot, write_piece};
use super::reflector::{Ranged, Scale, is_finite, is_safe, reflector, square};
use super::triangle;
use crate::cta::{Cta, Shared, Shuffle, WARP};
use crate::math::abs;
use crate::verbs::{FULL, lane};

/// Elements from a column of a staged tile to the next.
const PITCH: u32 = WARP + 1;

/// Elements of each part of shared memory: staged tiles, columns, sums, rows, z, and what the blocks of a cluster tell each other.
const fn parts_of_shared(lanes: u32, rows: u32, [warps, blocks]: [u32; 2]) -> [u32; 6] {
    // Packs begin at multiples of 16 bytes.
    let staged = (warps * lanes * PITCH).next_multiple_of(4);
    let parts = warps * (WARP / lanes);
    [
        staged,
        2 * parts * rows,
        2 * warps * lanes,
        2 * lanes,
        lanes * lanes,
        over::elements(lanes, blocks),
    ]
}

/// Shared memory of a block of `warps` warps, one of `blocks` that share a matrix.
pub const fn panel_shared_bytes(lanes: u32, rows: u32, team: [u32; 2], bytes: u32) -> u32 {
    let [staged, columns, sums, row, z, told] = parts_of_shared(lanes, rows, team);
    (staged + columns + sums + row + z + told) * bytes
}

/// The block's matrix, and what a lane has of it.
pub(super) struct Panel<T> {
    /// Of the matrix.
    pub(super) number: u32,
    pub(super) site: Site,
    start: u32,
    /// Rows from the first, and columns, of the panel.
    pub(super) rows: u32,
    pub(super) cols: u32,
    /// Reflectors.
    steps: u32,
    pub(super) lane: u32,
    /// Number of the block among those of the matrix, and of the warp in its block.
    rank: u32,
    warp: u32,
    /// Number of the part in the matrix, and parts of a block.
    pub(super) part: u32,
    parts: u32,
    staged: Shared<T>,
    columns: Shared<T>,
    sums: Shared<T>,
    row: Shared<T>,
    z: Shared<T>,
    /// Of the blocks of a cluster.
    told: Shared<T>,
}

/// See the head of the file.
#[inline(always)]
pub fn panel<
    C: Cta,
    T: Ranged,
    const LANES: usize,
    const ROWS: usize,
    const WARPS: usize,
    const THREADS: u32,
>(
    cta: &C,
    args: &QrArgs<'_, T>,
) {
    cta.launch_bounds::<THREADS, 1>();
    let Some(panel) = Panel::<T>::of::<C, LANES, ROWS, WARPS, 1>(cta, args, (cta.block(), 0))
    else {
        return;
    };
    let mut piece = load::<C, T, LANES, ROWS>(cta, args, &panel);
    if panel.part == 0 && args.t.is_some() {
        triangle::clear::<C, T, LANES>(cta, panel.z, panel.lane);
    }
    let made = factor::<C, T, LANES, ROWS, WARPS, 1>(cta, args, &panel, &mut piece);
    finish::<C, T, LANES, ROWS>(cta, args, &panel, &piece, made);
}

/// What lane k has of reflector k, and what was met on the way.
#[derive(Clone, Copy)]
pub(super) struct Made<T> {
    first: T,
    tau: T,
    status: u32,
}

impl<T: Ranged> Panel<T> {
    /// That of matrix `number`, as block `rank` of those that share it has it; none where it has no such panel.
    #[inline(always)]
    #[track_caller]
    pub(super) fn of<
        C: Cta,
        const LANES: usize,
        const ROWS: usize,
        const WARPS: usize,
        const BLOCKS: usize,
    >(
        cta: &C,
        args: &QrArgs<'_, T>,
        (number, rank): (u32, u32),
    ) -> Option<Panel<T>> {
        let (lanes, rows) = (LANES as u32, ROWS as u32);
        let site = Site::of(cta, args, number);
        if args.start >= site.least() {
            return None;
        }
        let sizes = parts_of_shared(lanes, rows, [WARPS as u32, BLOCKS as u32]);
        let staged = Shared::at(0, sizes[0]);
        let columns = Shared::at(staged.end(), sizes[1]);
        let sums = Shared::at(columns.end(), sizes[2]);
        let row = Shared::at(sums.end(), sizes[3]);
        let z = Shared::at(row.end(), sizes[4]);
        let (warp, of_warp) = (cta.thread() / WARP, lane(cta));
        let parts = WARPS as u32 * (WARP / lanes);
        Some(Panel {
            number,
            site,
            start: args.start,
            rows: site.rows - args.start,
            cols: (site.cols - args.start).min(lanes),
            steps: (site.least() - args.start).min(lanes),
            lane: of_warp % lanes,
            rank,
            warp,
            part: rank * parts + warp * (WARP / lanes) + of_warp / lanes,
            parts,
            staged,
            columns,
            sums,
            row,
            told: Shared::at(z.end(), sizes[5]),
            z,
        })
    }

    /// The warp's staged tile.
    #[inline(always)]
    fn tile(&self, lanes: u32) -> Shared<T> {
        let len = lanes * PITCH;
        Shared::at(self.staged.byte() + self.warp * len * T::SIZE, len)
    }

    /// The first row of tile number `tile` of the warp.
    #[inline(always)]
    fn first_row(&self, lanes: u32, rows: u32, tile: u32) -> u32 {
        (self.rank * self.parts + self.warp * (WARP / lanes)) * rows + tile * WARP
    }
}

/// xᵀa of all parts for the lane's column; barriers of the block inside.
#[inline(always)]
#[track_caller]
fn total<
    C: Cta,
    T: Ranged,
    const LANES: usize,
    const ROWS: usize,
    const WARPS: usize,
    const BLOCKS: usize,
>(
    cta: &C,
    panel: &Panel<T>,
    piece: &[T; ROWS],
    (k, live): (u32, u32),
) -> T {
    let turn = k % 2;
    let x = own(panel, ROWS, turn);
    let mut sum = dot(cta, x, piece, live, panel.part == 0);
    let mut distance = LANES as u32;
    while distance < WARP {
        sum = sum + cta.shuffle(sum, Shuffle::Xor(distance), WARP, FULL);
        distance *= 2;
    }
    let base = (turn as usize) * WARPS * LANES;
    if lane(cta) < LANES as u32 {
        let at = base + (panel.warp * LANES as u32 + panel.lane) as usize;
        cta.shared_write(panel.sums, at, sum);
    }
    if panel.part == 0 {
        let at = turn * LANES as u32 + panel.lane;
        cta.shared_write(panel.row, at as usize, piece[0]);
    }
    cta.sync();
    if BLOCKS == 1 {
        return of_warps::<C, T, LANES, WARPS>(cta, panel, base);
    }
    if panel.warp < BLOCKS as u32 {
        let sum = of_warps::<C, T, LANES, WARPS>(cta, panel, base);
        over::tell::<C, T, BLOCKS>(cta, panel, (turn, sum));
    }
    over::total::<C, T, BLOCKS>(cta, panel, turn)
}

/// The sum of what the block's warps have for the lane's column.
#[inline(always)]
#[track_caller]
fn of_warps<C: Cta, T: Ranged, const LANES: usize, const WARPS: usize>(
    cta: &C,
    panel: &Panel<T>,
    base: usize,
) -> T {
    let mut sum = T::ZERO;
    for warp in 0..WARPS {
        let at = base + warp * LANES + panel.lane as usize;
        sum = sum + cta.shared_read(panel.sums, at);
    }
    sum
}

/// Where the part's rows of the shown column are.
#[inline(always)]
fn own<T: Ranged>(panel: &Panel<T>, rows: usize, turn: u32) -> (Shared<T>, usize) {
    let part = turn * panel.parts + panel.part - panel.rank * panel.parts;
    (panel.columns, part as usize * rows)
}

/// All steps; afterwards the first part begins with row `steps`.
#[inline(always)]
#[track_caller]
pub(super) fn factor<
    C: Cta,
    T: Ranged,
    const LANES: usize,
    const ROWS: usize,
    const WARPS: usize,
    const BLOCKS: usize,
>(
    cta: &C,
    args: &QrArgs<'_, T>,
    panel: &Panel<T>,
    piece: &mut [T; ROWS],
) -> Made<T> {
    let mut made = Made {
        first: T::ZERO,
        tau: T::ZERO,
        status: 0,
    };
    let below = panel.rows.saturating_sub(panel.part * ROWS as u32);
    for k in 0..panel.steps {
        let turn = k % 2;
        let x = own(panel, ROWS, turn);
        let live = if panel.part == 0 {
            below.min(ROWS as u32) - k
        } else {
            below
        };
        let is_own = panel.lane == k;
        if is_own {
            write_piece(cta, x.0, x.1, piece);
        }
        cta.sync_warp();
        let shuffled = |d: T| cta.shuffle(d, Shuffle::Index(k), LANES as u32, FULL);
        let mut d = total::<C, T, LANES, ROWS, WARPS, BLOCKS>(cta, panel, piece, (k, live));
        let mut tail = shuffled(d);
        let row = (turn * LANES as u32) as usize;
        let mut x1 = cta.shared_read(panel.row, row + k as usize);
        let at_row = cta.shared_read(panel.row, row + panel.lane as usize);
        let mut factor = Scale::ONE;
        if !is_safe(square(x1, tail)) {
            // The same in all threads of the block.
            factor = rescaled::<C, T, ROWS, BLOCKS>(cta, panel, piece, (turn, is_own));
            d = total::<C, T, LANES, ROWS, WARPS, BLOCKS>(cta, panel, piece, (k, live));
            tail = shuffled(d);
            x1 = factor.up(x1);
        }
        let of = reflector(x1, square(x1, tail), factor);
        let z = -of.tau * of.first.fma(at_row, d);
        let later = if panel.lane > k { z } else { T::ZERO };
        if panel.part == 0 {
            let finished = if is_own {
                of.diagonal
            } else {
                of.first.fma(later, at_row)
            };
            made.status |= found(is_own, z, finished);
            if is_own {
                (made.first, made.tau) = (of.first, of.tau);
            }
            if args.t.is_some() {
                triangle::keep::<C, T, LANES>(cta, panel.z, (k, panel.lane), z);
            }
            leave(cta, args, panel, k, finished);
            add_and_shift(cta, x, piece, live, later);
        } else {
            add_scaled(cta, x, piece, live, later);
        }
    }
    made
}

/// What a step says of the matrix.
#[inline(always)]
fn found<T: Ranged>(is_own: bool, z: T, finished: T) -> u32 {
    let mut status = 0;
    if is_own && finished == T::ZERO {
        status |= ZERO_PIVOT;
    }
    if !(is_finite(z) && is_finite(finished)) {
        status |= NOT_FINITE;
    }
    status
}

/// Writes row k, which is finished.
#[inline(always)]
#[track_caller]
fn leave<C: Cta, T: Ranged>(cta: &C, args: &QrArgs<'_, T>, panel: &Panel<T>, k: u32, finished: T) {
    if panel.lane >= panel.cols {
        return;
    }
    let is_below = panel.lane < k && args.has(R_ONLY);
    let value = if is_below { T::ZERO } else { finished };
    let at = panel.site.in_f(panel.start + k, panel.start + panel.lane);
    cta.write(args.f, at, value);
}

/// Brings x, and the column that it is, near 1. The whole block, or cluster, calls.
#[inline(always)]
#[track_caller]
fn rescaled<C: Cta, T: Ranged, const ROWS: usize, const BLOCKS: usize>(
    cta: &C,
    panel: &Panel<T>,
    piece: &mut [T; ROWS],
    (turn, is_own): (u32, bool),
) -> Scale<T> {
    let all = panel.parts as usize * ROWS;
    let mut largest = T::ZERO;
    let mut i = lane(cta) as usize;
    while i < all {
        let value = abs(cta.shared_read(panel.columns, turn as usize * all + i));
        if value > largest {
            largest = value;
        }
        i += WARP as usize;
    }
    let mut distance = WARP / 2;
    while distance > 0 {
        let other = cta.shuffle(largest, Shuffle::Xor(distance), WARP, FULL);
        if other > largest {
            largest = other;
        }
        distance /= 2;
    }
    if BLOCKS > 1 {
        largest = over::largest::<C, T, BLOCKS>(cta, panel, largest);
    }
    let factor = Scale::of(largest);
    if BLOCKS == 1 {
        cta.sync();
    }
    if is_own {
        piece.iter_mut().for_each(|x| *x = factor.up(*x));
        let x = own(panel, ROWS, turn);
        write_piece(cta, x.0, x.1, piece);
    }
    cta.sync_warp();
    factor
}

/// Writes the reflectors below the panel's triangle, first components, the panel's T, and the status.
#[inline(always)]
#[track_caller]
pub(super) fn finish<C: Cta, T: Ranged, const LANES: usize, const ROWS: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
    panel: &Panel<T>,
    piece: &[T; ROWS],
    made: Made<T>,
) {
    let is_first = panel.rank == 0 && panel.warp == 0;
    if is_first {
        note(cta, args, panel, made.status);
    }
    if args.has(R_ONLY) {
        return;
    }
    let (site, start) = (&panel.site, panel.start);
    if panel.part == 0 && panel.lane < panel.steps {
        let at = site.first + (start + panel.lane) as u64;
        cta.write(args.first, at as usize, made.first);
    }
    store::<C, T, LANES, ROWS>(cta, args, panel, piece);
    if !is_first || !args.t.is_some() {
        return;
    }
    cta.sync_warp();
    let tile = panel.tile(LANES as u32);
    if panel.part == 0 {
        let row = (panel.lane, panel.steps);
        triangle::rows::<C, T, LANES>(cta, panel.z, row, made.tau, (tile, PITCH));
    }
    cta.sync_warp();
    for row in 0..panel.steps {
        if panel.part == 0 && panel.lane < panel.steps {
            let value = cta.shared_read(tile, (row * PITCH + panel.lane) as usize);
            cta.write(args.t, site.in_t(start + row, start + panel.lane), value);
        }
    }
}

/// Adds what was met to the matrix's status; launches for the panels of a matrix follow each other. The first warp calls.
#[inline(always)]
#[track_caller]
fn note<C: Cta, T: Ranged>(cta: &C, args: &QrArgs<'_, T>, panel: &Panel<T>, status: u32) {
    let mut all = if panel.part == 0 { status } else { 0 };
    let mut distance = WARP / 2;
    while distance > 0 {
        all |= cta.shuffle(all, Shuffle::Xor(distance), WARP, FULL);
        distance /= 2;
    }
    if lane(cta) == 0 {
        let at = panel.number as usize;
        all |= cta.read(args.status, at);
        cta.write(args.status, at, all);
    }
}

/// The registers to the factors, tile by tile.
#[inline(always)]
#[track_caller]
fn store<C: Cta, T: Ranged, const LANES: usize, const ROWS: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
    panel: &Panel<T>,
    piece: &[T; ROWS],
) {
    let tile = panel.tile(LANES as u32);
    for half in 0..ROWS / WARP as usize {
        for group in 0..WARP / LANES as u32 {
            if lane(cta) / LANES as u32 == group {
                for r in 0..WARP as usize {
                    let at = (panel.lane * PITCH) as usize + r;
                    cta.shared_write(tile, at, piece[half * WARP as usize + r]);
                }
            }
            cta.sync_warp();
            let part = panel.rank * panel.parts + panel.warp * (WARP / LANES as u32) + group;
            let left = if part == 0 { panel.steps } else { 0 };
            let of_part = half as u32 * WARP + lane(cta);
            let row = part * ROWS as u32 + left + of_part;
            if of_part + left < ROWS as u32 && row < panel.rows {
                for col in 0..panel.cols {
                    let value = cta.shared_read(tile, (col * PITCH + lane(cta)) as usize);
                    let at = panel.site.in_f(panel.start + row, panel.start + col);
                    cta.write(args.f, at, value);
                }
            }
            cta.sync_warp();
        }
    }
}
