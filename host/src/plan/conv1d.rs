//! Shapes of one-dimensional convolutions, and how they are launched.

use gpu_kernels::conv1d::Conv1dVariant;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::limits::DeviceLimits;
use super::space::Space;

pub use gpu_kernels::conv1d::BLOCK;
use gpu_kernels::conv1d::EARLIEST;
/// With fewer packs of taps a strip of three packs is faster than one of five. An H200, 2²⁶ elements of f32: 131 and 132 µs
/// for 17 taps, 162 and 155 for 33, 246 and 224 for 64.
const SHORT_FILTER: usize = 8;
/// With fewer packs of taps a strip of five packs is faster than windows, as above: 350 and 368 µs for 128 taps, 2,456 and
/// 2,553 for 1,024. Longer ones were not measured.
const STRIP_FILTER: usize = 257;
/// From this many taps on a thread takes 16 outputs of f64, whose registers leave room for few warps; of f32 it always
/// does: 145 µs for 3 taps with 16, 153 with 8, 178 and 202 for 33.
const LONG_FILTER: usize = 64;
/// From this many taps on a block takes a window's tiles one after the other, and copies what the next one needs while it
/// computes; before, a tile for each block is faster. An H200, as above: 159 µs for 3 taps, and 143 with a tile for each
/// block; 158 and 145 for 17; 161 and 184 for 33.
const MANY_TAPS: usize = 24;
/// Blocks of an SM that do so: twice what an H200 holds at once of those with 16 outputs of f32 and fewer than some 400 taps.
/// Not fitted to the others, of which it holds four to seven.
const WINDOW_BLOCKS_PER_SM: u64 = 14;
/// Bytes of a pack.
const PACK: usize = 16;
/// Blocks of one launch at most.
const MOST_BLOCKS: u64 = 1 << 30;
/// Blocks of an SM where a thread takes one output after the other.
const NAIVE_BLOCKS_PER_SM: u64 = 8;

/// What lies around the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Padding {
    /// Nothing: every tap meets an input.
    #[default]
    Valid,
    /// Zeros on both sides, so that there are ⌈len / stride⌉ outputs; where their number is odd, one more
    /// behind than before.
    Same,
    /// Zeros before: an output meets no later input. ⌈len / stride⌉ outputs.
    Causal,
}

/// Which inputs meet which taps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Conv1dShape {
    /// Elements of an input channel.
    pub len: usize,
    /// Taps of a filter.
    pub taps: usize,
    /// Input channels.
    pub in_channels: usize,
    /// Output channels.
    pub out_channels: usize,
    /// Groups: output channels of a group meet its input channels only. As many groups as channels make a
    /// depthwise convolution.
    pub groups: usize,
    /// From one output's input to the next.
    pub stride: usize,
    /// From one tap's input to the next.
    pub dilation: usize,
    /// What lies around the input.
    pub padding: Padding,
}

/// What is wrong with a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Conv1dShapeError {
    /// A size that has to be positive.
    #[error("expected at least one for `{what}`, found 0")]
    Zero {
        /// The field.
        what: &'static str,
    },
    /// Groups of unequal size.
    #[error(
        "expected {groups} groups to divide {what}, found {found}; use as many groups as divide both channel counts"
    )]
    Groups {
        /// Groups.
        groups: usize,
        /// Which channels.
        what: &'static str,
        /// How many channels there are.
        found: usize,
    },
    /// Sizes whose products do not fit.
    #[error(
        "the reach of the filter or the elements of {what} exceed {limit}; split the convolution"
    )]
    TooLarge {
        /// Of what.
        what: &'static str,
        /// The most that is supported.
        limit: u64,
    },
}

impl Conv1dShape {
    /// One channel in, one out, stride and dilation 1, valid padding.
    pub fn single(len: usize, taps: usize) -> Conv1dShape {
        Conv1dShape {
            len,
            taps,
            in_channels: 1,
            out_channels: 1,
            groups: 1,
            stride: 1,
            dilation: 1,
            padding: Padding::Valid,
        }
    }

