//! Sparse X in tiles of rows, several right-hand sides: no sum is shared, so nothing is added atomically but the result.
//!
//! Formula: `W += α · Xᵀ( V ⊙ (X·Y − s) )`, and the halves; W holds β·Z (or zero) before.
//!
//! Why: an addition to a shared sum for every nonzero and side is what several sides are bound by (80 million nonzeros
//! and 8 sides on an H200: 1.36 ms as floats, 0.59 ms as two integer words, of 1,000 columns). In a tile both products
//! are sums of rows that a lane gathers from shared memory, 16 bytes at a time: its own sums stay in registers.
//!
//! Layout: a tile is R rows of X, stored twice, as rows and as columns ([`TileSlices`]). A *slice* is what a warp works
//! on: 32 outputs (rows, or columns), one for each lane, or one long output for all lanes, in *groups* of
//! [`GROUP`] entries for each lane. Outputs are sorted by their length, so that the lanes of a slice end together.
//! An entry is a value and a place of 16 bits: the column, or the row of the tile. What fills a slice up names one of
//! [`SPARE`] rows of zeros behind the others. Lanes take the packs of a row in turns, and who makes the layout orders
//! the entries of a lane so that the lanes that read together meet in few banks: 0.24 ms of gathers became 0.18.
//!
//! Mapping: a block holds Y of B sides for the whole launch, and takes tile after tile: its rows' P into shared memory, a
//! barrier, its columns' sums to W. More sides than B are shared out among neighbouring blocks, which take the same tiles:
//! what one reads of X the others find in the L2 cache. Shared memory: B · (n + R + 2 · SPARE) elements, of Y where there is
//! one and of P where it is wanted. Result: when the kernel has ended. Guarantees: X·Y has the same bits on every run and
//! grid; tiles add to W in any order.
//!
//! Source: sliced ELLPACK (Monakov, Lokhmotov, Avetisyan 2010) for tiles in both orders; that the host orders entries by
//! banks is ours.

#![expect(
    clippy::needless_range_loop,
    reason = "iterators over registers put them into local memory"
)]

use super::tile_walk::each_output;
use super::{Ends, Sides};
use crate::cta::{Cta, Shared, Shuffle, WARP};
use crate::fused::{Compute, Forward, Product};
use crate::memory::{In, Out};
use crate::scalar::{Pack, Real, Word, Words};
use crate::verbs::{FULL, each_of_block, lane};

/// Entries of a lane in a group.
pub const GROUP: u32 = 4;
/// Rows of zeros behind those of Y and of P.
pub const SPARE: u32 = 8;
/// A lane without an output.
pub const NONE: u32 = u32::MAX;
/// Threads of a block at most.
pub(super) const MOST_THREADS: u32 = 1_024;

/// The family of kernels over tiles.
pub struct TilesMany<T>(core::marker::PhantomData<T>);

/// The entries of all tiles in one order.
#[repr(C)]
#[derive(Debug)]
pub struct TileSlices<'a, T> {
    /// For each tile its first slice with one long output and its first with 32; then the number of slices.
    pub tiles: In<'a, u32>,
    /// The first group of each slice; then the number of groups.
    pub offsets: In<'a, u32>,
    /// The output of each lane of each slice, or [`NONE`]; where all lanes share one, the first lane's.
    pub outputs: In<'a, u32>,
    /// For each lane of each group [`GROUP`] places of 16 bits.
    pub places: In<'a, u64>,
    /// For each lane of each group [`GROUP`] values.
    pub values: In<'a, T>,
}

impl<T> Clone for TileSlices<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for TileSlices<'_, T> {}

