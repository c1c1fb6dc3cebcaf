//! Steps of filters on sparse tensor cores: the layout of [`gpu_kernels::sparse_conv`]'s tensor strategy, made on the host.
//!
//! A step has 32 filters, and two sides of 32 channels at a tap: 64 columns, in groups of four, of which it takes two of
//! each row. Where a group has more, a further step takes those. Sides of a step are two taps of the same channels, so that
//! filters with one nonzero a slice never have more; the last of an odd number of taps is joined with that of other
//! channels of the part.

mod ranges;

pub use ranges::{ConvRanges, ranges};

use gpu_kernels::sparse_conv::{CHUNK_PARTS, TILE_FILTERS, TensorGeometry, step_words};
use rayon::prelude::*;

use crate::matrix::filters::{FilterValue, SparseFilters};

/// Channels of a step.
const CHANNELS: usize = 32;
/// Groups of four columns of a step.
const GROUPS: usize = 16;
/// Filters of a step.
const ROWS: usize = TILE_FILTERS as usize;
/// The places of a group without nonzeros: any two, in ascending order.
const NOWHERE: u32 = 0b0100;

/// The arrays of the tensor strategy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvSteps {
    /// Where the steps of each filter tile and part of its channels begin; then the number of steps.
    pub starts: Vec<u32>,
    /// The steps, [`step_words`] words each.
    pub words: Vec<u32>,
}

impl ConvSteps {
    /// Number of steps.
    pub fn len(&self) -> usize {
        self.starts.last().map_or(0, |last| *last as usize)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of both arrays.
    pub fn bytes(&self) -> usize {
        4 * (self.starts.len() + self.words.len())
    }
}

/// What a tap is: rows and columns that lie between its input and that of tap (0, 0).
#[derive(Debug, Clone, Copy)]
pub struct Taps {
    /// Filters of a group.
    pub filters_per_group: usize,
    /// From one tap's input to the next.
    pub dilation: [usize; 2],
}

/// A nonzero of a tile: its filter in the tile, channel in the block of 32, tap, value.
#[derive(Clone, Copy)]
struct Entry {
    row: usize,
    channel: usize,
    value: i32,
}

/// Half of a step's columns.
struct Side {
    /// Bytes from a staged cell to the first channel at the tap.
    offset: u32,
    entries: Vec<Entry>,
}

/// The steps of integer filters whose weights take `pieces` bytes.
pub fn steps<V: FilterValue>(
    filters: &SparseFilters<V>,
    taps: &Taps,
    tiles: &TensorGeometry,
    pieces: usize,
) -> ConvSteps {
    let groups = filters.shape().filters / taps.filters_per_group;
    let all = groups * tiles.filter_tiles as usize;
    let of_tiles: Vec<(Vec<u32>, Vec<u32>)> = (0..all)
        .into_par_iter()
        .map(|tile| {
            let (group, tile) = (
                tile / tiles.filter_tiles as usize,
                tile % tiles.filter_tiles as usize,
            );
            let first = group * taps.filters_per_group;
            let start = first + tile * ROWS;
            let end = (start + ROWS).min(first + taps.filters_per_group);
            let tile = Tile {
                filters,
                range: start..end,
                dilation: taps.dilation,
                tiles,
                pieces,
            };
            tile.steps()
        })
        .collect();
    let (mut starts, mut words) = (vec![0_u32], Vec::new());
    for (counts, of_tile) in of_tiles {
        for count in counts {
            starts.push(starts.last().expect("not empty") + count);
        }
        words.extend(of_tile);
    }
    ConvSteps { starts, words }
}

/// 32 filters, or fewer at the end of a group.
struct Tile<'a, V> {
    filters: &'a SparseFilters<V>,
    range: std::ops::Range<usize>,
    dilation: [usize; 2],
    tiles: &'a TensorGeometry,
    pieces: usize,
}

