//! Integers and halves on sparse tensor cores: a convolution as a product of filters × (taps and channels) by (taps and
//! channels) × outputs, of which the left factor is stored with two of four columns.
//!
//! **Integers are exact.** A 16-bit number is a signed high byte and an unsigned low one; the four products of bytes are added in 32-bit
//! integers, those of weight 2⁸ together, and joined at the end. No sum overflows up to [`MOST_NONZEROS`] nonzeros of a
//! filter. An 8-bit number is one piece, and so are 16-bit weights that all fit into one: the host sees whether they do,
//! and half of the products are left.
//!
//! **Halves**, IEEE 754's or bfloat16, are one piece. Their products are exact in f32. A tensor core adds up to sixteen of them
//! to a sum at once and may cut each at 2⁻²³ of the largest: with n nonzeros of a filter a result is within
//! 3n · 2⁻²³ · Σ |w · x| of the true one. Zero weights are multiplied, too.
//!
//! **Steps.** A step is 32 channels (16 of halves) at two taps, or two such blocks of channels at one each: 64 columns, or 32.
//! Columns that share a group of four are two channels at both taps, so that filters with one nonzero a slice never have more than two of four. Where some do, a
//! further step takes what is left over: dense filters take two steps where the sparsest take one. Taps without a
//! nonzero in 32 filters and a block of channels cost nothing.
//!
//! **Mapping.** A block has [`TILE_FILTERS`] filters and [`TILE_CELLS`] outputs of one image. It has two or four teams of
//! four warps, which take 32 outputs each; teams take turns at the steps. Each writes its sums to a table of its own in shared
//! memory, from which results are made. Two teams read inputs a step ahead; of four, which have half the registers, others
//! run while one waits. Inputs are planes of pieces, channels side by side ([`planes`]); those of a tile, with their halo, are
//! copied to shared memory in parts of the channels, of which the first is used while others arrive. Where cells lie is
//! found once, and kept behind them. A shifted tap is another row address of `ldmatrix`. Steps come from memory in the order
//! in which lanes hold them; their cache lines are touched a step before that.
//!
//! From compute capability 9.0 on the launch begins while the planes are made, and waits for them when it has its first steps.
//!
//! Shared memory: pieces · staged cells · pitch words and a place of each cell; or the sums of a tile by each team.

// Loops over indices that are known once they are unrolled keep arrays in registers.
#![allow(clippy::needless_range_loop)]

mod planes;
mod staging;
mod steps;
mod sums;
mod tile;

use super::args::SparseConvArgs;
use super::element::Element;
use crate::cta::{Cache, Cta, Shared, WARP};
use crate::simt::permute_bytes;
use crate::verbs::lane;
pub use planes::{cells_at_once, planes};
use staging::{arrive, place_cells};
pub use staging::{staged_bytes, tensor_shared_bytes};
use steps::{Step, Steps};
pub use sums::sum_bytes;
use sums::{write_outputs, write_sums};
pub use tile::{CHUNK_PARTS, Pieces, TENSOR_TEAM, TILE_CELLS, TILE_FILTERS};
use tile::{COLS, ROWS, Sums, Tile, split};

/// With more nonzeros in a filter the sums of its low bytes could overflow: 255² · 2¹⁵ is below 2³¹.
pub const MOST_NONZEROS: u32 = 1 << 15;

/// The lower and the higher halves of two words.
const LOW_HALVES: u32 = 0x5410;
const HIGH_HALVES: u32 = 0x7632;

/// Eight outputs' inputs of a step by pieces and registers.
type Column<const P: usize> = [[u32; 4]; P];

/// Where a warp's lanes read inputs.
#[derive(Clone, Copy)]
struct Staged {
    words: Shared<u32>,
    /// From one piece to the next.
    piece: u32,
    /// The first word of this lane's row, for each group of eight outputs.
    cells: [u32; COLS],
}

