//! A block's tile, and how its numbers are cut.

use super::super::args::SparseConvArgs;
use super::super::element::Element;
use crate::cta::Cta;

/// Threads of a team, which takes a step together; a block has two teams or four.
pub const TENSOR_TEAM: u32 = 128;
/// Filters of a block.
pub const TILE_FILTERS: u32 = 32;
/// Outputs of a block.
pub const TILE_CELLS: u32 = 128;
/// Parts of the channels that are staged together.
pub const CHUNK_PARTS: u32 = 4;

/// Rows of 16 filters, and groups of 8 outputs of a warp.
pub(super) const ROWS: usize = 2;
pub(super) const COLS: usize = 4;

/// How tensor cores take the numbers of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pieces {
    /// Pieces of an input.
    pub inputs: u32,
    /// Pieces of a weight.
    pub weights: u32,
    /// Bytes of a piece: 1 of integers, 2 of halves.
    pub bytes: u32,
}

impl Pieces {
    /// Channels of either side of a step.
    pub const fn channels(&self) -> u32 {
        32 / self.bytes
    }

    /// Words of a step's fragments: by rows, pieces and lanes.
    pub const fn fragments(&self) -> usize {
        ROWS * self.weights as usize * 128
    }

    /// Words of a step: fragments; metadata by rows and lanes, of halves a word of a lane for all rows; the bytes from a cell
    /// to the channels of either tap, and two unused words.
    pub const fn step_words(&self) -> usize {
        self.fragments() + ROWS * 32 / self.bytes as usize + 4
    }

    /// Of a kernel.
    pub(super) const fn of<E: Element>(weights: usize) -> Pieces {
        Pieces {
            inputs: E::PIECES as u32,
            weights: weights as u32,
            bytes: E::PIECE_BYTES,
        }
    }
}

/// Which filters and outputs a block has.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    pub(super) image: u32,
    pub(super) group: u32,
    /// Number among the tiles of filters of all groups.
    pub(super) filters: u32,
    /// First output.
    pub(super) row: u32,
    pub(super) col: u32,
}

impl Tile {
    #[inline(always)]
    pub(super) fn of<C: Cta, E: Element>(cta: &C, args: &SparseConvArgs<'_, E>) -> Tile {
        let (g, t) = (&args.geometry, &args.tensor);
        let all = g.filters / g.out_per_group * t.filter_tiles;
        let (rest, filters) = (cta.block() / all, cta.block() % all);
        let (rest, col) = (rest / t.tiles[1], rest % t.tiles[1]);
        let (image, row) = (rest / t.tiles[0], rest % t.tiles[0]);
        Tile {
            image,
            group: filters / t.filter_tiles,
            filters,
            row: row * t.tile[0],
            col: col * t.tile[1],
        }
    }
}

/// Sums of a lane by weight, rows, columns and registers.
pub(super) type Sums<T> = [[[[T; 4]; COLS]; ROWS]; 3];

/// Quotient and remainder by a power of two. Sides of tiles are such, their product being [`TILE_CELLS`]; so are the windows
/// that divide them, and parts of channels.
#[inline(always)]
pub(super) fn split(number: u32, by: u32) -> (u32, u32) {
    (number >> by.trailing_zeros(), number & (by - 1))
}