/// Arguments of kernels over tiles.
#[repr(C)]
pub struct TilesManyArgs<'a, T> {
    /// m.
    pub rows: u32,
    /// n.
    pub cols: u32,
    /// R, rows of a tile; the last may have fewer.
    pub tile_rows: u32,
    /// Rows as outputs; read where there is an X·Y.
    pub by_row: TileSlices<'a, T>,
    /// Columns as outputs; read where there is an Xᵀ.
    pub by_column: TileSlices<'a, T>,
    /// Y (n × k) or P (m × k), k being [`Sides::all`].
    pub input: In<'a, T>,
    /// V, optional.
    pub weights: In<'a, T>,
    /// s, k elements, optional.
    pub shift: In<'a, T>,
    /// Z (m × k), optional; read by [`Product::Forward`] alone.
    pub addend: In<'a, T>,
    /// W (n × k), or P (m × k) for [`Product::Forward`].
    pub output: Out<'a, T>,
    /// α.
    pub alpha: T,
    /// β, used by [`Product::Forward`] alone.
    pub beta: T,
    /// Which right-hand sides.
    pub sides: Sides,
}

impl<T: Copy> Clone for TilesManyArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for TilesManyArgs<'_, T> {}

/// What distinguishes entries over tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TilesManyVariant {
    /// What is computed.
    pub product: Product,
    /// B: right-hand sides at most.
    pub sides: u32,
}

impl TilesManyVariant {
    /// Dynamic shared memory that a block needs for n columns and tiles of this many rows, elements of `size` bytes.
    pub const fn shared_bytes(&self, cols: u32, tile_rows: u32, size: u32) -> u64 {
        let (y, p) = (cols as u64 + SPARE as u64, tile_rows as u64 + SPARE as u64);
        let rows = match self.product {
            Product::Fused => y + p,
            Product::Forward => y,
            Product::Transposed => p,
        };
        rows * self.sides as u64 * size as u64
    }
}

impl<'a, T: Real> TilesManyArgs<'a, T> {
    #[inline(always)]
    pub(super) fn ends_of(&self) -> Ends<'a, T> {
        Ends {
            rows: self.rows as u64,
            input: self.input,
            weights: self.weights,
            shift: self.shift,
            addend: self.addend,
            output: self.output,
            alpha: self.alpha,
            beta: self.beta,
            sides: self.sides,
        }
    }
}

/// Any product.
#[inline(always)]
pub(super) fn walk<C: Cta, T: Real, F: Compute, const B: usize>(
    cta: &C,
    args: &TilesManyArgs<'_, T>,
) {
    cta.launch_bounds::<MOST_THREADS, 1>();
    let groups = args.sides.count.div_ceil(B as u32);
    let (group, teams) = (cta.block() % groups, cta.blocks() / groups);
    let args = &TilesManyArgs {
        sides: args.sides.group(group, B as u32),
        ..*args
    };
    let ends = args.ends_of();
    let array = |byte, rows| Shared::<T>::at(byte, (rows + SPARE) * B as u32);
    let y = array(0, if F::DOTS { args.cols } else { 0 });
    let p = array(if F::DOTS { y.end() } else { 0 }, args.tile_rows);
    if F::DOTS {
        fill::<C, T, B>(cta, y, args.cols, |row| ends.input_of(cta, row as u64));
        if F::ACCUMULATES {
            each_of_block(cta, SPARE, |row| {
                write_row(cta, p, args.tile_rows + row as u32, &[T::ZERO; B]);
            });
        }
        cta.sync();
    }
    let tiles = args.rows.div_ceil(args.tile_rows);
    // Blocks that are no whole team have nothing to do.
    let is_of_team = cta.block() < teams * groups;
    let mut tile = if is_of_team {
        cta.block() / groups
    } else {
        tiles
    };
    while tile < tiles {
        if F::ACCUMULATES {
            p_of_tile::<C, T, F, B>(cta, args, (y, p), tile);
            cta.sync();
            each_output::<C, T, B>(cta, (&args.by_column, tile), p, |column, sums| {
                add_sides(cta, &ends, column, &sums);
            });
            cta.sync();
        } else {
            each_output::<C, T, B>(cta, (&args.by_row, tile), y, |row, dots| {
                if row != NONE {
                    write_sides(cta, &ends, row_of(cta, args, tile, row), &dots);
                }
            });
        }
        tile += teams;
    }
}