impl Staged {
    /// Reads a column of the step that begins `offset` words behind the first: of each piece the lower and the higher half
    /// of the channels at the first tap, then at the second. Regroups it to the second factor: groups of four rows are two
    /// channels at both taps.
    #[inline(always)]
    #[track_caller]
    fn column<C: Cta, const P: usize>(&self, cta: &C, offset: u32, col: usize) -> Column<P> {
        core::array::from_fn(|piece| {
            let row = self.cells[col] + offset + piece as u32 * self.piece;
            let [a, b, c, d] = cta.shared_read_matrices(self.words, row as usize);
            [
                permute_bytes(a, c, LOW_HALVES),
                permute_bytes(a, c, HIGH_HALVES),
                permute_bytes(b, d, LOW_HALVES),
                permute_bytes(b, d, HIGH_HALVES),
            ]
        })
    }

    /// All columns. Not a loop, which LLVM 22 unrolls after it has put the array of cells into local memory.
    #[inline(always)]
    #[track_caller]
    fn columns<C: Cta, const P: usize>(&self, cta: &C, offset: u32) -> [Column<P>; COLS] {
        [
            self.column(cta, offset, 0),
            self.column(cta, offset, 1),
            self.column(cta, offset, 2),
            self.column(cta, offset, 3),
        ]
    }
}

/// Adds the products of one piece of the weights and one of a column's inputs.
#[inline(always)]
#[track_caller]
fn multiply_pieces<C: Cta, E: Element, const P: usize, const W: usize>(
    cta: &C,
    step: &Step<W>,
    (column, col): (&Column<P>, usize),
    (i, j): (usize, usize),
    sums: &mut Sums<E::Part>,
) {
    // The highest piece has the sign.
    let signed = [i + 1 == W, j + 1 == P];
    for row in 0..ROWS {
        let factors = [step.fragments[row][i], column[j]];
        let sum = &mut sums[i + j][row][col];
        *sum = E::multiply_sparse(cta, factors, *sum, (step.metadata, row), signed);
    }
}

/// Adds a step's products with a column's inputs.
#[inline(always)]
#[track_caller]
fn multiply_column<C: Cta, E: Element, const P: usize, const W: usize>(
    cta: &C,
    step: &Step<W>,
    column: (&Column<P>, usize),
    sums: &mut Sums<E::Part>,
) {
    for i in 0..W {
        for j in 0..P {
            multiply_pieces::<C, E, P, W>(cta, step, column, (i, j), sums);
        }
    }
}

/// See the head of the file. Inputs have P pieces, weights W.
pub fn tensor<C: Cta, E: Element, const P: usize, const W: usize, const TEAMS: u32>(
    cta: &C,
    args: &SparseConvArgs<'_, E>,
) {
    // Of one piece an SM holds two blocks of two teams, whose threads may not take 129 registers.
    match (TEAMS, P * W) {
        (2, 1) => cta.launch_bounds::<{ 2 * TENSOR_TEAM }, 2>(),
        (2, _) => cta.launch_bounds::<{ 2 * TENSOR_TEAM }, 1>(),
        _ => cta.launch_bounds::<{ 4 * TENSOR_TEAM }, 1>(),
    }
    let tile = Tile::of(cta, args);
    let sums = add_parts::<C, E, P, W, TEAMS>(cta, args, tile);
    cta.sync();
    write_sums::<C, E>(cta, &sums);
    cta.sync();
    write_outputs::<C, E, TEAMS>(cta, args, tile);
}

/// The first staged word of the row that this lane gives `ldmatrix`, for each group of eight outputs.
#[inline(always)]
fn row_words<C: Cta, E: Element>(cta: &C, args: &SparseConvArgs<'_, E>) -> [u32; COLS] {
    let (g, t) = (&args.geometry, &args.tensor);
    let lane = lane(cta);
    let warp = cta.thread() / WARP % 4;
    let word = |group: u32| {
        let cell = warp * 32 + group * 8 + lane % 8;
        let (row, col) = split(cell, t.tile[1]);
        let staged = row * g.stride[0] * t.inputs[1] + col * g.stride[1];
        staged * t.pitch + lane / 8 % 2 * 4
    };
    [word(0), word(1), word(2), word(3)]
}

