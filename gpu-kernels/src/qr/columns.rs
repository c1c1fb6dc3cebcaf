//! Tiny matrices: several columns a lane, all in registers; 32 / `LANES` matrices of a warp.
//!
//! | what | where |
//! |---|---|
//! | columns l and l + `LANES`, from the first row that is not finished | registers of lane l |
//! | the column that becomes a reflector | registers of all lanes of the matrix, by shuffles; where those are too few, shared, two in turns, read twice in each step |
//! | finished rows, then T | shared, column by column (row by row), from where whole lines go to memory |
//! | the products that T is made of | shared, those of a column with later ones alone |
//!
//! Steps are those of [`lanes`](super::lanes), and have the same bits. What a step costs apart from its products (a square root, a
//! reciprocal, a vote) is shared by as many matrices as a warp has, which are more the more columns a lane has.
//!
//! Two pieces of code make all steps, one for each column of a lane, so that registers have fixed numbers although nothing is unrolled
//! over steps. A step for each row and column of its own, with nothing computed for finished rows, filled 78 to 124 KB of code, which
//! warps in different places fetched again and again.
//!
//! What bounds it: with the shown column in shared memory the way to that was busy in 86 % of all cycles, for a pack that
//! eight lanes read takes as long as eight packs (16 × 16 in f32, ncu on an H200).
//!
//! Shared arrays of the matrices of a block lie in three regions, each with a distance between matrices that puts what a
//! warp accesses at once into different banks.
//!
//! Valid for at most `COLS` = `LANES` · `EACH` columns and `ROWS` rows. The same bits on every device and grid.

use super::args::{NOT_FINITE, PACKS, QrArgs, ZERO_PIVOT};
use super::lanes::{rescaled, scale_of};
use super::pieces::{CHUNK, read_chunk};
use super::reflector::{Ranged, Reflector, Scale, is_safe, reflector, square};
use super::shown::{Left, Shown, is_held, of_lane};
use super::tiny::{
    Group, load_column, most, own_lane, own_site, site_of, stage, write_factors, write_status,
    write_triangle,
};
use super::triangle;
use crate::cta::{Cta, Shared};
use crate::verbs::FULL;

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

/// Elements of a shown column in shared memory.
const fn x_step(rows: u32, bytes: u32) -> u32 {
    if is_held(rows, bytes) {
        0
    } else {
        pitch(rows, bytes)
    }
}

/// Shared memory of a block.
pub const fn columns_shared_bytes(lanes: u32, each: u32, rows: u32, bytes: u32) -> u32 {
    let elements =
        tile_step(lanes, each, rows, bytes) + z_step(lanes * each) + 2 * x_step(rows, bytes);
    COLUMNS_BLOCK / lanes * elements * bytes
}