/// The row of X that a row of a tile is.
#[inline(always)]
fn row_of<C: Cta, T>(cta: &C, args: &TilesManyArgs<'_, T>, tile: u32, row: u32) -> u64 {
    cta.fresh(tile) as u64 * args.tile_rows as u64 + row as u64
}

/// Writes B numbers for each of `rows` rows, and zeros behind.
#[inline(always)]
fn fill<C: Cta, T: Real, const B: usize>(
    cta: &C,
    to: Shared<T>,
    rows: u32,
    of_row: impl Fn(u32) -> [T; B],
) {
    each_of_block(cta, rows + SPARE, |row| {
        let values = if (row as u32) < rows {
            of_row(row as u32)
        } else {
            [T::ZERO; B]
        };
        write_row(cta, to, row as u32, &values);
    });
}

#[inline(always)]
fn write_row<C: Cta, T: Real, const B: usize>(cta: &C, to: Shared<T>, row: u32, values: &[T; B]) {
    let lanes = T::Pack::LANES;
    for q in 0..B / lanes {
        let pack = pack_of::<T, B>(values, q, T::ONE);
        cta.shared_write_pack(to, row as usize * B + q * lanes, pack);
    }
}

/// Pack `q` of the values, times `factor`.
#[inline(always)]
fn pack_of<T: Real, const B: usize>(values: &[T; B], q: usize, factor: T) -> T::Pack {
    let mut pack = T::Pack::ZERO;
    for l in 0..T::Pack::LANES {
        pack.as_mut()[l] = factor * values[q * T::Pack::LANES + l];
    }
    pack
}

/// P of a tile in shared memory: `V ⊙ (X·Y − s)`, or `V ⊙ P`.
#[inline(always)]
fn p_of_tile<C: Cta, T: Real, F: Compute, const B: usize>(
    cta: &C,
    args: &TilesManyArgs<'_, T>,
    (y, p): (Shared<T>, Shared<T>),
    tile: u32,
) {
    if !F::DOTS {
        return load_p::<C, T, B>(cta, args, p, tile);
    }
    each_output::<C, T, B>(cta, (&args.by_row, tile), y, |row, mut dots| {
        if row == NONE {
            return;
        }
        let ends = args.ends_of().fresh(cta);
        for side in 0..B {
            let shift = ends.shift::<C, F>(cta, side as u32);
            let at = row_of(cta, args, tile, row);
            dots[side] = ends.multiplier::<C, F>(cta, at, side as u32) * (dots[side] - shift);
        }
        write_row(cta, p, row, &dots);
    });
}

/// V ⊙ P of a tile: where there is no V all of it is on its way at once.
#[inline(always)]
fn load_p<C: Cta, T: Real, const B: usize>(
    cta: &C,
    args: &TilesManyArgs<'_, T>,
    p: Shared<T>,
    tile: u32,
) {
    let ends = args.ends_of().fresh(cta);
    let lanes = T::Pack::LANES as u32;
    if ends.weights.is_some() || !ends.sides.come_in_packs(lanes) {
        return fill::<C, T, B>(cta, p, args.tile_rows, |row| {
            let ends = args.ends_of().fresh(cta);
            ends.weighted_input(cta, row_of(cta, args, tile, row))
        });
    }
    let packs = B as u32 / lanes;
    each_of_block(cta, (args.tile_rows + SPARE) * packs, |pack| {
        let (local, side) = (pack as u32 / packs, pack as u32 % packs * lanes);
        let row = row_of(cta, args, tile, local);
        let present = local < args.tile_rows && row < ends.rows && side < ends.sides.count;
        let at = if present { ends.sides.at(row, side) } else { 0 };
        cta.copy_whole_pack(p, pack * lanes as usize, ends.input, at, present);
    });
    cta.end_copies();
    cta.copies_done::<0>();
}