    /// Fails unless sizes are positive (the length may be 0), groups divide channels, and all products fit.
    ///
    /// # Errors
    /// [`Conv1dShapeError`].
    pub fn check(&self) -> Result<(), Conv1dShapeError> {
        let positive = [
            ("taps", self.taps),
            ("in_channels", self.in_channels),
            ("out_channels", self.out_channels),
            ("groups", self.groups),
            ("stride", self.stride),
            ("dilation", self.dilation),
        ];
        if let Some((what, _)) = positive.into_iter().find(|(_, size)| *size == 0) {
            return Err(Conv1dShapeError::Zero { what });
        }
        for (what, found) in [
            ("input channels", self.in_channels),
            ("output channels", self.out_channels),
        ] {
            if !found.is_multiple_of(self.groups) {
                let groups = self.groups;
                return Err(Conv1dShapeError::Groups {
                    groups,
                    what,
                    found,
                });
            }
        }
        self.check_products()
    }

    fn check_products(&self) -> Result<(), Conv1dShapeError> {
        let limited = |what, product: Option<usize>, limit: u64| match product {
            Some(product) if product as u64 <= limit => Ok(()),
            _ => Err(Conv1dShapeError::TooLarge { what, limit }),
        };
        // Kernels compute places of taps and strides of a tile in 32 bits.
        const PLACES: u64 = 1 << 30;
        let elements = i64::MAX as u64 / 16;
        limited("the taps", self.taps.checked_mul(self.dilation), PLACES)?;
        limited(
            "a tile",
            self.stride.checked_mul(BLOCK as usize * 16),
            PLACES,
        )?;
        limited("x", self.in_channels.checked_mul(self.len), elements)?;
        let filters = self.out_channels.checked_mul(self.in_channels);
        let filters = filters.and_then(|filters| filters.checked_mul(self.taps));
        limited("the filters", filters, elements)?;
        limited(
            "the result",
            self.out_channels.checked_mul(self.len),
            elements,
        )
    }

    /// From the first tap's input to the last's, both counted.
    fn reach(&self) -> usize {
        (self.taps - 1) * self.dilation + 1
    }

    /// Outputs of a channel.
    ///
    /// ```
    /// use warpfuse::plan::conv1d::{Conv1dShape, Padding};
    /// let shape = Conv1dShape { stride: 2, ..Conv1dShape::single(10, 4) };
    /// assert_eq!(shape.out_len(), 4);
    /// assert_eq!(Conv1dShape { padding: Padding::Same, ..shape }.out_len(), 5);
    /// ```
    pub fn out_len(&self) -> usize {
        match self.padding {
            Padding::Valid if self.len < self.reach() => 0,
            Padding::Valid => (self.len - self.reach()) / self.stride + 1,
            Padding::Same | Padding::Causal => self.len.div_ceil(self.stride),
        }
    }

    /// Zeros before the input.
    pub fn before(&self) -> usize {
        match self.padding {
            Padding::Valid => 0,
            Padding::Causal => self.reach() - 1,
            Padding::Same => {
                let wanted = self.out_len().saturating_sub(1) * self.stride + self.reach();
                wanted.saturating_sub(self.len) / 2
            }
        }
    }

    /// Input channels of a group.
    pub fn in_per_group(&self) -> usize {
        self.in_channels / self.groups
    }

    /// Output channels of a group.
    pub fn out_per_group(&self) -> usize {
        self.out_channels / self.groups
    }

    /// Elements of all filters.
    pub fn filter_elements(&self) -> usize {
        self.out_channels * self.in_per_group() * self.taps
    }
}

