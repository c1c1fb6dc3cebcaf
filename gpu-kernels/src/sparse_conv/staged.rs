//! Any stride and dilation, 32-bit numbers: inputs of some channels in shared memory, sums of several filters and outputs
//! in registers.
//!
//! Inputs are copied once to planes with zeros around every image ([`pad`]), one plane per channel with all images, so that
//! no tap asks whether it is inside: a nonzero is a distance in words and a weight. A block has 32 · `CELLS` neighbouring
//! outputs, of several images where those are small, and 8 · `FILTERS` filters, of which each warp has `FILTERS`. What
//! its outputs meet of a channel is a range of the channel's plane. Ranges of a chunk of channels lie in shared memory
//! while those of the next chunk arrive.
//!
//! **Limit.** A multiply-add is a load of 32 words from shared memory, of which an SM makes one per clock.
//!
//! Order: as `direct`. Zeros outside an image are multiplied too: an infinite weight makes NaN of them, which the host
//! rules out, and a sum of −0 becomes +0.
//!
//! Shared memory: twice a chunk's channels · pitch words.

// Loops over indices that are known once they are unrolled keep arrays in registers.
#![allow(clippy::needless_range_loop)]

use super::args::{SparseConvArgs, finished, value_at};
use super::element::{Accumulator, Element};
use crate::cta::{Cache, Cta, Shared, WARP};
use crate::scalar::Word;
use crate::verbs::{each_of_grid, lane};

/// Threads of a block.
pub const STAGED_BLOCK: u32 = 256;
/// Warps of a block.
pub const STAGED_WARPS: u32 = STAGED_BLOCK / WARP;

/// Inputs to padded planes; what is around images stays as it is, zero.
pub fn pad<C: Cta, E: Element>(cta: &C, args: &SparseConvArgs<'_, E>) {
    let (g, s) = (&args.geometry, &args.staged);
    let channels = g.filters / g.out_per_group * g.in_per_group;
    let all = channels as u64 * g.batch as u64 * g.size[0] as u64 * g.size[1] as u64;
    each_of_grid(cta, all, |i| {
        let (rest, col) = (i as u32 / g.size[1], i as u32 % g.size[1]);
        let (rest, row) = (rest / g.size[0], rest % g.size[0]);
        let (channel, image) = (rest / g.batch, rest % g.batch);
        let bits = value_at(cta, args, g.from.at(image, channel, row, col)).to_bits();
        let (down, right) = (row + g.padding[0], col + g.padding[1]);
        let at = channel * s.plane + image * s.image + down * s.row + right;
        cta.write(args.planes_out, at as usize, f32::from_bits(bits as u32));
    });
}

/// An output by its number among all images'.
#[derive(Clone, Copy)]
struct Output {
    image: u32,
    row: u32,
    col: u32,
}

impl Output {
    #[inline(always)]
    fn of<E: Element>(args: &SparseConvArgs<'_, E>, number: u32) -> Output {
        let [rows, cols] = args.geometry.out;
        let (rest, col) = (number / cols, number % cols);
        Output {
            image: rest / rows,
            row: rest % rows,
            col,
        }
    }

    /// The place in a plane that tap (0, 0) meets.
    #[inline(always)]
    fn place<E: Element>(self, args: &SparseConvArgs<'_, E>) -> u32 {
        let (g, s) = (&args.geometry, &args.staged);
        self.image * s.image + self.row * g.stride[0] * s.row + self.col * g.stride[1]
    }
}

/// What a block has.
#[derive(Clone, Copy)]
struct Tile {
    group: u32,
    /// Filter of the group.
    filter: u32,
    /// Output of all images.
    output: u32,
    /// The first word of planes that is staged, a multiple of 4.
    low: u32,
}

impl Tile {
    #[inline(always)]
    fn of<C: Cta, E: Element>(
        cta: &C,
        args: &SparseConvArgs<'_, E>,
        [filters, outputs]: [u32; 2],
    ) -> Tile {
        let (g, s) = (&args.geometry, &args.staged);
        let all = g.filters / g.out_per_group * s.filter_tiles;
        let (tile, of_filters) = (cta.block() / all, cta.block() % all);
        let output = tile * outputs;
        Tile {
            group: of_filters / s.filter_tiles,
            filter: of_filters % s.filter_tiles * filters,
            output,
            low: Output::of(args, output).place(args) / 4 * 4,
        }
    }
}

