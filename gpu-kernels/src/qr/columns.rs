//! Tiny matrices: several columns a lane, all in registers; 32 / `LANES` matrices of a warp.
//!
//! | what | where |
//! |---|---|
//! | columns l, l + `LANES`, …, from the first row of the block of steps | registers of lane l |
//! | the column that becomes a reflector | shared, two in turns, read by all lanes of the matrix |
//! | finished rows, then T | shared, column by column (row by row), from where whole lines go to memory |
//!
//! Steps are those of [`lanes`](super::lanes). What a step costs apart from its products (a barrier, a shuffle, a square
//! root, a reciprocal) is shared by as many matrices as a warp has, which are more the more columns a lane has. Steps of a
//! block are unrolled: a finished row is known when the kernel is compiled, and nothing is computed for it. Behind a block
//! its rows leave the registers, and its columns go behind the others.
//!
//! Shared arrays of the matrices of a block lie in three regions, each with a distance between matrices that puts what a
//! warp accesses at once into different banks.
//!
//! Valid for at most `COLS` = `LANES` · `EACH` columns and `ROWS` rows. The same bits on every device and grid.

use core::ops::Range;

use super::args::{NOT_FINITE, PACKS, QrArgs, ZERO_PIVOT};
use super::pieces::{dot_behind, read_chunk, read_from, write_from, write_piece};
use super::reflector::{Ranged, Scale, is_finite, is_safe, reflector, square};
use super::tiny::{
    Group, load_column, own_lane, own_site, stage, write_factors, write_status, write_triangle,
};
use super::triangle;
use crate::cta::{Cta, Shared};
use crate::math::abs;
use crate::verbs::{FULL, max_lanes};

/// Threads of a block.
pub const COLUMNS_BLOCK: u32 = 64;

/// Elements from a staged column to the next, and from a shown column to that of the next matrix.
const fn pitch(rows: u32, bytes: u32) -> u32 {
    rows + 16 / bytes
}

/// Elements from the tile of a matrix to the next. Eight lanes read packs at once: of so few lanes they are several matrices.
const fn tile_step(lanes: u32, each: u32, rows: u32, bytes: u32) -> u32 {
    let (cols, apart) = (
        lanes * each,
        if lanes == 2 {
            24
        } else if lanes == 4 {
            16
        } else {
            0
        },
    );
    cols * pitch(if rows > cols { rows } else { cols }, bytes) + apart
}

/// Elements from the products of a matrix to those of the next.
const fn z_step(cols: u32) -> u32 {
    cols * cols + if cols == 16 { 20 } else { 8 }
}

/// Shared memory of a block.
pub const fn columns_shared_bytes(lanes: u32, each: u32, rows: u32, bytes: u32) -> u32 {
    let elements =
        tile_step(lanes, each, rows, bytes) + z_step(lanes * each) + 2 * pitch(rows, bytes);
    COLUMNS_BLOCK / lanes * elements * bytes
}

/// What lanes have of the reflectors of their columns, and what was met on the way.
#[derive(Clone, Copy)]
struct Made<T, const EACH: usize> {
    first: [T; EACH],
    tau: [T; EACH],
    has_zero: bool,
    is_finite: bool,
}

/// See the head of the file. `STEPS`, a multiple of `LANES`, divides `ROWS`.
#[inline(always)]
pub fn columns<
    C: Cta,
    T: Ranged,
    const LANES: usize,
    const EACH: usize,
    const COLS: usize,
    const ROWS: usize,
    const STEPS: usize,
