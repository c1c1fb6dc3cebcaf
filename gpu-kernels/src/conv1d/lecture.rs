//! The lecture's variants: a thread per output, and inputs staged in shared memory, for any stride and dilation.

use super::{BLOCK, Conv1dArgs, filter_of, first_of_group, load_or_zero, span};
use crate::cta::{Cache, Cta, Shared};
use crate::scalar::Real;
use crate::verbs::{each_of_block, each_of_grid};

/// A thread per output, everything from global memory.
pub fn naive<C: Cta, T: Real>(cta: &C, args: &Conv1dArgs<'_, T>) {
    each_of_grid(cta, args.out_channels * args.out_len, |at| {
        let (o, i) = (at as u64 / args.out_len, at as u64 % args.out_len);
        let first = (i * args.stride as u64) as i64 - args.before as i64;
        let mut sum = T::ZERO;
        for c in 0..args.in_per_group {
            let channel = first_of_group(args, o) + c * args.len;
            let filter = filter_of(args, o, c) as usize;
            for k in 0..args.taps {
                let x: T = load_or_zero(cta, args, channel, first + (k * args.dilation) as i64);
                sum = x.fma(
                    cta.load(args.filters, filter + k as usize, Cache::Keep),
                    sum,
                );
            }
        }
        cta.write(args.out, at, sum);
    });
}

/// The taps in shared memory.
#[inline(always)]
fn taps<T: Real>(args: &Conv1dArgs<'_, T>) -> Shared<T> {
    Shared::at(0, args.taps)
}

/// The staged inputs behind them.
#[inline(always)]
fn staged<T: Real>(args: &Conv1dArgs<'_, T>, len: u64) -> Shared<T> {
    Shared::at(args.taps * T::SIZE, len as u32)
}

#[inline(always)]
#[track_caller]
fn stage_taps<C: Cta, T: Real>(cta: &C, args: &Conv1dArgs<'_, T>, o: u64, c: u64) {
    let first = filter_of(args, o, c) as usize;
    each_of_block(cta, args.taps, |k| {
        let tap = cta.load(args.filters, first + k, Cache::Keep);
        cta.shared_write(taps(args), k, tap);
    });
}

/// Calls `each(output channel, first output)` for this block's share of the tiles.
#[inline(always)]
fn each_tile<C: Cta, T>(
    cta: &C,
    args: &Conv1dArgs<'_, T>,
    tile: u64,
    mut each: impl FnMut(u64, u64),
) {
    let tiles = args.out_len.div_ceil(tile);
    let mut item = cta.block() as u64;
    while item < tiles * args.out_channels {
        each(item / tiles, item % tiles * tile);
        item += cta.blocks() as u64;
    }
}

/// A block's inputs and taps in shared memory; R outputs per thread, a block apart.
pub fn tiled<C: Cta, T: Real, const R: usize>(cta: &C, args: &Conv1dArgs<'_, T>) {
    let tile = BLOCK as u64 * R as u64;
    let span = span(tile, args.taps, args.stride, args.dilation);
    let inputs = staged(args, span);
    each_tile(cta, args, tile, |o, start| {
        let first = (start * args.stride as u64) as i64 - args.before as i64;
        let mut sums = [T::ZERO; R];
        for c in 0..args.in_per_group {
            let channel = first_of_group(args, o) + c * args.len;
            cta.sync();
            stage_taps(cta, args, o, c);
            each_of_block(cta, span as u32, |i| {
                let x = load_or_zero(cta, args, channel, first + i as i64);
                cta.shared_write(inputs, i, x);
            });
            cta.sync();
            for k in 0..args.taps {
                let tap = cta.shared_read(taps(args), k as usize);
                for (r, sum) in sums.iter_mut().enumerate() {
                    let output = cta.thread() + r as u32 * BLOCK;
                    let i = output * args.stride + k * args.dilation;
                    *sum = cta.shared_read(inputs, i as usize).fma(tap, *sum);
                }
            }
        }
        for (r, sum) in sums.into_iter().enumerate() {
            let i = start + cta.thread() as u64 + r as u64 * BLOCK as u64;
            if i < args.out_len {
                cta.write(args.out, (o * args.out_len + i) as usize, sum);
            }
        }
    });
}
