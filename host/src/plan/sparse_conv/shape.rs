//! Sizes of a layer.

use gpu_kernels::sparse_conv::{
    Geometry, POOL_AVERAGE, POOL_MAX, POOL_NONE, PoolGeometry, Strides,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::matrix::filters::{FilterShape, LONGEST_SIDE};

/// How maps lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MapLayout {
    /// Image, channel, row, column.
    #[default]
    Nchw,
    /// Image, row, column, channel.
    Nhwc,
}

impl MapLayout {
    /// Elements from one index to the next, of maps of a shape.
    pub(crate) fn strides(self, [channels, rows, cols]: [u32; 3]) -> Strides {
        let (channel, row, col) = match self {
            MapLayout::Nchw => (rows * cols, cols, 1),
            MapLayout::Nhwc => (1, cols * channels, channels),
        };
        Strides {
            image: channels * rows * cols,
            channel,
            row,
            col,
        }
    }
}

/// What is taken of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PoolKind {
    /// The largest value; a NaN is larger than all.
    Max,
    /// The mean; of integers rounded towards zero.
    Average,
}

/// Pooling of the convolution's result. Windows that do not fit are left out, as is usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pool {
    /// What is taken.
    pub kind: PoolKind,
    /// Rows and columns of a window.
    pub window: [usize; 2],
    /// From one window to the next.
    pub stride: [usize; 2],
}

impl Pool {
    /// The largest value of square windows side by side.
    pub fn max(side: usize) -> Pool {
        Pool {
            kind: PoolKind::Max,
            window: [side; 2],
            stride: [side; 2],
        }
    }

    /// The mean of square windows side by side.
    pub fn average(side: usize) -> Pool {
        Pool {
            kind: PoolKind::Average,
            ..Pool::max(side)
        }
    }

    /// Whether windows neither overlap nor leave anything out between them.
    pub fn is_side_by_side(&self) -> bool {
        self.window == self.stride
    }
}

/// Sizes of a convolutional layer: pairs are rows and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ConvShape {
    /// Images.
    pub batch: usize,
    /// Input channels.
    pub channels: usize,
    /// Rows and columns of an input channel.
    pub size: [usize; 2],
    /// Filters: output channels.
    pub filters: usize,
    /// Rows and columns of a filter, 1 to 11.
    pub kernel: [usize; 2],
    /// From one output's input to the next.
    pub stride: [usize; 2],
    /// Zeros on every side.
    pub padding: [usize; 2],
    /// From one tap's input to the next.
    pub dilation: [usize; 2],
    /// Groups: filters of a group meet its channels only.
    pub groups: usize,
    /// How inputs and results lie in memory.
    pub layout: MapLayout,
    /// Pooling of the result.
    pub pool: Option<Pool>,
}

/// What is wrong with a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConvShapeError {
    /// A size that has to be positive.
    #[error("expected at least one for `{what}`, found 0")]
    Zero {
        /// The field.
        what: &'static str,
    },
    /// A filter with a side that kernels do not take.
    #[error("expected sides of filters of at most 11, found {found}")]
    Side {
        /// The side.
        found: usize,
    },
    /// Groups of unequal size.
    #[error(
        "expected {groups} groups to divide {what}, found {found}; use as many groups as divide both"
    )]
    Groups {
        /// Groups.
        groups: usize,
        /// Which channels.
        what: &'static str,
        /// How many there are.
        found: usize,
    },
    /// Sizes whose products do not fit.
    #[error("{what} would have 2^31 elements or more; split the batch")]
    TooLarge {
        /// What is too large.
        what: &'static str,
    },
    /// Filters of other sizes than the layer's.
    #[error("expected filters of {expected:?}, found {found:?}")]
    Filters {
        /// The sizes that fit the layer.
        expected: FilterShape,
        /// Those of the filters.
        found: FilterShape,
    },
}

/// What everything counted in a launch stays below.
const LIMIT: usize = 1 << 31;

impl ConvShape {
    /// One image, stride and dilation 1, no padding, one group, no pooling.
    pub fn new(channels: usize, size: [usize; 2], filters: usize, kernel: [usize; 2]) -> ConvShape {
        ConvShape {
            batch: 1,
            channels,
            size,
            filters,
            kernel,
            stride: [1; 2],
            padding: [0; 2],
            dilation: [1; 2],
            groups: 1,
            layout: MapLayout::Nchw,
            pool: None,
        }
    }

    /// The layer of the source: 512 filters × 512 channels × 3 × 3 over 32 × 32, padding 1, 2 × 2 max pooling.
    pub fn of_the_source() -> ConvShape {
        ConvShape {
            padding: [1; 2],
            pool: Some(Pool::max(2)),
            ..ConvShape::new(512, [32; 2], 512, [3; 2])
        }
    }

    /// Sizes of the filters.
    pub fn filter_shape(&self) -> FilterShape {
        FilterShape {
            filters: self.filters,
            channels: self.channels / self.groups.max(1),
            height: self.kernel[0],
            width: self.kernel[1],
        }
    }

