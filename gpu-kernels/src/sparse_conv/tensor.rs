//! Integers on sparse tensor cores: a convolution as a product of filters × (taps and channels) by (taps and channels) ×
//! outputs, of which the left factor is stored with two of four columns.
//!
//! **Exact.** A 16-bit number is a signed high byte and an unsigned low one; the four products of bytes are added in 32-bit
//! integers, those of weight 2⁸ together, and joined at the end. No sum overflows up to [`MOST_NONZEROS`] nonzeros of a
//! filter. An 8-bit number is one piece, and so are 16-bit weights that all fit into one: the host sees whether they do,
//! and half of the products are left.
//!
//! **Steps.** A step is 64 columns: 32 channels at two taps, or two times 32 channels at one each. Columns that share a group of four are two neighbouring
//! channels at both taps, so that filters with one nonzero a slice never have more than two of four. Where some do, a
//! further step takes what is left over: dense filters take two steps where the sparsest take one. Taps without a
//! nonzero in 32 filters and 32 channels cost nothing.
//!
//! **Mapping.** A block has [`TILE_FILTERS`] filters and [`TILE_CELLS`] outputs of one image. It has two or four teams of
//! four warps, which take 32 outputs each; teams take turns at the steps, and their sums are added at the end. Two teams
//! read inputs a step ahead; of four, which have half the registers, others run while one waits. Inputs are byte planes, channels side by side ([`planes`]); those of
//! a tile, with their halo, are copied to shared memory in parts of the channels, of which the first is used while others
//! arrive. A shifted tap is another row address of `ldmatrix`. Steps come from memory in the order in which lanes hold them.
//!
//! From compute capability 9.0 on the launch begins while the planes are made, and waits for them when it has its first steps.
//!
//! Shared memory: pieces · staged cells · pitch words, or the sums of a tile.

// Loops over indices that are known once they are unrolled keep arrays in registers.
#![allow(clippy::needless_range_loop)]

mod planes;
mod sums;

use super::args::SparseConvArgs;
use super::element::Element;
use crate::cta::{Cache, Cta, Shared, WARP};
use crate::scalar::Word;
use crate::simt::permute_bytes;
use crate::verbs::lane;
pub use planes::planes;
use sums::{write_outputs, write_sums};

/// Threads of a team, which takes a step together; a block has two teams or four.
pub const TENSOR_TEAM: u32 = 128;
/// Filters of a block.
pub const TILE_FILTERS: u32 = 32;
/// Outputs of a block.
pub const TILE_CELLS: u32 = 128;
/// Parts of the channels that are staged together.
pub const CHUNK_PARTS: u32 = 4;
/// With more nonzeros in a filter the sums of its low bytes could overflow: 255² · 2¹⁵ is below 2³¹.
pub const MOST_NONZEROS: u32 = 1 << 15;

/// Rows of 16 filters, and groups of 8 outputs of a warp.
const ROWS: usize = 2;
const COLS: usize = 4;
/// The lower and the higher halves of two words.
const LOW_HALVES: u32 = 0x5410;
const HIGH_HALVES: u32 = 0x7632;
/// From one filter's sums to the next in shared memory: the eight filters and four pairs of outputs that a warp's lanes have
/// lie in 16 banks or more.
const SUM_PITCH: u32 = TILE_CELLS + 8;

/// Words of a step for weights of a given number of pieces: fragments by rows, pieces and lanes; metadata by rows and lanes; the
/// bytes from a cell to the channels of either tap, and two unused words.
pub const fn step_words(pieces: usize) -> usize {
    ROWS * pieces * 128 + ROWS * 32 + 4
}

/// Bytes of the sums of a tile.
pub const fn sum_bytes(acc: u32) -> u32 {
    TILE_FILTERS * SUM_PITCH * acc
}

/// Which filters and outputs a block has.
#[derive(Clone, Copy)]
struct Tile {
    image: u32,
    group: u32,
    /// Number among the tiles of filters of all groups.
    filters: u32,
    /// First output.
    row: u32,
    col: u32,
}

