//! Steps of filters on sparse tensor cores: the layout of [`gpu_kernels::sparse_conv`]'s tensor strategy, made on the host.
//!
//! A step has 32 filters, and two sides of 32 channels at a tap, of halves 16: 64 or 32 columns, in groups of four, of which
//! it takes two of each row. Where a group has more, a further step takes those. Sides of a step are two taps of the same channels, so that
//! filters with one nonzero a slice never have more; the last of an odd number of taps is joined with that of other
//! channels of the part.

mod ranges;

pub use ranges::{ConvRanges, ranges};

use gpu_kernels::sparse_conv::{CHUNK_PARTS, Pieces, TILE_FILTERS, TensorGeometry};
use rayon::prelude::*;

use crate::matrix::filters::{FilterValue, SparseFilters};

/// Bytes of the channels of either side of a step.
const SIDE: usize = 32;
/// Filters of a step.
const ROWS: usize = TILE_FILTERS as usize;
/// The places of a group without nonzeros: any two, in ascending order.
const NOWHERE: u32 = 0b0100;

/// The arrays of the tensor strategy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvSteps {
    /// Where the steps of each filter tile and part of its channels begin; then the number of steps.
    pub starts: Vec<u32>,
    /// The steps, [`Pieces::step_words`] words each.
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

/// A nonzero of a tile: its filter in the tile, channel in the block, the bits of its value.
#[derive(Clone, Copy)]
struct Entry {
    row: usize,
    channel: usize,
    bits: u32,
}

/// A stored column's place in its group of four, and the bits of its value.
type Stored = (u32, u32);

/// Half of a step's columns.
struct Side {
    /// Bytes from a staged cell to the first channel at the tap.
    offset: u32,
    entries: Vec<Entry>,
}

/// The steps of filters, whose weights have pieces in the lowest of their bits.
pub fn steps<V: FilterValue>(
    filters: &SparseFilters<V>,
    taps: &Taps,
    tiles: &TensorGeometry,
    (pieces, bits): (Pieces, impl Fn(V) -> u32 + Sync),
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
                bits: &bits,
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
struct Tile<'a, V, B> {
    filters: &'a SparseFilters<V>,
    range: std::ops::Range<usize>,
    dilation: [usize; 2],
    tiles: &'a TensorGeometry,
    pieces: Pieces,
    bits: &'a B,
}

