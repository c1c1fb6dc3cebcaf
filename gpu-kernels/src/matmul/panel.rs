//! Panels: what a block holds of A and of B in shared memory, [`DEPTH`] steps of k at a time, k outermost.

use super::MatmulArgs;
use super::walk::{Packs, Turned};
use crate::cta::{Cta, Shared};
use crate::memory::In;
use crate::scalar::{Real, Words};

/// Steps of k in a panel.
pub const DEPTH: u32 = 16;
/// Elements behind each row of a panel: 8 steps of 4 elements across, as a warp copies them, fill all banks.
const PADDING: u32 = 4;
/// Elements between the first and the last 8 rows: four elements across of every fourth row, as tensor cores want them,
/// lie in different banks.
const MIDDLE: u32 = 8;

/// Elements of a panel that is `tile` wide.
pub const fn panel_elements(tile: u32) -> u32 {
    DEPTH * (tile + PADDING) + MIDDLE
}

/// Where an element of such a panel is.
#[inline(always)]
pub fn place(tile: u32, across: u32, k: u32) -> u32 {
    k * (tile + PADDING) + k / 8 * MIDDLE + across
}

/// What panels are copied from: op(A), whose rows lie across, or op(B), whose columns do.
#[derive(Clone, Copy)]
pub struct Source<'a, T> {
    memory: In<'a, T>,
    /// Elements between stored rows.
    pub(super) ld: u64,
    /// Rows of op(A), or columns of op(B), from the first of the block's tile on.
    across: u32,
    /// Where the first of them is.
    first: u64,
    /// Whether neighbours along k are neighbours in memory; else neighbours across are.
    is_along: bool,
    /// Whether stored rows start at multiples of 16 bytes, and hold whole ones.
    has_packs: bool,
}

impl<'a, T: Real> Source<'a, T> {
    /// op(A) from row `first` on.
    #[inline(always)]
    pub fn a(args: &MatmulArgs<'a, T>, first: u32) -> Self {
        let is_along = args.a_transposed == 0;
        Self::new((args.a, args.lda), args.m, is_along, first)
    }

    /// op(B) from column `first` on.
    #[inline(always)]
    pub fn b(args: &MatmulArgs<'a, T>, first: u32) -> Self {
        let is_along = args.b_transposed == 1;
        Self::new((args.b, args.ldb), args.n, is_along, first)
    }

    #[inline(always)]
    fn new((memory, ld): (In<'a, T>, u64), across: u32, is_along: bool, first: u32) -> Self {
        let lanes = T::Pack::LANES as u32;
        Source {
            memory,
            ld,
            across: across - first,
            first: first as u64 * if is_along { ld } else { 1 },
            is_along,
            has_packs: ld.is_multiple_of(lanes as u64) && across.is_multiple_of(lanes),
        }
    }

    /// The memory from an element of a stored row on.
    #[inline(always)]
    pub(super) fn from(&self, column: u64, row: u64) -> In<'a, T> {
        self.memory.after(self.first + row * self.ld + column)
    }

    /// Whether panels that are `tile` wide lie in it, and neighbours along k are neighbours in memory.
    #[inline(always)]
    pub fn is_turned(&self, tile: u32) -> bool {
        self.is_along && self.across >= tile
    }

    /// The same with neighbours across, in whole packs.
    #[inline(always)]
    pub fn is_packed(&self, tile: u32) -> bool {
        !self.is_along && self.has_packs && self.across >= tile
    }

    /// Begins to copy the panel from `k` on, with zeros from `end` on and beyond the matrix.
    #[inline(always)]
    pub fn copy<C: Cta, const TILE: u32, const THREADS: u32>(
        &self,
        cta: &C,
        to: Shared<T>,
        (k, end): (u32, u32),
    ) {
        let left = end - k;
        let panel = Panel::<T, TILE, THREADS> { to, k, left };
        let is_whole = self.across >= TILE && left >= DEPTH;
        match (self.is_along, self.has_packs, is_whole) {
            (true, _, true) => panel.turn(cta, self, |_, _| true),
            (true, _, false) => panel.turn(cta, self, |a, k| a < self.across && k < left),
            (false, true, true) => panel.packs(cta, self, |_, _| true),
            (false, true, false) => panel.packs(cta, self, |a, k| a < self.across && k < left),
            (false, false, _) => panel.elements(cta, self),
        }
    }
}

/// One panel on its way to shared memory.
#[derive(Clone, Copy)]
struct Panel<T, const TILE: u32, const THREADS: u32> {
    to: Shared<T>,
    k: u32,
    /// Steps of k that there are.
    left: u32,
}

impl<T: Real, const TILE: u32, const THREADS: u32> Panel<T, TILE, THREADS> {
    /// Copies 16 bytes at a time what lies across in memory.
    #[inline(always)]
    fn packs<C: Cta>(&self, cta: &C, source: &Source<'_, T>, is_there: impl Fn(u32, u32) -> bool) {
        let own = Packs::<T, TILE, THREADS>::first(cta.fresh(cta.thread()));
        let walk = Packs::<T, TILE, THREADS>::walk(source, own, self.k);
        walk.copy(cta, self.to, |a, k| is_there(own.0 + a, own.1 + k));
    }

    /// Copies element by element what lies across in memory.
    #[inline(always)]
    fn elements<C: Cta>(&self, cta: &C, source: &Source<'_, T>) {
        let width = if TILE < THREADS { TILE } else { THREADS };
        let rows = THREADS / width;
        let thread = cta.fresh(cta.thread()) % THREADS;
        let (step, across) = (thread / width, thread % width);
        let mut from = source.from(across as u64, (self.k + step) as u64);
        for round in 0..DEPTH / rows {
            let step = step + round * rows;
            for part in 0..TILE / width {
                let offset = part * width;
                let across = across + offset;
                let place = place(TILE, across, step) as usize;
                let present = across < source.across && step < self.left;
                cta.copy_one(self.to, place, from, offset as usize, present);
            }
            from = from.after(rows as u64 * source.ld);
        }
    }

    /// Copies element by element what lies along k in memory.
    #[inline(always)]
    fn turn<C: Cta>(&self, cta: &C, source: &Source<'_, T>, is_there: impl Fn(u32, u32) -> bool) {
        let own = Turned::<T, TILE, THREADS>::first(cta.fresh(cta.thread()));
        let walk = Turned::<T, TILE, THREADS>::walk(source, own, self.k);
        walk.copy(cta, self.to, |a, k| is_there(own.0 + a, own.1 + k));
    }
}

/// Steps of k in each of `parts` parts: whole panels in pairs; the last parts may have fewer, or none.
pub const fn part_length(k: u32, parts: u32) -> u32 {
    let pair = 2 * DEPTH;
    k.div_ceil(pair).div_ceil(parts) * pair
}