/// How a convolution is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conv1dStrategy {
    /// A thread per output, everything from global memory: the lecture's first kernel.
    Naive,
    /// A thread per output, inputs staged in shared memory: the lecture's second.
    Tiled,
    /// As `Tiled`, four outputs per thread.
    Strided,
    /// Eight neighbouring outputs per thread, inputs in a window of registers; stride and dilation 1.
    Window8,
    /// Sixteen.
    Window16,
    /// Three packs of 16 bytes of neighbouring outputs per thread, inputs in a ring of packs in registers, a tile per
    /// block; stride and dilation 1, one input channel per group.
    Strip3,
    /// Five.
    Strip5,
}

impl Conv1dStrategy {
    /// All of them.
    pub const ALL: [Conv1dStrategy; 7] = [
        Conv1dStrategy::Naive,
        Conv1dStrategy::Tiled,
        Conv1dStrategy::Strided,
        Conv1dStrategy::Window8,
        Conv1dStrategy::Window16,
        Conv1dStrategy::Strip3,
        Conv1dStrategy::Strip5,
    ];

    /// Whether it computes `shape` on a device that gives a block `shared` bytes.
    pub fn suits(self, shape: &Conv1dShape, bytes: u32, shared: u64) -> bool {
        let is_dense = shape.stride == 1 && shape.dilation == 1;
        match self {
            Conv1dStrategy::Naive => true,
            Conv1dStrategy::Window8 | Conv1dStrategy::Window16 if !is_dense => false,
            Conv1dStrategy::Strip3 | Conv1dStrategy::Strip5
                if !is_dense || shape.in_per_group() != 1 =>
            {
                false
            }
            _ => self.shared_bytes(shape, bytes) <= shared,
        }
    }

    /// Whether every tile needs a block of its own: a strip's first tile begins earlier.
    pub(super) fn needs_all_blocks(self) -> bool {
        matches!(self, Conv1dStrategy::Strip3 | Conv1dStrategy::Strip5)
    }

    /// Dynamic shared memory of a block: the taps and the inputs of a tile, with gaps for windows. The shape has
    /// been [checked](Conv1dShape::check).
    pub fn shared_bytes(self, shape: &Conv1dShape, bytes: u32) -> u64 {
        let [taps, stride, dilation] = [shape.taps, shape.stride, shape.dilation]
            .map(|size| u32::try_from(size).unwrap_or(u32::MAX));
        self.variant().shared_bytes(taps, stride, dilation, bytes)
    }

    /// The compiled variant.
    pub const fn variant(self) -> Conv1dVariant {
        match self {
            Conv1dStrategy::Naive => Conv1dVariant::Naive,
            Conv1dStrategy::Tiled => Conv1dVariant::Tiled(1),
            Conv1dStrategy::Strided => Conv1dVariant::Tiled(4),
            Conv1dStrategy::Window8 => Conv1dVariant::Window(8),
            Conv1dStrategy::Window16 => Conv1dVariant::Window(16),
            Conv1dStrategy::Strip3 => Conv1dVariant::Strip(3),
            Conv1dStrategy::Strip5 => Conv1dVariant::Strip(5),
        }
    }
}

/// A launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Conv1dPlan {
    /// How it is computed.
    pub strategy: Conv1dStrategy,
    /// Blocks.
    pub grid: u32,
    /// Dynamic shared memory per block.
    pub shared_bytes: u32,
}