/// A lane's columns, with what it has of their reflectors.
pub(super) struct Columns<T, const EACH: usize, const ROWS: usize> {
    /// Rows from the first that is not finished on; zeros behind the last.
    pub rows: [[T; ROWS]; EACH],
    pub numbers: [u32; EACH],
    first: [T; EACH],
    tau: [T; EACH],
    /// NaN where something was not finite, else 0.
    pub check: T,
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
    const { assert!(EACH == 2 && COLS == LANES * EACH) };
    cta.launch_bounds::<COLUMNS_BLOCK, BLOCKS>();
    let group = group::<C, T, LANES, EACH, ROWS>(cta, args);
    let mut columns = Columns::<T, EACH, ROWS>::load::<C, LANES, COLS>(cta, args, &group);
    let steps = most(cta, args, group.site.least(), args.rows.min(args.cols));
    let rows = most(cta, args, group.site.rows, args.rows);
    if steps < COLS as u32 || !triangle::are_unrolled(COLS) {
        triangle::clear_packed::<C, T, LANES, COLS>(cta, group.z, group.lane);
        cta.sync_warp();
    }
    columns.factor::<C, LANES, COLS>(cta, &group, (steps, rows));
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

/// Where the lane's matrix lies.
#[inline(always)]
#[track_caller]
pub(super) fn group<C: Cta, T: Ranged, const LANES: usize, const EACH: usize, const ROWS: usize>(
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
        x_step(rows, T::SIZE),
    ];
    let pitch = pitch(rows.max(cols), T::SIZE);
    let z = matrices * tile_step;
    let x = z + matrices * z_step;
    let x_elements = if x_step > 0 {
        matrices * x_step + rows
    } else {
        0
    };
    Group {
        site,
        number,
        lane: own_lane(cta, lanes),
        tile: Shared::at(in_block * tile_step * T::SIZE, tile_step),
        pitch,
        z: Shared::at((z + in_block * z_step) * T::SIZE, triangle::packed(cols)),
        x: Shared::at((x + in_block * x_step) * T::SIZE, x_elements),
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
    /// The lane's columns before the first step.
    #[inline(always)]
    #[track_caller]
    pub(super) fn load<C: Cta, const LANES: usize, const COLS: usize>(
        cta: &C,
        args: &QrArgs<'_, T>,
        group: &Group<T>,
    ) -> Self {
        Columns {
            rows: load::<C, T, LANES, EACH, COLS, ROWS>(cta, args, group),
            numbers: core::array::from_fn(|own| group.lane + (own * LANES) as u32),
            first: [T::ZERO; EACH],
            tau: [T::ZERO; EACH],
            check: T::ZERO,
        }
    }

    /// All steps; afterwards columns begin with row `steps`.
    #[inline(always)]
    #[track_caller]
    fn factor<C: Cta, const LANES: usize, const COLS: usize>(
        &mut self,
        cta: &C,
        group: &Group<T>,
        (steps, rows): (u32, u32),
    ) {
        let first = steps.min(LANES as u32);
        each_step((0, first), rows, |at| {
            self.step::<C, LANES, COLS, 0>(cta, group, at);
        });
        each_step((first, steps), rows, |at| {
            self.step::<C, LANES, COLS, 1>(cta, group, at);
        });
    }

    /// Brings the shown column near 1 where its square is out of range. The whole warp calls.
    #[inline(always)]
    #[track_caller]
    fn rescale<C: Cta, const LANES: usize, const OWN: usize>(
        &mut self,
        cta: &C,
        group: &Group<T>,
        (x, is_odd): (&mut Shown<T, ROWS>, bool),
        (k, live): (u32, u32),
    ) -> Scale<T> {
        let is_own = self.numbers[OWN] == k;
        if !Shown::<T, ROWS>::HELD {
            return rescaled::<C, T, ROWS>(cta, x.at, &mut self.rows[OWN], (is_own, is_odd));
        }
        let scale = scale_of::<T, ROWS>(is_odd, |i| x.held[i]);
        if is_own {
            self.rows[OWN].iter_mut().for_each(|x| *x = scale.up(*x));
        }
        *x = Shown::of::<C, LANES, OWN>(cta, group, (&self.rows[OWN], is_own), (k, live));
        scale
    }

    /// Shows column `k`, and makes a reflector of it; with the products of the lane's columns from `FROM` on. The whole warp calls.
    #[inline(always)]
    #[track_caller]
    pub(super) fn reflect<C: Cta, const LANES: usize, const OWN: usize, const FROM: usize>(
        &mut self,
        cta: &C,
        group: &Group<T>,
        (k, live): (u32, u32),
    ) -> (Shown<T, ROWS>, [T; EACH], Reflector<T>) {
        let own = (&self.rows[OWN], self.numbers[OWN] == k);
        let mut x = Shown::of::<C, LANES, OWN>(cta, group, own, (k, live));
        let mut x1 = x.first(cta);
        let mut dots = self.products::<C, LANES, OWN, FROM>(cta, &x, live);
        let mut tail = of_lane::<C, T, LANES>(cta, dots[OWN], k);
        let mut scale = Scale::ONE;
        let is_odd = !is_safe(square(x1, tail));
        if cta.ballot(is_odd, FULL) != 0 {
            scale = self.rescale::<C, LANES, OWN>(cta, group, (&mut x, is_odd), (k, live));
            x1 = x.first(cta);
            dots = self.products::<C, LANES, OWN, FROM>(cta, &x, live);
            tail = of_lane::<C, T, LANES>(cta, dots[OWN], k);
        }
        (x, dots, reflector(x1, square(x1, tail), scale))
    }

    /// Step `k`, of `live` rows: row k is finished and staged, the others move up. The whole warp calls.
    #[inline(always)]
    #[track_caller]
    fn step<C: Cta, const LANES: usize, const COLS: usize, const OWN: usize>(
        &mut self,
        cta: &C,
        group: &Group<T>,
        (k, live): (u32, u32),
    ) {
        let (x, dots, of) = self.reflect::<C, LANES, OWN, 0>(cta, group, (k, live));
        let is_own = self.numbers[OWN] == k;
        let mut zs = [T::ZERO; EACH];
        for j in 0..EACH {
            let z = -of.tau * of.first.fma(self.rows[j][0], dots[j]);
            let number = self.numbers[j];
            if j < OWN || (j == OWN && number < k) {
                triangle::keep_packed::<C, T, COLS>(cta, group.z, (k, number), z);
            }
            if j > OWN || (j == OWN && number > k) {
                zs[j] = z;
            }
            let finished = match j == OWN && is_own {
                true => of.diagonal,
                false => of.first.fma(zs[j], self.rows[j][0]),
            };
            cta.shared_write(group.tile, (number * group.pitch + k) as usize, finished);
            // A product that is not finite leaves a row of a later column that is not.
            self.check = finished.fma(T::ZERO, self.check);
        }
        if is_own {
            (self.first[OWN], self.tau[OWN]) = (of.first, of.tau);
        }
        self.subtract::<C, LANES, OWN, 0>(cta, &x, (live, &zs));
    }

    /// Σ x · a of each column from `FROM` on, all but their first rows, in the order of [`dot_tail`](super::pieces::dot_tail).
    #[inline(always)]
    #[track_caller]
    fn products<C: Cta, const LANES: usize, const OWN: usize, const FROM: usize>(
        &self,
        cta: &C,
        x: &Shown<T, ROWS>,
        live: u32,
    ) -> [T; EACH] {
        let mut sums = [[T::ZERO; 4]; EACH];
        for c in 0..ROWS / CHUNK {
            if !Left::<LANES, ROWS, OWN>::has(c, live) {
                break;
            }
            let xs = x.chunk(cta, c);
            for (r, x) in xs.iter().enumerate() {
                if c + r == 0 {
                    continue;
                }
                for (j, (sums, rows)) in sums.iter_mut().zip(&self.rows).enumerate() {
                    // Not skipped by an iterator: then sums lie in memory.
                    if j >= FROM {
                        sums[r % 4] = x.fma(rows[c * CHUNK + r], sums[r % 4]);
                    }
                }
            }
        }
        let mut dots = [T::ZERO; EACH];
        for (dot, sums) in dots.iter_mut().zip(&sums) {
            *dot = four_of(sums);
        }
        dots
    }

    /// Row r of columns from `FROM` on becomes row r + 1 + z · x: the first row leaves, a zero comes in. The shown column has zeros
    /// behind its last row.
    #[inline(always)]
    #[track_caller]
    pub(super) fn subtract<C: Cta, const LANES: usize, const OWN: usize, const FROM: usize>(
        &mut self,
        cta: &C,
        x: &Shown<T, ROWS>,
        (live, zs): (u32, &[T; EACH]),
    ) {
        let mut xs = x.chunk(cta, 0);
        for c in 0..ROWS / CHUNK {
            let next = (c + 1) * CHUNK;
            if !Left::<LANES, ROWS, OWN>::has(c, live) {
                break;
            }
            let has_next = c + 1 < Left::<LANES, ROWS, OWN>::CHUNKS;
            let following = match has_next {
                true => x.chunk(cta, c + 1),
                false => [T::ZERO; CHUNK],
            };
            for (j, (rows, z)) in self.rows.iter_mut().zip(zs).enumerate() {
                if j < FROM {
                    continue;
                }
                for (r, x) in xs[1..].iter().enumerate() {
                    let at = c * CHUNK + r;
                    rows[at] = x.fma(*z, rows[at + 1]);
                }
                rows[next - 1] = match has_next {
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

/// Calls `step((k, live))` for steps `k` to `end` − 1 of a matrix of `rows` rows, of which `live` are left. A loop for certain: see the
/// head of the file.
#[inline(always)]
#[track_caller]
pub(super) fn each_step((mut k, end): (u32, u32), rows: u32, mut step: impl FnMut((u32, u32))) {
    while k < end {
        step((k, rows - k));
        k += 1;
    }
}

/// The sum of four.
#[inline(always)]
pub(super) fn four_of<T: Ranged>(sums: &[T; 4]) -> T {
    (sums[0] + sums[1]) + (sums[2] + sums[3])
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