impl<V: FilterValue, B: Fn(V) -> u32> Tile<'_, V, B> {
    /// Channels of either side of a step.
    fn channels(&self) -> usize {
        self.pieces.channels() as usize
    }

    /// Groups of four columns of a step.
    fn groups(&self) -> usize {
        self.channels() / 2
    }

    /// Steps of each part of the channels, and their words.
    fn steps(&self) -> (Vec<u32>, Vec<u32>) {
        let (mut counts, mut words) = (Vec::new(), Vec::new());
        for part in 0..self.tiles.parts as usize {
            let (before, mut alone) = (words.len(), Vec::new());
            for block in 0..self.tiles.part as usize / SIDE {
                alone.extend(self.block(part, block, &mut words));
            }
            for sides in alone.chunks(2) {
                self.step(sides, &mut words);
            }
            counts.push(((words.len() - before) / self.pieces.step_words()) as u32);
        }
        (counts, words)
    }

    /// The nonzeros of a block of channels, by tap.
    fn by_tap(&self, first_channel: usize) -> Vec<Vec<Entry>> {
        let shape = self.filters.shape();
        let mut taps = vec![Vec::new(); shape.height * shape.width];
        let end = (first_channel + self.channels()).min(shape.channels);
        for filter in self.range.clone() {
            for channel in first_channel..end {
                for nonzero in self.filters.slice(filter, channel) {
                    let tap = usize::from(nonzero.row) * shape.width + usize::from(nonzero.col);
                    taps[tap].push(Entry {
                        row: filter - self.range.start,
                        channel: channel - first_channel,
                        bits: (self.bits)(nonzero.value),
                    });
                }
            }
        }
        taps
    }

    /// Appends the steps of a block of channels; a tap that is left is returned.
    fn block(&self, part: usize, block: usize, words: &mut Vec<u32>) -> Option<Side> {
        let blocks = self.tiles.part as usize / SIDE;
        let taps = self.by_tap((part * blocks + block) * self.channels());
        let slot = part % CHUNK_PARTS as usize * self.tiles.part as usize + block * SIDE;
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
        let mut groups = vec![Vec::new(); ROWS * self.groups()];
        for (number, side) in sides.iter().enumerate() {
            for entry in &side.entries {
                let (group, place) = column(self.pieces, number, entry.channel);
                groups[entry.row * self.groups() + group].push((place, entry.bits));
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
    fn pair(&self, mut groups: Vec<Vec<Stored>>, offsets: [u32; 2], words: &mut Vec<u32>) {
        groups
            .iter_mut()
            .for_each(|group| group.sort_by_key(|(place, _)| *place));
        let fullest = groups.iter().map(Vec::len).max().unwrap_or(0);
        for pass in 0..fullest.div_ceil(2) {
            let start = words.len();
            words.resize(start + self.pieces.step_words(), 0);
            let step = &mut words[start..];
            for (at, group) in groups.iter().enumerate() {
                let held = group.get(2 * pass..).unwrap_or_default();
                let stored = two_of_four(&held[..held.len().min(2)]);
                self.put(step, (at / self.groups(), at % self.groups()), stored);
            }
            let end = step.len();
            step[end - 4..end - 2].copy_from_slice(&offsets);
        }
    }

    /// Writes the two stored columns of a group of a row.
    fn put(&self, step: &mut [u32], (row, group): (usize, usize), stored: [Stored; 2]) {
        let (sixteen, row) = (row / 16, row % 16);
        let (bytes, pieces) = (self.pieces.bytes as usize, self.pieces.weights as usize);
        // Stored columns of a register of four lanes, and of one lane.
        let (of_four, of_lane) = (16 / bytes, 4 / bytes);
        let mask = u32::MAX >> (32 - 8 * bytes);
        for (i, (place, bits)) in stored.into_iter().enumerate() {
            let column = group * 2 + i;
            let register = 2 * (column / of_four) + row / 8;
            let lane = row % 8 * 4 + column % of_four / of_lane;
            for piece in 0..pieces {
                let bits = bits >> (8 * piece) & mask;
                let at = (sixteen * pieces + piece) * 128 + lane * 4 + register;
                step[at] |= bits << (8 * bytes * (column % of_lane));
            }
            let (word, shift) = self.metadata((sixteen, row), column);
            step[self.pieces.fragments() + word] |= place << shift;
        }
    }

    /// The word and the first bit of a stored column's metadata, behind the fragments.
    fn metadata(&self, (sixteen, row): (usize, usize), column: usize) -> (usize, usize) {
        let four = row % 8 * 4;
        if self.pieces.bytes == 1 {
            let lane = four + 2 * (column / 16) + row / 8;
            (sixteen * 32 + lane, 2 * (column % 16))
        } else {
            let lane = four + 2 * sixteen + column / 8;
            (lane, 16 * (row / 8) + 2 * (column % 8))
        }
    }
}

/// The group of four columns, and the place in it, of a channel at the first or second tap of a pair. Two words of each tap,
/// which a lane reads, are regrouped to halves of both: of bytes a word has four channels, of halves two, and a group is a
/// word of a lane or of two neighbouring ones.
fn column(pieces: Pieces, side: usize, channel: usize) -> (usize, u32) {
    let half = pieces.channels() as usize / 2;
    let (high, channel) = (channel / half, channel % half);
    if pieces.bytes == 1 {
        let register = 2 * high + channel % 4 / 2;
        (register * 4 + channel / 4, (2 * side + channel % 2) as u32)
    } else {
        let (register, lane) = (2 * high + channel % 2, channel / 2);
        (register * 2 + lane / 2, (2 * (lane % 2) + side) as u32)
    }
}

/// Two stored columns in ascending order of place, zeros where there are fewer nonzeros.
fn two_of_four(held: &[Stored]) -> [Stored; 2] {
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

    const BYTES: Pieces = Pieces {
        inputs: 2,
        weights: 1,
        bytes: 1,
    };
    const HALVES: Pieces = Pieces {
        inputs: 1,
        weights: 1,
        bytes: 2,
    };

    #[test]
    fn every_column_has_one_place() {
        for pieces in [BYTES, HALVES] {
            let channels = pieces.channels() as usize;
            let sides = (0..2).flat_map(|side| (0..channels).map(move |channel| (side, channel)));
            let places: BTreeSet<(usize, u32)> =
                sides.map(|(side, c)| column(pieces, side, c)).collect();
            assert_eq!(places.len(), 2 * channels);
            let inside = |(group, place): &(usize, u32)| *group < channels / 2 && *place < 4;
            assert!(places.iter().all(inside));
            // Two channels share a group, at both taps.
            for (group, _) in &places {
                let of_group = (0..channels).filter(|c| column(pieces, 0, *c).0 == *group);
                let other = |c: &usize| column(pieces, 1, *c).0 == *group;
                assert_eq!(of_group.filter(other).count(), 2);
            }
        }
    }

    #[test]
    fn single_taps_of_two_blocks_of_channels_share_a_step() {
        use crate::plan::sparse_conv::{ConvShape, tiles};
        let shape = ConvShape::new(256, [8, 16], 32, [1, 1]);
        let limits = crate::plan::limits::DeviceLimits::known("h200").expect("a known device");
        let tiles = tiles(&shape, BYTES, &limits)
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
        let steps = steps(&filters, &taps, &tiles, (BYTES, |value| value as u32));
        assert_eq!(steps.starts, [0, 1, 2, 3, 4]);
        let words = &steps.words[..BYTES.step_words()];
        assert_eq!(words[words.len() - 4..][..2], [0, 32]);
    }

    #[test]
    fn stored_columns_ascend() {
        for held in [&[][..], &[(0, 7)], &[(3, 7)], &[(1, 5), (2, 7)]] {
            let [first, second] = two_of_four(held);
            assert!(first.0 < second.0, "{held:?}");
            let sum: u32 = held.iter().map(|(_, bits)| bits).sum();
            assert_eq!(first.1 + second.1, sum);
        }
    }
}
