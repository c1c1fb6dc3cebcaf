//! One-dimensional convolution: tiles of outputs spread over the cores, taps added one after the other.
//!
//! Every output is the GPU's chain of fused multiply-adds, hence has its bits.

use rayon::prelude::*;

use super::dispatch::dispatch;
use super::scalar::Scalar;

/// Outputs of a tile: their sums and inputs stay in the first-level cache.
const TILE: usize = 1_024;

/// Which inputs meet which taps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conv1d {
    /// Elements of an input channel.
    pub len: usize,
    /// Elements of an output channel.
    pub out_len: usize,
    /// Input channels of a group.
    pub in_per_group: usize,
    /// Output channels of a group.
    pub out_per_group: usize,
    /// Taps of a filter.
    pub taps: usize,
    /// From one output's input to the next.
    pub stride: usize,
    /// From one tap's input to the next.
    pub dilation: usize,
    /// Zeros before the input.
    pub before: usize,
}

/// `out[o][i] = Σ_c Σ_k filters[o][c][k] · x[c][i·stride + k·dilation − before]`, c over the group of o.
///
/// # Panics
/// When a slice is too short for the shape, or `out` is not whole channels.
///
/// ```
/// use warpfuse::cpu::conv1d::{Conv1d, convolve};
/// let shape = Conv1d {
///     len: 4, out_len: 3, in_per_group: 1, out_per_group: 1, taps: 2, stride: 1, dilation: 1, before: 0,
/// };
/// let mut out = [0.0_f32; 3];
/// convolve(&shape, &[1.0, 2.0, 3.0, 5.0], &[-1.0, 1.0], &mut out);
/// assert_eq!(out, [1.0, 1.0, 2.0]);
/// ```
pub fn convolve<T: Scalar + Fused>(shape: &Conv1d, x: &[T], filters: &[T], out: &mut [T]) {
    if shape.out_len == 0 {
        return;
    }
    let channels = out.par_chunks_mut(shape.out_len).enumerate();
    channels.for_each(|(o, out)| {
        out.par_chunks_mut(TILE)
            .enumerate()
            .for_each(|(tile, out)| {
                dispatch(
                    #[inline(always)]
                    || add_channels(shape, (o, tile * TILE), x, filters, out),
                );
            });
    });
}

/// A multiply-add that is rounded once.
pub trait Fused: Copy {
    /// `self · b + c`.
    fn fused(self, b: Self, c: Self) -> Self;
}

impl Fused for f32 {
    #[inline(always)]
    fn fused(self, b: f32, c: f32) -> f32 {
        self.mul_add(b, c)
    }
}

impl Fused for f64 {
    #[inline(always)]
    fn fused(self, b: f64, c: f64) -> f64 {
        self.mul_add(b, c)
    }
}

#[inline(always)]
fn add_channels<T: Scalar + Fused>(
    shape: &Conv1d,
    (o, start): (usize, usize),
    x: &[T],
    filters: &[T],
    out: &mut [T],
) {
    let reach = (out.len() - 1) * shape.stride + (shape.taps - 1) * shape.dilation + 1;
    let mut inputs = vec![T::default(); reach];
    out.fill(T::default());
    for c in 0..shape.in_per_group {
        let channel = o / shape.out_per_group * shape.in_per_group + c;
        let channel = &x[channel * shape.len..][..shape.len];
        stage(channel, start * shape.stride, shape.before, &mut inputs);
        let filter = &filters[(o * shape.in_per_group + c) * shape.taps..][..shape.taps];
        for (k, &tap) in filter.iter().enumerate() {
            let inputs = &inputs[k * shape.dilation..];
            if shape.stride == 1 {
                add_tap(tap, inputs.iter(), out);
            } else {
                add_tap(tap, inputs.iter().step_by(shape.stride), out);
            }
        }
    }
}

#[inline(always)]
fn add_tap<'a, T: Fused + 'a>(tap: T, inputs: impl Iterator<Item = &'a T>, sums: &mut [T]) {
    for (sum, x) in sums.iter_mut().zip(inputs) {
        *sum = x.fused(tap, *sum);
    }
}

/// `inputs[i] = channel[first + i − before]`, zero outside.
fn stage<T: Scalar>(channel: &[T], first: usize, before: usize, inputs: &mut [T]) {
    inputs.fill(T::default());
    let zeros = before.saturating_sub(first).min(inputs.len());
    let from = (first + zeros).saturating_sub(before).min(channel.len());
    let inside = (channel.len() - from).min(inputs.len() - zeros);
    inputs[zeros..zeros + inside].copy_from_slice(&channel[from..from + inside]);
}
