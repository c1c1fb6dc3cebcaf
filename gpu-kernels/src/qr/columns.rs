//! Tiny matrices: several columns a lane, all in registers; 32 / `LANES` matrices of a warp.
//!
//! | what | where |
//! |---|---|
//! | columns l, l + `LANES`, …, from the first row that is not finished | registers of lane l |
//! | the column that becomes a reflector | shared, two in turns, read by all lanes of the matrix, twice in each step |
//! | finished rows, then T | shared, column by column (row by row), from where whole lines go to memory |
//! | the products that T is made of | shared, those of a column with later ones alone |
//!
//! Steps are those of [`lanes`](super::lanes), and have the same bits. What a step costs apart from its products (a barrier, a
//! square root, a reciprocal) is shared by as many matrices as a warp has, which are more the more columns a lane has.
//!
//! One piece of code makes all steps: `LANES` steps take the first of a lane's columns, then it goes behind the others, so that
//! registers have fixed numbers although nothing is unrolled over steps. A step for each row and column of its own, with nothing
//! computed for finished rows, filled 78 to 124 KB of code, which warps in different places fetched again and again.
//!
//! Shared arrays of the matrices of a block lie in three regions, each with a distance between matrices that puts what a
//! warp accesses at once into different banks.
//!
//! Valid for at most `COLS` = `LANES` · `EACH` columns and `ROWS` rows. The same bits on every device and grid.

use super::args::{NOT_FINITE, PACKS, QrArgs, ZERO_PIVOT};
use super::lanes::rescaled;
use super::pieces::{CHUNK, read_chunk, write_piece};
use super::reflector::{Ranged, Scale, is_safe, reflector, square};
use super::tiny::{
    Group, load_column, own_lane, own_site, site_of, stage, write_factors, write_status,
    write_triangle,
};
use super::triangle;
use crate::cta::{Cta, Shared, Shuffle};
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
    triangle::packed(cols) + 4
}

/// Shared memory of a block.
pub const fn columns_shared_bytes(lanes: u32, each: u32, rows: u32, bytes: u32) -> u32 {
    let elements =
        tile_step(lanes, each, rows, bytes) + z_step(lanes * each) + 2 * pitch(rows, bytes);
    COLUMNS_BLOCK / lanes * elements * bytes
}

/// A lane's columns, with what it has of their reflectors.
struct Columns<T, const EACH: usize, const ROWS: usize> {
    /// Rows from the first that is not finished on; zeros behind the last.
    rows: [[T; ROWS]; EACH],
    numbers: [u32; EACH],
    first: [T; EACH],
    tau: [T; EACH],
    /// NaN where something was not finite, else 0.
    check: T,
}

/// See the head of the file.
#[inline(always)]
pub fn columns<
    C: Cta,
    T: Ranged,
    const LANES: usize,
    const EACH: usize,
    const COLS: usize,
    const ROWS: usize,
    const BLOCKS: u32,
