//! The family of sparse convolutional layers, its arguments, and where they lie.

use super::element::Element;
use crate::cta::{Cache, Cta};
use crate::describe::Description;
use crate::memory::{In, Out};

/// The family of sparse convolutional layers.
pub struct SparseConv<E>(core::marker::PhantomData<E>);

/// Elements from one index to the next along each axis of batch × channels × rows × columns.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Strides {
    /// Batch.
    pub image: u32,
    /// Channels.
    pub channel: u32,
    /// Rows.
    pub row: u32,
    /// Columns.
    pub col: u32,
}

impl Strides {
    /// Where an element lies.
    #[inline(always)]
    pub fn at(&self, image: u32, channel: u32, row: u32, col: u32) -> usize {
        let place = image * self.image + channel * self.channel + row * self.row + col * self.col;
        place as usize
    }
}

/// No pooling.
pub const POOL_NONE: u32 = 0;
/// The largest of a window.
pub const POOL_MAX: u32 = 1;
/// The mean of a window.
pub const POOL_AVERAGE: u32 = 2;

/// Windows over the convolution's result.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolGeometry {
    /// [`POOL_NONE`], [`POOL_MAX`] or [`POOL_AVERAGE`].
    pub kind: u32,
    /// Rows and columns of a window; 1 where there is none.
    pub window: [u32; 2],
    /// From one window to the next; 1 where there is none.
    pub stride: [u32; 2],
    /// Rows and columns of the result; those of the convolution where there is no pooling.
    pub out: [u32; 2],
}

/// Sizes of a layer. All products of sizes are below 2³¹, which the host checks.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Geometry {
    /// Images.
    pub batch: u32,
    /// Rows and columns of an input channel.
    pub size: [u32; 2],
    /// Filters.
    pub filters: u32,
    /// Input channels of a group.
    pub in_per_group: u32,
    /// Filters of a group.
    pub out_per_group: u32,
    /// Rows and columns of a filter.
    pub kernel: [u32; 2],
    /// From one output's input to the next, rows and columns.
    pub stride: [u32; 2],
    /// Zeros before the first row and column.
    pub padding: [u32; 2],
    /// From one tap's input to the next.
    pub dilation: [u32; 2],
    /// Rows and columns of the convolution's result, before pooling.
    pub out: [u32; 2],
    /// Where inputs lie; of [`SparseConvVariant::Finish`], sums.
    pub from: Strides,
    /// Where results lie.
    pub to: Strides,
    /// Pooling.
    pub pool: PoolGeometry,
    /// 1: negative sums become 0 before pooling.
    pub rectify: u32,
}

/// How the tensor strategy cuts a layer.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TensorGeometry {
    /// Rows and columns of a tile of outputs, together [`TILE_CELLS`](super::TILE_CELLS).
    pub tile: [u32; 2],
    /// Rows and columns of the inputs that a tile meets.
    pub inputs: [u32; 2],
    /// Tiles along rows and columns of an image.
    pub tiles: [u32; 2],
    /// Tiles of filters of a group.
    pub filter_tiles: u32,
    /// Bytes of a part's channels in a plane: 32 times a power of two.
    pub part: u32,
    /// Parts of a group's channels.
    pub parts: u32,
    /// Words from one staged cell to the next: 4 more than the channels of a chunk take, so that eight neighbouring
    /// cells lie in different banks.
    pub pitch: u32,
}

impl TensorGeometry {
    /// Bytes of a group's channels in a plane: whole parts.
    pub const fn bytes(&self) -> u32 {
        self.part * self.parts
    }

    /// Staged cells of a piece.
    pub const fn cells(&self) -> u32 {
        self.inputs[0] * self.inputs[1]
    }
}

/// How the staged strategy cuts a layer: words are of 32 bits.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StagedGeometry {
    /// Words of a padded row.
    pub row: u32,
    /// Words of a padded image of one channel.
    pub image: u32,
    /// Words from one channel's plane to the next, a multiple of 4.
    pub plane: u32,
    /// Words of a channel that a block's outputs meet at most, a multiple of 4.
    pub pitch: u32,
    /// Channels that are staged together.
    pub chunk: u32,
    /// Chunks of a group's channels.
    pub chunks: u32,
    /// Blocks that share a group's filters.
    pub filter_tiles: u32,
}

/// How the skip strategy cuts a layer.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SkipGeometry {
    /// Rows of outputs of a warp.
    pub rows: u32,
    /// Columns of a warp's sums: those of the input, and those that taps reach beside them.
    pub width: u32,
}

