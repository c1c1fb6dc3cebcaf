//! X in tiles of rows: the layout of [`gpu_kernels::fused::many::tiles`], made on the host.

use std::cmp::Reverse;

use gpu_kernels::cta::WARP;
use gpu_kernels::fused::many::tiles::{GROUP, NONE};

use super::banks::{Entry, Rows, arrange, even_out};
use crate::matrix::{CsrMatrix, Element};
use crate::parallel;

/// Entries of an output that a warp shares: longer ones would keep 31 lanes waiting. With 96 all of 1,000 columns were long,
/// and summing over lanes took half of the time (0.65 ms on an H200 for 80 million entries and 8 sides).
const LONG: usize = 512;

/// What tiles are cut to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileSize {
    /// Rows of a tile, at most 65,528.
    pub rows: usize,
    /// Packs of 16 bytes that the sides of a row of Y, or of P, fill: 1 or 2.
    pub packs: u32,
}

/// The arrays of [`TileSlices`](gpu_kernels::fused::TileSlices).
#[derive(Debug, Clone, PartialEq)]
pub struct SliceLayout<T> {
    /// For each tile its first slice with one output and its first with 32; then the number of slices.
    pub tiles: Vec<u32>,
    /// The first group of each slice; then the number of groups.
    pub offsets: Vec<u32>,
    /// The output of each lane of each slice.
    pub outputs: Vec<u32>,
    /// Four places of 16 bits for each lane of each group.
    pub places: Vec<u64>,
    /// Four values for each lane of each group.
    pub values: Vec<T>,
}

/// Both copies of X.
#[derive(Debug, Clone, PartialEq)]
pub struct TileLayout<T> {
    /// Rows as outputs.
    pub by_row: SliceLayout<T>,
    /// Columns as outputs.
    pub by_column: SliceLayout<T>,
}

impl<T: Element> TileLayout<T> {
    /// The layout of `x`, whose columns 16 bits tell apart. What computes both products at once takes the same rows of
    /// both orders.
    pub fn new(x: &CsrMatrix<T>, (rows, columns): (TileSize, TileSize)) -> Self {
        TileLayout {
            by_row: SliceLayout::of(x, rows, (by_row, x.cols())),
            by_column: SliceLayout::of(x, columns, (by_column, columns.rows)),
        }
    }
}

/// The outputs of a tile, and their entries one after the other.
struct Outputs<T> {
    /// Output, first entry, end of its entries.
    all: Vec<(u32, usize, usize)>,
    entries: Vec<Entry<T>>,
}

/// The outputs of the rows from the first to the second.
type OutputsOf<T> = fn(&CsrMatrix<T>, usize, usize) -> Outputs<T>;

fn by_row<T: Element>(x: &CsrMatrix<T>, first: usize, end: usize) -> Outputs<T> {
    let offsets = x.proper_indptr();
    let from = offsets[first] as usize;
    let of_tile = from..offsets[end] as usize;
    let places = x.indices()[of_tile.clone()]
        .iter()
        .map(|column| *column as u16);
    let entries = places.zip(x.data()[of_tile].iter().copied()).collect();
    let row = |row: usize| {
        let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
        ((row - first) as u32, start - from, end - from)
    };
    Outputs {
        all: (first..end).map(row).collect(),
        entries,
    }
}

fn by_column<T: Element>(x: &CsrMatrix<T>, first: usize, end: usize) -> Outputs<T> {
    let offsets = x.proper_indptr();
    let of_tile = offsets[first] as usize..offsets[end] as usize;
    let mut starts = vec![0_usize; x.cols() + 1];
    for column in &x.indices()[of_tile.clone()] {
        starts[*column as usize + 1] += 1;
    }
    for column in 0..x.cols() {
        starts[column + 1] += starts[column];
    }
    let mut next = starts.clone();
    let mut entries = vec![(0, T::from_f64(0.0)); of_tile.len()];
    for row in first..end {
        for i in offsets[row] as usize..offsets[row + 1] as usize {
            let at = &mut next[x.indices()[i] as usize];
            entries[*at] = ((row - first) as u16, x.data()[i]);
            *at += 1;
        }
    }
    let has_entries = |column: &usize| starts[*column] < starts[column + 1];
    let columns = (0..x.cols()).filter(has_entries);
    let all = columns.map(|column| (column as u32, starts[column], starts[column + 1]));
    Outputs {
        all: all.collect(),
        entries,
    }
}