/// This team's part of the sums.
#[inline(always)]
#[track_caller]
fn add_parts<C: Cta, E: Element, const P: usize, const W: usize, const TEAMS: u32>(
    cta: &C,
    args: &SparseConvArgs<'_, E>,
    tile: Tile,
) -> Sums<E::Part> {
    let t = &args.tensor;
    let piece = t.cells() * t.pitch;
    let staged = Staged {
        words: Shared::at(0, P as u32 * piece),
        piece,
        cells: row_words(cta, args),
    };
    let of_tile = (tile.filters * t.parts) as usize;
    let last = cta.load(args.starts, of_tile + t.parts as usize, Cache::Keep);
    let number = cta.load(args.starts, of_tile, Cache::Keep) + cta.thread() / TENSOR_TEAM;
    let mut steps = Steps::<W, TEAMS>::first(cta, args, [number, last]);
    let mut sums: Sums<E::Part> = [[[[E::Part::default(); 4]; COLS]; ROWS]; 3];
    place_cells(cta, args, tile);
    // So far filters alone were read, which are older than the planes.
    cta.wait_for_previous();
    let mut part = 0;
    while part < t.parts {
        arrive(cta, args, part);
        let end = cta.load(args.starts, of_tile + part as usize + 1, Cache::Keep);
        if TEAMS == 2 {
            add_ahead::<C, E, P, W, TEAMS>(cta, args, (&staged, end), &mut steps, &mut sums);
        } else {
            add_in_turn::<C, E, P, W, TEAMS>(cta, args, (&staged, end), &mut steps, &mut sums);
        }
        part += 1;
    }
    sums
}

/// Adds the steps of a part, whose inputs are read one step ahead.
#[inline(always)]
#[track_caller]
fn add_ahead<C: Cta, E: Element, const P: usize, const W: usize, const TEAMS: u32>(
    cta: &C,
    args: &SparseConvArgs<'_, E>,
    (staged, end): (&Staged, u32),
    steps: &mut Steps<W, TEAMS>,
    sums: &mut Sums<E::Part>,
) {
    let mut columns: [Column<P>; COLS] = [[[0; 4]; P]; COLS];
    if steps.number < end {
        columns = staged.columns(cta, steps.offset);
    }
    while steps.number < end {
        let (step, own, offset) = (steps.step, columns, steps.offset);
        steps.advance(cta, args);
        // Inputs of the next part may not be there yet.
        let here = if steps.number < end {
            steps.offset
        } else {
            offset
        };
        columns = staged.columns(cta, here);
        multiply_column::<C, E, P, W>(cta, &step, (&own[0], 0), sums);
        multiply_column::<C, E, P, W>(cta, &step, (&own[1], 1), sums);
        multiply_column::<C, E, P, W>(cta, &step, (&own[2], 2), sums);
        multiply_column::<C, E, P, W>(cta, &step, (&own[3], 3), sums);
    }
}

/// Adds the steps of a part, reading inputs of each column before its products: other teams' products go on meanwhile.
#[inline(always)]
#[track_caller]
fn add_in_turn<C: Cta, E: Element, const P: usize, const W: usize, const TEAMS: u32>(
    cta: &C,
    args: &SparseConvArgs<'_, E>,
    (staged, end): (&Staged, u32),
    steps: &mut Steps<W, TEAMS>,
    sums: &mut Sums<E::Part>,
) {
    while steps.number < end {
        let (step, offset) = (steps.step, steps.offset);
        steps.advance(cta, args);
        let column = |col: usize| -> Column<P> { staged.column(cta, offset, col) };
        multiply_column::<C, E, P, W>(cta, &step, (&column(0), 0), sums);
        multiply_column::<C, E, P, W>(cta, &step, (&column(1), 1), sums);
        multiply_column::<C, E, P, W>(cta, &step, (&column(2), 2), sums);
        multiply_column::<C, E, P, W>(cta, &step, (&column(3), 3), sums);
    }
}