    /// Fails unless sizes are positive (the batch may be 0), groups divide channels and filters, and all products fit.
    ///
    /// # Errors
    /// [`ConvShapeError`].
    pub fn check(&self) -> Result<(), ConvShapeError> {
        let pool = self.pool.unwrap_or(Pool::max(1));
        let pairs = [
            ("size", self.size),
            ("kernel", self.kernel),
            ("stride", self.stride),
            ("dilation", self.dilation),
            ("window", pool.window),
            ("stride of windows", pool.stride),
        ];
        let single = [
            ("channels", self.channels),
            ("filters", self.filters),
            ("groups", self.groups),
        ];
        let sides = pairs
            .iter()
            .flat_map(|(what, pair)| pair.map(|side| (*what, side)));
        if let Some((what, _)) = sides.chain(single).find(|(_, size)| *size == 0) {
            return Err(ConvShapeError::Zero { what });
        }
        if let Some(found) = self.kernel.into_iter().find(|side| *side > LONGEST_SIDE) {
            return Err(ConvShapeError::Side { found });
        }
        for (what, found) in [("channels", self.channels), ("filters", self.filters)] {
            let groups = self.groups;
            if !found.is_multiple_of(groups) {
                return Err(ConvShapeError::Groups {
                    groups,
                    what,
                    found,
                });
            }
        }
        self.check_products()
    }

    fn check_products(&self) -> Result<(), ConvShapeError> {
        let fits = |what, factors: &[usize]| {
            let product = factors
                .iter()
                .try_fold(1_usize, |all, factor| all.checked_mul(*factor));
            match product {
                Some(product) if product < LIMIT => Ok(()),
                _ => Err(ConvShapeError::TooLarge { what }),
            }
        };
        for axis in 0..2 {
            // Places of inputs, outside too, are computed in 32 bits.
            let reach = [self.kernel[axis], self.dilation[axis]];
            fits("a filter with its dilation", &[reach[0], reach[1], 4])?;
            fits("the padding", &[self.padding[axis], 4])?;
            fits("a stride", &[self.stride[axis], 4])?;
            let padded = self.padding[axis]
                .saturating_mul(2)
                .saturating_add(self.size[axis]);
            fits("a padded map", &[padded, 4])?;
        }
        let [rows, cols] = self.size;
        fits("the input", &[self.batch, self.channels, rows, cols])?;
        let [rows, cols] = self.out();
        fits(
            "the result of the convolution",
            &[self.batch, self.filters, rows, cols],
        )?;
        let pairs = self.channels / self.groups;
        fits(
            "the filters",
            &[self.filters, pairs, self.kernel[0], self.kernel[1]],
        )?;
        // Places of nonzeros have 24 bits for the channel.
        fits("the channels of a group", &[pairs, 1 << 8])
    }

    /// Rows and columns of the convolution's result, before pooling.
    pub fn out(&self) -> [usize; 2] {
        [0, 1].map(|axis| {
            let reach = (self.kernel[axis] - 1) * self.dilation[axis] + 1;
            let padded = self.size[axis] + 2 * self.padding[axis];
            padded
                .checked_sub(reach)
                .map_or(0, |last| last / self.stride[axis] + 1)
        })
    }

    /// Rows and columns of the result, after pooling.
    ///
    /// ```
    /// use warpfuse::plan::sparse_conv::ConvShape;
    /// assert_eq!(ConvShape::of_the_source().out(), [32, 32]);
    /// assert_eq!(ConvShape::of_the_source().result(), [16, 16]);
    /// ```
    pub fn result(&self) -> [usize; 2] {
        let (Some(pool), out) = (self.pool, self.out()) else {
            return self.out();
        };
        [0, 1].map(|axis| {
            let last = out[axis].checked_sub(pool.window[axis]);
            last.map_or(0, |last| last / pool.stride[axis] + 1)
        })
    }

    /// Elements of all images.
    pub fn inputs(&self) -> usize {
        self.batch * self.channels * self.size[0] * self.size[1]
    }

    /// Elements of all results.
    pub fn results(&self) -> usize {
        let [rows, cols] = self.result();
        self.batch * self.filters * rows * cols
    }

    /// Sums before pooling.
    pub fn sums(&self) -> usize {
        let [rows, cols] = self.out();
        self.batch * self.filters * rows * cols
    }

    /// What kernels get: the whole layer.
    pub(crate) fn geometry(&self, rectify: bool) -> Geometry {
        let short = |pair: [usize; 2]| pair.map(|side| side as u32);
        let (out, result) = (short(self.out()), short(self.result()));
        let (kind, window, stride) = match self.pool {
            None => (POOL_NONE, [1; 2], [1; 2]),
            Some(pool) => {
                let kind = match pool.kind {
                    PoolKind::Max => POOL_MAX,
                    PoolKind::Average => POOL_AVERAGE,
                };
                (kind, short(pool.window), short(pool.stride))
            }
        };
        let (channels, filters) = (self.channels as u32, self.filters as u32);
        Geometry {
            batch: self.batch as u32,
            size: short(self.size),
            filters,
            in_per_group: channels / self.groups as u32,
            out_per_group: filters / self.groups as u32,
            kernel: short(self.kernel),
            stride: short(self.stride),
            padding: short(self.padding),
            dilation: short(self.dilation),
            out,
            from: self
                .layout
                .strides([channels, self.size[0] as u32, self.size[1] as u32]),
            to: self.layout.strides([filters, result[0], result[1]]),
            pool: PoolGeometry {
                kind,
                window,
                stride,
                out: result,
            },
            rectify: u32::from(rectify),
        }
    }

    /// What kernels get that leave pooling to another one: sums are batch × filters × rows × columns.
    pub(crate) fn geometry_before_pooling(&self, rectify: bool) -> Geometry {
        let apart = ConvShape {
            pool: None,
            ..*self
        };
        let mut geometry = apart.geometry(rectify);
        if self.pool.is_some() {
            let [rows, cols] = geometry.out;
            geometry.to = MapLayout::Nchw.strides([geometry.filters, rows, cols]);
        }
        geometry
    }
}