impl Tile {
    #[inline(always)]
    fn of<C: Cta, E: Element>(cta: &C, args: &SparseConvArgs<'_, E>) -> Tile {
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

/// Begins to copy the inputs of a part of the channels.
#[inline(always)]
#[track_caller]
fn stage<C: Cta, E: Element>(
    cta: &C,
    args: &SparseConvArgs<'_, E>,
    tile: Tile,
    (part, slot): (u32, u32),
) {
    let (g, t) = (&args.geometry, &args.tensor);
    let groups = g.filters / g.out_per_group;
    let top = (tile.row * g.stride[0]) as i32 - g.padding[0] as i32;
    let left = (tile.col * g.stride[1]) as i32 - g.padding[1] as i32;
    let map = (tile.image * groups + tile.group) * g.size[0];
    let all = g.batch * groups * g.size[0] * g.size[1];
    let (words, packs) = (t.channels() / 4, t.part / 16);
    let staged: Shared<f32> = Shared::at(0, E::PIECES as u32 * t.cells() * t.pitch);
    let pack = cta.thread() % packs * 4;
    let mut cell = cta.thread() / packs;
    while cell < t.cells() {
        let (row, col) = (cell / t.inputs[1], cell % t.inputs[1]);
        let (y, x) = ((top + row as i32) as u32, (left + col as i32) as u32);
        let present = y < g.size[0] && x < g.size[1];
        let from = if present {
            (map + y) * g.size[1] + x
        } else {
            0
        };
        for piece in 0..E::PIECES as u32 {
            let i = (piece * all + from) * words + part * t.part / 4 + pack;
            let j = (piece * t.cells() + cell) * t.pitch + slot * t.part / 4 + pack;
            cta.copy_whole_pack(staged, j as usize, args.planes, i as usize, present);
        }
        cell += cta.threads() / packs;
    }
}

/// What a lane holds of a step.
#[derive(Clone, Copy)]
struct Step<const P: usize> {
    fragments: [[[u32; 4]; P]; ROWS],
    metadata: [u32; ROWS],
}

impl<const P: usize> Step<P> {
    const NONE: Step<P> = Step {
        fragments: [[[0; 4]; P]; ROWS],
        metadata: [0; ROWS],
    };

    #[inline(always)]
    #[track_caller]
    fn load<C: Cta, E: Element>(cta: &C, args: &SparseConvArgs<'_, E>, number: u32) -> Step<P> {
        let (from, lane) = (args.steps, lane(cta) as usize);
        let first = number as usize * step_words(P);
        let mut step = Step::NONE;
        for row in 0..ROWS {
            for piece in 0..P {
                let at = first + (row * P + piece) * 128 + lane * 4;
                step.fragments[row][piece] = cta.load_pack(from, at, Cache::Keep);
            }
            let at = first + ROWS * P * 128 + row * 32 + lane;
            step.metadata[row] = cta.load(from, at, Cache::Keep);
        }
        step
    }
}

/// Words from a cell to the channels of this lane's tap of a step.
#[inline(always)]
#[track_caller]
fn offset_of<C: Cta, E: Element, const P: usize>(
    cta: &C,
    args: &SparseConvArgs<'_, E>,
    number: u32,
) -> u32 {
    let at = number as usize * step_words(P) + ROWS * P * 128 + ROWS * 32;
    cta.load(args.steps, at + lane(cta) as usize / 16, Cache::Keep) / 4
}

/// Sums of a lane by weight, rows, columns and registers.
type Sums = [[[[i32; 4]; COLS]; ROWS]; 3];

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
    /// Reads a column of the step that begins `offset` words behind the first: of each piece channels 0 to 15 and 16 to 31
    /// at the first tap, then at the second. Regroups it to the second factor: groups of four rows are two neighbouring
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
fn multiply_pieces<C: Cta, const P: usize, const W: usize>(
    cta: &C,
    step: &Step<W>,
    (column, col): (&Column<P>, usize),
    (i, j): (usize, usize),
    sums: &mut Sums,
) {
    for row in 0..ROWS {
        let (w, places) = (step.fragments[row][i], step.metadata[row]);
        let (sum, x) = (&mut sums[i + j][row][col], column[j]);
        // The highest piece has the sign.
        *sum = match (i + 1 == W, j + 1 == P) {
            (true, true) => cta.multiply_sparse_bytes::<true, true>(w, x, *sum, places),
            (true, false) => cta.multiply_sparse_bytes::<true, false>(w, x, *sum, places),
            (false, true) => cta.multiply_sparse_bytes::<false, true>(w, x, *sum, places),
            (false, false) => cta.multiply_sparse_bytes::<false, false>(w, x, *sum, places),
        };
    }
}

/// Adds a step's products with a column's inputs.
#[inline(always)]
#[track_caller]
fn multiply_column<C: Cta, const P: usize, const W: usize>(
    cta: &C,
    step: &Step<W>,
    column: (&Column<P>, usize),
    sums: &mut Sums,
) {
    for i in 0..W {
        for j in 0..P {
            multiply_pieces(cta, step, column, (i, j), sums);
        }
    }
}

/// See the head of the file. Inputs have P pieces, weights W.
pub fn tensor<C: Cta, E: Element, const P: usize, const W: usize, const TEAMS: u32>(
    cta: &C,
    args: &SparseConvArgs<'_, E>,
) {
    match TEAMS {
        2 => cta.launch_bounds::<{ 2 * TENSOR_TEAM }, 1>(),
        _ => cta.launch_bounds::<{ 4 * TENSOR_TEAM }, 1>(),
    }
    let tile = Tile::of(cta, args);
    let sums = add_parts::<C, E, P, W, TEAMS>(cta, args, tile);
    cta.sync();
    write_sums::<C, E, TEAMS>(cta, &sums);
    write_outputs(cta, args, tile);
}

/// Quotient and remainder by a power of two. Sides of tiles are such, their product being [`TILE_CELLS`]; so are the windows
/// that divide them.
#[inline(always)]
fn split(number: u32, by: u32) -> (u32, u32) {
    (number >> by.trailing_zeros(), number & (by - 1))
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

/// A team's steps.
struct Steps<const W: usize, const TEAMS: u32> {
    /// The next one.
    number: u32,
    /// The end of the block's.
    last: u32,
    /// The next one's.
    step: Step<W>,
    offset: u32,
    /// Of the one after it, for two teams.
    then: u32,
}

impl<const W: usize, const TEAMS: u32> Steps<W, TEAMS> {
    /// Two teams read the inputs of a step while they multiply the one before: its offset has to be there earlier.
    const AHEAD: bool = TEAMS == 2;

    #[inline(always)]
    #[track_caller]
    fn first<C: Cta, E: Element>(
        cta: &C,
        args: &SparseConvArgs<'_, E>,
        [number, last]: [u32; 2],
    ) -> Steps<W, TEAMS> {
        let mut steps = Steps {
            number,
            last,
            step: Step::NONE,
            offset: 0,
            then: 0,
        };
        if number < last {
            steps.then = offset_of::<C, E, W>(cta, args, number);
        }
        steps.load(cta, args);
        steps
    }

    /// Goes on to the next one.
    #[inline(always)]
    #[track_caller]
    fn advance<C: Cta, E: Element>(&mut self, cta: &C, args: &SparseConvArgs<'_, E>) {
        self.number += TEAMS;
        self.load(cta, args);
    }

    #[inline(always)]
    #[track_caller]
    fn load<C: Cta, E: Element>(&mut self, cta: &C, args: &SparseConvArgs<'_, E>) {
        if Self::AHEAD {
            self.offset = self.then;
        }
        if self.number < self.last {
            self.step = Step::load(cta, args, self.number);
            if !Self::AHEAD {
                self.offset = offset_of::<C, E, W>(cta, args, self.number);
            }
        }
        if Self::AHEAD && self.number + TEAMS < self.last {
            self.then = offset_of::<C, E, W>(cta, args, self.number + TEAMS);
        }
    }
}

/// This team's part of the sums.
#[inline(always)]
#[track_caller]
fn add_parts<C: Cta, E: Element, const P: usize, const W: usize, const TEAMS: u32>(
    cta: &C,
    args: &SparseConvArgs<'_, E>,
    tile: Tile,
) -> Sums {
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
    let mut sums: Sums = [[[[0; 4]; COLS]; ROWS]; 3];
    // So far filters alone were read, which are older than the planes.
    cta.wait_for_previous();
    let mut part = 0;
    while part < t.parts {
        arrive(cta, args, tile, part);
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
    sums: &mut Sums,
) {
    let mut columns: [Column<P>; COLS] = [[[0; 4]; P]; COLS];
    if steps.number < end {
        columns = staged.columns(cta, steps.offset);
    }
    while steps.number < end {
        let (step, own) = (steps.step, columns);
        steps.advance(cta, args);
        if steps.number < end {
            columns = staged.columns(cta, steps.offset);
        }
        multiply_column(cta, &step, (&own[0], 0), sums);
        multiply_column(cta, &step, (&own[1], 1), sums);
        multiply_column(cta, &step, (&own[2], 2), sums);
        multiply_column(cta, &step, (&own[3], 3), sums);
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
    sums: &mut Sums,
) {
    while steps.number < end {
        let (step, offset) = (steps.step, steps.offset);
        steps.advance(cta, args);
        let column = |col: usize| -> Column<P> { staged.column(cta, offset, col) };
        multiply_column(cta, &step, (&column(0), 0), sums);
        multiply_column(cta, &step, (&column(1), 1), sums);
        multiply_column(cta, &step, (&column(2), 2), sums);
        multiply_column(cta, &step, (&column(3), 3), sums);
    }
}

/// Waits until a part of the channels is in shared memory; the first of a chunk begins to copy all of it.
#[inline(always)]
#[track_caller]
fn arrive<C: Cta, E: Element>(cta: &C, args: &SparseConvArgs<'_, E>, tile: Tile, part: u32) {
    let t = &args.tensor;
    let slot = part % CHUNK_PARTS;
    if slot == 0 {
        cta.sync();
        for slot in 0..CHUNK_PARTS {
            if part + slot < t.parts {
                stage(cta, args, tile, (part + slot, slot));
            }
            cta.end_copies();
        }
    }
    match slot {
        0 => cta.copies_done::<3>(),
        1 => cta.copies_done::<2>(),
        2 => cta.copies_done::<1>(),
        _ => cta.copies_done::<0>(),
    }
    cta.sync();
}

/// Bytes of shared memory of a block.
pub fn tensor_shared_bytes<E: Element>(t: &super::TensorGeometry) -> u64 {
    let staged = E::PIECES as u64 * t.cells() as u64 * t.pitch as u64 * 4;
    staged.max(sum_bytes(E::Acc::SIZE) as u64)
}