>(
    cta: &C,
    args: &QrArgs<'_, T>,
) {
    const { assert!(COLS == LANES * EACH) };
    cta.launch_bounds::<COLUMNS_BLOCK, BLOCKS>();
    let group = group::<C, T, LANES, EACH, ROWS>(cta, args);
    let mut columns = Columns {
        rows: load::<C, T, LANES, EACH, COLS, ROWS>(cta, args, &group),
        numbers: core::array::from_fn(|own| group.lane + (own * LANES) as u32),
        first: [T::ZERO; EACH],
        tau: [T::ZERO; EACH],
        check: T::ZERO,
    };
    triangle::clear_packed::<C, T, LANES, COLS>(cta, group.z, group.lane);
    cta.sync_warp();
    let steps = max_lanes(cta, group.site.least());
    columns.factor::<C, LANES, COLS>(cta, &group, steps);
    // Computed again, so that it does not wait in registers.
    let group = Group {
        site: site_of(cta, args, cta.fresh(group.number)),
        ..group
    };
    if steps < ROWS as u32 {
        columns.stage_rest(cta, &group, steps);
    }
    finish::<C, T, LANES, EACH, COLS, ROWS>(cta, args, &group, &columns, steps);
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
        z: Shared::at((z + in_block * z_step) * T::SIZE, triangle::packed(cols)),
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

impl<T: Ranged, const EACH: usize, const ROWS: usize> Columns<T, EACH, ROWS> {
    /// All steps; afterwards columns begin with row `steps`, and are in their first order again.
    #[inline(always)]
    #[track_caller]
    fn factor<C: Cta, const LANES: usize, const COLS: usize>(
        &mut self,
        cta: &C,
        group: &Group<T>,
        steps: u32,
    ) {
        let rows = max_lanes(cta, group.site.rows);
        // Loops for certain: see the head of the file.
        let (mut k, mut end, all) = (0, LANES as u32, cta.fresh(COLS as u32));
        while end <= all {
            while k < end.min(steps) {
                self.step::<C, LANES, COLS>(cta, group, (k, rows - k));
                k += 1;
            }
            self.turn();
            end += LANES as u32;
        }
    }

    /// The first column goes behind the others.
    #[inline(always)]
    fn turn(&mut self) {
        self.rows = turned(self.rows);
        self.numbers = turned(self.numbers);
        self.first = turned(self.first);
        self.tau = turned(self.tau);
    }

    /// Step `k`, of `live` rows: row k is finished and staged, the others move up. The whole warp calls.
    #[inline(always)]
    #[track_caller]
    fn step<C: Cta, const LANES: usize, const COLS: usize>(
        &mut self,
        cta: &C,
        group: &Group<T>,
        (k, live): (u32, u32),
    ) {
        let x = (group.x, (k % 2 * group.turn) as usize);
        let is_own = self.numbers[0] == k;
        if is_own {
            write_piece(cta, x.0, x.1, &self.rows[0]);
        }
        cta.sync_warp();
        let mut x1 = cta.shared_read(x.0, x.1);
        let mut dots = self.products(cta, x, live);
        // That of the lane whose column is x.
        let of_x = |d: T| cta.shuffle(d, Shuffle::Index(k % LANES as u32), LANES as u32, FULL);
        let mut tail = of_x(dots[0]);
        let mut scale = Scale::ONE;
        let is_odd = !is_safe(square(x1, tail));
        if cta.ballot(is_odd, FULL) != 0 {
            scale = rescaled::<C, T, ROWS>(cta, x, &mut self.rows[0], (is_own, is_odd));
            x1 = cta.shared_read(x.0, x.1);
            dots = self.products(cta, x, live);
            tail = of_x(dots[0]);
        }
        let of = reflector(x1, square(x1, tail), scale);
        let mut zs = [T::ZERO; EACH];
        for j in 0..EACH {
            let z = -of.tau * of.first.fma(self.rows[j][0], dots[j]);
            let number = self.numbers[j];
            if number < k {
                triangle::keep_packed::<C, T, COLS>(cta, group.z, (k, number), z);
            }
            zs[j] = if number > k { z } else { T::ZERO };
            let finished = match j == 0 && is_own {
                true => of.diagonal,
                false => of.first.fma(zs[j], self.rows[j][0]),
            };
            cta.shared_write(group.tile, (number * group.pitch + k) as usize, finished);
            // A product that is not finite leaves a row of a later column that is not.
            self.check = finished.fma(T::ZERO, self.check);
        }
        if is_own {
            (self.first[0], self.tau[0]) = (of.first, of.tau);
        }
        self.subtract(cta, x, live, &zs);
    }

    /// Σ x · a of each column, all but their first rows, in the order of [`dot_tail`](super::pieces::dot_tail).
    #[inline(always)]
    #[track_caller]
    fn products<C: Cta>(&self, cta: &C, x: (Shared<T>, usize), live: u32) -> [T; EACH] {
        let mut sums = [[T::ZERO; 4]; EACH];
        for c in 0..ROWS / CHUNK {
            if (c * CHUNK) as u32 >= live {
                break;
            }
            let xs: [T; CHUNK] = read_chunk(cta, x.0, x.1 + c * CHUNK);
            for (r, x) in xs.iter().enumerate() {
                if c + r == 0 {
                    continue;
                }
                for (sums, rows) in sums.iter_mut().zip(&self.rows) {
                    sums[r % 4] = x.fma(rows[c * CHUNK + r], sums[r % 4]);
                }
            }
        }
        let mut dots = [T::ZERO; EACH];
        for (dot, sums) in dots.iter_mut().zip(&sums) {
            *dot = four_of(sums);
        }
        dots
    }

    /// Row r becomes row r + 1 + z · x: the first row leaves, a zero comes in. The shown column has zeros behind its last row.
    #[inline(always)]
    #[track_caller]
    fn subtract<C: Cta>(&mut self, cta: &C, x: (Shared<T>, usize), live: u32, zs: &[T; EACH]) {
        let mut xs: [T; CHUNK] = read_chunk(cta, x.0, x.1);
        for c in 0..ROWS / CHUNK {
            let next = (c + 1) * CHUNK;
            if (c * CHUNK) as u32 >= live {
                break;
            }
            let following = match next < ROWS {
                true => read_chunk(cta, x.0, x.1 + next),
                false => [T::ZERO; CHUNK],
            };
            for (rows, z) in self.rows.iter_mut().zip(zs) {
                for (r, x) in xs[1..].iter().enumerate() {
                    let at = c * CHUNK + r;
                    rows[at] = x.fma(*z, rows[at + 1]);
                }
                rows[next - 1] = match next < ROWS {
                    true => following[0].fma(*z, rows[next]),
                    false => T::ZERO,
                };
            }
            xs = following;
        }
    }

    /// Rows that no step has finished, to the tile.
    #[inline(always)]
    #[track_caller]
    fn stage_rest<C: Cta>(&mut self, cta: &C, group: &Group<T>, steps: u32) {
        for (rows, number) in self.rows.iter().zip(&self.numbers) {
            let own = (*number * group.pitch) as usize;
            for (r, value) in rows.iter().enumerate() {
                let row = steps as usize + r;
                if row < ROWS {
                    self.check = value.fma(T::ZERO, self.check);
                    cta.shared_write(group.tile, own + row, *value);
                }
            }
        }
    }

    /// What was met.
    #[inline(always)]
    fn status(&self, least: u32) -> u32 {
        let mut status = if self.check == T::ZERO { 0 } else { NOT_FINITE };
        for (number, tau) in self.numbers.iter().zip(&self.tau) {
            // That of x = 0, and of no other.
            if *number < least && *tau == T::ZERO {
                status |= ZERO_PIVOT;
            }
        }
        status
    }
}

/// The sum of four.
#[inline(always)]
fn four_of<T: Ranged>(sums: &[T; 4]) -> T {
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

/// The values behind the first one, then that.
#[inline(always)]
fn turned<T: Copy, const N: usize>(values: [T; N]) -> [T; N] {
    core::array::from_fn(|i| values[(i + 1) % N])
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
    columns: &Columns<T, EACH, ROWS>,
    steps: u32,
) {
    let site = &group.site;
    cta.sync_warp();
    write_factors::<C, T, LANES, COLS, ROWS>(cta, args, group);
    // Not zipped by value: iterators over arrays lie in memory.
    for (own, number) in columns.numbers.iter().enumerate() {
        if *number < site.least() {
            let to = (site.first + *number as u64) as usize;
            cta.write(args.first, to, columns.first[own]);
        }
    }
    write_status::<C, T, LANES>(cta, args, group, columns.status(site.least()));
    if !args.t.is_some() {
        return;
    }
    cta.sync_warp();
    let to = (group.tile, group.pitch);
    let numbers = (columns.numbers, steps);
    triangle::several_rows::<C, T, EACH, COLS>(cta, group.z, numbers, columns.tau, to);
    cta.sync_warp();
    write_triangle::<C, T, LANES, COLS>(cta, args, group);
}
