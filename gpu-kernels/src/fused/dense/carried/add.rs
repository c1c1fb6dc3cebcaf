//! The rows of a block, added to what threads have of w.

use super::{CarriedArgs, CarriedOrder, MOST_ROWS, MOST_WARPS, SCRATCH};
use crate::cta::{Cache, Cta, Shared, WARP};
use crate::scalar::{Pack, Real};
use crate::verbs::{lane, load_or, sum_of_lanes, zero_shared};

/// Where a thread stands in the kernel whose order it is.
struct Seat {
    rank: u32,
    team: u32,
    group: u32,
    size: u32,
}

impl Seat {
    #[inline(always)]
    fn of<C: Cta>(cta: &C, order: &CarriedOrder) -> Seat {
        match order.lanes {
            0 => Seat {
                rank: cta.thread(),
                team: 0,
                group: 0,
                size: order.threads,
            },
            lanes => Seat {
                rank: lane(cta) % lanes,
                team: lane(cta) / lanes,
                group: cta.thread() / WARP,
                size: lanes,
            },
        }
    }
}

/// The rows of X at hand: those of a block, behind rows of the same unit that somebody else has added.
struct Rows {
    /// Rows of the first unit that are not there.
    before: u64,
    /// The same and the rows that are there.
    end: u64,
    is_last: bool,
}

/// A chunk's part of a panel in the threads' sums.
struct Part {
    /// The first element of the state.
    base: u64,
    /// The panel's first column.
    start: u32,
}

/// Adds the rows of a block.
#[inline(always)]
pub(super) fn add<C: Cta, T: Real, P: Pack<T>>(cta: &C, args: &CarriedArgs<'_, T>) {
    let (order, width) = (&args.order, P::LANES as u32);
    let scratch = Shared::at(0, SCRATCH);
    zero_shared(cta, scratch);
    cta.sync();
    let seat = Seat::of(cta, order);
    let unit_rows = order.unit_rows();
    let first = args.first_row / unit_rows;
    let before = args.first_row % unit_rows;
    let rows = Rows {
        before,
        end: before + args.x.rows as u64,
        is_last: args.is_last != 0,
    };
    let units = rows.end.div_ceil(unit_rows);
    let (chunks, panels) = (order.chunks as u64, order.panels(args.x.cols, width));
    let shift = load_or(cta, args.x.shift, 0, T::ZERO);
    let (mut item, mut turn) = (cta.block() as u64, 0);
    loop {
        let (panel, slice) = ((item % panels as u64) as u32, item / panels as u64);
        if slice >= chunks.min(units) {
            return;
        }
        let chunk = (first + slice) % chunks;
        let of_part = (order.threads * order.packs * width) as u64;
        let part = Part {
            base: (chunk * panels as u64 + panel as u64) * of_part,
            start: panel * seat.size * order.packs * width,
        };
        let mut unit = slice;
        while unit < units {
            // Who has a unit's first row has nothing to take up in a chunk's first unit.
            let is_new = first + unit < chunks && (unit > 0 || before == 0);
            let place = (unit * unit_rows, shift);
            let step = Step {
                args,
                seat: &seat,
                rows: &rows,
                part: &part,
            };
            step.add_unit::<C, P>(cta, place, is_new, (scratch, &mut turn));
            unit += chunks;
        }
        item += cta.blocks() as u64;
    }
}

/// A chunk's rows in one unit.
struct Step<'a, 'b, T> {
    args: &'b CarriedArgs<'a, T>,
    seat: &'b Seat,
    rows: &'b Rows,
    part: &'b Part,
}

impl<T: Real> Step<'_, '_, T> {
    /// Adds the rows of the thread's team, of a unit that begins at this row.
    #[inline(always)]
    fn add_unit<C: Cta, P: Pack<T>>(
        &self,
        cta: &C,
        (unit_row, shift): (u64, T),
        is_new: bool,
        (scratch, turn): (Shared<T>, &mut u32),
    ) {
        let (order, rows) = (&self.args.order, self.rows);
        let first = unit_row + self.seat.group as u64 * order.group_rows();
        // A tile has all its groups' rows, there or not.
        let begins = if order.is_tiles != 0 { unit_row } else { first };
        if begins >= rows.end && !is_new {
            return;
        }
        let counts_past = rows.is_last && begins < rows.end;
        let row = |i: usize| first + (i as u32 * order.teams() + self.seat.team) as u64;
        let is_there = |row: u64| row >= rows.before && row < rows.end;
        let mut factors = [T::ZERO; MOST_ROWS];
        if order.dots != 0 {
            factors = self.dots::<C, P>(cta, row, (scratch, turn));
        }
        for (i, factor) in factors.iter_mut().enumerate() {
            if (i as u32) < order.rows {
                let row = row(i);
                let multiplier = match is_there(row) {
                    true => self.multiplier(cta, (row - rows.before) as usize),
                    false => T::ZERO,
                };
                *factor = match order.dots {
                    0 => multiplier,
                    _ => (*factor - shift) * multiplier,
                };
            }
        }
        let adds = |i: usize| {
            let row = row(i);
            (i as u32) < order.rows && (is_there(row) || row >= rows.end && counts_past)
        };
        self.scale_add::<C, P>(cta, (row, adds), &factors, is_new);
    }

    /// v, or v ⊙ p, of a row that is there.
    #[inline(always)]
    fn multiplier<C: Cta>(&self, cta: &C, row: usize) -> T {
        let x = &self.args.x;
        let weight = load_or(cta, x.weights, row, T::ONE);
        match self.args.order.dots {
            0 => weight * cta.load(x.input, row, Cache::Keep),
            _ => weight,
        }
    }