/// The fastest way to compute `shape` with elements of `bytes` bytes.
///
/// ```
/// use warpfuse::plan::conv1d::{Conv1dShape, Conv1dStrategy, plan};
/// use warpfuse::plan::limits::DeviceLimits;
/// let h200 = DeviceLimits::known("h200").expect("a listed device");
/// assert_eq!(plan(&Conv1dShape::single(1 << 20, 9), 4, &h200).strategy, Conv1dStrategy::Strip3);
/// assert_eq!(plan(&Conv1dShape::single(1 << 20, 4_999), 4, &h200).strategy, Conv1dStrategy::Window16);
/// let dilated = Conv1dShape { dilation: 2, ..Conv1dShape::single(1 << 20, 9) };
/// assert_eq!(plan(&dilated, 4, &h200).strategy, Conv1dStrategy::Strided);
/// ```
pub fn plan(shape: &Conv1dShape, bytes: u32, limits: &DeviceLimits) -> Conv1dPlan {
    let windows = if bytes == 4 || shape.taps >= LONG_FILTER {
        [Conv1dStrategy::Window16, Conv1dStrategy::Window8]
    } else {
        [Conv1dStrategy::Window8, Conv1dStrategy::Window16]
    };
    let strip = match shape.taps * bytes as usize / PACK {
        0..SHORT_FILTER => Some(Conv1dStrategy::Strip3),
        SHORT_FILTER..STRIP_FILTER => Some(Conv1dStrategy::Strip5),
        _ => None,
    };
    let others = [Conv1dStrategy::Strided, Conv1dStrategy::Tiled];
    let shared = u64::from(limits.shared_per_block);
    let best = strip
        .into_iter()
        .chain(windows)
        .chain(others)
        .find(|strategy| strategy.suits(shape, bytes, shared));
    plan_with(best.unwrap_or(Conv1dStrategy::Naive), shape, bytes, limits)
}

/// The launch of one strategy, which [suits](Conv1dStrategy::suits) the shape.
pub fn plan_with(
    strategy: Conv1dStrategy,
    shape: &Conv1dShape,
    bytes: u32,
    limits: &DeviceLimits,
) -> Conv1dPlan {
    let is_window = matches!(strategy, Conv1dStrategy::Window8 | Conv1dStrategy::Window16);
    let per_sm = match strategy {
        Conv1dStrategy::Naive => Some(NAIVE_BLOCKS_PER_SM),
        _ if is_window && shape.taps >= MANY_TAPS => Some(WINDOW_BLOCKS_PER_SM),
        _ => None,
    };
    let most = per_sm.map_or(u64::MAX, |per_sm| u64::from(limits.sms) * per_sm);
    launch(strategy, shape, bytes, most)
}

/// The launch of one strategy with at most this number of blocks.
fn launch(strategy: Conv1dStrategy, shape: &Conv1dShape, bytes: u32, most: u64) -> Conv1dPlan {
    let blocks = tiles(strategy, shape, bytes).min(most);
    Conv1dPlan {
        strategy,
        grid: u32::try_from(blocks.clamp(1, MOST_BLOCKS)).unwrap_or(1),
        shared_bytes: u32::try_from(strategy.shared_bytes(shape, bytes)).unwrap_or(u32::MAX),
    }
}

/// The most blocks of a launch that have a tile.
pub(super) fn most_blocks(strategy: Conv1dStrategy, shape: &Conv1dShape, bytes: u32) -> u64 {
    tiles(strategy, shape, bytes).clamp(1, MOST_BLOCKS)
}

/// Tiles of all outputs.
fn tiles(strategy: Conv1dStrategy, shape: &Conv1dShape, bytes: u32) -> u64 {
    let (outputs, channels) = (shape.out_len() as u64, shape.out_channels as u64);
    let tile = strategy.variant().tile(bytes);
    match strategy {
        Conv1dStrategy::Naive => outputs.saturating_mul(channels).div_ceil(u64::from(BLOCK)),
        _ if strategy.needs_all_blocks() => (outputs + EARLIEST as u64)
            .div_ceil(tile)
            .saturating_mul(channels),
        _ => outputs.div_ceil(tile).saturating_mul(channels),
    }
}

