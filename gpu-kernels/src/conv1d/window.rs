//! Stride and dilation 1: inputs in a window of registers.

use super::{BLOCK, Conv1dArgs, EARLIEST, filter_of, first_of_group, whole_windows, window_len};
use crate::cta::{Cta, Shared};
use crate::scalar::{Pack, Real, Words};
use crate::verbs::each_of_block;

/// Where logical input `i` of a tile lies: a pack's gap after every R.
#[inline(always)]
fn with_gaps<T: Real, const R: usize>(i: usize) -> usize {
    i + i / R * T::Pack::LANES
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
    /// Whether it lies within its channel and begins at a pack of memory.
    fn is_plain<T: Real>(&self, args: &Conv1dArgs<'_, T>) -> bool {
        let end = self.first + self.count as i64;
        self.first >= 0 && end <= args.len as i64 && self.is_aligned::<T>()
    }

    /// Whether it, and its channel, begin at a pack of memory.
    #[inline(always)]
    fn is_aligned<T: Real>(&self) -> bool {
        let lanes = T::Pack::LANES as i64;
        (self.channel as i64 | self.first) & (lanes - 1) == 0
    }
}

/// Begins to copy a tile's inputs to where [`with_gaps`] says, in packs where those are whole in memory.
#[inline(always)]
#[track_caller]
fn copy_inputs<C: Cta, T: Real, const R: usize>(
    cta: &C,
    args: &Conv1dArgs<'_, T>,
    piece: Piece,
    inputs: Shared<T>,
) {
    let lanes = T::Pack::LANES;
    let at = |from: i64| (piece.channel as i64 + from) as usize;
    if piece.is_plain(args) {
        copy_whole::<C, T, R>(cta, args, (at(piece.first), piece.count), inputs);
    } else if piece.is_aligned::<T>() {
        each_of_block(cta, piece.count / lanes as u32, |pack| {
            let from = piece.first + (pack * lanes) as i64;
            let left = args.len as i64 - from;
            let present = if from < 0 {
                0
            } else {
                left.clamp(0, lanes as i64)
            };
            let to = with_gaps::<T, R>(pack * lanes);
            cta.copy_pack(inputs, to, args.x, at(from), present as usize);
        });
    } else {
        each_of_block(cta, piece.count, |i| {
            let from = piece.first + i as i64;
            let present = from >= 0 && (from as u64) < args.len;
            cta.copy_one(inputs, with_gaps::<T, R>(i), args.x, at(from), present);
        });
    }
}

/// Begins to copy `count` elements from element `first` of x on. Nothing is checked, and addresses move on by
/// constants.
#[inline(always)]
#[track_caller]
fn copy_whole<C: Cta, T: Real, const R: usize>(
    cta: &C,
    args: &Conv1dArgs<'_, T>,
    (first, count): (usize, u32),
    inputs: Shared<T>,
) {
    let lanes = T::Pack::LANES;
    let round = BLOCK as usize * lanes;
    let own = cta.thread() as usize * lanes;
    let (mut from, mut to) = (first + own, with_gaps::<T, R>(own));
    let mut pack = cta.thread();
    while pack < count / lanes as u32 {
        cta.copy_pack(inputs, to, args.x, from, lanes);
        pack += BLOCK;
        from += round;
        to += with_gaps::<T, R>(round);
    }
}

/// Begins to copy the taps, and zeros behind them to the end of the last pack.
#[inline(always)]
#[track_caller]
fn copy_taps<C: Cta, T: Real>(
    cta: &C,
    args: &Conv1dArgs<'_, T>,
    o: u64,
    c: u64,
    places: Shared<T>,
) {
    let first = filter_of(args, o, c) as usize;
    each_of_block(cta, places.len(), |k| {
        cta.copy_one(places, k, args.filters, first + k, (k as u32) < args.taps);
    });
}

/// R neighbouring elements that begin at place `at`, in whole packs.
#[inline(always)]
#[track_caller]
fn read_packs<C: Cta, T: Real, const R: usize>(cta: &C, from: Shared<T>, at: usize) -> [T; R] {
    let mut held = [T::ZERO; R];
    for part in 0..R / T::Pack::LANES {
        let pack = cta.shared_read_pack(from, at + part * T::Pack::LANES);
        for (lane, x) in pack.as_ref().iter().enumerate() {
            held[part * T::Pack::LANES + lane] = *x;
        }
    }
    held
}

/// Adds all taps to the R neighbouring outputs whose first input lies at place `at`.
///
/// R taps at a time: `low` and `high` are the 2R inputs that they meet.
#[inline(always)]
#[track_caller]
fn add_taps<C: Cta, T: Real, const R: usize>(
    cta: &C,
    (taps, inputs): (Shared<T>, Shared<T>),
    (all, at): (u32, usize),
    sums: &mut [T; R],
) {
    let next = R + T::Pack::LANES;
    let window = |place: usize| read_packs::<C, T, R>(cta, inputs, place);
    let mut low = window(at);
    let (mut k, mut place) = (0, at + next);
    // Two windows a round, so that none is moved from register to register.
    while k + 2 * R as u32 <= all {
        let high = window(place);
        add_window(cta, taps, k, (&low, &high), sums);
        low = window(place + next);
        add_window(cta, taps, k + R as u32, (&high, &low), sums);
        k += 2 * R as u32;
        place += 2 * next;
    }
    if k + R as u32 <= all {
        let high = window(place);
        add_window(cta, taps, k, (&low, &high), sums);
        low = high;
        k += R as u32;
        place += next;
    }
    if k < all {
        add_last(cta, (taps, k, all), (&low, &window(place)), sums);
    }
}

