//! X in panels: the layout of [`gpu_kernels::fused::panels`], made on the host.
//!
//! Rows as outputs give `X·y`, columns `Xᵀ·p`. Columns are ranked by how many entries they have, so that the panels of
//! the most frequent ones see an entry in nearly every row, and their inputs come as a stream.

mod chunk;
mod extents;
mod ranges;

use gpu_kernels::fused::panels::{CHUNK, SPARE};
use rayon::prelude::*;

use super::hot::frequencies;
use super::{CsrMatrix, Element};
use chunk::{Ends, Widths};
pub(crate) use extents::are_made_as_many;
use extents::{Extents, by_frequency, even};
use ranges::{Work, share};

/// Bytes that memory is read in, as far as it is not in a cache line that somebody asked for.
const SECTOR: usize = 32;
/// Entries that one task of the preparation takes at least.
const PER_TASK: usize = 1 << 20;
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
    /// A value for each entry.
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

/// Input, place of the sum in its panel, value.
type Entry<T> = (u32, u16, T);

impl<T: Element> PanelLayout<T> {
    /// Rows as outputs.
    pub fn of_rows(x: &CsrMatrix<T>, size: PanelSize) -> Self {
        let extents = even(x.rows(), size);
        let width = extents.width();
        let panels = extents.panels.par_iter();
        let packed = panels.map(|panel| {
            let entries = entries_of_rows(x, panel.first as usize, panel.outputs as usize);
            pack(entries, width)
        });
        let packed = packed.collect();
        Self::assemble((x.rows(), x.cols()), (&extents, size.ranges), packed)
    }

    /// Columns as outputs, the most frequent first.
    pub fn of_columns(x: &CsrMatrix<T>, size: PanelSize) -> Self {
        let counts = frequencies(x);
        let order = order_by_frequency(&counts);
        let in_order: Vec<u64> = order.iter().map(|j| counts[*j as usize]).collect();
        let extents = by_frequency(&in_order, (x.rows(), SECTOR / size_of::<T>()), size);
        let tasks = entries_of_columns(x, &places(&order, &extents), extents.panels.len());
        let width = extents.width();
        let packed = (0..extents.panels.len()).into_par_iter().map(|panel| {
            let of_panel = tasks.iter().flat_map(|task| task[panel].iter().copied());
            pack(of_panel, width)
        });
        let packed = packed.collect();
        let layout = Self::assemble((x.cols(), x.rows()), (&extents, size.ranges), packed);
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
        panels: Vec<Packed<T>>,
    ) -> Self {
        let work: Vec<Work> = panels.iter().map(Packed::work).collect();
        let (pieces, ranges) = share(&work, extents, ranges as u32);
        let mut all = Packed::with_capacity(work.iter().map(|panel| panel.chunks as usize).sum());
        for panel in panels {
            all.keys.extend(panel.keys);
            all.values.extend(panel.values);
            all.bases.extend(panel.bases);
        }
        PanelLayout {
            outputs,
            inputs,
            width: extents.width() as u32,
            keys: all.keys,
            values: all.values,
            bases: all.bases,
            pieces,
            ranges,
            order: None,
        }
    }
}

/// The entries of `count` rows in the order of their columns.
fn entries_of_rows<T: Element>(
    x: &CsrMatrix<T>,
    first: usize,
    count: usize,
) -> impl Iterator<Item = Entry<T>> {
    let offsets = x.proper_indptr();
    let rows = first..(first + count).min(x.rows());
    let of_rows = offsets[rows.start] as usize..offsets[rows.end] as usize;
    let mut entries = Vec::with_capacity(of_rows.len());
    for row in rows {
        for i in offsets[row] as usize..offsets[row + 1] as usize {
            entries.push((x.indices()[i], (row - first) as u16, x.data()[i]));
        }
    }
    entries.sort_unstable_by_key(|(input, sum, _)| u64::from(*input) << 16 | u64::from(*sum));
    entries.into_iter()
}

/// The panel of each column, and its sum there.
fn places(order: &[u32], extents: &Extents) -> Vec<(u32, u16)> {
    let mut places = vec![(0, 0); order.len()];
    for (number, panel) in (0..).zip(&extents.panels) {
        let columns = &order[panel.first as usize..][..panel.outputs as usize];
        for (sum, column) in columns.iter().enumerate() {
            places[*column as usize] = (number, sum as u16);
        }
    }
    places
}