/// The slices of one tile; offsets count from its first group.
struct Slices<T> {
    long: u32,
    layout: SliceLayout<T>,
}

fn slices<T: Element>(outputs: Outputs<T>, rows: Rows) -> Slices<T> {
    let Outputs { mut all, entries } = outputs;
    all.sort_by_key(|(_, start, end)| Reverse(end - start));
    let long = all.partition_point(|(_, start, end)| end - start > LONG);
    even_out(
        &mut all[long..],
        rows,
        |(_, start, end)| &entries[*start..*end],
        |(_, start, end)| (end - start).div_ceil(GROUP as usize),
    );
    let mut tile = Slices {
        long: long as u32,
        layout: SliceLayout::empty(),
    };
    let mut lanes: Vec<Vec<Entry<T>>> = vec![Vec::new(); WARP as usize];
    for (output, start, end) in &all[..long] {
        for (i, entry) in entries[*start..*end].iter().enumerate() {
            lanes[i % WARP as usize].push(*entry);
        }
        let outputs = std::iter::once(*output);
        tile.layout.push(outputs, &mut lanes, rows);
    }
    for outputs in all[long..].chunks(WARP as usize) {
        for ((_, start, end), lane) in outputs.iter().zip(&mut lanes) {
            lane.extend_from_slice(&entries[*start..*end]);
        }
        let outputs = outputs.iter().map(|(output, ..)| *output);
        tile.layout.push(outputs, &mut lanes, rows);
    }
    tile
}

impl<T: Element> SliceLayout<T> {
    /// The tiles of `x` in the order that `to` gives one, of which this many rows are read.
    fn of(x: &CsrMatrix<T>, size: TileSize, (to, inputs): (OutputsOf<T>, usize)) -> Self {
        let rows = Rows {
            packs: size.packs,
            spare: inputs as u16,
        };
        let tile = |number: usize| {
            let first = number * size.rows;
            let end = (first + size.rows).min(x.rows());
            slices(to(x, first, end), rows)
        };
        Self::join(parallel::map(x.rows().div_ceil(size.rows), tile))
    }

    fn empty() -> Self {
        SliceLayout {
            tiles: Vec::new(),
            offsets: Vec::new(),
            outputs: Vec::new(),
            places: Vec::new(),
            values: Vec::new(),
        }
    }

    /// One more slice of the entries of `lanes`, which are taken out.
    fn push(
        &mut self,
        outputs: impl Iterator<Item = u32>,
        lanes: &mut [Vec<Entry<T>>],
        rows: Rows,
    ) {
        let group = GROUP as usize;
        let longest = lanes.iter().map(Vec::len).max().unwrap_or(0);
        let steps = longest.next_multiple_of(group);
        let base = self.places.len();
        self.offsets.push((base / WARP as usize) as u32);
        let filled = outputs.chain(std::iter::repeat(NONE));
        self.outputs.extend(filled.take(WARP as usize));
        let zero = T::from_f64(0.0);
        self.places.resize(base + steps / group * WARP as usize, 0);
        self.values.resize(self.places.len() * group, zero);
        arrange(lanes, (steps, zero), rows, |step, lane, (place, value)| {
            let at = base + step / group * WARP as usize + lane;
            self.places[at] |= u64::from(place) << (16 * (step % group));
            self.values[at * group + step % group] = value;
        });
    }

    /// All tiles, one after the other.
    fn join(tiles: Vec<Slices<T>>) -> Self {
        let mut all = Self::empty();
        let total = |len: fn(&SliceLayout<T>) -> usize| -> usize {
            tiles.iter().map(|tile| len(&tile.layout)).sum()
        };
        all.offsets.reserve(total(|tile| tile.offsets.len()) + 1);
        all.outputs.reserve(total(|tile| tile.outputs.len()));
        all.places.reserve(total(|tile| tile.places.len()));
        all.values.reserve(total(|tile| tile.values.len()));
        for tile in tiles {
            let (slices, groups) = (all.offsets.len() as u32, all.groups());
            all.tiles.extend([slices, slices + tile.long]);
            let own = tile.layout;
            all.offsets
                .extend(own.offsets.iter().map(|group| groups + group));
            all.outputs.extend(own.outputs);
            all.places.extend(own.places);
            all.values.extend(own.values);
        }
        all.tiles.push(all.offsets.len() as u32);
        all.offsets.push(all.groups());
        all
    }