/// Adds the taps from `k` to `all`, fewer than R.
#[inline(always)]
#[track_caller]
fn add_last<C: Cta, T: Real, const R: usize>(
    cta: &C,
    (taps, k, all): (Shared<T>, u32, u32),
    inputs: (&[T; R], &[T; R]),
    sums: &mut [T; R],
) {
    let lanes = T::Pack::LANES;
    for part in 0..R / lanes {
        let first = k + (part * lanes) as u32;
        if first < all {
            let pack = cta.shared_read_pack(taps, first as usize);
            for (lane, tap) in pack.as_ref().iter().enumerate() {
                if first + (lane as u32) < all {
                    add_tap(*tap, part * lanes + lane, inputs, sums);
                }
            }
        }
    }
}

/// Adds R taps from tap `k` on.
#[inline(always)]
#[track_caller]
fn add_window<C: Cta, T: Real, const R: usize>(
    cta: &C,
    taps: Shared<T>,
    k: u32,
    inputs: (&[T; R], &[T; R]),
    sums: &mut [T; R],
) {
    let lanes = T::Pack::LANES;
    for part in 0..R / lanes {
        let pack = cta.shared_read_pack(taps, k as usize + part * lanes);
        for (lane, tap) in pack.as_ref().iter().enumerate() {
            add_tap(*tap, part * lanes + lane, inputs, sums);
        }
    }
}

/// `sums[r] += tap · window[r + step]`, the window being `low` and then `high`.
#[inline(always)]
fn add_tap<T: Real, const R: usize>(
    tap: T,
    step: usize,
    (low, high): (&[T; R], &[T; R]),
    sums: &mut [T; R],
) {
    for (r, sum) in sums.iter_mut().enumerate() {
        let i = r + step;
        let x = if i < R { low[i] } else { high[i - R] };
        *sum = x.fma(tap, *sum);
    }
}

/// A row of outputs that a block computes: those from `start` on, which may be negative.
#[derive(Clone, Copy)]
struct Tile {
    o: u64,
    start: i64,
}

/// R neighbouring outputs per thread.
pub fn window<C: Cta, T: Real, const R: usize>(cta: &C, args: &Conv1dArgs<'_, T>) {
    let lanes = T::Pack::LANES;
    let outputs = BLOCK as u64 * R as u64;
    let places = whole_windows(args.taps, R as u32);
    let len = window_len(outputs, args.taps, R as u32, lanes as u32);
    let taps: Shared<T> = Shared::at(0, places);
    let inputs = Shared::at(places * T::SIZE, len as u32);
    let own = cta.thread() as usize * (R + lanes);
    let count = outputs as u32 + places;
    let tiles = (args.out_len + EARLIEST as u64).div_ceil(outputs);
    let mut item = cta.block() as u64;
    while item < tiles * args.out_channels {
        // One channel needs no division, which would take longer than staging a tile.
        let o = if args.out_channels == 1 {
            0
        } else {
            item / tiles
        };
        let group = first_of_group(args, o);
        let early = (group as i64 - args.before as i64) & EARLIEST;
        let start = ((item - o * tiles) * outputs) as i64 - early;
        let first = start - args.before as i64;
        let mut sums = [T::ZERO; R];
        for c in 0..args.in_per_group {
            let channel = group + c * args.len;
            let piece = Piece {
                channel,
                first,
                count,
            };
            cta.sync();
            copy_taps(cta, args, o, c, taps);
            copy_inputs::<C, T, R>(cta, args, piece, inputs);
            cta.end_copies();
            cta.copies_done::<0>();
            cta.sync();
            add_taps(cta, (taps, inputs), (args.taps, own), &mut sums);
        }
        write_outputs(cta, args, Tile { o, start }, inputs, sums);
        item += cta.blocks() as u64;
    }
}

/// Writes a tile through shared memory, so that the lanes of a warp write neighbours.
#[inline(always)]
#[track_caller]
fn write_outputs<C: Cta, T: Real, const R: usize>(
    cta: &C,
    args: &Conv1dArgs<'_, T>,
    Tile { o, start }: Tile,
    staged: Shared<T>,
    sums: [T; R],
) {
    cta.sync();
    stage_outputs(cta, staged, sums);
    cta.sync();
    // Warps begin at multiples of 32 elements of the result: hardly a sector of memory has two writers.
    let row = (o * args.out_len) as i64 + start;
    let own = (cta.thread() as i64 - row) & (BLOCK as i64 - 1);
    let place = with_gaps::<T, R>(own as usize);
    let end = args.out_len as i64 - start;
    let output = |r: usize| cta.shared_read(staged, place + r * with_gaps::<T, R>(BLOCK as usize));
    let to = |r: usize| (row + own) as usize + r * BLOCK as usize;
    if start >= 0 && end >= BLOCK as i64 * R as i64 {
        for r in 0..R {
            cta.write(args.out, to(r), output(r));
        }
    } else {
        for r in 0..R {
            let i = own + r as i64 * BLOCK as i64;
            if start + i >= 0 && i < end {
                cta.write(args.out, (row + i) as usize, output(r));
            }
        }
    }
}

/// Puts a thread's outputs where its first inputs were.
#[inline(always)]
#[track_caller]
fn stage_outputs<C: Cta, T: Real, const R: usize>(cta: &C, staged: Shared<T>, sums: [T; R]) {
    let lanes = T::Pack::LANES;
    let own = cta.thread() as usize * (R + lanes);
    for part in 0..R / lanes {
        let mut pack = T::Pack::ZERO;
        for (lane, x) in pack.as_mut().iter_mut().enumerate() {
            *x = sums[part * lanes + lane];
        }
        cta.shared_write_pack(staged, own + part * lanes, pack);
    }
}