>(
    cta: &C,
    args: &QrArgs<'_, T>,
) {
    const { assert!(COLS == LANES * EACH && STEPS.is_multiple_of(LANES) && ROWS.is_multiple_of(STEPS)) };
    let group = group::<C, T, LANES, EACH, ROWS>(cta, args);
    let mut columns = load::<C, T, LANES, EACH, COLS, ROWS>(cta, args, &group);
    for own in 0..EACH {
        let number = group.lane + (own * LANES) as u32;
        triangle::clear::<C, T, COLS>(cta, group.z, number);
    }
    cta.sync_warp();
    let steps = max_lanes(cta, group.site.least());
    let rows = max_lanes(cta, group.site.rows);
    let mut made = Made {
        first: [T::ZERO; EACH],
        tau: [T::ZERO; EACH],
        has_zero: false,
        is_finite: true,
    };
    for block in 0..ROWS / STEPS {
        let steps = steps
            .saturating_sub((block * STEPS) as u32)
            .min(STEPS as u32);
        let mut walk = Walk::<T, LANES, EACH, ROWS> {
            group: &group,
            columns: &mut columns,
            made: &mut made,
            base: (block * STEPS) as u32,
            turned: block * (STEPS / LANES) % EACH,
            live: rows.saturating_sub((block * STEPS) as u32),
            steps,
            todo: first_bits(steps),
            odd: 0,
            scaled: false,
            scale: Scale::ONE,
        };
        walk.block::<C, STEPS>(cta);
        walk.leave::<C, STEPS>(cta);
    }
    let turned = ROWS / STEPS * (STEPS / LANES) % EACH;
    finish::<C, T, LANES, EACH, COLS, ROWS>(cta, args, &group, &made, (steps, turned));
}

/// The lowest `count` ≤ 31 bits.
#[inline(always)]
fn first_bits(count: u32) -> u32 {
    (1 << count) - 1
}

/// f(0) to f(N − 1), N ≤ 16: a loop that is unrolled for certain, so that arrays stay in registers.
#[inline(always)]
fn unrolled<const N: usize>(mut f: impl FnMut(usize)) {
    const { assert!(N <= 16) };
    macro_rules! calls {
        ($($i:literal)*) => { $( if $i < N { f($i); } )* };
    }
    calls!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
}

#[inline(always)]
#[track_caller]
fn group<C: Cta, T: Ranged, const LANES: usize, const EACH: usize, const ROWS: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
) -> Group<T> {
    let (lanes, each, rows) = (LANES as u32, EACH as u32, ROWS as u32);
    let (in_block, number, site) = own_site(cta, args, lanes);
    let matrices = COLUMNS_BLOCK / lanes;
    let cols = lanes * each;
    let [tile_step, z_step, x_step] = [
        tile_step(lanes, each, rows, T::SIZE),
        z_step(cols),
        pitch(rows, T::SIZE),
    ];
    let pitch = pitch(rows.max(cols), T::SIZE);
    let z = matrices * tile_step;
    let x = z + matrices * z_step;
    Group {
        site,
        number,
        lane: own_lane(cta, lanes),
        tile: Shared::at(in_block * tile_step * T::SIZE, cols * pitch),
        pitch,
        z: Shared::at((z + in_block * z_step) * T::SIZE, cols * cols),
        x: Shared::at((x + in_block * x_step) * T::SIZE, matrices * x_step + rows),
        turn: matrices * x_step,
    }
}

/// The lane's columns, zeros where there are none.
#[inline(always)]
#[track_caller]
fn load<
    C: Cta,
    T: Ranged,
    const LANES: usize,
    const EACH: usize,
    const COLS: usize,
    const ROWS: usize,
>(
    cta: &C,
    args: &QrArgs<'_, T>,
    group: &Group<T>,
) -> [[T; ROWS]; EACH] {
    let number = |own: usize| group.lane + (own * LANES) as u32;
    if !args.has(PACKS) && group.site.a_col == 1 {
        let columns = core::array::from_fn(|own| load_column(cta, args, group, number(own)));
        cta.sync_warp();
        return columns;
    }
    stage::<C, T, LANES, COLS, ROWS>(cta, args, group);
    cta.sync_warp();
    let staged = |own| read_chunk(cta, group.tile, (number(own) * group.pitch) as usize);
    core::array::from_fn(staged)
}

