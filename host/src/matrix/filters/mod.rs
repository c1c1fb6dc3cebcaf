//! Sparse convolution filters: the nonzeros of each (filter, channel) slice, and the formats that kernels read.
//!
//! | type | a nonzero takes |
//! |---|---|
//! | [`SparseFilters`] | value, row and column side by side: what the others are made from |
//! | [`CooFilters`] | value, row and column in three arrays |
//! | [`PackedFilters`] | one word of 16, 32 or 64 bits |
//!
//! ```
//! use warpfuse::matrix::filters::{CooFilters, FilterShape, PackedFilters, PackedLayout, SparseFilters};
//!
//! let shape = FilterShape { filters: 1, channels: 2, height: 2, width: 2 };
//! let filters = SparseFilters::from_dense(shape, &[0_i16, 7, 0, 0, -3, 0, 0, 5])?;
//! assert_eq!((filters.nnz(), filters.density()), (3, 0.375));
//! let coo = CooFilters::from(&filters);
//! let packed = PackedFilters::pack(&filters, PackedLayout::new(32, &shape))?;
//! assert_eq!((coo.bytes(), packed.bytes()), (3 * 6 + 2 * 2, 3 * 4 + 2 * 2));
//! assert_eq!(packed.unpack::<i16>()?, filters);
//! # Ok::<(), warpfuse::matrix::filters::FilterError>(())
//! ```

mod coo;
mod packed;
mod prune;
#[cfg(test)]
mod tests;
mod value;

use thiserror::Error;

pub use coo::CooFilters;
pub use packed::{PackedFilters, PackedLayout};
pub use prune::{magnitude, n_of_m};
pub use value::FilterValue;

/// The longest side of a filter.
pub const LONGEST_SIDE: usize = 11;

/// Sizes of a set of filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FilterShape {
    /// Filters.
    pub filters: usize,
    /// Channels of a filter: those of a group.
    pub channels: usize,
    /// Rows of a slice, 1 to [`LONGEST_SIDE`].
    pub height: usize,
    /// Columns of a slice, 1 to [`LONGEST_SIDE`].
    pub width: usize,
}

impl FilterShape {
    /// Slices: (filter, channel) pairs.
    pub fn slices(&self) -> usize {
        self.filters * self.channels
    }

    /// Weights, zeros and nonzeros.
    pub fn weights(&self) -> usize {
        self.slices() * self.height * self.width
    }

    fn check(&self) -> Result<(), FilterError> {
        for (what, side) in [("height", self.height), ("width", self.width)] {
            if !(1..=LONGEST_SIDE).contains(&side) {
                return Err(FilterError::Side { what, side });
            }
        }
        let slice = self.height * self.width;
        let slices = self.filters.checked_mul(self.channels);
        match slices.and_then(|slices| slices.checked_mul(slice)) {
            Some(weights) if weights < 1 << 31 => Ok(()),
            _ => Err(FilterError::TooLarge),
        }
    }
}

/// What is wrong with filters.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum FilterError {
    /// A side that kernels do not take.
    #[error("the {what} of filters must be 1 to 11, but is {side}")]
    Side {
        /// Height or width.
        what: &'static str,
        /// The side.
        side: usize,
    },
    /// More weights than places are counted in.
    #[error("filters must have fewer than 2^31 weights; split the layer")]
    TooLarge,
    /// An array of another length than the shape asks for.
    #[error("{what} must have {expected} elements, but has {found}")]
    Length {
        /// Which array.
        what: &'static str,
        /// Its length by the shape.
        expected: usize,
        /// Its length.
        found: usize,
    },
    /// Nonzeros that are outside their slice, or not in ascending order of row and column.
    #[error(
        "nonzeros of a slice must lie inside it in ascending order of row and column, but filter {filter}, channel {channel} has one at row {row}, column {col}"
    )]
    Place {
        /// The filter.
        filter: usize,
        /// The channel of its group.
        channel: usize,
        /// Row in the slice.
        row: usize,
        /// Column in the slice.
        col: usize,
    },
    /// A value that has not enough bits in a packed word.
    #[error(
        "value {value} of filter {filter}, channel {channel}, row {row}, column {col} does not fit in {bits} bits; pack in longer words"
    )]
    DoesNotFit {
        /// The filter.
        filter: usize,
        /// The channel of its group.
        channel: usize,
        /// Row in the slice.
        row: usize,
        /// Column in the slice.
        col: usize,
        /// The value.
        value: String,
        /// Bits for it.
        bits: u32,
    },
    /// A packed word with too few bits for rows and columns.
    #[error(
        "{bits}-bit words have no room for values beside {row_bits} bits of a row and {col_bits} of a column"
    )]
    NoRoom {
        /// Bits of a word.
        bits: u32,
        /// Bits of a row.
        row_bits: u32,
        /// Bits of a column.
        col_bits: u32,
    },
    /// A fraction or pattern of pruning that makes no sense.
    #[error("{what} must be {expected}, but is {found}")]
    Pruning {
        /// The parameter.
        what: &'static str,
        /// What it has to be.
        expected: &'static str,
        /// What it is.
        found: f64,
    },
}

/// A weight that is not zero, and its place in its slice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Nonzero<V> {
    /// Row in the slice.
    pub row: u8,
    /// Column in the slice.
    pub col: u8,
    /// The weight.
    pub value: V,
}

/// Filters by their nonzeros: slices by filter and channel, in each ascending rows and columns.
#[derive(Debug, Clone, PartialEq)]
pub struct SparseFilters<V> {
    shape: FilterShape,
    starts: Vec<u32>,
    nonzeros: Vec<Nonzero<V>>,
}

