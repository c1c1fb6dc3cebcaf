//! Least squares of tiny matrices as [`least`](super::least) solves them, with two columns a lane.
//!
//! A matrix lies as in [`columns`](super::columns). Every lane has its right-hand side besides, a further column that is never
//! shown: what it costs is less than sums over lanes. Columns that have become reflectors are not needed any more. What is finished of R
//! goes to where the tile was staged, column by column, one element further apart than rows, so that rows are written and
//! columns read without two lanes that meet in a bank. Then lane l has elements l and l + `LANES` of y, which become those of x.
//!
//! Valid for at most `COLS` = 2 · `LANES` columns and `ROWS` rows, `ROWS` ≥ columns, of matrices that are moved in packs. The same
//! bits on every device and grid.

use super::args::{NOT_FINITE, QrArgs, ZERO_PIVOT};
use super::columns::{COLUMNS_BLOCK, Columns, each_step, four_of, group};
use super::least::at;
use super::pieces::CHUNK;
use super::reflector::{Ranged, Reflector};
use super::shown::{Left, Shown, of_lane};
use super::tiny::{Group, most, write_status};
use crate::cta::{Cta, Shared};

/// Columns of a lane.
const EACH: usize = 2;

/// See the head of the file.
#[inline(always)]
pub fn least_columns<
    C: Cta,
    T: Ranged,
    const LANES: usize,
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
    let mut system = System::<T, ROWS> {
        columns: Columns::load::<C, LANES, COLS>(cta, args, &group),
        side: side(cta, args, &group),
        finished: Finished::of::<C, LANES>(cta, &group, COLS as u32),
        y: [T::ZERO; EACH],
        diagonal: [T::ZERO; EACH],
    };
    // R takes the place of the staged columns.
    cta.sync_warp();
    let steps = most(cta, args, group.site.least(), args.rows.min(args.cols));
    let rows = most(cta, args, group.site.rows, args.rows);
    let first = steps.min(LANES as u32);
    each_step((0, first), rows, |at| {
        system.step::<C, LANES, 0>(cta, &group, at);
    });
    each_step((first, steps), rows, |at| {
        system.step::<C, LANES, 1>(cta, &group, at);
    });
    let least = group.site.least();
    write_status::<C, T, LANES>(cta, args, &group, system.status(least));
    cta.sync_warp();
    system.substitute::<C, LANES>(cta, least, steps);
    for (number, x) in system.columns.numbers.iter().zip(&system.y) {
        if *number < group.site.cols {
            cta.write(args.c, at(args, &group, *number), *x);
        }
    }
}

/// The right-hand side, zeros where there is none.
#[inline(always)]
#[track_caller]
fn side<C: Cta, T: Ranged, const ROWS: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
    group: &Group<T>,
) -> [T; ROWS] {
    core::array::from_fn(|row| match (row as u32) < group.site.rows {
        true => cta.read(args.c, at(args, group, row as u32)),
        false => T::ZERO,
    })
}

/// Where what is finished of R lies.
struct Finished<T> {
    tile: Shared<T>,
    /// Elements before the first, so that matrices of a warp lie in different banks.
    skew: u32,
    pitch: u32,
}

impl<T: Ranged> Finished<T> {
    #[inline(always)]
    fn of<C: Cta, const LANES: usize>(cta: &C, group: &Group<T>, cols: u32) -> Self {
        let lanes = LANES as u32;
        // What 128 bytes have room for is accessed at once.
        let together = (128 / T::SIZE / lanes).max(1);
        Finished {
            tile: group.tile,
            skew: cta.thread() / lanes % together * lanes,
            pitch: cols + 1,
        }
    }

    #[inline(always)]
    fn place(&self, row: u32, col: u32) -> usize {
        (self.skew + col * self.pitch + row) as usize
    }
}

/// A lane's part of a matrix and its right-hand side.
struct System<T, const ROWS: usize> {
    columns: Columns<T, EACH, ROWS>,
    /// From the first row that is not finished on.
    side: [T; ROWS],
    finished: Finished<T>,
    /// Finished elements of the right-hand side, later of the solution.
    y: [T; EACH],
    /// Of R, in the lane's columns.
    diagonal: [T; EACH],
}