/// The way through a block of steps.
struct Walk<'a, T, const LANES: usize, const EACH: usize, const ROWS: usize> {
    group: &'a Group<T>,
    columns: &'a mut [[T; ROWS]; EACH],
    made: &'a mut Made<T, EACH>,
    /// Row, and column, of the first step.
    base: u32,
    /// Columns of a lane that are finished and went behind the others.
    turned: usize,
    /// Rows of the largest matrix of the warp from the first of the block on; none where a block is behind all of them.
    live: u32,
    /// Steps of the block.
    steps: u32,
    /// Those that are to be made, a bit each.
    todo: u32,
    /// The step whose column is out of range, as a bit, and bit 31 where it is of this lane's matrix; 0 where none is.
    odd: u32,
    /// Whether the shown column has been scaled, and by what.
    scaled: bool,
    scale: Scale<T>,
}

impl<T: Ranged, const LANES: usize, const EACH: usize, const ROWS: usize>
    Walk<'_, T, LANES, EACH, ROWS>
{
    /// Number of the lane's column in register array `own`.
    #[inline(always)]
    fn number(&self, own: usize) -> u32 {
        self.group.lane + ((own + self.turned) % EACH * LANES) as u32
    }

    /// Whether the lane's column in register array `own` is a reflector since an earlier block.
    #[inline(always)]
    fn is_behind(&self, own: usize) -> bool {
        own + self.turned >= EACH && self.base > 0
    }

    /// All steps of the block.
    ///
    /// What brings a column in range is here once, not in each of the unrolled steps.
    #[inline(always)]
    #[track_caller]
    fn block<C: Cta, const STEPS: usize>(&mut self, cta: &C) {
        loop {
            unrolled::<STEPS>(
                #[inline(always)]
                |i| {
                    if self.todo & (1 << i) != 0 {
                        self.step(cta, i);
                    }
                },
            );
            if self.odd == 0 {
                return;
            }
            let i = self.odd.trailing_zeros() as usize;
            let at = i % 2 * self.group.turn as usize;
            let is_own = self.group.lane == (i % LANES) as u32;
            let range = at + i..at + self.live as usize;
            self.scale = rescale(cta, self.group.x, range, (is_own, self.odd >> 31 == 1));
            self.scaled = true;
            self.todo = first_bits(self.steps) & !first_bits(i as u32);
            self.odd = 0;
        }
    }

    /// Step `i` of the block. Where the column of a matrix of the warp is out of range, no step is made until it is scaled.
    #[inline(always)]
    #[track_caller]
    fn step<C: Cta>(&mut self, cta: &C, i: usize) {
        let (own, owner, k) = (i / LANES, (i % LANES) as u32, self.base + i as u32);
        let (lane, site) = (self.group.lane, self.group.site);
        let is_own = lane == owner;
        let at = i % 2 * self.group.turn as usize;
        if is_own && !self.scaled {
            write_from(cta, (self.group.x, at), &self.columns[own], i);
        }
        cta.sync_warp();
        let x = read_from::<C, T, ROWS>(cta, (self.group.x, at), i);
        let square = square(x[i], dot_behind(&x, &x, i));
        let is_odd = !is_safe(square);
        if !self.scaled && cta.ballot(is_odd, FULL) != 0 {
            (self.odd, self.todo) = (1 << i | (is_odd as u32) << 31, 0);
            return;
        }
        if self.scaled && is_own {
            self.columns[own][i + 1..].copy_from_slice(&x[i + 1..]);
        }
        let of = reflector(x[i], square, self.scale);
        (self.scaled, self.scale) = (false, Scale::ONE);
        for j in 0..EACH {
            let d = dot_behind(&x, &self.columns[j], i);
            let z = -of.tau * of.first.fma(self.columns[j][i], d);
            self.made.is_finite &= is_finite(z) | (j == own && is_own);
            let is_before = j < own || self.is_behind(j);
            if is_before || (j == own && lane < owner) {
                let number = self.number(j);
                triangle::keep_at(cta, self.group.z, (LANES * EACH) as u32, (k, number), z);
            }
            if is_before {
                continue;
            }
            let later = if j > own || lane > owner { z } else { T::ZERO };
            let column = &mut self.columns[j];
            column[i] = of.first.fma(later, column[i]);
            for r in i + 1..ROWS {
                column[r] = x[r].fma(later, column[r]);
            }
        }
        if is_own {
            self.columns[own][i] = of.diagonal;
            (self.made.first[own], self.made.tau[own]) = (of.first, of.tau);
            self.made.has_zero |= k < site.least() && of.diagonal == T::ZERO;
        }
    }

    /// Writes the rows of the block to the tile; rows behind them take their place.
    #[inline(always)]
    #[track_caller]
    fn leave<C: Cta, const STEPS: usize>(&mut self, cta: &C) {
        for j in 0..EACH {
            let at = self.number(j) * self.group.pitch + self.base;
            let rows: [T; STEPS] = core::array::from_fn(|r| self.columns[j][r]);
            self.made.is_finite &= rows.iter().all(|x| is_finite(*x));
            write_piece(cta, self.group.tile, at as usize, &rows);
        }
        let turn = STEPS / LANES;
        let old = *self.columns;
        *self.columns = core::array::from_fn(|j| {
            let from = &old[(j + turn) % EACH];
            core::array::from_fn(|r| {
                if r + STEPS < ROWS {
                    from[r + STEPS]
                } else {
                    T::ZERO
                }
            })
        });
        self.made.first = turned(self.made.first, turn);
        self.made.tau = turned(self.made.tau, turn);
    }
}

