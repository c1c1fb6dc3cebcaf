//! Inputs of which many are zero, 32-bit numbers: only the others are listed, and added to the outputs that they meet.
//!
//! [`list`] makes a list of the inputs that are not zero for every map (image and channel), with where each row begins. A
//! warp has some rows of one filter's outputs, as sums in shared memory. For each nonzero of the filter its lanes go
//! through the list of the rows that these outputs meet, and add each product to the output in its place. Inputs of one list
//! meet different outputs, so that no addition is atomic and the order is that of `direct`, less the zeros.
//!
//! Only of stride 1: an input meets an output by every tap. A sum is in shared memory with the columns left and right
//! that taps reach beyond the map, so that no tap asks whether it is inside.
//!
//! Shared memory: of each warp rows · width sums.

use super::args::{SparseConvArgs, finished, value_at};
use super::element::{Accumulator, Element};
use crate::cta::{Cache, Cta, Shared, Shuffle, WARP};
use crate::scalar::Word;
use crate::verbs::lane;

/// Threads of a block that lists inputs.
pub const LIST_BLOCK: u32 = 256;
/// Threads of a block that adds listed inputs.
pub const SKIP_BLOCK: u32 = 128;
/// Warps that share a map.
const LISTERS: u32 = LIST_BLOCK / WARP;
/// Inputs that a lane loads at once.
const AT_ONCE: usize = 4;
const FULL: u32 = u32::MAX;

/// Where the lists' parts lie among the planes' words.
#[derive(Clone, Copy)]
struct Lists {
    /// Inputs of a map.
    cells: u32,
    /// Words of all maps' row beginnings; then places, then values.
    rows: u32,
    /// Words of all places.
    places: u32,
}

impl Lists {
    #[inline(always)]
    fn of<E: Element>(args: &SparseConvArgs<'_, E>) -> Lists {
        let g = &args.geometry;
        let maps = g.batch * (g.filters / g.out_per_group) * g.in_per_group;
        let cells = g.size[0] * g.size[1];
        Lists {
            cells,
            rows: maps * (g.size[0] + 1),
            places: maps * cells,
        }
    }

    /// Words of all parts.
    #[inline(always)]
    fn words(self) -> u64 {
        self.rows as u64 + 2 * self.places as u64
    }
}

/// Words of the lists.
pub(super) fn list_words<E: Element>(args: &SparseConvArgs<'_, E>) -> u64 {
    Lists::of(args).words()
}

/// The inputs of a run of 32 · [`AT_ONCE`] that are not zero.
#[inline(always)]
#[track_caller]
fn look<C: Cta, E: Element>(
    cta: &C,
    args: &SparseConvArgs<'_, E>,
    (image, channel): (u32, u32),
    first: u32,
) -> [(E::Wide, u32); AT_ONCE] {
    let g = &args.geometry;
    let values: [E::Wide; AT_ONCE] = core::array::from_fn(|j| {
        let cell = first + j as u32 * WARP + lane(cta);
        if cell < g.size[0] * g.size[1] {
            let at = g
                .from
                .at(image, channel, cell / g.size[1], cell % g.size[1]);
            value_at(cta, args, at)
        } else {
            E::Wide::default()
        }
    });
    values.map(|x| (x, cta.ballot(x != E::Wide::default(), FULL)))
}

/// Lists of the inputs that are not zero; a block takes a map, each warp a run of its inputs.
pub fn list<C: Cta, E: Element>(cta: &C, args: &SparseConvArgs<'_, E>) {
    let g = &args.geometry;
    let lists = Lists::of(args);
    let channels = g.filters / g.out_per_group * g.in_per_group;
    let (map, warp) = (cta.block(), cta.thread() / WARP);
    let maps = (map / channels, map % channels);
    let step = WARP * AT_ONCE as u32;
    let run = lists.cells.div_ceil(LISTERS).next_multiple_of(step);
    let (begin, end) = (warp * run, (warp * run + run).min(lists.cells));
    let mut count = 0;
    let mut cell = begin;
    while cell < end {
        for (_, found) in look(cta, args, maps, cell) {
            count += found.count_ones();
        }
        cell += step;
    }
    let counts: Shared<u32> = Shared::at(0, LISTERS);
    if lane(cta) == 0 {
        cta.shared_write(counts, warp as usize, count);
    }
    cta.sync();
    let mut listed = 0;
    for before in 0..LISTERS {
        if before < warp {
            listed += cta.shared_read(counts, before as usize);
        }
    }
    let mut cell = begin;
    while cell < end {
        for (j, (x, found)) in look(cta, args, maps, cell).into_iter().enumerate() {
            let own = cell + j as u32 * WARP + lane(cta);
            write_own(cta, args, (map, own), (x, found, listed));
            listed += found.count_ones();
        }
        cell += step;
    }
    if begin < end && end == lists.cells && lane(cta) == 0 {
        let at = map * (g.size[0] + 1) + g.size[0];
        cta.write(args.planes_out, at as usize, f32::from_bits(listed));
    }
}

