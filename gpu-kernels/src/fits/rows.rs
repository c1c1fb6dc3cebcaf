//! The rows of a fit: where they lie, and how they come to shared memory.
//!
//! Rows are copied as they lie, in whole packs from the one in which the first of them begins; what is behind them in the last
//! pack comes along. 32 rows are whole packs, so that all chunks begin as far into a pack as the first.

use super::args::{BUFFERS, FitArgs, FitLoss, Layout, NUMBERS, PACK, PLACES};
use crate::cta::{Cache, Cta, Shared, WARP};
use crate::math::Elementary;
use crate::memory::In;
use crate::objective::Point;
use crate::verbs::{each_of_block, lane, load_or};

/// One fit, as its block sees it.
pub(super) struct Fit<'a, 'b, T> {
    pub args: &'b FitArgs<'a, T>,
    layout: Layout,
    /// Rows.
    pub rows: u32,
    /// n.
    pub cols: u32,
    /// s.
    pub scale: f64,
    /// λ and λc.
    pub ridge: [f64; 2],
    /// What X, targets and weights of the fit begin with; and the offset.
    first: [u64; 3],
    /// X from the pack on in which the first row begins.
    x: In<'a, T>,
    /// Elements of that pack before the row.
    shift: u32,
    /// Whether all rows stay in shared memory.
    is_resident: bool,
}

/// 32 rows in shared memory, the last of which may not be there.
#[derive(Clone, Copy)]
pub(super) struct Chunk<T> {
    values: Shared<T>,
    /// The first element of the first row.
    at: u32,
    /// Elements from row to row.
    pitch: u32,
    /// Number of the first row.
    pub first: u32,
    /// Rows that are there.
    pub rows: u32,
    /// n.
    pub cols: u32,
}

impl<T: Elementary> Chunk<T> {
    /// An element that is there.
    #[inline(always)]
    #[track_caller]
    pub fn at<C: Cta>(&self, cta: &C, row: u32, col: u32) -> f64 {
        let place = self.at + row * self.pitch + col;
        cta.shared_read(self.values, place as usize).to_f64()
    }

    /// An element, 0 where there is none.
    #[inline(always)]
    #[track_caller]
    pub fn or_zero<C: Cta>(&self, cta: &C, row: u32, col: u32) -> f64 {
        match row < self.rows && col < self.cols {
            true => self.at(cta, row, col),
            false => 0.0,
        }
    }
}

impl<'a, 'b, T: Elementary> Fit<'a, 'b, T> {
    /// The fit of this block; none where its rows, targets or weights are not there.
    #[inline(always)]
    pub fn of<C: Cta>(cta: &C, args: &'b FitArgs<'a, T>) -> Option<Self> {
        let fit = cta.block() as usize;
        let place = |i: usize| cta.load(args.places, fit * PLACES as usize + i, Cache::Keep);
        let number = |i: usize| cta.load(args.numbers, fit * NUMBERS as usize + i, Cache::Keep);
        let [row, rows, target, weight] = core::array::from_fn(place);
        let are_there = |first: u64, all: u64| first <= all && rows <= all - first;
        let weights = match args.weights.is_some() {
            true => are_there(weight, args.weights.len()),
            false => true,
        };
        let all = are_there(row, args.rows) && are_there(target, args.targets.len()) && weights;
        if !all || rows > (u32::MAX - WARP) as u64 {
            return None;
        }
        let lanes = (PACK / T::SIZE) as u64;
        let start = row * args.pitch;
        let shift = start % lanes;
        let need = Layout::area_of(rows, args.pitch, T::SIZE);
        Some(Fit {
            args,
            layout: Layout::of(args.cols, cta.threads() / WARP),
            rows: rows as u32,
            cols: args.cols,
            scale: number(0),
            ridge: [number(1), number(2)],
            first: [row, target, weight],
            x: args.x.after(start - shift),
            shift: shift as u32,
            is_resident: need <= args.area as u64,
        })
    }

    /// Where things lie, which follows anew from two numbers wherever it is needed: all these places together are more than
    /// there are registers.
    #[inline(always)]
    pub fn layout<C: Cta>(&self, cta: &C) -> Layout {
        Layout {
            order: cta.fresh(self.layout.order),
            pitch: cta.fresh(self.layout.pitch),
            ..self.layout
        }
    }

    /// Chunks of 32 rows.
    #[inline(always)]
    pub fn chunks(&self) -> u32 {
        self.rows.div_ceil(WARP)
    }

