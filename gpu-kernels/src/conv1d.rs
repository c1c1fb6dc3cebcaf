//! One-dimensional convolution over channels.
//!
//! Formula: `out[o][i] = Σ_c Σ_k filters[o][c][k] · x[g·C + c][i·stride + k·dilation − before]`, with g = o / O the
//! group of output channel o, C input and O output channels per group; x is zero outside its length. Taps are
//! not turned round (the convention of neural networks; filters that are symmetric see no difference).
//!
//! Shapes: x is channels × len, filters is output channels × C × taps, out is output channels × out_len, each
//! packed row-major.
//!
//! | variant | mapping | shared memory |
//! |---|---|---|
//! | naive | a thread per output, everything from global memory (the lecture's first) | none |
//! | tiled | a thread per output, x staged with its halo (the lecture's second) | filter, tile |
//! | strided | as tiled, four outputs per thread, 256 apart: any stride and dilation | filter, tile |
//! | window | stride and dilation 1: R neighbouring outputs per thread, x in a window of registers that moves on by R taps, tile staged in 16-byte loads, outputs written through shared memory | filter, tile with a gap after every R elements |
//!
//! The gap makes the distance between neighbouring threads odd, hence no two of a warp meet in a bank.
//!
//! Every output is one chain of fused multiply-adds, channels outside, taps inside, from +0: the same bits from
//! every variant and on every device. A tile is read from memory once per output channel.
//!
//! Source: D. Kirk and W. Hwu, *Programming Massively Parallel Processors*, ch. 7, for the first two.

use crate::cta::{Cache, Cta, Shared};
use crate::memory::{In, Out};
use crate::scalar::{Real, Words};
use crate::table::{Launch, Violation};
use crate::verbs::{each_of_block, each_of_grid};

/// The family of convolutions.
pub struct Conv1d<T>(core::marker::PhantomData<T>);

/// Threads of a block of every variant but the naive one, which takes any.
pub const BLOCK: u32 = 256;
/// 16-byte loads that a thread has in flight while it stages a tile.
const IN_FLIGHT: u64 = 6;

/// Arguments of every variant.
#[repr(C)]
pub struct Conv1dArgs<'a, T> {
    /// channels × len.
    pub x: In<'a, T>,
    /// output channels × channels per group × taps.
    pub filters: In<'a, T>,
    /// output channels × out_len.
    pub out: Out<'a, T>,
    /// Elements of an input channel.
    pub len: u64,
    /// Elements of an output channel.
    pub out_len: u64,
    /// Output channels.
    pub out_channels: u64,
    /// Input channels of a group.
    pub in_per_group: u64,
    /// Output channels of a group.
    pub out_per_group: u64,
    /// Zeros that x begins with.
    pub before: u64,
    /// Taps of a filter.
    pub taps: u32,
    /// From one output's input to the next.
    pub stride: u32,
    /// From one tap's input to the next.
    pub dilation: u32,
}

impl<T> Clone for Conv1dArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Conv1dArgs<'_, T> {}

/// How a convolution is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Conv1dVariant {
    /// A thread per output.
    Naive,
    /// Staged tiles; outputs of a thread, [`BLOCK`] apart.
    Tiled(u32),
    /// Staged tiles; neighbouring outputs of a thread.
    Window(u32),
}

impl Conv1dVariant {
    /// Outputs of a block's tile.
    pub const fn tile(&self) -> u64 {
        match self {
            Conv1dVariant::Naive => 1,
            Conv1dVariant::Tiled(outputs) | Conv1dVariant::Window(outputs) => {
                BLOCK as u64 * *outputs as u64
            }
        }
    }

    /// Dynamic shared memory for elements of `bytes` bytes.
    pub const fn shared_bytes(&self, taps: u32, stride: u32, dilation: u32, bytes: u32) -> u64 {
        let tile = match self {
            Conv1dVariant::Naive => return 0,
            Conv1dVariant::Tiled(_) => span(self.tile(), taps, stride, dilation),
            Conv1dVariant::Window(outputs) => window_len(self.tile(), taps, *outputs),
        };
        (taps as u64 + tile) * bytes as u64
    }
}

/// Inputs of `tile` outputs.
const fn span(tile: u64, taps: u32, stride: u32, dilation: u32) -> u64 {
    (tile - 1) * stride as u64 + (taps as u64 - 1) * dilation as u64 + 1
}