/// Arguments of every variant; an entry ignores what it does not name.
#[repr(C)]
pub struct SparseConvArgs<'a, E: Element> {
    /// Inputs.
    pub x: In<'a, E::Stored>,
    /// One number per filter, or absent.
    pub bias: In<'a, E::Acc>,
    /// Where the nonzeros begin: of each slice for the seed's formats, of each filter for `direct`, of each filter tile and
    /// part of its channels, in steps, for `tensor`; and the end of the last. For `staged` the beginning and the end for
    /// each filter and chunk of its channels.
    pub starts: In<'a, u32>,
    /// Rows of nonzeros (COO), or their places: channel · 256 + row · 16 + column (`direct`).
    pub places: In<'a, u32>,
    /// Columns of nonzeros (COO).
    pub cols: In<'a, u32>,
    /// Values of nonzeros.
    pub values: In<'a, E::Wide>,
    /// Nonzeros in one word each: value, row, column.
    pub packed: In<'a, E::Packed>,
    /// Bits of a row and of a column in a packed word.
    pub packed_bits: [u32; 2],
    /// Steps of the tensor strategy; of `staged`, pairs of a distance in words and a weight's bits.
    pub steps: In<'a, u32>,
    /// What is made of the inputs first, as bits: for `tensor` pieces by cell, channels side by side; for `staged`
    /// numbers by channel, zeros around images; for `skip` lists of what is not zero.
    pub planes: In<'a, f32>,
    /// The same, where they are made.
    pub planes_out: Out<'a, f32>,
    /// Sums of the convolution: what `finish` reads.
    pub sums: In<'a, E::Acc>,
    /// The image that `columns` begins with, and whose results `finish` writes first.
    pub first_image: u32,
    /// Results; of `columns`, the right factor of a product.
    pub out: Out<'a, E::Acc>,
    /// Sizes.
    pub geometry: Geometry,
    /// Tiles of the tensor strategy.
    pub tensor: TensorGeometry,
    /// Tiles of the staged strategy.
    pub staged: StagedGeometry,
    /// Bands of the skip strategy.
    pub skip: SkipGeometry,
}

impl<E: Element> Clone for SparseConvArgs<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<E: Element> Copy for SparseConvArgs<'_, E> {}

/// Which kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SparseConvVariant {
    /// The seed's first: a thread per output, nonzeros as value, row and column in three arrays, zero inputs skipped.
    Coo,
    /// The seed's second: value, row and column in one word.
    Packed,
    /// Four outputs of a thread, of which pooling is fused.
    Direct,
    /// Inputs to planes of pieces, channels side by side, for [`SparseConvVariant::Tensor`].
    Planes,
    /// Sparse tensor cores on bytes of integers, and on halves.
    Tensor {
        /// Pieces of a weight.
        weights: u32,
        /// Teams of a block.
        teams: u32,
    },
    /// Inputs to padded planes for [`SparseConvVariant::Staged`].
    Pad,
    /// Padded inputs in shared memory, sums in registers.
    Staged {
        /// Filters of a warp.
        filters: u32,
        /// Outputs of a lane.
        outputs: u32,
    },
    /// Lists of the inputs that are not zero for [`SparseConvVariant::Skip`].
    List,
    /// Inputs that are not zero added to the outputs that they meet.
    Skip,
    /// The right factor of a dense product.
    Columns,
    /// Bias, rectification and pooling of sums in memory.
    Finish,
}

/// The tensor strategy's launch begins while the planes that it reads are still being made.
pub(super) const fn describe(variant: &SparseConvVariant) -> Description {
    Description {
        waits_itself: matches!(variant, SparseConvVariant::Tensor { .. }),
        ..Description::UNPLANNED
    }
}

/// Input (row, column) of channel `channel`, if it is inside.
#[inline(always)]
#[track_caller]
pub(super) fn input<C: Cta, E: Element>(
    cta: &C,
    args: &SparseConvArgs<'_, E>,
    (image, channel): (u32, u32),
    (row, col): (i32, i32),
) -> Option<E::Wide> {
    let g = &args.geometry;
    if row as u32 >= g.size[0] || col as u32 >= g.size[1] {
        return None;
    }
    let at = g.from.at(image, channel, row as u32, col as u32);
    Some(value_at(cta, args, at))
}

/// Input number `at`.
#[inline(always)]
#[track_caller]
pub(super) fn value_at<C: Cta, E: Element>(
    cta: &C,
    args: &SparseConvArgs<'_, E>,
    at: usize,
) -> E::Wide {
    let (word, lane) = (at / E::PER_WORD as usize, at as u32 % E::PER_WORD);
    E::widen(cta.load(args.x, word, Cache::Keep), lane)
}

/// The sum with bias, rectified if wanted: what pooling takes.
#[inline(always)]
#[track_caller]
pub(super) fn finished<C: Cta, E: Element>(
    cta: &C,
    args: &SparseConvArgs<'_, E>,
    filter: u32,
    sum: E::Acc,
) -> E::Acc {
    use super::element::Accumulator;
    let mut sum = sum;
    if args.bias.is_some() {
        sum = sum.plus(cta.load(args.bias, filter as usize, Cache::Keep));
    }
    if args.geometry.rectify != 0 {
        sum = sum.rectified();
    }
    sum
}