/// Begins to copy a chunk's ranges: a warp takes every eighth channel.
#[inline(always)]
#[track_caller]
fn stage<C: Cta, E: Element>(cta: &C, args: &SparseConvArgs<'_, E>, tile: Tile, chunk: u32) {
    let (g, s) = (&args.geometry, &args.staged);
    let staged: Shared<f32> = Shared::at(0, 2 * s.chunk * s.pitch);
    let slot = chunk % 2 * s.chunk * s.pitch;
    let mut channel = cta.thread() / WARP;
    while channel < s.chunk {
        let of_group = chunk * s.chunk + channel;
        if of_group < g.in_per_group {
            let from = (tile.group * g.in_per_group + of_group) * s.plane + tile.low;
            let to = slot + channel * s.pitch;
            let mut i = lane(cta) * 4;
            while i < s.pitch {
                let (j, i_of_planes) = ((to + i) as usize, (from + i) as usize);
                cta.copy_whole_pack(staged, j, args.planes, i_of_planes, true);
                i += 4 * WARP;
            }
        }
        channel += STAGED_WARPS;
    }
}

/// Adds a range of a filter's nonzeros, two of which are read at once.
#[inline(always)]
#[track_caller]
fn add<C: Cta, E: Element, const CELLS: usize>(
    cta: &C,
    args: &SparseConvArgs<'_, E>,
    range: usize,
    (cells, slot): (&[u32; CELLS], u32),
    sums: &mut [E::Acc; CELLS],
) {
    let s = &args.staged;
    let mut add_one = |offset: u32, bits: u32| {
        let weight = E::Wide::from_bits(bits as u64);
        // An array that begins there: of each output's address one addition is left.
        let (before, words) = (slot + offset, 2 * s.chunk * s.pitch);
        let staged: Shared<E::Wide> = Shared::at(4 * before, words - before);
        for j in 0..CELLS {
            let x = cta.shared_read(staged, cells[j] as usize);
            sums[j] = E::multiply_add(x, weight, sums[j]);
        }
    };
    let mut k = cta.load(args.starts, 2 * range, Cache::Keep);
    let end = cta.load(args.starts, 2 * range + 1, Cache::Keep);
    while k < end {
        let [offset, bits, next_offset, next_bits]: [u32; 4] =
            cta.load_pack(args.steps, 2 * k as usize, Cache::Keep);
        add_one(offset, bits);
        if k + 1 < end {
            add_one(next_offset, next_bits);
        }
        k += 2;
    }
}

/// See the head of the file.
pub fn staged<C: Cta, E: Element, const FILTERS: usize, const CELLS: usize>(
    cta: &C,
    args: &SparseConvArgs<'_, E>,
) {
    cta.launch_bounds::<STAGED_BLOCK, 1>();
    let (g, s) = (&args.geometry, &args.staged);
    let sizes = [STAGED_WARPS * FILTERS as u32, WARP * CELLS as u32];
    let tile = Tile::of(cta, args, sizes);
    let outputs = g.batch * g.out[0] * g.out[1];
    let output = |j: usize| tile.output + j as u32 * WARP + lane(cta);
    let cells: [u32; CELLS] = core::array::from_fn(|j| {
        // What is no output reads what another one does.
        let number = output(j).min(outputs - 1);
        Output::of(args, number).place(args) - tile.low
    });
    let first = tile.filter + cta.thread() / WARP * FILTERS as u32;
    let mut sums = [[E::Acc::ZERO; CELLS]; FILTERS];
    stage(cta, args, tile, 0);
    cta.end_copies();
    let mut chunk = 0;
    while chunk < s.chunks {
        if chunk + 1 < s.chunks {
            stage(cta, args, tile, chunk + 1);
        }
        cta.end_copies();
        cta.copies_done::<1>();
        cta.sync();
        let slot = chunk % 2 * s.chunk * s.pitch;
        for k in 0..FILTERS {
            let filter = first + k as u32;
            if filter < g.out_per_group {
                let filter = tile.group * g.out_per_group + filter;
                let range = (filter * s.chunks + chunk) as usize;
                add(cta, args, range, (&cells, slot), &mut sums[k]);
            }
        }
        cta.sync();
        chunk += 1;
    }
    for k in 0..FILTERS {
        for j in 0..CELLS {
            let filter = first + k as u32;
            if filter < g.out_per_group && output(j) < outputs {
                let filter = tile.group * g.out_per_group + filter;
                let Output { image, row, col } = Output::of(args, output(j));
                let result = finished(cta, args, filter, sums[k][j]);
                cta.write(args.out, g.to.at(image, filter, row, col), result);
            }
        }
    }
}
