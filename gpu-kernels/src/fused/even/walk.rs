//! The walk over a share: see [`even`](crate::fused::even).

use super::rows::{Rows, Tiles, any_part, whole_rows};
use super::sums::Sums;
use super::tile::Part;
use super::{EvenArgs, TILE};
use crate::cta::{Cache, Cta, Shared, Shuffle, WARP};
use crate::fused::{Compute, SparseArgs};
use crate::scalar::Real;
use crate::verbs::{FULL, lane, load_or, sum_lanes, sum_of_lanes};

/// Entries of a row that each of its lanes adds up, at most: longer rows are the whole warp's.
const MOST_OF_LANE: u32 = 16;

/// Any product that accumulates into w.
#[inline(always)]
pub(super) fn accumulate<C, T, P, S>(cta: &C, args: &EvenArgs<'_, T>)
where
    C: Cta,
    T: Real,
    P: Compute,
    S: Sums<T>,
{
    // Sums take all of an SM's shared memory: its threads have to be of one block.
    // As `most_threads` has it.
    if T::SIZE == 4 {
        cta.launch_bounds::<896, 1>();
    } else {
        cta.launch_bounds::<512, 1>();
    }
    let sums = if P::DOTS {
        S::open::<C, true>(cta, args)
    } else {
        S::open::<C, false>(cta, args)
    };
    let own = cta.thread() / WARP * TILE * T::SIZE;
    let walk = Walk {
        args,
        sums: &sums,
        exchange: Shared::at(sums.end() + own, TILE),
        shift: load_or(cta, args.x.shift, 0, T::ZERO),
    };
    if P::DOTS {
        whole_rows(cta, &walk);
    } else {
        any_part(cta, &walk);
    }
    sums.flush(cta, args);
}

struct Walk<'w, 'a, T, S> {
    args: &'w EvenArgs<'a, T>,
    sums: &'w S,
    /// An element for each entry of this warp's tile.
    exchange: Shared<T>,
    shift: T,
}

impl<T: Real, S: Sums<T>> Walk<'_, '_, T, S> {
    /// What this lane's row is multiplied by, besides its product: v, and p where there is no product.
    #[inline(always)]
    fn weight<C: Cta, const DOTS: bool>(&self, cta: &C, row: u32, is_there: bool) -> T {
        let x = &self.args.x;
        let mut weight = T::ZERO;
        if is_there {
            weight = load_or(cta, x.weights, row as usize, T::ONE);
            if !DOTS {
                weight = weight * cta.load(x.input, row as usize, Cache::Once);
            }
        }
        weight * x.alpha
    }

    /// The factor of a row.
    #[inline(always)]
    fn factor<const DOTS: bool>(&self, weight: T, dot: T) -> T {
        if DOTS {
            weight * (dot - self.shift)
        } else {
            weight
        }
    }

    /// Rows of which each lane has few entries: their products are added up, and replaced by the factor.
    #[inline(always)]
    fn short_rows<C: Cta, const DOTS: bool>(&self, cta: &C, rows: &Rows, weight: T) {
        let lanes = rows.lanes();
        let of = lane(cta) >> rows.lane_bits();
        let (begin, end) = rows.bounds(cta, of);
        let weight = cta.shuffle(weight, Shuffle::Index(of), WARP, FULL);
        let is_short = of < rows.count && end - begin <= MOST_OF_LANE * lanes;
        let end = if is_short { end } else { begin };
        let own = begin + (lane(cta) & (lanes - 1));
        let mut dot = T::ZERO;
        if DOTS {
            let mut at = own;
            while at < end {
                dot = dot + cta.shared_read(self.exchange, at as usize);
                at += lanes;
            }
            dot = sum_of_lanes(cta, dot, lanes);
        }
        self.write(cta, (own, end, lanes), self.factor::<DOTS>(weight, dot));
    }

    /// The others, one after the other by the whole warp.
    #[inline(always)]
    fn long_rows<C: Cta, const DOTS: bool>(
        &self,
        cta: &C,
        rows: &Rows,
        (part, weight): (&Part<T>, T),
    ) {
        let is_there = lane(cta) < rows.count;
        let is_long = is_there && rows.end - rows.begin > MOST_OF_LANE * rows.lanes();
        let mut long = cta.ballot(is_long, FULL);
        while long != 0 {
            let of = long.trailing_zeros();
            let (begin, end) = rows.bounds(cta, of);
            let mut dot = T::ZERO;
            if DOTS {
                dot = sum_lanes::<C, T, WARP>(cta, part.dot(cta, (begin, end), dot));
            }
            let weight = cta.shuffle(weight, Shuffle::Index(of), WARP, FULL);
            let factor = self.factor::<DOTS>(weight, dot);
            self.write(cta, (begin + lane(cta), end, WARP), factor);
            long &= long - 1;
        }
    }

    /// Writes a factor at every `step`th place.
    #[inline(always)]
    fn write<C: Cta>(&self, cta: &C, (mut at, end, step): (u32, u32, u32), factor: T) {
        while at < end {
            cta.shared_write(self.exchange, at as usize, factor);
            at += step;
        }
    }
}

impl<'a, T: Real, S: Sums<T>> Tiles<'a, T> for Walk<'_, 'a, T, S> {
    #[inline(always)]
    fn x(&self) -> &SparseArgs<'a, T> {
        &self.args.x
    }

    #[inline(always)]
    fn tile<C: Cta, const DOTS: bool>(&self, cta: &C, (first, count): (u32, u32), rows: &Rows) {
        let args = self.args;
        let is_there = lane(cta) < rows.count;
        let weight = self.weight::<C, DOTS>(cta, rows.first + lane(cta), is_there);
        let part = if DOTS {
            Part::load::<C, S, true>(cta, args, (self.sums, first, count))
        } else {
            Part::load_window(cta, args, (self.sums, first, count))
        };
        if DOTS {
            part.each_product(cta, |at, product| {
                cta.shared_write(self.exchange, at, product);
            });
            cta.sync_warp();
        }
        self.short_rows::<C, DOTS>(cta, rows, weight);
        self.long_rows::<C, DOTS>(cta, rows, (&part, weight));
        cta.sync_warp();
        let factor = |at| cta.shared_read(self.exchange, at);
        if DOTS {
            part.add::<C, S, false>(cta, args, self.sums, factor);
        } else {
            part.add::<C, S, true>(cta, args, self.sums, factor);
        }
        // Before the next tile's products are written.
        cta.sync_warp();
    }

    #[inline(always)]
    fn long_row<C: Cta>(&self, cta: &C, row: u32, (first, end): (u32, u32)) {
        let weight = self.weight::<C, true>(cta, row, true);
        let mut dot = T::ZERO;
        let mut from = first;
        while from < end {
            let count = (end - from).min(TILE);
            let part = Part::load::<C, S, true>(cta, self.args, (self.sums, from, count));
            dot = part.dot(cta, (0, count), dot);
            from += count;
        }
        let dot = sum_lanes::<C, T, WARP>(cta, dot);
        let factor = self.factor::<true>(weight, dot);
        let mut from = first;
        while from < end {
            let count = (end - from).min(TILE);
            let part = Part::load::<C, S, false>(cta, self.args, (self.sums, from, count));
            part.add::<C, S, false>(cta, self.args, self.sums, |_| factor);
            from += count;
        }
    }
}
