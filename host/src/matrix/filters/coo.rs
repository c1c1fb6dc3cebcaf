//! Coordinates: the first format of the source.

use super::{FilterError, FilterShape, FilterValue, Nonzero, SparseFilters};

/// Values, rows and columns in three arrays, and how many nonzeros each slice has.
#[derive(Debug, Clone, PartialEq)]
pub struct CooFilters<V> {
    /// Sizes.
    pub shape: FilterShape,
    /// Values.
    pub data: Vec<V>,
    /// Row of each value.
    pub rows: Vec<u16>,
    /// Column of each value.
    pub cols: Vec<u16>,
    /// Nonzeros of each slice.
    pub counts: Vec<u16>,
}

impl<V: FilterValue> From<&SparseFilters<V>> for CooFilters<V> {
    fn from(filters: &SparseFilters<V>) -> CooFilters<V> {
        let nonzeros = filters.nonzeros();
        CooFilters {
            shape: filters.shape(),
            data: nonzeros.iter().map(|n| n.value).collect(),
            rows: nonzeros.iter().map(|n| u16::from(n.row)).collect(),
            cols: nonzeros.iter().map(|n| u16::from(n.col)).collect(),
            counts: counts(filters),
        }
    }
}

/// Nonzeros of each slice, at most 11².
pub(super) fn counts<V: FilterValue>(filters: &SparseFilters<V>) -> Vec<u16> {
    let ends = filters.starts().windows(2);
    ends.map(|ends| (ends[1] - ends[0]) as u16).collect()
}

impl<V: FilterValue> CooFilters<V> {
    /// Bytes of the four arrays: what crosses the link.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.data) + 2 * (self.rows.len() + self.cols.len() + self.counts.len())
    }

    /// The filters.
    ///
    /// # Errors
    /// As [`SparseFilters::from_slices`].
    pub fn to_filters(&self) -> Result<SparseFilters<V>, FilterError> {
        super::expect_len("the rows", self.data.len(), self.rows.len())?;
        super::expect_len("the columns", self.data.len(), self.cols.len())?;
        // What does not fit in 8 bits is outside of any slice.
        let short = |place: u16| u8::try_from(place).unwrap_or(u8::MAX);
        let places = self.rows.iter().zip(&self.cols);
        let nonzeros = places.zip(&self.data).map(|((row, col), value)| Nonzero {
            row: short(*row),
            col: short(*col),
            value: *value,
        });
        let counts: Vec<usize> = self
            .counts
            .iter()
            .map(|count| usize::from(*count))
            .collect();
        SparseFilters::from_slices(self.shape, &counts, nonzeros.collect())
    }
}
