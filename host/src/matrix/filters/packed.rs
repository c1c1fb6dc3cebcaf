//! One word per nonzero: value, row and column in bit fields.
//!
//! The source packs decimal digits, `value · 100 + row · 10 + column`, which 16 bits hold up to a value of 655, and takes
//! divisions to unpack. Bit fields take shifts, and here what does not fit is an error.

use super::coo::counts;
use super::{FilterError, FilterShape, FilterValue, Nonzero, SparseFilters};

/// The fields of a word, from the highest: value, row, column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PackedLayout {
    /// Bits of a word: 16, 32 or 64 take that much memory; others the next more.
    pub bits: u32,
    /// Bits of a row.
    pub row_bits: u32,
    /// Bits of a column.
    pub col_bits: u32,
}

impl PackedLayout {
    /// Words of `bits` bits with as few as rows and columns of `shape` need.
    ///
    /// ```
    /// use warpfuse::matrix::filters::{FilterShape, PackedLayout};
    /// let shape = FilterShape { filters: 512, channels: 512, height: 3, width: 3 };
    /// assert_eq!(PackedLayout::new(16, &shape).value_bits(), 12);
    /// ```
    pub fn new(bits: u32, shape: &FilterShape) -> PackedLayout {
        let needed = |side: usize| usize::BITS - side.saturating_sub(1).leading_zeros();
        PackedLayout {
            bits,
            row_bits: needed(shape.height),
            col_bits: needed(shape.width),
        }
    }

    /// Bits that are left for a value.
    pub fn value_bits(&self) -> u32 {
        self.bits.saturating_sub(self.row_bits + self.col_bits)
    }

    /// Bytes of a word.
    pub fn word_bytes(&self) -> usize {
        match self.bits {
            0..=16 => 2,
            17..=32 => 4,
            _ => 8,
        }
    }
}

/// Filters of which each nonzero is one word.
#[derive(Debug, Clone, PartialEq)]
pub struct PackedFilters {
    shape: FilterShape,
    layout: PackedLayout,
    words: Vec<u64>,
    counts: Vec<u16>,
}

impl PackedFilters {
    /// Packs filters.
    ///
    /// # Errors
    /// [`FilterError::DoesNotFit`] names the first value that its field cannot hold, [`FilterError::NoRoom`] a layout
    /// without bits for values or with more than 64 in all.
    pub fn pack<V: FilterValue>(
        filters: &SparseFilters<V>,
        layout: PackedLayout,
    ) -> Result<PackedFilters, FilterError> {
        let (shape, bits) = (filters.shape(), layout.value_bits());
        let least = PackedLayout::new(layout.bits, &shape);
        let narrow = layout.row_bits < least.row_bits || layout.col_bits < least.col_bits;
        if bits == 0 || layout.bits > 64 || narrow {
            return Err(FilterError::NoRoom {
                bits: layout.bits,
                row_bits: least.row_bits.max(layout.row_bits),
                col_bits: least.col_bits.max(layout.col_bits),
            });
        }
        let mut words = Vec::with_capacity(filters.nnz());
        for slice in 0..shape.slices() {
            let (filter, channel) = (slice / shape.channels, slice % shape.channels);
            for nonzero in filters.slice(filter, channel) {
                let field = nonzero.value.field(bits);
                let field = field.ok_or_else(|| does_not_fit((filter, channel), nonzero, bits))?;
                let place = u64::from(nonzero.row) << layout.col_bits | u64::from(nonzero.col);
                words.push(field << (layout.row_bits + layout.col_bits) | place);
            }
        }
        Ok(PackedFilters {
            shape,
            layout,
            words,
            counts: counts(filters),
        })
    }

    /// Sizes.
    pub fn shape(&self) -> FilterShape {
        self.shape
    }

    /// The fields.
    pub fn layout(&self) -> PackedLayout {
        self.layout
    }

    /// The words, in the low bits of 64 each.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Bytes of words and counts: what crosses the link.
    pub fn bytes(&self) -> usize {
        self.words.len() * self.layout.word_bytes() + 2 * self.counts.len()
    }

    /// The filters, of the type that was packed.
    ///
    /// # Errors
    /// As [`SparseFilters::from_slices`].
    pub fn unpack<V: FilterValue>(&self) -> Result<SparseFilters<V>, FilterError> {
        let PackedLayout {
            row_bits, col_bits, ..
        } = self.layout;
        let mask = |bits: u32| (1_u64 << bits) - 1;
        let nonzeros = self.words.iter().map(|word| Nonzero {
            col: (word & mask(col_bits)) as u8,
            row: (word >> col_bits & mask(row_bits)) as u8,
            value: V::of_field(word >> (row_bits + col_bits), self.layout.value_bits()),
        });
        let counts: Vec<usize> = self
            .counts
            .iter()
            .map(|count| usize::from(*count))
            .collect();
        SparseFilters::from_slices(self.shape, &counts, nonzeros.collect())
    }
}

fn does_not_fit<V: FilterValue>(
    (filter, channel): (usize, usize),
    nonzero: &Nonzero<V>,
    bits: u32,
) -> FilterError {
    FilterError::DoesNotFit {
        filter,
        channel,
        row: nonzero.row.into(),
        col: nonzero.col.into(),
        value: nonzero.value.to_string(),
        bits,
    }
}