/// Adds α times the sums of a column to W, in every lane that has one; the whole warp calls.
///
/// Where a row of W is two packs, a lane and its neighbour add one of each at a time, first to the one's column and then to
/// the other's: memory is sent 32 bytes where it would be sent 16 twice.
#[inline(always)]
fn add_sides<C: Cta, T: Real, const B: usize>(
    cta: &C,
    ends: &Ends<'_, T>,
    column: u32,
    sums: &[T; B],
) {
    let ends = ends.fresh(cta);
    let lanes = T::Pack::LANES;
    if !ends.sides.come_in_packs(lanes as u32) {
        if column != NONE {
            add_one_by_one(cta, &ends, column, sums);
        }
        return;
    }
    const { assert!(B / T::Pack::LANES <= 2, "neighbours exchange one pack") };
    if B == lanes {
        return add_to_row(
            cta,
            &ends,
            (column, 0),
            pack_of::<T, B>(sums, 0, ends.alpha),
        );
    }
    let odd = Choice::of_odd_lanes(cta);
    let neighbour = Shuffle::Xor(1);
    let other = cta.shuffle(column, neighbour, WARP, FULL);
    let (mut first, mut second) = (T::Pack::ZERO, T::Pack::ZERO);
    for l in 0..lanes {
        let (low, high) = (ends.alpha * sums[l], ends.alpha * sums[lanes + l]);
        let taken = cta.shuffle(odd.choose(low, high), neighbour, WARP, FULL);
        first.as_mut()[l] = odd.choose(taken, low);
        second.as_mut()[l] = odd.choose(high, taken);
    }
    let side = odd.choose(lanes as u32, 0);
    add_to_row(cta, &ends, (odd.choose(other, column), side), first);
    add_to_row(cta, &ends, (odd.choose(column, other), side), second);
}

/// One of two values, taken by bits: with a condition the compiler makes branches, and of every exchange between lanes two.
struct Choice(u64);

impl Choice {
    #[inline(always)]
    fn of_odd_lanes<C: Cta>(cta: &C) -> Self {
        Choice(cta.fresh(0_u64.wrapping_sub((lane(cta) % 2) as u64)))
    }

    #[inline(always)]
    fn choose<T: Word>(&self, yes: T, no: T) -> T {
        T::from_bits(yes.to_bits() & self.0 | no.to_bits() & !self.0)
    }
}

/// Adds a pack to a row of W, from a side on, if they are there.
#[inline(always)]
fn add_to_row<C: Cta, T: Real>(
    cta: &C,
    ends: &Ends<'_, T>,
    (row, side): (u32, u32),
    pack: T::Pack,
) {
    if row != NONE && side < ends.sides.count {
        cta.add_pack(ends.output, ends.sides.at(row as u64, side), pack);
    }
}

#[inline(always)]
fn add_one_by_one<C: Cta, T: Real, const B: usize>(
    cta: &C,
    ends: &Ends<'_, T>,
    column: u32,
    sums: &[T; B],
) {
    for side in 0..B {
        if (side as u32) < ends.sides.count {
            let at = ends.sides.at(column as u64, side as u32);
            cta.add(ends.output, at, ends.alpha * sums[side]);
        }
    }
}

/// Writes `α · V ⊙ (X·Y − s) + β · Z` of a row.
#[inline(always)]
fn write_sides<C: Cta, T: Real, const B: usize>(
    cta: &C,
    ends: &Ends<'_, T>,
    row: u64,
    dots: &[T; B],
) {
    let ends = ends.fresh(cta);
    let lanes = T::Pack::LANES;
    let whole = ends.sides.come_in_packs(lanes as u32);
    for q in 0..B / lanes {
        let mut pack = T::Pack::ZERO;
        for l in 0..lanes {
            let side = (q * lanes + l) as u32;
            let shift = ends.shift::<C, Forward>(cta, side);
            let factor = ends.multiplier::<C, Forward>(cta, row, side);
            pack.as_mut()[l] = factor * (dots[q * lanes + l] - shift);
        }
        for l in 0..lanes {
            let side = (q * lanes + l) as u32;
            if side < ends.sides.count {
                if !whole {
                    ends.write_forward(cta, (row, side), pack.as_ref()[l]);
                } else if l == 0 {
                    ends.write_forward_pack(cta, (row, side), pack);
                }
            }
        }
    }
}