/// Lists this lane's input, after `listed` others and those of lower lanes.
#[inline(always)]
#[track_caller]
fn write_own<C: Cta, E: Element>(
    cta: &C,
    args: &SparseConvArgs<'_, E>,
    (map, cell): (u32, u32),
    (x, found, listed): (E::Wide, u32, u32),
) {
    let (g, s) = (&args.geometry, &args.skip);
    let lists = Lists::of(args);
    if cell >= lists.cells {
        return;
    }
    let lower = found & ((1 << lane(cta)) - 1);
    let at = listed + lower.count_ones();
    let (row, col) = (cell / g.size[1], cell % g.size[1]);
    if col == 0 {
        let begins = (map * (g.size[0] + 1) + row) as usize;
        cta.write(args.planes_out, begins, f32::from_bits(at));
    }
    if x != E::Wide::default() {
        let place = (lists.rows + map * lists.cells + at) as usize;
        let words = [row * s.width + col, x.to_bits() as u32];
        cta.write(args.planes_out, place, f32::from_bits(words[0]));
        let value = place + lists.places as usize;
        cta.write(args.planes_out, value, f32::from_bits(words[1]));
    }
}

/// A nonzero as a warp goes through it: the list's range, from a listed place to its output's, the weight's bits.
#[derive(Clone, Copy, Default)]
struct Pass {
    begin: u32,
    end: u32,
    shift: u32,
    bits: u32,
}

impl Pass {
    /// That of another lane.
    #[inline(always)]
    #[track_caller]
    fn of_lane<C: Cta>(self, cta: &C, from: u32) -> Pass {
        let of = |word: u32| cta.shuffle(word, Shuffle::Index(from), WARP, FULL);
        Pass {
            begin: of(self.begin),
            end: of(self.end),
            shift: of(self.shift),
            bits: of(self.bits),
        }
    }
}

/// Outputs of a warp.
#[derive(Clone, Copy)]
struct Band {
    image: u32,
    filter: u32,
    /// First row and the one behind the last.
    rows: [u32; 2],
}

/// Nonzero number k for a band's outputs.
#[inline(always)]
#[track_caller]
fn pass<C: Cta, E: Element>(cta: &C, args: &SparseConvArgs<'_, E>, band: Band, k: u32) -> Pass {
    let (g, s) = (&args.geometry, &args.skip);
    let place = cta.load(args.places, k as usize, Cache::Keep);
    let bits = cta.load(args.values, k as usize, Cache::Keep).to_bits() as u32;
    let (down, right) = (
        (place >> 4 & 15) * g.dilation[0],
        (place & 15) * g.dilation[1],
    );
    let groups = g.filters / g.out_per_group;
    let channel = band.filter / g.out_per_group * g.in_per_group + (place >> 8);
    let map = band.image * groups * g.in_per_group + channel;
    // Row y meets output row y + padding − down.
    let input = |row: u32| (row + down).saturating_sub(g.padding[0]).min(g.size[0]);
    let begins = |row: u32| {
        let at = map * (g.size[0] + 1) + input(row);
        cta.load(args.planes, at as usize, Cache::Keep).to_bits()
    };
    let first = map * (g.size[0] * g.size[1]);
    let reach = (g.kernel[1] - 1) * g.dilation[1];
    let rows = g.padding[0].wrapping_sub(down).wrapping_sub(band.rows[0]);
    Pass {
        begin: first + begins(band.rows[0]),
        end: first + begins(band.rows[1]),
        shift: rows.wrapping_mul(s.width).wrapping_add(reach - right),
        bits,
    }
}

