//! Stride and dilation 1: inputs in a window of registers.

use super::staging::{Buffer, Taps, copy, own_place, write_outputs};
use super::work::{Work, tile_outputs};
use super::{BLOCK, Conv1dArgs};
use crate::cta::{Cta, Shared};
use crate::scalar::{Real, Words};

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
    // Two ends instead of one that moves `high` to `low`: LLVM 22 keeps an array that is moved in local memory.
    if k + R as u32 <= all {
        let high = window(place);
        add_window(cta, taps, k, (&low, &high), sums);
        let rest = k + R as u32;
        if rest < all {
            let last = window(place + next);
            add_last(cta, (taps, rest, all), (&high, &last), sums);
        }
    } else if k < all {
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

/// Begins to copy what `work` needs, if there is any.
#[inline(always)]
fn begin<C: Cta, T: Real, const R: usize>(
    cta: &C,
    args: &Conv1dArgs<'_, T>,
    work: &Work,
    (turn, taps): (u32, Taps),
) {
    if work.tile.is_there(args) && args.in_per_group > 0 {
        let to = Buffer::new::<R>(args.taps.next_multiple_of(R as u32), turn);
        copy::<C, T, R>(cta, args, work.tile, to, taps);
    }
    cta.end_copies();
}

/// R neighbouring outputs per thread, as many registers as leave room for `BLOCKS` blocks. While a tile is computed, what the next one needs is copied.
#[inline(always)]
pub fn window<C: Cta, T: Real, const R: usize, const BLOCKS: u32>(
    cta: &C,
    args: &Conv1dArgs<'_, T>,
) {
    cta.launch_bounds::<BLOCK, BLOCKS>();
    let outputs = tile_outputs::<R>();
    let own = own_place::<C, T, R>(cta);
    let mut work = Work::first(cta, args, outputs);
    begin::<C, T, R>(cta, args, &work, (0, Taps::Wanted));
    let (mut sums, mut turn, mut taps) = ([T::ZERO; R], 0, Taps::Wanted);
    while work.tile.is_there(args) {
        cta.copies_done::<0>();
        cta.sync();
        let next = work.next(cta, args, outputs);
        begin::<C, T, R>(cta, args, &next, (1 - turn, taps));
        let at = Buffer::new::<R>(args.taps.next_multiple_of(R as u32), turn);
        if args.in_per_group > 0 {
            add_taps(cta, (at.taps, at.inputs), (args.taps, own), &mut sums);
        }
        if next.item != work.item {
            write_outputs(cta, args, work.tile, at.inputs, sums);
            sums = [T::ZERO; R];
        }
        (work, turn) = (next, 1 - turn);
        // Where all tiles have the same filter, both buffers have it now.
        if args.out_channels * args.in_per_group == 1 {
            taps = Taps::Held;
        }
    }
}
