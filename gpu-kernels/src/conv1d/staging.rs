//! What a window needs in shared memory: copied ahead, and written back.

use super::work::Tile;
use super::{BLOCK, Conv1dArgs, LINE, filter_of, gap, staged_len};
use crate::cta::{Cta, Shared};
use crate::scalar::{Pack, Real, Words};
use crate::verbs::each_of_block;

/// Where the taps and the inputs of a tile are.
#[derive(Clone, Copy)]
pub struct Buffer<T> {
    /// Taps, and zeros in the other places.
    pub taps: Shared<T>,
    /// Inputs, where [`with_gaps`] says.
    pub inputs: Shared<T>,
}

impl<T: Real> Buffer<T> {
    /// The first (0) or the second (1) buffer, with this many places for taps: whole packs.
    #[inline(always)]
    pub fn new<const R: usize>(places: u32, turn: u32) -> Buffer<T> {
        let inputs = BLOCK as u64 * R as u64 + places as u64;
        let len = staged_len(inputs, R as u32, T::Pack::LANES as u32) as u32;
        let before = places.next_multiple_of(LINE / T::SIZE);
        let first = turn * (before + len) * T::SIZE;
        Buffer {
            taps: Shared::at(first, places),
            inputs: Shared::at(first + before * T::SIZE, len),
        }
    }
}

/// Whether a buffer has the taps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taps {
    /// Since an earlier tile.
    Held,
    /// They have to be copied.
    Wanted,
}

/// Where logical input `i` of a tile lies: a [`gap`] after every R.
#[inline(always)]
fn with_gaps<T: Real, const R: usize>(i: usize) -> usize {
    i + i / R * gap(R as u32, T::Pack::LANES as u32) as usize
}

/// Where the inputs of a thread begin.
#[inline(always)]
pub fn own_place<C: Cta, T: Real, const R: usize>(cta: &C) -> usize {
    cta.thread() as usize * with_gaps::<T, R>(R)
}

/// Begins to copy what a tile needs.
#[inline(always)]
#[track_caller]
pub fn copy<C: Cta, T: Real, const R: usize>(
    cta: &C,
    args: &Conv1dArgs<'_, T>,
    tile: Tile,
    to: Buffer<T>,
    taps: Taps,
) {
    if taps == Taps::Wanted {
        let first = filter_of(args, tile.o, tile.channel) as usize;
        each_of_block(cta, to.taps.len(), |place| {
            // Before the first it wraps round, beyond all taps.
            let k = (place as u32).wrapping_sub(tile.lead);
            let is_there = k < args.taps;
            cta.copy_one(
                to.taps,
                place,
                args.filters,
                first.wrapping_add(k as usize),
                is_there,
            );
        });
    }
    let piece = Piece {
        channel: tile.group + tile.channel * args.len,
        first: tile.start - args.before as i64 - tile.lead as i64,
        count: BLOCK * R as u32 + to.taps.len(),
    };
    piece.copy::<C, T, R>(cta, args, to.inputs);
}

/// A tile's inputs: from element `first` of the channel that begins at `channel` on, zero outside the channel.
#[derive(Clone, Copy)]
struct Piece {
    channel: u64,
    first: i64,
    /// A multiple of a pack's lanes.
    count: u32,
}

impl Piece {
    /// Where element `i` of the channel is in x.
    #[inline(always)]
    fn at(&self, i: i64) -> usize {
        (self.channel as i64 + i) as usize
    }

    /// Whether it lies within its channel.
    #[inline(always)]
    fn is_inside<T>(&self, args: &Conv1dArgs<'_, T>) -> bool {
        self.first >= 0 && self.first + self.count as i64 <= args.len as i64
    }

    /// Whether it, and its channel, begin at a pack of memory.
    #[inline(always)]
    fn is_aligned<T: Real>(&self) -> bool {
        let lanes = T::Pack::LANES as i64;
        (self.channel as i64 | self.first) & (lanes - 1) == 0
    }

    /// Begins to copy it to where [`with_gaps`] says, in packs where those are whole in memory.
    #[inline(always)]
    #[track_caller]
    fn copy<C: Cta, T: Real, const R: usize>(
        &self,
        cta: &C,
        args: &Conv1dArgs<'_, T>,
        to: Shared<T>,
    ) {
        if !self.is_aligned::<T>() {
            each_of_block(cta, self.count, |i| {
                let from = self.first + i as i64;
                let present = from >= 0 && (from as u64) < args.len;
                cta.copy_one(to, with_gaps::<T, R>(i), args.x, self.at(from), present);
            });
        } else if self.is_inside(args) {
            self.copy_whole::<C, T, R>(cta, args, to);
        } else {
            let lanes = T::Pack::LANES;
            each_of_block(cta, self.count / lanes as u32, |pack| {
                let from = self.first + (pack * lanes) as i64;
                let left = (args.len as i64 - from).clamp(0, lanes as i64);
                let present = if from < 0 { 0 } else { left as usize };
                let place = with_gaps::<T, R>(pack * lanes);
                cta.copy_pack(to, place, args.x, self.at(from), present);
            });
        }
    }

