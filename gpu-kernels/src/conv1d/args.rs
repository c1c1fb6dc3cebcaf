//! The family of convolutions, its arguments, and where they lie.

use crate::cta::{Cache, Cta};
use crate::memory::{In, Out};
use crate::scalar::Real;

/// The family of convolutions.
pub struct Conv1d<T>(core::marker::PhantomData<T>);

/// Threads of a block of every variant but the naive one, which takes any.
pub const BLOCK: u32 = 128;
/// Bytes of a pack.
pub(crate) const PACK: u32 = 16;
/// Staged inputs begin at a multiple of this many bytes. Copies bring sectors of 32: where those begin in the middle of one of
/// shared memory, an H200 takes 150 µs for strips of 2²⁶ elements and 9 taps, and 133 where they do not.
pub(crate) const LINE: u32 = 128;
/// Outputs by which tiles begin earlier at most, so that the inputs of the first channel, and of all channels where
/// len allows, begin at a multiple of 32 elements: a line of memory.
pub const EARLIEST: i64 = 31;

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
    /// A staged tile of a block; packs of neighbouring outputs of a thread, an odd number.
    Strip(u32),
}

impl Conv1dVariant {
    /// Outputs of a block's tile, of elements of `bytes` bytes.
    pub const fn tile(&self, bytes: u32) -> u64 {
        match self {
            Conv1dVariant::Naive => 1,
            Conv1dVariant::Tiled(outputs) | Conv1dVariant::Window(outputs) => {
                BLOCK as u64 * *outputs as u64
            }
            Conv1dVariant::Strip(packs) => (BLOCK * *packs * (PACK / bytes)) as u64,
        }
    }

    /// Dynamic shared memory for elements of `bytes` bytes.
    pub const fn shared_bytes(&self, taps: u32, stride: u32, dilation: u32, bytes: u32) -> u64 {
        let (tile, lanes) = (self.tile(bytes), PACK / bytes);
        let elements = match self {
            Conv1dVariant::Naive => 0,
            Conv1dVariant::Tiled(_) => taps as u64 + span(tile, taps, stride, dilation),
            Conv1dVariant::Window(outputs) => {
                let places = taps.next_multiple_of(*outputs);
                let staged = staged_len(tile + places as u64, *outputs, lanes);
                2 * (places.next_multiple_of(LINE / bytes) as u64 + staged)
            }
            Conv1dVariant::Strip(packs) => {
                // With as many places before the first tap as there may be.
                let places = (taps + lanes - 1).next_multiple_of(lanes);
                let staged = staged_len(tile + places as u64, *packs * lanes, lanes);
                places.next_multiple_of(LINE / bytes) as u64 + staged
            }
        };
        elements * bytes as u64
    }
}

/// Inputs of `tile` outputs.
pub(crate) const fn span(tile: u64, taps: u32, stride: u32, dilation: u32) -> u64 {
    (tile - 1) * stride as u64 + (taps as u64 - 1) * dilation as u64 + 1
}

/// Unused places after every `outputs` inputs, which are those of a thread: an odd number of packs is from one thread to
/// the next.
pub(crate) const fn gap(outputs: u32, lanes: u32) -> u32 {
    (1 - outputs / lanes % 2) * lanes
}

/// Places of this many inputs, with their gaps.
pub(crate) const fn staged_len(inputs: u64, outputs: u32, lanes: u32) -> u64 {
    inputs + inputs.div_ceil(outputs as u64) * gap(outputs, lanes) as u64
}

/// The first input channel of output channel `o`, and how many elements lie before it.
#[inline(always)]
pub(crate) fn first_of_group<T>(args: &Conv1dArgs<'_, T>, o: u64) -> u64 {
    o / args.out_per_group * args.in_per_group * args.len
}

/// Where the taps of (output channel, channel of its group) begin.
#[inline(always)]
pub(crate) fn filter_of<T>(args: &Conv1dArgs<'_, T>, o: u64, c: u64) -> u64 {
    (o * args.in_per_group + c) * args.taps as u64
}

/// Element `i` of the channel that begins at `channel`, zero outside.
#[inline(always)]
#[track_caller]
pub(crate) fn load_or_zero<C: Cta, T: Real>(
    cta: &C,
    args: &Conv1dArgs<'_, T>,
    channel: u64,
    i: i64,
) -> T {
    if i >= 0 && (i as u64) < args.len {
        cta.load(args.x, (channel + i as u64) as usize, Cache::Keep)
    } else {
        T::ZERO
    }
}