    /// Elements of a whole chunk.
    #[inline(always)]
    fn chunk_elements(&self) -> u32 {
        WARP * self.args.pitch as u32
    }

    /// All shared memory for rows.
    #[inline(always)]
    fn area(&self) -> Shared<T> {
        Shared::at(self.layout.fixed_bytes(), self.args.area / T::SIZE)
    }

    /// One of the warp's buffers.
    #[inline(always)]
    fn buffer<C: Cta>(&self, cta: &C, number: u32) -> Shared<T> {
        let elements = self.chunk_elements() + PACK / T::SIZE;
        let buffer = cta.thread() / WARP * BUFFERS + number;
        Shared::at(
            self.layout.fixed_bytes() + buffer * elements * T::SIZE,
            elements,
        )
    }

    /// Copies all rows, if they stay; a barrier must follow.
    #[inline(always)]
    #[track_caller]
    pub fn stage<C: Cta>(&self, cta: &C) {
        if !self.is_resident {
            return;
        }
        let lanes = PACK / T::SIZE;
        let elements = self.elements(0, self.rows);
        each_of_block(cta, elements.div_ceil(lanes), |pack| {
            self.copy(cta, self.area(), (0, elements), pack as u32);
        });
        cta.end_copies();
        cta.copies_done::<0>();
    }

    /// Begins to copy a chunk to one of the warp's buffers, unless rows stay or it does not exist; a group of copies in any case.
    #[inline(always)]
    #[track_caller]
    pub fn begin<C: Cta>(&self, cta: &C, chunk: u32, buffer: u32) {
        if !self.is_resident && chunk < self.chunks() {
            let lanes = PACK / T::SIZE;
            let first = chunk * WARP;
            let elements = self.elements(first, WARP.min(self.rows - first));
            let start = chunk as u64 * self.chunk_elements() as u64;
            let mut pack = lane(cta);
            while pack < elements.div_ceil(lanes) {
                self.copy(cta, self.buffer(cta, buffer), (start, elements), pack);
                pack += WARP;
            }
        }
        cta.end_copies();
    }

    /// Elements of X, with those before the first row in its pack, that `rows` rows from `first` on take.
    #[inline(always)]
    fn elements(&self, first: u32, rows: u32) -> u32 {
        let start = first as u64 * self.args.pitch;
        let there = self.x.len().saturating_sub(start);
        let wanted = self.shift as u64 + rows as u64 * self.args.pitch;
        wanted.min(there) as u32
    }

    /// One pack of those `elements` that begin at `start`.
    #[inline(always)]
    #[track_caller]
    fn copy<C: Cta>(&self, cta: &C, to: Shared<T>, (start, elements): (u64, u32), pack: u32) {
        let lanes = PACK / T::SIZE;
        let at = pack * lanes;
        let present = (elements - at).min(lanes) as usize;
        let from = start as usize + at as usize;
        cta.copy_pack(to, at as usize, self.x, from, present);
    }

    /// A chunk that has been copied.
    #[inline(always)]
    pub fn chunk<C: Cta>(&self, cta: &C, chunk: u32, buffer: u32) -> Chunk<T> {
        let first = chunk * WARP;
        let (values, at) = match self.is_resident {
            true => (self.area(), chunk * self.chunk_elements()),
            false => (self.buffer(cta, buffer), 0),
        };
        Chunk {
            values,
            at: at + self.shift,
            pitch: self.args.pitch as u32,
            first,
            rows: WARP.min(self.rows - first),
            cols: self.cols,
        }
    }

    /// s·v of a row.
    #[inline(always)]
    pub fn weight<C: Cta>(&self, cta: &C, row: u32) -> f64 {
        let at = (self.first[2] + row as u64) as usize;
        self.scale * load_or(cta, self.args.weights, at, T::ONE).to_f64()
    }

    /// What a row with `dot` = x·w + c contributes.
    #[inline(always)]
    pub fn point<C: Cta, L: FitLoss>(&self, cta: &C, row: u32, dot: f64) -> Point<f64> {
        let [first, target, _] = self.first.map(|first| (first + row as u64) as usize);
        let offset = load_or(cta, self.args.offset, first, T::ZERO).to_f64();
        let b = cta.load(self.args.targets, target, Cache::Keep).to_f64();
        let weight = self.weight(cta, row);
        L::at(self.args.loss, dot + offset, b).weighted(weight)
    }
}