    fn groups(&self) -> u32 {
        (self.places.len() / WARP as usize) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::csr_from_parts;

    /// Row i has 5·i mod 600 entries; column 1 is in every other row.
    fn matrix(rows: usize, cols: usize) -> CsrMatrix<f64> {
        let (mut offsets, mut indices) = (vec![0], Vec::new());
        for row in 0..rows {
            let mut own: Vec<u32> = (0..row * 5 % 600)
                .map(|i| ((i * 7 + row) % cols) as u32)
                .collect();
            own.extend((row % 2 == 0).then_some(1));
            own.sort_unstable();
            own.dedup();
            indices.extend(own);
            offsets.push(indices.len() as u64);
        }
        let values = (1..=indices.len()).map(|i| i as f64).collect();
        csr_from_parts((rows, cols), offsets, indices, values).expect("a matrix")
    }

    /// (tile, output, place, value) of all entries.
    fn entries(layout: &SliceLayout<f64>, spare: u16) -> Vec<(usize, u32, u16, u64)> {
        let mut found = Vec::new();
        for tile in 0..layout.tiles.len() / 2 {
            let bounds = &layout.tiles[2 * tile..2 * tile + 3];
            for slice in bounds[0]..bounds[2] {
                let outputs = &layout.outputs[32 * slice as usize..][..32];
                let groups = layout.offsets[slice as usize]..layout.offsets[slice as usize + 1];
                for at in 32 * groups.start as usize..32 * groups.end as usize {
                    let output = outputs[if slice < bounds[1] { 0 } else { at % 32 }];
                    for i in 0..4 {
                        let place = (layout.places[at] >> (16 * i)) as u16;
                        let value = layout.values[4 * at + i];
                        if value == 0.0 {
                            assert!((spare..spare + 8).contains(&place));
                        } else {
                            assert_ne!(output, NONE);
                            found.push((tile, output, place, value.to_bits()));
                        }
                    }
                }
            }
        }
        found.sort_unstable();
        found
    }

    #[test]
    fn no_entry_is_lost_or_moved() {
        for (rows, cols, tile) in [(1, 2, 32), (50, 9, 32), (700, 300, 64), (400, 200, 4_096)] {
            let x = matrix(rows, cols);
            let size = TileSize {
                rows: tile,
                packs: 2,
            };
            let layout = TileLayout::new(&x, (size, size));
            let of = |by_row: bool| {
                let entry = |(value, (row, column)): (&f64, (u32, u32))| {
                    let (row, local) = (row as usize / tile, row as usize % tile);
                    match by_row {
                        true => (row, local as u32, column as u16, value.to_bits()),
                        false => (row, column, local as u16, value.to_bits()),
                    }
                };
                let mut all: Vec<_> = x.iter().map(entry).collect();
                all.sort_unstable();
                all
            };
            assert_eq!(entries(&layout.by_row, cols as u16), of(true));
            assert_eq!(entries(&layout.by_column, tile as u16), of(false));
        }
    }

    #[test]
    fn every_row_has_a_lane_and_long_outputs_have_a_warp() {
        let size = |rows, packs| TileSize { rows, packs };
        let layout = TileLayout::new(&matrix(400, 701), (size(160, 1), size(96, 2)));
        assert_eq!(layout.by_column.tiles.len(), 2 * 5 + 1);
        let mut seen: Vec<u32> = layout
            .by_row
            .outputs
            .iter()
            .copied()
            .filter(|o| *o != NONE)
            .collect();
        seen.sort_unstable();
        let mut expected: Vec<u32> = (0..160).chain(0..160).chain(0..80).collect();
        expected.sort_unstable();
        assert_eq!(seen, expected);
        let [long, short, ..] = layout.by_row.tiles[..] else {
            panic!("three tiles");
        };
        assert!(short > long);
        assert!(layout.by_row.outputs[1] == NONE);
    }
}