/// The ways to compute `shape`, by parameters: `strategy`, and `per_sm`, the most blocks for each SM, 0 for a block per tile.
pub fn space(shape: &Conv1dShape, bytes: u32, limits: &DeviceLimits) -> Space {
    let mut space = Space::new();
    let strategy = space.parameter("strategy", 0..Conv1dStrategy::ALL.len() as i64);
    let per_sm = space.parameter("per_sm", [0, 2, 4, 6, 8, 10, 14, 20, 28, 40]);
    let of = |value: i64| Conv1dStrategy::ALL[value as usize];
    let (shared, shape) = (u64::from(limits.shared_per_block), *shape);
    space.requires("computes the shape", &[strategy], move |v| {
        of(v[0]).suits(&shape, bytes, shared)
    });
    let sms = u64::from(limits.sms);
    space.requires("fewer blocks than tiles", &[strategy, per_sm], move |v| {
        let some =
            !of(v[0]).needs_all_blocks() && v[1] as u64 * sms < tiles(of(v[0]), &shape, bytes);
        v[1] == 0 || some
    });
    space
}

/// The [space] as launches, of which [`plan`] takes one.
///
/// ```
/// use warpfuse::plan::conv1d::{Conv1dShape, plan, points};
/// use warpfuse::plan::limits::DeviceLimits;
/// let h200 = DeviceLimits::known("h200").expect("a listed device");
/// for taps in [3, 33, 1_000, 4_999] {
///     let shape = Conv1dShape::single(1 << 20, taps);
///     assert!(points(&shape, 4, &h200).contains(&plan(&shape, 4, &h200)));
/// }
/// ```
pub fn points(shape: &Conv1dShape, bytes: u32, limits: &DeviceLimits) -> Vec<Conv1dPlan> {
    let of = |values: Vec<i64>| {
        let strategy = Conv1dStrategy::ALL[values[0] as usize];
        let most = match values[1] {
            0 => u64::MAX,
            per_sm => per_sm as u64 * u64::from(limits.sms),
        };
        launch(strategy, shape, bytes, most)
    };
    space(shape, bytes, limits).points().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(len: usize, taps: usize, padding: Padding) -> Conv1dShape {
        Conv1dShape {
            padding,
            ..Conv1dShape::single(len, taps)
        }
    }

    #[test]
    fn lengths_by_hand() {
        assert_eq!(shape(10, 3, Padding::Valid).out_len(), 8);
        assert_eq!(shape(2, 3, Padding::Valid).out_len(), 0);
        let (odd, even) = (shape(10, 5, Padding::Same), shape(10, 4, Padding::Same));
        assert_eq!((odd.out_len(), odd.before()), (10, 2));
        assert_eq!((even.out_len(), even.before()), (10, 1));
        let causal = shape(10, 4, Padding::Causal);
        assert_eq!((causal.out_len(), causal.before()), (10, 3));
        let strided = Conv1dShape { stride: 3, ..odd };
        assert_eq!((strided.out_len(), strided.before()), (4, 2));
    }

    #[test]
    fn impossible_shapes_are_named() {
        let good = shape(10, 3, Padding::Valid);
        assert_eq!(good.check(), Ok(()));
        let zero = Conv1dShape { taps: 0, ..good }.check();
        assert_eq!(zero, Err(Conv1dShapeError::Zero { what: "taps" }));
        let groups = Conv1dShape { groups: 2, ..good }.check();
        assert!(matches!(
            groups,
            Err(Conv1dShapeError::Groups {
                groups: 2,
                found: 1,
                ..
            })
        ));
        let huge = Conv1dShape {
            len: usize::MAX,
            ..good
        }
        .check();
        assert!(matches!(huge, Err(Conv1dShapeError::TooLarge { .. })));
    }

    #[test]
    fn what_does_not_fit_shared_memory_goes_without() {
        let h200 = DeviceLimits::known("h200").expect("a listed device");
        let wide = Conv1dShape {
            dilation: 1_000,
            ..Conv1dShape::single(1 << 20, 1_000)
        };
        assert_eq!(plan(&wide, 4, &h200).strategy, Conv1dStrategy::Naive);
        let long = Conv1dShape::single(1 << 20, 1_024);
        assert_eq!(plan(&long, 8, &h200).strategy, Conv1dStrategy::Window16);
    }
}