impl<T: Ranged, const ROWS: usize> System<T, ROWS> {
    /// Step `k`, of `live` rows. The whole warp calls.
    #[inline(always)]
    #[track_caller]
    fn step<C: Cta, const LANES: usize, const OWN: usize>(
        &mut self,
        cta: &C,
        group: &Group<T>,
        (k, live): (u32, u32),
    ) {
        let columns = &mut self.columns;
        let (x, dots, of) = columns.reflect::<C, LANES, OWN, OWN>(cta, group, (k, live));
        let is_own = columns.numbers[OWN] == k;
        let mut zs = [T::ZERO; EACH];
        for j in 0..EACH {
            if j < OWN {
                continue;
            }
            let (number, first) = (columns.numbers[j], columns.rows[j][0]);
            if j > OWN || number > k {
                zs[j] = -of.tau * of.first.fma(first, dots[j]);
            }
            let finished = match j == OWN && is_own {
                true => of.diagonal,
                false => of.first.fma(zs[j], first),
            };
            if j > OWN || number >= k {
                cta.shared_write(self.finished.tile, self.finished.place(k, number), finished);
                columns.check = finished.fma(T::ZERO, columns.check);
            }
        }
        columns.subtract::<C, LANES, OWN, OWN>(cta, &x, (live, &zs));
        let y = self.of_side::<C, LANES, OWN>(cta, &x, (live, of));
        if is_own {
            (self.y[OWN], self.diagonal[OWN]) = (y, of.diagonal);
        }
    }

    /// Applies a reflector to the right-hand side, of which a row is finished.
    #[inline(always)]
    #[track_caller]
    fn of_side<C: Cta, const LANES: usize, const OWN: usize>(
        &mut self,
        cta: &C,
        x: &Shown<T, ROWS>,
        (live, of): (u32, Reflector<T>),
    ) -> T {
        let mut sums = [T::ZERO; 4];
        for c in 0..ROWS / CHUNK {
            if !Left::<LANES, ROWS, OWN>::has(c, live) {
                break;
            }
            for (r, x) in x.chunk(cta, c).iter().enumerate() {
                if c + r > 0 {
                    sums[r % 4] = x.fma(self.side[c * CHUNK + r], sums[r % 4]);
                }
            }
        }
        let z = -of.tau * of.first.fma(self.side[0], four_of(&sums));
        let finished = of.first.fma(z, self.side[0]);
        for c in 0..ROWS / CHUNK {
            if !Left::<LANES, ROWS, OWN>::has(c, live) {
                break;
            }
            for (r, x) in x.chunk(cta, c).iter().enumerate() {
                if c + r > 0 {
                    self.side[c * CHUNK + r - 1] = x.fma(z, self.side[c * CHUNK + r]);
                }
            }
            if c + 1 == Left::<LANES, ROWS, OWN>::CHUNKS {
                self.side[(c + 1) * CHUNK - 1] = T::ZERO;
            }
        }
        finished
    }

    /// What was met.
    #[inline(always)]
    fn status(&self, least: u32) -> u32 {
        let mut status = match self.columns.check == T::ZERO {
            true => 0,
            false => NOT_FINITE,
        };
        for (number, diagonal) in self.columns.numbers.iter().zip(&self.diagonal) {
            if *number < least && *diagonal == T::ZERO {
                status |= ZERO_PIVOT;
            }
        }
        status
    }

    /// R⁻¹·y takes the place of y.
    #[inline(always)]
    #[track_caller]
    fn substitute<C: Cta, const LANES: usize>(&mut self, cta: &C, least: u32, steps: u32) {
        for i in 0..steps {
            let k = steps - 1 - i;
            let own = usize::from(k >= LANES as u32);
            let is_late = own == 1;
            let [y, diagonal] = match is_late {
                true => [self.y[1], self.diagonal[1]],
                false => [self.y[0], self.diagonal[0]],
            };
            let x = of_lane::<C, T, LANES>(cta, y / diagonal, k);
            // A matrix of fewer columns than another of the warp waits.
            if k >= least {
                continue;
            }
            for j in 0..EACH {
                let number = self.columns.numbers[j];
                if number == k {
                    self.y[j] = x;
                } else if number < k {
                    let above = cta.shared_read(self.finished.tile, self.finished.place(number, k));
                    self.y[j] = (-above).fma(x, self.y[j]);
                }
            }
        }
    }
}
