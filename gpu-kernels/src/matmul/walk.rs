//! What a thread copies of a panel, from where it stands in one: addresses then move on by steps that are the same for
//! all threads.

use core::marker::PhantomData;

use super::panel::{DEPTH, Source, place};
use crate::cta::{Cta, Shared};
use crate::memory::In;
use crate::scalar::{Real, Words};

/// Steps of k at which the rows of a panel move apart, see [`place`].
const HALF: u32 = DEPTH / 2;

/// Where a thread stands.
#[derive(Clone, Copy)]
pub struct Walk<'a, T, W> {
    /// From the thread's first element of the panel on.
    from: In<'a, T>,
    /// Elements between stored rows.
    ld: u64,
    /// Where that element goes in a panel.
    place: u32,
    way: PhantomData<W>,
}

/// Neighbours across are neighbours in memory, and are copied 16 bytes at a time.
#[derive(Debug, Clone, Copy)]
pub struct Packs<T, const TILE: u32, const THREADS: u32>(PhantomData<T>);

impl<T: Real, const TILE: u32, const THREADS: u32> Packs<T, TILE, THREADS> {
    const LANES: u32 = T::Pack::LANES as u32;
    /// Steps of k that all threads copy in a round.
    const ROWS: u32 = THREADS / (TILE / Self::LANES);

    /// Across and step of the first pack of a thread.
    #[inline(always)]
    pub fn first(thread: u32) -> (u32, u32) {
        let (thread, in_row) = (thread % THREADS, TILE / Self::LANES);
        (thread % in_row * Self::LANES, thread / in_row)
    }

    /// At the panel from `k` on.
    #[inline(always)]
    pub fn walk<'a>(
        source: &Source<'a, T>,
        (across, step): (u32, u32),
        k: u32,
    ) -> Walk<'a, T, Self> {
        Walk {
            from: source.from(across as u64, (k + step) as u64),
            ld: source.ld,
            place: place(TILE, across, step),
            way: PhantomData,
        }
    }
}

impl<T: Real, const TILE: u32, const THREADS: u32> Walk<'_, T, Packs<T, TILE, THREADS>> {
    /// Begins to copy the panel: so far across and along k from the thread's first element is the other it asks about.
    #[inline(always)]
    pub fn copy<C: Cta>(&self, cta: &C, to: Shared<T>, is_there: impl Fn(u32, u32) -> bool) {
        let rows = Packs::<T, TILE, THREADS>::ROWS;
        // A round does not cross the middle of a panel, so that places add up.
        const { assert!(HALF.is_multiple_of(Packs::<T, TILE, THREADS>::ROWS)) };
        let mut from = self.from;
        for round in 0..DEPTH / rows {
            let step = round * rows;
            let at = (self.place + place(TILE, 0, step)) as usize;
            cta.copy_whole_pack(to, at, from, 0, is_there(0, step));
            from = from.after(rows as u64 * self.ld);
        }
    }

    /// Goes on to the next panel.
    #[inline(always)]
    pub fn advance(&mut self, panels: u32) {
        self.from = self.from.after((panels * DEPTH) as u64 * self.ld);
    }
}

/// Neighbours along k are neighbours in memory, and are copied one by one: eight of four rows by a warp, so that it
/// reads whole sectors and writes all banks.
#[derive(Debug, Clone, Copy)]
pub struct Turned<T, const TILE: u32, const THREADS: u32>(PhantomData<T>);

impl<T: Real, const TILE: u32, const THREADS: u32> Turned<T, TILE, THREADS> {
    /// Across and step of the first element of a thread.
    #[inline(always)]
    pub fn first(thread: u32) -> (u32, u32) {
        let thread = thread % THREADS;
        (thread / HALF, thread % HALF)
    }

    /// At the panel from `k` on.
    #[inline(always)]
    pub fn walk<'a>(
        source: &Source<'a, T>,
        (across, step): (u32, u32),
        k: u32,
    ) -> Walk<'a, T, Self> {
        Walk {
            from: source.from((k + step) as u64, across as u64),
            ld: source.ld,
            place: place(TILE, across, step),
            way: PhantomData,
        }
    }
}

impl<T: Real, const TILE: u32, const THREADS: u32> Walk<'_, T, Turned<T, TILE, THREADS>> {
    /// As [`copy`](Walk::copy) of packs.
    #[inline(always)]
    pub fn copy<C: Cta>(&self, cta: &C, to: Shared<T>, is_there: impl Fn(u32, u32) -> bool) {
        let rows = THREADS / HALF;
        let mut from = self.from;
        for round in 0..TILE / rows {
            for step in [0, HALF] {
                let across = round * rows;
                let at = (self.place + place(TILE, across, step)) as usize;
                let present = is_there(across, step);
                cta.copy_one(to, at, from, step as usize, present);
            }
            from = from.after(rows as u64 * self.ld);
        }
    }

    /// Goes on to the next panel.
    #[inline(always)]
    pub fn advance(&mut self, panels: u32) {
        self.from = self.from.after((panels * DEPTH) as u64);
    }
}