/// A listed input: its place and its bits.
#[inline(always)]
#[track_caller]
fn listed<C: Cta, E: Element>(
    cta: &C,
    args: &SparseConvArgs<'_, E>,
    lists: Lists,
    (at, end): (u32, u32),
) -> [u32; 2] {
    if at >= end {
        return [0; 2];
    }
    let place = (lists.rows + at) as usize;
    [place, place + lists.places as usize]
        .map(|word| cta.load(args.planes, word, Cache::Keep).to_bits())
}

/// See the head of the file.
pub fn skip<C: Cta, E: Element>(cta: &C, args: &SparseConvArgs<'_, E>) {
    let (g, s) = (&args.geometry, &args.skip);
    let bands = g.out[0].div_ceil(s.rows);
    let warp = cta.thread() / WARP;
    let item = cta.block() * (SKIP_BLOCK / WARP) + warp;
    if item >= g.batch * bands * g.filters {
        return;
    }
    let (rest, filter) = (item / g.filters, item % g.filters);
    let first = rest % bands * s.rows;
    let band = Band {
        image: rest / bands,
        filter,
        rows: [first, (first + s.rows).min(g.out[0])],
    };
    let words = s.rows * s.width;
    let sums: Shared<E::Acc> = Shared::at(warp * words * E::Acc::SIZE, words);
    let mut i = lane(cta);
    while i < words {
        cta.shared_write(sums, i as usize, E::Acc::ZERO);
        i += WARP;
    }
    cta.sync_warp();
    add_filter(cta, args, band, sums);
    write_band(cta, args, band, sums);
}

/// Adds all nonzeros: each lane looks one up, then the warp goes through all of them.
#[inline(always)]
#[track_caller]
fn add_filter<C: Cta, E: Element>(
    cta: &C,
    args: &SparseConvArgs<'_, E>,
    band: Band,
    sums: Shared<E::Acc>,
) {
    let lists = Lists::of(args);
    let mut k = cta.load(args.starts, band.filter as usize, Cache::Keep);
    let end = cta.load(args.starts, band.filter as usize + 1, Cache::Keep);
    while k < end {
        let mut own = Pass::default();
        if k + lane(cta) < end {
            own = pass(cta, args, band, k + lane(cta));
        }
        let count = (end - k).min(WARP);
        let mut now = own.of_lane(cta, 0);
        let mut found = listed(cta, args, lists, (now.begin + lane(cta), now.end));
        for next in 1..=count {
            // The next nonzero's first inputs are on their way while this one's are added.
            let following = own.of_lane(cta, next % WARP);
            let at = following.begin + lane(cta);
            let first = listed(cta, args, lists, (at, following.end));
            let mut at = now.begin + lane(cta);
            let weight = E::Wide::from_bits(now.bits as u64);
            while at < now.end {
                let x = E::Wide::from_bits(found[1] as u64);
                let to = found[0].wrapping_add(now.shift) as usize;
                let sum = cta.shared_read(sums, to);
                cta.shared_write(sums, to, E::multiply_add(x, weight, sum));
                at += WARP;
                found = listed(cta, args, lists, (at, now.end));
            }
            cta.sync_warp();
            (now, found) = (following, first);
        }
        k += WARP;
    }
}

/// Bias and rectification of a band's sums, and the results to memory.
#[inline(always)]
#[track_caller]
fn write_band<C: Cta, E: Element>(
    cta: &C,
    args: &SparseConvArgs<'_, E>,
    band: Band,
    sums: Shared<E::Acc>,
) {
    let (g, s) = (&args.geometry, &args.skip);
    let reach = (g.kernel[1] - 1) * g.dilation[1];
    let mut i = lane(cta);
    while i < (band.rows[1] - band.rows[0]) * g.out[1] {
        let (row, col) = (i / g.out[1], i % g.out[1]);
        let at = (col + reach).wrapping_sub(g.padding[1]);
        // Beyond what taps reach there are outputs of padding alone.
        let sum = if at < s.width {
            cta.shared_read(sums, (row * s.width + at) as usize)
        } else {
            E::Acc::ZERO
        };
        let to = g.to.at(band.image, band.filter, band.rows[0] + row, col);
        cta.write(args.out, to, finished(cta, args, band.filter, sum));
        i += WARP;
    }
}