impl<V: FilterValue> Tile<'_, V> {
    /// Steps of each part of the channels, and their words.
    fn steps(&self) -> (Vec<u32>, Vec<u32>) {
        let (mut counts, mut words) = (Vec::new(), Vec::new());
        for part in 0..self.tiles.parts as usize {
            let (before, mut alone) = (words.len(), Vec::new());
            for block in 0..self.tiles.part as usize / CHANNELS {
                alone.extend(self.block(part, block, &mut words));
            }
            for sides in alone.chunks(2) {
                self.step(sides, &mut words);
            }
            counts.push(((words.len() - before) / step_words(self.pieces)) as u32);
        }
        (counts, words)
    }

    /// The nonzeros of 32 channels, by tap.
    fn by_tap(&self, first_channel: usize) -> Vec<Vec<Entry>> {
        let shape = self.filters.shape();
        let mut taps = vec![Vec::new(); shape.height * shape.width];
        let end = (first_channel + CHANNELS).min(shape.channels);
        for filter in self.range.clone() {
            for channel in first_channel..end {
                for nonzero in self.filters.slice(filter, channel) {
                    let tap = usize::from(nonzero.row) * shape.width + usize::from(nonzero.col);
                    taps[tap].push(Entry {
                        row: filter - self.range.start,
                        channel: channel - first_channel,
                        value: nonzero.value.to_f64() as i32,
                    });
                }
            }
        }
        taps
    }

    /// Appends the steps of 32 channels; a tap that is left is returned.
    fn block(&self, part: usize, block: usize, words: &mut Vec<u32>) -> Option<Side> {
        let taps = self.by_tap(part * self.tiles.part as usize + block * CHANNELS);
        let slot = part % CHUNK_PARTS as usize * self.tiles.part as usize + block * CHANNELS;
        let used = taps.into_iter().enumerate();
        let mut sides: Vec<Side> = used
            .filter(|(_, entries)| !entries.is_empty())
            .map(|(tap, entries)| Side {
                offset: self.offset(tap) + slot as u32,
                entries,
            })
            .collect();
        let alone = match sides.len() % 2 {
            0 => None,
            _ => sides.pop(),
        };
        for pair in sides.chunks(2) {
            self.step(pair, words);
        }
        alone
    }

    /// Appends the steps of one side or two.
    fn step(&self, sides: &[Side], words: &mut Vec<u32>) {
        let mut groups = vec![Vec::new(); ROWS * GROUPS];
        for (number, side) in sides.iter().enumerate() {
            for entry in &side.entries {
                let (group, place) = column(number, entry.channel);
                groups[entry.row * GROUPS + group].push((place, entry.value));
            }
        }
        let last = sides.last().expect("one or two");
        self.pair(groups, [sides[0].offset, last.offset], words);
    }

    /// Bytes from a staged cell to the one that a tap meets.
    fn offset(&self, tap: usize) -> u32 {
        let width = self.filters.shape().width;
        let (row, col) = (
            tap / width * self.dilation[0],
            tap % width * self.dilation[1],
        );
        (row as u32 * self.tiles.inputs[1] + col as u32) * self.tiles.pitch * 4
    }

    /// Appends as many steps as the fullest group of two sides needs.
    fn pair(&self, mut groups: Vec<Vec<(u32, i32)>>, offsets: [u32; 2], words: &mut Vec<u32>) {
        groups
            .iter_mut()
            .for_each(|group| group.sort_by_key(|(place, _)| *place));
        let fullest = groups.iter().map(Vec::len).max().unwrap_or(0);
        for pass in 0..fullest.div_ceil(2) {
            let start = words.len();
            words.resize(start + step_words(self.pieces), 0);
            let step = &mut words[start..];
            for (at, group) in groups.iter().enumerate() {
                let held = group.get(2 * pass..).unwrap_or_default();
                let stored = two_of_four(&held[..held.len().min(2)]);
                self.put(step, (at / GROUPS, at % GROUPS), stored);
            }
            let end = step.len();
            step[end - 4..end - 2].copy_from_slice(&offsets);
        }
    }

    /// Writes the two stored columns of a group of a row.
    fn put(&self, step: &mut [u32], (row, group): (usize, usize), stored: [(u32, i32); 2]) {
        let (sixteen, row) = (row / 16, row % 16);
        for (i, (place, value)) in stored.into_iter().enumerate() {
            let column = group * 2 + i;
            let register = 2 * (column / 16) + row / 8;
            let lane = row % 8 * 4 + column % 16 / 4;
            for piece in 0..self.pieces {
                let byte = (value >> (8 * piece)) as u32 & 0xff;
                let at = (sixteen * self.pieces + piece) * 128 + lane * 4 + register;
                step[at] |= byte << (8 * (column % 4));
            }
            let lane = row % 8 * 4 + 2 * (column / 16) + row / 8;
            let at = 2 * self.pieces * 128 + sixteen * 32 + lane;
            step[at] |= place << (2 * (column % 16));
        }
    }
}

