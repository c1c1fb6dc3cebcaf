//! A walk over the slices of a tile that keeps two groups on their way: one is asked for whenever one has been worked on.
//!
//! Why: of one group, 768 bytes a warp, no more than 3 TB/s come on an H200. Groups stay where they were loaded to, and the
//! code is written out for each of these places: handed on from one to the other, they would have to be there before the
//! next is asked for. They are asked for across the ends of slices, which may have few. Three of them spill registers.

use super::tile_walk::{Group, output_of, sum_all};
use super::tiles::TileSlices;
use crate::cta::{Cache, Cta, Shared, WARP};
use crate::scalar::Real;

/// Groups of a slice, from the first to the one that is no longer part of it.
#[derive(Clone, Copy)]
struct Span {
    first: u32,
    end: u32,
}

/// Where groups are asked for.
struct Cursor<'a, 'b, T> {
    from: &'b TileSlices<'a, T>,
    /// The slice after the last, and from one slice to the next.
    end: u32,
    step: u32,
    /// What is left of a slice.
    span: Span,
    /// The slice after it: where it begins is asked for when this one is begun.
    next: Span,
    /// Its number.
    slice: u32,
}

impl<'a, 'b, T: Real> Cursor<'a, 'b, T> {
    #[inline(always)]
    fn new<C: Cta>(cta: &C, from: &'b TileSlices<'a, T>, (first, end): (u32, u32)) -> Self {
        let none = Span { first: 0, end: 0 };
        let mut cursor = Cursor {
            from,
            end,
            step: cta.threads() / WARP,
            span: none,
            next: none,
            slice: first,
        };
        cursor.span = cursor.bounds(cta);
        cursor.slice += cursor.step;
        cursor.next = cursor.bounds(cta);
        cursor
    }

    /// The groups of the slice; behind the last slice the first group of all, which can be read.
    #[inline(always)]
    fn bounds<C: Cta>(&self, cta: &C) -> Span {
        if self.slice >= self.end {
            return Span { first: 0, end: 1 };
        }
        let bound =
            |i| -> u32 { cta.load(self.from.offsets, (self.slice + i) as usize, Cache::Keep) };
        Span {
            first: bound(0),
            end: bound(1),
        }
    }

    /// Asks for the next group; and whether its slice ends with it.
    #[inline(always)]
    fn load<C: Cta>(&mut self, cta: &C) -> (Group<T>, bool) {
        let group = self.span.first;
        self.span.first += 1;
        let is_last = self.span.first >= self.span.end;
        if is_last {
            self.span = self.next;
            self.slice += self.step;
            self.next = self.bounds(cta);
        }
        (Group::load(cta, self.from, group), is_last)
    }
}

/// Calls `each(output, sums)` for every output of the slices `slice`, some further ones and so on before `end`; before
/// `short` they have one long output. Rows are one pack: packs are not taken in turns.
#[inline(always)]
pub(super) fn each_output<C: Cta, T: Real, const B: usize>(
    cta: &C,
    from: &TileSlices<'_, T>,
    (mut slice, short, end): (u32, u32, u32),
    source: Shared<T>,
    mut each: impl FnMut(u32, [T; B]),
) {
    let mut cursor = Cursor::new(cta, from, (slice, end));
    let mut ring = [cursor.load(cta), cursor.load(cta)];
    let mut output = output_of(cta, from, slice);
    let mut sums = [T::ZERO; B];
    // Takes a group, and says whether there are more.
    let mut take = |i: usize| -> bool {
        let (group, is_last) = &ring[i];
        let is_last = *is_last;
        group.add(cta, source, 0, &mut sums);
        ring[i] = cursor.load(cta);
        if is_last {
            if slice < short {
                sum_all::<C, T, B>(cta, &mut sums);
            }
            each(output, sums);
            sums = [T::ZERO; B];
            slice += cursor.step;
            if slice >= end {
                return false;
            }
            output = output_of(cta, from, slice);
        }
        true
    };
    while take(0) && take(1) {}
}