impl<V: FilterValue> SparseFilters<V> {
    /// The nonzeros of dense weights, filters × channels × rows × columns. A NaN is one.
    ///
    /// # Errors
    /// [`FilterError::Side`], [`FilterError::TooLarge`], [`FilterError::Length`].
    pub fn from_dense(shape: FilterShape, weights: &[V]) -> Result<SparseFilters<V>, FilterError> {
        SparseFilters::select(shape, weights, |_, weight| weight != V::default())
    }

    /// The weights for which `keep(index, weight)` holds.
    fn select(
        shape: FilterShape,
        weights: &[V],
        mut keep: impl FnMut(usize, V) -> bool,
    ) -> Result<SparseFilters<V>, FilterError> {
        shape.check()?;
        expect_len("the weights", shape.weights(), weights.len())?;
        let (mut starts, mut nonzeros) = (vec![0], Vec::new());
        let size = shape.height * shape.width;
        for (slice, weights) in weights.chunks_exact(size).enumerate() {
            for (i, weight) in weights.iter().enumerate() {
                if keep(slice * size + i, *weight) {
                    nonzeros.push(Nonzero {
                        row: (i / shape.width) as u8,
                        col: (i % shape.width) as u8,
                        value: *weight,
                    });
                }
            }
            starts.push(nonzeros.len() as u32);
        }
        Ok(SparseFilters {
            shape,
            starts,
            nonzeros,
        })
    }

    /// Nonzeros one after the other, and how many of them each slice has. Values may be zero: they are stored and
    /// multiplied.
    ///
    /// # Errors
    /// As [`from_dense`](Self::from_dense); [`FilterError::Place`] for nonzeros outside their slice or out of order.
    pub fn from_slices(
        shape: FilterShape,
        counts: &[usize],
        nonzeros: Vec<Nonzero<V>>,
    ) -> Result<SparseFilters<V>, FilterError> {
        shape.check()?;
        expect_len("the counts", shape.slices(), counts.len())?;
        let sum = |sum: usize, count: &usize| sum.checked_add(*count);
        let all = counts.iter().try_fold(0, sum).unwrap_or(usize::MAX);
        expect_len("the nonzeros", all, nonzeros.len())?;
        let mut starts = vec![0_u32];
        for (slice, count) in counts.iter().enumerate() {
            let start = *starts.last().expect("not empty") as usize;
            check_slice(&shape, slice, &nonzeros[start..start + count])?;
            starts.push((start + count) as u32);
        }
        Ok(SparseFilters {
            shape,
            starts,
            nonzeros,
        })
    }

    /// Sizes.
    pub fn shape(&self) -> FilterShape {
        self.shape
    }

    /// Where slices begin, and the end of the last.
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// All nonzeros.
    pub fn nonzeros(&self) -> &[Nonzero<V>] {
        &self.nonzeros
    }

    /// The nonzeros of one slice.
    ///
    /// # Panics
    /// When there is no such slice.
    pub fn slice(&self, filter: usize, channel: usize) -> &[Nonzero<V>] {
        let at = filter * self.shape.channels + channel;
        &self.nonzeros[self.starts[at] as usize..self.starts[at + 1] as usize]
    }

    /// Nonzeros with channel, of one filter.
    pub fn of_filter(&self, filter: usize) -> impl Iterator<Item = (usize, Nonzero<V>)> + '_ {
        (0..self.shape.channels).flat_map(move |channel| {
            self.slice(filter, channel)
                .iter()
                .map(move |n| (channel, *n))
        })
    }

    /// Number of nonzeros.
    pub fn nnz(&self) -> usize {
        self.nonzeros.len()
    }

    /// Nonzeros of all weights, 0 where there are none.
    pub fn density(&self) -> f64 {
        self.nnz() as f64 / self.shape.weights().max(1) as f64
    }

    /// All weights, filters × channels × rows × columns.
    pub fn to_dense(&self) -> Vec<V> {
        let size = self.shape.height * self.shape.width;
        let mut dense = vec![V::default(); self.shape.weights()];
        for (slice, weights) in dense.chunks_exact_mut(size).enumerate() {
            for nonzero in self.slice(slice / self.shape.channels, slice % self.shape.channels) {
                let at = usize::from(nonzero.row) * self.shape.width + usize::from(nonzero.col);
                weights[at] = nonzero.value;
            }
        }
        dense
    }

    /// The largest Σ |weight| of a filter, with its number.
    pub fn largest_sum(&self) -> (usize, f64) {
        let sum = |filter| -> f64 {
            self.of_filter(filter)
                .map(|(_, n)| n.value.magnitude())
                .sum()
        };
        let sums = (0..self.shape.filters).map(|filter| (filter, sum(filter)));
        sums.fold(
            (0, 0.0),
            |most, next| if next.1 > most.1 { next } else { most },
        )
    }
}

fn check_slice<V>(
    shape: &FilterShape,
    slice: usize,
    nonzeros: &[Nonzero<V>],
) -> Result<(), FilterError> {
    let mut last = None;
    for nonzero in nonzeros {
        let (row, col) = (usize::from(nonzero.row), usize::from(nonzero.col));
        let at = Some(row * shape.width + col);
        if row >= shape.height || col >= shape.width || at <= last {
            return Err(FilterError::Place {
                filter: slice / shape.channels,
                channel: slice % shape.channels,
                row,
                col,
            });
        }
        last = at;
    }
    Ok(())
}

fn expect_len(what: &'static str, expected: usize, found: usize) -> Result<(), FilterError> {
    if found == expected {
        Ok(())
    } else {
        Err(FilterError::Length {
            what,
            expected,
            found,
        })
    }
}
