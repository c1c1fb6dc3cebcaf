//! X in panels: the layout of [`gpu_kernels::fused::panels`], made on the host.
//!
//! Rows as outputs give `X·y`, columns `Xᵀ·p`. Columns are ranked by how many entries they have, so that the panels of
//! the most frequent ones see an entry in nearly every row, and their inputs come as a stream.

mod chunk;
mod cuts;
mod extents;
mod frequency;
mod gathers;
mod pack;
mod ranges;
mod sorted;

use crate::matrix::{CsrMatrix, Element};
pub(crate) use cuts::{Chunks, Cuts, inputs_of_sector};
use extents::{Extents, by_frequency, even};
pub(crate) use frequency::ByFrequency;
use pack::{Packed, pack};
use ranges::share;
use sorted::{Entries, Weights, by_panel, of_rows};

/// Bytes that memory is read in, as far as it is not in a cache line that somebody requested.
const SECTOR: usize = 32;
/// The distance of an input from the base of its chunk has 16 bits.
const REACH: u32 = 0xffff;

/// What panels are cut to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PanelSize {
    /// The most outputs of a panel, at most 65,536 less the spare ones.
    pub widest: usize,
    /// Ranges of pieces that take equally long: as many as blocks run at once.
    pub ranges: usize,
    /// Elements of the result, of which the outputs may be a part.
    pub result: usize,
}

/// The arrays of [`PanelArgs`](gpu_kernels::fused::PanelArgs).
#[derive(Debug, Clone, PartialEq)]
pub struct PanelLayout<T> {
    /// Rows, or columns.
    pub outputs: usize,
    /// Columns, or rows.
    pub inputs: usize,
    /// Outputs of the widest panel.
    pub width: u32,
    /// A key for each entry.
    pub keys: Vec<u32>,
    /// A value for each entry; none where all are 1.
    pub values: Vec<T>,
    /// A base for each chunk.
    pub bases: Vec<u32>,
    /// Four words for each piece.
    pub pieces: Vec<u32>,
    /// The first piece of each range, and the number of pieces.
    pub ranges: Vec<u32>,
    /// Which output each sum is for; none where they are in order.
    pub order: Option<Vec<u32>>,
}

impl<T: Element> PanelLayout<T> {
    /// Rows as outputs.
    pub fn of_rows(x: &CsrMatrix<T>, size: PanelSize) -> Self {
        let extents = even(x.rows(), size);
        let entries = of_rows(x, &extents);
        Self::assemble((x.rows(), x.cols()), (&extents, size.ranges), &entries)
    }

    /// Columns as outputs, the most frequent first.
    pub fn of_columns(x: &CsrMatrix<T>, size: PanelSize) -> Self {
        Self::by_columns(x, size, Weights::Values)
    }

    /// [`PanelLayout::of_columns`] of a matrix whose entries are all 1: without values.
    pub fn of_columns_of_ones(x: &CsrMatrix<T>, size: PanelSize) -> Self {
        Self::by_columns(x, size, Weights::Ones)
    }

    fn by_columns(x: &CsrMatrix<T>, size: PanelSize, weights: Weights) -> Self {
        let ByFrequency { order, counts } = ByFrequency::of(x);
        let extents = by_frequency(&counts, (x.rows(), SECTOR / size_of::<T>()), size);
        let places = places(&order, &extents);
        let entries = by_panel(x, (&places, weights), extents.panels.len());
        let layout = Self::assemble((x.cols(), x.rows()), (&extents, size.ranges), &entries);
        Self {
            order: Some(order),
            ..layout
        }
    }

    /// Bytes of all arrays.
    pub fn bytes(&self) -> usize {
        let order = self.order.as_ref().map_or(0, Vec::len);
        let words = self.keys.len() + self.bases.len() + self.pieces.len() + self.ranges.len();
        4 * (words + order) + size_of_val(&self.values[..])
    }

