//! Which tiles a block takes, one after the other.

use super::{BLOCK, Conv1dArgs, EARLIEST, first_of_group};
use crate::cta::Cta;

/// A row of outputs that a block computes, and the input channel that it adds to them.
#[derive(Clone, Copy)]
pub struct Tile {
    /// Output channel.
    pub o: u64,
    /// The first output, which may lie before the first that there is.
    pub start: i64,
    /// Input channel of the group.
    pub channel: u64,
    /// Where the group's input channels begin.
    pub group: u64,
    /// Places before the first tap, and as many inputs before the first that it meets.
    pub lead: u32,
}

impl Tile {
    /// The tile whose number among those of all output channels is `item`: its first input channel.
    #[inline(always)]
    pub fn of<T>(args: &Conv1dArgs<'_, T>, item: u64, outputs: u64, lead: u32) -> Tile {
        // One channel needs no divisions, which would take longer than staging a tile.
        if args.out_channels == 1 {
            return Tile::of_one(args, item * outputs, lead);
        }
        let o = item / tiles(args, outputs);
        let group = first_of_group(args, o);
        let first = (item - o * tiles(args, outputs)) * outputs;
        Tile {
            o,
            group,
            ..Tile::early(args, (first, group), lead)
        }
    }

    /// The tile of the only output channel that begins at output `first`, or a little earlier.
    #[inline(always)]
    pub fn of_one<T>(args: &Conv1dArgs<'_, T>, first: u64, lead: u32) -> Tile {
        Tile::early(args, (first, 0), lead)
    }

    /// Begins so much before output `first` that its inputs, of channels that begin at `group`, begin at a line.
    #[inline(always)]
    fn early<T>(args: &Conv1dArgs<'_, T>, (first, group): (u64, u64), lead: u32) -> Tile {
        let early = (group as i64 - args.before as i64 - lead as i64) & EARLIEST;
        Tile {
            o: 0,
            start: first as i64 - early,
            channel: 0,
            group: 0,
            lead,
        }
    }

    /// Whether there is such a tile.
    #[inline(always)]
    pub fn is_there<T>(&self, args: &Conv1dArgs<'_, T>) -> bool {
        self.o < args.out_channels && self.start < args.out_len as i64
    }
}

/// A block's work: tile after tile, of each one input channel after the other.
#[derive(Clone, Copy)]
pub struct Work {
    /// Counts tiles of all output channels.
    pub item: u64,
    /// Where it lies.
    pub tile: Tile,
}

impl Work {
    /// What the block does first.
    #[inline(always)]
    pub fn first<C: Cta, T>(cta: &C, args: &Conv1dArgs<'_, T>, outputs: u64) -> Work {
        let item = cta.block() as u64;
        let tile = Tile::of(args, item, outputs, 0);
        Work { item, tile }
    }

    /// What this block does afterwards.
    #[inline(always)]
    pub fn next<C: Cta, T>(mut self, cta: &C, args: &Conv1dArgs<'_, T>, outputs: u64) -> Work {
        if self.tile.channel + 1 < args.in_per_group {
            self.tile.channel += 1;
            return self;
        }
        self.item += cta.blocks() as u64;
        if args.out_channels > 1 {
            self.tile = Tile::of(args, self.item, outputs, self.tile.lead);
        } else {
            self.tile.channel = 0;
            self.tile.start += (cta.blocks() as u64 * outputs) as i64;
        }
        self
    }
}

/// Outputs of a tile.
pub const fn tile_outputs<const R: usize>() -> u64 {
    BLOCK as u64 * R as u64
}

/// Tiles of an output channel.
#[inline(always)]
pub fn tiles<T>(args: &Conv1dArgs<'_, T>, outputs: u64) -> u64 {
    (args.out_len + EARLIEST as u64).div_ceil(outputs)
}