/// The values from number `by` on, then those before it.
#[inline(always)]
fn turned<T: Copy, const N: usize>(values: [T; N], by: usize) -> [T; N] {
    core::array::from_fn(|i| values[(i + by) % N])
}

/// Brings the shown elements `range` near 1 where their square is out of range. The whole warp calls.
#[inline(always)]
#[track_caller]
fn rescale<C: Cta, T: Ranged>(
    cta: &C,
    x: Shared<T>,
    range: Range<usize>,
    (is_own, is_odd): (bool, bool),
) -> Scale<T> {
    let mut largest = T::ZERO;
    let mut r = range.start;
    while r < range.end {
        let value = cta.shared_read(x, r);
        // A NaN is not larger: it stays out of the scale, and in the column.
        if abs(value) > largest {
            largest = abs(value);
        }
        r += 1;
    }
    let scale = if is_odd {
        Scale::of(largest)
    } else {
        Scale::ONE
    };
    cta.sync_warp();
    let mut r = range.start;
    while is_own && r < range.end {
        let value = cta.shared_read(x, r);
        cta.shared_write(x, r, scale.up(value));
        r += 1;
    }
    cta.sync_warp();
    scale
}

/// Writes the factors, first components, T and status.
#[inline(always)]
#[track_caller]
fn finish<
    C: Cta,
    T: Ranged,
    const LANES: usize,
    const EACH: usize,
    const COLS: usize,
    const ROWS: usize,
>(
    cta: &C,
    args: &QrArgs<'_, T>,
    group: &Group<T>,
    made: &Made<T, EACH>,
    (steps, turn): (u32, usize),
) {
    let site = &group.site;
    let numbers: [u32; EACH] =
        core::array::from_fn(|j| group.lane + ((j + turn) % EACH * LANES) as u32);
    cta.sync_warp();
    write_factors::<C, T, LANES, COLS, ROWS>(cta, args, group);
    // Not zipped by value: iterators over arrays lie in memory.
    for (own, number) in numbers.iter().enumerate() {
        if *number < site.least() {
            let to = (site.first + *number as u64) as usize;
            cta.write(args.first, to, made.first[own]);
        }
    }
    let status = if made.is_finite { 0 } else { NOT_FINITE };
    let status = status | if made.has_zero { ZERO_PIVOT } else { 0 };
    write_status::<C, T, LANES>(cta, args, group, status);
    if !args.t.is_some() {
        return;
    }
    cta.sync_warp();
    let to = (group.tile, group.pitch);
    triangle::several_rows::<C, T, EACH, COLS>(cta, group.z, (numbers, steps), made.tau, to);
    cta.sync_warp();
    write_triangle::<C, T, LANES, COLS>(cta, args, group);
}
