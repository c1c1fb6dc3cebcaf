//! A warp's walk over the slices of a tile ([`TileSlices`]), group after group.
//!
//! The next group is requested before one is worked on.
//!
//! What did not help, of 80 million entries, 8 sides and 10,000 columns on an H200 (X·Y 207 µs, both products 465 then): the
//! first slice requested before the barrier that Y is waited for at, and Y copied past the registers (254 and 514; with
//! 1,000 and 4,000 columns, 384 and 405 µs, 388 and 407); besides, each slice's entries brought to the L2 cache while the
//! one before it is worked on (563 for both), and the next tile's P too (570); two groups on their way in registers of
//! their own, across the ends of slices (510).

#![expect(
    clippy::needless_range_loop,
    reason = "iterators over registers put them into local memory"
)]

use super::tiles::{GROUP, TileSlices};
use crate::cta::{Cache, Cta, Shared, WARP};
use crate::scalar::{Real, Words};
use crate::verbs::{lane, sum_lanes};

/// A lane's entries of one group.
struct Group<T> {
    places: u64,
    values: [T; GROUP as usize],
}

impl<T: Real> Group<T> {
    #[inline(always)]
    #[expect(
        clippy::manual_memcpy,
        reason = "a copy of slices goes through local memory"
    )]
    fn load<C: Cta>(cta: &C, from: &TileSlices<'_, T>, group: u32) -> Self {
        let at = group as usize * WARP as usize + lane(cta) as usize;
        let mut values = [T::ZERO; GROUP as usize];
        for part in 0..GROUP as usize / T::Pack::LANES {
            let first = part * T::Pack::LANES;
            let pack: T::Pack =
                cta.load_pack(from.values, at * GROUP as usize + first, Cache::Once);
            for i in 0..T::Pack::LANES {
                values[first + i] = pack.as_ref()[i];
            }
        }
        Group {
            places: cta.load(from.places, at, Cache::Once),
            values,
        }
    }

    /// Adds the rows of `source` that the entries name, times their values; pack q of the sums is pack q ^ turn of a row.
    #[inline(always)]
    fn add<C: Cta, const B: usize>(
        &self,
        cta: &C,
        source: Shared<T>,
        turn: usize,
        sums: &mut [T; B],
    ) {
        let lanes = T::Pack::LANES;
        for i in 0..GROUP as usize {
            let place = (self.places >> (16 * i)) as usize & 0xffff;
            for q in 0..B / lanes {
                let pack = cta.shared_read_pack(source, place * B + (q ^ turn) * lanes);
                for l in 0..lanes {
                    sums[q * lanes + l] = self.values[i].fma(pack.as_ref()[l], sums[q * lanes + l]);
                }
            }
        }
    }
}

/// Groups of a slice, from the first to the one that is no longer part of it.
#[derive(Clone, Copy)]
struct Span {
    first: u32,
    end: u32,
}

/// A warp's walk over slices. The next slice's first group is requested while the last of this one is worked on, so that
/// short slices do not wait for memory one after the other.
struct Walk<'a, 'b, T> {
    from: &'b TileSlices<'a, T>,
    /// The slice after the last.
    end: u32,
    /// From one slice to the next.
    step: u32,
    /// The groups of the slice whose turn it is.
    span: Span,
    /// The first of them.
    here: Group<T>,
}

impl<'a, 'b, T: Real> Walk<'a, 'b, T> {
    #[inline(always)]
    fn new<C: Cta>(cta: &C, from: &'b TileSlices<'a, T>, (slice, end): (u32, u32)) -> Self {
        let span = Self::span(cta, from, (slice, end));
        Walk {
            from,
            end,
            step: cta.threads() / WARP,
            span,
            here: Group::load(cta, from, span.first),
        }
    }

    /// The groups of a slice. One that is empty or not there has none, and the first of all is named, which can be read.
    #[inline(always)]
    fn span<C: Cta>(cta: &C, from: &TileSlices<'_, T>, (slice, end): (u32, u32)) -> Span {
        let none = Span { first: 0, end: 0 };
        if slice >= end {
            return none;
        }
        let bound = |i: u32| -> u32 { cta.load(from.offsets, (slice + i) as usize, Cache::Keep) };
        let (first, end) = (bound(0), bound(1));
        if first < end {
            Span { first, end }
        } else {
            none
        }
    }

    /// The sums of a lane over `slice`, whose turn it is.
    #[inline(always)]
    fn sums<C: Cta, const B: usize>(&mut self, cta: &C, slice: u32, source: Shared<T>) -> [T; B] {
        const { assert!(B / T::Pack::LANES <= 2, "packs are taken in turns of two") };
        let turn = (lane(cta) as usize) & (B / T::Pack::LANES - 1);
        let next = Self::span(cta, self.from, (slice + self.step, self.end));
        let mut sums = [T::ZERO; B];
        let Span {
            first: mut group,
            end,
        } = self.span;
        if group == end {
            self.here = Group::load(cta, self.from, next.first);
        }
        while group < end {
            group += 1;
            let after = if group < end { group } else { next.first };
            let after = Group::load(cta, self.from, after);
            self.here.add(cta, source, turn, &mut sums);
            self.here = after;
        }
        self.span = next;
        if turn == 1 {
            for i in 0..B / 2 {
                (sums[i], sums[i + B / 2]) = (sums[i + B / 2], sums[i]);
            }
        }
        sums
    }
}

/// Calls `each(output, sums)` for every output of a tile, in one lane, while the other lanes of its warp have other outputs
/// or [`NONE`](super::tiles::NONE).
#[inline(always)]
pub(super) fn each_output<C: Cta, T: Real, const B: usize>(
    cta: &C,
    (from, tile): (&TileSlices<'_, T>, u32),
    source: Shared<T>,
    mut each: impl FnMut(u32, [T; B]),
) {
    let bound = |i: u32| -> u32 { cta.load(from.tiles, (2 * tile + i) as usize, Cache::Keep) };
    let (long, short, end) = (bound(0), bound(1), bound(2));
    let mut slice = long + cta.thread() / WARP;
    if slice >= end {
        return;
    }
    let mut walk = Walk::new(cta, from, (slice, end));
    while slice < end {
        let output = output_of(cta, from, slice);
        let mut sums = walk.sums::<C, B>(cta, slice, source);
        if slice < short {
            sum_all::<C, T, B>(cta, &mut sums);
        }
        each(output, sums);
        slice += walk.step;
    }
}

/// The output of this lane.
#[inline(always)]
fn output_of<C: Cta, T>(cta: &C, from: &TileSlices<'_, T>, slice: u32) -> u32 {
    let at = slice as usize * WARP as usize + lane(cta) as usize;
    cta.load(from.outputs, at, Cache::Once)
}

/// Every sum over all lanes, in each of them.
#[inline(always)]
fn sum_all<C: Cta, T: Real, const B: usize>(cta: &C, sums: &mut [T; B]) {
    for i in 0..B {
        sums[i] = sum_lanes::<C, T, WARP>(cta, sums[i]);
    }
}