    /// The first column of the thread's pack k.
    #[inline(always)]
    fn column(&self, k: u32, width: u32) -> u32 {
        self.part.start + self.args.order.pack(k, self.seat.rank) * width
    }

    /// A thread's pack of a row, zero where the row or the columns end.
    #[inline(always)]
    fn pack<C: Cta, P: Pack<T>>(&self, cta: &C, row: u64, column: u32) -> P {
        let (x, rows) = (&self.args.x, self.rows);
        if column >= x.cols || row < rows.before || row >= rows.end {
            return P::ZERO;
        }
        let at = (row - rows.before) * x.ld + column as u64;
        cta.load_pack(x.x, at as usize, Cache::Keep)
    }

    /// X·y of the team's rows, in every thread of it.
    #[inline(always)]
    fn dots<C: Cta, P: Pack<T>>(
        &self,
        cta: &C,
        row: impl Fn(usize) -> u64,
        (scratch, turn): (Shared<T>, &mut u32),
    ) -> [T; MOST_ROWS] {
        let (order, x) = (&self.args.order, &self.args.x);
        let mut dots = [T::ZERO; MOST_ROWS];
        let mut apart = P::ZERO;
        for k in 0..order.packs {
            let column = self.column(k, P::LANES as u32);
            let mut y = P::ZERO;
            for (j, y) in y.as_mut().iter_mut().enumerate() {
                let column = column + j as u32;
                if column < x.cols {
                    *y = cta.load(x.input, column as usize, Cache::Keep);
                }
            }
            if order.is_ring != 0 {
                let pack: P = self.pack(cta, row(0), column);
                for (j, sum) in apart.as_mut().iter_mut().enumerate() {
                    *sum = pack.as_ref()[j].fma(y.as_ref()[j], *sum);
                }
                continue;
            }
            for (i, dot) in dots.iter_mut().enumerate() {
                if (i as u32) < order.rows {
                    let pack: P = self.pack(cta, row(i), column);
                    *dot = pack.dot(&y, *dot);
                }
            }
        }
        if order.is_ring != 0 {
            let own = in_turn(&apart);
            dots[0] = sum_of_ring::<C, T, P>(cta, own, scratch, turn);
            return dots;
        }
        for (i, dot) in dots.iter_mut().enumerate() {
            if (i as u32) < order.rows {
                *dot = match order.lanes {
                    0 => sum_of_warps(cta, *dot, scratch, turn),
                    lanes => sum_of_lanes(cta, *dot, lanes),
                };
            }
        }
        dots
    }

    /// Adds rows times their factors to what the thread has of w.
    #[inline(always)]
    fn scale_add<C: Cta, P: Pack<T>>(
        &self,
        cta: &C,
        (row, adds): (impl Fn(usize) -> u64, impl Fn(usize) -> bool),
        factors: &[T; MOST_ROWS],
        is_new: bool,
    ) {
        let (order, width) = (&self.args.order, P::LANES as u32);
        let at = |k: u32, j: usize| {
            let element = (k * width + j as u32) * order.threads + cta.thread();
            (self.part.base + element as u64) as usize
        };
        for k in 0..order.packs {
            let mut w = P::ZERO;
            if !is_new {
                for (j, w) in w.as_mut().iter_mut().enumerate() {
                    *w = cta.read(self.args.state, at(k, j));
                }
            }
            for (i, factor) in factors.iter().enumerate() {
                if adds(i) {
                    let pack: P = self.pack(cta, row(i), self.column(k, width));
                    pack.scale_add(*factor, &mut w);
                }
            }
            for (j, w) in w.as_ref().iter().enumerate() {
                cta.write(self.args.state, at(k, j), *w);
            }
        }
    }
}

/// Elements of a pack, left to right.
#[inline(always)]
fn in_turn<T: Real, P: Pack<T>>(pack: &P) -> T {
    let mut sum = T::ZERO;
    for value in pack.as_ref() {
        sum = sum + *value;
    }
    sum
}

/// The sum over a block, warp after warp, as [`WholeBlock`](crate::fused::WholeBlock) adds.
#[inline(always)]
fn sum_of_warps<C: Cta, T: Real>(cta: &C, value: T, scratch: Shared<T>, turn: &mut u32) -> T {
    let half = publish(cta, value, scratch, turn);
    let mut sum = T::ZERO;
    for warp in 0..cta.threads() / WARP {
        sum = sum + cta.shared_read(scratch, (half + warp) as usize);
    }
    sum
}

/// The sum over a block as a ring adds: warps' sums in packs, then the elements of the pack.
#[inline(always)]
fn sum_of_ring<C: Cta, T: Real, P: Pack<T>>(
    cta: &C,
    value: T,
    scratch: Shared<T>,
    turn: &mut u32,
) -> T {
    let half = publish(cta, value, scratch, turn);
    let mut sums = P::ZERO;
    for first in (0..MOST_WARPS).step_by(P::LANES) {
        for (j, sum) in sums.as_mut().iter_mut().enumerate() {
            let of_warp: T = cta.shared_read(scratch, (half + first) as usize + j);
            *sum = of_warp.fma(T::ONE, *sum);
        }
    }
    in_turn(&sums)
}

/// Shows every warp's sum to the block; returns where. Turns alternate, so that one barrier is enough.
#[inline(always)]
fn publish<C: Cta, T: Real>(cta: &C, value: T, scratch: Shared<T>, turn: &mut u32) -> u32 {
    let half = *turn % 2 * MOST_WARPS;
    *turn += 1;
    let of_warp = sum_of_lanes(cta, value, WARP);
    if lane(cta) == 0 {
        cta.shared_write(scratch, (half + cta.thread() / WARP) as usize, of_warp);
    }
    cta.sync();
    half
}