/// Places of a tile with gaps: one input more than is needed, and up to three before the first.
const fn window_len(tile: u64, taps: u32, outputs: u32) -> u64 {
    let last = tile + taps as u64 + 3;
    last + last / outputs as u64 + 1
}

/// The first input channel of output channel `o`, and how many elements lie before it.
#[inline(always)]
fn first_of_group<T>(args: &Conv1dArgs<'_, T>, o: u64) -> u64 {
    o / args.out_per_group * args.in_per_group * args.len
}

/// Where the taps of (output channel, channel of its group) begin.
#[inline(always)]
fn filter_of<T>(args: &Conv1dArgs<'_, T>, o: u64, c: u64) -> u64 {
    (o * args.in_per_group + c) * args.taps as u64
}

/// Element `i` of the channel that begins at `channel`, zero outside.
#[inline(always)]
#[track_caller]
fn load_or_zero<C: Cta, T: Real>(cta: &C, args: &Conv1dArgs<'_, T>, channel: u64, i: i64) -> T {
    if i >= 0 && (i as u64) < args.len {
        cta.load(args.x, (channel + i as u64) as usize, Cache::Keep)
    } else {
        T::ZERO
    }
}

fn naive<C: Cta, T: Real>(cta: &C, args: &Conv1dArgs<'_, T>) {
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

fn tiled<C: Cta, T: Real, const R: usize>(cta: &C, args: &Conv1dArgs<'_, T>) {
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

/// Where input `i` of a tile lies: a gap after every R.
#[inline(always)]
fn with_gaps<const R: usize>(i: u64) -> usize {
    (i + i / R as u64) as usize
}

/// Stages `count` inputs from element `first` of a channel on, and returns where the first one lies: the
/// loads begin at the multiple of 16 bytes before it.
#[inline(always)]
#[track_caller]
fn stage_packs<C: Cta, T: Real, const R: usize>(
    cta: &C,
    args: &Conv1dArgs<'_, T>,
    (channel, first, count): (u64, i64, u64),
    inputs: Shared<T>,
) -> u64 {
    let lanes = T::Pack::LANES as i64;
    let at = channel as i64 + first;
    let aligned = at & -lanes;
    let skew = (at - aligned) as u64;
    let packs = (skew + count).div_ceil(lanes as u64);
    // Places of the last pack beyond the staged inputs are never read; they may not be there.
    let end = skew + count;
    let fetch = |pack: u64| -> T::Pack {
        let from = aligned + (pack * lanes as u64) as i64 - channel as i64;
        if from >= 0 && (from + lanes) as u64 <= args.len {
            return cta.load_pack(args.x, (channel as i64 + from) as usize, Cache::Once);
        }
        let mut held = T::Pack::from_words([T::ZERO.to_bits(); 4]);
        for (lane, x) in held.as_mut().iter_mut().enumerate() {
            *x = load_or_zero(cta, args, channel, from + lane as i64);
        }
        held
    };
    let mut round = cta.thread() as u64;
    while round < packs {
        let at = |k: u64| round + k * BLOCK as u64;
        let mut held = [fetch(round); IN_FLIGHT as usize];
        for k in 1..IN_FLIGHT {
            if at(k) < packs {
                held[k as usize] = fetch(at(k));
            }
        }
        for k in 0..IN_FLIGHT {
            if at(k) < packs {
                for (lane, x) in held[k as usize].as_ref().iter().enumerate() {
                    let i = at(k) * lanes as u64 + lane as u64;
                    if i < end {
                        cta.shared_write(inputs, with_gaps::<R>(i), *x);
                    }
                }
            }
        }
        round = at(IN_FLIGHT);
    }
    skew
}

/// Adds all taps to R neighbouring outputs whose first input lies at `at`.
#[inline(always)]
#[track_caller]
fn add_taps<C: Cta, T: Real, const R: usize>(
    cta: &C,
    args: &Conv1dArgs<'_, T>,
    inputs: Shared<T>,
    at: u64,
    sums: &mut [T; R],
) {
    let input = |i: u64| cta.shared_read(inputs, with_gaps::<R>(i));
    let tap = |k: u64| cta.shared_read(taps(args), k as usize);
    let all = args.taps as u64;
    let mut low = [T::ZERO; R];
    for (r, x) in low.iter_mut().enumerate() {
        *x = input(at + r as u64);
    }
    let mut k = 0;
    while k + R as u64 <= all {
        let mut high = [T::ZERO; R];
        for (r, x) in high.iter_mut().enumerate() {
            *x = input(at + k + (R + r) as u64);
        }
        for step in 0..R {
            add_tap(tap(k + step as u64), step, (&low, &high), sums);
        }
        low = high;
        k += R as u64;
    }
    let mut high = [T::ZERO; R];
    for (r, x) in high.iter_mut().enumerate() {
        if k + (r as u64) + 1 < all {
            *x = input(at + k + (R + r) as u64);
        }
    }
    for step in 0..R {
        if k + (step as u64) < all {
            add_tap(tap(k + step as u64), step, (&low, &high), sums);
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

fn window<C: Cta, T: Real, const R: usize>(cta: &C, args: &Conv1dArgs<'_, T>) {
    let tile = BLOCK as u64 * R as u64;
    let inputs = staged(args, window_len(tile, args.taps, R as u32));
    let own = cta.thread() as u64 * R as u64;
    each_tile(cta, args, tile, |o, start| {
        let first = start as i64 - args.before as i64;
        let count = tile + args.taps as u64;
        let mut sums = [T::ZERO; R];
        for c in 0..args.in_per_group {
            let channel = first_of_group(args, o) + c * args.len;
            cta.sync();
            stage_taps(cta, args, o, c);
            let skew = stage_packs::<C, T, R>(cta, args, (channel, first, count), inputs);
            cta.sync();
            add_taps(cta, args, inputs, skew + own, &mut sums);
        }
        cta.sync();
        for (r, sum) in sums.into_iter().enumerate() {
            cta.shared_write(inputs, with_gaps::<R>(own + r as u64), sum);
        }
        cta.sync();
        each_of_block(cta, tile as u32, |i| {
            if start + (i as u64) < args.out_len {
                let sum = cta.shared_read(inputs, with_gaps::<R>(i as u64));
                cta.write(args.out, (o * args.out_len + start) as usize + i, sum);
            }
        });
    });
}

fn check<T: Real>(
    variant: &Conv1dVariant,
    launch: &Launch,
    args: &Conv1dArgs<'_, T>,
) -> Result<(), Violation> {
    if *variant != Conv1dVariant::Naive {
        Violation::equal("block", BLOCK as u64, launch.block as u64)?;
    }
    Violation::at_least("taps", 1, args.taps as u64)?;
    Violation::at_least("stride", 1, args.stride as u64)?;
    Violation::at_least("dilation", 1, args.dilation as u64)?;
    if let Conv1dVariant::Window(_) = variant {
        Violation::equal("stride", 1, args.stride as u64)?;
        Violation::equal("dilation", 1, args.dilation as u64)?;
    }
    let shared = variant.shared_bytes(args.taps, args.stride, args.dilation, T::SIZE);
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
    Violation::at_least("output channels per group", 1, args.out_per_group)?;
    let groups = args.out_channels.div_ceil(args.out_per_group);
    let channels = groups.saturating_mul(args.in_per_group);
    let inputs = channels.saturating_mul(args.len);
    Violation::at_least("length of x", inputs, args.x.len())?;
    let filters = args.out_channels.saturating_mul(args.in_per_group);
    let filters = filters.saturating_mul(args.taps as u64);
    Violation::at_least("length of filters", filters, args.filters.len())?;
    let outputs = args.out_channels.saturating_mul(args.out_len);
    Violation::at_least("length of out", outputs, args.out.len())
}

macro_rules! conv1d_family {
    ($t:ident) => {
        crate::kernels! {
            family Conv1d<$t>, "conv1d";
            args Conv1dArgs<'a, $t>;
            variant Conv1dVariant;
            check check::<$t>;
            concat!("conv1d_naive_", stringify!($t)), Conv1dVariant::Naive => naive::<_, $t>;
            concat!("conv1d_tiled_r1_", stringify!($t)), Conv1dVariant::Tiled(1) => tiled::<_, $t, 1>;
            concat!("conv1d_tiled_r4_", stringify!($t)), Conv1dVariant::Tiled(4) => tiled::<_, $t, 4>;
            concat!("conv1d_window_r8_", stringify!($t)), Conv1dVariant::Window(8) => window::<_, $t, 8>;
            concat!("conv1d_window_r16_", stringify!($t)), Conv1dVariant::Window(16) => window::<_, $t, 16>;
        }
    };
}

conv1d_family!(f32);
conv1d_family!(f64);
