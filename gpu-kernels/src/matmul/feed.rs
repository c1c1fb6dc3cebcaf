//! Panels of one operand on their way to shared memory, one after the other: what a thread copies of each.

use core::marker::PhantomData;

use super::panel::DEPTH;
use super::side::{Side, lanes};
use crate::cta::{Cta, Shared};
use crate::memory::In;
use crate::scalar::Real;

/// Whether panels may reach beyond the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bounds {
    /// All panels are whole, and so are their packs: nothing is checked.
    Whole,
    /// What is outside becomes zero.
    Checked,
}

/// The strip of a matrix that a block needs, `TILE` wide.
#[derive(Clone, Copy)]
pub struct Strip<'a, T> {
    /// From the strip's first element on.
    pub memory: In<'a, T>,
    /// Elements between stored rows.
    pub ld: u64,
    /// How much there is across, from the strip's first on.
    pub across: u32,
    /// Whether all packs of the matrix are whole, and lie at multiples of 16 bytes.
    pub has_packs: bool,
}

impl<'a, T: Real> Strip<'a, T> {
    /// The strip from `first` across on of a matrix of `across` by `k` elements.
    #[inline(always)]
    pub fn of<S: Side<T>>(
        (memory, ld): (In<'a, T>, u64),
        (across, k): (u32, u32),
        first: u32,
    ) -> Strip<'a, T> {
        // One of the two lies along a stored row.
        let (last, _) = S::in_pack(0, 0, 1);
        let in_row = if last == 1 { across } else { k };
        Strip {
            memory: memory.after(S::distance(ld, first, 0)),
            ld,
            across: across - first,
            has_packs: ld.is_multiple_of(lanes::<T>() as u64)
                && in_row.is_multiple_of(lanes::<T>()),
        }
    }
}

/// What a thread copies of a strip.
pub struct Feed<'a, T, S, const TILE: u32, const THREADS: u32> {
    strip: Strip<'a, T>,
    /// From the thread's first element of the next panel on.
    from: In<'a, T>,
    /// Steps from the next panel's first to the strip's end.
    left: u32,
    side: PhantomData<S>,
}

impl<'a, T: Real, S: Side<T>, const TILE: u32, const THREADS: u32> Feed<'a, T, S, TILE, THREADS> {
    /// Packs of a panel that a thread copies.
    const PACKS: u32 = TILE * DEPTH / lanes::<T>() / THREADS;

    /// The panels of steps `begin` to `end` of k.
    #[inline(always)]
    pub fn new<C: Cta>(cta: &C, strip: Strip<'a, T>, (begin, end): (u32, u32)) -> Self {
        let (across, k) = S::first(TILE, cta.thread());
        Feed {
            strip,
            from: strip.memory.after(S::distance(strip.ld, across, begin + k)),
            left: end - begin,
            side: PhantomData,
        }
    }

    /// Whether there are only whole panels, and this many times `group` of them.
    #[inline(always)]
    pub fn is_whole(&self, group: u32) -> bool {
        let is_long = self.left > 0 && self.left.is_multiple_of(group * DEPTH);
        self.strip.has_packs && self.strip.across >= TILE && is_long
    }

    /// Begins to copy the next panel. Behind the last: that one again where all are whole, which costs less than a
    /// branch, and else zeros.
    #[inline(always)]
    pub fn copy<C: Cta>(&mut self, cta: &C, to: Shared<T>, bounds: Bounds) {
        match bounds {
            Bounds::Whole => self.copy_packs(cta, to, |_, _| true),
            Bounds::Checked => self.copy_checked(cta, to),
        }
        let is_last = bounds == Bounds::Whole && self.left == DEPTH;
        let steps = if is_last { 0 } else { DEPTH };
        self.left = self.left.saturating_sub(steps);
        self.from = self.from.after(S::distance(self.strip.ld, 0, steps));
    }

    #[inline(always)]
    fn copy_checked<C: Cta>(&self, cta: &C, to: Shared<T>) {
        // What follows from the thread's number would fill registers through the loop.
        let (across, k) = S::first(TILE, cta.fresh(cta.thread()));
        let is_there = |a, s| across + a < self.strip.across && k + s < self.left;
        if self.strip.has_packs {
            self.copy_packs(cta, to, is_there);
        } else {
            self.copy_elements(cta, to, is_there);
        }
    }

    /// Sums of f64 leave no registers for the distances of all packs.
    #[inline(always)]
    fn ld<C: Cta>(&self, cta: &C) -> u64 {
        match T::SIZE {
            8 => cta.fresh(self.strip.ld),
            _ => self.strip.ld,
        }
    }

    #[inline(always)]
    fn copy_packs<C: Cta>(&self, cta: &C, to: Shared<T>, is_there: impl Fn(u32, u32) -> bool) {
        let (across, k) = S::first(TILE, cta.thread());
        let step = S::step(TILE, THREADS);
        let first = S::place(TILE, across, k);
        let ld = self.ld(cta);
        for pack in 0..Self::PACKS {
            let (a, s) = (pack * step.0, pack * step.1);
            let to_place = (first + S::place(TILE, a, s)) as usize;
            let from = S::distance(ld, a, s) as usize;
            cta.copy_whole_pack(to, to_place, self.from, from, is_there(a, s));
        }
    }

    #[inline(always)]
    fn copy_elements<C: Cta>(&self, cta: &C, to: Shared<T>, is_there: impl Fn(u32, u32) -> bool) {
        let (across, k) = S::first(TILE, cta.thread());
        let step = S::step(TILE, THREADS);
        let ld = self.ld(cta);
        for pack in 0..Self::PACKS {
            for lane in 0..lanes::<T>() {
                let (a, s) = S::in_pack(pack * step.0, pack * step.1, lane);
                let place = S::place(TILE, across + a, k + s) as usize;
                let from = S::distance(ld, a, s) as usize;
                cta.copy_one(to, place, self.from, from, is_there(a, s));
            }
        }
    }
}
