//! Which tiles a block takes, one after the other.

use super::staging::Tile;
use super::{BLOCK, Conv1dArgs, EARLIEST, first_of_group};
use crate::cta::Cta;

/// A block's work: tile after tile, of each one input channel after the other.
#[derive(Clone, Copy)]
pub struct Work {
    /// Counts tiles of all output channels.
    pub item: u64,
    /// Where it lies.
    pub tile: Tile,
}

impl Work {
    /// The first input channel of a tile, with `lead` places before the first tap.
    #[inline(always)]
    pub fn of<T>(args: &Conv1dArgs<'_, T>, item: u64, outputs: u64, lead: u32) -> Work {
        // One channel needs no divisions, which would take longer than staging a tile.
        let (o, group) = match args.out_channels {
            1 => (0, 0),
            _ => {
                let o = item / tiles(args, outputs);
                (o, first_of_group(args, o))
            }
        };
        let early = (group as i64 - args.before as i64 - lead as i64) & EARLIEST;
        let first = (item - o * tiles(args, outputs)) * outputs;
        Work {
            item,
            tile: Tile {
                o,
                start: first as i64 - early,
                channel: 0,
                group,
                lead,
            },
        }
    }

    /// Whether there is such a tile.
    #[inline(always)]
    pub fn is_there<T>(&self, args: &Conv1dArgs<'_, T>) -> bool {
        self.tile.o < args.out_channels && self.tile.start < args.out_len as i64
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
            return Work::of(args, self.item, outputs, self.tile.lead);
        }
        self.tile.channel = 0;
        self.tile.start += (cta.blocks() as u64 * outputs) as i64;
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