/// The group of four columns, and the place in it, of a channel at the first or second tap of a pair.
fn column(side: usize, channel: usize) -> (usize, u32) {
    let (half, in_half) = (channel / 16, channel % 16);
    let register = 2 * half + in_half % 4 / 2;
    (register * 4 + in_half / 4, (2 * side + in_half % 2) as u32)
}

/// Two stored columns in ascending order of place, zeros where there are fewer nonzeros.
fn two_of_four(held: &[(u32, i32)]) -> [(u32, i32); 2] {
    match *held {
        [one, two] => [one, two],
        [(3, value)] => [(0, 0), (3, value)],
        [one] => [one, (3, 0)],
        _ => [(NOWHERE & 3, 0), (NOWHERE >> 2, 0)],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_column_has_one_place() {
        let sides = (0..2).flat_map(|side| (0..CHANNELS).map(move |channel| (side, channel)));
        let places: BTreeSet<(usize, u32)> = sides.map(|(side, c)| column(side, c)).collect();
        assert_eq!(places.len(), 64);
        assert!(
            places
                .iter()
                .all(|(group, place)| *group < GROUPS && *place < 4)
        );
        // Neighbouring channels share a group, at both taps.
        assert_eq!(column(0, 18).0, column(1, 19).0);
    }

    #[test]
    fn single_taps_of_two_blocks_of_channels_share_a_step() {
        use crate::plan::sparse_conv::{ConvShape, tiles};
        let shape = ConvShape::new(256, [8, 16], 32, [1, 1]);
        let limits = crate::plan::limits::DeviceLimits::known("h200").expect("a known device");
        let tiles = tiles(&shape, [2, 1], &limits)
            .expect("tensor cores")
            .geometry;
        assert_eq!((tiles.part, tiles.parts), (64, 4));
        let taps = Taps {
            filters_per_group: 32,
            dilation: [1; 2],
        };
        // One weight of every fourth channel: groups of four columns have two at most.
        let mut weights = vec![0_i16; 32 * 256];
        weights.iter_mut().step_by(4).for_each(|weight| *weight = 3);
        let filters = SparseFilters::from_dense(shape.filter_shape(), &weights).expect("sizes");
        let steps = steps(&filters, &taps, &tiles, 1);
        assert_eq!(steps.starts, [0, 1, 2, 3, 4]);
        let words = &steps.words[..step_words(1)];
        assert_eq!(words[words.len() - 4..][..2], [0, 32]);
    }

    #[test]
    fn stored_columns_ascend() {
        for held in [&[][..], &[(0, 7)], &[(3, 7)], &[(1, 5), (2, 7)]] {
            let [first, second] = two_of_four(held);
            assert!(first.0 < second.0, "{held:?}");
            let sum: i32 = held.iter().map(|(_, value)| value).sum();
            assert_eq!(first.1 + second.1, sum);
        }
    }
}