/// The entries of each task's rows, by panel.
fn entries_of_columns<T: Element>(
    x: &CsrMatrix<T>,
    places: &[(u32, u16)],
    panels: usize,
) -> Vec<Vec<Vec<Entry<T>>>> {
    let offsets = x.proper_indptr();
    let tasks = x
        .nnz()
        .div_ceil(PER_TASK)
        .clamp(1, 4 * rayon::current_num_threads());
    let rows = x.rows().div_ceil(tasks).max(1);
    let task = |first: usize| {
        let mut of_panel = vec![Vec::new(); panels];
        for row in first..(first + rows).min(x.rows()) {
            for i in offsets[row] as usize..offsets[row + 1] as usize {
                let (panel, sum) = places[x.indices()[i] as usize];
                of_panel[panel as usize].push((row as u32, sum, x.data()[i]));
            }
        }
        of_panel
    };
    let firsts: Vec<usize> = (0..x.rows()).step_by(rows).collect();
    firsts.into_par_iter().map(task).collect()
}

/// Entries of columns that keep their own order, at most: sums that lie side by side are added together, and columns as
/// rare as that share no inputs anyway.
const RARE: u64 = 64;

/// The columns by the number of binary digits of their frequency, the most first, else in their own order; rare ones
/// are all alike.
fn order_by_frequency(counts: &[u64]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..counts.len() as u32).collect();
    order.sort_by_key(|column| digits_missing(counts[*column as usize]));
    order
}

fn digits_missing(count: u64) -> u32 {
    count.max(RARE).leading_zeros()
}

/// Chunks of one panel.
struct Packed<T> {
    keys: Vec<u32>,
    values: Vec<T>,
    bases: Vec<u32>,
    /// Sectors of the inputs that are asked for.
    sectors: u64,
}

impl<T: Element> Packed<T> {
    fn with_capacity(chunks: usize) -> Self {
        Packed {
            keys: Vec::with_capacity(chunks * CHUNK as usize),
            values: Vec::with_capacity(chunks * CHUNK as usize),
            bases: Vec::with_capacity(chunks),
            sectors: 0,
        }
    }

    fn work(&self) -> Work {
        Work {
            chunks: self.bases.len() as u32,
            sectors: self.sectors,
        }
    }

    /// Adds a chunk of at most [`CHUNK`] entries, or nothing where there are none.
    fn add_chunk(&mut self, entries: &[Entry<T>], width: u32) {
        let Some((base, ..)) = entries.first() else {
            return;
        };
        let first = self.keys.len();
        self.bases.push(*base);
        // The four places of a lane are neighbours.
        let spare = (0..CHUNK).map(|at| (width + at * SPARE / CHUNK) << 16);
        self.keys.extend(spare);
        self.values.resize(self.keys.len(), T::from_f64(0.0));
        let wanted: Vec<Ends> = entries.iter().map(|e| (e.0, e.1)).collect();
        let places = Widths::of_bytes(size_of::<T>()).places(&wanted);
        for (at, (input, sum, value)) in places.iter().zip(entries) {
            let at = first + usize::from(*at);
            self.keys[at] = u32::from(*sum) << 16 | (input - base);
            self.values[at] = *value;
        }
    }
}

/// Fills chunks with entries in the order of their inputs; what is left over adds zeros behind the `width` sums.
fn pack<T: Element>(entries: impl Iterator<Item = Entry<T>>, width: usize) -> Packed<T> {
    let mut packed = Packed::with_capacity(entries.size_hint().0.div_ceil(CHUNK as usize));
    let mut chunk: Vec<Entry<T>> = Vec::with_capacity(CHUNK as usize);
    let mut last_sector = None;
    for entry in entries {
        let sector = entry.0 / (SECTOR / size_of::<T>()) as u32;
        packed.sectors += u64::from(last_sector.replace(sector) != Some(sector));
        let is_full = chunk.len() == CHUNK as usize;
        let is_far = chunk.first().is_some_and(|first| entry.0 - first.0 > REACH);
        if is_full || is_far {
            packed.add_chunk(&chunk, width as u32);
            chunk.clear();
        }
        chunk.push(entry);
    }
    packed.add_chunk(&chunk, width as u32);
    packed
}

#[cfg(test)]
mod tests {
    use gpu_kernels::fused::panels::{LEADS, PIECE_WORDS};

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