    /// Nothing is checked, and addresses move on by constants.
    #[inline(always)]
    #[track_caller]
    fn copy_whole<C: Cta, T: Real, const R: usize>(
        &self,
        cta: &C,
        args: &Conv1dArgs<'_, T>,
        to: Shared<T>,
    ) {
        let lanes = T::Pack::LANES;
        let round = BLOCK as usize * lanes;
        let own = cta.thread() as usize * lanes;
        let (from, place) = (self.at(self.first) + own, with_gaps::<T, R>(own));
        let from = args.x.after(from as u64);
        for r in 0..R / lanes {
            let place = place + with_gaps::<T, R>(r * round);
            cta.copy_whole_pack(to, place, from, r * round, true);
        }
        // What lies behind the tile's own: rarely more than a round.
        let mut i = R / lanes * round;
        while cta.fresh(i as u64) as usize + own < self.count as usize {
            cta.copy_whole_pack(to, place + with_gaps::<T, R>(i), from, i, true);
            i += round;
        }
    }
}

/// Writes a tile through shared memory, so that the lanes of a warp write neighbours.
#[inline(always)]
#[track_caller]
pub fn write_outputs<C: Cta, T: Real, const R: usize>(
    cta: &C,
    args: &Conv1dArgs<'_, T>,
    tile: Tile,
    staged: Shared<T>,
    sums: [T; R],
) {
    cta.sync();
    stage_outputs(cta, staged, sums);
    cta.sync();
    let row = (tile.o * args.out_len) as i64 + tile.start;
    let end = args.out_len as i64 - tile.start;
    let is_inside = tile.start >= 0 && end >= BLOCK as i64 * R as i64;
    if !is_inside {
        write_elements::<C, T, R>(cta, args, row, Some((-tile.start, end)), staged);
    } else if row & (T::Pack::LANES as i64 - 1) == 0 {
        write_packs::<C, T, R>(cta, args, row, staged);
    } else {
        write_elements::<C, T, R>(cta, args, row, None, staged);
    }
}

/// Puts a thread's outputs where its first inputs were.
#[inline(always)]
#[track_caller]
fn stage_outputs<C: Cta, T: Real, const R: usize>(cta: &C, staged: Shared<T>, sums: [T; R]) {
    let lanes = T::Pack::LANES;
    let own = own_place::<C, T, R>(cta);
    for part in 0..R / lanes {
        let mut pack = T::Pack::ZERO;
        for (lane, x) in pack.as_mut().iter_mut().enumerate() {
            *x = sums[part * lanes + lane];
        }
        cta.shared_write_pack(staged, own + part * lanes, pack);
    }
}

/// Warps begin at whole lines of memory: hardly a sector has two writers.
#[inline(always)]
#[track_caller]
fn write_packs<C: Cta, T: Real, const R: usize>(
    cta: &C,
    args: &Conv1dArgs<'_, T>,
    row: i64,
    staged: Shared<T>,
) {
    let lanes = T::Pack::LANES;
    let round = BLOCK as usize * lanes;
    let own = ((cta.thread() as i64 * lanes as i64 - row) & (round as i64 - 1)) as usize;
    let place = with_gaps::<T, R>(own);
    for r in 0..R / lanes {
        let pack = cta.shared_read_pack(staged, place + with_gaps::<T, R>(r * round));
        cta.write_pack(args.out, row as usize + own + r * round, pack);
    }
}

/// As [`write_packs`], element by element: where not all of the tile are there, those from the first to the end of `part`.
#[inline(always)]
#[track_caller]
fn write_elements<C: Cta, T: Real, const R: usize>(
    cta: &C,
    args: &Conv1dArgs<'_, T>,
    row: i64,
    part: Option<(i64, i64)>,
    staged: Shared<T>,
) {
    let own = (cta.thread() as i64 - row) & (BLOCK as i64 - 1);
    let place = with_gaps::<T, R>(own as usize);
    for r in 0..R {
        let i = own + r as i64 * BLOCK as i64;
        if part.is_none_or(|(begin, end)| i >= begin && i < end) {
            let output = cta.shared_read(staged, place + r * with_gaps::<T, R>(BLOCK as usize));
            cta.write(args.out, (row + i) as usize, output);
        }
    }
}