    fn assemble(
        (outputs, inputs): (usize, usize),
        (extents, ranges): (&Extents, usize),
        entries: &Entries<T>,
    ) -> Self {
        let Packed {
            keys,
            values,
            bases,
            work,
        } = pack(entries, extents.width() as u32);
        let (pieces, ranges) = share(&work, extents, ranges as u32);
        PanelLayout {
            outputs,
            inputs,
            width: extents.width() as u32,
            keys,
            values,
            bases,
            pieces,
            ranges,
            order: None,
        }
    }
}

/// The panel of an output, and its sum there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Place {
    panel: u32,
    sum: u16,
}

/// The place of each column.
fn places(order: &[u32], extents: &Extents) -> Vec<Place> {
    let mut places = vec![Place::default(); order.len()];
    for (panel, extent) in (0..).zip(&extents.panels) {
        let columns = &order[extent.first as usize..][..extent.outputs as usize];
        for (sum, column) in (0..).zip(columns) {
            places[*column as usize] = Place { panel, sum };
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use gpu_kernels::fused::panels::{CHUNK, LEADS, PIECE_WORDS};

    use super::frequency::digits_missing;
    use super::*;
    use crate::matrix::csr_from_parts;

    const SIZE: PanelSize = PanelSize {
        widest: 5,
        ranges: 3,
        result: 300,
    };

    /// Rows of 0, 1, 2, … entries, one of them far away.
    fn matrix(rows: usize, cols: usize) -> CsrMatrix<f64> {
        let (mut offsets, mut indices) = (vec![0], Vec::new());
        for row in 0..rows {
            let count = (row * 7 % 13).min(cols / 2);
            indices.extend((0..count).map(|i| (2 * i) as u32));
            indices.extend((row % 3 == 0).then_some(cols as u32 - 1));
            offsets.push(indices.len() as u64);
        }
        let values = (1..=indices.len()).map(|i| i as f64).collect();
        csr_from_parts((rows, cols), offsets, indices, values).unwrap()
    }

    /// (output, input, value) of all entries, from the pieces.
    fn entries(layout: &PanelLayout<f64>) -> Vec<(u32, u32, u64)> {
        let mut all = Vec::new();
        for piece in layout.pieces.chunks(PIECE_WORDS as usize) {
            for chunk in piece[2]..piece[3] {
                for at in chunk * CHUNK..(chunk + 1) * CHUNK {
                    let (key, value) = (layout.keys[at as usize], layout.values[at as usize]);
                    if key >> 16 >= layout.width {
                        assert_eq!(value, 0.0);
                        continue;
                    }
                    assert!(key >> 16 < piece[1] & !LEADS);
                    let sum = piece[0] + (key >> 16);
                    let output = layout
                        .order
                        .as_ref()
                        .map_or(sum, |order| order[sum as usize]);
                    let input = layout.bases[chunk as usize] + (key & REACH);
                    all.push((output, input, value.to_bits()));
                }
            }
        }
        all.sort_unstable();
        all
    }

    #[test]
    fn no_entry_is_lost_or_moved() {
        for (rows, cols) in [(1, 1), (50, 9), (700, 300), (40, 200_000)] {
            let x = matrix(rows, cols);
            let by_row = || x.iter().map(|(v, (i, j))| (i, j, v.to_bits()));
            let mut expected: Vec<_> = by_row().collect();
            expected.sort_unstable();
            assert_eq!(entries(&PanelLayout::of_rows(&x, SIZE)), expected);
            let mut expected: Vec<_> = by_row().map(|(i, j, v)| (j, i, v)).collect();
            expected.sort_unstable();
            assert_eq!(entries(&PanelLayout::of_columns(&x, SIZE)), expected);
        }
    }

    #[test]
    fn frequent_columns_come_first() {
        let x = matrix(100, 40);
        let order = PanelLayout::of_columns(&x, SIZE).order.unwrap();
        let mut counts = [0u64; 40];
        x.indices().iter().for_each(|j| counts[*j as usize] += 1);
        assert!(order.is_sorted_by_key(|j| digits_missing(counts[*j as usize])));
    }
}
